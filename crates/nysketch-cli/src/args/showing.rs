//! Commands that inspect and compare plans, sketches and models.

use super::values::picture;
use clap::Args as ClapArgs;
use std::path::PathBuf;

/// Show the contents of a plan, a sketch, a release or a model.
///
/// For a model: its clusters, the rows of each, and the columns in which it differs most. For a
/// plan
/// or a sketch: rows, columns, landmarks and bandwidths; per bandwidth the rank of the kernel
/// matrix, the part of the data that the landmarks miss, the effective dimension and the noise
/// floor; and the number of raw rows in the file. For a private plan: bounds, sensitivities and
/// noise. For a masked sketch: its party and session. --model checks whether a mixture explains the
/// sketch. --theory evaluates the paper's theorems on the data.
#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  nysketch inspect s.nys
  nysketch inspect s.nys --json
  nysketch inspect model.json
  nysketch inspect s.nys --theory -k 10
  nysketch inspect s.nys --contains day1.csv

JSON fields: file, kind, rows, skipped, complete, folds {count, by, smallest, largest}, columns,
  roles [{column, role, numbers, missing, levels [{level, share}],
  mean, deviation, transformation}], features, kernel, landmarks, frequencies, sampling, seed,
  bandwidths, scale, collect, witnesses, witnesses_digest, weights, rank, condition, missed, lambda,
  effective_dimension,
  largest_leverage, noise_floor, single_row_cells, empty_cells, raw_rows, fingerprint, bytes, model
  {explained, verdict, residuals [{bandwidth, residual, floor, missed}]}, theory {bandwidth, delta,
  k,
  known_variance, secants, rows, landmarks, basis, sampled, t, condition, least_condition,
  seen_condition, lambda,
  holds (null where it cannot be decided), constant, effective_dimension, half_dimension,
  largest_leverage,
  seen_leverage, uniform, leverage, least_rows, least_lambda, norm, source {s,
  gamma, t, lambda, m}, distortion, risk {constant, noise, bound, excess}, enough}; of a model file,
  kind, schema, task, k, rows, columns, scale,
  fingerprint, decoder, status, estimated_risk, low, high, covariance, min_variance, collapsed,
  shrinkage, notes,
  clusters [{label, share, rows, spread, missing, columns [{column, level, part, lacks, value,
  overall, deviations,
  spread}]}]; of a masked sketch, file, kind, party, public, parties, parties_fingerprint, session,
  columns, fingerprint, bytes;
  with --contains also contains {rows, found, landmarks, witnesses, alone, not_compared,
  witnesses_elsewhere}; of a release also
  release {epsilon, delta, rho, total_rho, mechanisms [{name, numbers, rho, sensitivity_squared,
  deviation}]}; of a private plan
  or what was made with it also private {bounds [{column, low, high}], radius, spent_rho,
  max_rows_per {column, rows}}; of a private
  plan or its sketch also noise {epsilon, delta, mechanisms [{name, numbers, sensitivity,
  sensitivity_squared, noise}], columns
  [{column, cell_sum, cell_mean (of 1,000 rows), total}]} (null where the plan has cost more than
  that)")]
