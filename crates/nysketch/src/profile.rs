//! What the rows of a model look like: all of them, and those of each cluster.

use crate::frame::MAX_CENTRE;
use serde::{Deserialize, Serialize};

/// Means and standard deviations of the columns, in the table's units; saved with a model.
///
/// ```
/// use nysketch::{FitParams, Task, fit};
/// # fn main() -> nysketch::Result<()> {
/// # use nysketch::{Mixture, PlanParams, Sketch, SketchParams, Table, plan_for};
/// # let rows = Mixture::new(2, 3, 4.0, 7)?.rows(0, 900).values;
/// # let table = Table::unnamed(2, rows.clone())?;
/// # let plan = std::sync::Arc::new(plan_for(&table, PlanParams::default().landmarks(60))?.0);
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
    /// Standard deviation of each column within each cluster, as far as cells tell, or of each component; empty
    /// for centres where cells are not kept, and for principal components.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub spread: Vec<Vec<f64>>,
    /// The share of each level of each category, one after the other, over all rows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub levels: Vec<f64>,
    /// The share of all rows that lack a value in each column; empty where none may.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<f64>,
    /// The same within each cluster, as far as cells tell.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing_within: Vec<Vec<f64>>,
}

impl Profile {
    pub(crate) fn new(mean: Vec<f64>, deviation: Vec<f64>, spread: Vec<Vec<f64>>) -> Self {
        let (levels, missing, missing_within) = (Vec::new(), Vec::new(), Vec::new());
        Profile { mean, deviation, spread, levels, missing, missing_within }
    }

    /// Whether it describes k clusters, or none, in d columns and so many levels, in numbers that make sense.
    pub(crate) fn fits(&self, d: usize, levels: usize, k: usize) -> bool {
        let share = |x: &f64| (0.0..=1.0).contains(x);
        let missing = std::iter::once(&self.missing).chain(&self.missing_within);
        let shares = missing.clone().all(|m| m.is_empty() || m.len() == d)
            && missing.flatten().chain(&self.levels).all(share)
            && (self.levels.is_empty() || self.levels.len() == levels)
            && (self.missing_within.is_empty() || self.missing_within.len() == k);
        let lengths = self.mean.len() == d && self.deviation.len() == d;
        let spreads = self.spread.is_empty() || self.spread.len() == k;
        let deviations = std::iter::once(&self.deviation).chain(&self.spread);
        let finite = |x: &f64| x.abs() <= MAX_CENTRE;
        lengths
            && shares
            && spreads
            && self.mean.iter().all(finite)
            && deviations
                .into_iter()
                .all(|s| s.len() == d && s.iter().all(|x| finite(x) && *x >= 0.0))
    }
}
