//! A model laid out for many rows at once.
//!
//! Every model gives each row k numbers, its *scores*:
//!
//! | model | score of centre or component c |
//! |---|---|
//! | centres | squared distance `Σ_j ((x_j − c_j)/s_j)²` in the plan's coordinates |
//! | mixture | `log α_c N(x; μ_c, diag γ_c)` |
//! | principal components | coordinate `Σ_j v_cj (x_j − μ_j)/s_j` |
//!
//! [`Model::predict`](crate::Model::predict) is the slow and obvious version for one row.

use crate::model::{Model, Shape};
use crate::simd::{Instructions, Work};

/// Centres or components worked on side by side.
const LANES: usize = 8;

/// A model laid out for many rows.
#[derive(Debug, Clone)]
pub struct Predictor<'a> {
    model: &'a Model,
    instructions: Instructions,
    /// What is subtracted from a row and what the difference is multiplied with, both
    /// `[panel][column][lane]`.
    centre: Vec<[f64; LANES]>,
    factor: Vec<[f64; LANES]>,
    /// What is left of `log α_c N` at the mean, one for each component of a mixture.
    peak: Vec<f64>,
}

impl<'a> Predictor<'a> {
    /// Lays out a model.
    pub fn new(model: &'a Model, instructions: Instructions) -> Self {
        let d = model.columns.len();
        let k = model.k();
        let panels = k.div_ceil(LANES);
        let table = |of: &dyn Fn(usize, usize) -> f64| -> Vec<[f64; LANES]> {
            let entry = |p: usize, j: usize, l: usize| match p * LANES + l {
                c if c < k => of(c, j),
                _ => 0.0,
            };
            let at = |p: usize| (0..d).map(move |j| std::array::from_fn(|l| entry(p, j, l)));
            (0..panels).flat_map(at).collect()
        };
        let inverse: Vec<f64> = model.scale.iter().map(|s| 1.0 / s).collect();
        let (centre, factor) = match &model.shape {
            Shape::Centres { centres, .. } => {
                (table(&|c, j| centres[c][j]), table(&|_, j| inverse[j]))
            }
            Shape::Mixture { means, variances, .. } => {
                (table(&|c, j| means[c][j]), table(&|c, j| 1.0 / variances[c][j].sqrt()))
            }
            Shape::Components { mean, components, .. } => {
                (table(&|_, j| mean[j]), table(&|c, j| components[c][j] * inverse[j]))
            }
        };
        let peak = match &model.shape {
            Shape::Mixture { weights, variances, .. } => (0..k)
                .map(|c| {
                    let log_volume: f64 =
                        variances[c].iter().map(|v| (std::f64::consts::TAU * v).ln()).sum();
                    weights[c].max(f64::MIN_POSITIVE).ln() - 0.5 * log_volume
                })
                .collect(),
            _ => Vec::new(),
        };
        Predictor { model, instructions, centre, factor, peak }
    }

    /// The model.
    pub fn model(&self) -> &'a Model {
        self.model
    }

    /// The scores of finite rows, `out` of k numbers for each of them.
    pub fn scores(&self, rows: &[f64], out: &mut [f64]) {
        self.instructions.run(Score { of: self, rows, out });
    }

    /// The nearest centre or the most likely component, the first of several.
    pub fn label(&self, row: &[f64], scores: &[f64]) -> usize {
        let first = |better: &dyn Fn(f64, f64) -> bool| {
            (1..scores.len()).fold(0, |b, c| if better(scores[c], scores[b]) { c } else { b })
        };
        match &self.model.shape {
            Shape::Centres { .. } => first(&|a, b| a < b),
            Shape::Components { .. } => 0,
            // So far out that every density is zero: the nearest mean decides.
            Shape::Mixture { .. } if scores.iter().all(|s| *s == f64::NEG_INFINITY) => {
                self.model.predict(row).label
            }
            Shape::Mixture { .. } => first(&|a, b| a > b),
        }
    }
}

/// `log Σ_c exp(scores_c)`: the log density of a row from its scores under a mixture.
pub fn log_density(scores: &[f64]) -> f64 {
    let most = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if most == f64::NEG_INFINITY {
        return most;
    }
    most + scores.iter().map(|s| (s - most).exp()).sum::<f64>().ln()
}

