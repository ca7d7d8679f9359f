//! `nysketch diff`: how two sketches of one plan differ, or many from one.

use super::{read_bytes, read_sketch};
use crate::args::{Common, Diff};
use crate::output::{Usage, check_writable, count, note, result, short, thousands};
use crate::plot;
use anyhow::{Context, Result};
use nysketch::drift::{CellChange, Comparison, Drift, DriftParams};
use nysketch::{Plan, Sketch};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

pub fn run(args: &Diff, common: &Common) -> Result<()> {
    if !(args.level > 0.0 && args.level < 1.0) {
        return Err(Usage(format!("--level is between 0 and 1, not {}", args.level)).into());
    }
    let (first, others) = match &args.against {
        Some(baseline) => (baseline, sketch_files(&args.sketches, baseline, common)?),
        None => match &args.sketches[..] {
            [a, b] => (a, vec![b.clone()]),
            files => {
                return Err(Usage(format!(
                    "two sketches are compared, not {}; many with one: --against BASELINE FILES",
                    files.len()
                ))
                .into());
            }
        },
    };
    if let Some(plot) = &args.plot {
        check_writable(plot, others.iter().chain([first]))?;
    }
    let baseline = read_sketch(first)?;
    if args.plot.is_some() && !baseline.plan().collect.kernel {
        return Err(Usage("--plot draws discrepancies, which need kernel sums".into()).into());
    }
    let comparison = Comparison::new(baseline.plan())?;
    let params = DriftParams { draws: args.draws as usize, seed: args.seed };
    let mut found = Vec::new();
    for file in &others {
        let sketch = read_sketch(file)?;
        check_columns(&baseline, &sketch, first, file)?;
        let drift = comparison
            .of(&baseline, &sketch, &params)
            .with_context(|| format!("{} and {}", first.display(), file.display()))?;
        found.push((file.clone(), drift));
    }
    if args.level * ((args.draws + 1) as f64) < 1.0 - 1e-9 {
        note(
            common,
            &format!(
                "{} draws cannot show a p-value below {}: no drift will be found at {}",
                args.draws,
                1.0 / (args.draws + 1) as f64,
                args.level
            ),
        );
    }
    if let Some(file) = &args.plot {
        let points: Vec<plot::DriftPoint> = found.iter().map(|(f, d)| point(f, d, args)).collect();
        let baseline = first.display().to_string();
        plot::write(file, &plot::drift(&points, &baseline))?;
    }
    let all: Vec<Value> =
        found.iter().map(|(file, d)| describe(file, d, args, &baseline)).collect();
    if args.against.is_some() {
        let json = json!({"baseline": first, "rows": baseline.rows(), "level": args.level,
            "sketches": all, "plot": args.plot});
        return result(common, &json, &series(first, &baseline, &found, args));
    }
    let mut json = all.into_iter().next().unwrap_or(Value::Null);
    json["baseline"] = json!(first);
    json["level"] = json!(args.level);
    json["plot"] = json!(args.plot);
    let (file, drift) = &found[0];
    result(common, &json, &pair(first, file, drift, args, baseline.plan()))
}

/// Files as they are, and the sketches of folders by name.
fn sketch_files(paths: &[PathBuf], baseline: &Path, common: &Common) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for path in paths {
        if !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        let name = path.display();
        let entries = std::fs::read_dir(path).with_context(|| format!("cannot read {name}"))?;
        let mut inside = Vec::new();
        for entry in entries {
            let file = entry.with_context(|| format!("cannot read {name}"))?.path();
            if file.extension().is_none_or(|e| e != "nys") {
                continue;
            }
            let same = |a: &Path, b: &Path| a.canonicalize().ok() == b.canonicalize().ok();
            if same(&file, baseline) || nysketch::Plan::from_bytes(&read_bytes(&file)?).is_ok() {
                note(common, &format!("{} is left out", file.display()));
                continue;
            }
            inside.push(file);
        }
        if inside.is_empty() {
            return Err(Usage(format!("{name} has no sketches (.nys) to compare")).into());
        }
        inside.sort();
        files.extend(inside);
    }
    Ok(files)
}

