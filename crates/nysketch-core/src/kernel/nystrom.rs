//! The Nyström map, eq. (8): `Φ_m(x) = K_m^{-1/2} [κ(x̃_1, x) … κ(x̃_m, x)]ᵀ`.
//!
//! With `K_m = V Λ Vᵀ` cut off at a share of the largest eigenvalue, `W = Λ_r^{-1/2} V_rᵀ` is
//! `K_m^{-1/2}` up to a rotation, so `Φ_m = W k(x)` has r numbers with the same inner products.
//! Departure from the paper: the mean is linear, so W is applied once to the mean of k instead of
//! to each row, which costs O(md) per row instead of O(m² + md).

use crate::error::Result;
use crate::kernel::ScaledKernel;
use crate::numeric::linalg::{Matrix, dot, symmetric_eigen};
use crate::numeric::points::Points;

/// Eigenvalues below this share of the largest are dropped: landmarks that (nearly) coincide make
/// K_m singular, and smaller eigenvalues are rounding errors.
pub const CUTOFF: f64 = 1e-12;

/// Eigenvalues of K_m below this share of the largest are ignored when decoding: kernel sums have a
/// resolution of 2⁻²³, and K_m^{-1/2} amplifies their error by 1/√cut-off.
pub const DECODING_CUTOFF: f64 = 1e-9;

/// The Nyström map of one bandwidth.
#[derive(Debug, Clone)]
pub struct NystromMap {
    kernel: ScaledKernel,
    landmarks: Points,
    /// All eigenvalues of K_m, largest first.
    pub eigenvalues: Vec<f64>,
    /// `W`, r × m.
    pub whitening: Matrix,
}

impl NystromMap {
    /// Decomposes K_m; `cutoff` is a share of the largest eigenvalue, usually [`CUTOFF`].
    pub fn new(landmarks: &Points, kernel: ScaledKernel, cutoff: f64) -> Result<Self> {
        let m = landmarks.len();
        let eigen = symmetric_eigen(&kernel.gram(landmarks))?;
        let min_eigenvalue = cutoff * eigen.values[0];
        let rank = eigen.values.iter().take_while(|v| **v > min_eigenvalue).count();
        let whitening =
            Matrix::from_fn(rank, m, |l, j| eigen.vectors.get(j, l) / eigen.values[l].sqrt());
        Ok(NystromMap {
            kernel,
            landmarks: landmarks.clone(),
            eigenvalues: eigen.values,
            whitening,
        })
    }

    /// Returns r, the number of eigenvalues above the cut-off.
    pub fn rank(&self) -> usize {
        self.whitening.nrows()
    }

    /// Returns the largest eigenvalue divided by the smallest one above the cut-off.
    pub fn condition(&self) -> f64 {
        self.eigenvalues[0] / self.eigenvalues[self.rank() - 1]
    }

    /// Returns `K_m⁺ = WᵀW` and its rank, without eigenvalues below this share of the largest.
    pub fn inverse(&self, cutoff: f64) -> (Matrix, usize) {
        let min_eigenvalue = cutoff * self.eigenvalues[0];
        let rank =
            self.eigenvalues.iter().take_while(|v| **v > min_eigenvalue).count().min(self.rank());
        let kept = Matrix::from_fn(rank, self.landmarks.len(), |l, j| self.whitening.get(l, j));
        (kept.gram(), rank)
    }

    /// Returns `‖W k‖²` of a vector of (mean) kernel values, without eigenvalues below this share
    /// of the largest.
    pub fn squared_norm(&self, kernel_vector: &[f64], cutoff: f64) -> f64 {
        let min_eigenvalue = cutoff * self.eigenvalues[0];
        let rank = self.eigenvalues.iter().take_while(|v| **v > min_eigenvalue).count();
        let whitened = self.whitening.times(kernel_vector);
        let kept = &whitened[..rank.min(whitened.len())];
        dot(kept, kept)
    }

