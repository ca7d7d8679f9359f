//! `--checkpoint`: saves progress at intervals; `--resume` continues from it.
//!
//! The file contains one line of JSON (options, inputs, ranges of rows done), the bytes of the
//! sketch so far, and a CRC-32 of both. Only this program reads it. It is removed at the end.

use crate::args::{Common, InputArgs, SketchArgs};
use crate::kind::Kind;
use crate::output::{Usage, warn};
use crate::writing::{check_output, keep_bytes};
use anyhow::{Context, Result, bail};
use nysketch::rows::Losses;
use nysketch::{Error, Progress, RowSet, Run, Sketch, SketchParams};
use nysketch_tables::store::Local;
use nysketch_tables::{Dataset, Stamp};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The inputs of a run apart from the plan, and its progress.
#[derive(Debug, Serialize, Deserialize)]
struct Header {
    nysketch_checkpoint: u32,
    options: String,
    inputs: Vec<Identity>,
    /// Ranges of rows in the sketch, numbered over all files from 0.
    done: Vec<(u64, u64)>,
    #[serde(default)]
    losses: Losses,
}

const VERSION: u32 = 1;

/// Path, size and modification time of a file.
pub type Identity = (String, u64, u128);

fn identity(stamp: Stamp) -> Identity {
    (stamp.path, stamp.bytes, stamp.modified)
}

/// The path of a checkpoint, and everything that must be unchanged to continue from it.
pub struct Checkpoint<'a> {
    path: &'a Path,
    every: Duration,
    options: String,
    stdin: bool,
    inputs: Vec<&'a PathBuf>,
    /// Files on which the plan depends.
    plan_files: Vec<&'a PathBuf>,
}

/// A checkpoint that was read.
pub struct Saved {
    pub run: Run,
    path: PathBuf,
    inputs: Vec<Identity>,
}

impl Saved {
    /// Refuses inputs that differ from the inputs of the checkpoint.
    pub fn check_inputs(&self, now: &[Identity]) -> Result<()> {
        let path = self.path.display();
        if now.iter().map(|f| &f.0).ne(self.inputs.iter().map(|f| &f.0)) {
            bail!(
                "the checkpoint {path} is of other files; name the same files, or delete it to \
                 start again"
            );
        }
        if let Some((changed, _)) = now.iter().zip(&self.inputs).find(|(a, b)| a != b) {
            bail!(
                "{} has changed since the checkpoint was saved; delete {path} to start again",
                changed.0
            );
        }
        Ok(())
    }
}

impl<'a> Checkpoint<'a> {
    pub fn new(path: &'a Path, args: &'a SketchArgs) -> Self {
        // The options, except those that may differ between runs.
        let InputArgs { format, no_header, header, delimiter, skip_invalid, .. } = &args.input;
        let input = (format, no_header, header, delimiter, skip_invalid);
        let plan = (&args.plan_file, args.embed_witnesses, &args.plan);
        let folds = (args.folds, &args.fold_by);
        let options = format!("{input:?} {:?} {plan:?} {folds:?}", args.columns);
        let stdin = args.input.input.iter().any(|p| p == Path::new("-"));
        let inputs = args.input.input.iter().chain([&args.output]).chain(&args.plan_file).collect();
        let plan_files = args.plan_file.iter().chain(&args.plan.landmarks_from).collect();
        Checkpoint { path, every: args.checkpoint_every, options, stdin, inputs, plan_files }
    }

