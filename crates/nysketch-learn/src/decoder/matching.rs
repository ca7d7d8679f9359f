//! Moment matching: refines a mixture until its sketch matches that of the data, eq. (6).
//!
//! ```text
//! projected   ‖W(Σ_i α_i f(θ_i) − k̄)‖²                                  the paper's
//! full        αᵀGα − 2 Σ_i α_i βᵀf(θ_i) + βᵀk̄ ,   β = K_m⁺ k̄
//! ```
//!
//! The full objective is ‖A(p) − P_m A(π_n)‖² in the whole feature space: it penalises atoms that
//! leave the span of the landmarks, and it has no m² term. Variables are scaled so that a unit step
//! changes the objective by a similar amount in each: μ by √V/α, log γ by √2 V/(γα), with V = γ +
//! σ².

use super::constraints::Constraints;
use crate::atom::embedding::Embedding;
use crate::atom::{Atom, Family};
use crate::optimize::{Minimum, Stop, minimise, nonnegative_quadratic};
use nysketch_core::numeric::linalg::dot;

/// Strength of the prior on log-variances, divided by the number of rows: about the noise of the
/// sketch.
const PRIOR: f64 = 0.2;

/// The distance between sketches to minimise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Objective {
    /// In the span of the landmarks, or between Fourier sketches.
    Projected,
    /// In the whole feature space; requires landmarks.
    Full,
}

/// A matching problem.
#[derive(Debug, Clone)]
pub struct Matching<'a> {
    /// The mean embedding of the data.
    pub embedding: &'a Embedding,
    /// Which variances are learned.
    pub family: Family,
    /// The distance to minimise.
    pub objective: Objective,
    /// Weight of the penalty `(Σα − 1)²`.
    pub sum_to_one: f64,
    /// Weight of the prior `1/k Σ (log γ − log γ₀)²` over the learned variances, where γ₀ are their
    /// initial values.
    pub prior: f64,
    /// Bounds of the means.
    pub bounds: &'a [(f64, f64)],
    /// Minimum and maximum variance of each column.
    pub variances: &'a [(f64, f64)],
    /// Separation and radius.
    pub constraints: Constraints,
}

/// Gradients of an objective with respect to the weight, mean and variances of each atom.
struct Gradient {
    weight: Vec<f64>,
    mean: Vec<f64>,
    variance: Vec<f64>,
}

impl Gradient {
    /// Returns the derivative by the logarithm of variance `j` of all variances.
    #[inline]
    fn by_log(&self, atoms: &[Atom], j: usize) -> f64 {
        let d = atoms[0].mean.len();
        self.variance[j] * atoms[j / d].variance()[j % d]
    }
}

