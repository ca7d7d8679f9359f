//! Reads plans, sketches and models from files. An error about a file of another kind names that
//! kind.

use super::releases::tell_noise;
use crate::args::Common;
use crate::kind::Kind;
use crate::output::note;
use anyhow::{Context, Result, anyhow, bail};
use nysketch::format::{self, decode};
use nysketch::masking::Masked;
use nysketch::privacy::Release;
use nysketch::{Model, Plan, Sketch};
use nysketch_tables::natural_path_order;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Returns the error for a file of another kind than the command needs.
fn wrong(path: &Path, wanted: &str, there: Kind) -> anyhow::Error {
    let name = path.display();
    let remedy = there.remedy(path).map_or(String::new(), |remedy| format!("; {remedy}"));
    match there {
        Kind::Other | Kind::Empty => anyhow!("{name} is not {wanted}: it is {}", there.name()),
        _ => anyhow!("{name} is {}, not {wanted}{remedy}", there.name()),
    }
}

/// Reads a file if its first bytes are of the required kind; other files are not read to the end.
fn read(path: &Path, wanted: &str, fits: impl Fn(Kind) -> bool) -> Result<Vec<u8>> {
    let name = path.display();
    let there = Kind::of(path).with_context(|| format!("cannot read {name}"))?;
    // For a damaged file, the reader's own error names the broken rule.
    if !fits(there) && there != Kind::Damaged {
        return Err(wrong(path, wanted, there));
    }
    std::fs::read(path).with_context(|| format!("cannot read {name}"))
}

/// Reads a plan, a sketch or a release, and returns it with the size of its file.
pub fn read_any(path: &Path) -> Result<(format::File, usize)> {
    let ours = |kind| matches!(kind, Kind::Plan | Kind::Sketch | Kind::Release);
    let bytes = read(path, "a plan, a sketch or a release", ours)?;
    let file = decode(&bytes).with_context(|| path.display().to_string())?;
    Ok((file, bytes.len()))
}

/// Reads a plan, or the plan of a sketch.
pub fn read_plan(path: &Path) -> Result<Arc<Plan>> {
    Ok(match read_any(path)?.0 {
        format::File::Plan(plan) => plan,
        format::File::Sketch(sketch) => sketch.plan().clone(),
        format::File::Release(release) => release.plan().clone(),
        format::File::Masked(masked) => masked.plan().clone(),
    })
}

/// Reads sums for learning: a sketch, or the reconstruction from a release.
pub fn read_sums(path: &Path) -> Result<Sketch> {
    if Kind::of(path).is_ok_and(|kind| kind == Kind::Release) {
        let release = read_release(path)?;
        tell_noise(&release);
        return release.estimate().with_context(|| path.display().to_string());
    }
    read_sketch(path)
}

pub fn read_release(path: &Path) -> Result<Release> {
    let bytes = read(path, "a release", |kind| kind == Kind::Release)?;
    Release::from_bytes(&bytes).with_context(|| path.display().to_string())
}

pub fn read_sketch(path: &Path) -> Result<Sketch> {
    let bytes = read(path, "a sketch", |kind| kind == Kind::Sketch)?;
    Sketch::from_bytes(&bytes).with_context(|| path.display().to_string())
}

/// Reads a masked sketch, and returns it with the size of its file.
pub fn read_masked(path: &Path) -> Result<(Masked, usize)> {
    let bytes = read(path, "a masked sketch", |kind| kind == Kind::Masked)?;
    let masked = Masked::from_bytes(&bytes).with_context(|| path.display().to_string())?;
    Ok((masked, bytes.len()))
}

pub fn read_model(path: &Path) -> Result<Model> {
    let bytes = read(path, "a model", |kind| matches!(kind, Kind::Model | Kind::Json))?;
    let Ok(text) = String::from_utf8(bytes) else {
        bail!("{} is not a model: it is not text", path.display());
    };
    Model::from_json(&text).with_context(|| path.display().to_string())
}

/// Returns the given files and the sketches in the given folders, sorted by name within each
/// folder. Plans and the baseline are left out of folders.
pub fn sketch_files(
    paths: &[PathBuf],
    baseline: Option<&Path>,
    common: &Common,
) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for path in paths {
        if !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        let name = path.display();
        let entries = std::fs::read_dir(path).with_context(|| format!("cannot read {name}"))?;
        let mut inside = Vec::new();
        for entry in entries {
            let file = entry.with_context(|| format!("cannot read {name}"))?.path();
            if file.extension().is_none_or(|e| e != "nys") {
                continue;
            }
            let is_baseline = baseline.is_some_and(|b| nysketch::file::same(b, &file));
            if is_baseline || Kind::of(&file).is_ok_and(|kind| kind == Kind::Plan) {
                let what = if is_baseline { "the baseline" } else { "a plan" };
                note(common, &format!("{} is left out: it is {what}", file.display()));
                continue;
            }
            inside.push(file);
        }
        if inside.is_empty() {
            bail!("the folder {name} has no sketches (.nys)");
        }
        inside.sort_by(|a, b| natural_path_order(a, b));
        files.extend(inside);
    }
    Ok(files)
}

/// Returns the name of a file without its folder and extension.
pub fn stem(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}
