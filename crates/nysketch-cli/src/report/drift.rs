//! How the sketch, or each of several in order of time, differs from a baseline.

use super::request::ReportRequest;
use crate::describe::{one_line, place};
use crate::output::{count, in_options, short, thousands};
use crate::page::Page;
use crate::plot::{self, DriftChart, DriftPoint};
use anyhow::{Context, Result};
use nysketch::clusters::Aspect;
use nysketch::drift::{CategoryChange, ColumnChange, Comparison, Drift, DriftParams};
use nysketch::recipe::words::{self, percent};
use nysketch::{Plan, Sketch, Step};

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
    if let Some((what, z)) = moved(drift) {
        title += &format!("\nmost moved: {} (z {z:+.1})", crate::markup::shorten(&what, 40));
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

/// Mean and deviation of a column in both sketches, as people write them.
pub fn changed(c: &ColumnChange, plan: &Plan) -> [(String, String); 2] {
    [0, 1].map(|side| {
        let mean = c.means[side];
        match c.aspect {
            Aspect::Number(j) => {
                let step = plan.recipe.numbers[j].step;
                // In the table's units already.
                let mean = if step == Step::Time { words::time(mean) } else { short(mean) };
                let deviation = c.deviations.map(|d| words::deviation(step, d[side]));
                (mean, deviation.unwrap_or_default())
            }
            aspect => (aspect.text(mean, &plan.recipe), String::new()),
        }
    })
}

/// What moved most: a column, a level or the missing values of a column, with its z.
pub fn moved(drift: &Drift) -> Option<(String, f64)> {
    let columns = drift.columns.iter().take(1).map(|c| (c.column.clone(), c.z));
    let level = |c: &CategoryChange| {
        c.levels.first().map(|level| (format!("{}: {}", c.column, level.level), level.z))
    };
    let levels = drift.categories.iter().filter_map(level);
    let missing = drift.missing.iter().map(|m| (format!("{} missing", m.column), m.z));
    let all = columns.chain(levels).chain(missing);
    all.max_by(|a, b| a.1.abs().total_cmp(&b.1.abs()))
}

/// Shares of levels and of missing values, so many at most, the most changed first: name, both shares, z and the p-value,
/// which is that of all levels of a category.
pub fn share_lines(drift: &Drift, top: usize) -> Vec<[String; 5]> {
    let mut lines: Vec<(f64, [String; 5])> = Vec::new();
    let mut add = |name: String, shares: [f64; 2], z: f64, p: Option<f64>| {
        let [a, b] = shares.map(percent);
        let p = p.map_or("-".to_string(), short);
        lines.push((z, [one_line(&name), a, b, format!("{z:+.1}"), p]));
    };
    for c in &drift.categories {
        for level in &c.levels {
            add(format!("{}: {}", c.column, level.level), level.shares, level.z, c.p_value);
        }
    }
    for m in &drift.missing {
        add(format!("{} missing", m.column), m.shares, m.z, m.p_value);
    }
    lines.sort_by(|a, b| b.0.abs().total_cmp(&a.0.abs()));
    lines.into_iter().take(top).map(|(_, line)| line).collect()
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
            moved(drift).map_or(String::new(), |(what, z)| format!("{what} (z {z:+.1})")),
        ]
    };
    let rows: Vec<_> = found.iter().zip(&points).map(row).collect();
    let header = ["sketch", "rows", "MMD", "noise", "p-value", "", "most moved"];
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
        let [there, here] = changed(c, sketch.plan());
        vec![c.column.clone(), there.0, here.0, format!("{:+.1}", c.z)]
    });
    table(&["column", "mean there", "mean here", "z"], columns.collect());
    let shares = share_lines(drift, TOP).into_iter().map(|line| line.to_vec());
    table(&["share", "there", "here", "z", "p-value"], shares.collect());
    let cells = drift.cells.iter().take(TOP).map(|c| {
        vec![
            place(&c.mean, &c.levels, drift, sketch.plan()),
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
