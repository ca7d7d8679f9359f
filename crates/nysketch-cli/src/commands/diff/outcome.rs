//! Shared by all comparisons: outcomes, output checks, column checks.

use super::metrics::Metrics;
use super::thresholds::Thresholds;
use crate::args::{Common, Diff};
use crate::kind::Kind;
use crate::output::{Usage, note};
use crate::writing::check_output;
use anyhow::Result;
use nysketch::Sketch;
use nysketch::drift::Verdict;
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// The outcome of a comparison, for `--exit-code`.
pub enum Outcome {
    Same,
    Changed,
    /// The interval contains the tolerance.
    CannotTell,
    /// No test was possible, for this reason.
    NoTest(String),
}

impl Outcome {
    pub fn of(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Same => Outcome::Same,
            Verdict::Changed => Outcome::Changed,
            Verdict::CannotTell => Outcome::CannotTell,
        }
    }

    pub fn changed(changed: bool) -> Self {
        if changed { Outcome::Changed } else { Outcome::Same }
    }
}

/// Refuses outputs that cannot be written, before the work starts.
pub fn check_outputs<'a>(
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

/// Notes if the number of draws is too small to show a p-value at the level.
pub fn note_draws(thresholds: &Thresholds, least: f64, common: &Common) {
    let (draws, level) = (thresholds.params.draws, thresholds.params.level);
    if level < least - 1e-9 {
        let message = format!(
            "{draws} draws cannot show a p-value below {least}: no drift will be found at {level}"
        );
        note(common, &message);
    }
}

/// Checks that two sketches have the same columns. Different columns are the usual reason for
/// different plans, and they are easier to explain.
pub fn check_columns(a: &Sketch, b: &Sketch, first: &Path, second: &Path) -> Result<()> {
    let (ours, theirs) = (&a.plan().columns, &b.plan().columns);
    if ours == theirs {
        return Ok(());
    }
    let missing = |from: &[String], of: &[String]| {
        let known: HashSet<&String> = from.iter().collect();
        let names: Vec<&str> =
            of.iter().filter(|c| !known.contains(c)).map(String::as_str).take(5).collect();
        if names.is_empty() { "none".to_string() } else { names.join(", ") }
    };
    Err(Usage(format!(
        "{} and {} have different columns (only in the first: {}; only in the second: {}); sketch \
         both with one plan",
        first.display(),
        second.display(),
        missing(theirs, ours),
        missing(ours, theirs)
    ))
    .into())
}

/// Returns the paths of files, for checks.
pub fn paths(files: &[PathBuf]) -> impl Iterator<Item = &Path> + Clone {
    files.iter().map(PathBuf::as_path)
}
