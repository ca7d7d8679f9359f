//! How a model was found; saved with it.

use crate::optimize::{self, Minimum};
use serde::{Deserialize, Serialize};

/// How a search ended.
///
/// ```
/// use nysketch::{FitParams, Mixture, PlanParams, Sketch, SketchParams, Status, Task, fit, plan_for};
/// # fn main() -> nysketch::Result<()> {
/// let mixture = Mixture::new(4, 5, 3.0, 7)?;
/// let source = mixture.source(2000);
/// // 20 numbers per bandwidth cannot tell 5 centres in 4 dimensions: do not trust the result.
/// let plan = std::sync::Arc::new(plan_for(&source, PlanParams::default().fourier(10))?.0);
/// let sketch = Sketch::of(&plan, &source, SketchParams::default(), &())?;
/// let model = fit(&sketch, &FitParams::new(Task::Kmeans, 5))?;
/// assert_eq!(model.report.status, Status::TooFewMoments);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Status {
    /// Nothing changed any more.
    #[default]
    Converged,
    /// The limit of iterations was reached.
    IterationLimit,
    /// The limit of evaluations was reached.
    EvaluationLimit,
    /// No step lowered the objective: as good as rounding allows.
    NoProgress,
    /// The sketch has fewer moments than the model has numbers: the result is arbitrary.
    TooFewMoments,
}

impl From<optimize::Status> for Status {
    fn from(status: optimize::Status) -> Self {
        match status {
            optimize::Status::Converged => Status::Converged,
            optimize::Status::EvaluationLimit => Status::EvaluationLimit,
            optimize::Status::NoProgress => Status::NoProgress,
        }
    }
}

/// How a model was found.
///
/// ```
/// use nysketch::{FitParams, Task, fit};
/// # fn main() -> nysketch::Result<()> {
/// # use nysketch::{Mixture, PlanParams, Sketch, SketchParams, Table, plan_for};
/// # let rows = Mixture::new(2, 3, 4.0, 7)?.rows(0, 900).values;
/// # let table = Table::unnamed(2, rows.clone())?;
/// # let plan = std::sync::Arc::new(plan_for(&table, PlanParams::default().landmarks(60))?.0);
/// # let sketch = Sketch::of(&plan, &table, SketchParams::default(), &())?;
/// let report = fit(&sketch, &FitParams::new(Task::Kmeans, 3))?.report;
/// println!("{} in {:.2} s, {} iterations: {:?}", report.decoder, report.seconds, report.iterations, report.status);
/// assert_eq!(report.decoder, "cells");
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Report {
    /// Which decoder ran.
    pub decoder: String,
    /// Whether the model is that of calibrated landmarks, because matching the sketch did not find a
    /// better one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub calibrated: bool,
    /// σ² that was decoded, in the plan's squared coordinates; none for cells.
    pub bandwidth: Option<f64>,
    /// Moments of the sketch that kernel sums were decoded from: eigenvalues of K_m above 1e-9 of the largest, or all of
    /// Fourier's; none for cells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rank: Option<usize>,
    /// CL-OMPR: the objective at the end of each pursuit; the one of the least was polished.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub replicates: Vec<f64>,
    /// How the last search ended.
    pub status: Status,
    /// Iterations (evaluations for L-BFGS).
    pub iterations: usize,
    /// What the points of a mixture say of the likelihood of the rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub likelihood: Option<Likelihood>,
    /// Digest of the sketch that says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sketch: Option<String>,
    /// The least variance of a component that was asked for, as a share of the column's; none for models other than
    /// mixtures of unknown covariances.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_variance: Option<f64>,
    /// Components of a mixture that are no wider in some column or direction than the least variance.
    #[serde(default, skip_serializing_if = "is_default")]
    pub collapsed: usize,
    /// Points that were added to each full covariance of a mixture, with the correlations of all components.
    #[serde(default, skip_serializing_if = "is_default")]
    pub shrinkage: f64,
    /// What else is worth saying.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// What makes results worse than they could be.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// The objective, per iteration or at the end of each stage.
    pub objective: Vec<f64>,
    /// Wall-clock seconds.
    pub seconds: f64,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// The mean log-likelihood of the rows under a mixture, in the table's units, estimated from witness rows.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Likelihood {
    /// The estimate, less what fitting to the witnesses makes of it.
    pub mean: f64,
    /// Lower end of the 95 % interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Mean entropy of the component given the row, in nats: 0 where components do not overlap.
    pub entropy: f64,
}

impl Likelihood {
    pub(crate) fn new(mean: f64, error: f64, entropy: f64) -> Self {
        Likelihood { mean, low: mean - error, high: mean + error, entropy }
    }

    /// Whether differences of its numbers are finite.
    pub(crate) fn is_valid(&self) -> bool {
        [self.mean, self.low, self.high, self.entropy].iter().all(|x| x.abs() <= 1e200)
    }
}

impl Report {
    /// What is doubtful about a model of k components.
    pub fn doubts(&self, k: usize) -> Vec<String> {
        self.warnings.iter().cloned().chain(self.collapse(k)).collect()
    }

    /// What is doubtful about a mixture of k components of which some have collapsed to repeated values or to a plane.
    fn collapse(&self, k: usize) -> Option<String> {
        let share = self.min_variance.filter(|_| self.collapsed > 0)?;
        let noun = if k == 1 { "component" } else { "components" };
        let verb = if self.collapsed == 1 { "is" } else { "are" };
        Some(format!(
            "{} of {k} {noun} {verb} no wider in some direction than `min_variance={share}` allows: rows repeat values \
             there, or columns depend on one another, and densities depend on that limit; raise `min_variance`, use \
             fewer components, or leave such columns out",
            self.collapsed
        ))
    }

    /// Adds an optimisation that has ended.
    pub(crate) fn record(&mut self, minimum: &Minimum) {
        self.iterations += minimum.evaluations;
        self.objective.push(minimum.value);
        self.status = minimum.status.into();
    }
}
