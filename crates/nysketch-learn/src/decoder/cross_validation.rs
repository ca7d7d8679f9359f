//! Choice of k by cross-validation over the folds of a sketch.
//!
//! For each fold, models of every k are learned from the rest of the sketch, without the retained
//! rows of the fold. Their risk is then estimated on the fold: on its retained rows, weighted by
//! its own cells and shifted to their means. For the mean squared distance of k-means, second
//! moments are known exactly, so only the remainder is estimated from retained rows:
//!
//! ```text
//! risk = E_w min_c |x − c|²  +  (E |x|² − E_w |x|²)
//! ```
//!
//! where E_w is the mean over the retained rows and E, from the sums, the mean over the rows. The
//! contribution of a cell that no border cuts is then exact. Landmarks, scales and the rest of the
//! plan are fixed: they were chosen from all rows.

use super::context::Context;
use super::params::FitParams;
use super::refits::{Refits, error_of_folds};
use crate::model::task::Task;
use crate::model::{Model, Shape};
use nysketch_core::error::Result;
use nysketch_core::numeric::parallel::in_parallel;
use serde::Serialize;

/// The held-out risks of models for several k.
///
/// ```
/// use nysketch::{Context, FitParams, FoldRule, Mixture, PlanParams, Sketch, SketchParams};
/// use nysketch::{Table, Task, plan_for};
/// # fn main() -> nysketch::Result<()> {
/// let table = Table::unnamed(2, Mixture::new(2, 3, 4.0, 7)?.rows(0, 2000).values)?;
/// let plan = std::sync::Arc::new(plan_for(&table, PlanParams::default().landmarks(60))?.0);
/// let rule = FoldRule::by_content(8)?;
/// let sketch = Sketch::of_folds(&plan, &rule, &table, SketchParams::default(), &())?;
/// let found = Context::new(&sketch).cross_validate(&FitParams::new(Task::Gmm, 1), 1, 5)?;
/// assert_eq!(found.points[found.within_error].k, 3);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct CrossValidation {
    /// Number of folds, each of which was held out once.
    pub folds: usize,
    /// The column whose values assign rows to folds; `None` if the hash of the row itself does.
    pub by: Option<String>,
    /// One risk for each k.
    pub points: Vec<HeldOutRisk>,
    /// Index of the smallest risk.
    pub best: usize,
    /// Index of the smallest k whose risk is within one standard error of the smallest risk.
    pub within_error: usize,
}

/// The held-out risk of the models with one k.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[non_exhaustive]
pub struct HeldOutRisk {
    /// Number of centres or components.
    pub k: usize,
    /// Mean over the held-out rows of the risk that [`Evaluation`](crate::metrics::Evaluation)
    /// computes.
    pub risk: f64,
    /// Standard error of `risk`, from the differences between the folds.
    pub error: f64,
}

impl Context<'_> {
    /// Returns the held-out risks of models for every k from `low` to `high`.
    pub fn cross_validate(
        &self,
        params: &FitParams,
        low: usize,
        high: usize,
    ) -> Result<CrossValidation> {
        let refits = Refits::new(self.sketch(), "`cross_validate`")?;
        // All folds use the same kind of covariance.
        let mut params = params.clone();
        if params.task == Task::Gmm && params.known_covariance.is_none() {
            params.covariance = Some(self.covariance(&params.clone().k(high)).0);
        }
        let alone = params.clone().threads(1);
        let folds: Vec<usize> = (0..refits.len()).collect();
        let all = in_parallel(params.threads, folds, |fold| -> Result<Vec<f64>> {
            let (rest, held_out) = (refits.without(fold), refits.alone(fold));
            let (context, held_out) = (Context::new(&rest), Context::new(&held_out));
            let curve = context.curve(&alone, low, high)?;
            curve.points.iter().map(|point| held_out.risk_of_others(&point.model)).collect()
        });
        let all = all.into_iter().collect::<Result<Vec<Vec<f64>>>>()?;
        let shares = refits.shares();
        let points: Vec<HeldOutRisk> = (0..=high - low)
            .map(|i| {
                let risks: Vec<f64> = all.iter().map(|risks| risks[i]).collect();
                let risk = risks.iter().zip(&shares).map(|(risk, share)| share * risk).sum();
                let error = error_of_folds(&risks, risk, &shares);
                HeldOutRisk { k: low + i, risk, error }
            })
            .collect();
        let best =
            (0..points.len()).reduce(|a, b| if points[b].risk < points[a].risk { b } else { a });
        let best = best.unwrap_or(0);
        let limit = points[best].risk + points[best].error;
        let within_error = points.iter().position(|p| p.risk <= limit).unwrap_or(best);
        Ok(CrossValidation { folds: refits.len(), by: refits.key(), points, best, within_error })
    }

    /// Returns the risk, on the rows of this sketch, of a model learned from other rows.
    fn risk_of_others(&self, model: &Model) -> Result<f64> {
        let risk = self.risks(model)?.0;
        let squared = model.task == Task::Kmeans && self.is_plain() && self.plan().collect.cells;
        if !squared || !matches!(model.shape, Shape::Centres { .. }) {
            return Ok(risk);
        }
        // Second moments around the plan's centre, of all rows and of the points.
        let points = self.risk_points()?;

        let estimated: f64 = points.iter().map(|(x, w)| w * squared_norm(&x)).sum();
        let mut exact = 0.0;
        for cell in self.cells().iter() {
            let variance: f64 = (0..cell.mean.len()).map(|k| cell.variance(k)).sum();
            exact += cell.rows * (squared_norm(cell.mean) + variance);
        }
        Ok(risk + (exact - estimated) / points.mass())
    }
}

fn squared_norm(x: &[f64]) -> f64 {
    x.iter().map(|x| x * x).sum()
}
