//! `nysketch fit`: learns a model from a sketch.

use super::files::read_sums;
use super::witnesses;
use crate::args::{Common, FitArgs};
use crate::kind::Kind;
use crate::output::{Usage, extended, name, note, result, short, thousands_signed, warn};
use crate::writing::{check_output, write_bytes};
use anyhow::{Context, Result};
use nysketch::decoder::{Curve, CurvePoint};
use nysketch::model::Shape;
use nysketch::{
    Context as Decoding, CrossValidation, FitParams, KnownCovariance, Model, Plan, Sketch, Status,
    Task,
};
use nysketch_report::plot;
use nysketch_report::sections::map;
use nysketch_report::words::describe::{
    clusters_json, digits, doubts, estimated, interval, mixture_json, notes, risk_name, suggestion,
    summary, table,
};
use nysketch_tables::{Columns, Dataset, Header, ReadOptions};
use serde_json::{Value, json};
use std::path::Path;

pub fn run(args: &FitArgs, common: &Common) -> Result<()> {
    let inputs = || [&args.sketch].into_iter().chain(&args.plan).map(|path| path.as_path());
    check_output(common, &args.output, Kind::Model, inputs())?;
    if let Some(plot) = &args.plot {
        check_output(common, plot, Kind::by_extension(plot), inputs())?;
    }
    let (low, high) = k_range(&args.k)?;
    let sketch = read_sums(&args.sketch)?;
    if sketch.released().is_some() && (args.intervals || args.cross_validate) {
        let message = "--intervals and --cross-validate need folds, which a release does not have";
        return Err(Usage(message.into()).into());
    }
    let collect = sketch.plan().collect;
    if args.plot.is_some() && low == high && !(collect.cells || collect.moments) {
        let needs = "--plot compares clusters with all rows, which needs cells or moments; give a \
            range such as -k 2..20 for the curve";
        return Err(Usage(needs.into()).into());
    }
    let params = resolve(args, sketch.plan(), low)?.threads(common.threads());
    let sketch = match (args.task, &args.plan) {
        // Principal components need only moments.
        (Task::Pca, None) => sketch,
        (_, plan) => witnesses::attach(sketch, &args.sketch, plan.as_deref(), common)?,
    };
    let place = || args.sketch.display().to_string();
    let decoding = Decoding::new(&sketch);
    if args.cross_validate && params.task == Task::Pca {
        let why =
            "--cross-validate chooses among clusterings or mixtures; pca has no risk to hold out";
        return Err(Usage(why.into()).into());
    }
    report_cost(args, common, &decoding, &params, low..=high);
    let held_out = args.cross_validate.then(|| decoding.cross_validate(&params, low, high));
    let held_out = held_out.transpose().with_context(place)?;
    if low == high {
        let model = decoding.fit(&params).with_context(place)?;
        let model = with_intervals(args, &decoding, model, &params).with_context(place)?;
        write_bytes(&args.output, model.to_json().as_bytes())?;
        tell_doubts(common, &model);
        if let Some(file) = &args.plot {
            draw(file, &sketch, &model)?;
        }
        let (mut json, text) = describe(args, &model, decoding.risk(&model));
        let verdict = explain(&decoding, &model, &mut json)?;
        let held_out = tell_held_out(common, held_out.as_ref(), &model, &mut json)?;
        return result(common, &json, &format!("{held_out}{text}{verdict}"));
    }
    if params.task == Task::Pca {
        return Err(Usage("pca takes one -k; its components do not depend on it".into()).into());
    }
    let mut curve = decoding.curve(&params, low, high).with_context(place)?;
    let best = &mut curve.points[curve.suggested];
    best.model =
        with_intervals(args, &decoding, best.model.clone(), &params).with_context(place)?;
    best.risk = decoding.risk(&best.model).unwrap_or(best.risk);
    finish_curve(args, common, &decoding, &curve, held_out.as_ref())
}

