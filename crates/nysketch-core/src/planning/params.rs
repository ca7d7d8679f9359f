//! Parameters of planning, their defaults and their checks.
//!
//! Front ends only parse: they fill in [`PlanParams`]. [`PlanParams::check`] sets the defaults and
//! decides which options can be combined.

use super::private::PrivateParams;
use crate::error::names::{Choice, Named, name_of};
use crate::error::{Error, Result};
use crate::kernel::Kernel;
use crate::kernel::fourier::FrequencyLaw;
use crate::kernel::ladder::check_bandwidths;
use crate::pass::engine::DeviceChoice;
use crate::plan::collect::Collect;
use crate::plan::sampling::Sampling;
use crate::plan::table::MAX_SUMS;
use crate::plan::{MAX_POINTS, NOT_PRIVATE, WITNESSES_NEED_CELLS, check_kernel};
use crate::planning::landmarks::count::default_landmarks;
use crate::planning::survey::SurveyParams;
use crate::recipe::{Step, vector_of};
use crate::rows::Invalid;
use crate::rows::weight::WeightParams;

/// Default number of frequencies, which gives as many features as
/// [`DEFAULT_LANDMARKS`](super::DEFAULT_LANDMARKS).
pub const DEFAULT_FREQUENCIES: usize = 200;
/// Default number of sampled rows.
pub const DEFAULT_SAMPLE_ROWS: usize = 20_000;
/// Largest number of values in the default sample: 134 MB, held at most twice. The sample is larger
/// if the landmarks (two rows each) or the retained rows need it.
pub const SAMPLE_VALUES: usize = 1 << 24;
/// Default number of retained rows.
pub const DEFAULT_WITNESSES: usize = 20_000;

/// Number of retained rows for each of the first clusters and for each further cluster, if the
/// number of clusters is given. The risk of k-means on s rows exceeds that on all rows by a share
/// of about k/s, and by twice that if clusters overlap. With many clusters, fewer rows per cluster
/// keep the excess within half a percent and learning within the time of the pass.
const WITNESSES_PER_CLUSTER: [usize; 2] = [800, 300];
const FIRST_CLUSTERS: usize = 200;
/// Largest number of values in the retained rows for each hundred clusters, about 4 MB, and never
/// more than in the sample. At least 20 rows per cluster and 2,000 rows are kept in any case.
const WITNESS_VALUES: usize = 1_000_000;
const LEAST_PER_CLUSTER: usize = 20;
const LEAST_WITNESSES: usize = 2_000;

/// Default number of retained rows for this number of columns.
pub fn default_witnesses(columns: usize, clusters: Option<usize>) -> usize {
    let k = clusters.unwrap_or(0);
    let (first, others) = (k.min(FIRST_CLUSTERS), k.saturating_sub(FIRST_CLUSTERS));
    let [each, later] = WITNESSES_PER_CLUSTER;
    let wanted = DEFAULT_WITNESSES.max((first * each).saturating_add(others.saturating_mul(later)));
    let values = WITNESS_VALUES.saturating_mul((k / 100).max(1)).min(SAMPLE_VALUES);
    let least = LEAST_WITNESSES.max(k.saturating_mul(LEAST_PER_CLUSTER));
    wanted.min((values / columns.max(1)).max(least))
}

/// Default contribution of different levels to a squared distance. Two rows differ by 2 on average
/// in a numeric column that is divided by its standard deviation. On mixtures of Gaussians and
/// multinomials, this value recovered more of the clusters than 1, the other natural choice.
pub const CATEGORY_WEIGHT: f64 = 2.0;

/// The feature map.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FeatureKind {
    /// Kernel values at landmarks.
    #[default]
    Nystrom,
    /// Random Fourier features.
    Fourier,
    /// Random Fourier features with frequencies of adapted lengths.
    AdaptedFourier,
}

