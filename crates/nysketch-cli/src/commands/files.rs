//! Plans, sketches and models from their files.

use anyhow::{Context, Result, bail};
use nysketch::format::{self, START, decode, may_be_file};
use nysketch::{Model, Plan, Sketch};
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

/// The bytes of a plan or sketch file. Files that cannot be one are not read to the end.
pub fn read_bytes(path: &Path) -> Result<Vec<u8>> {
    let name = path.display();
    let mut file = File::open(path).with_context(|| format!("cannot read {name}"))?;
    if !file.metadata().with_context(|| format!("cannot read {name}"))?.is_file() {
        bail!("cannot read {name}: it is not a file");
    }
    let mut bytes = Vec::new();
    (&mut file)
        .take(START as u64)
        .read_to_end(&mut bytes)
        .with_context(|| format!("cannot read {name}"))?;
    if !may_be_file(&bytes) {
        bail!("{name}: not a nysketch file");
    }
    file.read_to_end(&mut bytes).with_context(|| format!("cannot read {name}"))?;
    Ok(bytes)
}

/// A plan, or the plan of a sketch.
pub fn read_plan(path: &Path) -> Result<Arc<Plan>> {
    let read = decode(&read_bytes(path)?).with_context(|| path.display().to_string())?;
    Ok(match read {
        format::File::Plan(plan) => plan,
        format::File::Sketch(sketch) => sketch.plan().clone(),
    })
}

/// A model.
pub fn read_model(path: &Path) -> Result<Model> {
    let name = path.display();
    let bytes = std::fs::read(path).with_context(|| format!("cannot read {name}"))?;
    let Ok(text) = String::from_utf8(bytes) else {
        bail!("{name} is not a model; models are JSON files that 'nysketch fit' writes");
    };
    Model::from_json(&text).with_context(|| path.display().to_string())
}

/// A sketch.
pub fn read_sketch(path: &Path) -> Result<Sketch> {
    Sketch::from_bytes(&read_bytes(path)?).with_context(|| path.display().to_string())
}
