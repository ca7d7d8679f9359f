//! The command line. These structs only record what was typed.

use clap::builder::{PathBufValueParser, PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};
use nysketch::sketching::DEFAULT_GROUPS;
use nysketch::{
    CovarianceKind, DatePart, Decoder, DeviceChoice, FeatureKind, Kernel, LandmarkCount, Named,
    SampleRows, Sampling, Scale, Task,
};
use nysketch_tables::Format;
use std::path::PathBuf;

/// Compress a table of any size, in one pass, into one small file: the sketch.
///
/// A sketch holds exact sums over the rows. Sketches of parts merge, in any order, to the same
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
    /// Print one JSON object on stdout instead of text
    #[arg(long, global = true)]
    pub json: bool,
    /// Threads to use, at most 8 for each core; the result does not depend on their number [default: one for
    /// each core]
    #[arg(long, global = true, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,
    /// Replace an output that exists, whatever it is; inputs are never replaced
    #[arg(long, global = true)]
    pub force: bool,
    /// Allow this many times the default limit of work and memory (2e12 operations, 2 GB)
    #[arg(
        long,
        global = true,
        value_name = "FACTOR",
        default_value_t = 1.0,
        hide_default_value = true,
        value_parser = factor
    )]
    pub max_work: f64,
    /// No progress and no notes on stderr
    #[arg(short, long, global = true)]
    pub quiet: bool,
    /// More notes on stderr
    #[arg(short, long, global = true, conflicts_with = "quiet")]
    pub verbose: bool,
}

impl Common {
    /// The number of threads.
    pub fn threads(&self) -> usize {
        let cores = std::thread::available_parallelism().map_or(1, |n| n.get());
        self.threads.map_or(cores, |n| usize::from(n).min(THREADS_PER_CORE * cores))
    }
}

/// Where rows are worked on.
#[derive(Debug, ClapArgs)]
pub struct DeviceArg {
    /// Where to work on the rows: auto, cpu, cuda, or cuda:N for one GPU of several; the result is the same. With auto, on a
    /// GPU where there is one and the work is large enough to pay for starting it
    #[arg(long, value_name = "DEVICE", default_value = "auto", value_parser = device)]
    pub device: DeviceChoice,
}

fn device(name: &str) -> Result<DeviceChoice, String> {
    DeviceChoice::from_name(name).map_err(|_| "auto, cpu, cuda or cuda:N, N counting from 0".into())
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
    Reproduce(Reproduce),
    Completions(Completions),
    Man(Man),
}

/// See the whole path in half a minute; no files needed.
///
/// Generates a Gaussian mixture, sketches it, subtracts rows and merges them back, learns k-means and a
/// mixture from the sketch alone, and prints their risks beside honest baselines. Writes a picture and a page.
#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  nysketch demo
  nysketch demo --rows 500000 -o clusters.svg

JSON fields: rows, columns, landmarks, bytes, planning_seconds, sketching_seconds, same_bytes,
  picture, page, results [{task, from, risk, relative, bytes, seconds}]")]
pub struct Demo {
    /// Picture of the clusters to write, .svg or .png; the page is beside it, with .html
    #[arg(short, long, value_name = "FILE", default_value = "nysketch-demo.svg", value_parser = picture())]
    pub output: PathBuf,
    /// Rows to generate
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(5000..=100_000_000))]
    pub rows: u64,
    /// Seed of all random choices
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
}

/// Write synthetic data to try things with.
///
/// A balanced mixture of K unit Gaussians in D dimensions whose means are drawn from
/// N(0, (S·K^(1/D))²): the synthetic data of the paper. The same seed gives the same rows.
#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  nysketch generate gmm --rows 1000000 --dims 20 --clusters 10 -o x.parquet
  nysketch generate gmm --rows 1000 --dims 2 --clusters 3 --labels y.npy -o x.csv

