//! Confidence intervals by the delete-a-fold jackknife.
//!
//! Let θ be the estimate from all rows, θ_f the estimate without fold f, and h_f = n/n_f. The
//! pseudo-values `p_f = h_f θ − (h_f − 1) θ_f` are nearly independent, and the variance of θ is
//! about
//!
//! ```text
//! 1/F Σ_f (p_f − θ_J)² / (h_f − 1),    θ_J = F θ − Σ_f (1 − n_f/n) θ_f
//! ```
//!
//! (Busing, Meijer and van der Leeden 1999). For folds of equal size this is the usual (F − 1)/F Σ
//! (θ_f − θ̄)².
//!
//! Each fold is left out twice. First, the model is iterated on from its current state to
//! convergence, as the model of all rows was before: this gives θ_f without the randomness of new
//! starts. Second, a model is searched for from scratch, which shows whether the clusters are found
//! again. Two clusters *match* if they share more than half of their union. Then more than half of
//! each lies in the other, so no cluster has two matches, and no assignment problem needs to be
//! solved.

use super::context::Context;
use super::decode::{Mode, Start};
use super::labels::Labels;
use super::params::FitParams;
use super::refits::{Refits, error_of_folds};
use crate::model::intervals::{Interval, Intervals};
use crate::model::task::Task;
use crate::model::{Model, Shape};
use nysketch_core::error::{Error, Result};
use nysketch_core::numeric::parallel::in_parallel;
use nysketch_core::numeric::student::quantile;
use std::time::Instant;

/// Minimum share of the refits in which a stable cluster has a match.
const FOUND_AGAIN: f64 = 0.9;
/// Maximum number of EM steps to convergence, and the increase of the mean log-likelihood that
/// counts as convergence, in nats.
const STANDSTILL_STEPS: usize = 2_000;
const STANDSTILL: f64 = 1e-9;

/// The results of one refit.
struct Refit {
    /// The parameters of the model that was iterated on, and its risk on the rest of the sketch.
    numbers: Vec<f64>,
    risk: Option<f64>,
    /// Jaccard similarity of each cluster to its match in the search from scratch; 0 if it has no
    /// match.
    found_again: Vec<f64>,
}

impl Context<'_> {
    /// Iterates the model to convergence and adds confidence intervals for its parameters. `params`
    /// are the parameters of its fit. Requires a sketch with rows in every fold, and with cells
    /// unless the task is pca.
    pub fn with_intervals(
        &self,
        model: Model,
        params: &FitParams,
        confidence: f64,
    ) -> Result<Model> {
        if !(confidence > 0.0 && confidence < 1.0) {
            return Err(Error::parameter("`confidence`", "above 0 and below 1", confidence));
        }
        let refits = Refits::new(self.sketch(), "`intervals`")?;
        if params.task != Task::Pca && model.report.decoder != "cells" {
            let expected = "left out unless models are learned from cells";
            return Err(Error::parameter("`intervals`", expected, &model.report.decoder));
        }
        let (start, before) = (Instant::now(), model.report.seconds);
        let params = params.clone().k(model.k());
        let mut model = self.standstill(&model, &params)?;
        let (alone, labels) = (params.clone().threads(1), self.labelled(&model)?);
        let folds: Vec<usize> = (0..refits.len()).collect();
        let all = in_parallel(params.threads, folds, |fold| {
            self.without(&refits, fold, &model, &labels, &alone)
        });
        let all = all.into_iter().collect::<Result<Vec<Refit>>>()?;
        let spread = Spread { shares: refits.shares(), t: quantile(confidence, refits.len() - 1) };
        let each: Vec<Interval> = (numbers(&model).iter().enumerate())
            .map(|(i, x)| spread.interval(*x, all.iter().map(|refit| refit.numbers[i])))
            .collect();
        model.report.seconds = before + start.elapsed().as_secs_f64();
        let mut intervals = Intervals {
            confidence,
            folds: refits.len(),
            by: refits.key(),
            risk: None,
            stability: Vec::new(),
            weights: Vec::new(),
            centres: Vec::new(),
            explained_variance: Vec::new(),
            explained_variance_ratio: Vec::new(),
        };
        if all.iter().all(|refit| refit.risk.is_some())
            && let Some(risk) = self.risk(&model)
        {
            let without = all.iter().map(|refit| refit.risk.unwrap_or(risk));
            intervals.risk = Some(spread.interval(risk, without));
        }
        if let Shape::Components { .. } = model.shape {
            let (variances, ratios) = each.split_at(model.k());
            intervals.explained_variance = variances.iter().map(|v| at_least_zero(*v)).collect();
            intervals.explained_variance_ratio = ratios.iter().map(|v| within_one(*v)).collect();
            return Ok(Model { intervals: Some(intervals), ..model });
        }
        let d = model.columns.len();
        let (weights, centres) = each.split_at(model.k());
        for (c, (weight, centre)) in weights.iter().zip(centres.chunks_exact(d)).enumerate() {
            let again = all.iter().map(|refit| refit.found_again[c]);
            let matched = again.clone().filter(|jaccard| *jaccard > 0.0).count();
            intervals.stability.push(again.sum::<f64>() / all.len() as f64);
            let stable = matched as f64 >= FOUND_AGAIN * all.len() as f64;
            intervals.weights.push(stable.then(|| within_one(*weight)));
            intervals.centres.push(stable.then(|| centre.to_vec()));
        }
        Ok(Model { intervals: Some(intervals), ..model })
    }

    /// Returns the model after iterating to convergence on this sketch.
    fn standstill(&self, model: &Model, params: &FitParams) -> Result<Model> {
        match &model.shape {
            Shape::Components { .. } => self.fit_from(params, Start::default()),
            Shape::Centres { .. } => {
                let centres = self.centres_of(model).unwrap_or_default();
                let start = Start { centres: &centres, smaller: &[], mode: Mode::Converge };
                self.fit_from(params, start)
            }
            Shape::Mixture { weights, means, covariance, covariances } => {
                let weights = weights.iter().map(|w| w.max(f64::MIN_POSITIVE)).collect();
                let params = params
                    .clone()
                    .covariance(*covariance)
                    .max_iterations(STANDSTILL_STEPS)
                    .tolerance(STANDSTILL)
                    .init(means.clone())
                    .init_weights(weights)
                    .init_covariances(covariances.clone());
                self.fit(&params)
            }
        }
    }

    /// Refits a model without one fold; `labels` are the labels of the points under the model.
    fn without(
        &self,
        refits: &Refits<'_>,
        fold: usize,
        model: &Model,
        labels: &Labels,
        params: &FitParams,
    ) -> Result<Refit> {
        let rest = refits.without(fold);
        let context = Context::new(&rest);
        let moved = context.standstill(model, params)?;
        if moved.k() != model.k() {
            let expected = "so small that every cluster has rows whichever fold is left out";
            return Err(Error::parameter("`k`", expected, model.k()));
        }
        let found_again = match params.task {
            Task::Pca => Vec::new(),
            _ => {
                let again = context.fit(&params.clone().seed(params.seed ^ (fold as u64 + 1)))?;
                labels.found_again(&self.labelled(&again)?)
            }
        };
        Ok(Refit { numbers: numbers(&moved), risk: context.risk(&moved), found_again })
    }
}

