//! Compares two sketches.

use super::metrics::Metrics;
use super::outcome::{Outcome, check_columns, check_outputs, note_draws, paths};
use super::thresholds::Thresholds;
use crate::args::{Common, Diff};
use crate::commands::files::{read_sketch, stem};
use crate::output::{Usage, count, in_options, name, note, result, short};
use anyhow::{Context, Result};
use nysketch::drift::{Comparison, Drift};
use nysketch::{Plan, Sketch, Sum};
use nysketch_report::plot::{self, DriftChart};
use nysketch_report::sections::{changed, effect, headline, point, q_text, share_lines};
use nysketch_report::words::describe::{one_line, place};
use serde_json::json;
use std::path::Path;

pub fn run(args: &Diff, thresholds: &Thresholds, common: &Common) -> Result<(Outcome, Result<()>)> {
    let [first, second] = &args.sketches[..] else {
        return Err(Usage(format!(
            "two sketches are compared, not {}; many with one: --against SKETCH FILES; a day with \
             others: --baseline DAYS TODAY",
            args.sketches.len()
        ))
        .into());
    };
    check_outputs(args, paths(&args.sketches), common)?;
    let (mut a, b) = (read_sketch(first)?, read_sketch(second)?);
    check_drawable(args, &a)?;
    check_columns(&a, &b, first, second)?;
    let both = || format!("{} and {}", first.display(), second.display());
    if args.part_of {
        a.subtract(&b)
            .with_context(|| format!("{} is not part of {}", second.display(), first.display()))?;
    } else {
        note_parts([(first, &a), (second, &b)], common);
    }
    let comparison = Comparison::new(a.plan())?;
    let mut drift = comparison.of(&a, &b, &thresholds.params).with_context(both)?;
    note_draws(thresholds, drift.least_p_value, common);
    if drift.drift == Some(true) {
        note_crowded([(first, &a), (second, &b)], common);
    }
    drift.keep(thresholds.top);
    drift.no_test = drift.no_test.as_deref().map(in_options);
    if let Some(file) = &args.plot {
        let points = [point(stem(second), &drift)];
        let baseline = first.display().to_string();
        draw(file, &points, &baseline, thresholds, common)?;
    }
    let mut metrics = Metrics::default();
    metrics.drift(&second.display().to_string(), &drift);
    metrics.write(args)?;
    let mut json = serde_json::to_value(&drift)?;
    json["file"] = name(second);
    json["baseline"] = name(first);
    json["part_of"] = json!(args.part_of);
    json["plot"] = json!(args.plot.as_deref().map(name));
    let text = text([first, second], &drift, thresholds, args.part_of, a.plan());
    Ok((outcome(second, &drift), result(common, &json, &text)))
}

/// Decides by the tolerance if one was given, otherwise by the test.
pub fn outcome(file: &Path, drift: &Drift) -> Outcome {
    let why = || {
        let why = drift.no_test.as_deref().unwrap_or("too few cells have rows enough");
        Outcome::NoTest(format!("{}: {why}", file.display()))
    };
    match (drift.tolerance, drift.verdict, drift.drift) {
        (Some(_), verdict, _) => verdict.map_or_else(why, Outcome::of),
        (None, _, found) => found.map_or_else(why, Outcome::changed),
    }
}

/// Refuses a picture of sums that the sketches do not contain.
pub fn check_drawable(args: &Diff, sketch: &Sketch) -> Result<()> {
    let collect = sketch.plan().collect;
    if args.plot.is_some() && !(collect.kernel || collect.cells) {
        let needs = "--plot draws discrepancies and p-values, which need kernel sums or cells";
        return Err(Usage(needs.into()).into());
    }
    Ok(())
}

/// Draws sketches in order.
pub fn draw(
    file: &Path,
    points: &[plot::DriftPoint],
    baseline: &str,
    thresholds: &Thresholds,
    common: &Common,
) -> Result<()> {
    let level = thresholds.params.level;
    match plot::drift(&DriftChart { points, baseline, level }) {
        Some(scene) => plot::write(file, &scene),
        None => {
            note(common, "there is nothing to draw: no discrepancies and no p-values");
            Ok(())
        }
    }
}

/// Notes that two sketches are equal.
pub fn note_same(file: &Path, other: &Path, common: &Common) {
    note(common, &format!("{} holds the same sums as {}", file.display(), other.display()));
}

/// Notes if the rows of one sketch are, or may be, among the rows of the other.
fn note_parts(sketches: [(&Path, &Sketch); 2], common: &Common) {
    let [(first, a), (second, b)] = sketches;
    if a.sums() == b.sums() {
        return note_same(second, first, common);
    }
    let sum = if a.plan().collect.cells { Sum::CellRows } else { Sum::Features };
    let (of_a, of_b) = (&a.sums()[sum], &b.sums()[sum]);
    let within = |small: &[i128], large: &[i128]| {
        small.len() == large.len() && small.iter().zip(large).all(|(s, l)| s <= l)
    };
    let remedy = "--part-of compares it with the rest";
    if within(of_b, of_a) {
        let (part, whole) = (second.display(), first.display());
        note(
            common,
            &format!("the rows of {part} may be among those of {whole}; if they are, {remedy}"),
        );
    } else if within(of_a, of_b) {
        let (part, whole) = (first.display(), second.display());
        let remedy = format!("diff {whole} {part} {remedy}");
        note(
            common,
            &format!("the rows of {part} may be among those of {whole}; if they are, {remedy}"),
        );
    }
}

