//! The whitening factor of a covariance: `W = L⁻¹`, with `Γ = L Lᵀ`.
//!
//! ```text
//! s = W (x − μ) ,   q = Σ_i s_i² = (x − μ)ᵀ Γ⁻¹ (x − μ) ,   log det Γ = −2 Σ_i log W_ii
//! log N(x; μ, Γ) = −½ (d log 2π + log det Γ) − ½ q
//! ```
//!
//! Products are added in the order of the columns, without fused multiply-adds, so that every
//! machine gets the same bits.

use super::symmetric::{SymmetricMatrix, start};
use nysketch_core::numeric::linalg::dot;
use nysketch_core::numeric::random::normal;
use nysketch_core::numeric::simd::{Instructions, Work};
use std::sync::Arc;

/// Largest entry of W. With values of at most 10¹⁰⁰ no entry of s overflows, so that no sum becomes
/// infinity minus infinity.
const LARGEST: f64 = 1e200;

/// The whitening factor of a covariance. Clones share their numbers.
///
/// ```
/// use nysketch::Covariance;
/// let factor = Covariance::Diagonal(vec![4.0, 1.0]).cholesky().expect("positive variances");
/// assert_eq!(factor.whiten(&[2.0, 2.0]), [1.0, 2.0]);
/// // log N(μ; μ, Γ) of two columns with det Γ = 4.
/// let peak = -(4.0 * std::f64::consts::PI).ln();
/// assert!((factor.log_density(&[7.0, 8.0], &[7.0, 8.0]) - peak).abs() < 1e-15);
/// ```
#[derive(Debug, Clone)]
pub struct Factor {
    whitening: Whitening,
    log_det: f64,
}

/// The factor W.
#[derive(Debug, Clone)]
pub(crate) enum Whitening {
    /// `1/√γ`.
    Diagonal(Arc<[f64]>),
    /// The rows of a lower triangle, with i + 1 numbers in row i.
    Lower(Arc<[f64]>),
}

impl Factor {
    /// Returns the factor of a diagonal; `None` if a variance is not positive.
    pub(super) fn of_diagonal(variances: &[f64]) -> Option<Self> {
        let usable = variances.iter().all(|v| v.is_normal() && *v > 0.0);
        usable.then(|| Factor {
            whitening: Whitening::Diagonal(variances.iter().map(|v| 1.0 / v.sqrt()).collect()),
            log_det: variances.iter().map(|v| v.ln()).sum(),
        })
    }

    /// Returns the factor of a matrix; `None` if it is not positive definite or its inverse
    /// overflows.
    pub(super) fn of_matrix(matrix: &SymmetricMatrix) -> Option<Self> {
        let lower = inverse_triangle(matrix, Instructions::best())?;
        let log_det = -2.0 * (0..matrix.dims()).map(|i| lower[start(i) + i].ln()).sum::<f64>();
        Some(Factor { whitening: Whitening::Lower(lower.into()), log_det })
    }

    /// Returns the number of columns.
    pub fn dims(&self) -> usize {
        match &self.whitening {
            Whitening::Diagonal(w) => w.len(),
            Whitening::Lower(w) => (((8 * w.len() + 1) as f64).sqrt() as usize - 1) / 2,
        }
    }

    /// Returns W.
    pub(crate) fn whitening(&self) -> &Whitening {
        &self.whitening
    }

    /// Returns `log det Γ`.
    pub fn log_det(&self) -> f64 {
        self.log_det
    }

    /// Returns `log N(μ; μ, Γ)`.
    pub fn log_peak(&self) -> f64 {
        -0.5 * (self.dims() as f64 * std::f64::consts::TAU.ln() + self.log_det)
    }

    /// Returns `s = W t`.
    pub fn whiten(&self, t: &[f64]) -> Vec<f64> {
        match &self.whitening {
            Whitening::Diagonal(w) => t.iter().zip(&**w).map(|(t, w)| t * w).collect(),
            Whitening::Lower(w) => (0..t.len())
                .map(|i| {
                    // The sum starts at 0, as it does when many rows are whitened at once.
                    let row = &w[start(i)..start(i + 1)];
                    row.iter().zip(t).fold(0.0, |s, (w, t)| s + w * t)
                })
                .collect(),
        }
    }

    /// Calls `visit` with the row, the column and the value of every nonzero entry of W.
    pub(crate) fn each_entry(&self, mut visit: impl FnMut(usize, usize, f64)) {
        match &self.whitening {
            Whitening::Diagonal(w) => w.iter().enumerate().for_each(|(i, w)| visit(i, i, *w)),
            Whitening::Lower(w) => {
                for i in 0..self.dims() {
                    let row = &w[start(i)..start(i + 1)];
                    row.iter().enumerate().for_each(|(j, w)| visit(i, j, *w));
                }
            }
        }
    }

    /// Returns `(x − μ)ᵀ Γ⁻¹ (x − μ)`.
    pub fn squared_distance(&self, x: &[f64], mean: &[f64]) -> f64 {
        let t: Vec<f64> = x.iter().zip(mean).map(|(x, m)| x - m).collect();
        self.whiten(&t).iter().fold(0.0, |q, s| q + s * s)
    }

