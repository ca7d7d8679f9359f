//! Commands that learn, apply and evaluate models.

use super::values::{choices, picture};
use super::{DeviceArg, InputArgs};
use clap::Args as ClapArgs;
use nysketch::{CovarianceKind, Decoder, Task};
use std::path::PathBuf;

/// Learn a model from a sketch, without the rows.
///
/// The decoder 'auto' uses cell moments and retained rows if the sketch has them (in most cases as
/// good as learning from all rows), otherwise kernel sums. 'clompr' and 'clomp' are the paper's
/// decoders.
#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  nysketch fit kmeans s.nys -k 10 -o model.json
  nysketch fit kmeans s.nys -k 10 -o model.json --plot clusters.svg
  nysketch fit kmeans s.nys -k 2..20 -o model.json --plot curve.svg
  nysketch fit gmm s.nys -k 5 -o mixture.json
  nysketch fit gmm s.nys -k 2..8 -o mixture.json --covariance diag --min-variance 0.01
  nysketch fit pca s.nys -k 2 -o pca.json
  nysketch fit kmeans folded.nys -k 5 -o model.json --intervals
  nysketch fit gmm folded.nys -k 1..6 -o mixture.json --cross-validate

JSON fields: file, task, k, decoder, calibrated, bandwidth, rank (of kernel sums), replicates
  (objectives of clompr),
  status, iterations, estimated_risk (in the
  coordinates of the fit), low and high (its 95 % interval, of mixtures), scaled, covariance,
  min_variance,
  collapsed, shrinkage, notes, warnings, clusters [{label, share, rows, spread, missing, columns
  [{column, level, part,
  lacks, value, overall, deviations, spread}]}] (in the units of the table; of a level, and where a
  column lacks, shares of
  the rows), explained {explained, verdict, residuals},
  seconds; for a range of k also curve [{k, estimated_risk, low, high, bic, icl, silhouette}],
  suggested_k, clear and
  at_end; with --intervals also intervals {confidence, folds, by, risk, stability, weights, centres,
  explained_variance,
  explained_variance_ratio}; with --cross-validate also cross_validation {folds, by, points [{k,
  risk, error}], best_k,
  within_error_k}")]
pub struct FitArgs {
    /// Kind of model to learn
    #[arg(value_parser = choices::<Task>())]
    pub task: Task,
    /// Sketch to learn from
    #[arg(value_name = "SKETCH")]
    pub sketch: PathBuf,
    /// Number of clusters or components; a range such as 2..20 gives a curve and a suggestion
    #[arg(short, long, value_name = "K|A..B", aliases = ["clusters", "n-clusters", "components",
        "n-components"])]
    pub k: String,
    /// Model file to write (JSON)
    #[arg(short, long, value_name = "FILE", aliases = ["out", "output-file"])]
    pub output: PathBuf,
    /// Plan, or sketch with the same plan, that contains the retained rows [default: the sketch
    /// itself, or a plan in its folder]
    #[arg(hide_short_help = true, long, value_name = "PLAN|SKETCH")]
    pub plan: Option<PathBuf>,
    /// Method of learning from the sketch
    #[arg(hide_short_help = true, long, value_parser = choices::<Decoder>(),
        default_value = "auto")]
    pub decoder: Decoder,
    /// Bandwidth of the sketch to decode: 'auto' or its σ²
    #[arg(hide_short_help = true, long, value_name = "auto|S2", default_value = "auto")]
    pub bandwidth: String,
    /// Mixtures: known covariance of every component, a variance of all (scaled) columns or a file
    ///
    /// A table of any format with one row of variances, or with a row for each column of a matrix,
    /// in the units
    /// of the input. Decoded from kernel sums.
    #[arg(long, value_name = "V|FILE", alias = "known-variance")]
    pub known_covariance: Option<String>,
    /// Mixtures: kind of covariances [default: full if there are four retained rows per parameter
    /// of the model, otherwise diag]
    #[arg(long, value_parser = choices::<CovarianceKind>())]
    pub covariance: Option<CovarianceKind>,
    /// Mixtures: smallest variance of a component in any direction, as a share of the column's
    /// variance [default: 0.0001]
    #[arg(hide_short_help = true, long, value_name = "SHARE")]
    pub min_variance: Option<f64>,
    /// Mixtures: number of starts of EM, most of which end early [default: 36]
    #[arg(hide_short_help = true, long, value_name = "N")]
    pub restarts: Option<usize>,
    /// Mixtures: largest number of EM steps [default: 200]
    #[arg(hide_short_help = true, long, value_name = "N")]
    pub max_iterations: Option<usize>,
    /// Mixtures: EM stops when the mean log-likelihood grows by less than this per step [default:
    /// 0.0001]
    #[arg(hide_short_help = true, long, value_name = "NATS")]
    pub tolerance: Option<f64>,
    /// clompr, clomp: smallest distance between atoms (in standard deviations if the covariance is
    /// known)
    #[arg(hide_short_help = true, long, value_name = "E")]
    pub separation: Option<f64>,
    /// clompr, clomp: largest distance of atoms from the plan's centre, in the same unit
    #[arg(hide_short_help = true, long, value_name = "R")]
    pub radius: Option<f64>,
    /// clompr, clomp: number of pursuits, of which the best match is kept [default: 5]
    #[arg(hide_short_help = true, long, value_name = "N")]
    pub replicates: Option<usize>,
    /// Report confidence intervals of centres, shares, risk and variances, and the stability of
    /// each cluster; needs a sketch with folds
    #[arg(long)]
    pub intervals: bool,
    /// Confidence level of the intervals
    #[arg(
        hide_short_help = true,
        long,
        value_name = "P",
        default_value_t = 0.95,
        requires = "intervals"
    )]
    pub confidence: f64,
    /// Report the held-out risk for every k; needs a sketch with folds
    #[arg(long)]
    pub cross_validate: bool,
    /// Picture to write (.svg or .png): the curve of a range of k, or the clusters of one k
    #[arg(long, value_name = "FILE", value_parser = picture())]
    pub plot: Option<PathBuf>,
    /// Seed of all random choices
    #[arg(hide_short_help = true, long, default_value_t = 0)]
    pub seed: u64,
}