impl Named for FeatureKind {
    const PARAMETER: &'static str = "`features`";
    const TABLE: &'static [Choice<Self>] = &[
        Choice::new(FeatureKind::Nystrom, "nystrom", "Kernel values at landmarks"),
        Choice::new(FeatureKind::Fourier, "fourier", "Random cosines and sines"),
        Choice::new(
            FeatureKind::AdaptedFourier,
            "adapted-fourier",
            "The same, with frequencies of adapted lengths (Keriven et al. 2017)",
        ),
    ];
}

impl FeatureKind {
    /// Name of the option value.
    pub fn name(self) -> &'static str {
        name_of(self)
    }
}

/// The number of landmarks.
///
/// ```
/// use nysketch_core::LandmarkCount;
/// # fn main() -> nysketch_core::Result<()> {
/// assert_eq!("auto".parse::<LandmarkCount>()?, LandmarkCount::Auto);
/// assert_eq!("200".parse::<LandmarkCount>()?, LandmarkCount::Number(200));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LandmarkCount {
    /// A given number.
    Number(usize),
    /// Chosen from the spectrum of the kernel and the number of clusters.
    Auto,
}

impl std::str::FromStr for LandmarkCount {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self> {
        match text {
            "auto" => Ok(LandmarkCount::Auto),
            number => number
                .parse()
                .map(LandmarkCount::Number)
                .map_err(|_| Error::parameter("`landmarks`", "a number or auto", number)),
        }
    }
}

/// Landmarks from the user.
#[derive(Debug, Clone)]
pub struct GivenLandmarks {
    /// Name of their source, for messages.
    pub name: String,
    /// Rows in the table's units.
    pub rows: Vec<Vec<f64>>,
}

/// The scale of columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Scale {
    /// Columns are not scaled.
    #[default]
    None,
    /// Columns are divided by their standard deviation.
    Standard,
    /// Columns are divided by their interquartile range over that of a standard Gaussian.
    Robust,
}

impl Named for Scale {
    const PARAMETER: &'static str = "`scale`";
    const TABLE: &'static [Choice<Self>] = &[
        Choice::new(Scale::None, "none", "Unscaled columns"),
        Choice::new(Scale::Standard, "standard", "Columns divided by their standard deviation"),
        Choice::new(
            Scale::Robust,
            "robust",
            "Columns divided by the width of their middle half (quartiles of the sample)",
        ),
    ];
}

impl Scale {
    /// Name of the option value.
    pub fn name(self) -> &'static str {
        name_of(self)
    }
}

/// Treatment of rows with missing values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Missing {
    /// `Partial` if values are missing while planning, otherwise `Error`.
    #[default]
    Auto,
    /// Rows with missing values are invalid.
    Error,
    /// Rows with missing values contribute the values they have.
    Partial,
}

impl Named for Missing {
    const PARAMETER: &'static str = "`missing`";
    const TABLE: &'static [Choice<Self>] = &[
        Choice::new(
            Missing::Auto,
            "auto",
            "partial where values are missing while planning, else error",
        ),
        Choice::new(Missing::Error, "error", "A row with a missing value is invalid"),
        Choice::new(Missing::Partial, "partial", "Rows count by the values they have"),
    ];
}

impl Missing {
    /// Name of the option value.
    pub fn name(self) -> &'static str {
        name_of(self)
    }
}

/// A measured part of a timestamp.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DatePart {
    /// The timestamp itself.
    Time,
    /// The time of day, as a point on a circle.
    Hour,
    /// The time of the week, as a point on a circle.
    Weekday,
    /// The time of the year, as a point on a circle.
    Month,
}

impl Named for DatePart {
    const PARAMETER: &'static str = "`dates`";
    const TABLE: &'static [Choice<Self>] = &[
        Choice::new(DatePart::Time, "time", "Its position"),
        Choice::new(DatePart::Hour, "hour", "The time of the day, on a circle"),
        Choice::new(DatePart::Weekday, "weekday", "The time of the week, on a circle"),
        Choice::new(DatePart::Month, "month", "The time of the year, on a circle"),
    ];
}