/// Rows per landmark from which the test is known to keep its false-alarm rate.
const ROWS_PER_LANDMARK: usize = 10;

/// Notes if the landmarks may be rows of the sample itself and rows per landmark are few.
fn note_crowded(sketches: [(&Path, &Sketch); 2], common: &Common) {
    for (file, sketch) in sketches {
        let landmarks = sketch.plan().landmarks().map_or(0, |points| points.len());
        let (cells, rows) = (&sketch.sums()[Sum::CellRows], sketch.rows());
        let crowded = rows < (ROWS_PER_LANDMARK * landmarks) as u64;
        if crowded && sketch.folds().is_none() && cells.iter().all(|rows| *rows > 0) {
            let rows =
                format!("{} for {}", count(rows, "row"), count(landmarks as u64, "landmark"));
            let remedy = format!(
                "fewer than {ROWS_PER_LANDMARK} per landmark make false alarms more frequent; plan \
                 with fewer --landmarks"
            );
            return note(common, &format!("{} has {rows}: {remedy}", file.display()));
        }
    }
}

fn text(
    [first, second]: [&Path; 2],
    drift: &Drift,
    thresholds: &Thresholds,
    part_of: bool,
    plan: &Plan,
) -> String {
    let rest = if part_of { " without the rows of B" } else { "" };
    let mut text = format!(
        "A  {}{rest}, {}\nB  {}, {}\n\n",
        first.display(),
        count(drift.rows[0], "row"),
        second.display(),
        count(drift.rows[1], "row"),
    );
    for (what, words) in headline(drift) {
        text.push_str(&format!("{what:<8} {words}\n"));
    }
    if !drift.discrepancies.is_empty() {
        text.push_str(&format!("\n{:>12} {:>12} {:>12}\n", "bandwidth σ²", "MMD", "noise"));
        for d in &drift.discrepancies {
            text.push_str(&format!(
                "{:>12} {:>12} {:>12}\n",
                short(d.sigma2),
                short(d.mmd),
                short(d.noise)
            ));
        }
    }
    columns(drift, thresholds.top, plan, &mut text);
    shares(drift, thresholds.top, &mut text);
    if !drift.cells.is_empty() {
        text.push_str(&format!("\n{:>10} {:>10} {:>8}  where\n", "share of A", "share of B", "z"));
        for cell in &drift.cells {
            text.push_str(&format!(
                "{:>9.2}% {:>9.2}% {:>8.1}  {}\n",
                100.0 * cell.shares[0],
                100.0 * cell.shares[1],
                cell.z,
                place(&cell.mean, &cell.levels, drift, plan)
            ));
        }
    } else if !drift.landmarks.is_empty() {
        text.push_str(&format!("\n{:>12}  at the landmark\n", "kernel mean"));
        for l in &drift.landmarks {
            text.push_str(&format!("{:>+12.4}  {}\n", l.change, place(&l.place, &[], drift, plan)));
        }
    }
    text
}

/// Adds the means of the columns, if they are known.
fn columns(drift: &Drift, top: usize, plan: &Plan, text: &mut String) {
    if drift.columns.is_empty() {
        return;
    }
    let width =
        drift.columns.iter().map(|c| c.column.chars().count()).max().unwrap_or(0).clamp(6, 30);
    text.push_str(&format!(
        "\n{:width$} {:>12} {:>12} {:>12} {:>12} {:>18} {:>8}\n",
        "column", "mean in A", "mean in B", "spread in A", "spread in B", "change", "q"
    ));
    for c in drift.columns.iter().take(top) {
        let [a, b] = changed(c, plan);
        text.push_str(&format!(
            "{:width$} {:>12} {:>12} {:>12} {:>12} {:>18} {:>8}\n",
            one_line(&c.column),
            a.0,
            b.0,
            a.1,
            b.1,
            effect(c),
            c.q_value.map_or("-".into(), q_text)
        ));
    }
    let called = drift.columns.iter().filter(|c| c.q_value.is_some_and(|q| q <= drift.level));
    let called = called.count();
    if drift.columns.iter().any(|c| c.q_value.is_some()) {
        text.push_str(&format!(
            "change in standard deviations; {called} of {} changed (q is the false-discovery rate, \
             at most {})\n",
            count(drift.columns.len() as u64, "column"),
            drift.level
        ));
    }
}

/// Adds the shares of levels and of missing values, if there are any.
fn shares(drift: &Drift, top: usize, text: &mut String) {
    let lines = share_lines(drift, top);
    if lines.is_empty() {
        return;
    }
    let width = lines.iter().map(|l| l[0].chars().count()).max().unwrap_or(0).max(5);
    let head = ["share", "in A", "in B", "z", "q"].map(String::from);
    text.push('\n');
    for [name, a, b, z, p] in std::iter::once(&head).chain(&lines) {
        let space = " ".repeat(width - name.chars().count());
        text.push_str(&format!("{name}{space} {a:>12} {b:>12} {z:>8} {p:>12}\n"));
    }
}
