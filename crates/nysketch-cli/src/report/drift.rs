//! How the sketch, or each of several in order of time, differs from a baseline.

use super::request::ReportRequest;
use crate::describe::place;
use crate::output::{count, in_options, short, thousands};
use crate::page::Page;
use crate::plot::{self, DriftChart, DriftPoint};
use anyhow::{Context, Result};
use nysketch::Sketch;
use nysketch::drift::{Comparison, Drift, DriftParams};

/// Columns and cells that are listed.
const TOP: usize = 10;

pub fn section(
    page: &mut Page,
    request: &ReportRequest<'_>,
    (baseline, other): (&Sketch, &str),
) -> Result<()> {
    let params = DriftParams::default().seed(request.seed);
    let comparison = Comparison::new(baseline.plan())?;
    let compare = |sketch: &Sketch, name: &str| {
        let drift = comparison.of(baseline, sketch, &params);
        drift.with_context(|| format!("{other} and {name}"))
    };
    page.heading(&format!("Against {other}"));
    if !request.series.is_empty() {
        let mut found = Vec::new();
        for (sketch, name) in &request.series {
            found.push((name.to_string(), compare(sketch, name)?));
        }
        series(page, &found, other, params.level);
        page.push(&format!("<h3>{}</h3>\n", crate::page::name(request.name)));
    }
    one(page, &compare(request.sketch, request.name)?, request.sketch);
    Ok(())
}

/// A sketch in a chart, with what is shown when it is pointed at.
pub fn point(name: String, drift: &Drift) -> DriftPoint {
    let middle = drift.middle();
    let mut title = format!("{name}\n{}", count(drift.rows[1], "row"));
    if let Some(d) = middle {
        title += &format!("\nMMD {}, noise {}", short(d.mmd), short(d.noise));
    }
    if let Some(p) = drift.p_value {
        let word = if drift.drift == Some(true) { ": drift" } else { "" };
        title += &format!("\np-value {}{word}", short(p));
    }
    if let Some(c) = drift.columns.first() {
        title +=
            &format!("\nmost moved: {} (z {:+.1})", crate::markup::shorten(&c.column, 40), c.z);
    }
    DriftPoint {
        name,
        mmd: middle.map(|d| d.mmd),
        noise: middle.map(|d| d.noise),
        p_value: drift.p_value,
        drift: drift.drift == Some(true),
        title,
    }
}

fn series(page: &mut Page, found: &[(String, Drift)], baseline: &str, level: f64) {
    let points: Vec<DriftPoint> = found.iter().map(|(n, d)| point(n.clone(), d)).collect();
    let drifted = points.iter().filter(|p| p.drift).count();
    page.text(&format!(
        "{drifted} of {} differ at level {level}; of sketches that do not differ, {} % are called so by chance.",
        points.len(),
        short(100.0 * level)
    ));
    if let Some(scene) = plot::drift(&DriftChart { points: &points, baseline, level }) {
        page.push("<figure class=\"wide\">\n");
        page.push(&plot::element(&scene, "picture long"));
        page.push("</figure>\n");
    }
    let number = |value: Option<f64>| value.map_or("-".to_string(), short);
    let row = |((name, drift), p): (&(String, Drift), &DriftPoint)| {
        vec![
            name.clone(),
            thousands(drift.rows[1]),
            number(p.mmd),
            number(p.noise),
            number(p.p_value),
            if p.drift { "drift".into() } else { String::new() },
            drift
                .columns
                .first()
                .map_or(String::new(), |c| format!("{} (z {:+.1})", c.column, c.z)),
        ]
    };
    let rows: Vec<_> = found.iter().zip(&points).map(row).collect();
    let header = ["sketch", "rows", "MMD", "noise", "p-value", "", "most moved column"];
    page.push("<details><summary>Numbers</summary>\n");
    page.table(&header.map(String::from), &rows);
    page.push("</details>\n");
}

fn one(page: &mut Page, drift: &Drift, sketch: &Sketch) {
    match (drift.p_value, &drift.no_test) {
        (Some(p), _) => {
            let differ = drift.drift == Some(true);
            let verdict = if differ { "the rows differ" } else { "no difference found" };
            page.text(&format!("p-value {}: {verdict} (level {}).", short(p), drift.level));
        }
        (None, Some(why)) => page.text(&format!("No p-value: {}.", in_options(why))),
        _ => {}
    }
    let mut table = |header: &[&str], rows: Vec<Vec<String>>| {
        if !rows.is_empty() {
            let header: Vec<String> = header.iter().map(|h| h.to_string()).collect();
            page.table(&header, &rows);
        }
    };
    let discrepancies = drift.discrepancies.iter();
    table(
        &["σ²", "discrepancy (MMD)", "noise"],
        discrepancies.map(|d| vec![short(d.sigma2), short(d.mmd), short(d.noise)]).collect(),
    );
    let columns = drift.columns.iter().take(TOP).map(|c| {
        vec![c.column.clone(), short(c.means[0]), short(c.means[1]), format!("{:+.1}", c.z)]
    });
    table(&["column", "mean there", "mean here", "z"], columns.collect());
    let cells = drift.cells.iter().take(TOP).map(|c| {
        vec![
            place(&c.mean, drift, sketch.plan()),
            format!("{:.2} %", 100.0 * c.shares[0]),
            format!("{:.2} %", 100.0 * c.shares[1]),
            format!("{:+.1}", c.z),
        ]
    });
    table(
        &["cell, by its most unusual columns", "share there", "share here", "z"],
        cells.collect(),
    );
}
