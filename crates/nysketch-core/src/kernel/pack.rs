//! The layout of points and rows for a pass in tiles: [`ROWS`] rows × [`VECTORS`] vectors of
//! points.

use crate::numeric::points::Points;

/// Number of rows in a tile.
pub const ROWS: usize = 6;
/// Number of vectors of points in a tile.
pub const VECTORS: usize = 2;
/// Largest number of rows in a block, in whole tiles: that many values of up to 1, in units of
/// 2⁻²³, sum to less than 2³¹.
pub const MAX_BLOCK: usize = 42 * ROWS;

/// A coordinate of a row, copied for each vector of points in a tile. With 512-bit vectors, an
/// instruction can read a copy of its own from memory and broadcast it to all lanes. A copy shared
/// by several instructions needs a separate broadcast, which costs as much as a subtraction.
pub type Value = [f32; VECTORS];

/// Index of the copy of a coordinate used for this vector of a tile.
#[inline(always)]
pub fn copy_for(vector: usize, lanes: usize) -> usize {
    if lanes == 16 { vector } else { 0 }
}

/// `[panel][column][lane]`: panels of [`VECTORS`] vectors, and possibly one of a single vector. The
/// last one is padded with points whose coordinates are all `filler`.
pub fn pack_points(points: &Points, lanes: usize, filler: f32) -> Vec<f32> {
    let d = points.dims();
    let vectors = points.len().div_ceil(lanes);
    let mut packed = vec![filler; vectors * lanes * d];
    let full = vectors / VECTORS * VECTORS;
    for (j, z) in points.rows().enumerate() {
        let (vector, lane) = (j / lanes, j % lanes);
        // The number of vectors of the panel, and the index of this vector in it.
        let (width, at) = if vector < full { (VECTORS, vector % VECTORS) } else { (1, 0) };
        let start = (vector - at) * d;
        for (k, &value) in z.iter().enumerate() {
            packed[(start + k * width + at) * lanes + lane] = value;
        }
    }
    packed
}

/// The rows of a block: whole tiles, and the remaining single rows.
#[derive(Debug, Clone)]
pub struct PackedRows {
    dims: usize,
    tiles: Vec<[Value; ROWS]>,
    singles: Vec<[Value; 1]>,
}

impl PackedRows {
    /// A layout without rows.
    pub fn new(dims: usize) -> Self {
        PackedRows { dims, tiles: Vec::new(), singles: Vec::new() }
    }

    /// Lays out the rows of a block (`rows × dims`, row-major).
    #[inline(always)]
    pub fn pack(&mut self, rows: &[f32]) {
        let d = self.dims;
        let (whole, rest) = rows.split_at(rows.len() / (ROWS * d) * (ROWS * d));
        self.tiles.resize(whole.len() / ROWS, Default::default());
        self.singles.resize(rest.len(), Default::default());
        for (tile, rows) in self.tiles.chunks_exact_mut(d).zip(whole.chunks_exact(ROWS * d)) {
            let rows: [&[f32]; ROWS] = std::array::from_fn(|r| &rows[r * d..(r + 1) * d]);
            for (k, column) in tile.iter_mut().enumerate() {
                *column = std::array::from_fn(|r| [rows[r][k]; VECTORS]);
            }
        }
        for (value, &x) in self.singles.iter_mut().zip(rest) {
            *value = [[x; VECTORS]];
        }
    }

    /// Tiles of [`ROWS`] rows, each `[column][row]`.
    pub fn tiles(&self) -> impl Iterator<Item = &[[Value; ROWS]]> {
        self.tiles.chunks_exact(self.dims)
    }

    /// The remaining single rows.
    pub fn singles(&self) -> impl Iterator<Item = &[[Value; 1]]> {
        self.singles.chunks_exact(self.dims)
    }
}
