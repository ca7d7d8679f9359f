//! CL-AMP (Byrne, Chatalic, Gribonval and Schniter, *Sketched clustering via hybrid approximate
//! message passing*, 2019), for k-means from Fourier features.
//!
//! With frequencies ω_m = g_m a_m of length g_m and z_mk = a_mᵀc_k, a sketch is
//! `y_m = Σ_k β_mk e^{i g_m z_mk}`, where `β_mk = α_k e^{−g_m² τ/2}`. Messages pass between the z
//! and the centres: given Gaussian beliefs about all z_ml, l ≠ k, their sum is approximated by a
//! complex Gaussian, which leaves one angle to integrate over. Damping, numbers of steps and the
//! noise floor are our choice; weights and the common width τ are fitted between the steps by least
//! squares.

use super::problem::Problem;
use super::shift::best_width;
use nysketch_learn::atom::Atom;
use rand_chacha::ChaCha8Rng;

const STEPS: usize = 60;
/// Share by which a message moves to its new value.
const DAMPING: f64 = 0.3;
/// Number of angles of the integrals, and their range in deviations of the belief.
const GRID: usize = 48;
const REACH: f64 = 4.0;
/// Minimum variance of the sum of the other terms.
const NOISE: f64 = 1e-4;
/// Number of steps between fits of weights and width.
const REFIT: usize = 5;

/// Returns atoms of one common width.
pub fn decode(problem: &Problem<'_>, rng: &mut ChaCha8Rng) -> Vec<Atom> {
    let d = problem.embedding.dims();
    let frequencies = problem.embedding.frequencies().expect("a Fourier sketch");
    let sizes: Vec<f64> = frequencies.chunks_exact(d).map(norm).collect();
    let count = sizes.len();
    let (real, imaginary) = problem.embedding.target.split_at(count);
    let scale = (count as f64).sqrt();
    let tenth = problem.space.first_variance();
    let spread = 10.0 * tenth.iter().sum::<f64>() / d as f64;
    let mut atoms: Vec<Atom> = (0..problem.k)
        .map(|_| Atom::diagonal(1.0 / problem.k as f64, problem.start(rng), tenth.clone()))
        .collect();
    let mut width = vec![spread; problem.k];
    let mut messages = vec![0.0; count * problem.k];
    for step in 0..STEPS {
        if step % REFIT == 0 {
            atoms = best_width(problem, atoms);
        }
        let mut precision = vec![0.0; problem.k];
        let mut moves = vec![vec![0.0; d]; problem.k];
        for m in 0..count {
            let (g, frequency) = (sizes[m], &frequencies[m * d..(m + 1) * d]);
            let y = [scale * real[m], scale * imaginary[m]];
            let beliefs: Vec<Belief> = (0..problem.k)
                .map(|k| {
                    let size = atoms[k].weight * (-0.5 * g * g * atoms[k].variance()[0]).exp();
                    let place = dot(frequency, &atoms[k].mean) / g;
                    let at = place - width[k] * messages[m * problem.k + k];
                    Belief { size, angle: g * at, variance: g * g * width[k] }
                })
                .collect();
            let total = beliefs.iter().fold(Moments::default(), |sum, b| sum.and(b.moments(), 1.0));
            for (k, belief) in beliefs.iter().enumerate() {
                let others = total.and(belief.moments(), -1.0);
                let (mean, variance) = belief.posterior(y, others);
                let share = (variance / belief.variance).clamp(0.0, 0.999);
                let message = (mean - belief.angle) / (g * width[k]);
                let kept = &mut messages[m * problem.k + k];
                *kept += DAMPING * (message - *kept);
                precision[k] += (1.0 - share) / width[k];
                let by = *kept / g;
                moves[k].iter_mut().zip(frequency).for_each(|(s, w)| *s += by * w);
            }
        }
        for k in 0..problem.k {
            let next = (d as f64 / precision[k]).min(spread).max(1e-6 * spread);
            for j in 0..d {
                let at = atoms[k].mean[j] + next * moves[k][j];
                atoms[k].mean[j] = at.max(problem.bounds[j].0).min(problem.bounds[j].1);
            }
            width[k] = next;
        }
    }
    best_width(problem, atoms)
}

/// The belief about one term, `size · e^{i angle}`, with a Gaussian angle.
struct Belief {
    size: f64,
    angle: f64,
    variance: f64,
}

/// Mean and covariance of a complex number: real, imaginary; real², imaginary², both.
#[derive(Clone, Copy, Default)]
struct Moments {
    mean: [f64; 2],
    covariance: [f64; 3],
}

impl Moments {
    fn and(mut self, other: Moments, sign: f64) -> Self {
        self.mean.iter_mut().zip(other.mean).for_each(|(a, b)| *a += sign * b);
        self.covariance.iter_mut().zip(other.covariance).for_each(|(a, b)| *a += sign * b);
        self
    }
}

impl Belief {
    fn moments(&self) -> Moments {
        let damped = (-self.variance).exp();
        let (sin, cos) = self.angle.sin_cos();
        let root = self.size * damped.sqrt();
        let half = 0.5 * self.size * self.size * (1.0 - damped);
        let (sin2, cos2) = (2.0 * self.angle).sin_cos();
        let covariance =
            [half * (1.0 - damped * cos2), half * (1.0 + damped * cos2), -half * damped * sin2];
        Moments { mean: [root * cos, root * sin], covariance }
    }

    /// Returns the mean and variance of the angle, given the belief about the sum of the other
    /// terms.
    fn posterior(&self, y: [f64; 2], others: Moments) -> (f64, f64) {
        let [a, b, c] = others.covariance;
        let (a, b) = (a.max(0.0) + NOISE, b.max(0.0) + NOISE);
        let det = (a * b - c * c).max(NOISE * NOISE);
        let left = [y[0] - others.mean[0], y[1] - others.mean[1]];
        let deviation = self.variance.sqrt();
        let shares = (0..GRID).map(|i| 2.0 * i as f64 / (GRID - 1) as f64 - 1.0);
        let angles: Vec<f64> = shares.map(|share| self.angle + deviation * REACH * share).collect();
        let logs = angles.iter().map(|angle| {
            let (sin, cos) = angle.sin_cos();
            let (u, v) = (left[0] - self.size * cos, left[1] - self.size * sin);
            let off = (angle - self.angle) / deviation;
            -0.5 * ((b * u * u - 2.0 * c * u * v + a * v * v) / det + off * off)
        });
        let logs: Vec<f64> = logs.collect();
        let max = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let weights: Vec<f64> = logs.iter().map(|l| (l - max).exp()).collect();
        let total: f64 = weights.iter().sum();
        let weighted = weights.iter().zip(&angles);
        let mean = weighted.clone().map(|(w, angle)| w * angle).sum::<f64>() / total;
        (mean, weighted.map(|(w, angle)| w * (angle - mean).powi(2)).sum::<f64>() / total)
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn norm(a: &[f64]) -> f64 {
    dot(a, a).sqrt()
}
