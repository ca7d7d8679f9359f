//! The curve over k: one model for each k from the same sketch, the risk that the sketch tells for it,
//! and the k that it suggests.

use super::cells::Cells;
use super::fit::{FitParams, Task, check, fit_from};
use super::kernel::calibrated;
use crate::atom::Atom;
use crate::atom::embedding::Embedding;
use crate::error::{Error, Result};
use crate::measure::{Effort, Measure, nearest};
use crate::model::{Model, Shape};
use crate::sketch::Sketch;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

const ONE_CENTRE: Effort = Effort { restarts: 1, iterations: 100 };

/// Models for several k, each started from the one before where that helps.
pub fn fit_curve(sketch: &Sketch, params: &FitParams, ks: &[usize]) -> Result<Vec<CurvePoint>> {
    let mut points: Vec<CurvePoint> = Vec::new();
    // What cannot be done is told before the work.
    if let Some(&k) = ks.iter().max() {
        check(sketch, &FitParams { k, ..params.clone() })?;
    }
    if sketch.plan().landmarks().is_none() {
        let expected = "one number for a Fourier sketch, which cannot tell risks apart";
        return Err(Error::parameter("-k", expected, "a range"));
    }
    if params.task == Task::Gmm && !sketch.plan().collect.cells {
        return Err(Error::MissingSums { task: "the curve over k", what: "cells".into() });
    }
    for &k in ks {
        let warm = match points.last().map(|p| &p.model.shape) {
            Some(Shape::Centres { centres, .. }) => {
                centres.iter().map(|c| sketch.plan().frame.coordinates(c)).collect()
            }
            _ => Vec::new(),
        };
        let model = fit_from(sketch, &FitParams { k, ..params.clone() }, &warm)?;
        let (risk, scaled_risk) = risks(sketch, &model)?;
        points.push(CurvePoint { k, risk, scaled_risk, model });
    }
    Ok(points)
}

/// One point of the curve over k.
#[derive(Debug, Clone)]
pub struct CurvePoint {
    /// Number of centres or components.
    pub k: usize,
    /// Risk in the table's units, as far as the sketch tells it.
    pub risk: f64,
    /// The same in the plan's coordinates, in which the model was learned.
    pub scaled_risk: f64,
    /// The model.
    pub model: Model,
}

/// The k that a curve suggests, as an index into it.
///
/// For centres the largest `((T − W)/(k − 1)) / (W/(n − k))`, with W the risk and T that of one centre:
/// for k-means the Calinski–Harabasz index, for k-medians its analogue with distances. For mixtures
/// the least BIC, `2n·risk + p ln n`, with p = 2kd + k − 1, or kd + k − 1 where variances are known.
pub fn suggested(sketch: &Sketch, params: &FitParams, points: &[CurvePoint]) -> Result<usize> {
    let n = sketch.rows() as f64;
    let d = sketch.plan().dims() as f64;
    let per_component = if params.known_variance.is_some() { d } else { 2.0 * d };
    let total = match params.task {
        Task::Kmeans | Task::Kmedians => {
            let measure = measure_of(sketch)?;
            let loss = params.task.loss();
            let mean = measure.cluster(1, loss, ONE_CENTRE, &mut ChaCha8Rng::seed_from_u64(0));
            measure.risk(&mean, loss)
        }
        _ => 0.0,
    };
    let score = |p: &CurvePoint| {
        let (k, risk) = (p.k as f64, p.scaled_risk);
        match params.task {
            Task::Gmm => -(2.0 * n * risk + (per_component * k + k - 1.0) * n.ln()),
            // One centre has no index, and one for each row explains nothing.
            _ if p.k < 2 || k >= n || risk <= 1e-9 * total => 0.0,
            _ => (total - risk) / (k - 1.0) / (risk / (n - k)),
        }
    };
    let best = (0..points.len())
        .max_by(|&a, &b| score(&points[a]).total_cmp(&score(&points[b])).then(b.cmp(&a)));
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

/// The risk of a model in the table's units, estimated from the sketch: mean squared distance, mean
/// distance, or negative log-likelihood; `None` where the sketch cannot tell.
pub fn estimated_risk(sketch: &Sketch, model: &Model) -> Option<f64> {
    risks(sketch, model).ok().map(|r| r.0)
}

/// The risk in the table's units and in the plan's coordinates.
fn risks(sketch: &Sketch, model: &Model) -> Result<(f64, f64)> {
    let frame = &sketch.plan().frame;
    match &model.shape {
        Shape::Centres { centres, .. } => {
            let squared = model.task != Task::Kmedians.name();
            let centres: Vec<Vec<f64>> = centres.iter().map(|c| frame.coordinates(c)).collect();
            let measure = measure_of(sketch)?;
            let (mut plain, mut scaled) = (0.0, 0.0);
            for (x, w) in measure.iter() {
                let (c, d2) = nearest(x, &centres);
                let table: f64 =
                    (0..x.len()).map(|j| ((x[j] - centres[c][j]) * frame.scale[j]).powi(2)).sum();
                scaled += w * if squared { d2 } else { d2.sqrt() };
                plain += w * if squared { table } else { table.sqrt() };
            }
            Ok((plain / measure.mass(), scaled / measure.mass()))
        }
        Shape::Mixture { weights, means, variances } => {
            if !sketch.plan().collect.cells {
                return Err(Error::MissingSums { task: "a risk estimate", what: "cells".into() });
            }
            let atoms: Vec<Atom> = (0..weights.len())
                .map(|i| Atom {
                    weight: weights[i],
                    mean: frame.coordinates(&means[i]),
                    variance: variances[i]
                        .iter()
                        .zip(&frame.scale)
                        .map(|(v, s)| v / (s * s))
                        .collect(),
                })
                .collect();
            let scaled = -Cells::new(sketch).likelihood(&atoms);
            Ok((scaled + frame.scale.iter().map(|s| s.ln()).sum::<f64>(), scaled))
        }
        Shape::Components { .. } => {
            Err(Error::MissingSums { task: "a risk estimate", what: "rows".into() })
        }
    }
}
