//! The command and options of planning.

use super::values::{bounds, choices, column_weight, landmark_count, rows_per, sample_rows};
use super::{ColumnArgs, DeviceArg, InputArgs, MissingArg};
use clap::Args as ClapArgs;
use nysketch::{FeatureKind, Kernel, LandmarkCount, SampleRows, Sampling, Scale};
use std::path::PathBuf;

/// What to measure.
#[derive(Debug, Clone, ClapArgs)]
pub struct PlanOptions {
    /// Number of landmarks, or 'auto' to choose it from the data [default: 400, or ten for each of --clusters where that
    /// is more; all different rows where there are fewer]
    #[arg(long, value_name = "M|auto", value_parser = landmark_count, help_heading = "Plan")]
    pub landmarks: Option<LandmarkCount>,
    /// Clusters that will be learned: raises the default number of landmarks to ten per cluster, which centres as good as
    /// those of all rows need
    #[arg(long, value_name = "K", help_heading = "Plan")]
    pub clusters: Option<usize>,
    /// How landmarks are drawn from the rows [default: dsquared]
    #[arg(long, value_name = "RULE", value_parser = choices::<Sampling>(), help_heading = "Plan")]
    pub sampling: Option<Sampling>,
    /// Take the landmarks from this file (same columns) instead of from the rows
    #[arg(long, value_name = "FILE", help_heading = "Plan", conflicts_with_all = ["landmarks", "sampling", "leverage_lambda"])]
    pub landmarks_from: Option<PathBuf>,
    /// λ of leverage sampling, as in the paper; the number of landmarks is then random
    #[arg(long, value_name = "L", help_heading = "Plan")]
    pub leverage_lambda: Option<f64>,
    /// Kernel sums at landmarks, or random Fourier features
    #[arg(long, value_parser = choices::<FeatureKind>(), default_value = "nystrom", help_heading = "Plan")]
    pub features: FeatureKind,
    /// Kernel to sum at landmarks
    #[arg(long, value_parser = choices::<Kernel>(), default_value = "gaussian", help_heading = "Plan")]
    pub kernel: Kernel,
    /// Number of Fourier frequencies (half the number of features) [default: 200]
    #[arg(long, value_name = "M", help_heading = "Plan")]
    pub frequencies: Option<usize>,
    /// Bandwidths σ² in squared units of the (scaled) columns: 'auto' or a list
    #[arg(long, value_name = "auto|S2,S2,…", default_value = "auto", help_heading = "Plan")]
    pub bandwidth: String,
    /// How columns of numbers are scaled [default: none, or standard where there are categories or dates]
    #[arg(long, value_parser = choices::<Scale>(), help_heading = "Plan")]
    pub scale: Option<Scale>,
    /// Columns to measure by their logarithm, sign(x) ln(1 + |x|): skewed amounts. Names, ranges and patterns
    #[arg(long, value_name = "A,B,…", value_delimiter = ',', help_heading = "Plan")]
    pub log: Vec<String>,
    /// How much columns count in squared distances, numbers and categories, as in price=2,colour=0.5
    /// [default: 1, and 2 for categories]
    #[arg(long, value_name = "A=W,…", value_delimiter = ',', value_parser = column_weight, help_heading = "Plan")]
    pub weight_column: Vec<(String, f64)>,
    /// Vectors to scale to length one, row by row: clusters by direction; '*' for all columns of numbers together
    #[arg(long, value_name = "VECTOR,…", value_delimiter = ',', help_heading = "Plan")]
    pub unit: Vec<String>,
    /// What becomes of rows that lack values [default: auto]
    #[arg(long, value_enum, value_name = "RULE", help_heading = "Plan")]
    pub missing: Option<MissingArg>,
    /// Rows to sample for choosing landmarks and bandwidths: a number or 'all' [default: 20000 or four times the landmarks;
    /// above 16.8 million values fewer, down to twice the landmarks]
    #[arg(long, value_name = "N|all", value_parser = sample_rows, help_heading = "Plan")]
    pub sample_rows: Option<SampleRows>,
    /// Rows of the data that the plan keeps, drawn uniformly, which show mixtures the shape of clusters; 0 for none
    /// [default: 20000, or all rows where there are fewer; none where landmarks are given or no cells are kept]
    #[arg(long, value_name = "N", help_heading = "Plan")]
    pub witnesses: Option<usize>,
    /// Sums to keep [default: cells and, up to 4000 landmarks, kernel and, up to 64 columns, moments]
    #[arg(long, value_name = "kernel,cells,moments", value_delimiter = ',', help_heading = "Plan")]
    pub collect: Option<Vec<String>>,
    /// Column of row weights; a row of weight 2 counts as two rows
    #[arg(long, value_name = "COLUMN", help_heading = "Plan")]
    pub weights: Option<String>,
    /// Unit that weights are rounded to [default: 1 for whole numbers, else chosen from the weights]
    #[arg(long, value_name = "U", requires = "weights", help_heading = "Plan")]
    pub weight_unit: Option<f64>,
    /// Seed of all random choices
    #[arg(long, default_value_t = 0, help_heading = "Plan")]
    pub seed: u64,
}

