//! `nysketch diff`: compares two sketches of one plan, many with one, or a day with other days, and
//! finds the segments that explain a change.

mod days;
mod metrics;
mod outcome;
mod pair;
mod segments;
mod series;
mod thresholds;

use crate::args::{Common, Diff};
use crate::output::{Usage, is_broken_pipe};
use anyhow::Result;
use outcome::Outcome;
use thresholds::Thresholds;

/// Compares and returns the exit code: with `--exit-code`, 1 if a change was found.
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
        return Err(Usage("--same-weekday needs --baseline or --watch".into()).into());
    }
    if days && args.tolerance.is_some() {
        let message = "--tolerance needs two sketches or --against; --baseline and --watch compare \
            days with each other";
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
        // The exit code is correct even if the reader of stdout closed it early.
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