    /// Returns `log N(x; μ, Γ)`.
    pub fn log_density(&self, x: &[f64], mean: &[f64]) -> f64 {
        self.log_peak() - 0.5 * self.squared_distance(x, mean)
    }

    /// Draws a row from `N(μ, Γ)`: `μ + L z` with standard normal z.
    pub fn draw(&self, mean: &[f64], rng: &mut impl rand::Rng) -> Vec<f64> {
        let y = self.unwhiten(mean.iter().map(|_| normal(rng)).collect());
        y.iter().zip(mean).map(|(y, m)| m + y).collect()
    }

    /// Returns `L s`, the vector that W maps to s.
    pub(crate) fn unwhiten(&self, mut y: Vec<f64>) -> Vec<f64> {
        match &self.whitening {
            Whitening::Diagonal(w) => y.iter_mut().zip(&**w).for_each(|(y, w)| *y /= w),
            Whitening::Lower(w) => {
                for i in 0..y.len() {
                    let row = &w[start(i)..start(i) + i];
                    y[i] = (y[i] - dot(row, &y[..i])) / w[start(i) + i];
                }
            }
        }
        y
    }
}

/// Returns W of a matrix; every instruction set gives the same bits.
fn inverse_triangle(matrix: &SymmetricMatrix, instructions: Instructions) -> Option<Vec<f64>> {
    struct Inverse<'a>(&'a SymmetricMatrix, &'a mut Option<Vec<f64>>);
    impl Work for Inverse<'_> {
        #[inline(always)]
        fn work(self) {
            *self.1 = triangle(self.0).and_then(|l| inverse(self.0.dims(), l));
        }
    }
    let mut found = None;
    instructions.run(Inverse(matrix, &mut found));
    found
}

/// Returns L; `None` if a pivot is within the rounding error of its variance.
#[inline(always)]
fn triangle(matrix: &SymmetricMatrix) -> Option<Vec<f64>> {
    let d = matrix.dims();
    let tolerance = 4.0 * f64::EPSILON * d as f64;
    let mut l = matrix.lower().to_vec();
    for i in 0..d {
        let (above, row) = l.split_at_mut(start(i));
        for j in 0..i {
            let other = &above[start(j)..start(j + 1)];
            row[j] = (row[j] - dot(&row[..j], &other[..j])) / other[j];
        }
        let pivot = row[i] - dot(&row[..i], &row[..i]);
        if !(pivot.is_normal() && pivot > tolerance * row[i]) {
            return None;
        }
        row[i] = pivot.sqrt();
    }
    Some(l)
}

