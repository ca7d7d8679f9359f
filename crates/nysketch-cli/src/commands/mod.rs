//! One file a command.

mod demo;
mod generate;
mod inspect;
mod merge;
mod plan;
mod sketch;

use crate::args::{Args, Command};
use anyhow::{Context, Result};
use std::path::Path;

/// Runs what was typed.
pub fn run(args: &Args) -> Result<()> {
    let common = &args.common;
    match &args.command {
        Command::Demo(a) => demo::run(a, common),
        Command::Generate(a) => generate::run(a, common),
        Command::Plan(a) => plan::run(a, common),
        Command::Sketch(a) => sketch::run(a, common),
        Command::Merge(a) => merge::merge(a, common),
        Command::Subtract(a) => merge::subtract(a, common),
        Command::Inspect(a) => inspect::run(a, common),
    }
}

/// The bytes of a plan or sketch file.
fn read_bytes(path: &Path) -> Result<Vec<u8>> {
    let metadata =
        std::fs::metadata(path).with_context(|| format!("cannot read {}", path.display()))?;
    if !metadata.is_file() {
        anyhow::bail!("cannot read {}: it is not a file", path.display());
    }
    std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))
}

fn read_sketch(path: &Path) -> Result<nysketch::Sketch> {
    nysketch::Sketch::from_bytes(&read_bytes(path)?).with_context(|| path.display().to_string())
}
