//! `nysketch sketch`: compress rows.

use super::plan::{describe, invalid, measured_at, plan_input, tell_positions};
use super::read_bytes;
use crate::args::{Common, SketchArgs};
use crate::input::{Input, Wanted};
use crate::output::{Usage, check_writable, count, note, result, size, thousands, write_bytes};
use crate::progress::Bar;
use anyhow::{Context, Result};
use nysketch::{Error, Instructions, Plan, Sketch, SketchParams};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

pub fn run(args: &SketchArgs, common: &Common) -> Result<()> {
    let files = args.input.input.iter().chain(&args.plan_file).chain(&args.plan.landmarks_from);
    check_writable(&args.output, files)?;
    let start = Instant::now();
    let (plan, input, rows) = match &args.plan_file {
        Some(path) => {
            let plan =
                Plan::from_bytes(&read_bytes(path)?).with_context(|| path.display().to_string())?;
            let input = open_for_plan(args, &plan, common)?;
            let rows = input.as_ref().and_then(Input::rows_hint);
            (plan, input, rows)
        }
        None => {
            let (plan, report, input) = plan_input(&args.input, &args.plan, common)?;
            (plan, Some(input), Some(report.rows + report.skipped))
        }
    };
    let plan = Arc::new(plan);
    let bar = Bar::new("sketching", rows, common.quiet);
    let params = SketchParams {
        threads: common.threads(),
        invalid: invalid(&args.input),
        instructions: Instructions::best(),
    };
    let sketch = match &input {
        Some(input) => Sketch::of(&plan, input, params, &bar),
        None => Ok(Sketch::empty(plan.clone())),
    };
    drop(bar);
    let sketch = sketch?;
    if sketch.rows() == 0 && !args.allow_empty {
        return Err(Error::NoRows { skipped: sketch.skipped() }.into());
    }
    let bytes = sketch.to_bytes();
    write_bytes(&args.output, &bytes)?;
    let seconds = start.elapsed().as_secs_f64();
    if sketch.skipped() > 0 {
        note(
            common,
            &format!(
                "{} skipped as invalid; the sketch records it",
                count(sketch.skipped(), "row")
            ),
        );
    }
    let mut json = describe(&plan);
    json["file"] = json!(args.output);
    json["rows"] = json!(sketch.rows());
    json["skipped"] = json!(sketch.skipped());
    json["bytes"] = json!(bytes.len());
    json["seconds"] = json!(seconds);
    let text = format!(
        "{}: {} rows × {} columns at {} in {}, {seconds:.1} s",
        args.output.display(),
        thousands(sketch.rows()),
        plan.dims(),
        measured_at(&plan),
        size(bytes.len()),
    );
    result(common, &json, &text)
}

/// The input with the columns of a plan; `None` where every file is empty and may be.
fn open_for_plan(args: &SketchArgs, plan: &Plan, common: &Common) -> Result<Option<Input>> {
    let mut input = args.input.clone();
    let stdin = |p: &PathBuf| p == Path::new("-");
    if input.input.iter().filter(|p| stdin(p)).count() > 1 {
        return Err(Usage("stdin ('-') can be named only once".into()).into());
    }
    if args.allow_empty {
        input.input.retain(|p| stdin(p) || std::fs::metadata(p).map_or(true, |m| m.len() > 0));
        if input.input.is_empty() {
            return Ok(None);
        }
    }
    let input = Input::open(&input, Wanted::Plan(plan))?;
    tell_positions(&input, common);
    Ok(Some(input))
}