JSON fields: file, rows, dims, clusters, separation, seed")]
pub struct Generate {
    /// What to generate
    #[arg(value_enum)]
    pub what: GenerateKind,
    /// File to write: .parquet, .npy (both float32) or .csv
    #[arg(short, long, value_name = "FILE", aliases = ["out", "output-file"])]
    pub output: PathBuf,
    /// Number of rows
    #[arg(long, value_name = "N")]
    pub rows: u64,
    /// Number of columns
    #[arg(long, value_name = "D")]
    pub dims: usize,
    /// Number of clusters
    #[arg(long, value_name = "K")]
    pub clusters: usize,
    /// Separation of the clusters
    #[arg(long, value_name = "S", default_value_t = 2.0)]
    pub separation: f64,
    /// Also write the cluster of each row to this file: .parquet, .npy or .csv
    #[arg(long, value_name = "FILE")]
    pub labels: Option<PathBuf>,
    /// Seed of all random choices
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum GenerateKind {
    /// A Gaussian mixture
    Gmm,
}

/// Which columns to read.
#[derive(Debug, Clone, Default, ClapArgs)]
pub struct ColumnArgs {
    /// Columns to read: names, ranges FIRST..LAST and patterns like 'x*' [default: all numbers, and texts of at most 50
    /// different values]
    #[arg(long, value_name = "A,B,…", value_delimiter = ',', aliases = ["cols", "column"])]
    pub columns: Option<Vec<String>>,
    /// Columns to leave out, written the same way
    #[arg(long, value_name = "A,B,…", value_delimiter = ',', aliases = ["drop", "ignore", "exclude-columns"])]
    pub exclude: Vec<String>,
    /// Columns to read as categories, written the same way, whatever they hold and however many levels they have
    #[arg(long, value_name = "A,B,…", value_delimiter = ',', aliases = ["categories", "categoricals"])]
    pub categorical: Vec<String>,
    /// Columns to read as numbers, written the same way, even if they look like text or like an id
    #[arg(long, value_name = "A,B,…", value_delimiter = ',')]
    pub numeric: Vec<String>,
    /// Columns of dates and times to read, written the same way, and what of them is measured: any of time, hour,
    /// weekday and month, as in when=hour+month [default: time+hour+weekday]
    #[arg(long, value_name = "A[=PART+…],…", value_delimiter = ',', value_parser = date)]
    pub dates: Vec<DateArg>,
}

/// A column of dates, as it was typed.
#[derive(Debug, Clone)]
pub struct DateArg {
    /// A name, a range or a pattern.
    pub columns: String,
    /// What of it is measured.
    pub parts: Vec<DatePart>,
}

/// COLUMN, or COLUMN=PART+PART.
fn date(text: &str) -> Result<DateArg, String> {
    let Some((columns, parts)) = text.rsplit_once('=') else {
        return Ok(DateArg { columns: text.to_string(), parts: DatePart::DEFAULT.to_vec() });
    };
    let parts: Result<Vec<DatePart>, _> = parts.split('+').map(DatePart::from_name).collect();
    let parts =
        parts.map_err(|_| "expected COLUMN, or COLUMN=PART+… of time, hour, weekday, month")?;
    Ok(DateArg { columns: columns.to_string(), parts })
}

/// COLUMN=WEIGHT.
fn column_weight(text: &str) -> Result<(String, f64), String> {
    let both =
        text.rsplit_once('=').and_then(|(name, w)| Some((name.to_string(), w.parse().ok()?)));
    both.ok_or_else(|| "expected COLUMN=WEIGHT".to_string())
}

/// COLUMN=K.
fn rows_per(text: &str) -> Result<(String, u64), String> {
    let both =
        text.rsplit_once('=').and_then(|(name, k)| Some((name.into(), k.trim().parse().ok()?)));
    both.ok_or_else(|| "expected COLUMN=K, as in user_id=10".to_string())
}

/// COLUMN=LOW..HIGH.
fn bounds(text: &str) -> Result<(String, f64, f64), String> {
    let parts = text.rsplit_once('=').and_then(|(name, range)| {
        let (low, high) = range.split_once("..")?;
        Some((name.to_string(), low.trim().parse().ok()?, high.trim().parse().ok()?))
    });
    parts.ok_or_else(|| "expected COLUMN=LOW..HIGH".to_string())
}

/// What becomes of rows that lack values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum MissingArg {
    /// 'partial' where values are missing while planning, else 'error'
    #[default]
    Auto,
    /// A row that lacks a number is an error
    Error,
    /// Rows that lack a number are skipped and counted, like --skip-invalid
    Skip,
    /// Rows count by the values they have; those with less than a quarter of them are skipped
    Partial,
}

/// Which rows to read.
#[derive(Debug, Clone, ClapArgs)]
pub struct InputArgs {
    /// Files, folders or quoted patterns, read in this order: parquet, csv, tsv (also .gz, .zst),
    /// arrow, npy; '-' is csv or an Arrow stream on stdin, which can be read only once
    #[arg(required = true, value_name = "INPUT")]
    pub input: Vec<PathBuf>,
    /// Format of every file [default: by content, then by extension]
    #[arg(long, value_parser = choices::<Format>(), value_name = "FORMAT")]
    pub format: Option<Format>,
    /// The first line of csv files is data; columns are named c0, c1, …
    #[arg(long)]
    pub no_header: bool,
    /// The first line of csv files holds names, even if they look like numbers
    #[arg(long, conflicts_with = "no_header")]
    pub header: bool,
    /// Character between the columns of csv files [default: comma, tab for .tsv]
    #[arg(long, value_name = "C", value_parser = delimiter)]
    pub delimiter: Option<u8>,
    /// Skip and count rows with missing, infinite or unreadable values instead of stopping
    #[arg(long)]
    pub skip_invalid: bool,
    /// Largest share of the rows that may be skipped before it is an error
    #[arg(long, value_name = "SHARE", default_value_t = 0.5, value_parser = share)]
    pub max_skipped: f64,
}