/// Decide what to measure, before sketching the parts of a data set.
///
/// Reads the rows once (twice for 'dsquared' on more rows than the sample) and writes landmarks,
/// bandwidths and scaling to a small file. Landmarks and witnesses are rows of the data; --witnesses 0 leaves out the
/// latter, --landmarks-from both.
///
/// Numbers, true and false are measured as numbers, text of few different values as categories; dates only with
/// --dates, and ids not at all. --show prints what becomes of each column.
#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  nysketch plan x.csv -o p.nys
  nysketch plan days/ -o p.nys --landmarks 200 --scale standard --exclude id
  nysketch plan x.npy -o p.nys --sampling leverage --bandwidth 10,2.5
  nysketch plan x.csv -o p.nys --landmarks auto --clusters 10
  nysketch plan flights.csv --show
  nysketch plan flights.csv -o flights.nys --dates when=hour+weekday --log distance --exclude flight
  nysketch plan flights.csv -o flights.nys --categorical flight --weight-column carrier=0.5
  nysketch plan --private --bounds c0=0..6,c1=0..30 -o private.nys
  nysketch plan --private --public day1.csv --bounds c0=0..6,c1=0..30 -o private.nys
  nysketch plan --private --bounds c0=0..6,c1=0..30 --max-rows-per label=20 -o private.nys

JSON fields: file, rows, skipped, skipped_by_column, columns, roles [{column, type, role, numbers, missing, low, high,
  levels [{level, share}], transformation, left_out}], features, kernel, landmarks, frequencies, sampling, bandwidths,
  collect, witnesses, witnesses_digest, fingerprint, raw_rows, bytes, sample_rows, leverage {lambda, effective_dimension, accuracy,
  accuracy_rows}, notes; with --private also private {bounds [{column, low, high}], radius, spent_rho,
  max_rows_per {column, rows}}")]
#[command(mut_arg("input", |input| input.required(false).required_unless_present("private")))]
pub struct PlanArgs {
    #[command(flatten)]
    pub input: InputArgs,
    #[command(flatten)]
    pub columns: ColumnArgs,
    /// File to write; needed unless --show is given
    #[arg(short, long, value_name = "FILE", aliases = ["out", "output-file"], required_unless_present = "show")]
    pub output: Option<PathBuf>,
    /// Print what becomes of each column: type, role, missing values, levels or range, transformation
    #[arg(long)]
    pub show: bool,
    #[command(flatten)]
    pub device: DeviceArg,
    #[command(flatten)]
    pub plan: PlanOptions,
    #[command(flatten)]
    pub private: PrivateArgs,
}

/// A plan that shows nothing of the rows.
#[derive(Debug, ClapArgs)]
pub struct PrivateArgs {
    /// Make a plan whose sketches can be released with 'nysketch privatize': everything in it is public. Needs the bounds of
    /// every column and takes no INPUT; see docs/PRIVACY.md
    #[arg(long, help_heading = "Private", conflicts_with_all = ["input", "columns", "exclude", "categorical", "numeric",
        "dates", "show", "witnesses", "missing", "weights", "unit", "landmarks_from", "skip_invalid"])]
    pub private: bool,
    /// Columns to measure, each with the values that rows are brought between, as in age=0..120,income=0..1e6
    #[arg(long, value_name = "A=LOW..HIGH,…", value_delimiter = ',', value_parser = bounds, allow_hyphen_values = true,
        help_heading = "Private", requires = "private")]
    pub bounds: Vec<(String, f64, f64)>,
    /// The same from a TOML file, with lines such as age = [0, 120]
    #[arg(
        long,
        value_name = "FILE",
        help_heading = "Private",
        requires = "private",
        conflicts_with = "bounds"
    )]
    pub bounds_from: Option<PathBuf>,
    /// Choose landmarks from these rows, which everybody may see; without them, from all over the bounds
    #[arg(long, value_name = "FILE", help_heading = "Private", requires = "private")]
    pub public: Vec<PathBuf>,
    /// Choose landmarks from what this release of the same rows says: the next round. What it has cost counts in later ones
    #[arg(
        long,
        value_name = "RELEASE",
        help_heading = "Private",
        requires = "private",
        conflicts_with = "public"
    )]
    pub release: Option<PathBuf>,
    /// Protect all rows with the same text in a column together, as those of one person, and let at most K of them count. The
    /// noise grows with K
    #[arg(long, value_name = "COLUMN=K", value_parser = rows_per, help_heading = "Private", requires = "private")]
    pub max_rows_per: Option<(String, u64)>,
    /// How far from its landmark a row counts in the sums of its cell, in (scaled) units [default: farther than 95 % of
    /// the public rows]
    #[arg(long, value_name = "R", help_heading = "Private", requires = "private")]
    pub radius: Option<f64>,
}