    /// Returns `k(x) = [κ(x̃_1, x) … κ(x̃_m, x)]`, with `x` in the plan's coordinates.
    pub fn kernel_vector(&self, x: &[f64]) -> Vec<f64> {
        self.kernel.against(x, &self.landmarks)
    }

    /// Returns `Φ_m(x)`.
    pub fn features(&self, x: &[f64]) -> Vec<f64> {
        self.whitening.times(&self.kernel_vector(x))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Kernel;
    use crate::numeric::linalg::{Cholesky, Columns};
    use crate::numeric::random::Hashes;
    use proptest::prelude::*;

    /// A number within ±`scale`/2.
    fn around_zero(hashes: &mut Hashes, scale: f64) -> f64 {
        ((hashes.draw() >> 11) as f64 * 2.0f64.powi(-53) - 0.5) * scale
    }

    fn as_f64(z: &[f32]) -> Vec<f64> {
        z.iter().map(|v| f64::from(*v)).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        /// Lemma 3.1: Φ_m reproduces κ on the landmarks, and its inner products are those of the
        /// projections: ⟨P_mΦ(x), P_mΦ(y)⟩ = k(x)ᵀ K_m⁻¹ k(y). The eigenvalues are above 1e-6 here,
        /// so errors of 1e-16 are amplified to at most 1e-10.
        #[test]
        fn lemma_3_1(seed in any::<u64>(), m in 2usize..12, sigma2 in 0.2..1.0f64) {
            let mut hashes = Hashes(seed);
            // A jittered row of points at distances of 2 is well conditioned.
            let mut data = Vec::new();
            for i in 0..m {
                data.push((2 * i) as f32 + around_zero(&mut hashes, 0.5) as f32);
                data.push(around_zero(&mut hashes, 1.0) as f32);
            }
            let landmarks = Points::new(2, data);
            let map = NystromMap::new(&landmarks, Kernel::Gaussian.at(sigma2), CUTOFF).unwrap();
            prop_assert_eq!(map.rank(), m);
            for i in 0..m {
                for j in 0..m {
                    let (x, y) = (as_f64(landmarks.row(i)), as_f64(landmarks.row(j)));
                    let kernel = Kernel::Gaussian.at(sigma2).value(&x, &y);
                    let product = dot(&map.features(&x), &map.features(&y));
                    prop_assert!((product - kernel).abs() < 1e-10);
                }
            }
            let [x, y] = [0, 1].map(|_| {
                let first = around_zero(&mut hashes, 8.0) + m as f64;
                [first, around_zero(&mut hashes, 3.0)]
            });
            let (kx, ky) = (map.kernel_vector(&x), map.kernel_vector(&y));
            let k = Matrix::from_fn(m, m, |i, j| {
                let (x, y) = (as_f64(landmarks.row(i)), as_f64(landmarks.row(j)));
                Kernel::Gaussian.at(sigma2).value(&x, &y)
            });
            let mut columns = Columns::with_capacity(m, 3);
            columns.push(kx.iter().copied());
            columns.push(ky.iter().copied());
            columns.push(kx.iter().zip(&ky).map(|(x, y)| x + y));
            let q = Cholesky::new(&k).unwrap().inverse_quadratic_forms(columns);
            let projected = (q[2] - q[0] - q[1]) / 2.0;
            prop_assert!((dot(&map.features(&x), &map.features(&y)) - projected).abs() < 1e-10);
            // A projection is never longer than the original.
            prop_assert!(q[0] <= 1.0 + 1e-10);
        }
    }

    #[test]
    fn repeated_landmarks_lower_the_rank_and_nothing_else() {
        let landmarks = Points::new(1, vec![0.0, 1.0, 1.0, 3.0, 3.0]);
        let map = NystromMap::new(&landmarks, Kernel::Gaussian.at(1.0), CUTOFF).unwrap();
        assert_eq!(map.rank(), 3);
        let (x, y) = ([1.0], [3.0]);
        let kernel = Kernel::Gaussian.at(1.0).value(&x, &y);
        assert!((dot(&map.features(&x), &map.features(&y)) - kernel).abs() < 1e-12);
    }
}
