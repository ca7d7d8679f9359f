//! The problem that every decoder of this comparison solves, and the steps that they share.

use nysketch::decoder::clompr::objective_of;
use nysketch::decoder::constraints::Constraints;
use nysketch::decoder::matching::{Matching, normal_equations};
use nysketch::decoder::space::Space;
use nysketch_core::numeric::linalg::dot;
use nysketch_core::numeric::random::below;
use nysketch_learn::atom::embedding::Embedding;
use nysketch_learn::atom::{Atom, Family};
use nysketch_learn::optimize::{Stop, nonnegative_quadratic};
use rand_chacha::ChaCha8Rng;

/// Maximum number of steps of an ascent, and the step length, as a share of the bandwidth, below
/// which it ends.
const STEPS: usize = 100;
const STILL: f64 = 1e-4;

/// A sketch to decode. All decoders have the same starts and bounds, derived from the moments.
pub struct Problem<'a> {
    pub embedding: &'a Embedding,
    pub space: &'a Space,
    pub bounds: &'a [(f64, f64)],
    pub starts: &'a [Vec<f64>],
    pub k: usize,
    pub rows: f64,
}

impl Problem<'_> {
    pub fn matching(&self, family: Family) -> Matching<'_> {
        Matching {
            embedding: self.embedding,
            family,
            objective: objective_of(self.embedding),
            sum_to_one: 0.0,
            prior: 0.0,
            bounds: self.bounds,
            variances: &self.space.variances,
            constraints: Constraints::default(),
        }
    }

    /// Returns the dual vector and the squared norm of the residual of some atoms.
    pub fn residual(&self, atoms: &[Atom]) -> (Vec<f64>, f64) {
        let mut left = self.embedding.target.clone();
        for a in atoms {
            let features = self.embedding.features(&a.mean, a.variance());
            left.iter_mut().zip(features).for_each(|(l, f)| *l -= a.weight * f);
        }
        let dual = self.embedding.metric_times(std::slice::from_ref(&left)).swap_remove(0);
        let length = dot(&left, &dual);
        (dual, length)
    }

    /// Returns the atoms with the largest weights, by non-negative least squares on normalised
    /// atoms.
    pub fn largest(&self, mut atoms: Vec<Atom>, count: usize) -> Vec<Atom> {
        let n = atoms.len();
        if n <= count {
            return atoms;
        }
        let (mut gram, mut right) = normal_equations(self.embedding, &atoms);
        let norms: Vec<f64> = (0..n).map(|i| gram[i * n + i].max(1e-24).sqrt()).collect();
        for i in 0..n {
            right[i] /= norms[i];
            (0..n).for_each(|j| gram[i * n + j] /= norms[i] * norms[j]);
        }
        let weights = nonnegative_quadratic(&gram, &right, 2000);
        atoms.iter_mut().zip(weights).for_each(|(a, w)| a.weight = w);
        atoms.sort_by(|a, b| b.weight.total_cmp(&a.weight));
        atoms.truncate(count);
        atoms
    }

    /// Runs mean shift on the sketch: `x ← x + V ∇f(x)/f(x)` with `V = σ² + γ`, which climbs the
    /// correlation f of an atom at x with a residual, as mean shift climbs a density. Returns
    /// `None` if the correlation is not positive.
    pub fn shift(&self, dual: &[f64], start: &[f64], variance: &[f64]) -> Option<(f64, Vec<f64>)> {
        let (d, sigma2) = (self.embedding.dims(), self.embedding.sigma2);
        let (mut x, mut value) = (start.to_vec(), 0.0);
        for _ in 0..STEPS {
            let features = self.embedding.features(&x, variance);
            value = dot(&features, dual);
            if !(value > 0.0) {
                return None;
            }
            let (mut gradient, mut unused) = (vec![0.0; d], vec![0.0; d]);
            self.embedding.add_vjp(
                (&x, variance),
                &features,
                dual,
                1.0,
                &mut gradient,
                &mut unused,
            );
            let mut moved = 0.0;
            for k in 0..d {
                let step = (sigma2 + variance[k]) * gradient[k] / value;
                let next = (x[k] + step).max(self.bounds[k].0).min(self.bounds[k].1);
                moved += (next - x[k]).powi(2);
                x[k] = next;
            }
            if moved <= STILL * STILL * sigma2 {
                break;
            }
        }
        Some((value, x))
    }

    /// Returns local maxima of the correlation with a residual, best first. The best `follow` of
    /// `look` starts are shifted; results within a tenth of the bandwidth of each other are merged.
    pub fn maxima(
        &self,
        dual: &[f64],
        variance: &[f64],
        (look, follow): (usize, usize),
        rng: &mut ChaCha8Rng,
    ) -> Vec<Vec<f64>> {
        let mut tried: Vec<(f64, &Vec<f64>)> = (0..look)
            .map(|_| {
                let start = &self.starts[below(self.starts.len(), rng)];
                (dot(&self.embedding.features(start, variance), dual), start)
            })
            .collect();
        tried.sort_by(|a, b| b.0.total_cmp(&a.0));
        let ends = tried.iter().take(follow).filter_map(|(_, x)| self.shift(dual, x, variance));
        let mut ends: Vec<(f64, Vec<f64>)> = ends.collect();
        ends.sort_by(|a, b| b.0.total_cmp(&a.0));
        let mut different: Vec<Vec<f64>> = Vec::new();
        for (_, x) in ends {
            if different.iter().all(|y| squared_distance(&x, y) >= 0.01 * self.embedding.sigma2) {
                different.push(x);
            }
        }
        different
    }

    /// Returns one of the starts.
    pub fn start(&self, rng: &mut ChaCha8Rng) -> Vec<f64> {
        self.starts[below(self.starts.len(), rng)].clone()
    }

    /// Runs the last steps of every decoder, on all atoms together: Diracs stay Diracs; Gaussians
    /// have one common width, which is freed for a mixture.
    pub fn polish(&self, mut atoms: Vec<Atom>, mixture: bool) -> Vec<Atom> {
        let long = Stop { evaluations: 2000, relative: 1e-8 };
        let medium = Stop { evaluations: 300, relative: 1e-7 };
        let wide = atoms.iter().any(|a| a.variance().iter().any(|v| *v > 0.0));
        if mixture {
            let shared = self.matching(Family::Scaled).free(Family::Shared, self.rows);
            shared.refine(&mut atoms, medium);
            shared.free(Family::Diagonal, self.rows).refine(&mut atoms, long);
        } else {
            let family = if wide { Family::Scaled } else { Family::Dirac };
            self.matching(family).refine(&mut atoms, long);
        }
        nysketch::decoder::clompr::to_simplex(&mut atoms);
        atoms
    }
}

fn squared_distance(x: &[f64], y: &[f64]) -> f64 {
    x.iter().zip(y).map(|(x, y)| (x - y).powi(2)).sum()
}
