//! Sketches without one fold or of one fold alone, each with its own retained rows.

use nysketch_core::error::{Error, Result};
use nysketch_core::plan::Plan;
use nysketch_core::sketch::Sketch;
use nysketch_core::sketch::folds::Folds;
use std::sync::Arc;

/// The folds of a sketch, all of which contain rows, and the folds of its retained rows.
#[derive(Debug)]
pub(super) struct Refits<'a> {
    sketch: &'a Sketch,
    folds: &'a Folds,
    /// The fold of each retained row, if known.
    witnesses: Vec<Option<u32>>,
}

impl<'a> Refits<'a> {
    /// Returns an error that names the caller's option `what` if the sketch has no folds or some
    /// folds have no rows.
    pub fn new(sketch: &'a Sketch, what: &'static str) -> Result<Self> {
        let folds = sketch.folds().ok_or(Error::NoFolds { what })?;
        let empty = (0..folds.len()).filter(|fold| folds.rows(*fold) == 0).count();
        if empty > 0 {
            return Err(Error::EmptyFolds { what, empty, folds: folds.rule().to_string() });
        }
        Ok(Refits { sketch, folds, witnesses: folds.of_witnesses(sketch.plan()) })
    }

    /// Returns the number of folds.
    pub fn len(&self) -> usize {
        self.folds.len()
    }

    /// Returns the column whose values assign rows to folds, if there is one.
    pub fn key(&self) -> Option<String> {
        self.folds.rule().key().map(str::to_string)
    }

    /// Returns the share of the rows in each fold.
    pub fn shares(&self) -> Vec<f64> {
        let all = self.sketch.rows() as f64;
        (0..self.len()).map(|fold| self.folds.rows(fold) as f64 / all).collect()
    }

    /// Returns the sketch without a fold and its retained rows. A retained row of unknown fold is
    /// kept: either no row equals it, or rows in several folds do, most of which are still
    /// included.
    pub fn without(&self, fold: usize) -> Sketch {
        let rest = self.sketch.without_fold(fold);
        self.with_witnesses(&rest, |of_row| of_row != Some(fold as u32))
    }

    /// Returns the sketch of one fold with its retained rows.
    pub fn alone(&self, fold: usize) -> Sketch {
        self.with_witnesses(&self.sketch.fold(fold), |of_row| of_row == Some(fold as u32))
    }

    /// Returns a sketch with the same sums and a plan with some of the retained rows.
    fn with_witnesses(&self, sketch: &Sketch, keep: impl Fn(Option<u32>) -> bool) -> Sketch {
        let plan: &Plan = sketch.plan();
        let places = (0..self.witnesses.len()).filter(|i| keep(self.witnesses[*i])).collect();
        let witnesses = plan.witnesses.as_ref().and_then(|w| w.select(places));
        let plan = plan.with_witnesses(witnesses);
        Sketch::from_parts(Arc::new(plan), sketch.sums().clone())
    }
}

/// Returns the standard error of the mean over all rows, given the value of each fold, the mean,
/// and the share of the rows in each fold: `√(1/F Σ (x_f − x̄)² / (1/share_f − 1))`.
pub(super) fn error_of_folds(values: &[f64], mean: f64, shares: &[f64]) -> f64 {
    (values
        .iter()
        .zip(shares)
        .map(|(x, share)| (x - mean).powi(2) / (1.0 / share - 1.0))
        .sum::<f64>()
        / values.len() as f64)
        .sqrt()
}