struct Score<'a> {
    of: &'a Predictor<'a>,
    rows: &'a [f64],
    out: &'a mut [f64],
}

impl Work for Score<'_> {
    #[inline(always)]
    fn work(self) {
        let Predictor { model, centre, factor, peak, .. } = self.of;
        let (d, k) = (model.columns.len(), model.k());
        let linear = matches!(model.shape, Shape::Components { .. });
        for (row, out) in self.rows.chunks_exact(d).zip(self.out.chunks_exact_mut(k)) {
            let panels = centre.chunks_exact(d).zip(factor.chunks_exact(d));
            for (out, (centre, factor)) in out.chunks_mut(LANES).zip(panels) {
                let mut sums = [0.0; LANES];
                for ((x, c), f) in row.iter().zip(centre).zip(factor) {
                    for l in 0..LANES {
                        let t = (x - c[l]) * f[l];
                        sums[l] += if linear { t } else { t * t };
                    }
                }
                out.copy_from_slice(&sums[..out.len()]);
            }
            if !peak.is_empty() {
                out.iter_mut().zip(peak).for_each(|(s, p)| *s = p - 0.5 * *s);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Task;
    use crate::decoder::{FitParams, fit};
    use crate::{Mixture, PlanParams, Scale, Sketch, SketchParams, Table, plan_for};
    use std::sync::Arc;

    /// Every model against the version for one row, in every instruction set, also with more
    /// centres than lanes and scaled columns.
    #[test]
    fn many_rows_are_scored_as_one() {
        let rows = Mixture::new(5, 4, 2.0, 3).unwrap().rows(0, 400).values;
        let table = Table::unnamed(5, rows.clone()).unwrap();
        let params = PlanParams { scale: Scale::Standard, ..PlanParams::default() };
        let plan = Arc::new(plan_for(&table, params).unwrap().0);
        let sketch = Sketch::of(&plan, &table, SketchParams::default(), &()).unwrap();
        for (task, k) in [(Task::Kmeans, 11), (Task::Kmedians, 8), (Task::Gmm, 3), (Task::Pca, 2)] {
            let model = fit(&sketch, &FitParams::new(task, k)).unwrap();
            for set in Instructions::all() {
                let predictor = Predictor::new(&model, set);
                let mut scores = vec![0.0; 400 * k];
                predictor.scores(&rows, &mut scores);
                for (row, scores) in rows.chunks_exact(5).zip(scores.chunks_exact(k)) {
                    let one = model.predict(row);
                    let label = predictor.label(row, scores);
                    assert_eq!(label, one.label);
                    // Sums of five squares in another association: a few units in the last place.
                    let near = |a: f64, b: f64| (a - b).abs() <= 1e-12 * (1.0 + b.abs());
                    match task {
                        Task::Pca => {
                            assert!(scores.iter().zip(&one.scores).all(|(a, b)| near(*a, *b)));
                        }
                        Task::Gmm => {
                            let log = log_density(scores);
                            assert!(near(log, one.log_density.unwrap()));
                            assert!(near((scores[label] - log).exp(), one.scores[label]));
                        }
                        _ => assert_eq!(scores[label], one.scaled_squared_distance),
                    }
                }
            }
        }
    }

    #[test]
    fn rows_beyond_every_density_go_to_the_nearest_mean() {
        let rows = Mixture::new(2, 3, 2.0, 3).unwrap().rows(0, 300).values;
        let table = Table::unnamed(2, rows).unwrap();
        let plan = Arc::new(plan_for(&table, PlanParams::default()).unwrap().0);
        let sketch = Sketch::of(&plan, &table, SketchParams::default(), &()).unwrap();
        let model = fit(&sketch, &FitParams::new(Task::Gmm, 3)).unwrap();
        let predictor = Predictor::new(&model, Instructions::best());
        let far = [1e200, -1e200];
        let mut scores = [0.0; 3];
        predictor.scores(&far, &mut scores);
        assert_eq!(predictor.label(&far, &scores), model.predict(&far).label);
        assert_eq!(log_density(&scores), f64::NEG_INFINITY);
    }
}
