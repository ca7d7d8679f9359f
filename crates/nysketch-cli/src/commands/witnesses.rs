//! Decides which sketches contain the retained rows of their plan, and finds the retained rows of
//! other sketches: in the plan that was named, or in a plan in the same folder.

use super::files::read_plan;
use crate::args::{Common, SketchArgs};
use crate::kind::{Kind, header};
use crate::output::{Usage, note};
use anyhow::{Context, Result, bail};
use nysketch::{Plan, Sketch};
use nysketch_tables::natural_path_order;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The complete plan, and the plan as it is stored in sketches: with its retained rows or without.
pub struct Plans {
    pub whole: Arc<Plan>,
    pub sketched: Arc<Plan>,
}

impl Plans {
    /// Decides whether sketches contain the retained rows: yes if the plan is stored nowhere else
    /// and there is one sketch, or if the user asks for it.
    pub fn new(args: &SketchArgs, whole: Arc<Plan>) -> Result<Self> {
        if args.embed_witnesses && whole.witness_rows().is_none() {
            let why = match whole.witnesses {
                Some(_) => "are not in that file; give the file that 'nysketch plan' has written",
                None => "do not exist: the plan keeps none",
            };
            return Err(
                Usage(format!("the retained rows that --embed-witnesses asks for {why}")).into()
            );
        }
        let embed = args.embed_witnesses || (args.plan_file.is_none() && args.by.is_none());
        let sketched = if embed || whole.witness_rows().is_none() {
            whole.clone()
        } else {
            Arc::new(whole.without_witness_rows())
        };
        Ok(Plans { whole, sketched })
    }
}

/// Adds the retained rows of its plan to the sketch read from `path`, if they can be found: in
/// `named`, in the sketch file itself, or in a plan in the same folder. Notes their source, or the
/// disadvantage of missing them.
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
                "{} does not hold the retained rows of its plan; give the file that 'nysketch \
                 plan' has written",
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
            "the plan of this sketch keeps retained rows that are not in the file; with --plan \
             PLAN, mixtures can be better and have full covariances",
        );
        return Ok(sketch);
    };
    note(common, &format!("retained rows come from {}, the plan of this sketch", found.display()));
    Ok(sketch.with_witnesses_of(&plan)?)
}

/// Returns the first file in the folder of `path` that is this plan with its retained rows. Other
/// files are ignored.
pub fn plan_beside(path: &Path, plan: &Plan) -> Option<(PathBuf, Arc<Plan>)> {
    let digest = plan.witnesses.as_ref()?.digest();
    let folder = path.parent().unwrap_or(Path::new(""));
    let listed = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let entries = std::fs::read_dir(listed).ok()?.flatten();
    let mut files: Vec<PathBuf> = entries.map(|entry| folder.join(entry.file_name())).collect();
    files.sort_by(|a, b| natural_path_order(a, b));
    let fingerprint = plan.fingerprint();
    files.into_iter().find_map(|file| {
        // The header shows whether the file needs to be read.
        let header = header(&file).ok()??;
        let says = memchr::memmem::find(&header, digest.as_bytes()).is_some();
        if !says || Kind::of_header(&header) != Kind::Plan {
            return None;
        }
        let plan = read_plan(&file).ok()?;
        (plan.fingerprint() == fingerprint && !plan.lacks_witnesses()).then_some((file, plan))
    })
}