pub struct Inspect {
    /// Plan, sketch, release, masked sketch or model to show
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Also report how many rows of this table the file contains unchanged: as landmarks, as
    /// retained rows, or alone in a cell. Subtracting a row does not remove it from the plan
    #[arg(long, value_name = "TABLE")]
    pub contains: Option<PathBuf>,
    /// ε and δ of the release whose noise is shown for a private plan [default: 1,1e-6]
    #[arg(hide_short_help = true, long, value_name = "E,D", value_delimiter = ',')]
    pub noise: Vec<f64>,
    /// Also report whether this mixture explains the sketch
    #[arg(hide_short_help = true, long, value_name = "MODEL")]
    pub model: Option<PathBuf>,
    /// Also show the quantities of the paper's theorems
    #[arg(hide_short_help = true, long)]
    pub theory: bool,
    /// λ of the theorems [default: the largest for which C = 2 C_F]
    #[arg(hide_short_help = true, long, value_name = "L", requires = "theory")]
    pub lambda: Option<f64>,
    /// Probability with which the theorems may fail
    #[arg(
        hide_short_help = true,
        long,
        value_name = "P",
        default_value_t = 0.1,
        requires = "theory"
    )]
    pub delta: f64,
    /// Number of clusters of the models in the theorems
    #[arg(
        hide_short_help = true,
        short,
        value_name = "K",
        default_value_t = 10,
        requires = "theory"
    )]
    pub k: usize,
    /// Known variance of the clusters, for mixtures instead of k-means
    #[arg(
        hide_short_help = true,
        long,
        value_name = "V",
        default_value_t = 0.0,
        requires = "theory"
    )]
    pub known_variance: f64,
    /// Number of pairs of models to sample
    #[arg(
        hide_short_help = true,
        long,
        value_name = "N",
        default_value_t = 300,
        requires = "theory"
    )]
    pub secants: usize,
    /// Table whose rows the theorems are estimated from, at most 2,000 [default: the retained rows
    /// of the plan]
    #[arg(hide_short_help = true, long, value_name = "FILE", requires = "theory")]
    pub rows: Option<PathBuf>,
}

/// Compare sketches: drift.
///
/// Two sketches of one plan and of different rows are compared. The result is the size of the
/// change
/// (the share of rows that would have to move to another cell, the largest change of a mean), one
/// p-value, and the columns, levels, missing values and cells that changed.
///
/// --against compares every sketch with one. --baseline reports whether the last sketch is unusual
/// among the others, for example today among the days before. --watch takes days in their order and
/// raises an alarm whose error rate holds however often you look. --segments removes segments from
/// two folders of sketches until no drift is left. A folder means the .nys files in it.
#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  nysketch diff day1.nys day2.nys
  nysketch diff week.nys day2.nys --part-of
  nysketch diff day1.nys day2.nys --tolerance 0.02 --exit-code || echo \"something changed\"
  nysketch diff --against site-1.nys day1.nys day2.nys --plot drift.svg
  nysketch diff --baseline days/ today.nys --plot today.svg --metrics drift.prom
  nysketch diff --watch days/ --same-weekday
  nysketch diff january/ february/ --segments

With --exit-code: 0 no drift, 1 drift, 2 wrong usage, 3 any other error; with --tolerance 4 for
  'cannot tell'.
A file for --config contains options under their names: level, tolerance, draws, top, seed,
  same-weekday.

JSON fields: baseline, file, part_of, rows, level, moved {share, low, high}, tolerance, verdict,
  p_value, drift, test_by,
  least_p_value, no_test, note,
  discrepancies [{bandwidth, mmd, noise}], columns [{column, means, deviations, z, effect
  {deviations, low, high},
  q_value}], categories [{column, p_value, q_value, levels [{level, shares, z}]}], missing [{column,
  shares, z, p_value,
  q_value}], cells [{landmark, shares, z, mean, levels}], landmarks [{landmark, change, place}],
  plot; with --against
  baseline, rows, level, plot and sketches [{q_value, …}]; with --baseline days, rows, level,
  p_value, least_p_value,
  unusual, moved, others_moved, reasons [{what, share, value, median, deviation, deviations}], each
  [{name, rows, moved,
  score}], file, plot; with --watch level, days [{name, rows, moved, p_value, evidence}], alarm,
  began, autocorrelation,
  autocorrelation_p_value, plot; with --segments before, after, segments, whole {…}, removed
  [{segment, shares, moved,
  p_value}], explained")]
