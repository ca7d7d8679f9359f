//! The curve over k: one model for each k from the same sketch, with its estimated risk, and a
//! suggested k.

use super::context::Context;
use super::decode::{Mode, Start};
use super::fit::with_levels;
use super::likelihood::PointDensities;
use super::params::FitParams;
use crate::atom::Atom;
use crate::model::task::Task;
use crate::model::{Model, Shape};
use nysketch_core::error::{Error, Result};
use nysketch_core::kmeans::WeightedPoints;
use nysketch_core::sketch::Sketch;
use std::borrow::Cow;
use std::cmp::Ordering;

/// Models for a range of k, with a suggestion.
///
/// ```
/// use nysketch::decoder::fit_curve;
/// use nysketch::{FitParams, Task};
/// # fn main() -> nysketch::Result<()> {
/// # use nysketch::{Mixture, PlanParams, Sketch, SketchParams, Table, plan_for};
/// # let rows = Mixture::new(2, 3, 4.0, 7)?.rows(0, 900).values;
/// # let table = Table::unnamed(2, rows.clone())?;
/// # let plan = std::sync::Arc::new(plan_for(&table, PlanParams::default().landmarks(60))?.0);
/// # let sketch = Sketch::of(&plan, &table, SketchParams::default(), &())?;
/// let curve = fit_curve(&sketch, &FitParams::new(Task::Kmeans, 1), 1, 6)?;
/// let best = &curve.points[curve.suggested];
/// assert_eq!(best.k, 3);
/// assert!(curve.clear && best.risk < curve.points[0].risk);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Curve {
    /// One point for each k.
    pub points: Vec<CurvePoint>,
    /// Index of the suggested point.
    pub suggested: usize,
    /// Whether the suggestion is clear; always false at an end of the range.
    pub clear: bool,
}

impl Curve {
    /// Returns the suggested point.
    pub fn best(&self) -> &CurvePoint {
        &self.points[self.suggested]
    }

    /// Returns whether the suggestion is at an end of the range, so that a better k may be outside.
    pub fn at_end(&self) -> bool {
        let last = self.points.len() - 1;
        last > 0 && (self.suggested == 0 && self.best().k > 2 || self.suggested == last)
    }

    /// Returns the point with the smallest ICL; `None` if no point has one.
    pub fn least_icl(&self) -> Option<&CurvePoint> {
        let known = self.points.iter().filter(|p| p.icl.is_some());
        known.min_by(|a, b| a.icl.partial_cmp(&b.icl).unwrap_or(Ordering::Equal))
    }

    /// Returns the point with the largest silhouette; `None` if no point has one.
    pub fn most_separate(&self) -> Option<&CurvePoint> {
        let known = self.points.iter().filter(|p| p.silhouette.is_some());
        known.max_by(|a, b| a.silhouette.partial_cmp(&b.silhouette).unwrap_or(Ordering::Equal))
    }
}

/// One point of the curve over k.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct CurvePoint {
    /// Number of centres or components.
    pub k: usize,
    /// Estimate from the sketch of the risk that [`Evaluation`](crate::metrics::Evaluation)
    /// computes from rows.
    pub risk: f64,
    /// Risk by which models of different k are compared.
    compared: f64,
    /// Bayesian information criterion of a mixture, `2n·r + p ln n`, smaller is better. The mean
    /// negative log-likelihood r of the rows is estimated from the retained rows with a correction
    /// for optimism, or from cells unfolded into the same points for every mixture.
    pub bic: Option<f64>,
    /// Integrated completed likelihood of a mixture, smaller is better: BIC plus `2n` times the
    /// mean entropy of the component given the row. It penalises overlapping components. `None`
    /// unless the entropy was estimated from retained rows.
    pub icl: Option<f64>,
    /// Simplified silhouette of at least two centres: the mean over the rows, each replaced by the
    /// mean of its cell, of `(b − a)/max(a, b)`, where `a` and `b` are the distances to the nearest
    /// and second nearest centre. It is near 1 for well-separated clusters and near 0 for touching
    /// ones.
    pub silhouette: Option<f64>,
    /// The model.
    pub model: Model,
}

/// Improvements below this share of the risk are treated as noise.
const NOISE: f64 = 2e-3;
/// Minimum ratio of successive improvements for an elbow to be clear.
const CLEAR: f64 = 2.5;

