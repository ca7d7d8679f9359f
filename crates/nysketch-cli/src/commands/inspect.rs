//! `nysketch inspect`: what a file holds.

use super::plan::describe;
use super::read_bytes;
use crate::args::{Common, Inspect};
use crate::output::{count, list, result, short, size, thousands};
use anyhow::{Context, Result};
use nysketch::feature_map::nystrom::{CUTOFF, NystromMap};
use nysketch::sketch::format::{Decoded, decode};
use nysketch::{Features, Plan, Sketch};
use serde_json::{Value, json};

/// Landmarks up to which the rank of the kernel matrix is computed, in seconds.
const MOST_LANDMARKS: usize = 2000;

pub fn run(args: &Inspect, common: &Common) -> Result<()> {
    let bytes = read_bytes(&args.file)?;
    let decoded = decode(&bytes).with_context(|| args.file.display().to_string())?;
    let (plan, sketch) = match &decoded {
        Decoded::Plan(plan) => (plan, None),
        Decoded::Sketch(sketch) => (sketch.plan().as_ref(), Some(sketch)),
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
            maps.push(NystromMap::new(landmarks, *sigma2, CUTOFF)?);
        }
        json["rank"] = json!(maps.iter().map(NystromMap::rank).collect::<Vec<_>>());
        json["condition"] = json!(maps.iter().map(NystromMap::condition).collect::<Vec<_>>());
        let missed = sketch.filter(|s| s.rows() > 0).map(Sketch::missed).unwrap_or_default();
        json["missed"] = json!(missed);
        bandwidth_table(plan, &maps, &missed, &mut text);
    } else {
        line(&mut text, "bandwidths", &format!("σ² {}", list(&plan.bandwidths)));
    }
    line(&mut text, "fingerprint", &plan.fingerprint());
    raw_rows(plan, sketch, &mut json, &mut text);
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
fn bandwidth_table(plan: &Plan, maps: &[NystromMap], missed: &[f64], text: &mut String) {
    let mut header = format!("{:>12} {:>10} {:>12}", "σ²", "rank", "condition");
    if !missed.is_empty() {
        header.push_str("  missed at most");
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
        line(text, "", &row);
    }
    if maps.is_empty() {
        line(
            text,
            "",
            &format!("(rank and condition are computed up to {MOST_LANDMARKS} landmarks)"),
        );
    }
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
        let cells = &sketch.sums().cell_rows;
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