impl DatePart {
    /// Parts that are measured by default.
    pub const DEFAULT: &'static [DatePart] = &[DatePart::Time, DatePart::Hour, DatePart::Weekday];

    /// Suffixes of the names of the resulting columns, and the steps that compute them.
    pub(super) fn steps(self) -> &'static [(&'static str, Step)] {
        match self {
            DatePart::Time => &[("", Step::Time)],
            DatePart::Hour => &[(".hour.sin", Step::HourSin), (".hour.cos", Step::HourCos)],
            DatePart::Weekday => {
                &[(".weekday.sin", Step::WeekdaySin), (".weekday.cos", Step::WeekdayCos)]
            }
            DatePart::Month => &[(".month.sin", Step::MonthSin), (".month.cos", Step::MonthCos)],
        }
    }
}

/// The number of rows from which landmarks are chosen.
///
/// ```
/// use nysketch_core::SampleRows;
/// # fn main() -> nysketch_core::Result<()> {
/// assert_eq!("all".parse::<SampleRows>()?, SampleRows::All);
/// assert_eq!("5000".parse::<SampleRows>()?, SampleRows::Count(5000));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SampleRows {
    /// A uniform sample of [`DEFAULT_SAMPLE_ROWS`] rows, or of four times the number of landmarks
    /// if that is more, with at most [`SAMPLE_VALUES`] values. At least twice as many rows as
    /// landmarks, and at least as many as retained rows.
    Default,
    /// A uniform sample of a given number of rows.
    Count(usize),
    /// All rows, in memory.
    All,
}

impl std::str::FromStr for SampleRows {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self> {
        match text {
            "all" => Ok(SampleRows::All),
            number => number
                .parse()
                .map(SampleRows::Count)
                .map_err(|_| Error::parameter("`sample_rows`", "a number or all", number)),
        }
    }
}

/// Unchecked parameters of a plan.
///
/// ```
/// use nysketch_core::{PlanParams, Sampling, Scale};
/// let params = PlanParams::default().landmarks(100).sampling(Sampling::Uniform).scale(Scale::Standard);
/// assert!(params.check().is_ok());
/// // Options that cannot be combined are refused before any row is read.
/// let error = PlanParams::default().frequencies(50).check().unwrap_err();
/// assert!(error.to_string().contains("`features=fourier`"));
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PlanParams {
    /// The feature map.
    pub features: FeatureKind,
    /// Number of landmarks. By default [`default_landmarks`], or the number of different rows if
    /// that is smaller.
    pub landmarks: Option<LandmarkCount>,
    /// Number of clusters to learn, if known.
    pub clusters: Option<usize>,
    /// The method that chooses landmarks.
    pub sampling: Option<Sampling>,
    /// λ of the paper's leverage sampling, in which the number of landmarks is random.
    pub leverage_lambda: Option<f64>,
    /// Landmarks given by the user.
    pub landmarks_from: Option<GivenLandmarks>,
    /// m′ of Fourier features, half the number of features.
    pub frequencies: Option<usize>,
    /// The kernel of the kernel sums.
    pub kernel: Kernel,
    /// Bandwidths σ² in any order; `None` chooses them from the sample.
    pub bandwidths: Option<Vec<f64>>,
    /// The scale of columns. By default columns are not scaled, except with categories or
    /// timestamps, which have no unit in common with other columns; then columns are divided by
    /// their standard deviations.
    pub scale: Option<Scale>,
    /// Numeric columns that are measured as `sign(x)·ln(1 + |x|)`.
    pub log: Vec<String>,
    /// Weights of columns in squared distances. The default is 1 for numeric columns and
    /// [`CATEGORY_WEIGHT`] for categories.
    pub column_weights: Vec<(String, f64)>,
    /// Vectors that are scaled to length one; `*` means all numeric columns together.
    pub unit: Vec<String>,
    /// Measured parts of each column of timestamps; [`DatePart::DEFAULT`] by default.
    pub dates: Vec<(String, Vec<DatePart>)>,
    /// Columns requested as categories, with any number of levels.
    pub categorical: Vec<String>,
    /// Columns named by the user, which are always measured.
    pub named: Vec<String>,
    /// Whether numeric columns that are clearly ids are excluded.
    pub leave_out_ids: bool,
    /// Treatment of rows with missing values.
    pub missing: Missing,
    /// Number of rows from which landmarks are chosen.
    pub sample_rows: SampleRows,
    /// The sums to keep; `None` for the default.
    pub collect: Option<Collect>,
    /// Number of rows of the sample that the plan retains: all rows if there are fewer, 0 for none.
    /// By default [`default_witnesses`] if landmarks are chosen from the rows and cells are kept,
    /// otherwise none.
    pub witnesses: Option<usize>,
    /// The column of row weights.
    pub weighting: Option<WeightParams>,
    /// Parameters of a private plan, which must be made from public rows.
    pub private: Option<PrivateParams>,
    /// Seed of all random choices.
    pub seed: u64,
    /// Treatment of invalid rows.
    pub invalid: Invalid,
    /// Number of threads.
    pub threads: usize,
    /// The device that compares rows with landmarks. The plan is the same for every device.
    pub device: DeviceChoice,
}

