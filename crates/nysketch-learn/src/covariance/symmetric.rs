//! Symmetric matrices, stored as the lower triangle, row by row.

use serde::{Serialize, Serializer, ser::SerializeSeq};
use std::sync::Arc;

/// Tolerance of symmetry for entries computed with rounding errors, as a share of `√(a_ii a_jj)`.
const SYMMETRIC: f64 = 1e-8;

/// A symmetric matrix. Clones share their entries.
///
/// ```
/// use nysketch::SymmetricMatrix;
/// let matrix = SymmetricMatrix::from_rows(&[[2.0, 0.5], [0.5, 1.0]]).expect("symmetric");
/// assert_eq!((matrix.dims(), matrix.get(0, 1)), (2, 0.5));
/// assert!(SymmetricMatrix::from_rows(&[[2.0, 0.5], [-0.5, 1.0]]).is_err());
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct SymmetricMatrix {
    dims: usize,
    /// Row i starts at `i(i + 1)/2` and has i + 1 entries.
    lower: Arc<[f64]>,
}

/// Returns the index at which row i of a lower triangle starts.
pub(super) fn start(i: usize) -> usize {
    i * (i + 1) / 2
}

impl SymmetricMatrix {
    /// Creates the matrix with entries `f(row, column)`; `f` is called with column ≤ row.
    pub fn from_fn(dims: usize, mut f: impl FnMut(usize, usize) -> f64) -> Self {
        let mut lower = Vec::with_capacity(start(dims));
        for i in 0..dims {
            lower.extend((0..=i).map(|j| f(i, j)));
        }
        SymmetricMatrix { dims, lower: lower.into() }
    }

    /// Creates a matrix from its complete rows. If they are not a symmetric matrix, returns the
    /// reason as the end of a sentence that starts with "it".
    pub fn from_rows(rows: &[impl AsRef<[f64]>]) -> Result<Self, &'static str> {
        if rows.iter().any(|row| row.as_ref().len() != rows.len()) {
            return Err("does not have as many rows as columns");
        }
        if !rows.iter().flat_map(AsRef::as_ref).all(|x| x.is_finite()) {
            return Err("holds a number that is not finite");
        }
        for i in 0..rows.len() {
            for j in 0..i {
                let (row, other) = (rows[i].as_ref(), rows[j].as_ref());
                let size = row[i].abs().sqrt() * other[j].abs().sqrt();
                if (row[j] - other[i]).abs() > SYMMETRIC * size {
                    return Err("is not symmetric");
                }
            }
        }
        Ok(Self::from_fn(rows.len(), |i, j| rows[i].as_ref()[j]))
    }

    /// Returns the number of rows, which is also the number of columns.
    pub fn dims(&self) -> usize {
        self.dims
    }

    /// Returns the entry in row `i` and column `j`.
    pub fn get(&self, i: usize, j: usize) -> f64 {
        self.lower[start(i.max(j)) + i.min(j)]
    }

    /// Returns the diagonal.
    pub fn diagonal(&self) -> Vec<f64> {
        (0..self.dims).map(|i| self.get(i, i)).collect()
    }

    /// Iterates over the complete rows.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = Vec<f64>> + '_ {
        (0..self.dims).map(|i| (0..self.dims).map(|j| self.get(i, j)).collect())
    }

    /// Returns the lower triangle, row by row.
    pub fn lower(&self) -> &[f64] {
        &self.lower
    }
}

/// Serialises the complete rows.
impl Serialize for SymmetricMatrix {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut rows = serializer.serialize_seq(Some(self.dims))?;
        for row in self.rows() {
            rows.serialize_element(&row)?;
        }
        rows.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_make_the_matrix_they_came_from() {
        let matrix = SymmetricMatrix::from_fn(4, |i, j| (i * 10 + j) as f64 + 1.0);
        let rows: Vec<Vec<f64>> = matrix.rows().collect();
        assert_eq!(rows[1], [11.0, 12.0, 22.0, 32.0]);
        assert_eq!(SymmetricMatrix::from_rows(&rows).unwrap(), matrix);
        assert_eq!(serde_json::to_value(&matrix).unwrap(), serde_json::to_value(&rows).unwrap());
        // Rounding errors do not count as asymmetry.
        let mut other = rows.clone();
        other[0][3] += 1e-12;
        assert_eq!(SymmetricMatrix::from_rows(&other).unwrap(), matrix);
    }

    fn how(rows: &[Vec<f64>]) -> &'static str {
        SymmetricMatrix::from_rows(rows).unwrap_err()
    }

    #[test]
    fn errors_name_the_broken_rule() {
        assert!(how(&[vec![1.0, 0.0]]).contains("as many rows as columns"));
        assert!(how(&[vec![1.0, 0.5], vec![0.4, 1.0]]).contains("symmetric"));
        assert!(how(&[vec![f64::NAN]]).contains("finite"));
    }
}
