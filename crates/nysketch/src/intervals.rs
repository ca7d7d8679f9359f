//! How sure a model is: intervals for what it says, from folds of the sketch.

use serde::{Deserialize, Serialize};

/// Lower and upper end.
pub type Interval = [f64; 2];

/// Intervals for the numbers of a model, and how stable its clusters are. Found by
/// [`Context::with_intervals`](crate::Context::with_intervals).
///
/// Each fold of the sketch is left out in turn, and the model is learned again: the delete-a-fold jackknife, with
/// Student's t of folds − 1 degrees of freedom. Landmarks, scales and what else the plan says are given.
///
/// ```
/// use nysketch::{Context, FitParams, FoldRule, Mixture, PlanParams, Sketch, SketchParams, Table, Task, plan_for};
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
    /// How often an interval is meant to hold what it is about.
    pub confidence: f64,
    /// Folds that were left out in turn.
    pub folds: usize,
    /// The column that rows were dealt to folds by; none where their own values decided.
    #[serde(default)]
    pub by: Option<String>,
    /// For the risk, where the sketch tells it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub risk: Option<Interval>,
    /// For each cluster or component the mean, over the refits from scratch, of the Jaccard similarity to the cluster
    /// that it is found again as; 0 where it is not found.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stability: Vec<f64>,
    /// For the share of each cluster or component; none where it is unstable.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub weights: Vec<Option<Interval>>,
    /// For each column of each centre or mean, in the table's units; none where it is unstable.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub centres: Vec<Option<Vec<Interval>>>,
    /// For the variance along each principal component.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub explained_variance: Vec<Interval>,
    /// The same as shares of the total.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub explained_variance_ratio: Vec<Interval>,
}

impl Intervals {
    /// The clusters or components that are not found again.
    pub fn unstable(&self) -> impl Iterator<Item = usize> {
        (0..self.weights.len()).filter(|c| self.weights[*c].is_none())
    }

    /// Whether they can be those of a model with so many clusters or principal components and columns.
    pub(crate) fn fits(&self, clusters: usize, components: usize, columns: usize) -> bool {
        // Lengths are finite.
        let ordered = |[low, high]: &Interval| low <= high && low.abs().max(high.abs()) <= 1e200;
        let share = |x: &f64| (0.0..=1.0).contains(x);
        let centre = |c: &Vec<Interval>| c.len() == columns && c.iter().all(ordered);
        self.confidence > 0.0
            && self.confidence < 1.0
            && self.folds >= 2
            && self.risk.iter().all(ordered)
            && [self.stability.len(), self.weights.len(), self.centres.len()] == [clusters; 3]
            && self.stability.iter().all(|s| (0.0..=1.0 + 1e-9).contains(s))
            && self.weights.iter().flatten().all(|w| ordered(w) && w.iter().all(share))
            && self.centres.iter().flatten().all(centre)
            && self.weights.iter().zip(&self.centres).all(|(w, c)| w.is_some() == c.is_some())
            && [&self.explained_variance, &self.explained_variance_ratio]
                .iter()
                .all(|all| all.len() == components && all.iter().all(ordered))
    }
}
