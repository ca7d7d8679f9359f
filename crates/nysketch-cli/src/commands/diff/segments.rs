//! Finds the segments that explain a change.

use super::outcome::{Outcome, check_outputs, note_draws, paths};
use super::thresholds::Thresholds;
use crate::args::{Common, Diff};
use crate::commands::files::{read_sketch, sketch_files, stem};
use crate::output::{Usage, count, in_options, name, note, percent, result};
use anyhow::{Context, Result};
use nysketch::Sketch;
use nysketch::drift::{Attribution, Comparison, Segment};
use nysketch_report::sections::{headline, moved_share, p_text};
use nysketch_report::words::describe::one_line;
use serde_json::json;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Maximum number of segments that are removed.
const MOST: usize = 10;

/// `BEFORE AFTER --segments`: compares two folders of sketches with the same names.
pub fn run(args: &Diff, thresholds: &Thresholds, common: &Common) -> Result<(Outcome, Result<()>)> {
    let folders = match &args.sketches[..] {
        [before, after] if before.is_dir() && after.is_dir() => [before, after],
        _ => {
            let message = "--segments compares two folders of sketches, as sketch --by writes them";
            return Err(Usage(message.into()).into());
        }
    };
    if args.plot.is_some() || args.metrics.is_some() {
        return Err(Usage("--segments writes no pictures and no metrics".into()).into());
    }
    let mut files: BTreeMap<String, [Option<PathBuf>; 2]> = BTreeMap::new();
    for (side, folder) in folders.into_iter().enumerate() {
        for file in sketch_files(std::slice::from_ref(folder), None, common)? {
            let name = stem(&file);
            files.entry(name).or_default()[side] = Some(file);
        }
    }
    let all: Vec<PathBuf> = files.values().flatten().flatten().cloned().collect();
    check_outputs(args, paths(&all), common)?;
    let plan = read_sketch(&all[0])?.plan().clone();
    let mut segments = Vec::new();
    for (name, [before, after]) in &files {
        let read = |file: &Option<PathBuf>| -> Result<Sketch> {
            Ok(match file {
                Some(file) => read_sketch(file)?,
                None => Sketch::empty(plan.clone()),
            })
        };
        let only = match (before, after) {
            (Some(file), None) | (None, Some(file)) => Some(file),
            _ => None,
        };
        if let Some(file) = only {
            note(
                common,
                &format!(
                    "{} is in one folder only; it counts as no rows in the other",
                    file.display()
                ),
            );
        }
        segments.push(Segment { name: name.clone(), before: read(before)?, after: read(after)? });
    }
    let comparison = Comparison::new(&plan)?;
    let both = || format!("{} and {}", folders[0].display(), folders[1].display());
    let mut found = comparison.attribute(&segments, MOST, &thresholds.params).with_context(both)?;
    found.whole.keep(thresholds.top);
    found.whole.no_test = found.whole.no_test.as_deref().map(in_options);
    note_draws(thresholds, found.whole.least_p_value, common);
    let mut json = serde_json::to_value(&found)?;
    json["before"] = name(folders[0]);
    json["after"] = name(folders[1]);
    json["segments"] = json!(segments.len());
    let text = text(folders, &found, segments.len());
    Ok((super::pair::outcome(folders[1], &found.whole), result(common, &json, &text)))
}

fn text([before, after]: [&PathBuf; 2], found: &Attribution, segments: usize) -> String {
    let whole = &found.whole;
    let mut text = format!(
        "A  {}, {}\nB  {}, {}\n{} in all\n\n",
        before.display(),
        count(whole.rows[0], "row"),
        after.display(),
        count(whole.rows[1], "row"),
        count(segments as u64, "segment")
    );
    for (what, words) in headline(whole) {
        text.push_str(&format!("{what:<8} {words}\n"));
    }
    if found.removed.is_empty() {
        return text;
    }
    let width = found.removed.iter().map(|r| r.segment.chars().count()).max().unwrap_or(0).max(7);
    text.push_str(&format!(
        "\n{:width$} {:>10} {:>10} {:>30} {:>14}\n",
        "without", "share of A", "share of B", "rows that move among the rest", "p-value"
    ));
    for r in &found.removed {
        text.push_str(&format!(
            "{:width$} {:>10} {:>10} {:>30} {:>14}\n",
            one_line(&r.segment),
            percent(r.shares[0]),
            percent(r.shares[1]),
            r.moved.map_or("-".into(), moved_share),
            r.p_value.map_or("-".into(), |p| p_text(p, whole.least_p_value))
        ));
    }
    let names: Vec<String> = found.removed.iter().map(|r| one_line(&r.segment)).collect();
    let listed = match names.split_last() {
        Some((last, others)) if !others.is_empty() => format!("{} and {last}", others.join(", ")),
        _ => names.join(", "),
    };
    text.push_str(&match found.explained {
        Some(true) => format!("\nwithout {listed} there is no drift left\n"),
        Some(false) => {
            format!("\ndrift is left without {listed}: it is not that of a few segments\n")
        }
        None => format!("\nwithout {listed} too few rows are left to test\n"),
    });
    text
}
