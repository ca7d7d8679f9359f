//! Kernels in double precision: a slow, direct implementation, with gradients.

use super::table::{Kernel, Metric};
#[cfg(feature = "planning")]
use crate::numeric::linalg::Matrix;
use crate::numeric::points::{PointColumns, Points};

/// A kernel at one bandwidth.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ScaledKernel {
    /// The kernel.
    pub kernel: Kernel,
    /// σ².
    pub sigma2: f64,
}

impl Kernel {
    /// The kernel at one bandwidth, in double precision.
    #[doc(hidden)]
    pub fn at(self, sigma2: f64) -> ScaledKernel {
        ScaledKernel { kernel: self, sigma2 }
    }
}

impl ScaledKernel {
    /// `κ(x, y)`.
    pub fn value(&self, x: &[f64], y: &[f64]) -> f64 {
        self.of(self.distance(x, y))
    }

    /// κ of two points at this distance, which is squared for the Gaussian kernel.
    pub fn of(&self, distance: f64) -> f64 {
        match self.kernel {
            Kernel::Gaussian => (-distance / (2.0 * self.sigma2)).exp(),
            Kernel::Laplace => (-distance / self.sigma2.sqrt()).exp(),
        }
    }

    /// The distance of which the kernel is a function.
    pub fn distance(&self, x: &[f64], y: &[f64]) -> f64 {
        match self.kernel.metric() {
            Metric::Squared => squared_distance(x, y),
            Metric::Absolute => x.iter().zip(y).map(|(a, b)| (a - b).abs()).sum(),
        }
    }

    /// The distance between narrowed points.
    pub fn distance_between(&self, x: &[f32], y: &[f32]) -> f64 {
        match self.kernel.metric() {
            Metric::Squared => Points::squared_distance(x, y),
            Metric::Absolute => {
                x.iter().zip(y).map(|(a, b)| (f64::from(*a) - f64::from(*b)).abs()).sum()
            }
        }
    }

    /// `∂κ/∂x`: `−(x − y) κ / σ²`, eq. (26), or `−sign(x − y) κ / σ`.
    pub fn gradient(&self, x: &[f64], y: &[f64]) -> Vec<f64> {
        let value = self.value(x, y);
        let differences = x.iter().zip(y).map(|(a, b)| a - b);
        match self.kernel {
            Kernel::Gaussian => differences.map(|t| -value / self.sigma2 * t).collect(),
            Kernel::Laplace => {
                let slope = -value / self.sigma2.sqrt();
                differences.map(|t| if t == 0.0 { 0.0 } else { slope * t.signum() }).collect()
            }
        }
    }

    /// `κ(x_i, x_j)` for all pairs of points.
    #[cfg(feature = "planning")]
    pub fn gram(&self, points: &Points) -> Matrix {
        let n = points.len();
        Matrix::from_fn(n, n, |i, j| self.of(self.distance_between(points.row(i), points.row(j))))
    }

    /// `κ(x_i, z)` for every point of `columns`.
    pub fn column(&self, columns: &PointColumns, z: &[f32]) -> Vec<f64> {
        let z: Vec<f64> = z.iter().map(|z| f64::from(*z)).collect();
        let mut column = vec![0.0; columns.len()];
        match self.kernel.metric() {
            Metric::Squared => columns.add_squares(&z, &vec![1.0; z.len()], &mut column),
            Metric::Absolute => columns.add_absolutes(&z, 1.0, &mut column),
        }
        column.iter_mut().for_each(|s| *s = self.of(*s));
        column
    }

    /// `κ(x, x̃_j)` for every row `x̃_j` of `points`, which are narrowed coordinates.
    pub fn against(&self, x: &[f64], points: &Points) -> Vec<f64> {
        let mut z = Vec::with_capacity(points.dims());
        let mut values = Vec::with_capacity(points.len());
        for row in points.rows() {
            z.clear();
            z.extend(row.iter().map(|z| f64::from(*z)));
            values.push(self.value(x, &z));
        }
        values
    }
}

/// `‖x − y‖²`.
pub fn squared_distance(x: &[f64], y: &[f64]) -> f64 {
    x.iter().zip(y).map(|(a, b)| (a - b) * (a - b)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::names::{Choice, Named};
    use proptest::prelude::*;

    proptest! {
        /// Central differences with step h have an error of O(h²) from the value and O(ε/h) from
        /// rounding. The Laplace kernel has a kink where two coordinates are equal.
        #[test]
        fn gradients_match_finite_differences(
            x in prop::collection::vec(-2.0..2.0f64, 3),
            y in prop::collection::vec(-2.0..2.0f64, 3),
            sigma2 in 0.3..5.0f64,
        ) {
            let h = 1e-5;
            prop_assume!(x.iter().zip(&y).all(|(a, b)| (a - b).abs() > 2.0 * h));
            for Choice { value: kernel, .. } in Kernel::TABLE {
                let kernel = kernel.at(sigma2);
                for (j, g) in kernel.gradient(&x, &y).into_iter().enumerate() {
                    let (mut up, mut down) = (x.clone(), x.clone());
                    up[j] += h;
                    down[j] -= h;
                    let numeric = (kernel.value(&up, &y) - kernel.value(&down, &y)) / (2.0 * h);
                    prop_assert!((g - numeric).abs() < 1e-8, "{g} {numeric}");
                }
            }
        }

        /// The rate in the table matches the values, and so does the bandwidth of the square.
        #[test]
        fn the_table_agrees_with_the_values(sigma2 in 0.1..10.0f64, s in 0.0..10.0f64) {
            for Choice { value: kernel, .. } in Kernel::TABLE {
                let value = kernel.at(sigma2).of(s);
                prop_assert!((value - (kernel.rate(sigma2) * s).exp2()).abs() < 1e-14);
                let square = kernel.at(kernel.squared(sigma2)).of(s);
                prop_assert!((value * value - square).abs() < 1e-14);
            }
        }
    }
}
