//! The report on a fit, saved with the model.

use crate::optimize;
use crate::optimize::Minimum;
use serde::{Deserialize, Serialize};

/// How a search ended.
///
/// ```
/// use nysketch::{FitParams, Mixture, PlanParams, Sketch, SketchParams, Status, Task};
/// use nysketch::{fit, plan_for};
/// # fn main() -> nysketch::Result<()> {
/// let mixture = Mixture::new(4, 5, 3.0, 7)?;
/// let source = mixture.source(2000);
/// // 20 numbers per bandwidth do not determine 5 centres in 4 dimensions: do not trust the result.
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
    /// The search converged.
    #[default]
    Converged,
    /// The search stopped at the limit of iterations.
    IterationLimit,
    /// The search stopped at the limit of evaluations.
    EvaluationLimit,
    /// No step lowered the objective: the result is as good as rounding allows.
    NoProgress,
    /// The sketch has fewer moments than the model has parameters: the result is arbitrary.
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

/// The report on a fit.
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
/// println!("{} in {:.2} s: {:?}", report.decoder, report.seconds, report.status);
/// assert_eq!(report.decoder, "cells");
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Report {
    /// The decoder that ran.
    pub decoder: String,
    /// Whether the model was learned from calibrated landmarks, because matching the sketch did not
    /// find a better one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub calibrated: bool,
    /// The bandwidth σ² that was decoded, in the plan's squared coordinates; `None` for cells.
    pub bandwidth: Option<f64>,
    /// Number of moments from which kernel sums were decoded: eigenvalues of K_m above 1e-9 of the
    /// largest, or all Fourier features; `None` for cells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rank: Option<usize>,
    /// CL-OMPR: the objective at the end of each pursuit; the pursuit with the smallest one was
    /// polished.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub replicates: Vec<f64>,
    /// How the last search ended.
    pub status: Status,
    /// Number of iterations (evaluations for L-BFGS).
    pub iterations: usize,
    /// Estimated likelihood of the rows under a mixture.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub likelihood: Option<Likelihood>,
    /// Digest of the sketch from which the likelihood was estimated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sketch: Option<String>,
    /// Requested minimum variance of a component, as a share of the column's variance; `None` for
    /// models other than mixtures of unknown covariance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_variance: Option<f64>,
    /// Number of components of a mixture whose variance in some column or direction is at the
    /// minimum.
    #[serde(default, skip_serializing_if = "is_default")]
    pub collapsed: usize,
    /// Number of pseudo-points with the pooled correlations that were added to each full covariance
    /// of a mixture.
    #[serde(default, skip_serializing_if = "is_default")]
    pub shrinkage: f64,
    /// Further remarks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Reasons why the result may be worse than it could be.
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

/// The mean log-likelihood of the rows under a mixture, in the table's units, estimated from
/// retained rows.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Likelihood {
    /// The in-sample mean minus an optimism correction.
    pub mean: f64,
    /// Lower end of the 95 % confidence interval.
    pub low: f64,
    /// Upper end of the 95 % confidence interval.
    pub high: f64,
    /// Mean entropy of the component given the row, in nats: 0 if components do not overlap.
    pub entropy: f64,
}

impl Likelihood {
    pub(crate) fn new(mean: f64, error: f64, entropy: f64) -> Self {
        Likelihood { mean, low: mean - error, high: mean + error, entropy }
    }
}

impl Report {
    /// Returns the warnings about a model of k components.
    pub fn doubts(&self, k: usize) -> Vec<String> {
        self.warnings.iter().cloned().chain(self.collapse(k)).collect()
    }

    /// Returns a warning if components of a mixture have collapsed to repeated values or to a
    /// plane.
    fn collapse(&self, k: usize) -> Option<String> {
        let share = self.min_variance.filter(|_| self.collapsed > 0)?;
        let noun = if k == 1 { "component" } else { "components" };
        let verb = if self.collapsed == 1 { "is" } else { "are" };
        Some(format!(
            "{} of {k} {noun} {verb} no wider in some direction than `min_variance={share}` \
             allows: rows repeat values there, or columns depend on one another, and densities \
             depend on that limit; raise `min_variance`, use fewer components, or leave such \
             columns out",
            self.collapsed
        ))
    }

    /// Records an optimisation that has ended.
    pub(crate) fn record(&mut self, minimum: &Minimum) {
        self.iterations += minimum.evaluations;
        self.objective.push(minimum.value);
        self.status = minimum.status.into();
    }
}
