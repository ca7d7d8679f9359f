//! A set of points in the coordinates of a frame, row-major, single precision.

/// Points in `dims` dimensions.
#[derive(Debug, Clone, PartialEq)]
pub struct Points {
    dims: usize,
    data: Vec<f32>,
}

impl Points {
    /// Row-major `data`; its length is a multiple of `dims`.
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

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.data.is_empty()
    }

    /// The values, row-major.
    pub fn data(&self) -> &[f32] {
        &self.data
    }

    /// One point.
    pub fn row(&self, i: usize) -> &[f32] {
        &self.data[i * self.dims..(i + 1) * self.dims]
    }

    /// All points.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = &[f32]> {
        self.data.chunks_exact(self.dims)
    }

    /// The points with these indices, in this order.
    pub fn select(&self, indices: &[usize]) -> Points {
        let mut data = Vec::with_capacity(indices.len() * self.dims);
        for &i in indices {
            data.extend_from_slice(self.row(i));
        }
        Points { dims: self.dims, data }
    }

    /// `‖a − b‖²` between two points, in double precision, as four sums side by side.
    #[inline]
    pub fn squared_distance(a: &[f32], b: &[f32]) -> f64 {
        let square = |x: &f32, y: &f32| (f64::from(*x) - f64::from(*y)).powi(2);
        let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<4>(), b.as_chunks::<4>());
        let mut sums = [0.0; 4];
        for (a, b) in a.iter().zip(b) {
            for l in 0..4 {
                sums[l] += square(&a[l], &b[l]);
            }
        }
        let rest: f64 = a_rest.iter().zip(b_rest).map(|(x, y)| square(x, y)).sum();
        sums[0] + sums[1] + (sums[2] + sums[3]) + rest
    }
}
