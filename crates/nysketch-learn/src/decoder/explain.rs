//! Tests whether a mixture explains the sketch it was learned from.
//!
//! The sketch of n rows differs from that of their distribution by about the noise floor, since
//! ‖Φ(x)‖ ≤ 1:
//!
//! ```text
//! E ‖A_m(π_n) − A_m(π)‖² ≤ (1 − ‖A_m(π)‖²)/n .
//! ```
//!
//! A mixture learned from s retained rows has in addition the sampling error of s rows: 1/n becomes
//! 1/n + 1/s.
//!
//! If the residual ‖A_m(p) − A_m(π_n)‖ of a model is near the floor, the rows cannot show that any
//! other model is better.

use super::context::Context;
use crate::model::Model;
use nysketch_core::error;
use nysketch_core::error::Error;
use nysketch_core::numeric::work::Work;
use nysketch_core::sketch::Sketch;
use serde::{Serialize, Serializer};

/// Residuals of at most this many noise floors count as explained.
const EXPLAINED: f64 = 2.0;
/// Share of the data that the landmarks may miss, at the bandwidth at which they miss least, before
/// a small residual means little.
const MISSED: f64 = 0.5;

/// The residual of a model at one bandwidth.
#[derive(Debug, Clone, Copy, Serialize)]
#[non_exhaustive]
pub struct Residual {
    /// σ².
    #[serde(rename = "bandwidth")]
    pub sigma2: f64,
    /// `‖A_m(p) − A_m(π_n)‖`.
    pub residual: f64,
    /// The noise floor of the sketch.
    pub floor: f64,
    /// Upper bound on the share of the data that the landmarks miss; 0 for Fourier features.
    pub missed: f64,
}

impl Residual {
    /// Returns the residual divided by its noise floor.
    fn ratio(&self) -> f64 {
        self.residual / self.floor.max(f64::MIN_POSITIVE)
    }
}

/// The interpretation of the residuals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Every residual is near its noise floor.
    Explained,
    /// The residuals are near their noise floors, but the landmarks cover little of the data.
    FewLandmarks,
    /// More components, or other ones, are needed.
    NotExplained,
    /// As `NotExplained`, for a model found by matching kernel sums, which may be far from the best
    /// match.
    NotMatched,
}

impl Verdict {
    /// Returns the verdict as a sentence.
    pub fn text(self) -> &'static str {
        match self {
            Verdict::Explained => "the model explains the sketch",
            Verdict::FewLandmarks => "the landmarks are too few to tell",
            Verdict::NotExplained => {
                "k is too small, or clusters are not Gaussians with such covariances"
            }
            Verdict::NotMatched => {
                "the search may have missed clusters (try more replicates, another seed or more \
                 features), k is too small, or clusters are not Gaussians with such covariances"
            }
        }
    }
}

impl Serialize for Verdict {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.text())
    }
}

/// The residuals of a mixture at every bandwidth, and their interpretation.
#[derive(Debug, Clone, Serialize)]
pub struct Explanation {
    /// Whether the verdict is [`Verdict::Explained`].
    pub explained: bool,
    /// What the residuals mean.
    pub verdict: Verdict,
    /// One residual per bandwidth.
    pub residuals: Vec<Residual>,
}

/// Returns `√((1 − ‖A_m(π_n)‖²)/n)`, the typical distance of a sketch of n rows from that of their
/// distribution.
pub fn noise_floor(squared_norm: f64, rows: u64) -> f64 {
    ((1.0 - squared_norm).max(0.0) / rows as f64).sqrt()
}

/// Returns the residuals of a mixture at every bandwidth and their interpretation. Returns `None`
/// for other models, and for sketches without kernel sums, of other columns, with categories,
/// missing values or row weights, or estimated from a release, whose noise is not known.
///
/// ```
/// use nysketch::decoder::{Verdict, explain};
/// use nysketch::{FitParams, Task, fit};
/// # fn main() -> nysketch::Result<()> {
/// # use nysketch::{Mixture, PlanParams, Sketch, SketchParams, Table, plan_for};
/// # let rows = Mixture::new(2, 3, 4.0, 7)?.rows(0, 900).values;
/// # let table = Table::unnamed(2, rows.clone())?;
/// # let plan = std::sync::Arc::new(plan_for(&table, PlanParams::default().landmarks(60))?.0);
/// # let sketch = Sketch::of(&plan, &table, SketchParams::default(), &())?;
/// let two = fit(&sketch, &FitParams::new(Task::Gmm, 2))?;
/// let explanation = explain(&sketch, &two)?.unwrap();
/// assert_eq!(explanation.verdict, Verdict::NotExplained);
/// # Ok(())
/// # }
/// ```
pub fn explain(sketch: &Sketch, model: &Model) -> error::Result<Option<Explanation>> {
    Context::new(sketch).explain(model)
}

