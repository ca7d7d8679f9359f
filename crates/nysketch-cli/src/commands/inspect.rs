//! `nysketch inspect`: what a file holds.

use super::files::{read_bytes, read_model};
use super::plan::describe;
use crate::args::{Common, Inspect};
use crate::output::{Usage, count, list, result, short, size, thousands};
use anyhow::{Context, Result};
use nysketch::atom::embedding::DECODING_CUTOFF;
use nysketch::decoder::{Residual, Verdict, explain, noise_floor};
use nysketch::feature_map::nystrom::{CUTOFF, NystromMap};
use nysketch::format::{File, decode};
use nysketch::sums::Sum;
use nysketch::theory::{Spectrum, TheoryParams, theory};
use nysketch::{Features, Plan, Sketch};
use serde_json::{Value, json};
use std::path::Path;

/// Landmarks up to which the rank of the kernel matrix is computed, in seconds.
pub const MOST_LANDMARKS: usize = 2000;

pub fn run(args: &Inspect, common: &Common) -> Result<()> {
    let bytes = read_bytes(&args.file)?;
    let decoded = decode(&bytes).with_context(|| args.file.display().to_string())?;
    let (plan, sketch) = match &decoded {
        File::Plan(plan) => (plan, None),
        File::Sketch(sketch) => (sketch.plan(), Some(sketch)),
    };
    let mut json = describe(plan);
    json["file"] = json!(args.file);
    json["kind"] = json!(if sketch.is_some() { "sketch" } else { "plan" });
    json["bytes"] = json!(bytes.len());
    json["seed"] = json!(plan.seed);
    json["scale"] = json!(plan.frame.scale);
    json["weights"] = match &plan.weighting {
        Some(w) => json!({"column": w.column, "unit": w.unit}),
        None => Value::Null,
    };
    let mut text = format!(
        "{}: a {}, {}\n",
        args.file.display(),
        if sketch.is_some() { "sketch" } else { "plan" },
        size(bytes.len())
    );
    if let Some(sketch) = sketch {
        json["rows"] = json!(sketch.rows());
        json["skipped"] = json!(sketch.skipped());
        line(&mut text, "rows", &rows_text(sketch));
    }
    plan_lines(plan, &mut text);
    if let Features::Nystrom(landmarks, _) = &plan.features {
        let mut maps = Vec::new();
        for sigma2 in plan.bandwidths.iter().filter(|_| landmarks.len() <= MOST_LANDMARKS) {
            maps.push(NystromMap::new(landmarks, plan.kernel.at(*sigma2), CUTOFF)?);
        }
        json["rank"] = json!(maps.iter().map(NystromMap::rank).collect::<Vec<_>>());
        json["condition"] = json!(maps.iter().map(NystromMap::condition).collect::<Vec<_>>());
        let missed = sketch.filter(|s| s.rows() > 0).map(Sketch::missed).unwrap_or_default();
        json["missed"] = json!(missed);
        // Noise of rows with weights is not known.
        let known = sketch.filter(|s| s.rows() > 0 && !maps.is_empty() && plan.weighting.is_none());
        let dimensions = known.map(|s| Dimensions::new(s, &maps)).transpose()?;
        if let Some(d) = &dimensions {
            json["lambda"] = json!(d.lambda);
            json["effective_dimension"] = json!(d.effective);
            json["largest_leverage"] = json!(d.largest);
            json["noise_floor"] = json!(d.floor);
        }
        bandwidth_table(plan, &maps, &missed, dimensions.as_ref(), &mut text);
    } else {
        line(&mut text, "bandwidths", &format!("σ² {}", list(&plan.bandwidths)));
    }
    line(&mut text, "fingerprint", &plan.fingerprint());
    raw_rows(plan, sketch, &mut json, &mut text);
    if let Some(file) = &args.model {
        let sketch = need_sketch(sketch, "--model")?;
        model_lines(sketch, file, &mut json, &mut text)?;
    }
    if args.theory {
        let sketch = need_sketch(sketch, "--theory")?;
        theory_lines(sketch, args, &mut json, &mut text)?;
    }
    result(common, &json, &text)
}

fn line(text: &mut String, name: &str, value: &str) {
    text.push_str(&format!("  {name:12} {value}\n"));
}

fn rows_text(sketch: &Sketch) -> String {
    let mut rows = thousands(sketch.rows());
    if let Some(w) = &sketch.plan().weighting {
        rows.push_str(&format!(
            " (weights of column '{}' counted, in units of {})",
            w.column, w.unit
        ));
    }
    if sketch.skipped() > 0 {
        rows.push_str(&format!(", {} skipped as invalid", thousands(sketch.skipped())));
    }
    rows
}