impl InputArgs {
    /// One file, as it is.
    pub fn of(path: &std::path::Path) -> Self {
        InputArgs {
            input: vec![path.to_path_buf()],
            format: None,
            no_header: false,
            header: false,
            delimiter: None,
            skip_invalid: false,
            max_skipped: 1.0,
        }
    }
}

/// A number above 0.
fn factor(text: &str) -> Result<f64, String> {
    let factor = text.parse().ok().filter(|x: &f64| *x > 0.0 && x.is_finite());
    factor.ok_or_else(|| "expected a number above 0".to_string())
}

/// A number from 0 to 1.
fn share(text: &str) -> Result<f64, String> {
    let share = text.parse().ok().filter(|x| (0.0..=1.0).contains(x));
    share.ok_or_else(|| "expected a number from 0 to 1".to_string())
}

/// A single ASCII character, or `\t`.
fn delimiter(text: &str) -> Result<u8, String> {
    match text.as_bytes() {
        b"\\t" => Ok(b'\t'),
        [c] if c.is_ascii() && !b"\"\n\r".contains(c) => Ok(*c),
        _ => Err("expected one ASCII character, or \\t".into()),
    }
}

/// A positive number of seconds.
fn seconds(text: &str) -> Result<std::time::Duration, String> {
    let seconds = text.parse().ok().filter(|s: &f64| *s > 0.0);
    seconds
        .and_then(|s| std::time::Duration::try_from_secs_f64(s).ok())
        .ok_or_else(|| "expected a number of seconds above 0".into())
}

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

/// Choices of the library, by name.
fn choices<T: Named>() -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(T::choices().map(|c| PossibleValue::new(c.name).help(c.about)))
        .try_map(|name| T::from_name(&name))
}

fn picture() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().try_map(crate::plot::path)
}

fn landmark_count(text: &str) -> Result<LandmarkCount, String> {
    text.parse().map_err(|_| "expected a number or 'auto'".to_string())
}

fn sample_rows(text: &str) -> Result<SampleRows, String> {
    text.parse().map_err(|_| "expected a number or 'all'".to_string())
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

/// Add noise to a sketch, so that it may be given away.
///
/// Differential privacy: every outcome is at most e^ε times as likely with any one row as without it, plus δ, and the other way
/// round. The sketch must be made with a plan of 'nysketch plan --private'. Noise is drawn from the operating system's
/// randomness, in integers; there is no seed. What is written holds no exact number that depends on the rows, and can be
/// learned from with 'nysketch fit'. Every release of a sketch reveals more: a ledger beside the sketch adds them up.
#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  nysketch privatize private-s.nys -o release.nys --epsilon 1 --delta 1e-6

JSON fields: file, epsilon, delta, rho, total_rho (with earlier rounds), person_rows, rows (noisy), mechanisms [{name, numbers, rho,
  sensitivity_squared, deviation}], releases, all_releases {epsilon, rho}, fingerprint, bytes")]
pub struct Privatize {
    /// Sketch to release
    #[arg(value_name = "SKETCH")]
    pub sketch: PathBuf,
    /// ε: how much more likely any outcome may be with a row than without it, in all rounds together; there is no default
    #[arg(long, value_name = "E")]
    pub epsilon: f64,
    /// δ: what may be added to that, well below one over the number of people; there is no default
    #[arg(long, value_name = "D")]
    pub delta: f64,
    /// How the budget is split, in any unit: counts, sums and squares of cells, kernel, rows, totals, products: those that
    /// the plan collects [default: counts=4,sums=4,squares=2,kernel=9,rows=1,totals=2,products=8]
    #[arg(long, value_name = "NAME=SHARE,…", value_delimiter = ',', value_parser = column_weight)]
    pub spend: Vec<(String, f64)>,
    /// File to write
    #[arg(short, long, value_name = "FILE", aliases = ["out", "output-file"])]
    pub output: PathBuf,
}

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
/// The result has the bytes of a sketch that never saw them. Refused if the second sketch has rows
/// that cannot be in the first.
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
    /// File to write
    #[arg(short, long, value_name = "FILE", aliases = ["out", "output-file"])]
    pub output: PathBuf,
}

