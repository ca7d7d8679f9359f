//! Dense linear algebra: the only file that uses the linear-algebra crate.
//!
//! Everything is sequential, so that no result depends on the number of threads.

use crate::error::{Error, Result};
use faer::linalg::matmul::matmul;
use faer::linalg::solvers::{Llt, SelfAdjointEigen, Solve};
use faer::linalg::triangular_solve::solve_lower_triangular_in_place;
use faer::{Accum, ColMut, ColRef, Mat, MatMut, MatRef, Par, Side};

/// Returns `aᵀb`, computed with eight independent partial sums, so that the processor can work on
/// them in parallel, and with the instruction set of the caller.
#[inline(always)]
pub fn dot(a: &[f64], b: &[f64]) -> f64 {
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<8>(), b.as_chunks::<8>());
    let mut sums = [0.0; 8];
    for (a, b) in a.iter().zip(b) {
        for l in 0..8 {
            sums[l] += a[l] * b[l];
        }
    }
    let rest: f64 = a_rest.iter().zip(b_rest).map(|(x, y)| x * y).sum();
    sums.iter().sum::<f64>() + rest
}

/// Computes `C = A B`, all column-major; B has `inner` rows.
pub fn product(c: &mut [f64], a: &[f64], b: &[f64], inner: usize) {
    let (rows, columns) = (a.len() / inner, b.len() / inner);
    let a = MatRef::from_column_major_slice(a, rows, inner);
    let b = MatRef::from_column_major_slice(b, inner, columns);
    let c = MatMut::from_column_major_slice_mut(c, rows, columns);
    matmul(c, Accum::Replace, a, b, 1.0, Par::Seq);
}

/// Adds `A Aᵀ` to C, both column-major with `rows` rows.
pub fn add_gram(c: &mut [f64], a: &[f64], rows: usize) {
    let a = MatRef::from_column_major_slice(a, rows, a.len() / rows);
    let c = MatMut::from_column_major_slice_mut(c, rows, rows);
    matmul(c, Accum::Add, a, a.transpose(), 1.0, Par::Seq);
}

/// A dense matrix, column-major.
#[derive(Debug, Clone)]
pub struct Matrix(Mat<f64>);

impl Matrix {
    /// Creates the matrix with entries `f(row, column)`.
    pub fn from_fn(rows: usize, columns: usize, f: impl FnMut(usize, usize) -> f64) -> Self {
        Matrix(Mat::from_fn(rows, columns, f))
    }

    /// Returns the number of rows.
    pub fn nrows(&self) -> usize {
        self.0.nrows()
    }

    /// Returns the number of columns.
    pub fn ncols(&self) -> usize {
        self.0.ncols()
    }

    /// Returns the entry in row `i` and column `j`.
    pub fn get(&self, i: usize, j: usize) -> f64 {
        self.0[(i, j)]
    }

    /// Returns `self · x`.
    pub fn times(&self, x: &[f64]) -> Vec<f64> {
        assert_eq!(x.len(), self.ncols(), "matrix and vector fit");
        let mut y = vec![0.0; self.nrows()];
        let (out, x) = (ColMut::from_slice_mut(&mut y), ColRef::from_slice(x));
        matmul(out.as_mat_mut(), Accum::Replace, self.0.as_ref(), x.as_mat(), 1.0, Par::Seq);
        y
    }

    /// Returns `selfᵀ · self`.
    pub fn gram(&self) -> Matrix {
        let mut y = Mat::zeros(self.ncols(), self.ncols());
        let (left, right) = (self.0.transpose(), self.0.as_ref());
        matmul(y.as_mut(), Accum::Replace, left, right, 1.0, Par::Seq);
        Matrix(y)
    }

    /// Returns `self · x` for each of several vectors.
    pub fn times_each(&self, vectors: &[Vec<f64>]) -> Vec<Vec<f64>> {
        let x = Mat::from_fn(self.ncols(), vectors.len(), |i, j| vectors[j][i]);
        let mut y = Mat::zeros(self.nrows(), vectors.len());
        matmul(y.as_mut(), Accum::Replace, self.0.as_ref(), x.as_ref(), 1.0, Par::Seq);
        (0..vectors.len()).map(|j| y.col(j).iter().copied().collect()).collect()
    }
}

