//! `nysketch plan`: makes the specification of the measurement.

use crate::args::{ColumnArgs, Common, DateArg, InputArgs, MissingArg, PlanArgs, PlanOptions};
use crate::input;
use crate::kind::Kind;
use crate::losses::Lost;
use crate::output::{
    Usage, count, detail, in_options, list, name, note, result, short, size, thousands,
};
use crate::progress::Bar;
use crate::writing::{check_output, write_bytes};
use anyhow::{Result, bail};
use nysketch::columns::ColumnSummary;
use nysketch::inspect::{PlanSummary, RawRows};
use nysketch::{
    Collect, DeviceChoice, Invalid, Missing, PlanParams, Planned, SampleRows, make_plan,
};
use nysketch_report::words::columns;
use nysketch_report::words::describe::{measured_at, raw_rows};
use nysketch_tables::{Columns, Dataset, Extras, Role};
use serde_json::json;
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

pub fn run(args: &PlanArgs, common: &Common) -> Result<()> {
    let inputs = args.input.input.iter().chain(&args.plan.landmarks_from).map(PathBuf::as_path);
    if let Some(output) = &args.output {
        check_output(common, output, Kind::Plan, inputs)?;
    }
    let input = with_missing(&args.input, &args.plan)?;
    let request = PlanRequest {
        input: &input,
        columns: &args.columns,
        options: &args.plan,
        device: args.device.device,
        by: None,
        output: args.output.as_deref(),
    };
    let (planned, source) = plan_input(request, common)?;
    let lost = lost(&planned);
    let Planned { plan, report } = &planned;
    lost.tell(common, "");
    let bytes = plan.to_bytes();
    if let Some(output) = &args.output {
        write_bytes(output, &bytes)?;
    }
    let roles = with_types(&report.columns, &source);
    let summary = PlanSummary::new(plan);
    let mut json = serde_json::to_value(&summary)?;
    json["file"] = args.output.as_deref().map_or(json!(null), name);
    json["rows"] = json!(report.rows);
    json["skipped"] = json!(report.losses.skipped());
    json["skipped_by_column"] = lost.json();
    json["roles"] = serde_json::to_value(&roles)?;
    json["sample_rows"] = json!(report.sample_rows);
    json["raw_rows"] = json!(RawRows::of_plan(plan).total());
    json["bytes"] = json!(bytes.len());
    json["notes"] = report.warnings.iter().chain(&report.notes).map(|n| in_options(n)).collect();
    if let Some(l) = report.leverage {
        json["leverage"] = json!({
            "lambda": l.lambda, "effective_dimension": l.effective_dimension,
            "accuracy": l.accuracy, "accuracy_rows": l.accuracy_rows,
        });
    }
    let mut text = String::new();
    if args.show {
        text.push_str(&columns::table(&roles, usize::MAX));
    }
    if let Some(output) = &args.output {
        text.push_str(&format!(
            "{}: {} for {} × {}, {}\n{}fingerprint {}\ncontains {}",
            output.display(),
            measured_at(plan),
            count(report.rows, "row"),
            columns::measured(plan),
            size(bytes.len()),
            format_args!(
                "bandwidths σ² {}; collects {}\n",
                list(&plan.bandwidths),
                plan.collect.names().join(", ")
            ),
            summary.fingerprint,
            raw_rows(RawRows::of_plan(plan)),
        ));
    }
    result(common, &json, &text)
}

/// Returns the rows that planning skipped.
fn lost(planned: &Planned) -> Lost<'_> {
    let Planned { plan, report } = planned;
    Lost::of_plan(&report.losses, plan, report.rows + report.losses.skipped())
}

/// Adds the choice for rows with missing values to the options of the input.
pub fn with_missing(input: &InputArgs, options: &PlanOptions) -> Result<InputArgs> {
    let skip = input.skip_invalid || options.missing == Some(MissingArg::Skip);
    if input.skip_invalid && options.missing == Some(MissingArg::Error) {
        let message =
            "--skip-invalid skips rows with missing values, but --missing error refuses them";
        return Err(Usage(message.into()).into());
    }
    Ok(InputArgs { skip_invalid: skip, ..input.clone() })
}

/// The parts of a request for a plan.
pub struct PlanRequest<'a> {
    pub input: &'a InputArgs,
    pub columns: &'a ColumnArgs,
    pub options: &'a PlanOptions,
    /// The device that computes the distances of all rows from the first landmarks.
    pub device: DeviceChoice,
    /// The column that groups the rows.
    pub by: Option<&'a str>,
    /// The output file, if any, which must not be an input.
    pub output: Option<&'a Path>,
}

