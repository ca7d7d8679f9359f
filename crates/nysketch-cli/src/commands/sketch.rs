//! `nysketch sketch`: computes the sketch of a table.

use super::checkpoint::Checkpoint;
use super::files::read_plan;
use super::groups;
use super::plan::{PlanRequest, invalid, plan_input, tell_input, with_missing};
use super::witnesses::Plans;
use crate::args::{Common, InputArgs, MissingArg, SketchArgs};
use crate::input;
use crate::kind::Kind;
use crate::losses::Lost;
use crate::output::{Usage, count, name, note, percent, result, size, thousands, warn};
use crate::progress::Bar;
use crate::writing::{check_output, write_bytes};
use anyhow::Result;
use nysketch::columns::ColumnSummary;
use nysketch::inspect::{FoldSummary, PlanSummary, RawRows};
use nysketch::{
    EngineKind, Error, FoldBy, FoldRule, Plan, RowSet, Run, Sketch, SketchParams, Suitability,
};
use nysketch_report::words::columns;
use nysketch_report::words::describe::{amount, folds_text, measured_at, raw_rows};
use nysketch_tables::store::Local;
use nysketch_tables::{Dataset, Extras, find};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

pub fn run(args: &SketchArgs, common: &Common) -> Result<()> {
    let files = args.input.input.iter().chain(&args.plan_file).chain(&args.plan.landmarks_from);
    let files = files.map(PathBuf::as_path);
    match &args.by {
        Some(_) => groups::check_folder(&args.output)?,
        None => check_output(common, &args.output, Kind::Sketch, files)?,
    }
    let folds = fold_rule(args)?;
    let start = Instant::now();
    let given = with_missing(&args.input, &args.plan)?;
    let params = SketchParams::default().threads(common.threads()).invalid(invalid(&given));
    let checkpoint = args.checkpoint.as_deref().map(|path| Checkpoint::new(path, args));
    let saved = match &checkpoint {
        Some(checkpoint) => checkpoint.load(args.resume, common)?,
        None => None,
    };
    let plan = match (&saved, &args.plan_file) {
        (Some(saved), _) => Some(saved.run.sketch().plan().clone()),
        (None, Some(path)) => Some(read_plan(path)?),
        (None, None) => None,
    };
    let (plan, input) = match plan {
        Some(plan) => {
            check_missing(args, &plan)?;
            let input = open_for_plan(args, &given, &plan, common)?;
            (plan, input)
        }
        None => {
            let by = key(args);
            let request = PlanRequest {
                input: &given,
                columns: &args.columns,
                options: &args.plan,
                device: args.device.device,
                by,
                output: Some(&args.output),
            };
            let (planned, input) = plan_input(request, common)?;
            (Arc::new(planned.plan), Some(input))
        }
    };
    if let (Some(checkpoint), Some(input)) = (&args.checkpoint, &input) {
        input.check_output(checkpoint)?;
    }
    check_people(args, &plan)?;
    let plan = Plans::new(args, plan)?;
    if let Some(column) = &args.by {
        let params = params.engine(engine(args, &plan.sketched, input.as_ref(), common)?);
        return groups::run(args, column, &plan, input.as_ref(), params, start, common);
    }
    // With folds by a column, rows that equal a retained row are counted during the pass.
    let (embedded, plan) = match args.fold_by {
        Some(_) => (plan.sketched.witness_rows().is_some(), plan.whole),
        None => (true, plan.sketched),
    };
    let params = params.engine(engine(args, &plan, input.as_ref(), common)?);
    let mut run = match saved {
        Some(saved) => {
            if let (Some(checkpoint), Some(input)) = (&checkpoint, &input) {
                saved.check_inputs(&checkpoint.identity(input)?)?;
            }
            let rows = thousands(saved.run.done().len());
            note(common, &format!("continuing after {rows} rows"));
            saved.run
        }
        None => match folds {
            None => Run::new(plan.clone()),
            Some(rule) => Run::resume(Sketch::empty_folds(plan.clone(), rule)?, RowSet::default()),
        },
    };
    if let Some(input) = &input {
        let bar = Bar::reading("sketching", input, common.quiet);
        match &checkpoint {
            None => run.finish(input, params, &bar)?,
            Some(checkpoint) => checkpoint.finish(&mut run, input, params, &bar)?,
        }
    }
    if let Some(remark) = run.rounding_note() {
        note(common, &remark);
    }
    tell_uncounted(&run, common);
    tell_beyond(&run, common);
    let (losses, total) = (run.losses().clone(), run.done().len());
    let mut sketch = run.into_sketch();
    if !embedded {
        sketch = sketch.without_witnesses();
    }
    let lost = Lost::of_plan(&losses, &plan, total);
    if plan.private.is_none() {
        if sketch.rows() == 0 && !args.allow_empty {
            return Err(Error::NoRows { skipped: sketch.skipped() }.into());
        }
        lost.check(&args.input)?;
    }
    let bytes = sketch.to_bytes();
    write_bytes(&args.output, &bytes)?;
    if let Some(checkpoint) = &checkpoint {
        checkpoint.remove();
    }
    lost.tell(
        common,
        match plan.private {
            None => "; the sketch records how many",
            Some(_) => "; no file records that",
        },
    );
    columns::incomplete(&sketch).iter().for_each(|message| note(common, message));
    empty_folds(&sketch).iter().for_each(|message| warn(message));
    if plan.private.is_some() {
        let secret = "the sums of this sketch are exact, so keep it secret; nysketch privatize \
            makes of it what may be given away";
        note(common, secret);
    } else if args.plan_file.is_some() {
        columns::unknown_levels(&sketch).iter().for_each(|message| note(common, message));
        let suitable = Suitability::of(&sketch);
        suitable.notes(true).iter().for_each(|message| warn(message));
    }
    let size = (bytes.len(), start.elapsed().as_secs_f64());
    tell(args, &sketch, &lost, size, common)
}