/// Mask a sketch, so that only the sum over all parties can be read.
///
/// Every sum is covered by random numbers that cancel when the masked sketches of all parties are merged; by itself the file
/// says nothing about the rows but its plan. Each session needs a new id, which all parties agree on ('nysketch keys session').
/// A key masks one sketch per session: which one is kept in a file beside it, KEY.sessions. Before the first session all
/// parties compare the fingerprint of the list, by telephone or in person.
///
/// With --epsilon, --delta and --honest each party adds a share of noise, and the sum is a release that nobody has seen without
/// noise, not even who adds up. All parties must ask for the same.
#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  nysketch keys session > session.txt           # one party, who sends it to all others
  nysketch mask a.nys --parties keys.toml --key a.key --session $(cat session.txt) -o masked.nys

JSON fields: file, party, parties, parties_fingerprint, session, fingerprint, bytes; with noise also epsilon, delta, honest, rho,
  person_rows")]
pub struct Mask {
    /// Sketch to mask
    #[arg(value_name = "SKETCH")]
    pub sketch: PathBuf,
    /// List of all parties and their public keys, the same for all
    #[arg(long, value_name = "FILE")]
    pub parties: PathBuf,
    /// Your secret key
    #[arg(long, value_name = "FILE")]
    pub key: PathBuf,
    /// Id of the session, the same for all and never used before: 32 to 128 hexadecimal digits
    #[arg(long, value_name = "ID")]
    pub session: String,
    /// ε of the sum over all parties, which share the noise; without it there is none
    #[arg(long, value_name = "E", help_heading = "Noise", requires_all = ["delta", "honest"])]
    pub epsilon: Option<f64>,
    /// δ of the sum over all parties
    #[arg(long, value_name = "D", help_heading = "Noise", requires = "epsilon")]
    pub delta: Option<f64>,
    /// How many parties at least do not tell anybody their noise; the fewer, the more noise each adds
    #[arg(long, value_name = "H", help_heading = "Noise", requires = "epsilon")]
    pub honest: Option<u64>,
    /// How the budget is split, as in 'nysketch privatize'
    #[arg(long, value_name = "NAME=SHARE,…", value_delimiter = ',', value_parser = column_weight, help_heading = "Noise",
        requires = "epsilon")]
    pub spend: Vec<(String, f64)>,
    /// No person has rows at two parties, where the plan protects people; nothing can check it
    #[arg(long, help_heading = "Noise", requires = "epsilon")]
    pub disjoint_people: bool,
    /// File to write
    #[arg(short, long, value_name = "FILE", aliases = ["out", "output-file"])]
    pub output: PathBuf,
}

/// Keys of the parties that add up masked sketches.
///
/// Each party makes a key once ('new') and sends what it prints to all others. Everybody keeps the same list of parties and
/// compares its fingerprint with the others ('show'). One of them makes the id of each session ('session').
#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  nysketch keys new clinic-c -o clinic-c.key >> list.toml
  nysketch keys show keys.toml
  nysketch keys session

JSON fields: of new, file, id, public; of show, file, parties [{id, public}], parties_fingerprint; of session, session")]
pub struct Keys {
    #[command(subcommand)]
    pub what: KeysCommand,
}

#[derive(Debug, Subcommand)]
pub enum KeysCommand {
    /// Make the secret key of a party, and print its lines of the list of parties
    New {
        /// Id of the party: letters and digits of ASCII, '.', '_' and '-'
        id: String,
        /// File of the secret key to write, which must not exist
        #[arg(short, long, value_name = "FILE", aliases = ["out", "output-file"])]
        output: PathBuf,
    },
    /// Show a list of parties and the fingerprint to compare
    Show {
        /// List of parties
        #[arg(value_name = "FILE")]
        parties: PathBuf,
    },
    /// Print a new random session id
    Session,
}

/// Show what a plan, a sketch or a model holds.
///
/// Of a model: its clusters, how many rows each has and in which columns it differs most. Of a plan or a sketch:
/// rows, columns, landmarks and bandwidths; per bandwidth the rank of the kernel matrix, how much of
/// the data the landmarks miss, the effective dimension and the noise floor; and how many raw rows the file
/// reveals. Of a masked sketch: its party and session. With --model, whether a mixture explains the sketch. With --theory, what the paper's theorems
/// ask for and what the data gives.
#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  nysketch inspect s.nys
  nysketch inspect s.nys --json
  nysketch inspect model.json
  nysketch inspect s.nys --theory -k 10
  nysketch inspect s.nys --contains day1.csv

