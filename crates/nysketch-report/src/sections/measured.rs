//! The measurement: contents of the sketch, its columns and its bandwidths.

use crate::page::Page;
use crate::words::describe::measured_at;
use crate::words::numbers::{short, size, thousands};
use anyhow::Result;
use nysketch::clusters::{Aspect, Facts};
use nysketch::decoder::noise_floor;
use nysketch::recipe::words;
use nysketch::{Context as Decoding, Model, Sketch};

/// Maximum number of columns in the table.
const MOST_COLUMNS: usize = 1000;

pub fn section(page: &mut Page, decoding: &Decoding<'_>, model: Option<&Model>) -> Result<()> {
    page.heading("How it was measured");
    summary(page, decoding.sketch());
    columns(page, decoding.sketch());
    bandwidths(page, decoding, model)
}

fn summary(page: &mut Page, sketch: &Sketch) {
    let plan = sketch.plan();
    let row = |name: &str, value: String| vec![name.to_string(), value];
    let counted = thousands(sketch.counted());
    let mut rows = match sketch.released() {
        Some(promise) => {
            vec![row("rows", format!("about {counted}")), row("noise on all sums", promise.into())]
        }
        None => vec![row("rows", counted), row("skipped as invalid", thousands(sketch.skipped()))],
    };
    rows.extend([
        row("columns", thousands(plan.dims() as u64)),
        row("measured at", measured_at(plan)),
        row("keeps", plan.collect.names().join(", ")),
        row("size", size(sketch.to_bytes().len())),
        row("plan", plan.fingerprint()[..16].to_string()),
    ]);
    if let Some(w) = &plan.weighting {
        rows.push(row("weights", format!("column {}, in units of {}", w.column, w.unit)));
    }
    page.table(&["sketch", ""].map(String::from), &rows);
}

fn columns(page: &mut Page, sketch: &Sketch) {
    let Some(whole) = sketch.whole() else { return };
    let (plan, recipe) = (sketch.plan(), &sketch.plan().recipe);
    let scaled = plan.frame.scale.iter().any(|s| *s != 1.0);
    let mut header = ["column", "mean or share", "standard deviation"].map(String::from).to_vec();
    if scaled {
        header.push("scale".into());
    }
    let facts = Facts { numbers: &whole.mean, levels: &whole.levels, missing: &whole.missing };
    let row = |aspect: Aspect| {
        let value = facts.value(aspect, recipe)?;
        let number = match aspect {
            Aspect::Number(k) => Some(k),
            Aspect::Level(..) | Aspect::Missing(_) if value == 0.0 => return None,
            _ => None,
        };
        let spread = |k: usize| words::deviation(recipe.numbers[k].step, whole.deviation[k]);
        let (name, value) = (aspect.name(&plan.columns, recipe), aspect.text(value, recipe));
        let mut row = vec![name, value, number.map_or(String::new(), spread)];
        if scaled {
            row.push(number.map_or(String::new(), |k| short(plan.frame.scale[k])));
        }
        Some(row)
    };
    let all: Vec<_> = Aspect::all(recipe).into_iter().filter_map(row).collect();
    page.push("<details><summary>Columns</summary>\n");
    page.table(&header, &all[..all.len().min(MOST_COLUMNS)]);
    if all.len() > MOST_COLUMNS {
        page.note(&format!("The first {MOST_COLUMNS} of {} columns and levels.", all.len()));
    }
    page.push("</details>\n");
}

fn bandwidths(page: &mut Page, decoding: &Decoding<'_>, model: Option<&Model>) -> Result<()> {
    let (sketch, plan) = (decoding.sketch(), decoding.plan());
    if !plan.collect.kernel || !decoding.is_small() {
        return Ok(());
    }
    let missed = if sketch.released().is_some() { Vec::new() } else { sketch.missed() };
    let chosen = model.and_then(|m| m.report.bandwidth);
    let mut rows = Vec::new();
    for (rung, &sigma2) in plan.bandwidths.iter().enumerate() {
        let embedding = decoding.embedding(rung)?;
        let share = missed.get(rung).map_or("-".to_string(), |m| format!("{:.1} %", 100.0 * m));
        rows.push(vec![
            short(sigma2),
            share,
            format!("{} of {}", embedding.rank(), embedding.len()),
            short(noise_floor(embedding.squared_norm(&embedding.target), sketch.counted())),
            if chosen == Some(sigma2) { "yes".into() } else { String::new() },
        ]);
    }
    page.push("<details><summary>Bandwidths</summary>\n");
    let header = ["σ²", "missed at most", "moments", "noise floor", "decoded"];
    page.table(&header.map(String::from), &rows);
    page.note(
        "Missed: an upper bound on the part of the rows' features that the landmarks miss. \
        Noise floor: the distance between the sketch of this many rows and that of their \
        distribution. Models from cells use no bandwidth.",
    );
    page.push("</details>\n");
    Ok(())
}