impl Default for PlanParams {
    fn default() -> Self {
        PlanParams {
            features: FeatureKind::default(),
            landmarks: None,
            clusters: None,
            sampling: None,
            leverage_lambda: None,
            landmarks_from: None,
            frequencies: None,
            kernel: Kernel::default(),
            bandwidths: None,
            scale: None,
            log: Vec::new(),
            column_weights: Vec::new(),
            unit: Vec::new(),
            dates: Vec::new(),
            categorical: Vec::new(),
            named: Vec::new(),
            leave_out_ids: false,
            missing: Missing::default(),
            sample_rows: SampleRows::Default,
            collect: None,
            witnesses: None,
            weighting: None,
            private: None,
            seed: 0,
            invalid: Invalid::default(),
            threads: 1,
            device: DeviceChoice::Cpu,
        }
    }
}

/// The points at which features are measured.
#[derive(Debug, Clone)]
pub(super) enum Measurement {
    /// Landmarks chosen from the rows.
    Chosen { landmarks: Option<LandmarkCount>, sampling: Sampling },
    /// The paper's random number of landmarks for a given λ.
    Leverage(f64),
    /// Landmarks given as rows in the table's units.
    Given(GivenLandmarks),
    /// Random Fourier features.
    Fourier { frequencies: usize, law: FrequencyLaw },
}

/// Checked parameters. Planning accepts only these.
#[derive(Debug, Clone)]
pub struct PlanValid {
    pub(super) params: PlanParams,
    pub(super) measurement: Measurement,
    /// Largest number of retained rows.
    pub(super) witnesses: usize,
}

impl PlanParams {
    /// Sets the number of landmarks.
    #[must_use]
    pub fn landmarks(mut self, count: usize) -> Self {
        self.landmarks = Some(LandmarkCount::Number(count));
        self
    }

    /// Chooses the number of landmarks from the data.
    #[must_use]
    pub fn auto_landmarks(mut self) -> Self {
        self.landmarks = Some(LandmarkCount::Auto);
        self
    }

    /// Sets the number of clusters to learn.
    #[must_use]
    pub fn clusters(mut self, clusters: usize) -> Self {
        self.clusters = Some(clusters);
        self
    }

    /// Sets the method that chooses landmarks.
    #[must_use]
    pub fn sampling(mut self, rule: Sampling) -> Self {
        self.sampling = Some(rule);
        self
    }

    /// Sets λ of leverage sampling.
    #[must_use]
    pub fn leverage_lambda(mut self, lambda: f64) -> Self {
        self.leverage_lambda = Some(lambda);
        self
    }

    /// Uses these rows as landmarks. `name` is their source, for messages.
    #[must_use]
    pub fn landmarks_from(mut self, name: impl Into<String>, rows: Vec<Vec<f64>>) -> Self {
        self.landmarks_from = Some(GivenLandmarks { name: name.into(), rows });
        self
    }

