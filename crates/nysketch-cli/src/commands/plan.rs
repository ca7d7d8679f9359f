//! `nysketch plan`: decide what to measure.

use crate::args::{
    ColumnArgs, Common, FeaturesArg, InputArgs, Landmarks, PlanArgs, PlanOptions, SamplingArg,
    ScaleArg,
};
use crate::input;
use crate::output::{
    Usage, check_writable, count, detail, in_options, list, note, result, short, size, thousands,
    write_bytes,
};
use crate::progress::Bar;
use anyhow::{Result, bail};
use nysketch::planning::DEFAULT_FREQUENCIES;
use nysketch::{
    AutoLandmarks, Collect, FeatureParams, Features, GivenLandmarks, Invalid, Plan, PlanParams,
    PlanReport, SampleRows, Sampling, Scale, Weighting, make_plan,
};
use nysketch_tables::{Columns, Dataset, Extras};
use serde_json::{Value, json};
use std::path::Path;

pub fn run(args: &PlanArgs, common: &Common) -> Result<()> {
    check_writable(&args.output, args.input.input.iter().chain(&args.plan.landmarks_from))?;
    let request = PlanRequest {
        input: &args.input,
        columns: &args.columns,
        options: &args.plan,
        by: None,
        output: &args.output,
    };
    let (plan, report, _) = plan_input(request, common)?;
    if report.skipped > 0 {
        note(common, &format!("{} skipped as invalid", count(report.skipped, "row")));
    }
    let bytes = plan.to_bytes();
    write_bytes(&args.output, &bytes)?;
    let mut json = describe(&plan);
    json["file"] = json!(args.output);
    json["rows"] = json!(report.rows);
    json["skipped"] = json!(report.skipped);
    json["sample_rows"] = json!(report.sample_rows);
    json["bytes"] = json!(bytes.len());
    json["notes"] = report.warnings.iter().chain(&report.notes).map(|n| in_options(n)).collect();
    if let Some(l) = report.leverage {
        json["leverage"] = json!({
            "lambda": l.lambda, "effective_dimension": l.effective_dimension,
            "accuracy": l.accuracy, "accuracy_rows": l.accuracy_rows,
        });
    }
    let text = format!(
        "{}: {} for {} × {}, {}\n{}fingerprint {}",
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
        plan.fingerprint(),
    );
    result(common, &json, &text)
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

/// Opens the input, makes its plan, and tells the user what happened.
pub fn plan_input(
    request: PlanRequest<'_>,
    common: &Common,
) -> Result<(Plan, PlanReport, Dataset)> {
    let PlanRequest { input, columns, options, by, output } = request;
    if input.input.iter().any(|p| p == Path::new("-")) {
        return Err(Usage("a plan reads the rows first, and stdin can be read only once; make a plan from a file and pass it with --plan".into()).into());
    }
    let params = resolve(input, options, common)?;
    let extras = Extras::default().weight(options.weights.clone()).key(by);
    let source = input::open(input, columns.into(), extras)?;
    source.check_output(output)?;
    tell_columns(&source, columns, common);
    tell_input(&source, common);
    let params = match &options.landmarks_from {
        Some(path) => with_given_landmarks(params, input, &source, path)?,
        None => params,
    };
    let bar = Bar::reading("planning", &source, common.quiet);
    let made = make_plan(&source, &params.check()?, &bar);
    drop(bar);
    let (plan, report) = made?;
    for remark in report.warnings.iter().chain(&report.notes) {
        note(common, remark);
    }
    if let Some(l) = report.leverage {
        let message = format!(
            "leverage scores at λ = {}: effective dimension {}, accuracy z = {} (measured on {} rows by themselves)",
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
            "landmarks and bandwidths from {} of {} rows",
            thousands(report.sample_rows as u64),
            thousands(report.rows)
        ),
    );
    Ok((plan, report, source))
}

/// Says which columns are read, unless the user has named them.
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
    if !source.left_out().is_empty() {
        let message =
            format!("left out, since they hold no numbers: {}", source.left_out().join(", "));
        note(common, &message);
    }
    if !source.unused().is_empty() {
        let message =
            format!("not used, since the first file lacks them: {}", source.unused().join(", "));
        note(common, &message);
    }
}

/// Says which files were read by position, and which were not read.
pub fn tell_input(input: &Dataset, common: &Common) {
    for file in input.by_position() {
        note(common, &format!("{file} does not name its columns; they were matched by position"));
    }
    if !input.ignored().is_empty() {
        let names: Vec<String> = input.ignored().iter().map(|p| p.display().to_string()).collect();
        note(
            common,
            &format!("not read, since they do not look like tables: {}", names.join(", ")),
        );
    }
}