fn plan_lines(plan: &Plan, text: &mut String) {
    let shown: Vec<&str> = plan.columns.iter().take(12).map(String::as_str).collect();
    let more = if plan.dims() > shown.len() { ", …" } else { "" };
    line(text, "columns", &format!("{}: {}{more}", plan.dims(), shown.join(", ")));
    if plan.frame.scale.iter().any(|s| *s != 1.0) {
        line(text, "scale", "columns are divided by their standard deviation");
    }
    line(text, "measured at", &super::plan::measured_at(plan));
    line(text, "collects", &plan.collect.names().join(", "));
}

/// One line a bandwidth; rank and condition only where they were computed.
fn bandwidth_table(
    plan: &Plan,
    maps: &[NystromMap],
    missed: &[f64],
    dimensions: Option<&Dimensions>,
    text: &mut String,
) {
    let mut header = format!("{:>12} {:>10} {:>12}", "σ²", "rank", "condition");
    if !missed.is_empty() {
        header.push_str("  missed at most");
    }
    if dimensions.is_some() {
        header.push_str(&format!(" {:>9} {:>9} {:>12}", "N(λ)", "N∞(λ)", "noise floor"));
    }
    line(text, "bandwidths", &header);
    for (i, sigma2) in plan.bandwidths.iter().enumerate() {
        let (rank, condition) = match maps.get(i) {
            Some(map) => {
                (format!("{}/{}", map.rank(), map.eigenvalues.len()), short(map.condition()))
            }
            None => ("-".to_string(), "-".to_string()),
        };
        let mut row = format!("{:>12} {rank:>10} {condition:>12}", short(*sigma2));
        if let Some(share) = missed.get(i) {
            row.push_str(&format!(" {:>14.2}%", 100.0 * share));
        }
        if let Some(d) = dimensions {
            row.push_str(&format!(
                " {:>9.1} {:>9.1} {:>12}",
                d.effective[i],
                d.largest[i],
                d.floor.get(i).map_or("-".to_string(), |f| short(*f))
            ));
        }
        line(text, "", &row);
    }
    if let Some(d) = dimensions {
        line(
            text,
            "",
            &format!(
                "(effective dimensions at λ = 1/√n = {}, estimated from the landmarks)",
                short(d.lambda)
            ),
        );
    }
    if maps.is_empty() {
        line(
            text,
            "",
            &format!("(rank and condition are computed up to {MOST_LANDMARKS} landmarks)"),
        );
    }
}

/// Effective dimensions and noise floor at every bandwidth.
struct Dimensions {
    lambda: f64,
    effective: Vec<f64>,
    largest: Vec<f64>,
    floor: Vec<f64>,
}

impl Dimensions {
    fn new(sketch: &Sketch, maps: &[NystromMap]) -> Result<Self> {
        let lambda = 1.0 / (sketch.rows() as f64).sqrt();
        let (mut effective, mut largest, mut floor) = (Vec::new(), Vec::new(), Vec::new());
        for (rung, map) in maps.iter().enumerate() {
            let spectrum = Spectrum::new(sketch, rung)?;
            effective.push(spectrum.effective_dimension(lambda));
            largest.push(spectrum.largest_leverage(lambda));
            if sketch.plan().collect.kernel {
                let norm2 = map.squared_norm(&sketch.feature_means(rung), DECODING_CUTOFF);
                floor.push(noise_floor(norm2, sketch.rows()));
            }
        }
        Ok(Dimensions { lambda, effective, largest, floor })
    }
}

fn need_sketch<'a>(sketch: Option<&'a Sketch>, option: &str) -> Result<&'a Sketch> {
    match sketch {
        Some(sketch) if sketch.rows() > 0 => Ok(sketch),
        Some(_) => Err(Usage(format!("{option} needs a sketch that has rows")).into()),
        None => Err(Usage(format!("{option} needs a sketch; this is a plan")).into()),
    }
}

/// Whether a mixture explains the sketch.
fn model_lines(sketch: &Sketch, file: &Path, json: &mut Value, text: &mut String) -> Result<()> {
    let model = read_model(file)?;
    let Some((residuals, verdict)) = explain(sketch, &model)? else {
        return Err(Usage(
            "--model needs a mixture (fit gmm) of the sketch's columns, and a sketch with kernel sums".into(),
        )
        .into());
    };
    json["model"] = explained_json(&residuals, verdict);
    line(text, "model", &format!("{}: {}", file.display(), verdict.text()));
    line(text, "", &format!("{:>12} {:>12} {:>12}", "σ²", "residual", "noise floor"));
    for r in &residuals {
        line(
            text,
            "",
            &format!("{:>12} {:>12} {:>12}", short(r.sigma2), short(r.residual), short(r.floor)),
        );
    }
    Ok(())
}

/// Residuals and verdict for `--json`.
pub fn explained_json(residuals: &[Residual], verdict: Verdict) -> Value {
    let one = |r: &Residual| json!({"bandwidth": r.sigma2, "residual": r.residual, "floor": r.floor, "missed": r.missed});
    json!({"residuals": residuals.iter().map(one).collect::<Vec<_>>(), "verdict": verdict.text()})
}

