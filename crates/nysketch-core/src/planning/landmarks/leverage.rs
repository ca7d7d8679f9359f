//! Landmarks by approximate leverage scores: BLESS (Rudi, Calandriello, Carratino, Rosasco 2018).
//!
//! The leverage score of row i is, by eq. (9),
//!
//! ```text
//! ℓ(λ, i) = (K_n (K_n + λ n I)⁻¹)_ii ,    Σ_i ℓ(λ, i) = N(λ), the effective dimension.
//! ```
//!
//! With a weighted subset (J, A) of the rows, it is approximated by
//!
//! ```text
//! ℓ̃(λ, x) = (κ(x, x) − k_J(x)ᵀ (K_J + λ n A)⁻¹ k_J(x)) / λn .
//! ```
//!
//! BLESS proceeds from a coarse λ to a fine one. Each level draws R candidates uniformly, scores
//! them with the subset of the previous level, and draws M ∝ N(λ) of them with probability
//! proportional to the scores, `A = (R M / n) diag(p)`. Departures from the paper: if R would
//! exceed n, every row is a candidate once; rows drawn c times are kept once with `A/c`, which does
//! not change ℓ̃; if N(λ) is the target, λ lies between two levels, and all rows are scored with
//! the subset of the coarser one, as at a level.

use crate::error::Result;
use crate::kernel::ScaledKernel;
use crate::numeric::linalg::{Cholesky, Columns, Matrix, symmetric_eigen};
use crate::numeric::points::{PointColumns, Points};
use crate::numeric::random::{below, draw, unit};
use crate::numeric::work::Work;

/// Ratio of λ between levels.
const STEP: f64 = 2.0;
/// Number of candidates of a level, times λ.
const CANDIDATES: f64 = 4.0;
/// Number of rows kept at a level, relative to the effective dimension …
const KEPT: f64 = 3.0;
/// … and a constant added to it, because chance matters more for small dimensions.
const KEPT_EXTRA: f64 = 100.0;
/// λn at which BLESS stops even if the requested effective dimension is not attained. Below it, the
/// scores are differences of nearly equal numbers.
const MIN_LAMBDA_N: f64 = 1e-9;

/// The target of BLESS.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Target {
    /// The λ whose effective dimension N(λ) is this value.
    EffectiveDimension(f64),
    /// A given λ.
    Lambda(f64),
}

impl Target {
    /// The target for which BLESS keeps about `m` rows.
    pub fn landmarks(m: usize) -> Self {
        Target::EffectiveDimension(m as f64 / KEPT)
    }
}

/// Approximate scores of every row.
#[derive(Debug, Clone)]
pub struct Scores {
    /// λ.
    pub lambda: f64,
    /// `ℓ̃(λ, i)`.
    pub scores: Vec<f64>,
}

impl Scores {
    /// `Σ_i ℓ̃(λ, i)`, an estimate of N(λ).
    pub fn effective_dimension(&self) -> f64 {
        self.scores.iter().sum()
    }

    /// The paper's sampling: as many draws with replacement as BLESS keeps rows, which is
    /// proportional to N(λ). The number of different rows is random.
    pub fn draw_some(&self, rng: &mut impl rand::Rng) -> Vec<usize> {
        let draws = (KEPT * self.effective_dimension()).ceil() as usize;
        let mut drawn: Vec<usize> = (0..draws).filter_map(|_| draw(&self.scores, rng)).collect();
        drawn.sort_unstable();
        drawn.dedup();
        drawn
    }

    /// Draws `m` different points without replacement, with probability proportional to the scores.
    pub fn sample(&self, points: &Points, m: usize, rng: &mut impl rand::Rng) -> Vec<usize> {
        let mut keyed: Vec<(f64, usize)> = super::uniform::distinct(points)
            .into_iter()
            .map(|i| (-(1.0 - unit(rng)).ln() / self.scores[i], i))
            .collect();
        keyed.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        keyed.into_iter().take(m).map(|(_, i)| i).collect()
    }
}

/// A weighted subset (J, A) that represents all rows.
struct Subset {
    indices: Vec<usize>,
    /// Diagonal of A.
    weights: Vec<f64>,
}

/// Runs BLESS.
pub fn bless(
    points: &Points,
    kernel: ScaledKernel,
    target: Target,
    rng: &mut impl rand::Rng,
) -> Result<Scores> {
    let bless = Bless { points, kernel };
    if let Target::EffectiveDimension(wanted) = target {
        check_work(points.len(), KEPT * wanted)?;
    }
    let mut subset = Subset { indices: Vec::new(), weights: Vec::new() };
    let mut lambda = 1.0;
    match target {
        Target::Lambda(last) => {
            let levels = (1.0 / last).log(STEP).ceil().max(1.0) as i32;
            for h in 1..=levels {
                lambda = last.powf(f64::from(h) / f64::from(levels));
                (subset, _) = bless.level(&subset, lambda, rng)?;
            }
        }
        Target::EffectiveDimension(wanted) => {
            let mut before = (lambda, 0.0);
            loop {
                let next = lambda / STEP;
                let (finer, dimension) = bless.level(&subset, next, rng)?;
                if dimension >= wanted {
                    if subset.indices.is_empty() {
                        subset = finer;
                    }
                    lambda = interpolate(before, (next, dimension), wanted);
                    break;
                }
                (subset, lambda, before) = (finer, next, (next, dimension));
                if lambda * (points.len() as f64) < MIN_LAMBDA_N {
                    break;
                }
            }
        }
    }
    let all: Vec<usize> = (0..points.len()).collect();
    let scores = bless.scores(&subset, lambda, &all)?;
    Ok(Scores { lambda, scores })
}