/// Reports the cost of learning before it starts, if it takes more than seconds.
fn report_cost(
    args: &FitArgs,
    common: &Common,
    decoding: &Decoding<'_>,
    params: &FitParams,
    clusters: std::ops::RangeInclusive<usize>,
) {
    let folds = decoding.sketch().folds().map_or(0, |folds| folds.rule().count() as usize);
    let times = 1 + folds * (usize::from(args.intervals) + usize::from(args.cross_validate));
    if let Some(cost) = decoding.cost(params, clusters, times) {
        let (operations, gigabytes) = (cost.operations, cost.gigabytes);
        note(
            common,
            &format!(
                "learning takes about {operations:.0e} operations and {gigabytes:.1} GB of memory"
            ),
        );
    }
}

/// Adds intervals to the model, if they were requested.
fn with_intervals(
    args: &FitArgs,
    decoding: &Decoding<'_>,
    model: Model,
    params: &FitParams,
) -> nysketch::Result<Model> {
    if args.intervals { decoding.with_intervals(model, params, args.confidence) } else { Ok(model) }
}

/// Reports the held-out risk for every k.
fn tell_held_out(
    common: &Common,
    held_out: Option<&CrossValidation>,
    model: &Model,
    json: &mut Value,
) -> Result<String> {
    let Some(found) = held_out else { return Ok(String::new()) };
    let [best, least] = [found.best, found.within_error].map(|i| found.points[i].k);
    json["cross_validation"] = json!({"folds": found.folds, "by": found.by, "points": found.points,
        "best_k": best, "within_error_k": least});
    if found.points.len() > 1 {
        let within = if least == best {
            "; no smaller k is within one standard error of it".to_string()
        } else {
            format!("; k = {least} is the smallest within one standard error of it")
        };
        note(common, &format!("k = {best} has the least risk on folds held out{within}"));
    }
    let mut text = format!(
        "{} on {} folds held out in turn; landmarks and scale are given\n{:>5} {:>12} {:>12}\n",
        risk_name(model),
        found.folds,
        "k",
        "risk",
        "± error"
    );
    for (i, p) in found.points.iter().enumerate() {
        let digits = digits(p.error).max(2) + 1;
        text.push_str(&format!("{:>5} {:>12.digits$} {:>12}", p.k, p.risk, short(p.error)));
        text.push_str(match i {
            _ if found.points.len() == 1 => "\n",
            i if i == found.best => "  <- least\n",
            i if i == found.within_error => "  <- within one standard error\n",
            _ => "\n",
        });
    }
    text.push('\n');
    Ok(text)
}

/// Reports doubts: a model may be valid and still be doubtful.
fn tell_doubts(common: &Common, model: &Model) {
    match model.report.status {
        Status::TooFewMoments => note(
            common,
            "the sketch has fewer moments than the model has numbers, so the model is arbitrary; \
             use more --frequencies",
        ),
        Status::IterationLimit if model.task == Task::Gmm => {
            note(common, "EM was still improving when it stopped; raise --max-iterations");
        }
        Status::EvaluationLimit if !model.report.replicates.is_empty() => note(
            common,
            "the pursuit was still improving at its limit of evaluations; raise --replicates, or \
             try another --seed",
        ),
        Status::IterationLimit | Status::EvaluationLimit => note(
            common,
            "the decoder stopped at its limit; another --seed or --decoder may do better",
        ),
        _ => {}
    }
    notes(model).iter().for_each(|text| note(common, text));
    doubts(model).iter().for_each(|doubt| warn(doubt));
}

/// Reports whether a mixture explains the sketch, if that can be decided.
fn explain(decoding: &Decoding<'_>, model: &Model, json: &mut Value) -> Result<String> {
    // The test needs one eigendecomposition per bandwidth, too slow for a result that was not
    // requested.
    if !decoding.is_small() {
        return Ok(String::new());
    }
    let Some(explanation) = decoding.explain(model)? else { return Ok(String::new()) };
    let text = format!("{}\n", explanation.verdict.text());
    json["explained"] = serde_json::to_value(explanation)?;
    Ok(text)
}

