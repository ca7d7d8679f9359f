//! Categories as coordinates: a level is √(w/2) on an axis of its own, so that different levels are at the
//! squared distance w. Only for work on few points; rows are measured by tables.

use super::columns::Recipe;

impl Recipe {
    /// Number of coordinates of a point with its levels.
    pub fn space_dims(&self, dims: usize) -> usize {
        dims + self.levels()
    }

    /// What a level is on its axis, for each category.
    pub fn level_sizes(&self) -> Vec<f64> {
        self.categories.iter().map(|c| (c.weight / 2.0).sqrt()).collect()
    }

    /// Shares of levels, those of each category adding up to one, from their coordinates.
    pub fn shares(&self, coordinates: &[f64]) -> Vec<f64> {
        let (mut rest, mut shares) = (coordinates, Vec::with_capacity(coordinates.len()));
        for category in &self.categories {
            let (own, others) = rest.split_at(category.len());
            let total: f64 = own.iter().sum();
            shares.extend(own.iter().map(|x| (x / total).max(0.0)));
            rest = others;
        }
        shares
    }

    /// Appends the coordinates of levels to those of numbers, point by point.
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