    /// Reads the checkpoint to continue from. Returns `None` if the work starts from the beginning.
    pub fn load(&self, resume: bool, common: &Common) -> Result<Option<Saved>> {
        let name = self.path.display();
        if self.stdin {
            let message = "stdin cannot be read again, so --checkpoint needs files";
            return Err(Usage(message.into()).into());
        }
        let inputs = self.inputs.iter().map(|p| p.as_path());
        check_output(common, self.path, Kind::Checkpoint, inputs)?;
        if !self.path.exists() {
            return Ok(None);
        }
        if !resume {
            bail!(
                "{name} exists; if it is the checkpoint of this run, continue from it with --resume"
            );
        }
        let bytes = std::fs::read(self.path).with_context(|| format!("cannot read {name}"))?;
        let (header, sketch) = decode(&bytes).with_context(|| {
            format!("{name} is not a complete checkpoint; delete it to start again")
        })?;
        if header.options != self.options {
            bail!(
                "the checkpoint {name} was made with other options; use the same options, or \
                 delete it to start again"
            );
        }
        let done = RowSet::new(header.done.iter().map(|(a, b)| *a..*b));
        // A private sketch does not record how many rows were skipped.
        let skipped = match sketch.plan().private {
            None => sketch.skipped(),
            Some(_) => header.losses.skipped(),
        };
        let counted = sketch.rows() + skipped;
        if sketch.plan().weighting.is_none() && counted != done.len() {
            bail!(
                "{name} is damaged: its sketch has {counted} rows, but {} were read; delete it to \
                 start again",
                done.len()
            );
        }
        let run = Run::resume(sketch, done).with_losses(header.losses);
        Ok(Some(Saved { run, path: self.path.to_path_buf(), inputs: header.inputs }))
    }

    /// Returns path, size and modification time of every file on which the sketch depends.
    pub fn identity(&self, input: &Dataset) -> Result<Vec<Identity>> {
        let mut all: Vec<Identity> = input.stamps().into_iter().map(identity).collect();
        for path in &self.plan_files {
            all.push(identity(Stamp::of(&Local, path)?));
        }
        Ok(all)
    }

    /// Reads the remaining rows and saves at intervals.
    pub fn finish(
        &self,
        run: &mut Run,
        input: &Dataset,
        params: SketchParams,
        progress: &dyn Progress,
    ) -> Result<()> {
        let inputs = self.identity(input)?;
        let save = |run: &Run| -> nysketch::Result<()> {
            let bytes = self.encode(run, &inputs).map_err(Error::source)?;
            keep_bytes(self.path, &bytes).map_err(|e| Error::source(format!("{e:#}")))
        };
        // Saves at once, so that the plan need not be made again.
        save(run)?;
        match run.finish_saving(input, params, progress, self.every, save) {
            Err(Error::Cancelled) => {
                bail!("stopped before the end; run the same command with --resume to continue")
            }
            Err(error) if error.is_of_device() => {
                let saved = "progress up to the last checkpoint is saved; run the same command \
                    with --resume to continue, on this device or another";
                warn(saved);
                Err(error.into())
            }
            other => Ok(other?),
        }
    }

    /// Removes the checkpoint when the work is done.
    pub fn remove(&self) {
        // A checkpoint that cannot be removed does no harm: its run has ended.
        let _ = std::fs::remove_file(self.path);
    }

    fn encode(&self, run: &Run, inputs: &[Identity]) -> serde_json::Result<Vec<u8>> {
        let header = Header {
            nysketch_checkpoint: VERSION,
            options: self.options.clone(),
            inputs: inputs.to_vec(),
            done: run.done().ranges().iter().map(|r| (r.start, r.end)).collect(),
            losses: run.losses().clone(),
        };
        let mut bytes = serde_json::to_vec(&header)?;
        bytes.push(b'\n');
        bytes.extend(run.sketch().to_bytes());
        bytes.extend(crc32fast::hash(&bytes).to_le_bytes());
        Ok(bytes)
    }
}

fn decode(bytes: &[u8]) -> Result<(Header, Sketch)> {
    let (body, crc) = bytes.split_last_chunk::<4>().context("it is too short")?;
    if crc32fast::hash(body).to_le_bytes() != *crc {
        bail!("its checksum is wrong");
    }
    let line = memchr::memchr(b'\n', body).context("it has no header")?;
    let header: Header =
        serde_json::from_slice(&body[..line]).context("its header is not valid")?;
    if header.nysketch_checkpoint != VERSION {
        bail!("it has another version");
    }
    Ok((header, Sketch::from_bytes(&body[line + 1..])?))
}