/// What the theorems ask for and what the data gives.
fn theory_lines(
    sketch: &Sketch,
    args: &Inspect,
    json: &mut Value,
    text: &mut String,
) -> Result<()> {
    let plan = sketch.plan();
    let params = TheoryParams::new(plan.bandwidths.len() / 2, args.k)
        .lambda(args.lambda)
        .delta(args.delta)
        .variance(args.known_variance)
        .secants(args.secants)
        .seed(plan.seed);
    let t = theory(sketch, &params)?;
    // What docs/RESULTS.md shows to be enough: twice the numbers of the model.
    let enough = args.k.saturating_mul(2 * (plan.dims() + 1));
    let source = t
        .source
        .map(|s| json!({"s": s.s, "gamma": s.gamma, "t": s.t, "lambda": s.lambda, "m": s.m}));
    json["theory"] = json!({
        "bandwidth": t.sigma2, "delta": args.delta, "k": args.k, "t": t.t,
        "condition": t.condition, "least_condition": t.least_condition, "lambda": t.lambda, "holds": t.holds, "constant": t.constant,
        "effective_dimension": t.effective_dimension, "largest_leverage": t.largest_leverage,
        "uniform": t.uniform, "leverage": t.leverage, "least_rows": t.least_rows,
        "least_lambda": t.least_lambda, "norm": t.norm, "source": source, "distortion": t.distortion,
        "enough": enough,
    });
    let whole = |x: f64| if x < 1e12 { thousands(x.ceil() as u64) } else { short(x) };
    let model = if args.known_variance > 0.0 { "Gaussians" } else { "Diracs" };
    text.push_str(&format!(
        "\ntheory at σ² = {}, δ = {}, mixtures of {} {model}, {} pairs of them sampled\n",
        short(t.sigma2),
        args.delta,
        args.k,
        args.secants
    ));
    line(text, "‖Σ‖", &short(t.norm));
    line(text, "λ_t (13)", &format!("{} for t = {}", short(t.lambda), short(t.t)));
    line(
        text,
        "(19)",
        &match t.constant {
            Some(c) => format!("holds, 3λt = {}, with C = {} C_F", short(t.condition), short(c)),
            None => format!(
                "does not hold: 3λt = {}, and {} at the least; the theorem says nothing here",
                short(t.condition),
                short(t.least_condition)
            ),
        },
    );
    line(
        text,
        "N(λ), N∞(λ)",
        &format!(
            "{}, {} (at most 1/λ = {})",
            short(t.effective_dimension),
            short(t.largest_leverage),
            short(1.0 / t.lambda)
        ),
    );
    line(text, "(20)", &format!("m ≥ {} landmarks drawn uniformly", whole(t.uniform)));
    line(
        text,
        "(21)",
        &format!(
            "m ≥ {} landmarks by exact leverage scores; n ≥ {}, λ ≥ {}: {}",
            whole(t.leverage),
            whole(t.least_rows),
            short(t.least_lambda),
            if t.rows as f64 >= t.least_rows && t.lambda >= t.least_lambda && t.lambda <= t.norm {
                "met"
            } else {
                "not met"
            }
        ),
    );
    line(
        text,
        "prop. 4.1",
        &match t.source {
            Some(s) => format!(
                "γ_s = {} at s = {:.2}: λ = {}, and by (64) m ≥ {} for C = 2 C_F",
                short(s.gamma),
                s.s,
                short(s.lambda),
                whole(s.m)
            ),
            None => "no s gives a finite size".to_string(),
        },
    );
    line(
        text,
        "LRIP (25)",
        &format!(
            "‖A(μ)‖/‖A_m(μ)‖ is at most {}, {} in the median, over the pairs",
            short(t.distortion[0]),
            short(t.distortion[1])
        ),
    );
    line(
        text,
        "in practice",
        &format!(
            "this sketch has {} landmarks; {} = 2k(d + 1) are enough in the experiments of docs/RESULTS.md",
            thousands(t.landmarks as u64),
            thousands(enough as u64)
        ),
    );
    Ok(())
}

/// Which raw rows the file reveals.
fn raw_rows(plan: &Plan, sketch: Option<&Sketch>, json: &mut Value, text: &mut String) {
    let Features::Nystrom(landmarks, sampling) = &plan.features else {
        return;
    };
    let mut warning = match sampling {
        nysketch::Sampling::Given => "the landmarks were given by the user".to_string(),
        _ => format!("the {} landmarks are rows of the data", landmarks.len()),
    };
    if let Some(sketch) = sketch
        && plan.collect.cells
    {
        let cells = &sketch.sums()[Sum::CellRows];
        let single = cells.iter().filter(|n| **n == 1).count();
        json["single_row_cells"] = json!(single);
        json["empty_cells"] = json!(cells.iter().filter(|n| **n == 0).count());
        if single > 0 {
            warning.push_str(&format!(
                "; {} with one row, whose values are in the file",
                count(single as u64, "cell")
            ));
        }
    }
    line(text, "raw rows", &warning);
}
