//! `nysketch fit`: learn from a sketch.

use super::files::read_sketch;
use crate::args::{Common, FitArgs};
use crate::kind::Kind;
use crate::output::{Usage, note, result, short};
use crate::plot;
use crate::writing::{check_output, write_bytes};
use anyhow::{Context, Result};
use nysketch::decoder::Curve;
use nysketch::inspect::MOST_LANDMARKS;
use nysketch::{Context as Decoding, FitParams, Model, Status, Task};
use serde_json::{Value, json};

pub fn run(args: &FitArgs, common: &Common) -> Result<()> {
    check_output(common, &args.output, Kind::Model, [args.sketch.as_path()])?;
    if let Some(plot) = &args.plot {
        check_output(common, plot, Kind::by_extension(plot), [args.sketch.as_path()])?;
    }
    let (low, high) = k_range(&args.k)?;
    if args.plot.is_some() && low == high {
        return Err(
            Usage("--plot draws the curve over k: give a range such as -k 2..20".into()).into()
        );
    }
    let sketch = read_sketch(&args.sketch)?;
    let params = resolve(args, low)?;
    let place = || args.sketch.display().to_string();
    let decoding = Decoding::new(&sketch);
    if low == high {
        let model = decoding.fit(&params).with_context(place)?;
        write_bytes(&args.output, model.to_json().as_bytes())?;
        let risk = decoding.risk(&model);
        tell_status(common, &model);
        let (mut json, mut text) = describe(args, &model, risk);
        // One eigendecomposition per bandwidth: not for very many landmarks.
        let few = sketch.plan().features.points().len() <= MOST_LANDMARKS;
        if let Some(explanation) = few.then(|| decoding.explain(&model)).transpose()?.flatten() {
            text.push_str(&format!("\n{}", explanation.verdict.text()));
            json["explained"] = serde_json::to_value(explanation)?;
        }
        return result(common, &json, &text);
    }
    if params.task == Task::Pca {
        return Err(Usage("pca takes one -k; its components do not depend on it".into()).into());
    }
    let curve = decoding.curve(&params, low, high).with_context(place)?;
    finish_curve(args, common, &curve)
}

/// A model may be valid and still doubtful.
fn tell_status(common: &Common, model: &Model) {
    match model.report.status {
        Status::TooFewMoments => note(
            common,
            "the sketch has fewer moments than the model has numbers, so the model is arbitrary; use more --frequencies",
        ),
        Status::IterationLimit | Status::EvaluationLimit => note(
            common,
            "the decoder stopped at its limit; another --seed or --decoder may do better",
        ),
        _ => {}
    }
}

fn finish_curve(args: &FitArgs, common: &Common, curve: &Curve) -> Result<()> {
    let points = &curve.points;
    let best = &points[curve.suggested];
    write_bytes(&args.output, best.model.to_json().as_bytes())?;
    let (name, rule) = match args.task {
        Task::Gmm => ("-log-likelihood", "has the least BIC"),
        Task::Kmedians => ("mean distance", "is the elbow of the curve"),
        _ => ("mean squared distance", "is the elbow of the curve"),
    };
    if let Some(plot) = &args.plot {
        let line: Vec<(usize, f64)> = points.iter().map(|p| (p.k, p.risk)).collect();
        plot::write(plot, &plot::curve(&line, best.k, name))?;
    }
    let (mut json, summary) = describe(args, &best.model, Some(best.risk));
    json["suggested_k"] = json!(best.k);
    json["clear"] = json!(curve.clear);
    json["curve"] = points
        .iter()
        .map(|p| json!({"k": p.k, "estimated_risk": p.risk}))
        .collect::<Vec<_>>()
        .into();
    let mut text = format!("{:>5}  {name} (estimated from the sketch)\n", "k");
    for p in points {
        let mark = if p.k == best.k { "  <- suggested" } else { "" };
        text.push_str(&format!("{:>5}  {}{mark}\n", p.k, short(p.risk)));
    }
    let doubt = if curve.clear { "" } else { ", but no k stands out" };
    note(common, &format!("k = {} {rule}{doubt}", best.k));
    text.push_str(&summary);
    result(common, &json, &text)
}

fn describe(args: &FitArgs, model: &Model, risk: Option<f64>) -> (Value, String) {
    let r = &model.report;
    let json = json!({
        "file": args.output, "task": model.task, "k": model.k(), "decoder": r.decoder, "calibrated": r.calibrated,
        "bandwidth": r.bandwidth, "status": r.status, "iterations": r.iterations,
        "estimated_risk": risk, "seconds": r.seconds,
    });
    let calibrated = if r.calibrated { " (calibrated landmarks)" } else { "" };
    let decoder = format!("{}{calibrated}", r.decoder);
    let bandwidth = r.bandwidth.map_or(String::new(), |s| format!(" at σ² {}", short(s)));
    let risk = match (args.task, risk) {
        (Task::Pca, _) | (_, None) => String::new(),
        (_, Some(risk)) => format!(", estimated risk {}", short(risk)),
    };
    let text = format!(
        "{}: {} with k = {} by {}{bandwidth}{risk}, {:.2} s",
        args.output.display(),
        model.task,
        model.k(),
        decoder,
        r.seconds
    );
    (json, text)
}

/// `10`, or `2..20` with both ends.
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

fn resolve(args: &FitArgs, k: usize) -> Result<FitParams> {
    let bandwidth = match args.bandwidth.as_str() {
        "auto" => None,
        s => {
            let bad = |_| Usage(format!("--bandwidth must be 'auto' or a number, got {s}"));
            Some(s.parse().map_err(bad)?)
        }
    };
    Ok(FitParams::new(args.task, k)
        .decoder(args.decoder)
        .bandwidth(bandwidth)
        .known_variance(args.known_variance)
        .constraints(args.separation, args.radius)
        .seed(args.seed))
}