/// Returns the parameters that get intervals: weights, then centres, row by row; or variances, then
/// their ratios.
fn numbers(model: &Model) -> Vec<f64> {
    match &model.shape {
        Shape::Centres { weights, centres: places }
        | Shape::Mixture { weights, means: places, .. } => {
            weights.iter().chain(places.iter().flatten()).copied().collect()
        }
        Shape::Components { explained_variance, explained_variance_ratio, .. } => {
            explained_variance.iter().chain(explained_variance_ratio).copied().collect()
        }
    }
}

/// The shares of the folds, and the quantile of Student's t for the confidence level.
struct Spread {
    shares: Vec<f64>,
    t: f64,
}

impl Spread {
    /// Returns the interval around an estimate, given the estimates without each fold.
    fn interval(&self, full: f64, without: impl Iterator<Item = f64>) -> Interval {
        let without: Vec<f64> = without.collect();
        let error = self.t * standard_error(full, &without, &self.shares);
        [full - error, full + error]
    }
}

/// Returns the standard error of an estimate, given the estimates without each fold and the share
/// of the rows in each fold.
fn standard_error(full: f64, without: &[f64], shares: &[f64]) -> f64 {
    let rest: f64 = without.iter().zip(shares).map(|(x, share)| (1.0 - share) * x).sum();
    let centre = without.len() as f64 * full - rest;
    let pseudo: Vec<f64> =
        without.iter().zip(shares).map(|(x, share)| (full - (1.0 - share) * x) / share).collect();
    error_of_folds(&pseudo, centre, shares)
}

fn at_least_zero([low, high]: Interval) -> Interval {
    [low.max(0.0), high.max(0.0)]
}

fn within_one([low, high]: Interval) -> Interval {
    [low.clamp(0.0, 1.0), high.clamp(0.0, 1.0)]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the standard error of the mean of folds, given the mean and size of each.
    fn error(folds: &[(f64, f64)]) -> f64 {
        let n: f64 = folds.iter().map(|f| f.1).sum();
        let total: f64 = folds.iter().map(|f| f.0 * f.1).sum();
        let without: Vec<f64> = folds.iter().map(|f| (total - f.0 * f.1) / (n - f.1)).collect();
        let shares: Vec<f64> = folds.iter().map(|f| f.1 / n).collect();
        standard_error(total / n, &without, &shares)
    }

    /// The jackknife of a mean equals its textbook standard error, whatever the sizes of the folds.
    #[test]
    fn the_error_of_a_mean_is_that_of_its_folds() {
        let folds = [(3.0, 10.0), (5.0, 10.0), (4.5, 10.0), (2.5, 10.0)];

        let spread: f64 = folds.iter().map(|f| (f.0 - 3.75f64).powi(2)).sum();
        assert!((error(&folds) - (spread / 3.0 / 4.0).sqrt()).abs() < 1e-12);
        // The pseudo-values of a mean are the means of the folds.
        let folds = [(3.0, 10.0), (5.0, 20.0), (4.5, 30.0), (2.5, 40.0)];
        let expected =
            folds.iter().map(|f| (f.0 - 3.65f64).powi(2) / (100.0 / f.1 - 1.0)).sum::<f64>() / 4.0;
        assert!((error(&folds) - expected.sqrt()).abs() < 1e-12);
    }
}