/// Fits models for every k from `low` to `high` and suggests one of them. The centres for k − 1 are
/// one of the starts for k.
///
/// For centres the suggestion is the elbow: the k whose improvement over k − 1 is largest compared
/// with the improvement of k + 1 over k. For mixtures it is the k of the smallest BIC,
/// `2n·risk + p ln n`, with p the number of free parameters of the model.
pub fn fit_curve(sketch: &Sketch, params: &FitParams, low: usize, high: usize) -> Result<Curve> {
    Context::new(sketch).curve(params, low, high)
}

/// Returns the risk of a model, estimated from the sketch; see [`Context::risk`].
pub fn estimated_risk(sketch: &Sketch, model: &Model) -> Option<f64> {
    Context::new(sketch).risk(model)
}

impl Context<'_> {
    /// See [`fit_curve`].
    pub fn curve(&self, params: &FitParams, low: usize, high: usize) -> Result<Curve> {
        let plan = self.plan();
        if low > high {
            return Err(Error::parameter(
                "`k`",
                "a range from less to more",
                format!("{low}..{high}"),
            ));
        }
        // Check the parameters before doing any work.
        self.check(&params.clone().k(low))?;
        self.check(&params.clone().k(high))?;
        if plan.landmarks().is_none() {
            let expected = "one number for a Fourier sketch, which cannot tell risks apart";
            return Err(Error::parameter("`k`", expected, "a range"));
        }
        let mixture = params.task == Task::Gmm;
        if mixture && !plan.collect.cells {
            return Err(Error::MissingSums { task: "the curve over k", what: "cells".into() });
        }
        // Use one kind of covariance for all k, chosen for the largest.
        let (kind, note) = self.covariance(&params.clone().k(high));
        let chosen = params.clone().covariance(kind);
        let free = mixture && params.known_covariance.is_none() && params.covariance.is_none();
        let (params, note) = if free { (&chosen, note) } else { (params, None) };
        // An elbow needs a neighbour on either side.
        let first = if mixture { low } else { low.max(2) - 1 };
        let last = if !mixture && self.check(&params.clone().k(high + 1)).is_ok() {
            high + 1
        } else {
            high
        };
        let mut points: Vec<CurvePoint> = Vec::new();
        for k in first..=last {
            let last = points.last().map(|p| &p.model);
            let centres = last.and_then(|model| self.centres_of(model)).unwrap_or_default();
            let smaller = last.and_then(|model| self.atoms_of(model)).unwrap_or_default();
            let start = Start { centres: &centres, smaller: &smaller, mode: Mode::Search };
            let mut model = self.fit_from(&params.clone().k(k), start)?;
            model.report.notes.extend(note.clone());
            let (risk, compared) = self.risks(&model)?;
            let logs = plan.frame.log_scale();
            let n = self.sketch().weight().max(1.0);
            let bic = mixture.then(|| bic(n, params, &model, compared + logs));
            let entropy = model.report.likelihood.map(|l| l.entropy);
            let icl = bic.zip(entropy).map(|(bic, entropy)| bic + 2.0 * n * entropy);
            let silhouette = self.silhouette(&model)?;
            points.push(CurvePoint { k, risk, compared, bic, icl, silhouette, model });
        }
        let scores: Vec<f64> = (0..points.len())
            .map(|i| match points[i].bic {
                Some(bic) => -bic,
                None => elbow(&points, i),
            })
            .collect();
        let best = (0..points.len())
            .filter(|i| (low..=high).contains(&points[*i].k))
            .max_by(|&a, &b| scores[a].total_cmp(&scores[b]).then(b.cmp(&a)))
            .unwrap_or(0);
        let stands_out = mixture || scores[best] >= CLEAR;
        let k = points[best].k;
        points.retain(|p| (low..=high).contains(&p.k));
        let suggested = points.iter().position(|p| p.k == k).unwrap_or(0);
        let curve = Curve { points, suggested, clear: false };
        let clear = stands_out && !curve.at_end();
        Ok(Curve { clear, ..curve })
    }

    /// Returns the atoms of a mixture in the plan's coordinates; `None` for other models.
    pub(super) fn atoms_of(&self, model: &Model) -> Option<Vec<Atom>> {
        let atoms = model.shape.atoms(&self.plan().frame)?;
        Some(with_levels(atoms, &model.levels))
    }

    /// Returns [`CurvePoint::silhouette`]; `None` for mixtures and for a single centre.
    fn silhouette(&self, model: &Model) -> Result<Option<f64>> {
        let centres = self.centres_of(model).filter(|centres| centres.len() > 1);
        let Some(centres) = centres else { return Ok(None) };
        let points = if self.plan().collect.cells {
            Cow::Owned(self.clustered().weighted_means())
        } else {
            self.risk_points()?
        };
        let margins = points.margins(&centres);
        let weighted = points.weights().iter().zip(&margins).map(|(w, margin)| w * margin);
        Ok(Some(weighted.sum::<f64>() / points.mass()))
    }

    /// Returns the risk of a model, estimated from the sketch: mean squared distance or mean
    /// distance in the coordinates of the fit, or mean negative log-likelihood. Returns `None` if
    /// the sketch does not contain the required sums.
    pub fn risk(&self, model: &Model) -> Option<f64> {
        self.risks(model).ok().map(|r| r.0)
    }

    /// Returns the points on which the risk of centres is estimated: retained rows weighted by
    /// their cells, otherwise unfolded cells, otherwise calibrated landmarks.
    pub(super) fn risk_points(&self) -> Result<Cow<'_, WeightedPoints>> {
        let collect = self.plan().collect;
        if let Some(points) = self.witness_points(true) {
            return Ok(Cow::Borrowed(points));
        }
        if collect.cells {
            return Ok(Cow::Owned(self.clustered_unfolded().weighted_means()));
        }
        self.calibrated()?.map(Cow::Borrowed).ok_or_else(|| no_risk("cells"))
    }

    /// Returns the risk, and the risk by which models of different k are compared. For a mixture
    /// without retained rows, the second is computed on cells unfolded without a mixture, which are
    /// the same points for all k.
    pub(super) fn risks(&self, model: &Model) -> Result<(f64, f64)> {
        if self.sketch().rows() == 0 {
            return Err(Error::NoRows { skipped: self.sketch().skipped() });
        }
        let frame = &self.plan().frame;
        match &model.shape {
            Shape::Centres { .. } => {
                let centres = self.centres_of(model).unwrap_or_default();
                let risk = self.risk_points()?.risk(&centres, model.task.loss());
                Ok((risk, risk))
            }
            Shape::Mixture { covariance, .. } => {
                if !self.plan().collect.cells {
                    return Err(no_risk("cells"));
                }
                let atoms = self.atoms_of(model).unwrap_or_default();
                let logs = frame.log_scale();
                // A model learned from these retained rows contains its likelihood with the
                // optimism correction.
                let from_this_sketch = model.report.sketch.as_deref() == Some(self.digest());
                if let Some(likelihood) = model.report.likelihood.filter(|_| from_this_sketch) {
                    return Ok((-likelihood.mean, -likelihood.mean - logs));
                }
                let points = if self.is_plain() {
                    self.witnessed().map(Cow::Borrowed)
                } else {
                    self.stand_ins()
                };
                if let Some(points) = points {
                    let mean = points.mean(&PointDensities::new(&points, &atoms).log_density).0;
                    return Ok((logs - mean, -mean));
                }
                // Cells contain the variances of their rows but not the correlations.
                if covariance.is_matrix() {
                    return Err(no_risk("witness rows"));
                }
                Ok((
                    logs - self.cells().own_likelihood(&atoms),
                    -self.unfolded().plain_likelihood(&atoms),
                ))
            }
            Shape::Components { .. } => Err(no_risk("rows")),
        }
    }
}

