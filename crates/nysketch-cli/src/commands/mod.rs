//! One file per command.

mod checkpoint;
mod demo;
mod diff;
mod evaluate;
mod fit;
mod generate;
mod groups;
mod help;
mod inspect;
mod merge;
mod plan;
mod predict;
mod report;
mod reproduce;
mod sketch;

use crate::args::{Args, Command};
use anyhow::{Context, Result, bail};
use nysketch::{Plan, Sketch};
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

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
        Command::Fit(a) => fit::run(a, common),
        Command::Diff(a) => diff::run(a, common),
        Command::Report(a) => report::run(a, common),
        Command::Reproduce(a) => reproduce::run(a, common),
        Command::Predict(a) => predict::run(a, common),
        Command::Evaluate(a) => evaluate::run(a, common),
        Command::Completions(a) => help::completions(a),
        Command::Man(a) => help::man(a),
    }
}

/// The bytes of a plan or sketch file. Files that cannot be one are not read to the end.
fn read_bytes(path: &Path) -> Result<Vec<u8>> {
    let name = path.display();
    let mut file = File::open(path).with_context(|| format!("cannot read {name}"))?;
    if !file.metadata().with_context(|| format!("cannot read {name}"))?.is_file() {
        bail!("cannot read {name}: it is not a file");
    }
    let mut bytes = Vec::new();
    let start = (&mut file)
        .take(9)
        .read_to_end(&mut bytes)
        .with_context(|| format!("cannot read {name}"))?;
    // Eight bytes of length, of which the upper four are zero, and a brace.
    if start < 9 || bytes[4..] != *b"\0\0\0\0{" {
        bail!("{name}: not a nysketch file");
    }
    file.read_to_end(&mut bytes).with_context(|| format!("cannot read {name}"))?;
    Ok(bytes)
}

/// A plan, or the plan of a sketch.
fn read_plan(path: &Path) -> Result<Arc<Plan>> {
    let bytes = read_bytes(path)?;
    let plan = Plan::from_bytes(&bytes).map(Arc::new);
    plan.or_else(|error| match Sketch::from_bytes(&bytes) {
        Ok(sketch) => Ok(sketch.plan().clone()),
        Err(_) => Err(error).with_context(|| path.display().to_string()),
    })
}

fn read_model(path: &Path) -> Result<nysketch::Model> {
    let name = path.display();
    let bytes = std::fs::read(path).with_context(|| format!("cannot read {name}"))?;
    let Ok(text) = String::from_utf8(bytes) else {
        bail!("{name} is not a model; models are JSON files that 'nysketch fit' writes");
    };
    nysketch::Model::from_json(&text).with_context(|| path.display().to_string())
}

fn read_sketch(path: &Path) -> Result<nysketch::Sketch> {
    nysketch::Sketch::from_bytes(&read_bytes(path)?).with_context(|| path.display().to_string())
}
