//! `nysketch plan`: decide what to measure.

use crate::args::{ColumnArgs, Common, InputArgs, PlanArgs, PlanOptions};
use crate::describe::{measured_at, raw_rows};
use crate::input;
use crate::kind::Kind;
use crate::losses::Lost;
use crate::output::{
    Usage, count, detail, in_options, list, name, note, result, short, size, thousands,
};
use crate::progress::Bar;
use crate::writing::{check_output, write_bytes};
use anyhow::{Result, bail};
use nysketch::inspect::{PlanSummary, RawRows};
use nysketch::{Collect, Invalid, Plan, PlanParams, PlanReport, SampleRows, make_plan};
use nysketch_tables::{Columns, Dataset, Extras};
use serde_json::json;
use std::path::{Path, PathBuf};

pub fn run(args: &PlanArgs, common: &Common) -> Result<()> {
    let inputs = args.input.input.iter().chain(&args.plan.landmarks_from).map(PathBuf::as_path);
    check_output(common, &args.output, Kind::Plan, inputs)?;
    let request = PlanRequest {
        input: &args.input,
        columns: &args.columns,
        options: &args.plan,
        by: None,
        output: &args.output,
    };
    let (plan, report, _) = plan_input(request, common)?;
    let lost = lost(&report, &plan);
    lost.tell(common, "");
    let bytes = plan.to_bytes();
    write_bytes(&args.output, &bytes)?;
    let summary = PlanSummary::new(&plan);
    let mut json = serde_json::to_value(&summary)?;
    json["file"] = name(&args.output);
    json["rows"] = json!(report.rows);
    json["skipped"] = json!(report.losses.skipped());
    json["skipped_by_column"] = lost.json();
    json["sample_rows"] = json!(report.sample_rows);
    json["raw_rows"] = json!(RawRows::of_plan(&plan).total());
    json["bytes"] = json!(bytes.len());
    json["notes"] = report.warnings.iter().chain(&report.notes).map(|n| in_options(n)).collect();
    if let Some(l) = report.leverage {
        json["leverage"] = json!({
            "lambda": l.lambda, "effective_dimension": l.effective_dimension,
            "accuracy": l.accuracy, "accuracy_rows": l.accuracy_rows,
        });
    }
    let text = format!(
        "{}: {} for {} × {}, {}\n{}fingerprint {}\ncontains {}",
        args.output.display(),
        measured_at(&plan),
        count(report.rows, "row"),
        count(plan.dims() as u64, "column"),
        size(bytes.len()),
        format_args!(
            "bandwidths σ² {}; collects {}\n",
            list(&plan.bandwidths),
            plan.collect.names().join(", ")
        ),
        summary.fingerprint,
        raw_rows(RawRows::of_plan(&plan)),
    );
    result(common, &json, &text)
}

/// The rows that planning skipped.
fn lost<'a>(report: &'a PlanReport, plan: &Plan) -> Lost<'a> {
    let weight = plan.weighting.as_ref().map(|w| w.column.as_str());
    let total = report.rows + report.losses.skipped();
    Lost::new(&report.losses, &plan.columns, weight, total)
}

/// What a plan is made from.
pub struct PlanRequest<'a> {
    pub input: &'a InputArgs,
    pub columns: &'a ColumnArgs,
    pub options: &'a PlanOptions,
    /// Column that groups the rows.
    pub by: Option<&'a str>,
    /// What will be written, which must not be an input.
    pub output: &'a Path,
}