    /// Uses random Fourier features instead of landmarks.
    #[must_use]
    pub fn fourier(mut self, frequencies: usize) -> Self {
        self.features = FeatureKind::Fourier;
        self.frequencies(frequencies)
    }

    /// Sets the number of frequencies.
    #[must_use]
    pub fn frequencies(mut self, frequencies: usize) -> Self {
        self.frequencies = Some(frequencies);
        self
    }

    /// Sets the kernel.
    #[must_use]
    pub fn kernel(mut self, kernel: Kernel) -> Self {
        self.kernel = kernel;
        self
    }

    /// Sets the bandwidths σ².
    #[must_use]
    pub fn bandwidths(mut self, sigma2: impl Into<Vec<f64>>) -> Self {
        self.bandwidths = Some(sigma2.into());
        self
    }

    /// Sets the scale of columns.
    #[must_use]
    pub fn scale(mut self, scale: impl Into<Option<Scale>>) -> Self {
        self.scale = scale.into();
        self
    }

    /// Measures these numeric columns as logarithms.
    #[must_use]
    pub fn log<S: Into<String>>(mut self, columns: impl IntoIterator<Item = S>) -> Self {
        self.log = columns.into_iter().map(Into::into).collect();
        self
    }

    /// Sets the weight of a column in squared distances.
    #[must_use]
    pub fn column_weight(mut self, column: impl Into<String>, weight: f64) -> Self {
        self.column_weights.push((column.into(), weight));
        self
    }

    /// Scales these vectors to length one.
    #[must_use]
    pub fn unit<S: Into<String>>(mut self, vectors: impl IntoIterator<Item = S>) -> Self {
        self.unit = vectors.into_iter().map(Into::into).collect();
        self
    }

    /// Sets the measured parts of a column of timestamps.
    #[must_use]
    pub fn dates(mut self, column: impl Into<String>, parts: impl Into<Vec<DatePart>>) -> Self {
        self.dates.push((column.into(), parts.into()));
        self
    }

    /// Treats these columns as categories, with any number of levels.
    #[must_use]
    pub fn categorical<S: Into<String>>(mut self, columns: impl IntoIterator<Item = S>) -> Self {
        self.categorical = columns.into_iter().map(Into::into).collect();
        self
    }

    /// Measures these columns in any case.
    #[must_use]
    pub fn named<S: Into<String>>(mut self, columns: impl IntoIterator<Item = S>) -> Self {
        self.named = columns.into_iter().map(Into::into).collect();
        self
    }

    /// Sets whether columns that are clearly ids are excluded.
    #[must_use]
    pub fn leave_out_ids(mut self, leave_out: bool) -> Self {
        self.leave_out_ids = leave_out;
        self
    }

    /// Sets the treatment of rows with missing values.
    #[must_use]
    pub fn missing(mut self, missing: Missing) -> Self {
        self.missing = missing;
        self
    }

    /// The weight of a column in squared distances, if it was set.
    pub(super) fn weight_of(&self, column: &str) -> Option<f64> {
        let of_it = |(name, _): &&(String, f64)| name == column || vector_of(column) == Some(name);
        self.column_weights.iter().find(of_it).map(|(_, weight)| *weight)
    }

    /// Whether cells are kept, according to the parameters alone.
    fn keeps_cells(&self) -> bool {
        self.features == FeatureKind::Nystrom
            && self.collect.map_or(self.kernel == Kernel::Gaussian, |c| c.cells)
    }

    /// Whether the plan allows missing values, for a table with or without missing values.
    pub(super) fn keeps_partial(&self, holes: bool) -> bool {
        match self.missing {
            Missing::Auto => holes && self.keeps_cells(),
            Missing::Error => false,
            Missing::Partial => true,
        }
    }

    /// Sets the number of rows from which landmarks are chosen.
    #[must_use]
    pub fn sample_rows(mut self, rows: SampleRows) -> Self {
        self.sample_rows = rows;
        self
    }