impl Matching<'_> {
    fn evaluate(&self, atoms: &[Atom]) -> (f64, Gradient) {
        let d = self.embedding.dims();
        let mut gradient = Gradient {
            weight: vec![0.0; atoms.len()],
            mean: vec![0.0; atoms.len() * d],
            variance: vec![0.0; atoms.len() * d],
        };
        let features: Vec<Vec<f64>> =
            atoms.iter().map(|a| self.embedding.features(&a.mean, a.variance())).collect();
        let mut value = match (self.objective, self.embedding.dual()) {
            (Objective::Full, Some(dual)) => self.full(atoms, &features, dual, &mut gradient),
            _ => self.projected(atoms, &features, &mut gradient),
        };
        let excess = atoms.iter().map(|a| a.weight).sum::<f64>() - 1.0;
        value += self.sum_to_one * excess * excess;
        gradient.weight.iter_mut().for_each(|g| *g += 2.0 * self.sum_to_one * excess);
        value += self.constraints.penalty(atoms, &mut gradient.mean);
        (value, gradient)
    }

    fn projected(&self, atoms: &[Atom], features: &[Vec<f64>], gradient: &mut Gradient) -> f64 {
        let d = self.embedding.dims();
        let mut residual: Vec<f64> = self.embedding.target.iter().map(|t| -t).collect();
        for (atom, f) in atoms.iter().zip(features) {
            residual.iter_mut().zip(f).for_each(|(r, f)| *r += atom.weight * f);
        }
        let back = &self.embedding.metric_times(std::slice::from_ref(&residual))[0];
        for (i, (atom, f)) in atoms.iter().zip(features).enumerate() {
            gradient.weight[i] = 2.0 * dot(f, back);
            let span = i * d..(i + 1) * d;
            let (mean, variance) = (&mut gradient.mean[span.clone()], &mut gradient.variance[span]);
            let place = (atom.mean.as_slice(), atom.variance());
            self.embedding.add_vjp(place, f, back, 2.0 * atom.weight, mean, variance);
        }
        dot(&residual, back)
    }

    fn full(
        &self,
        atoms: &[Atom],
        features: &[Vec<f64>],
        dual: &[f64],
        gradient: &mut Gradient,
    ) -> f64 {
        let d = self.embedding.dims();
        let mut value = dot(dual, &self.embedding.target);
        for (i, (a, f)) in atoms.iter().zip(features).enumerate() {
            let match_data = dot(dual, f);
            value -= 2.0 * a.weight * match_data;
            gradient.weight[i] -= 2.0 * match_data;
            let span = i * d..(i + 1) * d;
            let place = (a.mean.as_slice(), a.variance());
            let (mean, variance) = (&mut gradient.mean[span.clone()], &mut gradient.variance[span]);
            self.embedding.add_vjp(place, f, dual, -2.0 * a.weight, mean, variance);
            for b in atoms {
                let inner = self.embedding.inner(place, (b.mean.as_slice(), b.variance()));
                value += a.weight * b.weight * inner.value;
                gradient.weight[i] += 2.0 * b.weight * inner.value;
                for k in 0..d {
                    mean[k] += 2.0 * a.weight * b.weight * inner.by_mean[k];
                    variance[k] += 2.0 * a.weight * b.weight * inner.by_variance[k];
                }
            }
        }
        value
    }

    /// Returns the problem with more variances to learn, for a sketch of `rows` rows.
    pub fn free(&self, family: Family, rows: f64) -> Self {
        let objective = Objective::Projected;
        Matching { family, objective, prior: PRIOR / rows, ..self.clone() }
    }

    /// Sets the weights to the best ones for the current positions of the atoms.
    pub fn fit_weights(&self, atoms: &mut [Atom]) {
        let (mut gram, mut right) = normal_equations(self.embedding, atoms);
        gram.iter_mut().chain(&mut right).for_each(|x| *x += self.sum_to_one);
        let weights = nonnegative_quadratic(&gram, &right, 2000);
        atoms.iter_mut().zip(weights).for_each(|(a, w)| a.weight = w);
    }

    /// Returns the objective at a vector of variables, and writes its gradient to `g`.
    fn at(&self, x: &[f64], g: &mut [f64], layout: &Layout, reference: &[Atom]) -> f64 {
        let d = self.embedding.dims();
        let atoms = layout.atoms(x, reference, self);
        let (mut value, gradient) = self.evaluate(&atoms);
        for i in 0..atoms.len() {
            g[i] = gradient.weight[i] * layout.scale[i];
            for k in 0..d {
                let at = layout.mean(i, d) + k;
                g[at] = gradient.mean[i * d + k] * layout.scale[at];
            }
        }
        let logs = layout.logs(d);
        match self.family {
            Family::Dirac | Family::Known(_) => {}
            Family::Scaled => {
                g[logs.start] = (0..atoms.len() * d).map(|j| gradient.by_log(&atoms, j)).sum();
            }
            Family::Shared => {
                for (k, at) in logs.clone().enumerate() {
                    g[at] = (0..atoms.len()).map(|i| gradient.by_log(&atoms, i * d + k)).sum();
                }
            }
            Family::Diagonal => {
                for (j, at) in logs.clone().enumerate() {
                    g[at] = gradient.by_log(&atoms, j);
                }
            }
        }
        let prior = self.prior / atoms.len() as f64;
        for at in logs {
            let moved = x[at] * layout.scale[at];
            value += prior * moved * moved;
            g[at] = (g[at] + 2.0 * prior * moved) * layout.scale[at];
        }
        value
    }

    /// Moves weights, means and, if the family allows it, variances to a nearby minimum.
    pub fn refine(&self, atoms: &mut Vec<Atom>, stop: Stop) -> Minimum {
        if matches!(self.family, Family::Shared | Family::Diagonal) {
            for a in atoms.iter_mut() {
                for (v, (min, max)) in a.variance_mut().iter_mut().zip(self.variances) {
                    *v = v.clamp(*min, *max);
                }
            }
        }
        let layout = Layout::new(self, atoms);
        let start = layout.start.clone();
        let (low, high) = layout.bounds(self, atoms);
        let reference = atoms.clone();
        let minimum = minimise(|x, g| self.at(x, g, &layout, &reference), start, &low, &high, stop);
        *atoms = layout.atoms(&minimum.x, &reference, self);
        minimum
    }
}