JSON fields: file, kind, rows, skipped, complete, folds {count, by, smallest, largest}, columns, roles [{column, role, numbers, missing, levels [{level, share}],
  mean, deviation, transformation}], features, kernel, landmarks, frequencies, sampling, seed,
  bandwidths, scale, collect, witnesses, witnesses_digest, weights, rank, condition, missed, lambda, effective_dimension,
  largest_leverage, noise_floor, single_row_cells, empty_cells, raw_rows, fingerprint, bytes, model
  {explained, verdict, residuals [{bandwidth, residual, floor, missed}]}, theory {bandwidth, delta, k,
  known_variance, secants, rows, landmarks, basis, sampled, t, condition, least_condition, seen_condition, lambda,
  holds (null where it cannot be decided), constant, effective_dimension, half_dimension, largest_leverage,
  seen_leverage, uniform, leverage, least_rows, least_lambda, norm, source {s,
  gamma, t, lambda, m}, distortion, risk {constant, noise, bound, excess}, enough}; of a model file, kind, schema, task, k, rows, columns, scale,
  fingerprint, decoder, status, estimated_risk, low, high, covariance, min_variance, collapsed, shrinkage, notes,
  clusters [{label, share, rows, spread, missing, columns [{column, level, part, lacks, value, overall, deviations,
  spread}]}]; of a masked sketch, file, kind, party, public, parties, parties_fingerprint, session, columns, fingerprint, bytes;
  with --contains also contains {rows, found, landmarks, witnesses, alone, not_compared, witnesses_elsewhere}; of a release also
  release {epsilon, delta, rho, total_rho, mechanisms [{name, numbers, rho, sensitivity_squared, deviation}]}; of a private plan
  or what was made with it also private {bounds [{column, low, high}], radius, spent_rho, max_rows_per {column, rows}}")]
pub struct Inspect {
    /// Plan, sketch, release, masked sketch or model to show
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Also say how many rows of this table stand in the plan or sketch as they are: as landmarks, as witnesses, or alone in
    /// a cell. Subtracting a row does not take it out of the plan
    #[arg(long, value_name = "TABLE")]
    pub contains: Option<PathBuf>,
    /// Also show whether this mixture explains the sketch
    #[arg(long, value_name = "MODEL")]
    pub model: Option<PathBuf>,
    /// Also show the quantities of the paper's theorems
    #[arg(long)]
    pub theory: bool,
    /// λ of the theorems [default: the largest for which C = 2 C_F]
    #[arg(long, value_name = "L", requires = "theory")]
    pub lambda: Option<f64>,
    /// Probability with which the theorems may fail
    #[arg(long, value_name = "P", default_value_t = 0.1, requires = "theory")]
    pub delta: f64,
    /// Number of clusters of the models in the theorems
    #[arg(short, value_name = "K", default_value_t = 10, requires = "theory")]
    pub k: usize,
    /// Known variance of the clusters, for mixtures instead of k-means
    #[arg(long, value_name = "V", default_value_t = 0.0, requires = "theory")]
    pub known_variance: f64,
    /// Pairs of models to sample
    #[arg(long, value_name = "N", default_value_t = 300, requires = "theory")]
    pub secants: usize,
    /// Table whose rows the theorems are estimated from, 2,000 at most [default: the witness rows of the plan]
    #[arg(long, value_name = "FILE", requires = "theory")]
    pub rows: Option<PathBuf>,
}

/// Learn a model from a sketch, without the rows.
///
/// The decoder 'auto' uses cell moments and witness rows if the sketch has them (in most cases as good as
/// learning from all rows), else kernel sums; 'clompr' and 'clomp' are the paper's decoders.
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

JSON fields: file, task, k, decoder, calibrated, bandwidth, rank (of kernel sums), replicates (objectives of clompr),
  status, iterations, estimated_risk (in the
  coordinates of the fit), low and high (its 95 % interval, of mixtures), scaled, covariance, min_variance,
  collapsed, shrinkage, notes, warnings, clusters [{label, share, rows, spread, missing, columns [{column, level, part,
  lacks, value, overall, deviations, spread}]}] (in the units of the table; of a level, and where a column lacks, shares of
  the rows), explained {explained, verdict, residuals},
  seconds; for a range of k also curve [{k, estimated_risk, low, high, bic, icl, silhouette}], suggested_k, clear and
  at_end; with --intervals also intervals {confidence, folds, by, risk, stability, weights, centres, explained_variance,
  explained_variance_ratio}; with --cross-validate also cross_validation {folds, by, points [{k, risk, error}], best_k,
  within_error_k}")]
