//! The profile of a model: means, deviations and missing values over all rows and within each
//! cluster.

use serde::{Deserialize, Serialize};

/// Means and standard deviations of the columns, in the table's units; saved with a model.
///
/// ```
/// use nysketch_core::{FitParams, Task, fit};
/// # fn main() -> nysketch_core::Result<()> {
/// # use nysketch_core::{Mixture, PlanParams, Sketch, SketchParams, Table, plan_for};
/// # let rows = Mixture::new(2, 3, 4.0, 7)?.rows(0, 900).values;
/// # let table = Table::unnamed(2, rows.clone())?;
/// # let plan = std::sync::Arc::new(plan_for(&table, PlanParams::default().landmarks(60))?.plan);
/// # let sketch = Sketch::of(&plan, &table, SketchParams::default(), &())?;
/// let profile = fit(&sketch, &FitParams::new(Task::Kmeans, 3))?.profile.unwrap();
/// // A cluster is narrower than the whole.
/// assert!(profile.spread[0][0] < profile.deviation[0]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Profile {
    /// Mean of each column over all rows.
    pub mean: Vec<f64>,
    /// Standard deviation of each column over all rows.
    pub deviation: Vec<f64>,
    /// Standard deviation of each column within each cluster, estimated from cells, or of each
    /// component. Empty for centres if the sketch has no cells, and for principal components.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub spread: Vec<Vec<f64>>,
    /// The share of each level of each category over all rows, concatenated.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub levels: Vec<f64>,
    /// The share of missing values of each column over all rows; empty if the plan does not allow
    /// missing values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<f64>,
    /// The share of missing values of each column within each cluster, estimated from cells.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing_within: Vec<Vec<f64>>,
}

impl Profile {
    pub(crate) fn new(mean: Vec<f64>, deviation: Vec<f64>, spread: Vec<Vec<f64>>) -> Self {
        let (levels, missing, missing_within) = (Vec::new(), Vec::new(), Vec::new());
        Profile { mean, deviation, spread, levels, missing, missing_within }
    }

    /// Returns whether the profile can describe k clusters in d columns with this number of levels,
    /// and all values are valid.
    pub fn fits(&self, d: usize, levels: usize, k: usize) -> bool {
        let share = |x: &f64| (0.0..=1.0).contains(x);
        let missing = std::iter::once(&self.missing).chain(&self.missing_within);
        let shares = missing.clone().all(|m| m.is_empty() || m.len() == d)
            && missing.flatten().chain(&self.levels).all(share)
            && (self.levels.is_empty() || self.levels.len() == levels)
            && (self.missing_within.is_empty() || self.missing_within.len() == k);
        let lengths = self.mean.len() == d && self.deviation.len() == d;
        let spreads = self.spread.is_empty() || self.spread.len() == k;
        let deviations = std::iter::once(&self.deviation).chain(&self.spread);
        let finite = |x: &f64| x.is_finite();
        lengths
            && shares
            && spreads
            && self.mean.iter().all(finite)
            && deviations
                .into_iter()
                .all(|s| s.len() == d && s.iter().all(|x| finite(x) && *x >= 0.0))
    }
}
