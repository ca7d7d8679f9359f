//! Covariances of the components of a mixture.

mod factor;
mod symmetric;

pub use factor::Factor;
pub(crate) use factor::Whitening;
pub use symmetric::SymmetricMatrix;

use nysketch_core::error::names::{Choice, Named, name_of};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// The kind of covariance of the components of a mixture.
///
/// ```
/// use nysketch::{CovarianceKind, Named};
/// assert_eq!(CovarianceKind::from_name("tied")?, CovarianceKind::Tied);
/// // One weight and two means, and a variance for each component.
/// assert_eq!(CovarianceKind::Spherical.parameters(2, 1), 1 + 2 + 2);
/// # Ok::<(), nysketch::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CovarianceKind {
    /// One matrix for each component.
    Full,
    /// One matrix for all components.
    Tied,
    /// One variance for each component and column.
    Diag,
    /// One variance for each component, the same for all columns in the coordinates of the fit.
    Spherical,
}

impl Named for CovarianceKind {
    const PARAMETER: &'static str = "`covariance`";
    const TABLE: &'static [Choice<Self>] = &[
        Choice::new(CovarianceKind::Full, "full", "A matrix for each component"),
        Choice::new(CovarianceKind::Tied, "tied", "One matrix for all components"),
        Choice::new(CovarianceKind::Diag, "diag", "A variance for each component and column"),
        Choice::new(CovarianceKind::Spherical, "spherical", "A variance for each component"),
    ];
}

impl CovarianceKind {
    /// Returns the name of the kind.
    pub fn name(self) -> &'static str {
        name_of(self)
    }

    /// Returns whether the covariances are matrices instead of diagonals.
    pub fn is_matrix(self) -> bool {
        matches!(self, CovarianceKind::Full | CovarianceKind::Tied)
    }

    /// Returns the rule that the covariances of a mixture break, if any. Covariances are in the
    /// table's units; `scale` are the divisors of the columns in the coordinates of the fit.
    pub(crate) fn broken(self, covariances: &[Covariance], scale: &[f64]) -> Option<&'static str> {
        let tied = self == CovarianceKind::Tied;
        let different = if tied { &covariances[..covariances.len().min(1)] } else { covariances };
        if !covariances.iter().all(|c| matches!(c, Covariance::Full(_)) == self.is_matrix()) {
            Some("has covariances of another kind than it says")
        } else if tied && covariances.iter().any(|c| *c != covariances[0]) {
            Some("has components with different covariances, but says that they are tied")
        } else if !different.iter().all(|c| c.cholesky().is_some()) {
            Some(if self.is_matrix() {
                "has a covariance that is not positive definite"
            } else {
                "has a variance that is not positive"
            })
        } else if self == CovarianceKind::Spherical
            && !covariances.iter().all(|c| is_spherical(c, scale))
        {
            Some("has variances that differ between columns, but says that they are spherical")
        } else {
            None
        }
    }

    /// Returns the number of free parameters of `k` components in `d` columns: weights, means and
    /// covariances.
    pub fn parameters(self, k: usize, d: usize) -> usize {
        let covariances = match self {
            CovarianceKind::Full => k * d * (d + 1) / 2,
            CovarianceKind::Tied => d * (d + 1) / 2,
            CovarianceKind::Diag => k * d,
            CovarianceKind::Spherical => k,
        };
        covariances + k * d + k - 1
    }
}

/// Returns whether a covariance has the same variance in all columns after division by `scale`.
fn is_spherical(covariance: &Covariance, scale: &[f64]) -> bool {
    let variances: Vec<f64> =
        scale.iter().enumerate().map(|(j, s)| covariance.get(j, j) / s / s).collect();
    variances.iter().all(|v| (v - variances[0]).abs() <= 1e-6 * variances[0].abs())
}

impl std::fmt::Display for CovarianceKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// The covariance of one component.
///
/// ```
/// use nysketch::{Covariance, SymmetricMatrix};
/// let matrix = SymmetricMatrix::from_fn(2, |i, j| if i == j { 2.0 } else { 1.0 });
/// let covariance = Covariance::Full(matrix);
/// assert_eq!(*covariance.variances(), [2.0, 2.0]);
/// let factor = covariance.cholesky().expect("positive definite");
/// assert!((factor.log_det() - 3f64.ln()).abs() < 1e-15);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub enum Covariance {
    /// Variances of uncorrelated columns.
    Diagonal(Vec<f64>),
    /// A full matrix.
    Full(SymmetricMatrix),
}

