//! `nysketch diff`: how two sketches of one plan differ, or many from one.

use super::files::{read_sketch, sketch_files, stem};
use crate::args::{Common, Diff};
use crate::describe::{one_line, place};
use crate::kind::Kind;
use crate::output::{
    Usage, count, in_options, is_broken_pipe, name, note, result, short, thousands,
};
use crate::plot::{self, DriftChart};
use crate::report::{changed, moved, point, share_lines};
use crate::writing::check_output;
use anyhow::{Context, Result, bail};
use nysketch::drift::{Comparison, Drift, DriftParams};
use nysketch::{Plan, Sketch};
use serde::Serialize;
use serde_json::json;
use std::path::{Path, PathBuf};

/// Compares, and returns the exit code: with `--exit-code`, 1 where there is drift.
pub fn run(args: &Diff, common: &Common) -> Result<u8> {
    let params =
        DriftParams::default().draws(args.draws as usize).seed(args.seed).level(args.level);
    params.check()?;
    let (first, others) = match &args.against {
        Some(baseline) => (baseline, sketch_files(&args.sketches, Some(baseline), common)?),
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
        let inputs = others.iter().chain([first]).map(PathBuf::as_path);
        check_output(common, plot, Kind::by_extension(plot), inputs)?;
    }
    let baseline = read_sketch(first)?;
    let collect = baseline.plan().collect;
    if args.plot.is_some() && !(collect.kernel || collect.cells) {
        let needs = "--plot draws discrepancies and p-values, which need kernel sums or cells";
        return Err(Usage(needs.into()).into());
    }
    let comparison = Comparison::new(baseline.plan())?;
    let mut found = Vec::new();
    for file in &others {
        let sketch = read_sketch(file)?;
        check_columns(&baseline, &sketch, first, file)?;
        let mut drift = comparison
            .of(&baseline, &sketch, &params)
            .with_context(|| format!("{} and {}", first.display(), file.display()))?;
        // Of one plan, or there would be no comparison.
        if sketch.sums() == baseline.sums() {
            note(common, &format!("{} holds the same sums as {}", file.display(), first.display()));
        }
        drift.keep(args.top);
        drift.no_test = drift.no_test.as_deref().map(in_options);
        found.push(Compared { file: file.clone(), drift });
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
        let points: Vec<_> = found.iter().map(|c| point(stem(&c.file), &c.drift)).collect();
        let baseline = first.display().to_string();
        let chart = DriftChart { points: &points, baseline: &baseline, level: args.level };
        match plot::drift(&chart) {
            Some(scene) => plot::write(file, &scene)?,
            None => note(common, "there is nothing to draw: neither discrepancies nor p-values"),
        }
    }
    if args.against.is_some() {
        let json = json!({"baseline": name(first), "rows": baseline.counted(), "level": args.level,
            "sketches": found, "plot": args.plot.as_deref().map(name)});
        return finish(
            args,
            &found,
            result(common, &json, &series(first, &baseline, &found, args)),
        );
    }
    let mut json = serde_json::to_value(&found[0])?;
    json["baseline"] = name(first);
    json["plot"] = json!(args.plot.as_deref().map(name));
    finish(args, &found, result(common, &json, &pair(first, &found[0], args, baseline.plan())))
}

fn lossy<S: serde::Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&path.display())
}

/// The exit code, also where the reader of stdout has seen enough.
fn finish(args: &Diff, found: &[Compared], printed: Result<()>) -> Result<u8> {
    match printed {
        Err(error) if !is_broken_pipe(&error) => Err(error),
        _ => exit_code(args, found),
    }
}

/// For pipelines: 0 no drift, 1 drift, and an error where no test was possible.
fn exit_code(args: &Diff, found: &[Compared]) -> Result<u8> {
    if !args.exit_code {
        return Ok(0);
    }
    if found.iter().any(|c| c.drift.drift == Some(true)) {
        return Ok(1);
    }
    match found.iter().find(|c| c.drift.drift.is_none()) {
        None => Ok(0),
        Some(c) => {
            let why = c.drift.no_test.as_deref().unwrap_or("no test was possible");
            bail!("{}: {why}", c.file.display())
        }
    }
}

