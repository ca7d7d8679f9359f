//! What a comparison found, with the names of `--json`.

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
    /// An upper bound on its root mean square where both come from one distribution:
    /// `√((1/n_A + 1/n_B)(1 − ‖A_m‖²))`.
    pub noise: f64,
}

/// How a cell changed.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct CellChange {
    /// Which landmark.
    pub landmark: usize,
    /// Shares of the rows of A and of B.
    pub shares: [f64; 2],
    /// Share of B less that of A in standard errors.
    pub z: f64,
    /// Mean of its rows in both, in the table's units.
    pub mean: Vec<f64>,
    /// Share of each level of each category among its rows in both, one after the other.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub levels: Vec<f64>,
}

/// How the mean of a column changed.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct ColumnChange {
    /// Its name; of a time on a circle with what is measured of it, as in `when (hour)`.
    pub column: String,
    /// What is compared: a number, or a time on a circle.
    #[serde(skip)]
    pub aspect: Aspect,
    /// Means in A and B, in the table's units; of a time on a circle in hours, days or months.
    pub means: [f64; 2],
    /// Standard deviations in A and B, in what is measured; of a time on a circle none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deviations: Option<[f64; 2]>,
    /// Mean of B less that of A in standard errors; of a time on a circle, of its sine and cosine together.
    pub z: f64,
    /// The same in standard deviations of the rows; of a time on a circle none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effect: Option<Effect>,
    /// Standard error of the effect, were rows independent.
    #[serde(skip)]
    pub(super) error: f64,
    /// Degrees of freedom of z, where folds tell its noise.
    #[serde(skip)]
    pub(super) freedom: Option<usize>,
    /// The false-discovery rate at which it is called changed, all columns, categories and shares of missing values being
    /// tested at once; none where rows are too few or have weights.
    pub q_value: Option<f64>,
}

/// A change of a mean in standard deviations of the rows, with its interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Effect {
    /// The estimate.
    pub deviations: f64,
    /// Low end of the interval of confidence 1 − level; none where rows have weights and there are no folds.
    pub low: Option<f64>,
    /// High end.
    pub high: Option<f64>,
}

impl Effect {
    /// With this half of the interval's width.
    pub(super) fn with_interval(self, half: f64) -> Self {
        let [low, high] = [-half, half].map(|by| Some(self.deviations + by));
        Effect { low, high, ..self }
    }

    pub fn without_interval(self) -> Self {
        Effect { low: None, high: None, ..self }
    }
}

/// How the mean kernel value at a landmark changed, at the middle bandwidth.
#[derive(Debug, Clone, Serialize)]
pub struct LandmarkChange {
    /// Which landmark.
    pub landmark: usize,
    /// Mean kernel value of B less that of A.
    pub change: f64,
    /// Where it lies, in the table's units.
    pub place: Vec<f64>,
}

/// What a test rests on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TestBy {
    /// Rows that are independent of each other.
    Rows,
    /// Folds that are: rows may come in clusters, or have weights.
    Folds,
}

/// What the comparison found.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Drift {
    /// Rows of A and B, weights counted.
    pub rows: [u64; 2],
    /// p-values up to this are called drift; intervals have confidence 1 − level.
    pub level: f64,
    /// How much changed: the share of the rows that would have to move to another cell; none without cells.
    pub moved: Option<Moved>,
    /// The share of the rows that may move, where a verdict was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tolerance: Option<f64>,
    /// Whether more than that moved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// Of the test; none where it cannot be made.
    pub p_value: Option<f64>,
    /// Whether the p-value, or the q-value where there is one, is at most the level; none without a p-value.
    pub drift: Option<bool>,
    /// Of many sketches compared with one, the false-discovery rate at which this one is called changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub q_value: Option<f64>,
    /// What the p-value and the intervals rest on.
    pub test_by: TestBy,
    /// The least p-value that the test can show.
    pub least_p_value: f64,
    /// Why there is no p-value.
    pub no_test: Option<String>,
    /// What else is to be said about the test.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// One per bandwidth; empty where there are no kernel sums.
    pub discrepancies: Vec<Discrepancy>,
    /// Columns, the most changed first; empty without cells and moments.
    pub columns: Vec<ColumnChange>,
    /// Categories, those with the least p-value first; empty without cells.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub categories: Vec<CategoryChange>,
    /// Columns that rows lack, the most changed first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<MissingChange>,
    /// Cells, the most changed first; empty without cells.
    pub cells: Vec<CellChange>,
    /// Landmarks, the most changed first; empty without landmarks and kernel sums.
    pub landmarks: Vec<LandmarkChange>,
    /// What the rows of A look like, where they tell: what cells and landmarks are seen beside.
    #[serde(skip)]
    pub whole: Option<Profile>,
}

impl Drift {
    /// The discrepancy at the middle bandwidth.
    pub fn middle(&self) -> Option<&Discrepancy> {
        self.discrepancies.get(self.discrepancies.len() / 2)
    }

    /// The discrepancy at the middle bandwidth over its noise.
    pub fn mmd_over_noise(&self) -> Option<f64> {
        self.middle().filter(|d| d.noise > 0.0).map(|d| d.mmd / d.noise)
    }

    /// Keeps so many cells and landmarks, the most changed ones.
    pub fn keep(&mut self, top: usize) {
        self.cells.truncate(top);
        self.landmarks.truncate(top);
    }
}
