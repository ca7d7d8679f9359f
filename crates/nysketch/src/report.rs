//! How a model was found; saved with it.

use crate::optimize::{self, Minimum};
use serde::{Deserialize, Serialize};

/// How a search ended.
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
    /// How the last search ended.
    pub status: Status,
    /// Iterations (evaluations for L-BFGS).
    pub iterations: usize,
    /// The objective, per iteration or at the end of each stage.
    pub objective: Vec<f64>,
    /// Wall-clock seconds.
    pub seconds: f64,
}

impl Report {
    /// Adds an optimisation that has ended.
    pub(crate) fn record(&mut self, minimum: &Minimum) {
        self.iterations += minimum.evaluations;
        self.objective.push(minimum.value);
        self.status = minimum.status.into();
    }
}