/// A matrix that grows column by column.
#[derive(Debug, Clone)]
pub struct Columns {
    rows: usize,
    data: Vec<f64>,
}

impl Columns {
    /// Creates a matrix without columns, with memory reserved for `columns`.
    pub fn with_capacity(rows: usize, columns: usize) -> Self {
        Columns { rows, data: Vec::with_capacity(rows * columns) }
    }

    /// Returns the number of columns.
    pub fn len(&self) -> usize {
        self.data.len() / self.rows.max(1)
    }

    /// Returns whether there are no columns.
    pub fn is_empty(&self) -> bool {
        self.data.is_empty()
    }

    /// Returns column `j`.
    pub fn column(&self, j: usize) -> &[f64] {
        &self.data[j * self.rows..(j + 1) * self.rows]
    }

    /// Returns column `j` as a mutable slice.
    pub fn column_mut(&mut self, j: usize) -> &mut [f64] {
        &mut self.data[j * self.rows..(j + 1) * self.rows]
    }

    /// Adds a column; it must have as many numbers as there are rows.
    pub fn push(&mut self, column: impl IntoIterator<Item = f64>) {
        self.data.extend(column);
        debug_assert!(self.data.len().is_multiple_of(self.rows.max(1)));
    }

    /// Adds the columns of another matrix.
    pub fn append(&mut self, other: Columns) {
        assert_eq!(self.rows, other.rows, "columns of one length");
        self.data.extend(other.data);
    }

    /// Returns `F[rows]ᵀ`: some rows, each as a column.
    pub fn select_rows(&self, rows: &[usize]) -> Columns {
        let mut data = Vec::with_capacity(rows.len() * self.len());
        for i in rows {
            data.extend((0..self.len()).map(|j| self.data[j * self.rows + i]));
        }
        Columns { rows: self.len(), data }
    }

    fn as_ref(&self) -> MatRef<'_, f64> {
        MatRef::from_column_major_slice(&self.data, self.rows, self.len())
    }

    fn as_mut(&mut self) -> MatMut<'_, f64> {
        let count = self.len();
        MatMut::from_column_major_slice_mut(&mut self.data, self.rows, count)
    }

    /// Computes `self − A B` in place.
    pub fn subtract_product(&mut self, a: &Columns, b: &Columns) {
        if !a.is_empty() && !self.is_empty() {
            matmul(self.as_mut(), Accum::Add, a.as_ref(), b.as_ref(), -1.0, Par::Seq);
        }
    }

    /// Computes `self − Aᵀ B` in place.
    pub fn subtract_transposed_product(&mut self, a: &Columns, b: &Columns) {
        if !a.is_empty() && a.rows > 0 {
            matmul(self.as_mut(), Accum::Add, a.as_ref().transpose(), b.as_ref(), -1.0, Par::Seq);
        }
    }
}

/// Eigenvalues in decreasing order, and the matrix whose columns are the eigenvectors.
#[derive(Debug, Clone)]
pub struct SymmetricEigen {
    /// λ₁ ≥ λ₂ ≥ …
    pub values: Vec<f64>,
    /// `n × n`, in the order of the values.
    pub vectors: Matrix,
}

/// Shifts of the diagonal, as multiples of the largest row sum, that are tried in turn if the
/// eigendecomposition does not converge.
const SHIFTS: [f64; 3] = [1.0, -1.0, 0.1];

/// Returns the decomposition `A = V Λ Vᵀ` of a symmetric matrix.
pub fn symmetric_eigen(a: &Matrix) -> Result<SymmetricEigen> {
    let n = a.nrows();
    let eigen = decompose(a).map(|eigen| (eigen, 0.0));
    let Some((eigen, shift)) = eigen.or_else(|| decompose_shifted(a)) else {
        return Err(Error::NoConvergence { what: "the eigendecomposition", size: n });
    };
    let ascending = eigen.S().column_vector();
    let values = (0..n).rev().map(|i| ascending[i] - shift).collect();
    let vectors = Matrix::from_fn(n, n, |i, j| eigen.U()[(i, n - 1 - j)]);
    Ok(SymmetricEigen { values, vectors })
}

