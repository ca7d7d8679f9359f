//! Which sketches hold the witness rows of their plan, and where to find those of the others: in the plan that was
//! named, or in one beside the sketch.

use super::files::read_plan;
use crate::args::{Common, SketchArgs};
use crate::kind::{Kind, header};
use crate::output::{Usage, note};
use anyhow::{Context, Result, bail};
use nysketch::{Plan, Sketch};
use nysketch_tables::natural_path_order;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The plan, as it was made or read, and as it goes into sketches: with its witness rows or without.
pub struct Plans {
    pub whole: Arc<Plan>,
    pub sketched: Arc<Plan>,
}

impl Plans {
    /// One sketch of a plan that is nowhere else holds the witness rows; others do where that was asked for.
    pub fn new(args: &SketchArgs, whole: Arc<Plan>) -> Result<Self> {
        if args.embed_witnesses && whole.witness_rows().is_none() {
            let why = match whole.witnesses {
                Some(_) => "are not in that file; give the file that 'nysketch plan' has written",
                None => "do not exist: the plan keeps none",
            };
            return Err(
                Usage(format!("the witness rows that --embed-witnesses asks for {why}")).into()
            );
        }
        let embed = args.embed_witnesses || (args.plan_file.is_none() && args.by.is_none());
        let sketched = match embed || whole.witness_rows().is_none() {
            true => whole.clone(),
            false => Arc::new(whole.without_witness_rows()),
        };
        Ok(Plans { whole, sketched })
    }
}

/// The sketch that was read from `path` with the witness rows of its plan, as far as they can be found: in `named`, in
/// the file itself, or in a plan in the same folder. Notes where they came from, or what is missed without them.
pub fn attach(
    sketch: Sketch,
    path: &Path,
    named: Option<&Path>,
    common: &Common,
) -> Result<Sketch> {
    if let Some(named) = named {
        let plan = read_plan(named)?;
        let sketch = sketch.with_witnesses_of(&plan).with_context(|| path.display().to_string())?;
        if sketch.plan().lacks_witnesses() {
            bail!(
                "{} does not hold the witness rows of its plan; give the file that 'nysketch plan' has written",
                named.display()
            );
        }
        return Ok(sketch);
    }
    if !sketch.plan().lacks_witnesses() {
        return Ok(sketch);
    }
    let Some((found, plan)) = plan_beside(path, sketch.plan()) else {
        note(
            common,
            "the plan of this sketch keeps witness rows that are not in the file; with --plan PLAN, mixtures can be better and have full covariances",
        );
        return Ok(sketch);
    };
    note(common, &format!("witness rows come from {}, the plan of this sketch", found.display()));
    Ok(sketch.with_witnesses_of(&plan)?)
}

/// The first file in the folder of `path` that is this plan, with its witness rows. Other files are passed over.
pub fn plan_beside(path: &Path, plan: &Plan) -> Option<(PathBuf, Arc<Plan>)> {
    let digest = plan.witnesses.as_ref()?.digest();
    let folder = path.parent().unwrap_or(Path::new(""));
    let listed = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let entries = std::fs::read_dir(listed).ok()?.flatten();
    let mut files: Vec<PathBuf> = entries.map(|entry| folder.join(entry.file_name())).collect();
    files.sort_by(|a, b| natural_path_order(a, b));
    let fingerprint = plan.fingerprint();
    files.into_iter().find_map(|file| {
        // The header tells whether the rest is worth reading.
        let header = header(&file).ok()??;
        let says = memchr::memmem::find(&header, digest.as_bytes()).is_some();
        if !says || Kind::of_header(&header) != Kind::Plan {
            return None;
        }
        let plan = read_plan(&file).ok()?;
        (plan.fingerprint() == fingerprint && !plan.lacks_witnesses()).then_some((file, plan))
    })
}