/// A sketch that was compared.
#[derive(Serialize)]
struct Compared {
    #[serde(serialize_with = "lossy")]
    file: PathBuf,
    #[serde(flatten)]
    drift: Drift,
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

/// The verdict in words.
fn verdict(drift: &Drift, args: &Diff) -> String {
    match (drift.p_value, drift.drift) {
        (Some(p), Some(true)) => {
            format!("{}: the rows differ (level {})", p_text(p, args), args.level)
        }
        (Some(p), _) => format!("{}: no difference found (level {})", p_text(p, args), args.level),
        (None, _) => format!("none: {}", drift.no_test.as_deref().unwrap_or("no test")),
    }
}

fn p_text(p: f64, args: &Diff) -> String {
    let least = 1.0 / (args.draws + 1) as f64;
    if p <= least { format!("{} or less", short(least)) } else { short(p) }
}

fn pair(first: &Path, compared: &Compared, args: &Diff, plan: &Plan) -> String {
    let Compared { file: second, drift } = compared;
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
            let [a, b] = changed(c, plan);
            text.push_str(&format!(
                "{:width$} {:>12} {:>12} {:>12} {:>12} {:>8.1}\n",
                one_line(&c.column),
                a.0,
                b.0,
                a.1,
                b.1,
                c.z
            ));
        }
    }
    shares(drift, args, &mut text);
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
    } else {
        text.push_str(&format!("\n{:>12}  at the landmark\n", "kernel mean"));
        for l in &drift.landmarks {
            text.push_str(&format!("{:>+12.4}  {}\n", l.change, place(&l.place, &[], drift, plan)));
        }
    }
    text
}

/// Shares of levels and of missing values, where there are some.
fn shares(drift: &Drift, args: &Diff, text: &mut String) {
    let lines = share_lines(drift, args.top);
    if lines.is_empty() {
        return;
    }
    let width = lines.iter().map(|l| l[0].chars().count()).max().unwrap_or(0).max(5);
    let head = ["share", "in A", "in B", "z", "p-value"].map(String::from);
    text.push('\n');
    for [name, a, b, z, p] in std::iter::once(&head).chain(&lines) {
        let space = " ".repeat(width - name.chars().count());
        text.push_str(&format!("{name}{space} {a:>12} {b:>12} {z:>8} {p:>12}\n"));
    }
}

fn series(first: &Path, baseline: &Sketch, found: &[Compared], args: &Diff) -> String {
    let name = |c: &Compared| c.file.display().to_string();
    let width = found.iter().map(|c| name(c).chars().count()).max().unwrap_or(0);
    let mut text = format!(
        "against {}, {} rows\n\n{:width$} {:>12} {:>10} {:>10} {:>14}  most moved\n",
        first.display(),
        thousands(baseline.counted()),
        "sketch",
        "rows",
        "MMD",
        "noise",
        "p-value"
    );
    for compared in found {
        let drift = &compared.drift;
        let middle = drift.middle();
        let number = |value: Option<f64>| value.map_or("-".to_string(), short);
        let moved = moved(drift);
        let moved =
            moved.map_or(String::new(), |(what, z)| format!("{} (z {z:.1})", one_line(&what)));
        text.push_str(&format!(
            "{:width$} {:>12} {:>10} {:>10} {:>14}  {}{moved}\n",
            name(compared),
            thousands(drift.rows[1]),
            number(middle.map(|d| d.mmd)),
            number(middle.map(|d| d.noise)),
            drift.p_value.map_or("-".to_string(), |p| p_text(p, args)),
            if drift.drift == Some(true) { "DRIFT  " } else { "       " },
        ));
    }
    let called = found.iter().filter(|c| c.drift.drift == Some(true)).count();
    text.push_str(&format!(
        "\n{called} of {} differ at level {}; of sketches that do not differ, {} % are called so by chance\n",
        found.len(),
        args.level,
        short(100.0 * args.level)
    ));
    if let Some(why) = found.iter().find_map(|c| c.drift.no_test.as_deref()) {
        text.push_str(&format!("no p-value: {why}\n"));
    }
    text
}
