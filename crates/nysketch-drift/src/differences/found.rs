//! Result of a comparison. The field names are those of `--json`.

use crate::differences::shares::{CategoryChange, MissingChange};
use crate::statistics::moved::{Moved, Verdict};
use nysketch_core::sketch::aspects::Aspect;
use nysketch_core::sketch::profile::Profile;
use serde::Serialize;

/// The discrepancy at one bandwidth.
#[derive(Debug, Clone, Copy, Serialize)]
#[non_exhaustive]
pub struct Discrepancy {
    /// σ².
    #[serde(rename = "bandwidth")]
    pub sigma2: f64,
    /// `‖A_m(π_A) − A_m(π_B)‖`.
    pub mmd: f64,
    /// An upper bound on the root mean square of `mmd` if both samples come from one distribution:
    /// `√((1/n_A + 1/n_B)(1 − ‖A_m‖²))`.
    pub noise: f64,
}

/// The change of a cell.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct CellChange {
    /// Index of the landmark.
    pub landmark: usize,
    /// Shares of the rows of A and of B.
    pub shares: [f64; 2],
    /// Difference of the shares, B minus A, in standard errors.
    pub z: f64,
    /// Mean of its rows in both samples, in the table's units.
    pub mean: Vec<f64>,
    /// Share of each level among its rows in both samples, all categories concatenated.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub levels: Vec<f64>,
}

/// The change of a column's mean.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct ColumnChange {
    /// Name of the column. For a cyclic time, followed by the measured part, as in `when (hour)`.
    pub column: String,
    /// The compared quantity: a number, or a cyclic time.
    #[serde(skip)]
    pub aspect: Aspect,
    /// Means in A and B, in the table's units. For a cyclic time, in hours, days or months.
    pub means: [f64; 2],
    /// Standard deviations in A and B of the measured values; `None` for a cyclic time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deviations: Option<[f64; 2]>,
    /// Difference of the means, B minus A, in standard errors. For a cyclic time, of its sine and
    /// cosine together.
    pub z: f64,
    /// Difference of the means in standard deviations of the rows; `None` for a cyclic time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effect: Option<Effect>,
    /// Standard error of the effect if rows are independent.
    #[serde(skip)]
    pub(super) error: f64,
    /// Degrees of freedom of z, if folds estimate its noise.
    #[serde(skip)]
    pub(super) freedom: Option<usize>,
    /// The false-discovery rate at which the change is reported. All columns, categories and shares
    /// of missing values are tested together. `None` if there are too few rows or they are
    /// weighted.
    pub q_value: Option<f64>,
}

/// A difference of means in standard deviations of the rows, with a confidence interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Effect {
    /// The estimate.
    pub deviations: f64,
    /// Lower end of the interval with confidence 1 − level; `None` if rows are weighted and there
    /// are no folds.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
}

impl Effect {
    /// Adds an interval with this half width.
    pub(super) fn with_interval(self, half: f64) -> Self {
        let [low, high] = [-half, half].map(|by| Some(self.deviations + by));
        Effect { low, high, ..self }
    }

    /// Drops the interval.
    pub fn without_interval(self) -> Self {
        Effect { low: None, high: None, ..self }
    }
}

/// The change of the mean kernel value at a landmark, at the middle bandwidth.
#[derive(Debug, Clone, Serialize)]
pub struct LandmarkChange {
    /// Index of the landmark.
    pub landmark: usize,
    /// Difference of the mean kernel values, B minus A.
    pub change: f64,
    /// The landmark in the table's units.
    pub place: Vec<f64>,
}

/// The independence assumption of a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TestBy {
    /// Rows are independent.
    Rows,
    /// Folds are independent: rows of a key may be dependent, or rows may be weighted.
    Folds,
}

/// Result of a comparison.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Drift {
    /// Numbers of rows of A and B, weights counted.
    pub rows: [u64; 2],
    /// Level at or below which a p-value means drift. Intervals have confidence 1 − level.
    pub level: f64,
    /// Share of the rows that would have to move to another cell to turn A into B; `None` without
    /// cells.
    pub moved: Option<Moved>,
    /// The tolerated share of moved rows, if one was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tolerance: Option<f64>,
    /// The verdict on whether more rows moved than tolerated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// p-value of the test; `None` if no test is possible.
    pub p_value: Option<f64>,
    /// Whether the p-value, or the q-value if there is one, is at most the level; `None` without a
    /// p-value.
    pub drift: Option<bool>,
    /// If many sketches are compared with one: the false-discovery rate at which this change is
    /// reported.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub q_value: Option<f64>,
    /// The independence assumption of the p-value and the intervals.
    pub test_by: TestBy,
    /// The smallest p-value that the test can give.
    pub least_p_value: f64,
    /// The reason why there is no p-value.
    pub no_test: Option<String>,
    /// A note on the test.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Discrepancies, one per bandwidth; empty without kernel sums.
    pub discrepancies: Vec<Discrepancy>,
    /// Columns, largest change first; empty without cells and moments.
    pub columns: Vec<ColumnChange>,
    /// Categories, smallest p-value first; empty without cells.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub categories: Vec<CategoryChange>,
    /// Columns with missing values, largest change first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<MissingChange>,
    /// Cells, largest change first; empty without cells.
    pub cells: Vec<CellChange>,
    /// Landmarks, largest change first; empty without landmarks and kernel sums.
    pub landmarks: Vec<LandmarkChange>,
    /// Summary of all rows of A, as the reference for cells and landmarks.
    #[serde(skip)]
    pub whole: Option<Profile>,
}

impl Drift {
    /// The discrepancy at the middle bandwidth.
    pub fn middle(&self) -> Option<&Discrepancy> {
        self.discrepancies.get(self.discrepancies.len() / 2)
    }

    /// The discrepancy at the middle bandwidth divided by its noise.
    pub fn mmd_over_noise(&self) -> Option<f64> {
        self.middle().filter(|d| d.noise > 0.0).map(|d| d.mmd / d.noise)
    }

    /// Keeps the `top` most changed cells and landmarks.
    pub fn keep(&mut self, top: usize) {
        self.cells.truncate(top);
        self.landmarks.truncate(top);
    }
}
