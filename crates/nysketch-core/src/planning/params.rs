//! Parameters of planning and their defaults.
//!
//! Front ends only parse: they fill in [`PlanParams`]. [`PlanParams::check`] sets the defaults and
//! decides which options can be combined.

use super::choices::{DatePart, FeatureKind, LandmarkCount, Missing, SampleRows, Scale};
use super::private::PrivateParams;
use crate::kernel::Kernel;
use crate::pass::engine::DeviceChoice;
use crate::plan::collect::Collect;
use crate::plan::sampling::Sampling;
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
/// Default contribution of different levels to a squared distance. Two rows differ by 2 on average
/// in a numeric column that is divided by its standard deviation. On mixtures of Gaussians and
/// multinomials, this value recovered more of the clusters than 1, the other natural choice.
pub const CATEGORY_WEIGHT: f64 = 2.0;

/// Landmarks from the user.
#[derive(Debug, Clone)]
pub struct GivenLandmarks {
    /// Name of their source, for messages.
    pub name: String,
    /// Rows in the table's units.
    pub rows: Vec<Vec<f64>>,
}

/// Unchecked parameters of a plan.
///
/// ```
/// use nysketch_core::{PlanParams, Sampling, Scale};
/// let params = PlanParams::default().landmarks(100).sampling(Sampling::Uniform);
/// let params = params.scale(Scale::Standard);
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
    /// Number of landmarks. By default [`default_landmarks`](super::default_landmarks), or the
    /// number of different rows if that is smaller.
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
    /// By default [`default_witnesses`](super::default_witnesses) if landmarks are chosen from the
    /// rows and cells are kept, otherwise none.
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
}
