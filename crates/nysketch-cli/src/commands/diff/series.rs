//! Compares many sketches with one.

use super::metrics::Metrics;
use super::outcome::{Outcome, check_columns, check_outputs, note_draws};
use super::pair::{check_drawable, draw, note_same, outcome};
use super::thresholds::Thresholds;
use crate::args::{Common, Diff};
use crate::commands::files::{read_sketch, sketch_files, stem};
use crate::output::{in_options, name, note, result, short, thousands};
use anyhow::{Context, Result};
use nysketch::Sketch;
use nysketch::drift::{Comparison, Drift, Verdict, set_q_values_of_many};
use nysketch_report::sections::{moved_most, moved_share, p_text, point};
use nysketch_report::words::describe::one_line;
use serde::Serialize;
use serde_json::json;
use std::path::{Path, PathBuf};

/// The comparison of one sketch.
#[derive(Serialize)]
struct Compared {
    #[serde(serialize_with = "lossy")]
    file: PathBuf,
    #[serde(flatten)]
    drift: Drift,
}

fn lossy<S: serde::Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&path.display())
}

pub fn run(
    args: &Diff,
    first: &Path,
    thresholds: &Thresholds,
    common: &Common,
) -> Result<(Outcome, Result<()>)> {
    let others = sketch_files(&args.sketches, Some(first), common)?;
    check_outputs(args, others.iter().map(PathBuf::as_path).chain([first]), common)?;
    let baseline = read_sketch(first)?;
    check_drawable(args, &baseline)?;
    let comparison = Comparison::new(baseline.plan())?;
    let compare = |file: &PathBuf| -> Result<Option<(Compared, bool)>> {
        let sketch = read_sketch(file)?;
        check_columns(&baseline, &sketch, first, file)?;
        if sketch.rows() == 0 {
            note(common, &format!("{} is left out: it has no rows", file.display()));
            return Ok(None);
        }
        let mut drift = comparison
            .of(&baseline, &sketch, &thresholds.params)
            .with_context(|| format!("{} and {}", first.display(), file.display()))?;
        drift.keep(thresholds.top);
        drift.no_test = drift.no_test.as_deref().map(in_options);
        Ok(Some((Compared { file: file.clone(), drift }, sketch.sums() == baseline.sums())))
    };
    let mut found = Vec::new();
    for each in nysketch_core::numeric::parallel::in_parallel(
        common.threads(),
        others.iter().collect(),
        compare,
    ) {
        let Some((compared, same)) = each? else { continue };
        if same {
            note_same(&compared.file, first, common);
        }
        found.push(compared);
    }
    set_q_values_of_many(&mut found.iter_mut().map(|c| &mut c.drift).collect::<Vec<_>>());
    let least = found.iter().map(|c| c.drift.least_p_value).fold(0.0, f64::max);
    note_draws(thresholds, least, common);
    let mut metrics = Metrics::default();
    found.iter().for_each(|c| metrics.drift(&c.file.display().to_string(), &c.drift));
    metrics.write(args)?;
    if let Some(file) = &args.plot {
        let points: Vec<_> = found.iter().map(|c| point(stem(&c.file), &c.drift)).collect();
        draw(file, &points, &first.display().to_string(), thresholds, common)?;
    }
    let json = json!({"baseline": name(first), "rows": baseline.counted(),
        "level": thresholds.params.level, "sketches": found,
        "plot": args.plot.as_deref().map(name)});
    let printed = result(common, &json, &text(first, &baseline, &found, thresholds));
    Ok((worst(&found), printed))
}

/// Returns `Changed` if any sketch changed, otherwise an undecided outcome if there is one.
fn worst(found: &[Compared]) -> Outcome {
    let mut worst = Outcome::Same;
    for compared in found {
        match (outcome(&compared.file, &compared.drift), &worst) {
            (Outcome::Changed, _) => return Outcome::Changed,
            (Outcome::Same, _) | (_, Outcome::NoTest(_)) => {}
            (other, _) => worst = other,
        }
    }
    worst
}

fn text(first: &Path, baseline: &Sketch, found: &[Compared], thresholds: &Thresholds) -> String {
    let name = |c: &Compared| c.file.display().to_string();
    let width = found.iter().map(|c| name(c).chars().count()).max().unwrap_or(0);
    let mut text = format!(
        "against {}, {} rows\n\n{:width$} {:>12} {:>24} {:>14}  most moved\n",
        first.display(),
        thousands(baseline.counted()),
        "sketch",
        "rows",
        "rows that moved",
        "p-value"
    );
    for compared in found {
        let drift = &compared.drift;
        let most = moved_most(drift);
        let most =
            most.map_or(String::new(), |(what, z)| format!("{} (z {z:+.1})", one_line(&what)));
        text.push_str(&format!(
            "{:width$} {:>12} {:>24} {:>14}  {}{most}\n",
            name(compared),
            thousands(drift.rows[1]),
            drift.moved.map_or("-".to_string(), moved_share),
            drift.p_value.map_or("-".to_string(), |p| p_text(p, drift.least_p_value)),
            if drift.drift == Some(true) { "DRIFT  " } else { "       " },
        ));
    }
    let called = found.iter().filter(|c| c.drift.drift == Some(true)).count();
    let level = thresholds.params.level;
    text.push_str(&format!(
        "\n{called} of {} differ; at most {} % are expected to be false alarms\n",
        found.len(),
        short(100.0 * level)
    ));
    if let Some(tolerance) = thresholds.params.tolerance {
        let beyond = |c: &&Compared| c.drift.verdict == Some(Verdict::Changed);
        let beyond = found.iter().filter(beyond).count();
        text.push_str(&format!(
            "in {beyond} more than {} % of the rows moved\n",
            short(100.0 * tolerance)
        ));
    }
    if let Some(why) = found.iter().find_map(|c| c.drift.no_test.as_deref()) {
        text.push_str(&format!("no p-value: {why}\n"));
    }
    text
}
