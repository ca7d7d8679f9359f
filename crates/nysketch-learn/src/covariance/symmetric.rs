//! Symmetric matrices: the lower triangle, row by row.

use serde::{Serialize, Serializer, ser::SerializeSeq};
use std::sync::Arc;

/// Entries that should be equal may differ by this much of `√(a_ii a_jj)`: what rounding leaves.
const SYMMETRIC: f64 = 1e-8;

/// A symmetric matrix. Clones share their numbers.
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
    /// Row i is at `i(i + 1)/2` and has i + 1 numbers.
    lower: Arc<[f64]>,
}

/// Where row i of a lower triangle starts.
pub(super) fn start(i: usize) -> usize {
    i * (i + 1) / 2
}

impl SymmetricMatrix {
    /// The matrix with entries `f(row, column)`, asked for where column ≤ row.
    pub fn from_fn(dims: usize, mut f: impl FnMut(usize, usize) -> f64) -> Self {
        let mut lower = Vec::with_capacity(start(dims));
        for i in 0..dims {
            lower.extend((0..=i).map(|j| f(i, j)));
        }
        SymmetricMatrix { dims, lower: lower.into() }
    }

    /// From as many rows as each has numbers; what is wrong with them, to be said after "that", where they
    /// are not symmetric.
    pub fn from_rows(rows: &[impl AsRef<[f64]>]) -> Result<Self, &'static str> {
        let at = |i: usize, j: usize| rows[i].as_ref()[j];
        if rows.iter().any(|row| row.as_ref().len() != rows.len()) {
            return Err("does not have as many rows as columns");
        }
        if !rows.iter().flat_map(AsRef::as_ref).all(|x| x.is_finite()) {
            return Err("holds a number that is not finite");
        }
        for i in 0..rows.len() {
            for j in 0..i {
                let size = at(i, i).abs().sqrt() * at(j, j).abs().sqrt();
                if (at(i, j) - at(j, i)).abs() > SYMMETRIC * size {
                    return Err("is not symmetric");
                }
            }
        }
        Ok(Self::from_fn(rows.len(), at))
    }

    /// Number of rows and of columns.
    pub fn dims(&self) -> usize {
        self.dims
    }

    /// One entry.
    pub fn get(&self, i: usize, j: usize) -> f64 {
        self.lower[start(i.max(j)) + i.min(j)]
    }

    /// The diagonal.
    pub fn diagonal(&self) -> Vec<f64> {
        (0..self.dims).map(|i| self.get(i, i)).collect()
    }

    /// Its rows, whole.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = Vec<f64>> + '_ {
        (0..self.dims).map(|i| (0..self.dims).map(|j| self.get(i, j)).collect())
    }

    /// The lower triangle, row by row.
    pub fn lower(&self) -> &[f64] {
        &self.lower
    }
}

/// Whole rows.
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
        // Rounding is no asymmetry.
        let mut other = rows.clone();
        other[0][3] += 1e-12;
        assert_eq!(SymmetricMatrix::from_rows(&other).unwrap(), matrix);
    }

    #[test]
    fn what_is_wrong_is_said() {
        let how = |rows: &[Vec<f64>]| SymmetricMatrix::from_rows(rows).unwrap_err();
        assert!(how(&[vec![1.0, 0.0]]).contains("as many rows as columns"));
        assert!(how(&[vec![1.0, 0.5], vec![0.4, 1.0]]).contains("symmetric"));
        assert!(how(&[vec![f64::NAN]]).contains("finite"));
    }
}
