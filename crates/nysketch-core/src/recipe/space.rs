//! Categories as coordinates: each level has its own axis with the coordinate √(w/2), so that
//! different levels have the squared distance w. For operations on few points only; for rows,
//! tables are faster.

use super::columns::Recipe;

impl Recipe {
    /// Number of coordinates of a point, including its levels.
    pub fn space_dims(&self, dims: usize) -> usize {
        dims + self.levels()
    }

    /// The coordinate of a level on its axis, for each category.
    pub fn level_sizes(&self) -> Vec<f64> {
        self.categories.iter().map(|c| (c.weight / 2.0).sqrt()).collect()
    }

    /// Shares of levels from their coordinates. The shares of each category sum to one.
    pub fn shares(&self, coordinates: &[f64]) -> Vec<f64> {
        let (mut rest, mut shares) = (coordinates, Vec::with_capacity(coordinates.len()));
        for category in &self.categories {
            let (levels, others) = rest.split_at(category.len());
            let total: f64 = levels.iter().sum();
            shares.extend(levels.iter().map(|x| (x / total).max(0.0)));
            rest = others;
        }
        shares
    }

    /// Appends the coordinates of levels to the numeric coordinates, point by point.
    pub fn in_space(&self, dims: usize, numbers: &[f32], codes: &[u32]) -> Vec<f32> {
        let (sizes, c) = (self.level_sizes(), self.categories.len());
        let points = numbers.len() / dims;
        let mut out = Vec::with_capacity(points * self.space_dims(dims));
        for (i, row) in numbers.chunks_exact(dims).enumerate() {
            out.extend_from_slice(row);
            for (k, category) in self.categories.iter().enumerate() {
                let start = out.len();
                out.resize(start + category.len(), 0.0);
                out[start + codes[i * c + k] as usize] = sizes[k] as f32;
            }
        }
        out
    }
}