/// Returns the error for a risk that the sketch does not determine.
fn no_risk(missing: &str) -> Error {
    Error::MissingSums { task: "a risk estimate", what: missing.into() }
}

/// Returns the ratio of the improvement of k over k − 1 to that of k + 1 over k; 0 at an end.
fn elbow(points: &[CurvePoint], i: usize) -> f64 {
    let Some(next) = points.get(i + 1) else { return 0.0 };
    let Some(before) = i.checked_sub(1).map(|b| &points[b]) else { return 0.0 };
    let here = points[i].compared;
    let noise = NOISE * here.max(f64::MIN_POSITIVE);
    (before.compared - here) / (here - next.compared).max(noise)
}

/// Returns `2n·risk + p ln n`.
fn bic(n: f64, params: &FitParams, model: &Model, risk: f64) -> f64 {
    let (k, d) = (model.k(), model.columns.len());
    let numbers = match &model.shape {
        Shape::Mixture { covariance, .. } if params.known_covariance.is_none() => {
            covariance.parameters(k, d) + k * free_shares(model)
        }
        _ => k * d + k - 1,
    };
    2.0 * n * risk + numbers as f64 * n.ln()
}

/// Returns the number of free shares of levels of one component.
fn free_shares(model: &Model) -> usize {
    model.categories().iter().map(|c| c.len() - 1).sum()
}
