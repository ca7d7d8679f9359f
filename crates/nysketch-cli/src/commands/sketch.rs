//! `nysketch sketch`: compress rows.

use super::plan::{describe, invalid, measured_at, plan_input};
use super::read_bytes;
use crate::args::{Common, SketchArgs};
use crate::input::{Input, Wanted};
use crate::output::{Usage, check_writable, note, result, size, thousands, write_bytes};
use crate::progress::Bar;
use anyhow::{Context, Result};
use nysketch::{Error, Instructions, Plan, Sketch, SketchParams};
use serde_json::json;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

pub fn run(args: &SketchArgs, common: &Common) -> Result<()> {
    check_writable(&args.output)?;
    let start = Instant::now();
    let (plan, input, rows) = match &args.plan_file {
        Some(path) => {
            if args.plan.bandwidth != "auto" || args.plan.scale != crate::args::ScaleArg::None {
                return Err(
                    Usage("--plan already says the bandwidths and the scale".into()).into(),
                );
            }
            let plan =
                Plan::from_bytes(&read_bytes(path)?).with_context(|| path.display().to_string())?;
            let stdin = args
                .input
                .input
                .iter()
                .filter(|p| *p == Path::new("-"))
                .count();
            if stdin > 1 {
                return Err(Usage("stdin ('-') can be named only once".into()).into());
            }
            let input = Input::open(&args.input, Wanted::Plan(&plan))?;
            for file in input.by_position() {
                note(
                    common,
                    &format!("{file} does not name its columns; they were matched by position"),
                );
            }
            let rows = input.rows_hint();
            (plan, input, rows)
        }
        None => {
            let (plan, report, input) = plan_input(&args.input, &args.plan, common)?;
            (plan, input, Some(report.rows + report.skipped))
        }
    };
    let plan = Arc::new(plan);
    let bar = Bar::new("sketching", rows, common.quiet);
    let params = SketchParams {
        threads: common.threads(),
        invalid: invalid(&args.input),
        instructions: Instructions::best(),
    };
    let sketch = Sketch::of(&plan, &input, params, &bar);
    drop(bar);
    let sketch = sketch?;
    if sketch.rows() == 0 && !args.allow_empty {
        return Err(Error::NoRows {
            skipped: sketch.skipped(),
        }
        .into());
    }
    let bytes = sketch.to_bytes();
    write_bytes(&args.output, &bytes)?;
    let seconds = start.elapsed().as_secs_f64();
    if sketch.skipped() > 0 {
        note(
            common,
            &format!(
                "{} invalid rows were skipped; the sketch records it",
                thousands(sketch.skipped())
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