/// Draws one model: the positions and profiles of its clusters, or the variance that its components
/// explain.
fn draw(file: &Path, sketch: &Sketch, model: &Model) -> Result<()> {
    if let Shape::Components { explained_variance_ratio: ratio, .. } = &model.shape {
        let points: Vec<(usize, f64)> =
            ratio.iter().enumerate().map(|(i, r)| (i + 1, *r)).collect();
        let names = ["component", "share of the variance"];
        return plot::write(
            file,
            &plot::curve(&plot::Curve { points: &points, marked: None, names }),
        );
    }
    let scenes = [map::scene(sketch, &[model], 0), plot::profiles(model)];
    let scenes: Vec<_> = scenes.into_iter().flatten().collect();
    plot::write(file, &plot::Scene::stacked(scenes))
}

fn finish_curve(
    args: &FitArgs,
    common: &Common,
    decoding: &Decoding<'_>,
    curve: &Curve,
    held_out: Option<&CrossValidation>,
) -> Result<()> {
    let (points, best) = (&curve.points, curve.best());
    write_bytes(&args.output, best.model.to_json().as_bytes())?;
    let name = risk_name(&best.model);
    if let Some(plot) = &args.plot {
        let line: Vec<(usize, f64)> = points.iter().map(|p| (p.k, p.risk)).collect();
        let word = if args.task == Task::Gmm { "least BIC" } else { "suggested" };
        let marked = Some((best.k, word));
        let curve = plot::Curve { points: &line, marked, names: ["k", &name] };
        plot::write(plot, &plot::curve(&curve))?;
    }
    let (mut json, summary) = describe(args, &best.model, Some(best.risk));
    json["suggested_k"] = json!(best.k);
    json["clear"] = json!(curve.clear);
    json["at_end"] = json!(curve.at_end());
    let point = |p: &CurvePoint| {
        let [low, high] = interval(&p.model).map_or([None; 2], |i| i.map(Some));
        json!({"k": p.k, "estimated_risk": p.risk, "low": low, "high": high, "bic": p.bic, "icl": p.icl,
            "silhouette": p.silhouette})
    };
    json["curve"] = points.iter().map(point).collect();
    note(common, &suggestion(curve));
    tell_doubts(common, &best.model);
    let verdict = explain(decoding, &best.model, &mut json)?;
    let held_out = tell_held_out(common, held_out, &best.model, &mut json)?;
    let table = curve_table(curve, &name);
    result(common, &json, &format!("{table}\n{held_out}{summary}{verdict}"))
}

/// Formats the curve with one line per k.
fn curve_table(curve: &Curve, name: &str) -> String {
    let mut text =
        format!("{name}, estimated from the sketch\n{:>5} {:>12} {:>8}", "k", "risk", "change");
    let mixture = curve.best().bic.is_some();
    let icl = curve.least_icl();
    text.push_str(&match mixture {
        true if icl.is_some() => format!(" {:>14} {:>14}\n", "BIC", "ICL"),
        true => format!(" {:>14}\n", "BIC"),
        false => format!(" {:>10}\n", "silhouette"),
    });
    let mut before: Option<f64> = None;
    for p in &curve.points {
        let change = match before {
            Some(before) if mixture => short(p.risk - before),
            Some(before) if before != 0.0 => format!("{:+.1} %", 100.0 * (p.risk / before - 1.0)),
            _ => String::new(),
        };
        before = Some(p.risk);
        text.push_str(&format!("{:>5} {:>12} {change:>8}", p.k, short(p.risk)));
        text.push_str(&match (p.bic, p.silhouette) {
            (Some(bic), _) => {
                let icl =
                    p.icl.map_or(String::new(), |icl| format!(" {:>14}", thousands_signed(icl)));
                format!(" {:>14}{icl}", thousands_signed(bic))
            }
            (None, Some(s)) => format!(" {s:>10.3}"),
            (None, None) => format!(" {:>10}", ""),
        });
        text.push_str(match p.k {
            k if k == curve.best().k => "  <- suggested\n",
            k if icl.is_some_and(|icl| icl.k == k) => "  <- least ICL\n",
            _ => "\n",
        });
    }
    text
}