pub struct FitArgs {
    /// What to learn
    #[arg(value_parser = choices::<Task>())]
    pub task: Task,
    /// Sketch to learn from
    #[arg(value_name = "SKETCH")]
    pub sketch: PathBuf,
    /// Number of clusters or components; a range such as 2..20 gives a curve and a suggestion
    #[arg(short, long, value_name = "K|A..B", aliases = ["clusters", "n-clusters", "components", "n-components"])]
    pub k: String,
    /// Model file to write (JSON)
    #[arg(short, long, value_name = "FILE", aliases = ["out", "output-file"])]
    pub output: PathBuf,
    /// Take the witness rows from this plan, or from this sketch of it [default: from the sketch, or a plan in its
    /// folder]
    #[arg(long, value_name = "PLAN|SKETCH")]
    pub plan: Option<PathBuf>,
    /// How to learn from the sketch
    #[arg(long, value_parser = choices::<Decoder>(), default_value = "auto")]
    pub decoder: Decoder,
    /// Bandwidth of the sketch to decode: 'auto' or its σ²
    #[arg(long, value_name = "auto|S2", default_value = "auto")]
    pub bandwidth: String,
    /// Mixtures: known covariance of every component, a variance of all (scaled) columns or a file
    ///
    /// A table of any format with one row of variances, or with a row for each column of a matrix, in the units
    /// of the input. Decoded from kernel sums.
    #[arg(long, value_name = "V|FILE", alias = "known-variance")]
    pub known_covariance: Option<String>,
    /// Mixtures: which covariances [default: full where there are four witness rows for each number of the model,
    /// else diag]
    #[arg(long, value_parser = choices::<CovarianceKind>())]
    pub covariance: Option<CovarianceKind>,
    /// Mixtures: least variance of a component in any direction, as a share of the column's [default: 0.0001]
    #[arg(long, value_name = "SHARE")]
    pub min_variance: Option<f64>,
    /// Mixtures: starts of EM, of which most are soon given up [default: 36]
    #[arg(long, value_name = "N")]
    pub restarts: Option<usize>,
    /// Mixtures: most steps of EM [default: 200]
    #[arg(long, value_name = "N")]
    pub max_iterations: Option<usize>,
    /// Mixtures: EM ends where the mean log-likelihood grows by less than this in a step [default: 0.0001]
    #[arg(long, value_name = "NATS")]
    pub tolerance: Option<f64>,
    /// clompr, clomp: least distance between atoms (with a known covariance, in standard deviations)
    #[arg(long, value_name = "E")]
    pub separation: Option<f64>,
    /// clompr, clomp: largest distance of atoms from the plan's centre, in the same unit
    #[arg(long, value_name = "R")]
    pub radius: Option<f64>,
    /// clompr, clomp: pursuits to run; the one that matches the sketch best is kept [default: 5]
    #[arg(long, value_name = "N")]
    pub replicates: Option<usize>,
    /// Say how sure centres, shares, risk and variances are, and how stable each cluster is: every fold of the sketch is
    /// left out in turn (see 'nysketch sketch --folds')
    #[arg(long)]
    pub intervals: bool,
    /// How often an interval is meant to hold what it is about
    #[arg(long, value_name = "P", default_value_t = 0.95, requires = "intervals")]
    pub confidence: f64,
    /// Also say what models of every k cost on folds of the sketch that they have not seen
    #[arg(long)]
    pub cross_validate: bool,
    /// Picture to write, .svg or .png: the curve of a range of k, or the clusters of one k
    #[arg(long, value_name = "FILE", value_parser = picture())]
    pub plot: Option<PathBuf>,
    /// Seed of all random choices
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
}

/// Apply a model to rows: one line of output per row, in order.
///
/// Writes the label and the distance to the nearest centre, in the coordinates of the fit (scaled columns
/// where the plan scales them). For mixtures also writes the log density, and with --flag whether the row is
/// an outlier; for principal components, the coordinates along them. Skipped rows get the label -1.
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
    /// Start of the names of the predicted columns, where they would collide with columns to keep
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    pub prefix: String,
    /// Also write the probability of each component of a mixture
    #[arg(long)]
    pub scores: bool,
    /// Mixtures: also write whether a row lies less densely than this share of the rows of the sketch
    #[arg(long, value_name = "SHARE")]
    pub flag: Option<f64>,
    #[command(flatten)]
    pub device: DeviceArg,
}

/// Measure a model on rows: risks, and agreement with labels.
///
/// Prints the mean squared distance and the mean distance to the nearest centre in the coordinates of the
/// fit (scaled columns where the plan scales them; 'mse_table_units' is in the units of the table), the
/// negative log-likelihood in nats, and with --labels the adjusted Rand index and normalised mutual information.
#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  nysketch evaluate model.json x.csv
  nysketch evaluate model.json x.npy --labels y.npy --json