    /// Sets the sums to keep.
    #[must_use]
    pub fn collect(mut self, collect: Collect) -> Self {
        self.collect = Some(collect);
        self
    }

    /// Sets the number of retained rows, 0 for none.
    #[must_use]
    pub fn witnesses(mut self, count: usize) -> Self {
        self.witnesses = Some(count);
        self
    }

    /// Uses this column as row weights, rounded to multiples of `unit`. `None` chooses the unit
    /// from the weights.
    #[must_use]
    pub fn weights(mut self, column: impl Into<String>, unit: impl Into<Option<f64>>) -> Self {
        self.weighting = Some(WeightParams { column: column.into(), unit: unit.into() });
        self
    }

    /// Makes the plan private, with these bounds. The rows it is made from must be public.
    #[must_use]
    pub fn private(mut self, private: PrivateParams) -> Self {
        self.private = Some(private);
        self
    }

    /// Sets the seed.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Sets the treatment of invalid rows.
    #[must_use]
    pub fn invalid(mut self, invalid: Invalid) -> Self {
        self.invalid = invalid;
        self
    }

    /// Sets the number of threads.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads;
        self
    }

    /// Sets the device that computes the distances of all rows from landmarks for
    /// `sampling=dsquared`. The default is the CPU, which is always used for tables with categories
    /// or missing values.
    #[must_use]
    pub fn device(mut self, device: DeviceChoice) -> Self {
        self.device = device;
        self
    }

    /// The first option that cannot be combined with the chosen feature map, if any, and the
    /// expected use.
    fn misplaced(&self) -> Option<(&'static str, &'static str)> {
        let landmarks = [
            ("`landmarks`", self.landmarks.is_some()),
            ("`sampling`", self.sampling.is_some()),
            ("`leverage_lambda`", self.leverage_lambda.is_some()),
        ];
        let first = |options: &[(&'static str, bool)]| {
            options.iter().find(|(_, said)| *said).map(|(name, _)| *name)
        };
        match self.features {
            FeatureKind::Fourier | FeatureKind::AdaptedFourier => {
                let from = [("`landmarks_from`", self.landmarks_from.is_some())];
                let why =
                    "left out with Fourier features, which have no landmarks; use `frequencies`";
                first(&landmarks).or(first(&from)).map(|name| (name, why))
            }
            FeatureKind::Nystrom if self.frequencies.is_some() => {
                Some(("`frequencies`", "left out, or used with `features=fourier`"))
            }
            FeatureKind::Nystrom if self.landmarks_from.is_some() => {
                first(&landmarks).map(|name| (name, "left out with `landmarks_from`"))
            }
            FeatureKind::Nystrom => None,
        }
    }

    /// Checks every parameter that can be checked without the data.
    pub fn check(mut self) -> Result<PlanValid> {
        if let Some((name, expected)) = self.misplaced() {
            return Err(Error::parameter(name, expected, "a value"));
        }
        self.settle_private()?;
        let witnesses = self.witness_count()?;
        let measurement = match self.features {
            FeatureKind::Fourier | FeatureKind::AdaptedFourier => {
                let frequencies = self.frequencies.unwrap_or(DEFAULT_FREQUENCIES);
                if !(1..=MAX_POINTS).contains(&frequencies) {
                    let expected = format!("between 1 and {MAX_POINTS}");
                    return Err(Error::parameter("`frequencies`", expected, frequencies));
                }
                let law = match self.features {
                    FeatureKind::AdaptedFourier => FrequencyLaw::Adapted,
                    _ => FrequencyLaw::Normal,
                };
                Measurement::Fourier { frequencies, law }
            }
            FeatureKind::Nystrom => match self.landmarks_from.take() {
                Some(given) => Measurement::Given(given),
                None => self.landmark_choice()?,
            },
        };
        if self.missing == Missing::Partial && !self.keeps_cells() {
            let expected = "used where cells are kept";
            return Err(Error::parameter("`missing=partial`", expected, "no cells"));
        }
        if let Some((name, weight)) =
            self.column_weights.iter().find(|(_, w)| !(1e-6..=1e6).contains(w))
        {
            let expected = format!("a weight of '{name}' between 1e-6 and 1e6");
            return Err(Error::parameter("`weight_column`", expected, weight));
        }
        if let Some(0) = self.clusters {
            return Err(Error::parameter("`clusters`", "at least 1", 0));
        }
        if self.sample_rows == SampleRows::Count(0) {
            return Err(Error::parameter("`sample_rows`", "at least 1, or 'all'", 0));
        }
        let landmarks = self.features == FeatureKind::Nystrom;
        if let Some(collect) = self.collect {
            collect.check(landmarks)?;
        }
        check_kernel(self.kernel, landmarks, self.collect.is_some_and(|c| c.cells))?;
        if let Some(bandwidths) = &mut self.bandwidths {
            bandwidths.sort_by(|a, b| b.total_cmp(a));
            check_bandwidths(bandwidths)?;
        }
        if let Some(w) = &self.weighting {
            w.check()?;
        }
        Ok(PlanValid { params: self, measurement, witnesses })
    }

    /// Refuses options that a private plan does not support, and sets defaults that suit it.
    fn settle_private(&mut self) -> Result<()> {
        let Some(private) = &self.private else { return Ok(()) };
        private.check()?;
        let refused = [
            ("`witnesses`", self.witnesses.is_some_and(|n| n > 0)),
            ("`weights`", self.weighting.is_some()),
            ("`missing=partial`", self.missing == Missing::Partial),
            ("`categorical`", !self.categorical.is_empty()),
            ("`dates`", !self.dates.is_empty()),
            ("`unit`", !self.unit.is_empty()),
        ];
        if let Some((name, _)) = refused.into_iter().find(|(_, said)| *said) {
            return Err(Error::parameter(name, NOT_PRIVATE, "it"));
        }
        self.named = private.columns();
        self.leave_out_ids = false;
        self.missing = Missing::Error;
        self.witnesses = Some(0);
        // Every kind of sum uses a part of the budget, so the default keeps only one kind.
        let cells = self.features == FeatureKind::Nystrom && self.kernel == Kernel::Gaussian;
        self.collect.get_or_insert(Collect { kernel: !cells, cells, moments: false });
        Ok(())
    }

    /// Largest number of retained rows.
    fn witness_count(&self) -> Result<usize> {
        let cells = self.keeps_cells();
        let none = if self.landmarks_from.is_some() {
            Some(
                "0 or left out with `landmarks_from`, which keeps rows of the data out of the plan",
            )
        } else {
            (!cells).then_some(WITNESSES_NEED_CELLS)
        };
        match (self.witnesses, none, self.sample_rows) {
            (Some(n), _, _) if n > MAX_POINTS => {
                Err(Error::parameter("`witnesses`", format!("at most {MAX_POINTS}"), n))
            }
            (Some(n), Some(expected), _) if n > 0 => {
                Err(Error::parameter("`witnesses`", expected, n))
            }
            (Some(n), None, SampleRows::Count(rows)) if n > rows => {
                let expected = format!("at least the {n} witnesses, or 'all'");
                Err(Error::parameter("`sample_rows`", expected, rows))
            }
            (_, Some(_), _) => Ok(0),
            (Some(n), None, _) => Ok(n),
            (None, None, SampleRows::Count(rows)) => Ok(rows),
            (None, None, _) => Ok(usize::MAX),
        }
    }

    fn landmark_choice(&self) -> Result<Measurement> {
        let sampling = match (self.sampling, self.leverage_lambda) {
            (Some(rule), _) => rule,
            (None, Some(_)) => Sampling::Leverage,
            (None, None) => Sampling::default(),
        };
        if self.landmarks == Some(LandmarkCount::Number(0)) {
            return Err(Error::parameter("`landmarks`", "at least 1", 0));
        }
        if sampling == Sampling::Given {
            return Err(Error::parameter("`sampling`", "a rule, or use `landmarks_from`", "given"));
        }
        if let Some(lambda) = self.leverage_lambda {
            if sampling != Sampling::Leverage {
                let expected = "used with `sampling=leverage`";
                return Err(Error::parameter("`leverage_lambda`", expected, sampling.name()));
            }
            if self.landmarks.is_some() {
                let expected = "left out with `leverage_lambda`, which makes their number random";
                return Err(Error::parameter("`landmarks`", expected, "both"));
            }
            if !(1e-13..1.0).contains(&lambda) {
                return Err(Error::parameter("`leverage_lambda`", "between 1e-13 and 1", lambda));
            }
            return Ok(Measurement::Leverage(lambda));
        }
        if let (Some(LandmarkCount::Number(m)), SampleRows::Count(n)) =
            (self.landmarks, self.sample_rows)
            && n < m
        {
            let expected = format!("at least the {m} landmarks, or 'all'");
            return Err(Error::parameter("`sample_rows`", expected, n));
        }
        Ok(Measurement::Chosen { landmarks: self.landmarks, sampling })
    }
}

