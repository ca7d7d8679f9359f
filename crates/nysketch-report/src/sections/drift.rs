//! Differences between a baseline and the sketch, or each of several sketches in order of time.

use super::request::ReportRequest;
use crate::page::Page;
use crate::plot::{self, DriftChart, DriftPoint};
use crate::words::describe::{one_line, place};
use crate::words::numbers::{count, short, thousands};
use crate::words::options::in_options;
use anyhow::{Context, Result};
use nysketch::clusters::Aspect;
use nysketch::drift::{
    CategoryChange, ColumnChange, Comparison, Drift, DriftParams, Effect, Moved, TestBy, Verdict,
    set_q_values_of_many,
};
use nysketch::recipe::words::{self, percent};
use nysketch::{Plan, Sketch, Step};

/// Maximum number of columns and cells that are listed.
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
        set_q_values_of_many(&mut found.iter_mut().map(|(_, drift)| drift).collect::<Vec<_>>());
        series(page, &found, other, params.level);
        page.push(&format!("<h3>{}</h3>\n", crate::page::name(request.name)));
    }
    one(page, &compare(request.sketch, request.name)?, request.sketch);
    Ok(())
}

/// Makes the point of a sketch in a chart, with its tooltip.
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
    if let Some((what, z)) = moved_most(drift) {
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

/// Formats mean and deviation of a column in both sketches.
pub fn changed(c: &ColumnChange, plan: &Plan) -> [(String, String); 2] {
    [0, 1].map(|side| {
        let mean = c.means[side];
        match c.aspect {
            Aspect::Number(j) => {
                let step = plan.recipe.numbers[j].step;
                // The mean is already in the units of the table.
                let mean = if step == Step::Time { words::time(mean) } else { short(mean) };
                let deviation = c.deviations.map(|d| words::deviation(step, d[side]));
                (mean, deviation.unwrap_or_default())
            }
            aspect => (aspect.text(mean, &plan.recipe), String::new()),
        }
    })
}

/// Summarises the size of the change and the result of the test, as names and values.
pub fn headline(drift: &Drift) -> Vec<(&'static str, String)> {
    let mut lines = Vec::new();
    if let Some(moved) = drift.moved {
        lines.push((
            "moved",
            format!("{} of the rows would have to move to another cell", moved_share(moved)),
        ));
    }
    let effects = drift.columns.iter().filter_map(|c| Some((c, c.effect?)));
    let size = |(_, e): &(&ColumnChange, Effect)| e.deviations.abs();
    if let Some((column, effect)) = effects.max_by(|a, b| size(a).total_cmp(&size(b))) {
        lines.push((
            "mean",
            format!(
                "{} {:+.3} standard deviations{}, the most of {}",
                one_line(&column.column),
                effect.deviations,
                match (effect.low, effect.high) {
                    (Some(low), Some(high)) => format!(" ({low:+.3} to {high:+.3})"),
                    _ => String::new(),
                },
                count(drift.columns.len() as u64, "column")
            ),
        ));
    }
    if let Some(times) = drift.mmd_over_noise() {
        lines.push(("MMD", format!("{times:.1} times its noise")));
    }
    lines.push(("p-value", test(drift)));
    if let Some(words) = verdict(drift) {
        lines.push(("verdict", words));
    }
    if let Some(note) = &drift.note {
        lines.push(("note", note.clone()));
    }
    lines
}

/// Describes the result of the test.
fn test(drift: &Drift) -> String {
    let by = match drift.test_by {
        TestBy::Rows => String::new(),
        TestBy::Folds => {
            format!("; by folds, whose smallest p-value is {}", short(drift.least_p_value))
        }
    };
    match (drift.p_value, drift.drift) {
        (Some(p), Some(true)) => {
            format!(
                "{}: the rows differ (level {}{by})",
                p_text(p, drift.least_p_value),
                drift.level
            )
        }
        (Some(p), _) => {
            format!(
                "{}: no difference found (level {}{by})",
                p_text(p, drift.least_p_value),
                drift.level
            )
        }
        (None, _) => {
            format!("none: {}", drift.no_test.as_deref().map_or("no test".into(), in_options))
        }
    }
}

/// Formats a p-value. The test cannot show values below `least`.
pub fn p_text(p: f64, least: f64) -> String {
    if p <= least { format!("{} or less", short(least)) } else { short(p) }
}

/// Describes whether more rows moved than the tolerance, if one was given.
fn verdict(drift: &Drift) -> Option<String> {
    let (tolerance, verdict) = (drift.tolerance?, drift.verdict);
    let limit = percent(tolerance);
    Some(match verdict {
        Some(Verdict::Same) => {
            format!("same at the resolution of the cells: at most {limit} of the rows moved")
        }
        Some(Verdict::Changed) => format!("changed: more than {limit} of the rows moved"),
        Some(Verdict::CannotTell) => {
            format!("cannot tell whether more than {limit} of the rows moved; more rows are needed")
        }
        None => match &drift.no_test {
            Some(why) => format!("none on {limit}: {}", in_options(why)),
            None => format!("none on {limit}: too few cells have rows enough"),
        },
    })
}

/// Formats a share and its interval: "7.4 % (5.9 % to 9.1 %)".
pub fn moved_share(moved: Moved) -> String {
    format!("{} ({} to {})", percent(moved.share), percent(moved.low), percent(moved.high))
}

/// Formats a false-discovery rate.
pub fn q_text(q: f64) -> String {
    if q < 1e-4 { "<0.0001".into() } else { format!("{q:.4}") }
}

/// Formats the change of a column's mean in standard deviations of the rows.
pub fn effect(c: &ColumnChange) -> String {
    match c.effect {
        Some(Effect { deviations, low: Some(low), high: Some(high), .. }) => {
            format!("{deviations:+.3} ± {:.3}", 0.5 * (high - low))
        }
        Some(e) => format!("{:+.3}", e.deviations),
        None => "-".into(),
    }
}

/// Returns the largest change and its z: a column, a level, or the missing values of a column.
pub fn moved_most(drift: &Drift) -> Option<(String, f64)> {
    let columns = drift.columns.iter().take(1).map(|c| (c.column.clone(), c.z));
    let level = |c: &CategoryChange| {
        c.levels.first().map(|level| (format!("{}: {}", c.column, level.level), level.z))
    };
    let levels = drift.categories.iter().filter_map(level);
    let missing = drift.missing.iter().map(|m| (format!("{} missing", m.column), m.z));
    let all = columns.chain(levels).chain(missing);
    all.max_by(|a, b| a.1.abs().total_cmp(&b.1.abs()))
}

/// Returns the `top` largest changes in the shares of levels and missing values, largest first:
/// name, both shares, z and false-discovery rate. All levels of a category have the same rate.
pub fn share_lines(drift: &Drift, top: usize) -> Vec<[String; 5]> {
    let mut lines: Vec<(f64, [String; 5])> = Vec::new();
    let mut add = |name: String, shares: [f64; 2], z: f64, q: Option<f64>| {
        let [a, b] = shares.map(percent);
        let q = q.map_or("-".to_string(), q_text);
        lines.push((z, [one_line(&name), a, b, format!("{z:+.1}"), q]));
    };
    for c in &drift.categories {
        for level in &c.levels {
            add(format!("{}: {}", c.column, level.level), level.shares, level.z, c.q_value);
        }
    }
    for m in &drift.missing {
        add(format!("{} missing", m.column), m.shares, m.z, m.q_value);
    }
    lines.sort_by(|a, b| b.0.abs().total_cmp(&a.0.abs()));
    lines.into_iter().take(top).map(|(_, line)| line).collect()
}

fn series(page: &mut Page, found: &[(String, Drift)], baseline: &str, level: f64) {
    let points: Vec<DriftPoint> = found.iter().map(|(n, d)| point(n.clone(), d)).collect();
    let drifted = points.iter().filter(|p| p.drift).count();
    page.text(&format!(
        "{drifted} of {} differ; at most {} % are expected to be false alarms.",
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
            moved_most(drift).map_or(String::new(), |(what, z)| format!("{what} (z {z:+.1})")),
        ]
    };
    let rows: Vec<_> = found.iter().zip(&points).map(row).collect();
    let header = ["sketch", "rows", "MMD", "noise", "p-value", "", "most moved"];
    page.push("<details><summary>Numbers</summary>\n");
    page.table(&header.map(String::from), &rows);
    page.push("</details>\n");
}

fn one(page: &mut Page, drift: &Drift, sketch: &Sketch) {
    for (what, words) in headline(drift) {
        page.text(&format!("{what}: {words}."));
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
        let q = c.q_value.map_or("-".into(), q_text);
        vec![c.column.clone(), there.0, here.0, effect(c), q]
    });
    table(&["column", "mean there", "mean here", "change in deviations", "q"], columns.collect());
    let shares = share_lines(drift, TOP).into_iter().map(|line| line.to_vec());
    table(&["share", "there", "here", "z", "q"], shares.collect());
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