/// Returns the engine that adds the rows.
fn engine(
    args: &SketchArgs,
    plan: &Arc<Plan>,
    input: Option<&Dataset>,
    common: &Common,
) -> Result<EngineKind> {
    let (device, divided) = (args.device.device, args.by.is_some() || args.folds.is_some());
    let rows = input.and_then(Dataset::rows);
    let (engine, remark) = device.engine(plan, rows, common.threads(), divided)?;
    remark.iter().for_each(|remark| note(common, remark));
    if common.verbose && matches!(engine, EngineKind::Cuda(_)) {
        note(common, "sketching on the GPU");
    }
    Ok(engine)
}

/// Returns the rule that assigns rows to folds, if folds are requested.
fn fold_rule(args: &SketchArgs) -> Result<Option<FoldRule>> {
    let by = args.fold_by.clone().map_or(FoldBy::Content, FoldBy::Key);
    Ok(args.folds.map(|count| FoldRule::new(count, by)).transpose()?)
}

/// Refuses options that cannot be combined with a plan that protects people.
fn check_people(args: &SketchArgs, plan: &Plan) -> Result<()> {
    let Some(people) = plan.people() else { return Ok(()) };
    let stdin = args.input.input.iter().any(|p| p == Path::new("-"));
    let refused = [
        (args.by.is_some(), "--by"),
        (args.folds.is_some(), "--folds"),
        (args.checkpoint.is_some(), "--checkpoint"),
        (stdin, "stdin"),
    ];
    match refused.into_iter().find(|(said, _)| *said) {
        None => Ok(()),
        Some((_, what)) => Err(Usage(format!(
            "{what} cannot be used with a plan that protects {people}: all rows must be read twice \
             to decide which rows of a person count"
        ))
        .into()),
    }
}

/// Reports the rows that do not count because a person has too many.
fn tell_uncounted(run: &Run, common: &Common) {
    let (left_out, without) = run.uncounted();
    let Some(people) = run.sketch().plan().people() else { return };
    if left_out > 0 {
        let (rows, column) = (count(left_out, "row"), &people.column);
        let does = if left_out == 1 { "does" } else { "do" };
        let message = format!(
            "{rows} {does} not count, being of the same '{column}' as {} that do",
            people.rows
        );
        note(common, &message);
    }
    if without > 0 {
        let does = if without == 1 { "does" } else { "do" };
        let rows = count(without, "row");
        warn(&format!("{rows} {does} not count, having no '{}'", people.column));
    }
}

/// Minimum share of rows beyond the bounds that suggests a different unit.
const MANY_BEYOND: f64 = 0.05;

/// Reports the rows that were clipped to the bounds of a private plan.
fn tell_beyond(run: &Run, common: &Common) {
    let (beyond, all) = (run.beyond(), run.sketch().rows().max(1));
    let share = beyond as f64 / all as f64;
    let message =
        format!("{} ({}) were clipped to the bounds", count(beyond, "row"), percent(share));
    if share > MANY_BEYOND {
        warn(&format!("{message}: are bounds and rows in the same units?"));
    } else if beyond > 0 {
        note(common, &message);
    }
}

