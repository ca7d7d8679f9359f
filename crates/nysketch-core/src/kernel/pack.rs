//! Points and rows laid out for a pass in tiles: [`ROWS`] rows × [`VECTORS`] vectors of points.

use crate::numeric::points::Points;

/// Rows of a tile.
pub const ROWS: usize = 6;
/// Vectors of points in a tile.
pub const VECTORS: usize = 2;
/// Most rows in a block, whole tiles: values up to 1 in units of 2⁻²³ add up to less than 2³¹.
pub const MAX_BLOCK: usize = 42 * ROWS;

/// A coordinate of a row, once for each vector of points it is worked on with. With 512 bits, a copy of
/// its own lets an instruction read it from memory and spread it over the lanes on the way; a copy that
/// several share is spread by an instruction of its own, which costs as much as a subtraction.
pub type Value = [f32; VECTORS];

/// Which copy of a coordinate the instructions for this vector of a tile use.
#[inline(always)]
pub fn copy_for(vector: usize, lanes: usize) -> usize {
    if lanes == 16 { vector } else { 0 }
}

/// `[panel][column][lane]`: panels of [`VECTORS`] vectors and perhaps one of a single vector, the last
/// filled up with points whose coordinates are all `filler`.
pub fn pack_points(points: &Points, lanes: usize, filler: f32) -> Vec<f32> {
    let d = points.dims();
    let vectors = points.len().div_ceil(lanes);
    let mut packed = vec![filler; vectors * lanes * d];
    let full = vectors / VECTORS * VECTORS;
    for (j, z) in points.rows().enumerate() {
        let (vector, lane) = (j / lanes, j % lanes);
        // Vectors of the panel, and which of them it is.
        let (width, at) = if vector < full { (VECTORS, vector % VECTORS) } else { (1, 0) };
        let start = (vector - at) * d;
        for (k, &value) in z.iter().enumerate() {
            packed[(start + k * width + at) * lanes + lane] = value;
        }
    }
    packed
}

/// The rows of a block: whole tiles, and single rows that are left over.
#[derive(Debug, Clone)]
pub struct PackedRows {
    dims: usize,
    tiles: Vec<[Value; ROWS]>,
    singles: Vec<[Value; 1]>,
}

impl PackedRows {
    /// No rows yet.
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

    /// Rows that are left over.
    pub fn singles(&self) -> impl Iterator<Item = &[[Value; 1]]> {
        self.singles.chunks_exact(self.dims)
    }
}