/// Returns `⟨A(P_i), A(P_j)⟩`, row-major, and `⟨A(P_i), A(π_n)⟩`, in the span of the landmarks or
/// between Fourier sketches.
pub fn normal_equations(embedding: &Embedding, atoms: &[Atom]) -> (Vec<f64>, Vec<f64>) {
    let features: Vec<Vec<f64>> =
        atoms.iter().map(|a| embedding.features(&a.mean, a.variance())).collect();
    let products = embedding.metric_times(&features);
    let gram = features.iter().flat_map(|f| products.iter().map(|p| dot(f, p))).collect();
    (gram, products.iter().map(|p| dot(p, &embedding.target)).collect())
}

/// The layout of the optimiser's vector: weights, then means, then logarithms of variances. Means
/// and logarithms are offsets from their initial values, divided by their scales.
struct Layout {
    count: usize,
    start: Vec<f64>,
    scale: Vec<f64>,
}

impl Layout {
    fn new(problem: &Matching<'_>, atoms: &[Atom]) -> Self {
        let sigma2 = problem.embedding.sigma2;
        let mut start: Vec<f64> = atoms.iter().map(|a| a.weight).collect();
        let mut scale = vec![1.0; atoms.len()];
        let floor = 0.1 / atoms.len() as f64;
        for a in atoms {
            for g in a.variance() {
                start.push(0.0);
                scale.push((g + sigma2).sqrt() / a.weight.max(floor));
            }
        }
        match problem.family {
            Family::Dirac | Family::Known(_) => {}
            Family::Scaled => {
                let shares = atoms[0].variance().iter().map(|g| (g / (g + sigma2)).powi(2));
                start.push(0.0);
                scale.push(1.0 / shares.sum::<f64>().max(f64::MIN_POSITIVE).sqrt());
            }
            Family::Shared => {
                for g in atoms[0].variance() {
                    start.push(0.0);
                    scale.push(std::f64::consts::SQRT_2 * (g + sigma2) / g);
                }
            }
            Family::Diagonal => {
                for a in atoms {
                    for g in a.variance() {
                        start.push(0.0);
                        scale.push(
                            std::f64::consts::SQRT_2 * (g + sigma2) / (g * a.weight.max(floor)),
                        );
                    }
                }
            }
        }
        Layout { count: atoms.len(), start, scale }
    }

    fn mean(&self, i: usize, d: usize) -> usize {
        self.count + i * d
    }

    fn logs(&self, d: usize) -> std::ops::Range<usize> {
        self.count * (1 + d)..self.start.len()
    }