/// Other columns are the usual reason for another plan, and easier to understand.
fn check_columns(a: &Sketch, b: &Sketch, first: &Path, second: &Path) -> Result<()> {
    let (ours, theirs) = (&a.plan().columns, &b.plan().columns);
    if ours == theirs {
        return Ok(());
    }
    let missing = |from: &[String], of: &[String]| {
        let names: Vec<&str> =
            of.iter().filter(|c| !from.contains(c)).map(String::as_str).take(5).collect();
        if names.is_empty() { "none".to_string() } else { names.join(", ") }
    };
    Err(Usage(format!(
        "{} and {} have different columns (only in the first: {}; only in the second: {}); sketch both with one plan",
        first.display(),
        second.display(),
        missing(theirs, ours),
        missing(ours, theirs)
    ))
    .into())
}

fn drifts(drift: &Drift, args: &Diff) -> Option<bool> {
    drift.p_value.map(|p| p <= args.level)
}

fn point(file: &Path, drift: &Drift, args: &Diff) -> plot::DriftPoint {
    let middle = drift.discrepancies.get(drift.discrepancies.len() / 2);
    plot::DriftPoint {
        name: file.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
        mmd: middle.map_or(f64::NAN, |d| d.mmd),
        noise: middle.map_or(f64::NAN, |d| d.noise),
        drift: drifts(drift, args).unwrap_or(false),
    }
}

fn describe(file: &Path, drift: &Drift, args: &Diff, baseline: &Sketch) -> Value {
    let discrepancy = |d: &nysketch::drift::Discrepancy| json!({"bandwidth": d.sigma2, "mmd": d.mmd, "noise": d.noise});
    let cell = |c: &CellChange| json!({"landmark": c.landmark, "shares": c.shares, "z": c.z, "mean": c.mean});
    let column = |c: &nysketch::drift::ColumnChange| json!({"column": c.column, "means": c.means, "deviations": c.deviations, "z": c.z});
    json!({
        "file": file, "rows": drift.rows, "p_value": drift.p_value, "drift": drifts(drift, args),
        "no_test": drift.no_test.as_deref().map(crate::output::in_options),
        "discrepancies": drift.discrepancies.iter().map(discrepancy).collect::<Vec<_>>(),
        "columns": drift.columns.iter().map(column).collect::<Vec<_>>(),
        "cells": drift.cells.iter().take(args.top).map(cell).collect::<Vec<_>>(),
        "landmarks": landmarks(drift, baseline.plan(), args.top).iter().map(|(j, change, place)| {
            json!({"landmark": j, "change": change, "place": place})
        }).collect::<Vec<_>>(),
    })
}

/// Landmarks of the largest change, where they lie in the table's units.
fn landmarks(drift: &Drift, plan: &Plan, top: usize) -> Vec<(usize, f64, Vec<f64>)> {
    let mut order: Vec<usize> = (0..drift.landmarks.len()).collect();
    order.sort_by(|i, j| drift.landmarks[*j].abs().total_cmp(&drift.landmarks[*i].abs()));
    let place = |j: usize| plan.frame.widen(plan.features.points().row(j));
    order.into_iter().take(top).map(|j| (j, drift.landmarks[j], place(j))).collect()
}

/// The verdict in words.
fn verdict(drift: &Drift, args: &Diff) -> String {
    match (drift.p_value, drifts(drift, args)) {
        (Some(p), Some(true)) => {
            format!("{}: the rows differ (level {})", p_text(p, args), args.level)
        }
        (Some(p), _) => format!("{}: no difference found (level {})", p_text(p, args), args.level),
        (None, _) => format!(
            "none: {}",
            crate::output::in_options(drift.no_test.as_deref().unwrap_or("no test"))
        ),
    }
}

fn p_text(p: f64, args: &Diff) -> String {
    let least = 1.0 / (args.draws + 1) as f64;
    if p <= least { format!("{} or less", short(least)) } else { short(p) }
}