/// Refuses scores of `rows` rows by a subset of this size if they take too long.
fn check_work(rows: usize, subset: f64) -> Result<()> {
    let operations = subset * subset * (2.0 * rows as f64 + subset);
    Work { operations, bytes: 16.0 * subset * subset }.check_beside(
        "leverage scores for this many landmarks",
        "`sampling=dsquared` or `sampling=uniform` take much less",
    )
}

/// λ at which N(λ), interpolated linearly in log λ between two levels, is `wanted`.
fn interpolate(coarse: (f64, f64), fine: (f64, f64), wanted: f64) -> f64 {
    let share = ((wanted - coarse.1) / (fine.1 - coarse.1)).clamp(0.0, 1.0);
    (coarse.0.ln() + share * (fine.0.ln() - coarse.0.ln())).exp()
}

struct Bless<'a> {
    points: &'a Points,
    kernel: ScaledKernel,
}

impl Bless<'_> {
    fn value(&self, i: usize, j: usize) -> f64 {
        let (x, y) = (self.points.row(i), self.points.row(j));
        self.kernel.of(self.kernel.distance_between(x, y))
    }

    /// Computes one level: candidates, their scores, the next subset, and the estimate of N(λ).
    fn level(
        &self,
        subset: &Subset,
        lambda: f64,
        rng: &mut impl rand::Rng,
    ) -> Result<(Subset, f64)> {
        let n = self.points.len();
        let r = (CANDIDATES / lambda).ceil();
        let candidates: Vec<usize> = if r >= n as f64 {
            (0..n).collect()
        } else {
            (0..r as usize).map(|_| below(n, rng)).collect()
        };
        let r = candidates.len() as f64;
        let scores = self.scores(subset, lambda, &candidates)?;
        let total: f64 = scores.iter().sum();
        let dimension = n as f64 / r * total;
        let kept = (KEPT * dimension + KEPT_EXTRA).ceil();

        let mut times = vec![0u32; candidates.len()];
        for _ in 0..kept as usize {
            if let Some(c) = draw(&scores, rng) {
                times[c] += 1;
            }
        }
        let mut next = Subset { indices: Vec::new(), weights: Vec::new() };
        for (c, &times) in times.iter().enumerate().filter(|(_, t)| **t > 0) {
            next.indices.push(candidates[c]);
            next.weights.push(r * kept / n as f64 * (scores[c] / total) / f64::from(times));
        }
        Ok((next, dimension))
    }

    /// `ℓ̃(λ, x)` of some rows.
    fn scores(&self, subset: &Subset, lambda: f64, rows: &[usize]) -> Result<Vec<f64>> {
        let n = self.points.len() as f64;
        let j = &subset.indices;
        check_work(rows.len(), j.len() as f64)?;
        let explained = if j.is_empty() {
            vec![0.0; rows.len()]
        } else {
            let a = Cholesky::new(&Matrix::from_fn(j.len(), j.len(), |p, q| {
                let k = self.value(j[p], j[q]);
                if p == q { k + lambda * n * subset.weights[p] } else { k }
            }))?;
            // Rows are processed in chunks, so that memory stays at |J| × 1024.
            let mut explained = Vec::with_capacity(rows.len());
            let columns = PointColumns::new(&self.points.select(j));
            for chunk in rows.chunks(1024) {
                let mut b = Columns::with_capacity(j.len(), chunk.len());
                for &row in chunk {
                    b.push(self.kernel.column(&columns, self.points.row(row)));
                }
                explained.extend(a.inverse_quadratic_forms(b));
            }
            explained
        };
        // A score is at most 1. Rounding must not make it zero or negative.
        Ok(explained.iter().map(|e| ((1.0 - e) / (lambda * n)).clamp(1e-12, 1.0)).collect())
    }
}

/// Exact scores, eq. (9), by eigendecomposition: O(n³), for small n.
pub fn exact(points: &Points, kernel: ScaledKernel, lambda: f64) -> Result<Vec<f64>> {
    let n = points.len();
    let eigen = symmetric_eigen(&kernel.gram(points))?;
    let shrink: Vec<f64> =
        eigen.values.iter().map(|v| v.max(0.0) / (v.max(0.0) + lambda * n as f64)).collect();
    Ok((0..n).map(|i| (0..n).map(|l| shrink[l] * eigen.vectors.get(i, l).powi(2)).sum()).collect())
}

/// The smallest z of eq. (10): `ℓ/z ≤ ℓ̃ ≤ z ℓ` for every row.
pub fn accuracy(approximate: &[f64], exact: &[f64]) -> f64 {
    approximate.iter().zip(exact).map(|(a, e)| (a / e).max(e / a)).fold(1.0, f64::max)
}