    fn bounds(&self, problem: &Matching<'_>, atoms: &[Atom]) -> (Vec<f64>, Vec<f64>) {
        let d = problem.embedding.dims();
        let n = self.start.len();
        let (mut low, mut high) = (vec![f64::NEG_INFINITY; n], vec![f64::INFINITY; n]);
        for (i, a) in atoms.iter().enumerate() {
            low[i] = 0.0;
            high[i] = 2.0;
            for k in 0..d {
                let at = self.mean(i, d) + k;
                low[at] = (problem.bounds[k].0 - a.mean[k]) / self.scale[at];
                high[at] = (problem.bounds[k].1 - a.mean[k]) / self.scale[at];
            }
        }
        for (j, at) in self.logs(d).enumerate() {
            let (down, up) = match problem.family {
                Family::Scaled => (0..d)
                    .map(|k| room(atoms[0].variance()[k], problem.variances[k]))
                    .fold((0.0, 0.0), |a, b| (f64::min(a.0, b.0), f64::max(a.1, b.1))),
                // A shared diagonal is that of the first atom.
                _ => room(atoms[j / d].variance()[j % d], problem.variances[j % d]),
            };
            low[at] = down / self.scale[at];
            high[at] = up / self.scale[at];
        }
        (low, high)
    }

    /// Returns the factor of variance `j` of all variances.
    fn factor(&self, x: &[f64], family: &Family, d: usize, j: usize) -> f64 {
        let logs = self.logs(d);
        let at = match family {
            Family::Dirac | Family::Known(_) => return 1.0,
            Family::Scaled => logs.start,
            Family::Shared => logs.start + j % d,
            Family::Diagonal => logs.start + j,
        };
        (x[at] * self.scale[at]).exp()
    }

    fn atoms(&self, x: &[f64], reference: &[Atom], problem: &Matching<'_>) -> Vec<Atom> {
        let d = problem.embedding.dims();
        let mut atoms = Vec::with_capacity(reference.len());
        for (i, a) in reference.iter().enumerate() {
            let span = self.mean(i, d)..self.mean(i, d) + d;
            let moves = x[span.clone()].iter().zip(&self.scale[span]);
            let mean = a.mean.iter().zip(moves).map(|(m, (x, scale))| m + x * scale).collect();
            let each = a.variance().iter().enumerate();
            let variance = each.map(|(k, g)| g * self.factor(x, &problem.family, d, i * d + k));
            atoms.push(Atom::diagonal(x[i], mean, variance.collect()));
        }
        atoms
    }
}

