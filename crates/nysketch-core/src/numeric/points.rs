//! Sets of points in the coordinates of a frame, in single precision, stored by row or by column.
//! Storage by column turns an operation on all points and one other point into a loop over vectors.

use crate::numeric::simd::{Instructions, Work};

/// Points in `dims` dimensions, such as the landmarks of a plan in its coordinates.
///
/// ```
/// use nysketch_core::{PlanParams, Table, plan_for};
/// # fn main() -> nysketch_core::Result<()> {
/// let table = Table::unnamed(2, vec![0.0, 1.0, 2.0, 3.0])?;
/// let plan = plan_for(&table, PlanParams::default())?.plan;
/// let landmarks = plan.landmarks().unwrap();
/// assert_eq!((landmarks.len(), landmarks.dims(), landmarks.row(0).len()), (2, 2, 2));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Points {
    dims: usize,
    data: Vec<f32>,
}

impl Points {
    /// Points from row-major `data`, whose length must be a multiple of `dims`.
    #[doc(hidden)]
    pub fn new(dims: usize, data: Vec<f32>) -> Self {
        assert!(dims > 0 && data.len().is_multiple_of(dims), "points need whole rows");
        Points { dims, data }
    }

    /// Number of dimensions.
    pub fn dims(&self) -> usize {
        self.dims
    }

    /// Number of points.
    pub fn len(&self) -> usize {
        self.data.len() / self.dims
    }

    /// Whether there are no points.
    pub fn is_empty(&self) -> bool {
        self.data.is_empty()
    }

    /// The values, row-major.
    pub fn data(&self) -> &[f32] {
        &self.data
    }

    /// The coordinates of point `i`.
    pub fn row(&self, i: usize) -> &[f32] {
        &self.data[i * self.dims..(i + 1) * self.dims]
    }

    /// Iterates over the points.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = &[f32]> {
        self.data.chunks_exact(self.dims)
    }

    /// Returns the values without copying.
    pub(crate) fn into_data(self) -> Vec<f32> {
        self.data
    }

    /// The points with these indices, in this order.
    #[doc(hidden)]
    pub fn select(&self, indices: &[usize]) -> Points {
        let mut data = Vec::with_capacity(indices.len() * self.dims);
        for &i in indices {
            data.extend_from_slice(self.row(i));
        }
        Points { dims: self.dims, data }
    }

    /// `‖a − b‖²` between two points, in double precision, accumulated in four parallel sums.
    #[inline]
    #[doc(hidden)]
    pub fn squared_distance(a: &[f32], b: &[f32]) -> f64 {
        let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<4>(), b.as_chunks::<4>());
        let mut sums = [0.0; 4];
        for (a, b) in a.iter().zip(b) {
            for l in 0..4 {
                sums[l] += squared_difference(a[l], b[l]);
            }
        }
        let rest: f64 = a_rest.iter().zip(b_rest).map(|(x, y)| squared_difference(*x, *y)).sum();
        sums[0] + sums[1] + (sums[2] + sums[3]) + rest
    }
}

/// `(x − y)²`, in double precision.
#[inline(always)]
fn squared_difference(x: f32, y: f32) -> f64 {
    (f64::from(x) - f64::from(y)).powi(2)
}

/// Points by column, `[column][point]`, in double precision.
#[derive(Debug, Clone)]
pub struct PointColumns {
    len: usize,
    data: Vec<f64>,
}

impl PointColumns {
    /// Transposes points.
    pub fn new(points: &Points) -> Self {
        let rows: Vec<f64> = points.data.iter().map(|x| f64::from(*x)).collect();
        Self::of_rows(points.dims(), &rows)
    }

    /// Transposes row-major points.
    pub fn of_rows(dims: usize, rows: &[f64]) -> Self {
        let n = rows.len() / dims;
        let data = (0..n * dims).map(|at| rows[at % n * dims + at / n]).collect();
        PointColumns { len: n, data }
    }

    /// Number of points.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no points.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Iterates over the columns.
    pub fn columns(&self) -> impl Iterator<Item = &[f64]> {
        self.data.chunks_exact(self.len.max(1))
    }

    /// Adds `Σ_k f_k (x_ik − μ_k)²` to `out_i` for every point.
    pub fn add_squares(&self, mean: &[f64], factors: &[f64], out: &mut [f64]) {
        assert_eq!(out.len(), self.len, "one number per point");
        Instructions::best().run(AddSquares { columns: self, mean, factors, out });
    }

    /// Adds `Σ_k μ_k x_ik` to `out_i` for every point.
    pub fn add_products(&self, mean: &[f64], out: &mut [f64]) {
        assert_eq!(out.len(), self.len, "one number per point");
        Instructions::best().run(AddProducts { columns: self, mean, out });
    }

    /// Adds `f Σ_k |x_ik − μ_k|` to `out_i` for every point.
    pub fn add_absolutes(&self, mean: &[f64], factor: f64, out: &mut [f64]) {
        for (column, mean) in self.columns().zip(mean) {
            for (out, x) in out.iter_mut().zip(column) {
                *out += factor * (x - mean).abs();
            }
        }
    }

    /// `‖x_i − z‖²` for every point.
    pub fn squared_distances(&self, z: &[f32], out: &mut [f64]) {
        let z: Vec<f64> = z.iter().map(|z| f64::from(*z)).collect();
        out.fill(0.0);
        self.add_squares(&z, &vec![1.0; z.len()], out);
    }
}

struct AddSquares<'a> {
    columns: &'a PointColumns,
    mean: &'a [f64],
    factors: &'a [f64],
    out: &'a mut [f64],
}

impl Work for AddSquares<'_> {
    #[inline(always)]
    fn work(self) {
        for ((column, mean), factor) in self.columns.columns().zip(self.mean).zip(self.factors) {
            for (out, x) in self.out.iter_mut().zip(column) {
                let t = x - mean;
                *out += factor * t * t;
            }
        }
    }
}

struct AddProducts<'a> {
    columns: &'a PointColumns,
    mean: &'a [f64],
    out: &'a mut [f64],
}

impl Work for AddProducts<'_> {
    #[inline(always)]
    fn work(self) {
        for (column, mean) in self.columns.columns().zip(self.mean) {
            for (out, x) in self.out.iter_mut().zip(column) {
                *out += mean * x;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Distances computed by column equal distances computed by pairs, up to the order of
        /// summation.
        #[test]
        fn columns_give_the_distances_of_rows(
            d in 1usize..7,
            values in prop::collection::vec(-10.0..10.0f32, 1..200),
        ) {
            let n = values.len() / d;
            prop_assume!(n > 0);
            let points = Points::new(d, values[..n * d].to_vec());
            let mut distances = vec![f64::NAN; n];
            PointColumns::new(&points).squared_distances(points.row(n / 2), &mut distances);
            for (x, d2) in points.rows().zip(distances) {
                let expected = Points::squared_distance(x, points.row(n / 2));
                prop_assert!((d2 - expected).abs() <= 1e-14 * expected, "{d2} {expected}");
            }
        }
    }
}