/// Opens the input, makes its plan, and reports the result.
pub fn plan_input(request: PlanRequest<'_>, common: &Common) -> Result<(Planned, Dataset)> {
    let PlanRequest { input, columns, options, device, by, output } = request;
    if input.input.iter().any(|p| p == Path::new("-")) {
        return Err(Usage(
            "making a plan reads the rows first, and stdin can be read only once; \
            make a plan from a file and pass it with --plan"
                .into(),
        )
        .into());
    }
    let params = params(input, options, common)?.device(device);
    // Impossible options are refused before any file is opened.
    let missing = params.reads_missing(options.landmarks_from.is_some())?;
    let extras = Extras::default().weight(options.weights.clone()).key(by);
    let source = input::open(input, columns.into(), extras, missing)?;
    if let Some(output) = output {
        source.check_output(output)?;
    }
    let mut params = with_columns(params, &source, columns, options)?;
    tell_columns(&source, columns, common);
    tell_input(&source, common);
    if let Some(path) = &options.landmarks_from {
        let rows = given_landmarks(input, &source, path)?;
        params = params.landmarks_from(path.display().to_string(), rows);
    }
    let bar = Bar::reading("planning", &source, common.quiet);
    let made = make_plan(&source, &params.check()?, &bar);
    drop(bar);
    let planned = made?;
    lost(&planned).check(input)?;
    let report = &planned.report;
    for remark in report.warnings.iter().chain(&report.notes) {
        note(common, remark);
    }
    if let Some(l) = report.leverage {
        let message = format!(
            "leverage scores at λ = {}: effective dimension {}, accuracy z = {} (measured on {} \
             rows)",
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
    Ok((planned, source))
}

/// Replaces the patterns in the options by the exact names of the matching columns.
fn with_columns(
    mut params: PlanParams,
    source: &Dataset,
    columns: &ColumnArgs,
    options: &PlanOptions,
) -> Result<PlanParams> {
    params.categorical = source.matching(&columns.categorical)?;
    params.log = source.matching(&options.log)?;
    params.named = source.matching(columns.columns.iter().flatten().chain(&columns.numeric))?;
    params.named.extend(params.categorical.clone());
    for DateArg { columns, parts } in &columns.dates {
        for name in source.matching([columns])? {
            params.named.push(name.clone());
            params = params.dates(name, parts.clone());
        }
    }
    for (pattern, weight) in &options.weight_column {
        for name in source.matching([pattern])? {
            params = params.column_weight(name, *weight);
        }
    }
    Ok(params)
}

/// Reports which columns are read, unless the user has named them.
fn tell_columns(source: &Dataset, args: &ColumnArgs, common: &Common) {
    use nysketch::RowSource;
    let said = |what: &str, names: &[String]| match names.len() {
        0 => String::new(),
        n if n > 20 && !common.verbose => {
            format!("{what}: {}, … ({n}; -v shows all)", names[..20].join(", "))
        }
        _ => format!("{what}: {}", names.join(", ")),
    };
    let categories: Vec<String> = source.categories().iter().map(|c| c.name.clone()).collect();
    let all = [said("columns", source.columns()), said("text", &categories)];
    let all: Vec<&str> = all.iter().map(String::as_str).filter(|s| !s.is_empty()).collect();
    match &args.columns {
        Some(_) => detail(common, &all.join("; ")),
        None => note(common, &all.join("; ")),
    }
}

/// Reports the notes of the input, such as columns and files that were left out.
pub fn tell_input(input: &Dataset, common: &Common) {
    input.notes().iter().for_each(|message| note(common, message));
}

/// Reads the rows of a file of landmarks.
fn given_landmarks(input: &InputArgs, source: &Dataset, path: &Path) -> Result<Vec<Vec<f64>>> {
    use nysketch::RowSource;
    let args = InputArgs {
        input: vec![path.to_path_buf()],
        skip_invalid: false,
        format: None,
        ..input.clone()
    };
    let file = input::open(&args, Columns::exactly(source.columns()), Extras::default(), false)?;
    let rows = file.read_all()?;
    if rows.is_empty() {
        bail!("{} has no rows to use as landmarks", path.display());
    }
    Ok(rows)
}

/// Converts the options to parameters of the library, which defines their meaning.
pub fn params(input: &InputArgs, options: &PlanOptions, common: &Common) -> Result<PlanParams> {
    let mut params = PlanParams::default()
        .kernel(options.kernel)
        .scale(options.scale)
        .sample_rows(options.sample_rows.unwrap_or(SampleRows::Default))
        .seed(options.seed)
        .invalid(invalid(input))
        .missing(match options.missing {
            None | Some(MissingArg::Auto | MissingArg::Skip) => Missing::Auto,
            Some(MissingArg::Error) => Missing::Error,
            Some(MissingArg::Partial) => Missing::Partial,
        })
        .leave_out_ids(true)
        .threads(common.threads());
    params.features = options.features;
    params.landmarks = options.landmarks;
    params.clusters = options.clusters;
    params.sampling = options.sampling;
    params.leverage_lambda = options.leverage_lambda;
    params.witnesses = options.witnesses;
    params.frequencies = options.frequencies;
    params.unit = options.unit.clone();
    params.bandwidths = bandwidths(&options.bandwidth)?;
    if let Some(names) = &options.collect {
        params.collect = Some(Collect::from_names(names.iter().map(|s| s.trim()))?);
    }
    if let Some(column) = &options.weights {
        params = params.weights(column, options.weight_unit);
    }
    Ok(params)
}

/// Returns how invalid rows are treated.
pub fn invalid(input: &InputArgs) -> Invalid {
    if input.skip_invalid { Invalid::Skip } else { Invalid::Refuse }
}

/// Parses 'auto', or a list of values.
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

/// Returns the summaries of all columns of the table, in its order, with their types. Columns that
/// were not read are included.
fn with_types(found: &[ColumnSummary], table: &Dataset) -> Vec<ColumnSummary> {
    let by_name: HashMap<&str, &ColumnSummary> =
        found.iter().rev().map(|c| (c.column.as_str(), c)).collect();
    let mut columns = Vec::with_capacity(found.len());
    for role in table.roles() {
        let why = match &role.role {
            Role::LeftOut(why) => why,
            _ => "not measured",
        };
        let mut column = match by_name.get(role.name.as_str()) {
            Some(known) => (*known).clone(),
            None => ColumnSummary::unused(&role.name, why),
        };
        column.holds = Some(role.holds.clone());
        columns.push(column);
    }
    let of_table: HashSet<&str> = table.roles().iter().map(|role| role.name.as_str()).collect();
    let others = found.iter().filter(|c| !of_table.contains(c.column.as_str()));
    columns.extend(others.cloned());
    columns
}
