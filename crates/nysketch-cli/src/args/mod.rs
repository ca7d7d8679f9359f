//! The command line. These structs only store the parsed arguments.

mod experiments;
mod help;
mod learning;
mod planning;
mod privacy;
mod rows;
mod showing;
mod sketching;
mod values;

use clap::{Args as ClapArgs, Parser, Subcommand};
pub use experiments::{Demo, Generate};
pub use help::{Completions, Man};
pub use learning::{Evaluate, FitArgs, Predict};
pub use planning::{PlanArgs, PlanOptions};
pub use privacy::{Keys, KeysCommand, Mask, Privatize};
pub use rows::{ColumnArgs, DateArg, DeviceArg, InputArgs, MissingArg};
pub use showing::{Diff, Inspect, ReportArgs};
pub use sketching::{Merge, SketchArgs, Subtract};
use values::factor;

/// Compress a table of any size, in one pass, into one small file: the sketch.
///
/// A sketch contains exact sums over the rows. Sketches of parts merge, in any order, to the same
/// bytes as a sketch of the whole, and parts can be subtracted again.
#[derive(Debug, Parser)]
#[command(name = "nysketch", version, max_term_width = 100)]
pub struct Args {
    #[command(subcommand)]
    pub command: Command,
    #[command(flatten)]
    pub common: Common,
}

/// More threads than this only take memory.
const THREADS_PER_CORE: usize = 8;

/// Options of every command.
#[derive(Debug, Clone, ClapArgs)]
pub struct Common {
    /// Print one JSON object on stdout, errors included
    #[arg(long, global = true)]
    pub json: bool,
    /// Number of threads, at most 8 per core; results do not depend on it [default: one per core]
    #[arg(hide_short_help = true, long, global = true, value_name = "N",
        value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,
    /// Replace an existing output of another kind; inputs, keys and ledgers are never replaced
    #[arg(hide_short_help = true, long, global = true)]
    pub force: bool,
    /// Allow this multiple of the limit of work and memory (2e12 operations, 2 GB)
    #[arg(hide_short_help = true,
        long,
        global = true,
        value_name = "FACTOR",
        default_value_t = 1.0,
        hide_default_value = true,
        value_parser = factor
    )]
    pub max_work: f64,
    /// Print no progress and no notes on stderr
    #[arg(short, long, global = true)]
    pub quiet: bool,
    /// Print more notes on stderr
    #[arg(hide_short_help = true, short, long, global = true, conflicts_with = "quiet")]
    pub verbose: bool,
}

impl Common {
    /// The number of threads.
    pub fn threads(&self) -> usize {
        let cores = std::thread::available_parallelism().map_or(1, |n| n.get());
        self.threads.map_or(cores, |n| usize::from(n).min(THREADS_PER_CORE * cores))
    }
}

#[derive(Debug, Subcommand)]
pub enum Command {
    Demo(Demo),
    Generate(Generate),
    Plan(PlanArgs),
    Sketch(SketchArgs),
    Privatize(Privatize),
    Merge(Merge),
    Subtract(Subtract),
    Mask(Mask),
    Keys(Keys),
    Inspect(Inspect),
    Fit(FitArgs),
    Predict(Predict),
    Evaluate(Evaluate),
    Diff(Diff),
    Report(ReportArgs),
    Completions(Completions),
    Man(Man),
}
