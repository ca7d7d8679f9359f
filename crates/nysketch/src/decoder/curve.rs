//! The curve over k: one model for each k from the same sketch, the risk that the sketch tells for it,
//! and the k that it suggests.

use super::cells::Cells;
use super::fit::{FitParams, Task, fit_from};
use super::kernel::calibrated;
use crate::atom::Atom;
use crate::atom::embedding::Embedding;
use crate::error::{Error, Result};
use crate::measure::{Effort, Loss, Measure};
use crate::model::{Model, Shape};
use crate::sketch::Sketch;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

const ONE_CENTRE: Effort = Effort { restarts: 1, iterations: 100 };

/// Models for several k, each started from the one before where that helps.
pub fn fit_curve(sketch: &Sketch, params: &FitParams, ks: &[usize]) -> Result<Vec<CurvePoint>> {
    let mut points: Vec<CurvePoint> = Vec::new();
    for &k in ks {
        let warm = match points.last().map(|p| &p.model.shape) {
            Some(Shape::Centres { centres, .. }) => {
                centres.iter().map(|c| sketch.plan().frame.coordinates(c)).collect()
            }
            _ => Vec::new(),
        };
        let model = fit_from(sketch, &FitParams { k, ..params.clone() }, &warm)?;
        let risk = estimated_risk(sketch, &model)?;
        points.push(CurvePoint { k, risk, model });
    }
    Ok(points)
}

/// One point of the curve over k.
#[derive(Debug, Clone)]
pub struct CurvePoint {
    /// Number of centres or components.
    pub k: usize,
    /// Risk in the plan's coordinates, as far as the sketch tells it.
    pub risk: f64,
    /// The model.
    pub model: Model,
}

/// The k that a curve suggests, as an index into it.
///
/// For centres the largest Calinski–Harabasz index `((T − W)/(k − 1)) / (W/(n − k))`, with W the
/// risk and T that of one centre; for mixtures the least BIC, `2n·risk + p ln n` with p = 2kd + k − 1.
pub fn suggested(sketch: &Sketch, points: &[CurvePoint]) -> Result<usize> {
    let n = sketch.rows() as f64;
    let d = sketch.plan().dims() as f64;
    let Some(first) = points.first() else {
        return Ok(0);
    };
    let score = |p: &CurvePoint, total: f64| {
        let k = p.k as f64;
        match p.model.shape {
            Shape::Mixture { .. } => -(2.0 * n * p.risk + (2.0 * k * d + k - 1.0) * n.ln()),
            _ if p.k < 2 => 0.0,
            _ => (total - p.risk) / (k - 1.0) / (p.risk.max(1e-12 * total) / (n - k).max(1.0)),
        }
    };
    let total = match first.model.shape {
        Shape::Centres { .. } => {
            let loss = if first.model.task == Task::Kmedians.name() {
                Loss::Distance
            } else {
                Loss::Squared
            };
            let measure = measure_of(sketch)?;
            let mean = measure.cluster(1, loss, ONE_CENTRE, &mut ChaCha8Rng::seed_from_u64(0));
            measure.risk(&mean, loss)
        }
        _ => 0.0,
    };
    let best = (0..points.len()).max_by(|&a, &b| {
        score(&points[a], total).total_cmp(&score(&points[b], total)).then(b.cmp(&a))
    });
    Ok(best.unwrap_or(0))
}

/// What stands for the rows: cells unfolded, or else calibrated landmarks of the middle rung.
fn measure_of(sketch: &Sketch) -> Result<Measure> {
    if sketch.plan().collect.cells {
        return Ok(Cells::new(sketch).unfold(&mut ChaCha8Rng::seed_from_u64(0)).measure());
    }
    let missing = || Error::MissingSums { task: "a risk estimate", what: "cells".into() };
    if !sketch.plan().collect.kernel {
        return Err(missing());
    }
    let middle = Embedding::new(sketch, sketch.plan().bandwidths.len() / 2)?;
    calibrated(&middle).ok_or_else(missing)
}

/// The risk of a model in the plan's coordinates, estimated from the sketch: mean squared distance,
/// mean distance, or negative log-likelihood.
pub fn estimated_risk(sketch: &Sketch, model: &Model) -> Result<f64> {
    let frame = &sketch.plan().frame;
    match &model.shape {
        Shape::Centres { centres, .. } => {
            let loss =
                if model.task == Task::Kmedians.name() { Loss::Distance } else { Loss::Squared };
            let centres: Vec<Vec<f64>> = centres.iter().map(|c| frame.coordinates(c)).collect();
            Ok(measure_of(sketch)?.risk(&centres, loss))
        }
        Shape::Mixture { weights, means, variances } => {
            if !sketch.plan().collect.cells {
                return Err(Error::MissingSums { task: "a risk estimate", what: "cells".into() });
            }
            let scale = &frame.scale;
            let mut atoms: Vec<Atom> = (0..weights.len())
                .map(|i| Atom {
                    weight: weights[i],
                    mean: frame.coordinates(&means[i]),
                    variance: variances[i].iter().zip(scale).map(|(v, s)| v / (s * s)).collect(),
                })
                .collect();
            Ok(-Cells::new(sketch).likelihood(&mut atoms))
        }
        Shape::Components { .. } => Ok(0.0),
    }
}
