//! Commands that make sketches from rows and from other sketches.

use super::values::seconds;
use super::{ColumnArgs, DeviceArg, InputArgs, PlanOptions};
use clap::Args as ClapArgs;
use nysketch::sketching::DEFAULT_GROUPS;
use std::path::PathBuf;

/// Compress rows into a sketch, in one pass.
///
/// With --plan, the rows are measured as that plan says. Without it, a plan is made from the rows
/// first, with the options of 'nysketch plan'. The file then holds the witness rows of the plan; with --plan or --by it
/// only says which they are, and 'nysketch fit' finds them in the plan's file.
#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  nysketch sketch x.parquet -o s.nys
  nysketch sketch 'days/*.parquet' --plan p.nys -o days.nys
  cat day2.csv | nysketch sketch - --plan p.nys -o day2.nys
  nysketch sketch sales.csv --by country -o countries/
  nysketch sketch sales.csv --folds 16 --fold-by customer -o s.nys
  nysketch sketch days/ --plan p.nys -o all.nys --checkpoint all.ckpt --resume
  nysketch sketch flights.csv -o flights.nys --dates when --exclude flight

JSON fields: file, rows, skipped, skipped_by_column, complete, columns, roles [{column, role, numbers, missing, levels
  [{level, share}], mean, deviation, transformation}], features, kernel, landmarks, frequencies, sampling, bandwidths,
  collect, witnesses, witnesses_digest, fingerprint, raw_rows, bytes, seconds; with --folds also folds {count, by,
  smallest, largest}; with --by also plan, without_group and groups [{value, file, rows, skipped}]")]
pub struct SketchArgs {
    #[command(flatten)]
    pub input: InputArgs,
    #[command(flatten)]
    pub columns: ColumnArgs,
    /// File to write; with --by, a new folder, with the plan as plan.nys unless --plan names it
    #[arg(short, long, value_name = "FILE", aliases = ["out", "output-file"])]
    pub output: PathBuf,
    /// Use this plan, or the plan of this sketch
    #[arg(long = "plan", value_name = "PLAN|SKETCH", conflicts_with_all = ["landmarks", "clusters", "sampling",
        "landmarks_from", "leverage_lambda", "features", "kernel", "frequencies", "bandwidth", "scale", "sample_rows",
        "witnesses", "collect", "weights", "seed", "columns", "exclude", "categorical", "numeric", "dates", "log",
        "weight_column", "unit"])]
    pub plan_file: Option<PathBuf>,
    /// Write the plan's witness rows into the sketch also with --plan or --by
    #[arg(long)]
    pub embed_witnesses: bool,
    /// Write an empty sketch if the input has no rows, instead of stopping
    #[arg(long, requires = "plan_file")]
    pub allow_empty: bool,
    /// Make one sketch per value of this column, all with the same plan
    #[arg(long, value_name = "COLUMN")]
    pub by: Option<String>,
    /// Largest number of values of that column; each takes the memory of a sketch
    #[arg(long, value_name = "N", default_value_t = DEFAULT_GROUPS, requires = "by")]
    pub max_groups: usize,
    /// Also keep the sums of this many folds, 2 to 64, which 'fit --intervals' and 'fit --cross-validate' need; the sums
    /// take that many times the space
    #[arg(long, value_name = "F")]
    pub folds: Option<u32>,
    /// Deal rows to folds by this column, so that rows with the same value, such as those of one user, share a fold
    /// [default: by their own values, so that equal rows do]
    #[arg(long, value_name = "COLUMN", requires = "folds", conflicts_with = "by")]
    pub fold_by: Option<String>,
    /// Save progress in this file at intervals; it is removed at the end
    #[arg(long, value_name = "FILE", conflicts_with_all = ["by", "allow_empty"])]
    pub checkpoint: Option<PathBuf>,
    /// Seconds between two checkpoints
    #[arg(long, value_name = "S", default_value = "30", requires = "checkpoint", value_parser = seconds)]
    pub checkpoint_every: std::time::Duration,
    /// Continue from the checkpoint if there is one; the result has the same bytes as without a stop
    #[arg(long, requires = "checkpoint")]
    pub resume: bool,
    #[command(flatten)]
    pub device: DeviceArg,
    #[command(flatten)]
    pub plan: PlanOptions,
}

/// Add sketches of the same plan.
///
/// The result has the bytes of one sketch of all their rows. The order does not matter. Sketches of different plans are refused.
/// Masked sketches are added up if they are all those of one session; the result is a plain sketch.
#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  nysketch merge day1.nys day2.nys -o week.nys
  nysketch merge site-*.nys -o all.nys
  nysketch merge days/ -o year.nys
  nysketch merge masked/ --parties keys.toml -o everyone.nys

JSON fields: file, rows, skipped, fingerprint, bytes; of masked sketches also session, parties, parties_fingerprint")]
pub struct Merge {
    /// Sketches to add, or folders of them (.nys)
    #[arg(required = true, value_name = "SKETCH")]
    pub input: Vec<PathBuf>,
    /// Count rows twice where two sketches hold the same sums, instead of refusing
    #[arg(long)]
    pub allow_duplicates: bool,
    /// Leave out the sums of folds, so that sketches with different folds, or none, can be added
    #[arg(long)]
    pub drop_folds: bool,
    /// No person has rows in two of the sketches, whose plan protects people: noise need not grow with their number. Nothing
    /// can check it
    #[arg(long)]
    pub disjoint_people: bool,
    /// List of the parties of masked sketches: to name those that are missing, and to check that this is the list they used
    #[arg(long, value_name = "FILE")]
    pub parties: Option<PathBuf>,
    /// File to write
    #[arg(short, long, value_name = "FILE", aliases = ["out", "output-file"])]
    pub output: PathBuf,
}

/// Subtract the rows of one sketch from another.
///
/// The result has the bytes of a sketch that never held them. Sums cannot prove that the rows were in the first sketch; a
/// result that no rows can have is refused. A ledger of this user records each subtraction. It refuses to subtract the same
/// sketch from the result again, also after further subtractions, but not after a merge. It holds digests, which are a trace of
/// deleted rows; --no-ledger neither reads nor writes it.
#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  nysketch subtract week.nys day1.nys -o rest.nys

JSON fields: file, rows, skipped, fingerprint, bytes")]
pub struct Subtract {
    /// Sketch to subtract from
    #[arg(value_name = "A")]
    pub from: PathBuf,
    /// Sketch of the rows to subtract
    #[arg(value_name = "B")]
    pub what: PathBuf,
    /// Leave out the sums of folds, so that a sketch with other folds, or none, can be subtracted
    #[arg(long)]
    pub drop_folds: bool,
    /// Subtract once more a sketch that the ledger knows as subtracted, because its rows are in the first sketch twice
    #[arg(long)]
    pub again: bool,
    /// Leave the ledger out: repeated subtractions are not refused and this one is not recorded
    #[arg(long, conflicts_with = "again")]
    pub no_ledger: bool,
    /// File to write
    #[arg(short, long, value_name = "FILE", aliases = ["out", "output-file"])]
    pub output: PathBuf,
}
