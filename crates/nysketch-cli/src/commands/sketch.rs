//! `nysketch sketch`: compress rows.

use super::checkpoint::Checkpoint;
use super::plan::{describe, invalid, measured_at, plan_input, tell_input};
use super::{groups, read_bytes};
use crate::args::{Common, SketchArgs};
use crate::input::{Besides, Empty, Input, Wanted};
use crate::output::{Usage, check_writable, count, note, result, size, thousands, write_bytes};
use crate::progress::Bar;
use anyhow::{Context, Result};
use nysketch::{Error, Instructions, Plan, Run, Sketch, SketchParams};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

pub fn run(args: &SketchArgs, common: &Common) -> Result<()> {
    let files = args.input.input.iter().chain(&args.plan_file).chain(&args.plan.landmarks_from);
    match &args.by {
        Some(_) => groups::check_folder(&args.output)?,
        None => check_writable(&args.output, files)?,
    }
    let start = Instant::now();
    let params = SketchParams {
        threads: common.threads(),
        invalid: invalid(&args.input),
        instructions: Instructions::best(),
    };
    let checkpoint = args.checkpoint.as_deref().map(|path| Checkpoint::new(path, args));
    let saved = match &checkpoint {
        Some(checkpoint) => checkpoint.load(args.resume, common)?,
        None => None,
    };
    let (plan, input) = match (&saved, &args.plan_file) {
        (Some(saved), _) => {
            let plan = saved.run.sketch().plan().clone();
            let input = open_for_plan(args, &plan, common)?;
            (plan, input)
        }
        (None, Some(path)) => {
            let plan =
                Plan::from_bytes(&read_bytes(path)?).with_context(|| path.display().to_string())?;
            let input = open_for_plan(args, &plan, common)?;
            (Arc::new(plan), input)
        }
        (None, None) => {
            let by = args.by.as_deref();
            let (plan, _, input) = plan_input(&args.input, &args.plan, by, common)?;
            (Arc::new(plan), Some(input))
        }
    };
    for output in [Some(&args.output), args.checkpoint.as_ref()].into_iter().flatten() {
        input.as_ref().map_or(Ok(()), |input| input.check_output(output))?;
    }
    if let (Some(column), Some(input)) = (&args.by, &input) {
        return groups::run(args, column, &plan, input, params, start, common);
    }
    let mut run = match saved {
        Some(saved) => {
            saved.check_inputs(input.as_ref())?;
            saved.run
        }
        None => Run::new(plan.clone()),
    };
    if let Some(input) = &input {
        let bar = Bar::reading("sketching", input, common.quiet);
        match &checkpoint {
            None => run.finish(input, params, &bar)?,
            Some(checkpoint) => checkpoint.finish(&mut run, input, params, &bar)?,
        }
    }
    let sketch = run.into_sketch();
    if sketch.rows() == 0 && !args.allow_empty {
        return Err(Error::NoRows { skipped: sketch.skipped() }.into());
    }
    let bytes = sketch.to_bytes();
    write_bytes(&args.output, &bytes)?;
    if let Some(checkpoint) = &checkpoint {
        checkpoint.remove();
    }
    tell(args, &plan, &sketch, bytes.len(), start.elapsed().as_secs_f64(), common)
}

fn tell(
    args: &SketchArgs,
    plan: &Plan,
    sketch: &Sketch,
    bytes: usize,
    seconds: f64,
    common: &Common,
) -> Result<()> {
    if sketch.skipped() > 0 {
        let rows = count(sketch.skipped(), "row");
        note(common, &format!("{rows} skipped as invalid; the sketch records it"));
    }
    let mut json = describe(plan);
    json["file"] = json!(args.output);
    json["rows"] = json!(sketch.rows());
    json["skipped"] = json!(sketch.skipped());
    json["bytes"] = json!(bytes);
    json["seconds"] = json!(seconds);
    let text = format!(
        "{}: {} rows × {} columns at {} in {}, {seconds:.1} s",
        args.output.display(),
        thousands(sketch.rows()),
        plan.dims(),
        measured_at(plan),
        size(bytes),
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
    let besides = Besides {
        weight: plan.weighting.as_ref().map(|w| w.column.as_str()),
        key: args.by.as_deref(),
        ..Besides::default()
    };
    let only_stdin = input.input.len() == 1 && stdin(&input.input[0]);
    match Input::open(&input, Wanted::Columns(&plan.columns), besides) {
        Err(error) if error.is::<Empty>() && args.allow_empty && only_stdin => Ok(None),
        Err(error) => Err(error),
        Ok(input) => {
            tell_input(&input, common);
            Ok(Some(input))
        }
    }
}
