//! The command and options of planning.

use super::values::{bounds, choices, column_weight, landmark_count, rows_per, sample_rows};
use super::{ColumnArgs, DeviceArg, InputArgs, MissingArg};
use clap::Args as ClapArgs;
use nysketch::{FeatureKind, Kernel, LandmarkCount, SampleRows, Sampling, Scale};
use std::path::PathBuf;

/// The measurement.
#[derive(Debug, Clone, ClapArgs)]
pub struct PlanOptions {
    /// Number of landmarks, or 'auto' to choose it from the data [default: 400, or ten per cluster
    /// with --clusters; at most the number of different rows]
    #[arg(long, value_name = "M|auto", value_parser = landmark_count, help_heading = "Plan")]
    pub landmarks: Option<LandmarkCount>,
    /// Number of clusters to be learned later; raises the default number of landmarks to ten per
    /// cluster
    #[arg(long, value_name = "K", help_heading = "Plan")]
    pub clusters: Option<usize>,
    /// Rule for drawing landmarks from the rows [default: dsquared]
    #[arg(hide_short_help = true, long, value_name = "RULE", value_parser = choices::<Sampling>(),
        help_heading = "Plan")]
    pub sampling: Option<Sampling>,
    /// File of landmarks with the same columns; no landmarks are drawn from the rows
    #[arg(hide_short_help = true, long, value_name = "FILE", help_heading = "Plan",
        conflicts_with_all = ["landmarks", "sampling", "leverage_lambda"])]
    pub landmarks_from: Option<PathBuf>,
    /// λ of leverage sampling in the paper; the number of landmarks is then random
    #[arg(hide_short_help = true, long, value_name = "L", help_heading = "Plan")]
    pub leverage_lambda: Option<f64>,
    /// Kernel sums at landmarks, or random Fourier features
    #[arg(hide_short_help = true, long, value_parser = choices::<FeatureKind>(),
        default_value = "nystrom", help_heading = "Plan")]
    pub features: FeatureKind,
    /// Kernel to sum at landmarks
    #[arg(hide_short_help = true, long, value_parser = choices::<Kernel>(),
        default_value = "gaussian", help_heading = "Plan")]
    pub kernel: Kernel,
    /// Number of Fourier frequencies, half the number of features [default: 200]
    #[arg(hide_short_help = true, long, value_name = "M", help_heading = "Plan")]
    pub frequencies: Option<usize>,
    /// Bandwidths σ² in squared units of the (scaled) columns: 'auto' or a list
    #[arg(
        hide_short_help = true,
        long,
        value_name = "auto|S2,S2,…",
        default_value = "auto",
        help_heading = "Plan"
    )]
    pub bandwidth: String,
    /// Scaling of numeric columns [default: none; standard if there are categories or dates]
    #[arg(long, value_parser = choices::<Scale>(), help_heading = "Plan")]
    pub scale: Option<Scale>,
    /// Columns to measure by their logarithm sign(x)·ln(1 + |x|), such as skewed amounts
    #[arg(long, value_name = "A,B,…", value_delimiter = ',', help_heading = "Plan")]
    pub log: Vec<String>,
    /// Weight of columns in squared distances, as in price=2,colour=0.5 [default: 1, and 2 for
    /// categories]
    #[arg(hide_short_help = true, long, value_name = "A=W,…", value_delimiter = ',',
        value_parser = column_weight, help_heading = "Plan")]
    pub weight_column: Vec<(String, f64)>,
    /// Vectors to scale to length one in each row, to cluster by direction; '*' takes all numeric
    /// columns together
    #[arg(
        hide_short_help = true,
        long,
        value_name = "VECTOR,…",
        value_delimiter = ',',
        help_heading = "Plan"
    )]
    pub unit: Vec<String>,
    /// Treatment of rows with missing values [default: auto]
    #[arg(long, value_enum, value_name = "RULE", help_heading = "Plan")]
    pub missing: Option<MissingArg>,
    /// Number of rows sampled for landmarks and bandwidths, or 'all' [default: 20000 or four times
    /// the landmarks; fewer above 16.8 million values]
    #[arg(hide_short_help = true, long, value_name = "N|all", value_parser = sample_rows,
        help_heading = "Plan")]
    pub sample_rows: Option<SampleRows>,
    /// Number of rows that the plan retains, drawn uniformly, from which models learn the shape of
    /// clusters; 0 for none [default: 20000, or all rows if there are fewer; none with given
    /// landmarks or without cells]
    #[arg(long, value_name = "N", help_heading = "Plan")]
    pub witnesses: Option<usize>,
    /// Sums to collect [default: cells; kernel up to 4000 landmarks; moments up to 64 columns]
    #[arg(
        hide_short_help = true,
        long,
        value_name = "kernel,cells,moments",
        value_delimiter = ',',
        help_heading = "Plan"
    )]
    pub collect: Option<Vec<String>>,
    /// Column of row weights; a row of weight 2 counts as two rows
    #[arg(hide_short_help = true, long, value_name = "COLUMN", help_heading = "Plan")]
    pub weights: Option<String>,
    /// Unit to which weights are rounded [default: 1 for whole numbers, otherwise chosen from the
    /// weights]
    #[arg(
        hide_short_help = true,
        long,
        value_name = "U",
        requires = "weights",
        help_heading = "Plan"
    )]
    pub weight_unit: Option<f64>,
    /// Seed of all random choices
    #[arg(hide_short_help = true, long, default_value_t = 0, help_heading = "Plan")]
    pub seed: u64,
}

