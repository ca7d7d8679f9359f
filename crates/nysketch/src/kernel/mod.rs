//! The Gaussian kernel, its gradients, and how it is evaluated fast and exactly reproducibly.
//!
//! ```text
//! κ(x, y) = exp(−‖x − y‖² / 2σ²)
//! ```
//!
//! * this file: the kernel in double precision, the slow and obvious version;
//! * [`ladder`]: several bandwidths from one exponential;
//! * [`exp2`]: the polynomials, in the one order of operations that every processor follows;
//! * [`tile`]: the vectorised pass over rows laid out by [`pack`]; [`scalar`] is its oracle, bit for bit.

pub mod exp2;
pub mod ladder;
pub mod pack;
pub mod scalar;
pub mod tile;

use crate::linalg::Matrix;
use crate::points::{PointColumns, Points};

/// The Gaussian kernel of one bandwidth σ².
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gaussian {
    /// σ².
    pub sigma2: f64,
}

impl Gaussian {
    /// `κ(x, y)`.
    pub fn value(&self, x: &[f64], y: &[f64]) -> f64 {
        self.at(squared_distance(x, y))
    }

    /// κ of two points at this squared distance.
    pub fn at(&self, d2: f64) -> f64 {
        (-d2 / (2.0 * self.sigma2)).exp()
    }

    /// `∂κ/∂x = −(x − y) κ(x, y) / σ²`, eq. (26).
    pub fn gradient(&self, x: &[f64], y: &[f64]) -> Vec<f64> {
        let factor = -self.value(x, y) / self.sigma2;
        x.iter().zip(y).map(|(a, b)| factor * (a - b)).collect()
    }

    /// `∂κ/∂σ² = κ(x, y) ‖x − y‖² / 2σ⁴`.
    pub fn gradient_sigma2(&self, x: &[f64], y: &[f64]) -> f64 {
        self.value(x, y) * squared_distance(x, y) / (2.0 * self.sigma2 * self.sigma2)
    }

    /// `κ(x_i, x_j)` of all pairs of points.
    pub fn gram(&self, points: &Points) -> Matrix {
        let n = points.len();
        Matrix::from_fn(n, n, |i, j| {
            self.at(Points::squared_distance(points.row(i), points.row(j)))
        })
    }

    /// `κ(x_i, z)` for every point of `columns`.
    pub fn column(&self, columns: &PointColumns, z: &[f32]) -> Vec<f64> {
        let mut column = vec![0.0; columns.len()];
        columns.squared_distances(z, &mut column);
        column.iter_mut().for_each(|d2| *d2 = self.at(*d2));
        column
    }

    /// `κ(x, x̃_j)` for every row `x̃_j` of `points`, which are narrowed coordinates.
    pub fn against(&self, x: &[f64], points: &Points) -> Vec<f64> {
        points
            .rows()
            .map(|z| {
                let d2: f64 = x.iter().zip(z).map(|(a, &b)| (a - f64::from(b)).powi(2)).sum();
                self.at(d2)
            })
            .collect()
    }
}

/// `‖x − y‖²`.
pub fn squared_distance(x: &[f64], y: &[f64]) -> f64 {
    x.iter().zip(y).map(|(a, b)| (a - b) * (a - b)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Central differences with step h err by O(h²) in the value and O(ε/h) in rounding.
        #[test]
        fn gradients_match_finite_differences(
            x in prop::collection::vec(-2.0..2.0f64, 3),
            y in prop::collection::vec(-2.0..2.0f64, 3),
            sigma2 in 0.3..5.0f64,
        ) {
            let kernel = Gaussian { sigma2 };
            let h = 1e-5;
            for (j, g) in kernel.gradient(&x, &y).into_iter().enumerate() {
                let (mut up, mut down) = (x.clone(), x.clone());
                up[j] += h;
                down[j] -= h;
                let numeric = (kernel.value(&up, &y) - kernel.value(&down, &y)) / (2.0 * h);
                prop_assert!((g - numeric).abs() < 1e-8, "{g} {numeric}");
            }
            let at = |s| Gaussian { sigma2: s }.value(&x, &y);
            let numeric = (at(sigma2 + h) - at(sigma2 - h)) / (2.0 * h);
            prop_assert!((kernel.gradient_sigma2(&x, &y) - numeric).abs() < 1e-7);
        }
    }
}