fn pair(first: &Path, second: &Path, drift: &Drift, args: &Diff, plan: &Plan) -> String {
    let mut text = format!(
        "A  {}, {}\nB  {}, {}\n\np-value  {}\n",
        first.display(),
        count(drift.rows[0], "row"),
        second.display(),
        count(drift.rows[1], "row"),
        verdict(drift, args)
    );
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
    if !drift.columns.is_empty() {
        let width =
            drift.columns.iter().map(|c| c.column.chars().count()).max().unwrap_or(0).clamp(6, 30);
        text.push_str(&format!(
            "\n{:width$} {:>12} {:>12} {:>12} {:>12} {:>8}\n",
            "column", "mean in A", "mean in B", "spread in A", "spread in B", "z"
        ));
        for c in drift.columns.iter().take(args.top) {
            text.push_str(&format!(
                "{:width$} {:>12} {:>12} {:>12} {:>12} {:>8.1}\n",
                c.column,
                short(c.means[0]),
                short(c.means[1]),
                short(c.deviations[0]),
                short(c.deviations[1]),
                c.z
            ));
        }
    }
    if !drift.cells.is_empty() {
        text.push_str(&format!("\n{:>10} {:>10} {:>8}  where\n", "share of A", "share of B", "z"));
        for cell in drift.cells.iter().take(args.top) {
            text.push_str(&format!(
                "{:>9.2}% {:>9.2}% {:>8.1}  {}\n",
                100.0 * cell.shares[0],
                100.0 * cell.shares[1],
                cell.z,
                place(&cell.mean, drift, plan)
            ));
        }
    } else {
        text.push_str(&format!("\n{:>12}  at the landmark\n", "kernel mean"));
        for (_, change, where_) in landmarks(drift, plan, args.top) {
            text.push_str(&format!("{:>+12.4}  {}\n", change, place(&where_, drift, plan)));
        }
    }
    text
}

/// A place by the columns in which it is the most unusual.
pub fn place(mean: &[f64], drift: &Drift, plan: &Plan) -> String {
    let unusual = |k: usize| {
        let column = drift.columns.iter().find(|c| c.column == plan.columns[k]);
        column.map_or(0.0, |c| {
            let spread = c.deviations[0].max(c.deviations[1]);
            if spread > 0.0 { ((mean[k] - c.means[0]) / spread).abs() } else { 0.0 }
        })
    };
    let mut order: Vec<usize> = (0..mean.len()).collect();
    order.sort_by(|i, j| unusual(*j).total_cmp(&unusual(*i)));
    let named = order.iter().take(4).map(|&k| format!("{} {}", plan.columns[k], short(mean[k])));
    named.collect::<Vec<_>>().join(", ")
}

fn series(first: &Path, baseline: &Sketch, found: &[(PathBuf, Drift)], args: &Diff) -> String {
    let width =
        found.iter().map(|(f, _)| f.display().to_string().chars().count()).max().unwrap_or(0);
    let mut text = format!(
        "against {}, {} rows\n\n{:width$} {:>12} {:>10} {:>10} {:>14}  most moved column\n",
        first.display(),
        thousands(baseline.rows()),
        "sketch",
        "rows",
        "MMD",
        "noise",
        "p-value"
    );
    for (file, drift) in found {
        let middle = drift.discrepancies.get(drift.discrepancies.len() / 2);
        let number = |value: Option<f64>| value.map_or("-".to_string(), short);
        let moved =
            drift.columns.first().map_or(String::new(), |c| format!("{} (z {:.1})", c.column, c.z));
        text.push_str(&format!(
            "{:width$} {:>12} {:>10} {:>10} {:>14}  {}{moved}\n",
            file.display().to_string(),
            thousands(drift.rows[1]),
            number(middle.map(|d| d.mmd)),
            number(middle.map(|d| d.noise)),
            drift.p_value.map_or("-".to_string(), |p| p_text(p, args)),
            if drifts(drift, args) == Some(true) { "DRIFT  " } else { "       " },
        ));
    }
    let called = found.iter().filter(|(_, d)| drifts(d, args) == Some(true)).count();
    text.push_str(&format!(
        "\n{called} of {} differ at level {}; of sketches that do not differ, {} % are called so by chance\n",
        found.len(),
        args.level,
        short(100.0 * args.level)
    ));
    if let Some(why) = found.iter().find_map(|(_, d)| d.no_test.as_deref()) {
        text.push_str(&format!("no p-value: {}\n", crate::output::in_options(why)));
    }
    text
}