/// Runs the eigendecomposition; `None` if it does not converge.
fn decompose(a: &Matrix) -> Option<SelfAdjointEigen<f64>> {
    SelfAdjointEigen::new(a.0.as_ref(), Side::Lower).ok()
}

/// Decomposes A + sI for the first of [`SHIFTS`] that converges, and returns s. The eigenvectors
/// are those of A. For kernel matrices of points spread over a box, the iteration can stall on A
/// and yet converge on the shifted matrix.
fn decompose_shifted(a: &Matrix) -> Option<(SelfAdjointEigen<f64>, f64)> {
    let n = a.nrows();
    let mut largest = 0.0;
    for i in 0..n {
        largest = f64::max(largest, (0..n).map(|j| a.get(i, j).abs()).sum());
    }
    for shift in SHIFTS.map(|part| part * largest) {
        let shifted = Matrix::from_fn(n, n, |i, j| a.get(i, j) + if i == j { shift } else { 0.0 });
        if let Some(eigen) = decompose(&shifted) {
            return Some((eigen, shift));
        }
    }
    None
}

/// The factorisation `A = L Lᵀ` of a symmetric positive definite matrix.
#[derive(Debug, Clone)]
pub struct Cholesky(Llt<f64>);

impl Cholesky {
    /// Factorises `a`; its upper half is not read.
    pub fn new(a: &Matrix) -> Result<Self> {
        Llt::new(a.0.as_ref(), Side::Lower).map(Cholesky).map_err(|_| Error::NoConvergence {
            what: "the Cholesky factorisation",
            size: a.nrows(),
        })
    }

    /// Returns `b_jᵀ A⁻¹ b_j = ‖L⁻¹ b_j‖²` for each column of `b`.
    pub fn inverse_quadratic_forms(&self, mut b: Columns) -> Vec<f64> {
        solve_lower_triangular_in_place(self.0.L(), b.as_mut(), Par::Seq);
        (0..b.len()).map(|j| dot(b.column(j), b.column(j))).collect()
    }

    /// Returns `A⁻¹ b`.
    pub fn solve(&self, b: &[f64]) -> Vec<f64> {
        let mut x = Mat::from_fn(b.len(), 1, |i, _| b[i]);
        self.0.solve_in_place(x.as_mut());
        (0..b.len()).map(|i| x[(i, 0)]).collect()
    }

    /// Computes `B L⁻ᵀ` in place.
    pub fn divide(&self, b: &mut Columns) {
        solve_lower_triangular_in_place(self.0.L(), b.as_mut().transpose_mut(), Par::Seq);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Matrix {
        Matrix::from_fn(
            4,
            4,
            |i, j| {
                if i == j { 3.0 + i as f64 } else { 0.5 / (1.0 + (i + j) as f64) }
            },
        )
    }

    #[test]
    fn eigenvectors_reproduce_the_matrix() {
        let a = example();
        let e = symmetric_eigen(&a).unwrap();
        assert!(e.values.windows(2).all(|w| w[0] >= w[1]));
        for i in 0..4 {
            for j in 0..4 {
                let sum: f64 =
                    (0..4).map(|l| e.values[l] * e.vectors.get(i, l) * e.vectors.get(j, l)).sum();
                assert!((sum - a.get(i, j)).abs() < 1e-13);
            }
        }
    }

    #[test]
    fn quadratic_forms_invert_the_matrix() {
        let a = example();
        let x = [1.0, 2.0, 3.0, 4.0];
        let b = a.times(&x);
        let expected: f64 = b.iter().zip(&x).map(|(p, q)| p * q).sum();
        let mut columns = Columns::with_capacity(4, 1);
        columns.push(b);
        let factor = Cholesky::new(&a).unwrap();
        let solved = factor.solve(columns.column(0));
        assert!(solved.iter().zip(&x).all(|(s, x)| (s - x).abs() < 1e-13 * x.abs().max(1.0)));
        let got = factor.inverse_quadratic_forms(columns);
        assert!((got[0] - expected).abs() < 1e-12 * expected);
    }
}
