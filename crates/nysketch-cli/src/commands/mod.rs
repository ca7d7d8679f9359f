//! The commands, one file each. `files` reads the inputs that several of them share.

mod checkpoint;
mod demo;
mod diff;
mod evaluate;
mod files;
mod fit;
mod generate;
mod groups;
mod help;
mod inspect;
mod keys;
mod mask;
mod merge;
mod parties;
mod plan;
mod predict;
mod private_plan;
mod privatize;
mod releases;
mod report;
mod sketch;
mod statement;
mod witnesses;

use crate::args::{Args, Command};
use anyhow::Result;

/// Runs the parsed command and returns the exit code.
pub fn run(args: &Args) -> Result<u8> {
    let common = &args.common;
    nysketch::work::allow(common.max_work);
    let done = match &args.command {
        Command::Demo(a) => demo::run(a, common),
        Command::Generate(a) => generate::run(a, common),
        Command::Plan(a) if a.private.private => private_plan::run(a, common),
        Command::Plan(a) => plan::run(a, common),
        Command::Sketch(a) => sketch::run(a, common),
        Command::Privatize(a) => privatize::run(a, common),
        Command::Merge(a) => merge::merge(a, common),
        Command::Subtract(a) => merge::subtract(a, common),
        Command::Mask(a) => mask::run(a, common),
        Command::Keys(a) => keys::run(a, common),
        Command::Inspect(a) => inspect::run(a, common),
        Command::Fit(a) => fit::run(a, common),
        Command::Diff(a) => return diff::run(a, common),
        Command::Report(a) => report::run(a, common),
        Command::Predict(a) => predict::run(a, common),
        Command::Evaluate(a) => evaluate::run(a, common),
        Command::Completions(a) => help::completions(a),
        Command::Man(a) => help::man(a),
    };
    done.map(|()| 0)
}

impl Command {
    /// Returns the exit code for errors other than usage errors.
    pub fn failure(&self) -> u8 {
        match self {
            Command::Diff(diff) if diff.exit_code => 3,
            _ => 1,
        }
    }
}