impl Covariance {
    /// Returns the covariance of some of the columns.
    pub(crate) fn select(&self, columns: &[usize]) -> Self {
        match self {
            Covariance::Diagonal(variance) => {
                Covariance::Diagonal(columns.iter().map(|j| variance[*j]).collect())
            }
            Covariance::Full(matrix) => {
                Covariance::Full(SymmetricMatrix::from_fn(columns.len(), |i, j| {
                    matrix.get(columns[i], columns[j])
                }))
            }
        }
    }

    /// Returns the number of columns.
    pub fn dims(&self) -> usize {
        match self {
            Covariance::Diagonal(variances) => variances.len(),
            Covariance::Full(matrix) => matrix.dims(),
        }
    }

    /// Returns Γ_ij.
    pub fn get(&self, i: usize, j: usize) -> f64 {
        match self {
            Covariance::Diagonal(variances) if i == j => variances[i],
            Covariance::Diagonal(_) => 0.0,
            Covariance::Full(matrix) => matrix.get(i, j),
        }
    }

    /// Returns the stored numbers: the variances or the lower triangle.
    pub(crate) fn numbers(&self) -> &[f64] {
        match self {
            Covariance::Diagonal(variances) => variances,
            Covariance::Full(matrix) => matrix.lower(),
        }
    }

    /// Returns the variance of each column.
    pub fn variances(&self) -> Cow<'_, [f64]> {
        match self {
            Covariance::Diagonal(variances) => Cow::Borrowed(variances),
            Covariance::Full(matrix) => Cow::Owned(matrix.diagonal()),
        }
    }

    /// Converts the covariance to a full matrix.
    #[must_use]
    pub(crate) fn to_matrix(&self) -> Self {
        Covariance::Full(SymmetricMatrix::from_fn(self.dims(), |i, j| self.get(i, j)))
    }

    /// Returns `Γ_ij s_i s_j`, the covariance of columns multiplied by `s`.
    #[must_use]
    pub fn scaled(&self, s: &[f64]) -> Self {
        match self {
            Covariance::Diagonal(variances) => {
                Covariance::Diagonal(variances.iter().zip(s).map(|(v, s)| v * s * s).collect())
            }
            Covariance::Full(matrix) => {
                Covariance::Full(SymmetricMatrix::from_fn(matrix.dims(), |i, j| {
                    matrix.get(i, j) * s[i] * s[j]
                }))
            }
        }
    }

    /// Returns the whitening factor; `None` if the covariance is not positive definite, up to
    /// rounding.
    pub fn cholesky(&self) -> Option<Factor> {
        match self {
            Covariance::Diagonal(variances) => Factor::of_diagonal(variances),
            Covariance::Full(matrix) => Factor::of_matrix(matrix),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts from scikit-learn's `GaussianMixture._n_parameters` for 3 components in 4 columns.
    #[test]
    fn parameters_are_counted_as_elsewhere() {
        let counts = CovarianceKind::choices().map(|c| c.value.parameters(3, 4));
        assert_eq!(counts.collect::<Vec<_>>(), [44, 24, 26, 17]);
    }

    #[test]
    fn units_change_and_come_back() {
        let matrix = SymmetricMatrix::from_fn(3, |i, j| 1.0 / (1 + i + j) as f64);
        let (scale, back) = ([2.0, 0.25, 8.0], [0.5, 4.0, 0.125]);
        for covariance in
            [Covariance::Diagonal(matrix.diagonal()), Covariance::Full(matrix.clone())]
        {
            let scaled = covariance.scaled(&scale);
            assert_eq!(scaled.get(2, 2), covariance.get(2, 2) * 64.0);
            assert_eq!(scaled.get(0, 2), covariance.get(0, 2) * 16.0);
            assert_eq!(scaled.scaled(&back), covariance);
        }
    }
}