/// Apply a model to rows: one line of output per row, in order.
///
/// Writes the label and the distance to the nearest centre, in the coordinates of the fit (scaled
/// columns if the plan scales them). Mixtures also give the log density and, with --flag, outliers;
/// principal components give the coordinates along them. Skipped rows get the label -1.
#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  nysketch predict model.json x.parquet -o labels.parquet --keep id
  nysketch predict model.json x.csv -o labels.csv
  nysketch predict model.json x.npy -o labels.npy
  nysketch predict mixture.json x.csv -o outliers.csv --flag 0.01

JSON fields: file, rows, skipped, skipped_by_column; with --flag also flag, threshold and flagged")]
pub struct Predict {
    /// Model to apply
    #[arg(value_name = "MODEL")]
    pub model: PathBuf,
    #[command(flatten)]
    pub input: InputArgs,
    /// File to write: .parquet, .csv, or .npy with the labels alone
    #[arg(short, long, value_name = "FILE", aliases = ["out", "output-file"])]
    pub output: PathBuf,
    /// Columns of the input to copy to the output: names, ranges and patterns
    #[arg(long, value_name = "A,B,…", value_delimiter = ',')]
    pub keep: Vec<String>,
    /// Prefix for the names of the predicted columns, if they would collide with kept columns
    #[arg(
        hide_short_help = true,
        long,
        value_name = "TEXT",
        default_value = "",
        hide_default_value = true
    )]
    pub prefix: String,
    /// Also write the probability of each component of a mixture
    #[arg(long)]
    pub scores: bool,
    /// Mixtures: flag rows below this quantile of the log density
    #[arg(long, value_name = "SHARE")]
    pub flag: Option<f64>,
    #[command(flatten)]
    pub device: DeviceArg,
}

/// Evaluate a model on rows: risks, and agreement with labels.
///
/// Prints the mean squared distance and the mean distance to the nearest centre in the coordinates
/// of the fit (scaled columns if the plan scales them; 'mse_table_units' is in the units of the
/// table), the negative log-likelihood in nats, and with --labels the adjusted Rand index and the
/// normalised mutual information.
#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  nysketch evaluate model.json x.csv
  nysketch evaluate model.json x.npy --labels y.npy --json

JSON fields: rows, skipped, skipped_by_column, mse, mse_table_units, mean_distance, nll, ari, nmi
  (those that apply)")]
pub struct Evaluate {
    /// Model to evaluate
    #[arg(value_name = "MODEL")]
    pub model: PathBuf,
    #[command(flatten)]
    pub input: InputArgs,
    /// True labels: a column of the input, or a file with one column
    #[arg(long, value_name = "COLUMN|FILE")]
    pub labels: Option<String>,
    /// Column of row weights; a row of weight 2 counts as two rows, except for --labels
    #[arg(hide_short_help = true, long, value_name = "COLUMN")]
    pub weights: Option<String>,
    /// Also print the excess risk over this model, such as the best known, on the same rows
    #[arg(hide_short_help = true, long, value_name = "MODEL")]
    pub reference: Option<PathBuf>,
    #[command(flatten)]
    pub device: DeviceArg,
}