/// Make a plan: the measurement that all parts of a data set share.
///
/// Reads the rows once (twice for 'dsquared' on more rows than the sample) and writes landmarks,
/// bandwidths and scaling to a small file. Landmarks and retained rows are rows of the data;
/// --witnesses 0 retains no rows, and --landmarks-from takes no row at all.
///
/// Numbers, true and false are measured as numbers, and text with few different values as
/// categories. Dates are measured only with --dates, and ids are left out. --show prints how each
/// column is used.
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

JSON fields: file, rows, skipped, skipped_by_column, columns, roles [{column, type, role, numbers,
  missing, low, high,
  levels [{level, share}], transformation, left_out}], features, kernel, landmarks, frequencies,
  sampling, bandwidths,
  collect, witnesses, witnesses_digest, fingerprint, raw_rows, bytes, sample_rows, leverage {lambda,
  effective_dimension, accuracy,
  accuracy_rows}, notes; with --private also private {bounds [{column, low, high}], radius,
  spent_rho,
  max_rows_per {column, rows}}")]
#[command(mut_arg("input", |input| input.required(false).required_unless_present("private")))]
pub struct PlanArgs {
    #[command(flatten)]
    pub input: InputArgs,
    #[command(flatten)]
    pub columns: ColumnArgs,
    /// File to write; required unless --show is given
    #[arg(short, long, value_name = "FILE", aliases = ["out", "output-file"],
        required_unless_present = "show")]
    pub output: Option<PathBuf>,
    /// Print how each column is used: type, role, missing values, levels or range, transformation
    #[arg(long)]
    pub show: bool,
    #[command(flatten)]
    pub device: DeviceArg,
    #[command(flatten)]
    pub plan: PlanOptions,
    #[command(flatten)]
    pub private: PrivateArgs,
}

/// A plan that contains only public information.
#[derive(Debug, ClapArgs)]
pub struct PrivateArgs {
    /// Make a private plan, which contains only public information; it needs bounds for every
    /// column and takes no INPUT (see docs/PRIVACY.md)
    #[arg(long, help_heading = "Private", conflicts_with_all = ["input", "columns", "exclude",
        "categorical", "numeric",
        "dates", "show", "witnesses", "missing", "weights", "unit", "landmarks_from", "skip_invalid"])]
    pub private: bool,
    /// Columns to measure, each with the bounds to which values are clipped, as in
    /// age=0..120,income=0..1e6
    #[arg(hide_short_help = true, long, value_name = "A=LOW..HIGH,…", value_delimiter = ',',
        value_parser = bounds, allow_hyphen_values = true,
        help_heading = "Private", requires = "private")]
    pub bounds: Vec<(String, f64, f64)>,
    /// File with the bounds (TOML), with lines such as age = [0, 120]
    #[arg(
        hide_short_help = true,
        long,
        value_name = "FILE",
        help_heading = "Private",
        requires = "private",
        conflicts_with = "bounds"
    )]
    pub bounds_from: Option<PathBuf>,
    /// Public rows from which landmarks are drawn [default: points all over the bounds]
    #[arg(
        hide_short_help = true,
        long,
        value_name = "FILE",
        help_heading = "Private",
        requires = "private"
    )]
    pub public: Vec<PathBuf>,
    /// Earlier release of the same rows from which landmarks are drawn; its cost counts in later
    /// releases
    #[arg(
        hide_short_help = true,
        long,
        value_name = "RELEASE",
        help_heading = "Private",
        requires = "private",
        conflicts_with = "public"
    )]
    pub release: Option<PathBuf>,
    /// Treat all rows with the same value in COLUMN as one person, and count at most K of them; the
    /// noise grows with K
    #[arg(hide_short_help = true, long, value_name = "COLUMN=K", value_parser = rows_per,
        help_heading = "Private", requires = "private")]
    pub max_rows_per: Option<(String, u64)>,
    /// Largest distance from the landmark at which a row counts fully in its cell, in (scaled)
    /// units [default: the 95 % quantile of the public rows]
    #[arg(
        hide_short_help = true,
        long,
        value_name = "R",
        help_heading = "Private",
        requires = "private"
    )]
    pub radius: Option<f64>,
}