impl PlanValid {
    /// Parameters of the survey of a table with `columns` columns, including categories.
    #[doc(hidden)]
    pub fn survey(&self, columns: usize) -> SurveyParams {
        let params = &self.params;
        let sample_rows = match params.sample_rows {
            SampleRows::All => usize::MAX,
            SampleRows::Count(n) => n,
            SampleRows::Default => self.default_sample(columns),
        };
        SurveyParams {
            sample_rows,
            seed: params.seed,
            invalid: params.invalid,
            // Unless `missing` is set, skipping invalid rows also skips rows with missing values.
            partial: match params.missing {
                Missing::Auto => params.invalid == Invalid::Refuse && params.keeps_cells(),
                missing => missing == Missing::Partial,
            },
            threads: params.threads,
        }
    }

    /// Default number of sampled rows.
    fn default_sample(&self, columns: usize) -> usize {
        let params = &self.params;
        let landmarks = match params.landmarks {
            Some(LandmarkCount::Number(m)) => m,
            _ => default_landmarks(params.clusters),
        };
        // Larger numbers are refused or reduced later, once the measured columns are known.
        let landmarks = landmarks.min(MAX_SUMS as usize / columns.max(1));
        let needed = landmarks.saturating_mul(2).max(self.witnesses_of(columns));
        let wanted = DEFAULT_SAMPLE_ROWS.max(landmarks.saturating_mul(4)).max(needed);
        wanted.min(needed.max(SAMPLE_VALUES / columns.max(1)))
    }

