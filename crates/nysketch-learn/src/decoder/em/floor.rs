//! The minimum variance of a component.

use crate::covariance::{Covariance, SymmetricMatrix};
use nysketch_core::numeric::linalg::{Matrix, symmetric_eigen};

/// The minimum variance of a component: in each column and, for matrices, in every direction, with
/// each column measured in units of its own minimum variance.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Floor(Vec<f64>);

impl Floor {
    /// Creates a floor from one positive variance per column.
    pub fn new(variances: Vec<f64>) -> Self {
        debug_assert!(variances.iter().all(|v| *v > 0.0));
        Floor(variances)
    }

    /// Returns the number of columns.
    pub fn dims(&self) -> usize {
        self.0.len()
    }

    /// Returns the minimum variance of each column.
    pub fn variances(&self) -> &[f64] {
        &self.0
    }

    /// Returns the minimum variance of a component that has the same variance in all columns.
    pub fn spherical(&self) -> f64 {
        self.0.iter().sum::<f64>() / self.0.len() as f64
    }

    /// Raises a covariance to the floor: eigenvalues of `D^{-½} Γ D^{-½}` below 1 become 1, where D
    /// is the diagonal matrix of minimum variances.
    pub fn lift(&self, covariance: &mut Covariance) {
        match covariance {
            Covariance::Diagonal(variances) => {
                variances.iter_mut().zip(&self.0).for_each(|(v, floor)| *v = v.max(*floor));
            }
            Covariance::Full(matrix) => {
                let root: Vec<f64> = self.0.iter().map(|v| v.sqrt()).collect();
                let d = self.dims();
                let scaled =
                    SymmetricMatrix::from_fn(d, |i, j| matrix.get(i, j) / (root[i] * root[j]));
                // If the matrix is positive definite after subtracting the identity, no eigenvalue
                // is below one.
                let less = SymmetricMatrix::from_fn(d, |i, j| {
                    scaled.get(i, j) - f64::from(u8::from(i == j))
                });
                if Covariance::Full(less).cholesky().is_some() {
                    return;
                }
                let dense = Matrix::from_fn(d, d, |i, j| scaled.get(i, j));
                let lifted = match symmetric_eigen(&dense) {
                    Ok(eigen) => SymmetricMatrix::from_fn(d, |i, j| {
                        (0..d)
                            .map(|l| {
                                let (value, v) = (eigen.values[l], &eigen.vectors);
                                value.max(1.0) * v.get(i, l) * v.get(j, l)
                            })
                            .sum::<f64>()
                            * root[i]
                            * root[j]
                    }),
                    // The entries have such different magnitudes that the directions cannot be
                    // computed.
                    Err(_) => SymmetricMatrix::from_fn(d, |i, j| {
                        if i == j { matrix.get(i, i).max(self.0[i]) } else { 0.0 }
                    }),
                };
                *matrix = lifted;
            }
        }
    }

    /// Returns whether a covariance is at the floor in some column or direction.
    pub fn binds(&self, covariance: &Covariance) -> bool {
        let mut wider = covariance.clone();
        Floor(self.0.iter().map(|v| 1.01 * v).collect()).lift(&mut wider);
        wider != *covariance
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_direction_is_below_the_floor() {
        let floor = Floor::new(vec![0.01, 4.0]);
        // The columns are proportional: the second direction has no width.
        let mut flat = Covariance::Full(SymmetricMatrix::from_fn(2, |i, j| {
            [[1.0, 20.0], [20.0, 400.0]][i][j]
        }));
        assert!(floor.binds(&flat));
        floor.lift(&mut flat);
        // det(D^{-½} Γ D^{-½}) = λ₁ λ₂ with λ₁ = 200 and λ₂ = 1.
        let det = flat.get(0, 0) * flat.get(1, 1) - flat.get(0, 1).powi(2);
        assert!((det / 0.04 / 200.0 - 1.0).abs() < 1e-9, "{det}");
        let mut wide =
            Covariance::Full(SymmetricMatrix::from_fn(2, |i, j| [[1.0, 1.0], [1.0, 400.0]][i][j]));
        let before = wide.clone();
        floor.lift(&mut wide);
        assert_eq!((wide, floor.binds(&before)), (before.clone(), false));
        let mut narrow = Covariance::Diagonal(vec![1e-9, 5.0]);
        floor.lift(&mut narrow);
        assert_eq!(narrow, Covariance::Diagonal(vec![0.01, 5.0]));
    }
}
