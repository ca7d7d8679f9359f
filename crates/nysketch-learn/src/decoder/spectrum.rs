//! The spectrum of the covariance operator of the data, estimated from a sketch.
//!
//! Σ = E Φ(x)⊗Φ(x) is estimated from some rows, or from the landmarks, each weighted by the share
//! w_j of the rows in its cell (equal weights if the sketch has no cells). With B = D^½ K_m D^½ = U
//! diag(σ) Uᵀ and D = diag(w), the σ_ℓ are the spectrum of Σ, and for f with ‖f‖ = 1 and k_f =
//! (⟨Φ(x̃_j), f⟩)_j
//!
//! ```text
//! N_f(λ)  = ⟨f, (Σ + λ)⁻¹ f⟩ = (1 − Σ_ℓ c_ℓ/(σ_ℓ + λ)) / λ ,   c = (Uᵀ D^½ k_f)²
//! N(λ)    = Σ_ℓ σ_ℓ/(σ_ℓ + λ) ,   N_∞(λ) = sup_x N_Φ(x)(λ) ≤ 1/λ
//! ```

use nysketch_core::error::{Error, Result};
use nysketch_core::kernel::ScaledKernel;
use nysketch_core::numeric::linalg::{Matrix, symmetric_eigen};
use nysketch_core::numeric::points::Points;
use nysketch_core::numeric::work::Work;
use nysketch_core::sketch::Sketch;
use nysketch_core::sums::Sum;

/// Eigenvalues below this share of the largest are rounding errors.
const CUTOFF: f64 = 1e-12;

/// Effective dimensions of the data at one bandwidth.
#[derive(Debug, Clone)]
pub struct Spectrum {
    /// σ_ℓ, decreasing.
    pub eigenvalues: Vec<f64>,
    /// Uᵀ D^½ as rows.
    rotation: Matrix,
    /// `(Uᵀ D^½ k(x̃_j))²` by eigenvalue, for every row from which Σ is estimated.
    of_points: Vec<Vec<f64>>,
}

impl Spectrum {
    /// Estimates the spectrum from the landmarks of a sketch, with equal weights if the sketch has
    /// no rows or no cells.
    pub fn new(sketch: &Sketch, rung: usize) -> Result<Self> {
        let plan = sketch.plan();
        let Some(landmarks) = plan.landmark_space() else {
            return Err(Error::parameter("the sketch", "one with landmarks", "Fourier features"));
        };
        let m = landmarks.len();
        let rows = sketch.rows() as f64;
        let cells = &sketch.sums()[Sum::CellRows];
        let shares: Vec<f64> = (0..m)
            .map(|j| {
                if rows > 0.0 && !cells.is_empty() {
                    cells[j] as f64 / rows
                } else {
                    1.0 / m as f64
                }
            })
            .collect();
        Self::of_points(&landmarks, &shares, plan.kernel.at(plan.bandwidths[rung]))
    }

    /// Estimates the spectrum from these points, with weights of sum one.
    pub(crate) fn of_points(points: &Points, shares: &[f64], kernel: ScaledKernel) -> Result<Self> {
        let m = points.len();
        Work::eigen(m, 1).check("the spectrum of the kernel")?;
        let root: Vec<f64> = shares.iter().map(|w| w.sqrt()).collect();
        let gram = kernel.gram(points);
        let weighted = Matrix::from_fn(m, m, |i, j| root[i] * gram.get(i, j) * root[j]);
        let eigen = symmetric_eigen(&weighted)?;
        let min = CUTOFF * eigen.values[0];
        let rank = eigen.values.iter().take_while(|v| **v > min).count();
        let rotation = Matrix::from_fn(rank, m, |l, j| eigen.vectors.get(j, l) * root[j]);
        let columns: Vec<Vec<f64>> =
            (0..m).map(|j| (0..m).map(|i| gram.get(i, j)).collect()).collect();
        let of_points = rotation
            .times_each(&columns)
            .into_iter()
            .map(|v| v.into_iter().map(|x| x * x).collect())
            .collect();
        Ok(Spectrum { eigenvalues: eigen.values[..rank].to_vec(), rotation, of_points })
    }

