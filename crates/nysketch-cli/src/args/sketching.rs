//! Commands that make sketches from rows and from other sketches.

use super::values::seconds;
use super::{ColumnArgs, DeviceArg, InputArgs, PlanOptions};
use clap::Args as ClapArgs;
use nysketch::sketching::DEFAULT_GROUPS;
use std::path::PathBuf;

/// Compress rows into a sketch, in one pass.
///
/// With --plan, that plan decides the measurement. Without it, a plan is made from the rows first,
/// with the options of 'nysketch plan', and its retained rows are part of the file. With --plan or
/// --by, the file only names the retained rows, and 'nysketch fit' finds them in the plan's file.
#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  nysketch sketch x.parquet -o s.nys
  nysketch sketch 'days/*.parquet' --plan p.nys -o days.nys
  cat day2.csv | nysketch sketch - --plan p.nys -o day2.nys
  nysketch sketch sales.csv --by country -o countries/
  nysketch sketch sales.csv --folds 16 --fold-by customer -o s.nys
  nysketch sketch days/ --plan p.nys -o all.nys --checkpoint all.ckpt --resume
  nysketch sketch flights.csv -o flights.nys --dates when --exclude flight

JSON fields: file, rows, skipped, skipped_by_column, complete, columns, roles [{column, role,
  numbers, missing, levels
  [{level, share}], mean, deviation, transformation}], features, kernel, landmarks, frequencies,
  sampling, bandwidths,
  collect, witnesses, witnesses_digest, fingerprint, raw_rows, bytes, seconds; with --folds also
  folds {count, by,
  smallest, largest}; with --by also plan, without_group and groups [{value, file, rows,
  skipped}]")]
pub struct SketchArgs {
    #[command(flatten)]
    pub input: InputArgs,
    #[command(flatten)]
    pub columns: ColumnArgs,
    /// File to write; with --by, a new folder, which also gets the plan as plan.nys unless --plan
    /// names one
    #[arg(short, long, value_name = "FILE", aliases = ["out", "output-file"])]
    pub output: PathBuf,
    /// Plan to use, or a sketch whose plan to use
    #[arg(long = "plan", value_name = "PLAN|SKETCH", conflicts_with_all = ["landmarks",
        "clusters", "sampling",
        "landmarks_from", "leverage_lambda", "features", "kernel", "frequencies", "bandwidth", "scale", "sample_rows",
        "witnesses", "collect", "weights", "seed", "columns", "exclude", "categorical", "numeric", "dates", "log",
        "weight_column", "unit"])]
    pub plan_file: Option<PathBuf>,
    /// Also write the retained rows of the plan into the sketch with --plan or --by
    #[arg(hide_short_help = true, long)]
    pub embed_witnesses: bool,
    /// Write an empty sketch if the input has no rows, instead of stopping
    #[arg(hide_short_help = true, long, requires = "plan_file")]
    pub allow_empty: bool,
    /// Make one sketch per value of this column, all with the same plan
    #[arg(long, value_name = "COLUMN")]
    pub by: Option<String>,
    /// Largest number of values of that column; each takes the memory of a sketch
    #[arg(hide_short_help = true, long, value_name = "N", default_value_t = DEFAULT_GROUPS,
        requires = "by")]
    pub max_groups: usize,
    /// Also keep the sums of this many folds (2 to 64), for 'fit --intervals' and 'fit
    /// --cross-validate'; the file grows by that factor
    #[arg(long, value_name = "F")]
    pub folds: Option<u32>,
    /// Assign rows to folds by this column, so that rows with the same value share a fold [default:
    /// by all values of the row]
    #[arg(
        hide_short_help = true,
        long,
        value_name = "COLUMN",
        requires = "folds",
        conflicts_with = "by"
    )]
    pub fold_by: Option<String>,
    /// Save progress in this file at intervals; it is removed at the end
    #[arg(hide_short_help = true, long, value_name = "FILE", conflicts_with_all = ["by",
        "allow_empty"])]
    pub checkpoint: Option<PathBuf>,
    /// Seconds between two checkpoints
    #[arg(hide_short_help = true, long, value_name = "S", default_value = "30",
        requires = "checkpoint", value_parser = seconds)]
    pub checkpoint_every: std::time::Duration,
    /// Continue from the checkpoint if it exists; the result has the same bytes as an uninterrupted
    /// run
    #[arg(hide_short_help = true, long, requires = "checkpoint")]
    pub resume: bool,
    #[command(flatten)]
    pub device: DeviceArg,
    #[command(flatten)]
    pub plan: PlanOptions,
}

/// Add sketches of the same plan.
///
/// The result has the bytes of one sketch of all their rows, in any order. Sketches of different
/// plans are refused. Masked sketches are added if they form one complete session; the result is a
/// plain sketch.
#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  nysketch merge day1.nys day2.nys -o week.nys
  nysketch merge site-*.nys -o all.nys
  nysketch merge days/ -o year.nys
  nysketch merge masked/ --parties keys.toml -o everyone.nys

JSON fields: file, rows, skipped, fingerprint, bytes; of masked sketches also session, parties,
  parties_fingerprint")]
pub struct Merge {
    /// Sketches to add, or folders of sketches (.nys)
    #[arg(required = true, value_name = "SKETCH")]
    pub input: Vec<PathBuf>,
    /// Count rows twice if two sketches have equal sums, instead of refusing them
    #[arg(long)]
    pub allow_duplicates: bool,
    /// Leave out the sums of folds, so that sketches with different folds can be added
    #[arg(hide_short_help = true, long)]
    pub drop_folds: bool,
    /// Assert that no person has rows in two of the sketches, so that noise need not grow with
    /// their number; this cannot be checked
    #[arg(hide_short_help = true, long)]
    pub disjoint_people: bool,
    /// List of the parties of masked sketches; missing parties are then named, and the list is
    /// checked
    #[arg(hide_short_help = true, long, value_name = "FILE")]
    pub parties: Option<PathBuf>,
    /// File to write
    #[arg(short, long, value_name = "FILE", aliases = ["out", "output-file"])]
    pub output: PathBuf,
}

/// Subtract the rows of one sketch from another.
///
/// The result has the bytes of a sketch that never contained them. Sums cannot prove that the rows
/// were in the first sketch; an impossible result is refused. A ledger of this user records each
/// subtraction, and the same sketch is not subtracted again from the result, also after further
/// subtractions, but not after a merge. The ledger contains digests, which are a trace of deleted
/// rows; --no-ledger neither reads nor writes it.
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
    /// Leave out the sums of folds, so that a sketch with other folds can be subtracted
    #[arg(hide_short_help = true, long)]
    pub drop_folds: bool,
    /// Subtract a sketch once more although the ledger records it as subtracted, because its rows
    /// are in the first sketch twice
    #[arg(hide_short_help = true, long)]
    pub again: bool,
    /// Neither read nor write the ledger: a repeated subtraction is not refused, and this one is
    /// not recorded
    #[arg(hide_short_help = true, long, conflicts_with = "again")]
    pub no_ledger: bool,
    /// File to write
    #[arg(short, long, value_name = "FILE", aliases = ["out", "output-file"])]
    pub output: PathBuf,
}