    /// Number of retained rows for this number of columns.
    pub(super) fn witnesses_of(&self, columns: usize) -> usize {
        match self.params.witnesses {
            Some(_) => self.witnesses,
            None => {
                self.witnesses.min(default_witnesses(columns, self.params.clusters)).min(MAX_POINTS)
            }
        }
    }

    /// The column of row weights.
    #[doc(hidden)]
    pub fn weighting(&self) -> Option<&WeightParams> {
        self.params.weighting.as_ref()
    }

    /// Number of threads.
    #[doc(hidden)]
    pub fn threads(&self) -> usize {
        self.params.threads
    }

    /// The device that compares rows with landmarks.
    pub(super) fn device(&self) -> DeviceChoice {
        self.params.device
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn witnesses_grow_with_the_clusters() {
        assert_eq!(default_witnesses(9, None), 20_000);
        assert_eq!(default_witnesses(9, Some(10)), 20_000);
        assert_eq!(default_witnesses(2, Some(200)), 160_000);
        assert_eq!(default_witnesses(2, Some(201)), 160_300);
        assert_eq!(default_witnesses(9, Some(1000)), 400_000);
        // At most 10⁶ values for each hundred clusters, and at least 20 rows for each cluster.
        assert_eq!(default_witnesses(100, Some(100)), 10_000);
        assert_eq!(default_witnesses(10_000, Some(1000)), 20_000);
    }
}