/// Returns the column whose text is read with every row.
fn key(args: &SketchArgs) -> Option<&str> {
    args.by.as_deref().or(args.fold_by.as_deref())
}

/// Returns a remark if folds are empty.
fn empty_folds(sketch: &Sketch) -> Option<String> {
    let folds = sketch.folds()?;
    let empty = (0..folds.len()).filter(|fold| folds.rows(*fold) == 0).count();
    (empty > 0).then(|| {
        let few = match folds.rule().key() {
            Some(key) => format!("'{key}' has too few different values for more"),
            None => "there are too few different rows for more".into(),
        };
        format!("{empty} of {} folds are empty: {few}; use fewer --folds", folds.len())
    })
}

fn tell(
    args: &SketchArgs,
    sketch: &Sketch,
    lost: &Lost<'_>,
    (bytes, seconds): (usize, f64),
    common: &Common,
) -> Result<()> {
    let plan = sketch.plan();
    let mut json = serde_json::to_value(PlanSummary::new(plan))?;
    json["file"] = name(&args.output);
    json["rows"] = json!(sketch.counted());
    json["skipped"] = json!(lost.skipped());
    json["skipped_by_column"] = lost.json();
    json["roles"] = serde_json::to_value(ColumnSummary::of_sketch(sketch))?;
    if plan.is_partial() {
        json["complete"] = json!(sketch.complete_rows());
    }
    let folds = FoldSummary::of(sketch);
    if let Some(folds) = &folds {
        json["folds"] = json!(folds);
    }
    let raw = RawRows::of_sketch(sketch);
    json["raw_rows"] = json!(raw.total());
    json["bytes"] = json!(bytes);
    json["seconds"] = json!(seconds);
    let text = format!(
        "{}: {} × {} at {} in {}, {seconds:.1} s\n{}contains {}",
        args.output.display(),
        amount(sketch),
        columns::measured(plan),
        measured_at(plan),
        size(bytes),
        folds.map_or(String::new(), |folds| format!("folds: {}\n", folds_text(&folds))),
        raw_rows(raw),
    );
    result(common, &json, &text)
}

/// Refuses options for missing values, except skipping: the plan decides how to use incomplete
/// rows.
fn check_missing(args: &SketchArgs, plan: &Plan) -> Result<()> {
    let message = match args.plan.missing {
        Some(MissingArg::Skip) if plan.is_partial() => {
            "the plan counts rows by the values they have; --missing skip needs one that was made \
             with it"
        }
        None | Some(MissingArg::Skip) => return Ok(()),
        Some(_) => {
            "the plan decides how missing values are treated; with --plan, --missing can only be \
             skip"
        }
    };
    Err(Usage(message.into()).into())
}

/// Opens the input with the columns of a plan; `None` if every file is empty and empty input is
/// allowed.
fn open_for_plan(
    args: &SketchArgs,
    input: &InputArgs,
    plan: &Plan,
    common: &Common,
) -> Result<Option<Dataset>> {
    let mut input = input.clone();
    let stdin = |p: &PathBuf| p == Path::new("-");
    // A file without a header may be empty under a private plan: an error would depend on its rows.
    if args.allow_empty && !(plan.private.is_some() && input.no_header) {
        let not_empty =
            |p: &PathBuf| stdin(p) || std::fs::metadata(p).map_or(true, |m| m.len() > 0);
        let found = find(&Local, &input.input)?;
        found.notes().iter().for_each(|message| note(common, message));
        input.input = found.files.into_iter().filter(not_empty).collect();
        if input.input.is_empty() {
            return Ok(None);
        }
    }
    let weight = plan.weighting.as_ref().map(|w| &w.column);
    let people = plan.people().map(|people| people.column.as_str());
    let extras = Extras::default().weight(weight).key(key(args).or(people));
    let only_stdin = input.input.len() == 1 && stdin(&input.input[0]);
    match input::open_for_plan(&input, plan, extras) {
        Err(nysketch_tables::Error::Empty { .. }) if args.allow_empty && only_stdin => Ok(None),
        Err(error) => Err(error.into()),
        Ok(input) => {
            input.check_output(&args.output)?;
            tell_input(&input, common);
            Ok(Some(input))
        }
    }
}
