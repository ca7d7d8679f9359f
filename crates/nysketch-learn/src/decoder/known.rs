//! Known covariances, and the axes along which they are diagonal.
//!
//! The Gaussian kernel is invariant under rotations: if the landmarks and frequencies of a mixture
//! of covariance `Γ = U Λ Uᵀ` are rotated by `Uᵀ`, its sketch does not change and its covariance
//! becomes Λ. Decoders therefore need to handle diagonals only.

use crate::covariance::{Covariance, SymmetricMatrix};
use nysketch_core::error::{Error, Result};
use nysketch_core::numeric::linalg::{Matrix, dot, symmetric_eigen};
use nysketch_core::numeric::work::Work;
use nysketch_core::plan::frame::Frame;

/// The known covariance of every component of a mixture (example 2).
///
/// ```
/// use nysketch::{Covariance, FitParams, KnownCovariance, SymmetricMatrix, Task};
/// let matrix = SymmetricMatrix::from_rows(&[[1.0, 0.8], [0.8, 1.0]]).expect("symmetric");
/// let known = KnownCovariance::Covariance(Covariance::Full(matrix));
/// let params = FitParams::new(Task::Gmm, 3).known_covariance(Some(known));
/// # assert!(params.known_covariance.is_some());
/// ```
#[derive(Debug, Clone, PartialEq)]
pub enum KnownCovariance {
    /// The same variance in every column, in the plan's squared coordinates.
    Variance(f64),
    /// Variances or a matrix, in the table's units.
    Covariance(Covariance),
}

impl KnownCovariance {
    /// Creates a covariance from one row of variances or from the rows of a matrix.
    pub fn from_rows(rows: &[Vec<f64>]) -> Result<Self> {
        let covariance = match rows {
            [variances] => Covariance::Diagonal(variances.clone()),
            _ => SymmetricMatrix::from_rows(rows).map(Covariance::Full).map_err(|how| {
                let expected = "a row of variances or a symmetric matrix";
                Error::parameter("`known_covariance`", expected, format!("one that {how}"))
            })?,
        };
        Ok(KnownCovariance::Covariance(covariance))
    }

    /// Converts the covariance to the plan's coordinates; a matrix without correlations becomes a
    /// diagonal.
    pub(super) fn in_plan(&self, frame: &Frame) -> Result<Covariance> {
        let d = frame.dims();
        let covariance = match self {
            KnownCovariance::Variance(variance) => Covariance::Diagonal(vec![*variance; d]),
            KnownCovariance::Covariance(covariance) if covariance.dims() == d => {
                let inverse: Vec<f64> = frame.scale.iter().map(|s| 1.0 / s).collect();
                covariance.scaled(&inverse)
            }
            KnownCovariance::Covariance(other) => {
                let expected = format!("of {d} columns, as the sketch");
                let got = format!("one of {}", other.dims());
                return Err(Error::parameter("`known_covariance`", expected, got));
            }
        };
        if covariance.cholesky().is_none() {
            let got = "one that is not";
            return Err(Error::parameter("`known_covariance`", "positive definite", got));
        }
        Ok(match &covariance {
            Covariance::Full(matrix) if is_diagonal(matrix) => {
                Covariance::Diagonal(matrix.diagonal())
            }
            _ => covariance,
        })
    }
}

fn is_diagonal(matrix: &SymmetricMatrix) -> bool {
    (0..matrix.dims()).all(|i| (0..i).all(|j| matrix.get(i, j) == 0.0))
}

/// The eigenvectors U and eigenvalues Λ of a covariance.
#[derive(Debug, Clone)]
pub struct Axes {
    /// U.
    vectors: Matrix,
    /// Uᵀ.
    transposed: Matrix,
    /// Λ.
    pub variances: Vec<f64>,
}

impl Axes {
    /// Returns the axes of a positive definite matrix.
    pub fn of(matrix: &SymmetricMatrix) -> Result<Self> {
        let d = matrix.dims();
        Work::eigen(d, 1).check("turning to the axes of a known covariance")?;
        let eigen = symmetric_eigen(&Matrix::from_fn(d, d, |i, j| matrix.get(i, j)))?;
        // Rounding can make a small eigenvalue zero or negative.
        let min = f64::EPSILON * eigen.values[0];
        Ok(Axes {
            transposed: Matrix::from_fn(d, d, |i, j| eigen.vectors.get(j, i)),
            variances: eigen.values.iter().map(|v| v.max(min)).collect(),
            vectors: eigen.vectors,
        })
    }

    /// Returns `Uᵀ x`: converts a point from the plan's coordinates to those along the axes.
    pub fn turn(&self, x: &[f64]) -> Vec<f64> {
        self.transposed.times(x)
    }

    /// Returns `U y`: converts a point from coordinates along the axes to the plan's.
    pub fn back(&self, y: &[f64]) -> Vec<f64> {
        self.vectors.times(y)
    }

    /// Returns `uᵀ C u` for each axis u.
    pub fn variances_of(&self, covariance: &Matrix) -> Vec<f64> {
        let d = self.variances.len();
        let mut variances = Vec::with_capacity(d);
        for k in 0..d {
            let axis: Vec<f64> = (0..d).map(|j| self.vectors.get(j, k)).collect();
            variances.push(dot(&axis, &covariance.times(&axis)));
        }
        variances
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_and_back() {
        let matrix = SymmetricMatrix::from_fn(4, |i, j| 0.6f64.powi((i - j) as i32));
        let axes = Axes::of(&matrix).unwrap();
        let x = [1.0, -2.0, 0.5, 3.0];
        for (a, b) in axes.back(&axes.turn(&x)).iter().zip(&x) {
            assert!((a - b).abs() < 1e-14);
        }
        let dense = Matrix::from_fn(4, 4, |i, j| matrix.get(i, j));
        for (a, b) in axes.variances_of(&dense).iter().zip(&axes.variances) {
            assert!((a - b).abs() < 1e-14);
        }
    }
}