/// Returns the JSON fields and the text for users.
fn describe(args: &FitArgs, model: &Model, risk: Option<f64>) -> (Value, String) {
    let r = &model.report;
    let mut json = json!({
        "file": name(&args.output), "task": model.task, "k": model.k(), "decoder": r.decoder, "calibrated": r.calibrated,
        "bandwidth": r.bandwidth, "status": r.status, "iterations": r.iterations,
        "estimated_risk": risk, "scaled": model.scale.iter().any(|s| *s != 1.0),
        "warnings": doubts(model), "clusters": clusters_json(model), "seconds": r.seconds,
    });
    if let Some(rank) = r.rank {
        json["rank"] = json!(rank);
    }
    if !r.replicates.is_empty() {
        json["replicates"] = json!(r.replicates);
    }
    extended(&mut json, mixture_json(model));
    if let Some(intervals) = &model.intervals {
        json["intervals"] = json!(intervals);
    }
    let calibrated = if r.calibrated { " (calibrated landmarks)" } else { "" };
    let bandwidth = r.bandwidth.map_or(String::new(), |s| format!(" at σ² {}", short(s)));
    let best = match r.replicates.len() {
        0 | 1 => String::new(),
        n => format!(", best of {n}"),
    };
    let risk = match (args.task, risk) {
        (Task::Pca, _) | (_, None) => String::new(),
        (_, Some(risk)) => format!(", {}", estimated(model, risk)),
    };
    let text = format!(
        "{}: {}{risk}; by {}{calibrated}{bandwidth}{best}, {:.2} s\n\n{}",
        args.output.display(),
        summary(model),
        r.decoder,
        r.seconds,
        table(model),
    );
    (json, text)
}

/// Parses `10`, or `2..20` including both ends.
fn k_range(text: &str) -> Result<(usize, usize)> {
    let bad = || Usage(format!("-k must be a number or a range such as 2..20, got {text}"));
    let number = |s: &str| s.trim().parse::<usize>().map_err(|_| bad());
    let (low, high) = match text.split_once("..") {
        Some((a, b)) => (number(a)?, number(b.trim_start_matches('='))?),
        None => (number(text)?, number(text)?),
    };
    if low > high {
        return Err(bad().into());
    }
    Ok((low, high))
}

/// Parses a number, or reads a file with variances or a matrix.
fn known_covariance(text: &str, plan: &Plan) -> Result<KnownCovariance> {
    if let Ok(variance) = text.parse() {
        return Ok(KnownCovariance::Variance(variance));
    }
    let options =
        ReadOptions::default().columns(Columns::exactly(&plan.columns)).header(Header::Guessed);
    let rows = Dataset::open([text], &options)?.read_all()?;
    KnownCovariance::from_rows(&rows).with_context(|| text.to_owned())
}

fn resolve(args: &FitArgs, plan: &Plan, k: usize) -> Result<FitParams> {
    let bandwidth = match args.bandwidth.as_str() {
        "auto" => None,
        s => {
            let bad = |_| Usage(format!("--bandwidth must be 'auto' or a number, got {s}"));
            Some(s.parse().map_err(bad)?)
        }
    };
    let known = args.known_covariance.as_deref().map(|text| known_covariance(text, plan));
    Ok(FitParams::new(args.task, k)
        .decoder(args.decoder)
        .bandwidth(bandwidth)
        .known_covariance(known.transpose()?)
        .constraints(args.separation, args.radius)
        .replicates(args.replicates)
        .covariance(args.covariance)
        .min_variance(args.min_variance)
        .restarts(args.restarts)
        .max_iterations(args.max_iterations)
        .tolerance(args.tolerance)
        .seed(args.seed))
}