/// Returns by how much the logarithm of a variance may decrease and increase, given its bounds.
fn room(variance: f64, (min, max): (f64, f64)) -> (f64, f64) {
    ((min / variance).ln().min(0.0), (max / variance).ln().max(0.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decoder::Context;
    use nysketch_core::pass::SketchParams;
    use nysketch_core::plan::sampling::Sampling;
    use nysketch_core::planning::{PlanParams, plan_for};
    use nysketch_core::rows::Table;
    use nysketch_core::sketch::Sketch;
    use proptest::prelude::*;
    use std::sync::Arc;

    fn embedding() -> Embedding {
        let rows =
            nysketch_core::rows::synthetic::Mixture::new(2, 3, 2.0, 1).unwrap().rows(0, 300).values;
        let table = Table::unnamed(2, rows).unwrap();
        let chosen = PlanParams::default().landmarks(20).sampling(Sampling::Uniform);
        let params = chosen.bandwidths([4.0]);
        let plan = Arc::new(plan_for(&table, params).unwrap().0);
        {
            let sketch = Sketch::of(&plan, &table, SketchParams::default(), &()).unwrap();
            Context::new(&sketch).embedding(0).unwrap().clone()
        }
    }

    /// Returns atoms in two columns from a weight, a mean and variances each.
    fn atoms(numbers: &[f64]) -> Vec<Atom> {
        let each = numbers.chunks_exact(5);
        each.map(|c| Atom::diagonal(c[0], c[1..3].to_vec(), c[3..5].to_vec())).collect()
    }

    /// Returns the numbers with one of them changed.
    fn moved(x: &[f64], i: usize, by: f64) -> Vec<f64> {
        let mut x = x.to_vec();
        x[i] += by;
        x
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        /// Both objectives with all their terms. Central differences with h = 1e-4 have an error of
        /// about 1e-7; the metric's largest eigenvalue, up to 1e9, causes rounding errors of 1e-10
        /// in the objective.
        #[test]
        fn gradients_match_finite_differences(
            full in any::<bool>(),
            numbers in prop::collection::vec(0.1..1.5f64, 10),
        ) {
            let embedding = embedding();
            let bounds = [(-9.0, 9.0); 2];
            let variances = [(1e-3, 1e3); 2];
            let matching = Matching {
                embedding: &embedding,
                family: Family::Diagonal,
                objective: if full { Objective::Full } else { Objective::Projected },
                sum_to_one: 0.3,
                prior: 0.0,
                bounds: &bounds,
                variances: &variances,
                constraints: Constraints {
                    separation: Some(3.0),
                    radius: Some(0.5),
                    precision: vec![1.0, 2.0],
                },
            };
            let (_, gradient) = matching.evaluate(&atoms(&numbers));
            let h = 1e-4;
            for i in 0..numbers.len() {
                let [above, below] =
                    [h, -h].map(|by| matching.evaluate(&atoms(&moved(&numbers, i, by))).0);
                let numeric = (above - below) / (2.0 * h);
                let (atom, place) = (i / 5, i % 5);
                let exact = match place {
                    0 => gradient.weight[atom],
                    1 | 2 => gradient.mean[atom * 2 + place - 1],
                    _ => gradient.variance[atom * 2 + place - 3],
                };
                prop_assert!((exact - numeric).abs() < 1e-5, "{i}: {exact} {numeric}");
            }
        }

        /// The chain rule from variables to atoms, with the prior, for every family. The scales of
        /// the variables, up to 100, amplify the error of the differences.
        #[test]
        fn gradients_by_the_variables(
            family in 0usize..3,
            numbers in prop::collection::vec(0.1..1.5f64, 10),
            moves in prop::collection::vec(-0.02..0.02f64, 10),
        ) {
            let embedding = embedding();
            let bounds = [(-9.0, 9.0); 2];
            let variances = [(1e-3, 1e3); 2];
            let family = [Family::Scaled, Family::Shared, Family::Diagonal][family].clone();
            let matching = Matching {
                embedding: &embedding,
                objective: Objective::Projected,
                sum_to_one: 0.3,
                prior: 0.1,
                bounds: &bounds,
                variances: &variances,
                constraints: Constraints::default(),
                family: family.clone(),
            };
            let mut atoms = atoms(&numbers);
            if family != Family::Diagonal {
                let shared = atoms[0].covariance.clone();
                atoms.iter_mut().for_each(|a| a.covariance.clone_from(&shared));
            }
            let layout = Layout::new(&matching, &atoms);
            let x: Vec<f64> = layout.start.iter().zip(&moves).map(|(s, m)| s + m).collect();
            let mut gradient = vec![0.0; x.len()];
            matching.at(&x, &mut gradient, &layout, &atoms);
            let h = 1e-5;
            for i in 0..x.len() {
                let [above, below] = [h, -h].map(|by| {
                    matching.at(&moved(&x, i, by), &mut vec![0.0; x.len()], &layout, &atoms)
                });
                let numeric = (above - below) / (2.0 * h);
                let allowed = 1e-4 * (1.0 + gradient[i].abs());
                let off = (gradient[i] - numeric).abs();
                prop_assert!(off < allowed, "{i}: {} {numeric}", gradient[i]);
            }
        }
    }
}