JSON fields: rows, skipped, skipped_by_column, mse, mse_table_units, mean_distance, nll, ari, nmi (those that apply)")]
pub struct Evaluate {
    /// Model to measure
    #[arg(value_name = "MODEL")]
    pub model: PathBuf,
    #[command(flatten)]
    pub input: InputArgs,
    /// True labels: a column of the input, or a file with one column
    #[arg(long, value_name = "COLUMN|FILE")]
    pub labels: Option<String>,
    /// Column of row weights; a row of weight 2 counts as two rows, but for --labels
    #[arg(long, value_name = "COLUMN")]
    pub weights: Option<String>,
    /// Also print the excess risk over this model, such as the best known, on the same rows
    #[arg(long, value_name = "MODEL")]
    pub reference: Option<PathBuf>,
    #[command(flatten)]
    pub device: DeviceArg,
}

/// Show how sketches differ: drift.
///
/// Two sketches of one plan and of different rows are compared: how much changed (the share of the rows that would have to
/// move to another cell, the largest change of a mean), one p-value for whether that is chance, and where: columns, levels,
/// missing values and cells.
///
/// --against compares every sketch with one. --baseline asks whether the last sketch is unusual among the others, for
/// example today among the days before. --watch looks at days in their order and raises an alarm
/// whose error rate holds however often you look. --segments takes segments out of two folders of sketches until no drift is left. Folders stand for the .nys files
/// in them.
#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  nysketch diff day1.nys day2.nys
  nysketch diff week.nys day2.nys --part-of
  nysketch diff day1.nys day2.nys --tolerance 0.02 --exit-code || echo \"something changed\"
  nysketch diff --against site-1.nys day1.nys day2.nys --plot drift.svg
  nysketch diff --baseline days/ today.nys --plot today.svg --metrics drift.prom
  nysketch diff --watch days/ --same-weekday
  nysketch diff january/ february/ --segments

With --exit-code: 0 no drift, 1 drift, 2 wrong usage, 3 any other error; with --tolerance 4 where it cannot be told.
A file for --config has options under their names: level, tolerance, draws, top, seed, same-weekday.

JSON fields: baseline, file, part_of, rows, level, moved {share, low, high}, tolerance, verdict, p_value, drift, test_by,
  least_p_value, no_test, note,
  discrepancies [{bandwidth, mmd, noise}], columns [{column, means, deviations, z, effect {deviations, low, high},
  q_value}], categories [{column, p_value, q_value, levels [{level, shares, z}]}], missing [{column, shares, z, p_value,
  q_value}], cells [{landmark, shares, z, mean, levels}], landmarks [{landmark, change, place}], plot; with --against
  baseline, rows, level, plot and sketches [{q_value, …}]; with --baseline days, rows, level, p_value, least_p_value,
  unusual, moved, others_moved, reasons [{what, share, value, median, deviation, deviations}], each [{name, rows, moved,
  score}], file, plot; with --watch level, days [{name, rows, moved, p_value, evidence}], alarm, began, autocorrelation,
  autocorrelation_p_value, plot; with --segments before, after, segments, whole {…}, removed [{segment, shares, moved,
  p_value}], explained")]
pub struct Diff {
    /// Two sketches; any number with --against and --watch; with --baseline more days and then today; with --segments two folders
    #[arg(required = true, value_name = "SKETCH")]
    pub sketches: Vec<PathBuf>,
    /// Compare every sketch with this one
    #[arg(long, value_name = "SKETCH")]
    pub against: Option<PathBuf>,
    /// Is the last sketch unusual among these days? A folder, or a sketch and more of them before the last
    #[arg(long, value_name = "DAYS")]
    pub baseline: Option<PathBuf>,
    /// Watch days in the order in which they are given
    #[arg(long)]
    pub watch: bool,
    /// Which segments explain the change between two folders of sketches (see sketch --by)?
    #[arg(long)]
    pub segments: bool,
    /// The second sketch is part of the first: compare it with the rest
    #[arg(long)]
    pub part_of: bool,
    /// Compare days with those of the same day of the week, by the dates in their names
    #[arg(long)]
    pub same_weekday: bool,
    /// Write a picture (.svg or .png) of the sketches in their order
    #[arg(long, value_name = "FILE", value_parser = picture())]
    pub plot: Option<PathBuf>,
    /// Write the figures for a monitoring system, in the text format of Prometheus
    #[arg(long, value_name = "FILE")]
    pub metrics: Option<PathBuf>,
    /// Largest p-value that is called drift: the share of false alarms [default: 0.05]
    #[arg(long, value_name = "P")]
    pub level: Option<f64>,
    /// Say whether more than this share of the rows moved: changed, same or cannot tell
    #[arg(long, value_name = "SHARE")]
    pub tolerance: Option<f64>,
    /// Report the result in the exit code
    #[arg(long)]
    pub exit_code: bool,
    /// Read options that are not given here from this file (TOML)
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Draws from the null distribution; the smallest p-value is 1/(draws + 1) [default: 999]
    #[arg(long, value_name = "N")]
    pub draws: Option<u64>,
    /// Number of columns, cells and landmarks to show [default: 5]
    #[arg(long, value_name = "N")]
    pub top: Option<usize>,
    /// Seed of all random choices [default: 0]
    #[arg(long)]
    pub seed: Option<u64>,
}