pub struct Diff {
    /// Two sketches; any number with --against and --watch; days and then today with --baseline;
    /// two folders with --segments
    #[arg(required = true, value_name = "SKETCH")]
    pub sketches: Vec<PathBuf>,
    /// Compare every sketch with this one
    #[arg(long, value_name = "SKETCH")]
    pub against: Option<PathBuf>,
    /// Report whether the last sketch is unusual among these days: a folder, or one sketch with
    /// more of them before the last
    #[arg(long, value_name = "DAYS")]
    pub baseline: Option<PathBuf>,
    /// Watch days in the given order and raise an alarm
    #[arg(long)]
    pub watch: bool,
    /// Find the segments that explain the change between two folders of sketches (see sketch --by)
    #[arg(long)]
    pub segments: bool,
    /// The second sketch is part of the first: compare it with the rest
    #[arg(hide_short_help = true, long)]
    pub part_of: bool,
    /// Compare days with those of the same day of the week, by the dates in their names
    #[arg(hide_short_help = true, long)]
    pub same_weekday: bool,
    /// Picture to write (.svg or .png): the sketches in their order
    #[arg(long, value_name = "FILE", value_parser = picture())]
    pub plot: Option<PathBuf>,
    /// Write the figures for a monitoring system, in the text format of Prometheus
    #[arg(hide_short_help = true, long, value_name = "FILE")]
    pub metrics: Option<PathBuf>,
    /// Significance level: the share of false alarms [default: 0.05]
    #[arg(long, value_name = "P")]
    pub level: Option<f64>,
    /// Report whether more than this share of the rows moved: changed, same or cannot tell
    #[arg(hide_short_help = true, long, value_name = "SHARE")]
    pub tolerance: Option<f64>,
    /// Report the result in the exit code
    #[arg(long)]
    pub exit_code: bool,
    /// File (TOML) with options that are not given here
    #[arg(hide_short_help = true, long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Number of draws from the null distribution; the smallest p-value is 1/(draws + 1) [default:
    /// 999]
    #[arg(hide_short_help = true, long, value_name = "N")]
    pub draws: Option<u64>,
    /// Number of columns, cells and landmarks to show [default: 5]
    #[arg(hide_short_help = true, long, value_name = "N")]
    pub top: Option<usize>,
    /// Seed of all random choices [default: 0]
    #[arg(hide_short_help = true, long)]
    pub seed: Option<u64>,
}

/// Write a page about a sketch that opens in any browser.
///
/// One HTML file without external links: the sketch in words, the curve over k with a slider over
/// its models, a map of the cells, the clusters with their sizes and profiles, and with --against
/// the drift from another sketch. Of several sketches, the page describes the last one and shows
/// the
/// drift of all in order. Given models replace those of the curve, up to two megabytes.
#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  nysketch report s.nys -o report.html
  nysketch report s.nys model.json m5.json -o report.html
  nysketch report day2.nys mixture.json --against day1.nys -o report.html
  nysketch report --against site-1.nys days/ -o drift.html

JSON fields: file, bytes, sketches, models, k")]
pub struct ReportArgs {
    /// Sketch to report on, or several (also folders) with --against; and models to show
    #[arg(required = true, value_name = "SKETCH|MODEL")]
    pub files: Vec<PathBuf>,
    /// Model to show: k-means, k-medians or a mixture; may be repeated
    #[arg(long = "model", value_name = "MODEL")]
    pub models: Vec<PathBuf>,
    /// Page to write
    #[arg(short, long, value_name = "FILE.html")]
    pub output: PathBuf,
    /// Plan, or sketch with the same plan, that contains the retained rows [default: the sketch
    /// itself, or a plan in its folder]
    #[arg(hide_short_help = true, long, value_name = "PLAN|SKETCH")]
    pub plan: Option<PathBuf>,
    /// Also show how each sketch differs from this one
    #[arg(long, value_name = "SKETCH")]
    pub against: Option<PathBuf>,
    /// Largest k of the curve
    #[arg(hide_short_help = true, long, value_name = "K", default_value_t = 12,
        value_parser = clap::value_parser!(u16).range(3..=200))]
    pub most_clusters: u16,
    /// Seed of all random choices
    #[arg(hide_short_help = true, long, default_value_t = 0)]
    pub seed: u64,
}
