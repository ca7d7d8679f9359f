//! The page in words: what was sketched, the clusters, and the missing values.

use super::models::{Shown, TaskCurve, task_name};
use crate::markup::{escape, shorten};
use crate::page::{Page, name, sign};
use crate::plot::signed;
use crate::words::columns;
use crate::words::describe::{arrow, beside, measured_at, suggestion};
use crate::words::numbers::{count, thousands};
use nysketch::clusters::{Cluster, Trait, telling};
use nysketch::{Model, Sketch};
use std::fmt::Write;

/// Maximum number of clusters described in words, and of columns for each.
const CLUSTERS: usize = 5;
const COLUMNS: usize = 3;
/// Smallest deviation from the mean that is mentioned.
const UNUSUAL: f64 = 0.25;

pub fn section(page: &mut Page, sketch: &Sketch, curves: &[TaskCurve], shown: &Shown<'_>) {
    let plan = sketch.plan();
    let weighted = if plan.weighting.is_some() { " (weights counted)" } else { "" };
    let about = if sketch.released().is_some() { "About " } else { "" };
    page.push(&format!(
        "<p>{about}<strong>{}</strong>{weighted} of <strong>{}</strong>, measured at {}.</p>\n",
        count(sketch.counted(), "row"),
        columns::measured(plan),
        escape(&measured_at(plan)),
    ));
    if let Some(said) = columns::incomplete(sketch) {
        page.text(&format!("Rows contribute the values they have: {said}."));
    }
    for of in curves {
        page.text(&format!("{}: {}.", task_name(of.task), suggestion(&of.curve)));
    }
    if let Some(model) = shown.first() {
        let mut clusters = model.clusters();
        clusters.sort_by(|a, b| b.share.total_cmp(&a.share));
        let mut list = String::from("<ul>\n");
        for cluster in clusters.iter().take(CLUSTERS) {
            let _ = writeln!(list, "<li>{}</li>", sentence(cluster, model));
        }
        let rest: f64 = clusters.iter().skip(CLUSTERS).map(|c| c.share).sum();
        if clusters.len() > CLUSTERS {
            let more = clusters.len() - CLUSTERS;
            let _ = writeln!(list, "<li>{more} more with {:.1} % of the rows</li>", 100.0 * rest);
        }
        list.push_str("</ul>\n");
        let (k, task) = (count(model.k() as u64, "cluster"), task_name(model.task));
        page.text(&format!("The largest of {k} ({task}):"));
        page.push(&list);
    }
    if plan.frame.scale.iter().any(|s| *s != 1.0) {
        page.note(
            "Columns are scaled: risks, distances, spreads and the map are in the \
            coordinates of the fit, each column divided by its scale. Values of columns are in the \
            units of the table.",
        );
    }
    let missing = missing(sketch, shown);
    if !missing.is_empty() {
        page.note(&format!("Not on this page: {}.", missing.join("; ")));
    }
}

fn sentence(cluster: &Cluster, model: &Model) -> String {
    let telling = telling(&cluster.traits);
    let unusual = telling.iter().filter(|t| t.deviations.abs() >= UNUSUAL);
    let words: Vec<String> = unusual.take(COLUMNS).map(|t| trait_html(t, model)).collect();
    let where_ = match (words.is_empty(), cluster.traits.is_empty()) {
        (false, _) => format!(": {}", words.join(", ")),
        (true, false) => ", near the mean of all rows".into(),
        (true, true) => String::new(),
    };
    format!(
        "{}cluster {} has {:.1} % of the rows ({}){where_}",
        sign(cluster.label),
        cluster.label,
        100.0 * cluster.share,
        thousands(cluster.rows),
    )
}

/// Formats a property as HTML: "delay 95.1 ↑ (all rows 9.8, +2.1 sd)", "carrier: UA 61 % ↑ (all
/// rows 17 %, +1.2 sd)".
pub fn trait_html(t: &Trait, model: &Model) -> String {
    let class = match t.deviations {
        z if z > 0.0 => "up",
        z if z < 0.0 => "down",
        _ => "same",
    };
    let [value, all] = beside(t, &model.recipe);
    format!(
        "{} {value} <span class=\"{class}\">{}</span> <small>(all rows {all}, {} sd)</small>",
        name(&model.name_of(t.aspect)),
        arrow(t),
        signed(t.deviations),
    )
}

fn missing(sketch: &Sketch, shown: &Shown<'_>) -> Vec<String> {
    let plan = sketch.plan();
    let mut missing = Vec::new();
    if sketch.skipped() > 0 {
        missing.push(format!("{} skipped as invalid", count(sketch.skipped(), "row")));
    }
    if !plan.collect.cells {
        missing.push("a map and spreads, which need cells".into());
    }
    if shown.models.is_empty() {
        missing.push("clusters: Fourier sketches and sketches of one place need a model".into());
    }
    if shown.components {
        missing.push("principal components, which have no clusters".into());
    }
    let constant: Vec<&String> = sketch.column_moments().map_or(Vec::new(), |moments| {
        let constant = |(_, m): &(&String, &(f64, f64))| m.1 == 0.0;
        plan.columns.iter().zip(&moments).filter(constant).map(|(c, _)| c).collect()
    });
    if let Some(first) = constant.first() {
        let number = count(constant.len() as u64, "constant column");
        let more = if constant.len() > 1 { ", …" } else { "" };
        missing.push(format!("differences in {number} ({}{more})", shorten(first, 40)));
    }
    if let [first, .., last] | [first @ last] = &shown.left_out[..] {
        let which = if first == last {
            format!("k = {first}")
        } else {
            format!("k from {first} to {last}")
        };
        let number = count(shown.left_out.len() as u64, "model");
        missing.push(format!("{number} ({which}), to keep it small; give them as models"));
    }
    missing
}