/// Write a page about a sketch that opens in any browser.
///
/// One HTML file without external links: the sketch in words, the curve over k with a slider over its models, a
/// map of the cells, the clusters with their sizes and profiles, and with --against the drift from another
/// sketch. Of several sketches, the page is about the last, and shows the drift of each in this order. Models
/// that are given are shown instead of those of the curve, as many as fit into two megabytes.
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
    /// Take the witness rows from this plan, or from this sketch of it [default: from the sketch, or a plan in its
    /// folder]
    #[arg(long, value_name = "PLAN|SKETCH")]
    pub plan: Option<PathBuf>,
    /// Also show how each sketch differs from this one
    #[arg(long, value_name = "SKETCH")]
    pub against: Option<PathBuf>,
    /// Largest k of the curve
    #[arg(long, value_name = "K", default_value_t = 12, value_parser = clap::value_parser!(u16).range(3..=200))]
    pub most_clusters: u16,
    /// Seed of all random choices
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
}

/// Run the paper's experiments and draw its figures.
///
/// Section 5 and appendix E of "Mean Nyström Embeddings for Adaptive Compressive Learning": random Fourier and
/// Nyström sketches (uniform, BLESS, greedy) decoded by CL-OMPR, the best of five pursuits from the same starts, beside our decoders and what all rows, 2,000
/// rows or the landmarks alone give. Writes trials.csv with every fit, each picture as SVG and PNG, and a page,
/// index.html. An interrupted run continues where it stopped; more trials or figures in the same folder
/// add to what is there. Real data is read from the folder --data, and skipped without it.
#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  nysketch reproduce fig3 --quick -o figures
  nysketch reproduce all --trials 50 --data data -o figures     # many hours on 2 cores

Files of --data (others are skipped): mnist_spectral.npy, mnist_labels.npy, cifar10_resnet18_pca50.npy,
  cifar10_labels.npy, esc50_mfcc20.npy, esc50_labels.npy: rows, and one class number per row;
  fma2000_mfcc.parquet with columns mfcc_mean_01 to mfcc_mean_20

JSON fields: folder, trials, seed, quick, fits, new, failed, missing, panels, page, seconds")]
pub struct Reproduce {
    /// Figure to make
    #[arg(value_enum)]
    pub what: Figure,
    /// Folder to write to, or to continue in
    #[arg(short, long, value_name = "DIR")]
    pub output: PathBuf,
    /// Folder with the real data
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Trials per fit (figure 2: at most 10) [default: 50; 2 with --quick]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub trials: Option<u32>,
    /// At most 10,000 rows and sketches of 400 numbers: a few minutes
    #[arg(long)]
    pub quick: bool,
    /// Seed of all random choices
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Figure {
    /// Risk against the sketch size: k-means and Gaussian modelling
    Fig1,
    /// Gaussian modelling against the kernel variance, for several sketch sizes
    Fig2,
    /// k-means on more synthetic data, and agreement with the classes of CIFAR10
    Fig3,
    /// Gaussian modelling against the sketch size and the kernel variance
    Fig4,
    /// All of them
    All,
}

impl Figure {
    /// Whether it is, or holds, the figure of this number.
    pub fn includes(self, number: u8) -> bool {
        self == Figure::All || self as u8 + 1 == number
    }
}

/// Print a script that completes commands and options in your shell.
///
/// Where the script belongs depends on the shell; the examples show the usual places.
#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  nysketch completions bash > nysketch.bash     # then: source nysketch.bash
  nysketch completions zsh > _nysketch          # in a folder of $fpath
  nysketch completions fish > nysketch.fish     # in ~/.config/fish/completions")]
pub struct Completions {
    /// Shell to complete in
    #[arg(value_enum)]
    pub shell: clap_complete::Shell,
}

/// Print the manual page, or write one page per command.
///
/// Pages are in the format of man(1).
#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  nysketch man > nysketch.1                     # then: man ./nysketch.1
  nysketch man --dir man1")]
pub struct Man {
    /// Folder to write nysketch.1, nysketch-sketch.1, … to
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
}
