//! `nysketch diff`: how two sketches of one plan differ, many from one, a day from other days; and which segments explain it.

mod days;
mod metrics;
mod pair;
mod segments;
mod series;
mod thresholds;

use crate::args::{Common, Diff};
use crate::kind::Kind;
use crate::output::{Usage, is_broken_pipe, note};
use crate::writing::check_output;
use anyhow::Result;
use metrics::Metrics;
use nysketch::Sketch;
use nysketch::drift::Verdict;
use std::path::{Path, PathBuf};
use thresholds::Thresholds;

/// What a comparison came to, for `--exit-code`.
pub enum Outcome {
    Same,
    Changed,
    /// The interval reaches over what is tolerated.
    CannotTell,
    /// No test was possible, and why.
    NoTest(String),
}

impl Outcome {
    fn of(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Same => Outcome::Same,
            Verdict::Changed => Outcome::Changed,
            Verdict::CannotTell => Outcome::CannotTell,
        }
    }

    fn changed(changed: bool) -> Self {
        if changed { Outcome::Changed } else { Outcome::Same }
    }
}

/// Compares, and returns the exit code: with `--exit-code` 1 where something changed.
pub fn run(args: &Diff, common: &Common) -> Result<u8> {
    let thresholds = Thresholds::of(args)?;
    let ways = [
        ("--against", args.against.is_some()),
        ("--baseline", args.baseline.is_some()),
        ("--watch", args.watch),
        ("--segments", args.segments),
        ("--part-of", args.part_of),
    ];
    let chosen: Vec<&str> = ways.into_iter().filter(|(_, on)| *on).map(|(name, _)| name).collect();
    if let [first, second, ..] = chosen[..] {
        return Err(Usage(format!("{first} and {second} do not go together")).into());
    }
    let days = args.baseline.is_some() || args.watch;
    if !days && args.same_weekday {
        return Err(Usage("--same-weekday goes with --baseline or --watch".into()).into());
    }
    if days && args.tolerance.is_some() {
        let message =
            "--tolerance goes with two sketches or --against: days are compared with each other";
        return Err(Usage(message.into()).into());
    }
    let (outcome, printed) = if let Some(baseline) = &args.baseline {
        days::unusual(args, baseline, &thresholds, common)?
    } else if args.watch {
        days::watch(args, &thresholds, common)?
    } else if args.segments {
        segments::run(args, &thresholds, common)?
    } else if let Some(baseline) = &args.against {
        series::run(args, baseline, &thresholds, common)?
    } else {
        pair::run(args, &thresholds, common)?
    };
    match printed {
        // The exit code is told, also where the reader of stdout has seen enough.
        Err(error) if !is_broken_pipe(&error) => Err(error),
        _ if !args.exit_code => Ok(0),
        _ => match outcome {
            Outcome::Same => Ok(0),
            Outcome::Changed => Ok(1),
            Outcome::CannotTell => Ok(4),
            Outcome::NoTest(why) => anyhow::bail!("{why}"),
        },
    }
}

/// Refuses outputs that cannot be written before the work starts.
fn check_outputs<'a>(
    args: &'a Diff,
    inputs: impl IntoIterator<Item = &'a Path> + Clone,
    common: &Common,
) -> Result<()> {
    if let Some(plot) = &args.plot {
        check_output(common, plot, Kind::by_extension(plot), inputs.clone())?;
        if args.metrics.as_ref() == Some(plot) {
            let name = plot.display();
            return Err(
                Usage(format!("{name} cannot be both the picture and the metrics file")).into()
            );
        }
    }
    let config = args.config.as_deref();
    Metrics::check(args, inputs.into_iter().chain(config), common)
}

/// Says where no draw can show the level.
fn note_draws(thresholds: &Thresholds, common: &Common) {
    let (draws, level) = (thresholds.params.draws, thresholds.params.level);
    let least = 1.0 / (draws + 1) as f64;
    if level < least - 1e-9 {
        let message = format!(
            "{draws} draws cannot show a p-value below {least}: no drift will be found at {level}"
        );
        note(common, &message);
    }
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

/// Paths of files, for checks.
fn paths(files: &[PathBuf]) -> impl Iterator<Item = &Path> + Clone {
    files.iter().map(PathBuf::as_path)
}
