//! A sketch without one fold, and that fold alone, each with its own witnesses.

use nysketch_core::error::{Error, Result};
use nysketch_core::plan::Plan;
use nysketch_core::sketch::Sketch;
use nysketch_core::sketch::folds::Folds;
use std::sync::Arc;

/// The folds of a sketch, all of which have rows, and where its witnesses are.
#[derive(Debug)]
pub(super) struct Refits<'a> {
    sketch: &'a Sketch,
    folds: &'a Folds,
    /// The fold of each witness, where it is known.
    witnesses: Vec<Option<u32>>,
}

impl<'a> Refits<'a> {
    /// Refuses, in the name of what was asked for, a sketch without folds and one of which some have no rows.
    pub fn new(sketch: &'a Sketch, what: &'static str) -> Result<Self> {
        let folds = sketch.folds().ok_or(Error::NoFolds { what })?;
        let empty = (0..folds.len()).filter(|fold| folds.rows(*fold) == 0).count();
        if empty > 0 {
            return Err(Error::EmptyFolds { what, empty, folds: folds.rule().to_string() });
        }
        Ok(Refits { sketch, folds, witnesses: folds.of_witnesses(sketch.plan()) })
    }

    /// Number of folds.
    pub fn len(&self) -> usize {
        self.folds.len()
    }

    /// The column that rows were dealt by, if there is one.
    pub fn key(&self) -> Option<String> {
        self.folds.rule().key().map(str::to_string)
    }

    /// The share of the rows in each fold.
    pub fn shares(&self) -> Vec<f64> {
        let all = self.sketch.rows() as f64;
        (0..self.len()).map(|fold| self.folds.rows(fold) as f64 / all).collect()
    }

    /// Everything but a fold and its witnesses. A witness whose fold is not known stays: no row equals it, or rows in
    /// several folds do, most of which are still there.
    pub fn without(&self, fold: usize) -> Sketch {
        let rest = self.sketch.without_fold(fold);
        self.with_witnesses(&rest, |own| own != Some(fold as u32))
    }

    /// A fold with its witnesses alone.
    pub fn alone(&self, fold: usize) -> Sketch {
        self.with_witnesses(&self.sketch.fold(fold), |own| own == Some(fold as u32))
    }

    /// The same sums, with a plan that has some of the witnesses.
    fn with_witnesses(&self, sketch: &Sketch, keep: impl Fn(Option<u32>) -> bool) -> Sketch {
        let plan: &Plan = sketch.plan();
        let places = (0..self.witnesses.len()).filter(|i| keep(self.witnesses[*i])).collect();
        let witnesses = plan.witnesses.as_ref().and_then(|w| w.select(places));
        let plan = plan.with_witnesses(witnesses);
        Sketch::from_parts(Arc::new(plan), sketch.sums().clone())
    }
}

/// Standard error of the mean of all rows from what each fold says, the mean, and the share of the rows in each fold:
/// `√(1/F Σ (x_f − x̄)² / (1/share_f − 1))`.
pub(super) fn error_of_folds(values: &[f64], mean: f64, shares: &[f64]) -> f64 {
    let term = |(x, share): (&f64, &f64)| (x - mean).powi(2) / (1.0 / share - 1.0);
    (values.iter().zip(shares).map(term).sum::<f64>() / values.len() as f64).sqrt()
}