/// Returns `W_i = (e_i − Σ_{l<i} L_il W_l)/L_ii`, computed row by row in place of L.
#[inline(always)]
fn inverse(d: usize, l: Vec<f64>) -> Option<Vec<f64>> {
    let mut w = l;
    let mut sum = vec![0.0; d];
    for i in 0..d {
        let (above, row) = w.split_at_mut(start(i));
        let sum = &mut sum[..i];
        sum.fill(0.0);
        for (l, factor) in row[..i].iter().enumerate() {
            let other = &above[start(l)..start(l + 1)];
            sum.iter_mut().zip(other).for_each(|(s, w)| *s += factor * w);
        }
        let pivot = row[i];
        row[..i].iter_mut().zip(&*sum).for_each(|(w, s)| *w = -s / pivot);
        row[i] = 1.0 / pivot;
    }
    w.iter().all(|w| w.abs() <= LARGEST).then_some(w)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::covariance::Covariance;
    use nysketch_core::numeric::linalg::{Cholesky, Columns, Matrix, symmetric_eigen};
    use proptest::prelude::*;
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    /// Returns `B Bᵀ/d + I/10`, in units that differ by factors of up to 10⁸: condition numbers
    /// near 100 in equal units.
    fn matrix(d: usize, rng: &mut ChaCha8Rng) -> SymmetricMatrix {
        let b: Vec<Vec<f64>> = (0..d).map(|_| (0..d).map(|_| normal(rng)).collect()).collect();
        let units: Vec<f64> = (0..d).map(|i| 10f64.powi(4 - 4 * (i as i32 % 3))).collect();
        SymmetricMatrix::from_fn(d, |i, j| {
            let ridge = if i == j { 0.1 } else { 0.0 };
            (dot(&b[i], &b[j]) / d as f64 + ridge) * units[i] * units[j]
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]

        /// Compares `W Γ Wᵀ` with I, and the quadratic form and the determinant with the
        /// linear-algebra crate. Every instruction set gives the same bits.
        #[test]
        fn rows_become_white(d in 1usize..40, seed in any::<u64>()) {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            let matrix = matrix(d, &mut rng);
            let covariance = Covariance::Full(matrix.clone());
            let factor = covariance.cholesky().unwrap();
            prop_assert_eq!(factor.dims(), d);
            let Whitening::Lower(w) = factor.whitening() else { panic!("a matrix") };
            for set in Instructions::all() {
                let found = inverse_triangle(&matrix, set).unwrap();
                prop_assert_eq!(&found[..], &w[..], "{}", set.name());
            }
            let rows: Vec<Vec<f64>> = matrix.rows().map(|row| factor.whiten(&row)).collect();
            for i in 0..d {
                let column: Vec<f64> = rows.iter().map(|row| row[i]).collect();
                for (j, x) in factor.whiten(&column).iter().enumerate() {
                    prop_assert!((x - f64::from(u8::from(i == j))).abs() < 1e-10, "{i} {j} {x}");
                }
            }
            let x: Vec<f64> = (0..d).map(|i| normal(&mut rng) * matrix.get(i, i).sqrt()).collect();
            let dense = Matrix::from_fn(d, d, |i, j| matrix.get(i, j));
            let mut columns = Columns::with_capacity(d, 1);
            columns.push(x.iter().copied());
            let q = Cholesky::new(&dense).unwrap().inverse_quadratic_forms(columns)[0];
            prop_assert!((factor.squared_distance(&x, &vec![0.0; d]) / q - 1.0).abs() < 1e-9);
            let unit: Vec<f64> = (0..d).map(|i| 1.0 / matrix.get(i, i).sqrt()).collect();
            let correlations = Matrix::from_fn(d, d, |i, j| matrix.get(i, j) * unit[i] * unit[j]);
            let eigen = symmetric_eigen(&correlations).unwrap();
            let logs: f64 = eigen.values.iter().map(|v| v.ln()).sum();
            let units: f64 = unit.iter().map(|u| 2.0 * u.ln()).sum();
            prop_assert!((factor.log_det() - (logs - units)).abs() < 1e-9);
        }

        /// A matrix without correlations gives the same bits as its diagonal, except for the
        /// logarithms.
        #[test]
        fn a_diagonal_is_a_matrix(
            variances in prop::collection::vec(1e-3..1e3f64, 1..20),
            seed in any::<u64>(),
        ) {
            let d = variances.len();
            let full = SymmetricMatrix::from_fn(d, |i, j| if i == j { variances[i] } else { 0.0 });
            let full = Covariance::Full(full).cholesky().unwrap();
            let diagonal = Covariance::Diagonal(variances).cholesky().unwrap();
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            let x: Vec<f64> = (0..d).map(|_| normal(&mut rng)).collect();
            prop_assert_eq!(full.whiten(&x), diagonal.whiten(&x));
            prop_assert_eq!(full.draw(&x, &mut rng.clone()), diagonal.draw(&x, &mut rng));
            let zero = vec![0.0; d];
            let [one, other] = [&full, &diagonal].map(|factor| factor.log_density(&x, &zero));
            prop_assert!((one - other).abs() < 1e-11);
        }
    }

    /// The covariance of 100,000 draws: an entry has a standard deviation of at most √(2 Γ_ii
    /// Γ_jj/n), which is 0.0045 for unit variances.
    #[test]
    fn draws_have_the_covariance() {
        let gamma = [[1.0, 0.9, 0.0], [0.9, 1.0, -0.3], [0.0, -0.3, 1.0]];
        let factor =
            Covariance::Full(SymmetricMatrix::from_rows(&gamma).unwrap()).cholesky().unwrap();
        let (mut rng, mean, n) = (ChaCha8Rng::seed_from_u64(1), [5.0, 0.0, -2.0], 100_000);
        let mut sums = [[0.0; 3]; 3];
        for _ in 0..n {
            let x = factor.draw(&mean, &mut rng);
            for i in 0..3 {
                for j in 0..3 {
                    sums[i][j] += (x[i] - mean[i]) * (x[j] - mean[j]) / f64::from(n);
                }
            }
        }
        for i in 0..3 {
            for j in 0..3 {
                assert!((sums[i][j] - gamma[i][j]).abs() < 0.02, "{sums:?}");
            }
        }
    }

    /// Returns the factor of `[[a, b], [b, c]]`.
    fn full(a: f64, b: f64, c: f64) -> Option<Factor> {
        Covariance::Full(SymmetricMatrix::from_rows(&[[a, b], [b, c]]).unwrap()).cholesky()
    }

    #[test]
    fn what_is_not_positive_definite_has_no_factor() {
        assert!(full(1.0, 0.999, 1.0).is_some());
        // A matrix of rank one, up to rounding.
        assert!(full(0.1, 0.3, 0.9).is_none());
        assert!(full(1.0, 1.1, 1.0).is_none());
        assert!(full(-1.0, 0.0, 1.0).is_none());
        assert!(full(0.0, 0.0, 1.0).is_none());
        // The inverse of its root would overflow for large rows.
        assert!(full(1e-300, 0.0, 1.0).is_some());
        assert!(full(1e-310, 0.0, 1.0).is_none());
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e-310] {
            assert!(Covariance::Diagonal(vec![1.0, bad]).cholesky().is_none());
        }
    }
}