impl Context<'_> {
    /// Returns the explanation of [`explain`], or an error if there is none.
    pub fn explanation(&self, model: &Model) -> error::Result<Explanation> {
        if !self.plan().collect.kernel {
            let task = "explaining a model";
            return Err(Error::MissingSums { task, what: "kernel".into() });
        }
        self.explain(model)?.ok_or_else(|| {
            let expected = "a mixture (fit gmm) of the sketch's columns, all numbers, and rows \
                            without weights";
            Error::parameter("`model`", expected, format!("a model of {}", model.task))
        })
    }

    /// See [`explain`].
    pub fn explain(&self, model: &Model) -> error::Result<Option<Explanation>> {
        let (sketch, plan) = (self.sketch(), self.plan());
        // A release has noise in addition to the sampling error.
        let weighted = plan.weighting.is_some() || sketch.released().is_some();
        // Kernel sums depend on the categories and include complete rows only, so a mixture of
        // Gaussians does not describe them.
        let plain = plan.categories().is_empty()
            && !plan.is_partial()
            && (&model.columns, &model.recipe) == (&plan.columns, &plan.recipe);
        if !plan.collect.kernel || weighted || sketch.rows() == 0 || !plain {
            return Ok(None);
        }
        let Some(atoms) = model.shape.atoms(&plan.frame) else { return Ok(None) };
        let (m, rungs) = (plan.features.points().len(), plan.bandwidths.len());
        Work::eigen(m, rungs).check("explaining a model")?;
        let missed = sketch.missed();
        // A model learned from retained rows also has their sampling error.
        let (n, s) = (sketch.complete_rows(), model.densities.as_ref().map_or(0, |d| d.witnesses));
        let rows = match s {
            0 => n,
            s => (1.0 / (1.0 / n as f64 + 1.0 / s as f64)).ceil() as u64,
        };
        let mut residuals = Vec::new();
        for rung in 0..plan.bandwidths.len() {
            let embedding = self.embedding(rung)?;
            let mut left = embedding.target.clone();
            for a in &atoms {
                let Some(features) = embedding.features_of(a) else { return Ok(None) };
                left.iter_mut().zip(features).for_each(|(l, f)| *l -= a.weight * f);
            }
            residuals.push(Residual {
                sigma2: embedding.sigma2,
                residual: embedding.squared_norm(&left).max(0.0).sqrt(),
                floor: noise_floor(embedding.squared_norm(&embedding.target), rows),
                missed: missed.get(rung).copied().unwrap_or(0.0),
            });
        }
        let verdict = if residuals.iter().any(|r| r.ratio() > EXPLAINED) {
            match model.report.decoder.as_str() {
                "cells" => Verdict::NotExplained,
                _ => Verdict::NotMatched,
            }
        } else if residuals.iter().all(|r| r.missed > MISSED) {
            Verdict::FewLandmarks
        } else {
            Verdict::Explained
        };
        Ok(Some(Explanation { explained: verdict == Verdict::Explained, verdict, residuals }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decoder::{Decoder, FitParams, fit};
    use crate::model::task::Task;
    use nysketch_core::pass::SketchParams;
    use nysketch_core::plan::sampling::Sampling;
    use nysketch_core::planning::{PlanParams, plan_for};
    use nysketch_core::rows::Table;
    use nysketch_core::rows::synthetic::Mixture;
    use std::sync::Arc;

    /// Three well-separated clusters: two components leave a residual far above the noise, three do
    /// not.
    #[test]
    fn the_right_k_explains_the_sketch() {
        let rows = Mixture::new(2, 3, 4.0, 11).unwrap().rows(0, 4000).values;
        let table = Table::unnamed(2, rows).unwrap();
        let chosen = PlanParams::default().landmarks(120).sampling(Sampling::Dsquared);
        let params = chosen;
        let plan = Arc::new(plan_for(&table, params).unwrap().0);
        let sketch = Sketch::of(&plan, &table, SketchParams::default(), &()).unwrap();
        for (k, verdict) in [(3, Verdict::Explained), (2, Verdict::NotExplained)] {
            let model = fit(&sketch, &FitParams::new(Task::Gmm, k)).unwrap();
            let found = explain(&sketch, &model).unwrap().unwrap();
            assert_eq!(found.verdict, verdict, "{found:?}");
        }
        let pursued = FitParams::new(Task::Gmm, 2).decoder(Decoder::Clompr);
        let found = explain(&sketch, &fit(&sketch, &pursued).unwrap()).unwrap().unwrap();
        assert_eq!(found.verdict, Verdict::NotMatched, "{found:?}");
        let centres = fit(&sketch, &FitParams::new(Task::Kmeans, 3)).unwrap();
        assert!(explain(&sketch, &centres).unwrap().is_none());
    }
}