/// Opens the input, makes its plan, and reports what happened.
pub fn plan_input(
    request: PlanRequest<'_>,
    common: &Common,
) -> Result<(Plan, PlanReport, Dataset)> {
    let PlanRequest { input, columns, options, by, output } = request;
    if input.input.iter().any(|p| p == Path::new("-")) {
        return Err(Usage("making a plan reads the rows first, and stdin can be read only once; make a plan from a file and pass it with --plan".into()).into());
    }
    let mut params = params(input, options, common)?;
    // Impossible options are refused before any file is opened.
    let mut options_alone = params.clone();
    if let Some(path) = &options.landmarks_from {
        options_alone = options_alone.landmarks_from(path.display().to_string(), Vec::new());
    }
    options_alone.check()?;
    let extras = Extras::default().weight(options.weights.clone()).key(by);
    let source = input::open(input, columns.into(), extras)?;
    source.check_output(output)?;
    tell_columns(&source, columns, common);
    tell_input(&source, common);
    if let Some(path) = &options.landmarks_from {
        let rows = given_landmarks(input, &source, path)?;
        params = params.landmarks_from(path.display().to_string(), rows);
    }
    let bar = Bar::reading("planning", &source, common.quiet);
    let made = make_plan(&source, &params.check()?, &bar);
    drop(bar);
    let (plan, report) = made?;
    lost(&report, &plan).check(input)?;
    for remark in report.warnings.iter().chain(&report.notes) {
        note(common, remark);
    }
    if let Some(l) = report.leverage {
        let message = format!(
            "leverage scores at λ = {}: effective dimension {}, accuracy z = {} (measured on {} rows)",
            short(l.lambda),
            short(l.effective_dimension),
            short(l.accuracy),
            l.accuracy_rows
        );
        note(common, &message);
    }
    detail(
        common,
        &format!(
            "landmarks and bandwidths chosen from {} of {} rows",
            thousands(report.sample_rows as u64),
            thousands(report.rows)
        ),
    );
    Ok((plan, report, source))
}

/// Reports which columns are read, unless the user has named them.
fn tell_columns(source: &Dataset, args: &ColumnArgs, common: &Common) {
    use nysketch::RowSource;
    let columns = source.columns();
    let all = format!("columns: {}", columns.join(", "));
    match (&args.columns, columns.len()) {
        (Some(_), _) => detail(common, &all),
        (None, n) if n > 20 && !common.verbose => {
            note(common, &format!("columns: {}, … ({n}; -v shows all)", columns[..20].join(", ")));
        }
        (None, _) => note(common, &all),
    }
}

/// Reports what the input itself has to tell: columns and files left out, and the like.
pub fn tell_input(input: &Dataset, common: &Common) {
    input.notes().iter().for_each(|message| note(common, message));
}

/// The rows of a file of landmarks.
fn given_landmarks(input: &InputArgs, source: &Dataset, path: &Path) -> Result<Vec<Vec<f64>>> {
    use nysketch::RowSource;
    let args = InputArgs {
        input: vec![path.to_path_buf()],
        skip_invalid: false,
        format: None,
        ..input.clone()
    };
    let file = input::open(&args, Columns::exactly(source.columns()), Extras::default())?;
    let rows = file.read_all()?;
    if rows.is_empty() {
        bail!("{} has no rows to use as landmarks", path.display());
    }
    Ok(rows)
}

/// What was typed, for the library to say what it means.
fn params(input: &InputArgs, options: &PlanOptions, common: &Common) -> Result<PlanParams> {
    let mut params = PlanParams::default()
        .kernel(options.kernel)
        .scale(options.scale)
        .sample_rows(options.sample_rows.unwrap_or(SampleRows::Default))
        .seed(options.seed)
        .invalid(invalid(input))
        .threads(common.threads());
    params.features = options.features;
    params.landmarks = options.landmarks;
    params.clusters = options.clusters;
    params.sampling = options.sampling;
    params.leverage_lambda = options.leverage_lambda;
    params.witnesses = options.witnesses;
    params.frequencies = options.frequencies;
    params.bandwidths = bandwidths(&options.bandwidth)?;
    if let Some(names) = &options.collect {
        params.collect = Some(Collect::from_names(names.iter().map(|s| s.trim()))?);
    }
    if let Some(column) = &options.weights {
        params = params.weights(column, options.weight_unit);
    }
    Ok(params)
}

/// What to do with invalid rows.
pub fn invalid(input: &InputArgs) -> Invalid {
    if input.skip_invalid { Invalid::Skip } else { Invalid::Refuse }
}

/// 'auto', or values.
fn bandwidths(text: &str) -> Result<Option<Vec<f64>>> {
    if text == "auto" {
        return Ok(None);
    }
    let mut values = Vec::new();
    for part in text.split(',') {
        values.push(part.trim().parse().map_err(|_| {
            Usage(format!(
                "--bandwidth must be 'auto' or values of σ² separated by commas, got {text}"
            ))
        })?);
    }
    Ok(Some(values))
}