fn with_given_landmarks(
    mut params: PlanParams,
    input: &InputArgs,
    source: &Dataset,
    path: &Path,
) -> Result<PlanParams> {
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
    let name = path.display().to_string();
    params.features = FeatureParams::Given(GivenLandmarks { name, rows });
    Ok(params)
}

/// From what was typed to what it means.
fn resolve(input: &InputArgs, options: &PlanOptions, common: &Common) -> Result<PlanParams> {
    let usage = |message: &str| Usage(message.to_string());
    let features = match options.features {
        FeaturesArg::Fourier => {
            if options.landmarks.is_some()
                || options.sampling.is_some()
                || options.landmarks_from.is_some()
                || options.leverage_lambda.is_some()
            {
                return Err(usage("Fourier features have no landmarks; use --frequencies").into());
            }
            FeatureParams::Fourier {
                frequencies: options.frequencies.unwrap_or(DEFAULT_FREQUENCIES),
            }
        }
        FeaturesArg::Nystrom => {
            if options.frequencies.is_some() {
                return Err(usage("--frequencies goes with --features fourier").into());
            }
            FeatureParams::Nystrom {
                landmarks: match options.landmarks {
                    Some(Landmarks::Number(m)) => Some(m),
                    _ => None,
                },
                sampling: match (options.sampling, options.leverage_lambda) {
                    (Some(s), _) => sampling(s),
                    (None, Some(_)) => Sampling::Leverage,
                    (None, None) => Sampling::default(),
                },
                leverage_lambda: options.leverage_lambda,
            }
        }
    };
    let auto = options.landmarks == Some(Landmarks::Auto);
    if options.clusters.is_some() && !auto {
        return Err(usage("--clusters goes with --landmarks auto").into());
    }
    if auto && options.leverage_lambda.is_some() {
        return Err(usage("--leverage-lambda chooses the number of landmarks by itself").into());
    }
    Ok(PlanParams {
        features,
        auto_landmarks: auto.then_some(AutoLandmarks { clusters: options.clusters }),
        bandwidths: bandwidths(&options.bandwidth)?,
        scale: match options.scale {
            ScaleArg::None => Scale::None,
            ScaleArg::Standard => Scale::Standard,
        },
        sample_rows: match options.sample_rows.as_deref() {
            None => SampleRows::Default,
            Some("all") => SampleRows::All,
            Some(n) => {
                SampleRows::Count(n.parse().map_err(|_| {
                    Usage(format!("--sample-rows must be a number or 'all', got {n}"))
                })?)
            }
        },
        collect: match &options.collect {
            None => None,
            Some(names) => Some(Collect::from_names(names.iter().map(|s| s.trim()))?),
        },
        weighting: options
            .weights
            .as_ref()
            .map(|column| Weighting { column: column.clone(), unit: options.weight_unit }),
        seed: options.seed,
        invalid: invalid(input),
        threads: common.threads(),
    })
}

fn sampling(arg: SamplingArg) -> Sampling {
    match arg {
        SamplingArg::Uniform => Sampling::Uniform,
        SamplingArg::Leverage => Sampling::Leverage,
        SamplingArg::Greedy => Sampling::Greedy,
        SamplingArg::Rpcholesky => Sampling::Rpcholesky,
        SamplingArg::Dsquared => Sampling::Dsquared,
    }
}

/// What to do with invalid rows.
pub fn invalid(input: &InputArgs) -> Invalid {
    if input.skip_invalid { Invalid::Skip } else { Invalid::Refuse }
}

/// 'auto', or values that are sorted widest first.
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
    values.sort_by(|a: &f64, b| b.total_cmp(a));
    Ok(Some(values))
}

/// "400 landmarks (dsquared)".
pub fn measured_at(plan: &Plan) -> String {
    match &plan.features {
        Features::Nystrom(points, sampling) => {
            format!("{} ({})", count(points.len() as u64, "landmark"), sampling.name())
        }
        Features::Fourier(points) => format!("{} Fourier frequencies", points.len()),
    }
}

/// What a plan holds, for --json.
pub fn describe(plan: &Plan) -> Value {
    let mut json = json!({
        "columns": plan.columns,
        "features": plan.features.name(),
        "bandwidths": plan.bandwidths,
        "collect": plan.collect.names(),
        "fingerprint": plan.fingerprint(),
    });
    match &plan.features {
        Features::Nystrom(points, sampling) => {
            json["landmarks"] = json!(points.len());
            json["sampling"] = json!(sampling.name());
        }
        Features::Fourier(points) => json["frequencies"] = json!(points.len()),
    }
    json
}