    /// Estimates the spectrum from every other point, to show the effect of using fewer points.
    pub(crate) fn of_half(points: &Points, shares: &[f64], kernel: ScaledKernel) -> Result<Self> {
        let kept: Vec<usize> = (0..points.len()).step_by(2).collect();
        let total: f64 = kept.iter().map(|i| shares[*i]).sum();
        let shares: Vec<f64> = kept.iter().map(|i| shares[*i] / total).collect();
        Self::of_points(&points.select(&kept), &shares, kernel)
    }

    /// Returns the metric of `⟨f, Σ (Σ + λ)⁻¹ f⟩`, for values of f at the points.
    pub(crate) fn regularised(&self, lambda: f64) -> Matrix {
        let (rank, m) = (self.rotation.nrows(), self.rotation.ncols());
        Matrix::from_fn(rank, m, |l, j| {
            self.rotation.get(l, j) / (self.eigenvalues[l] + lambda).sqrt()
        })
        .gram()
    }

    /// Returns `(Uᵀ D^½ k_f)²`, for values of f at the points.
    pub(crate) fn squares(&self, values: &[f64]) -> Vec<f64> {
        self.rotation.times(values).into_iter().map(|x| x * x).collect()
    }

    /// Returns N_f(λ) of a unit vector, given its values at the points.
    pub(crate) fn leverage_at(&self, values: &[f64], lambda: f64) -> f64 {
        self.leverage(&self.squares(values), lambda)
    }

    /// Returns N(λ).
    pub fn effective_dimension(&self, lambda: f64) -> f64 {
        self.eigenvalues.iter().map(|s| s / (s + lambda)).sum()
    }

    /// Returns N_∞(λ), over the points from which Σ is estimated.
    pub fn largest_leverage(&self, lambda: f64) -> f64 {
        let each = self.of_points.iter().map(|c| self.leverage(c, lambda));
        each.fold(0.0, f64::max)
    }

    /// Returns N_f(λ) of a unit vector, given its `c`.
    pub(crate) fn leverage(&self, c: &[f64], lambda: f64) -> f64 {
        let explained: f64 = c.iter().zip(&self.eigenvalues).map(|(c, s)| c / (s + lambda)).sum();
        (1.0 - explained).max(0.0) / lambda
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nysketch_core::pass::SketchParams;
    use nysketch_core::plan::sampling::Sampling;
    use nysketch_core::planning::{PlanParams, plan_for};
    use nysketch_core::rows::Table;
    use nysketch_core::rows::synthetic::Mixture;
    use std::sync::Arc;

    fn sketch(m: usize) -> Sketch {
        let rows = Mixture::new(2, 3, 2.0, 4).unwrap().rows(0, 1000).values;
        let table = Table::unnamed(2, rows).unwrap();
        let params = PlanParams::default().landmarks(m).sampling(Sampling::Uniform);
        let plan = Arc::new(plan_for(&table, params.bandwidths([4.0])).unwrap().0);
        Sketch::of(&plan, &table, SketchParams::default(), &()).unwrap()
    }

    /// N(λ) = Σ_j w_j N_Φ(x̃_j)(λ), N_x ≤ 1/λ, and both decrease with λ.
    #[test]
    fn dimensions_agree_with_their_definitions() {
        let sketch = sketch(80);
        let spectrum = Spectrum::new(&sketch, 0).unwrap();
        let trace: f64 = spectrum.eigenvalues.iter().sum();
        assert!((trace - 1.0).abs() < 1e-9, "the trace of Σ is E κ(x, x) = 1: {trace}");
        let mut before = f64::INFINITY;
        for lambda in [1e-4, 1e-3, 1e-2, 0.1] {
            let rows = sketch.rows() as f64;
            let shares = sketch.sums()[Sum::CellRows].iter().map(|n| *n as f64 / rows);
            let mean: f64 = shares
                .zip(&spectrum.of_points)
                .map(|(w, c)| w * spectrum.leverage(c, lambda))
                .sum();
            let dimension = spectrum.effective_dimension(lambda);
            assert!(
                (mean - dimension).abs() < 1e-6 * dimension / lambda.min(1.0),
                "{mean} {dimension}"
            );
            assert!(spectrum.largest_leverage(lambda) <= 1.0 / lambda);
            assert!(spectrum.largest_leverage(lambda) >= dimension && dimension < before);
            before = dimension;
        }
    }
}
