//! Confidence intervals for the parameters of a model, from folds of the sketch.

use serde::{Deserialize, Serialize};

/// Lower and upper end of an interval.
pub type Interval = [f64; 2];

/// Confidence intervals for the parameters of a model, and the stability of its clusters. Computed
/// by [`Context::with_intervals`](crate::Context::with_intervals).
///
/// Each fold of the sketch is left out in turn, and the model is learned again: the delete-a-fold
/// jackknife, with Student's t of folds − 1 degrees of freedom. The plan is treated as fixed,
/// including landmarks and scales.
///
/// ```
/// use nysketch::{Context, FitParams, FoldRule, Mixture, PlanParams, Sketch, SketchParams};
/// use nysketch::{Table, Task, plan_for};
/// # fn main() -> nysketch::Result<()> {
/// let table = Table::unnamed(2, Mixture::new(2, 3, 4.0, 7)?.rows(0, 1500).values)?;
/// let plan = std::sync::Arc::new(plan_for(&table, PlanParams::default().landmarks(60))?.0);
/// let rule = FoldRule::by_content(16)?;
/// let sketch = Sketch::of_folds(&plan, &rule, &table, SketchParams::default(), &())?;
/// let context = Context::new(&sketch);
///
/// let params = FitParams::new(Task::Kmeans, 3);
/// let model = context.with_intervals(context.fit(&params)?, &params, 0.95)?;
/// let intervals = model.intervals.as_ref().unwrap();
/// let [low, high] = intervals.weights[0].unwrap();
/// assert!(low < 1.0 / 3.0 + 0.05 && high > 1.0 / 3.0 - 0.05 && high - low < 0.1);
/// assert!(intervals.unstable().next().is_none());
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Intervals {
    /// Confidence level of the intervals.
    pub confidence: f64,
    /// Number of folds, each of which was left out once.
    pub folds: usize,
    /// The column whose values assign rows to folds; `None` if the hash of the row itself does.
    #[serde(default)]
    pub by: Option<String>,
    /// Interval for the risk; `None` if the sketch does not determine the risk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub risk: Option<Interval>,
    /// Mean, for each cluster or component, of the Jaccard similarity to its match over the refits
    /// from scratch; a refit without a match counts as 0.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stability: Vec<f64>,
    /// Interval for the share of each cluster or component; `None` for an unstable one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub weights: Vec<Option<Interval>>,
    /// Interval for each column of each centre or mean, in the table's units; `None` for an
    /// unstable one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub centres: Vec<Option<Vec<Interval>>>,
    /// Interval for the variance along each principal component.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub explained_variance: Vec<Interval>,
    /// Interval for the share of the total variance along each principal component.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub explained_variance_ratio: Vec<Interval>,
}

impl Intervals {
    /// Returns the clusters or components that too few refits find again.
    pub fn unstable(&self) -> impl Iterator<Item = usize> {
        (0..self.weights.len()).filter(|c| self.weights[*c].is_none())
    }

    /// Returns whether the intervals can belong to a model with these numbers of clusters or
    /// principal components, and of columns.
    pub(crate) fn fits(&self, clusters: usize, components: usize, columns: usize) -> bool {
        self.confidence > 0.0
            && self.confidence < 1.0
            && self.folds >= 2
            && self.risk.iter().all(is_ordered)
            && [self.stability.len(), self.weights.len(), self.centres.len()] == [clusters; 3]
            && self.stability.iter().all(|s| (0.0..=1.0 + 1e-9).contains(s))
            && self
                .weights
                .iter()
                .flatten()
                .all(|w| is_ordered(w) && w.iter().all(|x| (0.0..=1.0).contains(x)))
            && self.centres.iter().flatten().all(|c| c.len() == columns && c.iter().all(is_ordered))
            && self.weights.iter().zip(&self.centres).all(|(w, c)| w.is_some() == c.is_some())
            && [&self.explained_variance, &self.explained_variance_ratio]
                .iter()
                .all(|all| all.len() == components && all.iter().all(is_ordered))
    }
}

/// Returns whether the ends of an interval are finite and in order.
fn is_ordered([low, high]: &Interval) -> bool {
    low.is_finite() && high.is_finite() && low <= high
}
