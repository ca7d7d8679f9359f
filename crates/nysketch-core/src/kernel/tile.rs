//! The vectorised pass over a block of rows: distances, kernel sums and nearest landmarks.
//!
//! A tile is 6 rows × 2 vectors of landmarks held in registers (1 vector for the last landmarks if
//! that is enough), laid out as in [`pack`](super::pack). Each tile is combined with all panels
//! that fit in the cache before the next tile, so that the nearest landmark so far also stays in
//! registers. One generic source compiles to AVX2, AVX-512, NEON and scalar code. Each pair of row
//! and landmark is processed by the operations of [`scalar`](super::scalar) in the same order, so
//! the bits are the same.

use super::ladder::{Ladder, Step};
use super::levels::LevelTables;
use super::pack::{MAX_BLOCK, PackedRows, ROWS, VECTORS, pack_points};
use super::row::Rows;
use super::scalar::ONE_BITS;
use super::table::{Kernel, Metric};
use super::tile_pass::{
    Absolute, Extras, Incomplete, Kept, Mixed, Plain, Squared, Term, Tile, TilePass,
};
use crate::numeric::points::Points;
use crate::numeric::simd::Instructions;
use pulp::{Simd, WithSimd};

/// Bytes of packed landmarks that are combined with a tile before the next tile.
const PANEL_BYTES: usize = 1 << 15;

/// Landmarks laid out for the pass, with its scratch memory.
#[derive(Debug, Clone)]
pub struct Tiles {
    instructions: Instructions,
    dims: usize,
    landmarks: usize,
    metric: Metric,
    /// `[panel][column][lane]`: panels of [`VECTORS`] vectors, and possibly one of a single vector,
    /// padded with infinitely distant points.
    packed: Vec<f32>,
    /// Contributions of levels, `[level][landmark, padded]`, and the index of the first level of
    /// each category.
    tables: Vec<f32>,
    starts: Vec<usize>,
    steps: Vec<Step>,
    /// `[rung][landmark, padded]`: sums of the last block.
    sums: Vec<u32>,
    /// `[row][lane]`: the smallest distance so far and the index of its vector, a whole number.
    min_distance: Vec<f32>,
    min_at: Vec<f32>,
    /// The second smallest distance, if it was ever requested.
    second: Vec<f32>,
    packed_rows: PackedRows,
    packed_present: PackedRows,
}

/// The nearest landmark of each row of a block.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct Nearest {
    /// Index of the landmark.
    pub index: Vec<u32>,
    /// Distance of the landmark, which is squared for the Gaussian kernel.
    pub distance: Vec<f32>,
    /// The smallest distance of the other landmarks, infinite if there are none. Only
    /// [`Tiles::nearest_two`] computes it.
    pub second: Vec<f32>,
}

impl Nearest {
    /// Removes all rows.
    pub fn clear(&mut self) {
        self.index.clear();
        self.distance.clear();
        self.second.clear();
    }
}

impl Tiles {
    /// Packs the landmarks. Without a ladder, only nearest landmarks are computed.
    pub fn new(
        landmarks: &Points,
        kernel: Kernel,
        ladder: Option<&Ladder>,
        instructions: Instructions,
    ) -> Self {
        let (m, d) = (landmarks.len(), landmarks.dims());
        let lanes = instructions.lanes();
        let packed = pack_points(landmarks, lanes, f32::INFINITY);
        let steps = ladder.map_or(Vec::new(), |l| l.steps().to_vec());
        Tiles {
            instructions,
            dims: d,
            landmarks: m,
            metric: kernel.metric(),
            sums: vec![0; steps.len() * packed.len() / d],
            steps,
            packed,
            tables: Vec::new(),
            starts: Vec::new(),
            min_distance: vec![0.0; MAX_BLOCK * lanes],
            min_at: vec![0.0; MAX_BLOCK * lanes],
            second: Vec::new(),
            packed_rows: PackedRows::new(d),
            packed_present: PackedRows::new(d),
        }
    }

    /// Adds tables of levels, which contribute to squared distances.
    #[must_use]
    pub fn with_levels(mut self, tables: Option<&LevelTables>) -> Self {
        let Some(tables) = tables else { return self };
        assert!(self.metric == Metric::Squared, "levels add to squared distances");
        self.tables = tables.packed(self.packed.len() / self.dims);
        self.starts = tables.starts().to_vec();
        self
    }

    /// Number of categories.
    pub fn categories(&self) -> usize {
        self.starts.len()
    }

    /// Number of rows.
    fn count(&self, rows: &Rows<'_>) -> usize {
        let n = rows.z.len() / self.dims;
        assert!(n <= MAX_BLOCK && rows.z.len() == n * self.dims, "a block has whole rows");
        assert!(rows.codes.len() == n * self.starts.len(), "a level for each category");
        let flagged = rows.present.len() == rows.z.len() && self.metric == Metric::Squared;
        assert!(rows.present.is_empty() || flagged, "each number is there or not");
        n
    }

    /// Runs the pass over at most [`MAX_BLOCK`] rows.
    ///
    /// `add(rung, landmark, units)` receives the block's kernel sums, in units of 2⁻²³. `nearest`,
    /// if given, receives each row's nearest landmark. Rows with missing values have no kernel
    /// values, only a nearest landmark.
    pub fn block<'r>(
        &mut self,
        rows: impl Into<Rows<'r>>,
        mut nearest: Option<&mut Nearest>,
        mut add: impl FnMut(usize, usize, u32),
    ) {
        let rows = rows.into();
        let n = self.count(&rows);
        if let Some(nearest) = &mut nearest {
            nearest.clear();
        }
        if !rows.present.is_empty() {
            let instructions = self.instructions;
            instructions.dispatch(TileBlock::<1> { tiles: self, rows, nearest });
            return;
        }
        let padded = self.packed.len() / self.dims;
        self.sums.fill(0);
        let instructions = self.instructions;
        instructions.dispatch(TileBlock::<1> { tiles: self, rows, nearest });
        for rung in 0..self.steps.len() {
            for j in 0..self.landmarks {
                let at = rung * padded + j;
                // Each of the n terms includes the bits of 1.0.
                add(rung, j, self.sums[at].wrapping_sub((n as u32).wrapping_mul(ONE_BITS)));
            }
        }
    }

    /// Appends the nearest landmark of every row, for any number of rows.
    pub fn nearest(&mut self, rows: Rows<'_>, nearest: &mut Nearest) {
        let (d, c, instructions) = (self.dims, self.starts.len(), self.instructions);
        let n = rows.z.len() / d;
        for start in (0..n).step_by(MAX_BLOCK) {
            let rows = rows.part(start..n.min(start + MAX_BLOCK), d, c);
            self.count(&rows);
            instructions.dispatch(TileBlock::<1> { tiles: self, rows, nearest: Some(nearest) });
        }
    }

    /// Appends the nearest landmark of every row, and the distance of the second nearest.
    pub fn nearest_two<'r>(&mut self, rows: impl Into<Rows<'r>>, nearest: &mut Nearest) {
        assert!(self.steps.is_empty(), "kernel sums are not for predicting");
        let rows = rows.into();
        let (d, c, instructions) = (self.dims, self.starts.len(), self.instructions);
        let n = rows.z.len() / d;
        for start in (0..n).step_by(MAX_BLOCK) {
            let rows = rows.part(start..n.min(start + MAX_BLOCK), d, c);
            self.count(&rows);
            self.second.resize(self.min_distance.len(), 0.0);
            instructions.dispatch(TileBlock::<2> { tiles: self, rows, nearest: Some(nearest) });
        }
    }
}

/// A pass that keeps the KEPT smallest distances of a row, if nearest landmarks are requested.
struct TileBlock<'a, const KEPT: usize> {
    tiles: &'a mut Tiles,
    rows: Rows<'a>,
    nearest: Option<&'a mut Nearest>,
}

impl<const KEPT: usize> WithSimd for TileBlock<'_, KEPT> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        match self.tiles.metric {
            Metric::Squared if !self.rows.present.is_empty() => {
                self.measure::<S, Squared, Incomplete>(simd)
            }
            Metric::Squared if !self.tables().is_empty() => self.measure::<S, Squared, Mixed>(simd),
            Metric::Squared => self.measure::<S, Squared, Plain>(simd),
            Metric::Absolute => self.measure::<S, Absolute, Plain>(simd),
        }
    }
}

impl<const KEPT: usize> TileBlock<'_, KEPT> {
    fn tables(&self) -> &[f32] {
        &self.tiles.tables
    }

    #[inline(always)]
    fn measure<S: Simd, T: Term, X: Extras>(self, simd: S) {
        let TileBlock { tiles, rows, nearest } = self;
        let n = rows.z.len() / tiles.dims;
        if let Some(nearest) = nearest {
            tiles.min_distance[..n * S::F32_LANES].fill(f32::INFINITY);
            tiles.min_at[..n * S::F32_LANES].fill(0.0);
            if KEPT == 2 {
                tiles.second[..n * S::F32_LANES].fill(f32::INFINITY);
            }
            run::<S, T, X, KEPT>(simd, tiles, rows);
            reduce_lanes::<S, KEPT>(simd, tiles, n, nearest);
        } else {
            run::<S, T, X, 0>(simd, tiles, rows);
        }
    }
}

/// Combines all tiles of a block with all panels.
#[inline(always)]
fn run<S: Simd, T: Term, X: Extras, const KEPT: usize>(simd: S, tiles: &mut Tiles, rows: Rows<'_>) {
    let d = tiles.dims;
    let (packed, _) = S::as_simd_f32s(&tiles.packed);
    let vectors = packed.len() / d;
    let full = vectors / VECTORS;
    let (panels, last) = packed.split_at(full * VECTORS * d);
    let (panels, _) = panels.as_chunks::<VECTORS>();
    let (last, _) = last.as_chunks::<1>();
    let (sums, _) = S::as_mut_simd_u32s(&mut tiles.sums);
    let (min_distance, _) = S::as_mut_simd_f32s(&mut tiles.min_distance);
    let (min_at, _) = S::as_mut_simd_f32s(&mut tiles.min_at);
    let (second, _) = S::as_mut_simd_f32s(&mut tiles.second);
    let mut kept = Kept::<S> { min_distance, min_at, second };
    let (tables, _) = S::as_simd_f32s(&tiles.tables);
    let steps = if X::MISSING { &[][..] } else { &tiles.steps };
    let starts = &tiles.starts;
    let mut pass = TilePass::<S, KEPT> { simd, steps, vectors, sums, tables, starts };
    tiles.packed_rows.pack(rows.z);
    if X::MISSING {
        tiles.packed_present.pack(rows.present);
    }
    let categories = tiles.starts.len();
    let together = (PANEL_BYTES / (d * VECTORS * size_of::<S::f32s>())).max(1);
    let groups = full.div_ceil(together).max(1);
    for group in 0..groups {
        let range = (group * together).min(full)..((group + 1) * together).min(full);
        let first = range.start * VECTORS;
        let some = &panels[range.start * d..range.end * d];
        // The single vector is processed with the last panels.
        let last = if group + 1 == groups { last } else { &[] };
        let mut i = 0;
        let mut present = tiles.packed_present.tiles();
        for numbers in tiles.packed_rows.tiles() {
            let present = if X::MISSING { present.next().unwrap_or(&[]) } else { &[] };
            let codes = &rows.codes[i * categories..];
            let tile = Tile { numbers, present, codes };
            pass.tile::<T, X, _>(tile, first, some, last, kept.from(i));
            i += ROWS;
        }
        let mut present = tiles.packed_present.singles();
        for numbers in tiles.packed_rows.singles() {
            let present = if X::MISSING { present.next().unwrap_or(&[]) } else { &[] };
            let codes = &rows.codes[i * categories..];
            let tile = Tile { numbers, present, codes };
            pass.tile::<T, X, _>(tile, first, some, last, kept.from(i));
            i += 1;
        }
    }
}

/// The nearest landmark over all lanes; the smallest index in case of ties.
#[inline(always)]
fn reduce_lanes<S: Simd, const KEPT: usize>(
    simd: S,
    tiles: &Tiles,
    n: usize,
    nearest: &mut Nearest,
) {
    let (min_distance, _) = S::as_simd_f32s(&tiles.min_distance);
    let (min_at, _) = S::as_simd_f32s(&tiles.min_at);
    let (lanes, _) = S::as_simd_f32s(&LANES);
    // Indices are below 2²⁴, so an f32 holds them exactly.
    let width = simd.splat_f32s(S::F32_LANES as f32);
    let never = simd.splat_f32s(f32::INFINITY);
    let (second, _) = S::as_simd_f32s(&tiles.second);
    for (i, (d2, at)) in min_distance[..n].iter().zip(min_at).enumerate() {
        let nearest_d2 = simd.reduce_min_f32s(*d2);
        let here = simd.equal_f32s(*d2, simd.splat_f32s(nearest_d2));
        let index = simd.mul_add_f32s(*at, width, lanes[0]);
        let first = simd.reduce_min_f32s(simd.select_f32s(here, index, never));
        nearest.distance.push(nearest_d2);
        nearest.index.push(first as u32);
        if KEPT == 2 {
            // The lane of the nearest contributes its second smallest distance, every other lane
            // its smallest.
            let chosen = simd.equal_f32s(index, simd.splat_f32s(first));
            let others = simd.select_f32s(chosen, second[i], *d2);
            nearest.second.push(simd.reduce_min_f32s(others));
        }
    }
}

/// Lane numbers, up to the width of the widest vectors.
const LANES: [f32; 16] =
    [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0, 13.0, 14.0, 15.0];

#[cfg(test)]
mod tests {
    use super::super::row::take_holes;
    use super::super::scalar;
    use super::*;
    use crate::numeric::random::Hashes;
    use proptest::prelude::*;

    /// Numbers within ±`spread`/2.
    fn spread_out(count: usize, spread: f32, hashes: &mut Hashes) -> Vec<f32> {
        let mut values = Vec::with_capacity(count);
        for _ in 0..count {
            values.push(((hashes.draw() >> 40) as f32 / (1 << 24) as f32 - 0.5) * spread);
        }
        values
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        /// Every instruction set gives the bits of the scalar definition.
        #[test]
        fn vectorised_pass_matches_the_definition(
            d in 1usize..12,
            m in 1usize..70,
            n in 1usize..40,
            seed in any::<u64>(),
            spread in prop::sample::select(vec![1e-3f32, 1.0, 100.0]),
            laplace in any::<bool>(),
        ) {
            let mut hashes = Hashes(seed);
            let landmarks = Points::new(d, spread_out(m * d, spread, &mut hashes));
            let rows = Points::new(d, spread_out(n * d, spread, &mut hashes));
            let kernel = if laplace { Kernel::Laplace } else { Kernel::Gaussian };
            let ladder = kernel.ladder(&[4.0, 1.0, 0.25, 0.125, 0.03, 0.0075]);

            let mut expected = vec![0u32; 6 * m];
            for x in rows.rows() {
                for (j, z) in landmarks.rows().enumerate() {
                    let units = scalar::kernel_units(kernel.distance(x, z), &ladder);
                    for (rung, u) in units.iter().enumerate() {
                        expected[rung * m + j] += u;
                    }
                }
            }
            for set in Instructions::all() {
                let mut tiles = Tiles::new(&landmarks, kernel, Some(&ladder), set);
                let mut got = vec![0u32; 6 * m];
                let mut nearest = Nearest::default();
                tiles.block(rows.data(), Some(&mut nearest), |rung, j, u| got[rung * m + j] = u);
                prop_assert_eq!(&got, &expected, "{:?}", set);
                for (i, x) in rows.rows().enumerate() {
                    let found = (nearest.index[i], nearest.distance[i]);
                    prop_assert_eq!(found, scalar::nearest(kernel, x.into(), &landmarks, None));
                }
                let mut two = Nearest::default();
                Tiles::new(&landmarks, kernel, None, set).nearest_two(rows.data(), &mut two);
                prop_assert_eq!((&two.index, &two.distance), (&nearest.index, &nearest.distance));
                for (i, x) in rows.rows().enumerate() {
                    let others = (0..m).filter(|j| *j != two.index[i] as usize);
                    let distances = others.map(|j| kernel.distance(x, landmarks.row(j)));
                    prop_assert_eq!(two.second[i], distances.fold(f32::INFINITY, f32::min));
                }
            }
        }

        /// The same for categories and missing values.
        #[test]
        fn levels_and_missing_values_match_the_definition(
            d in 1usize..12,
            m in 1usize..70,
            n in 1usize..40,
            levels in prop::collection::vec(1usize..9, 0..4),
            missing in 0u64..3,
            seed in any::<u64>(),
        ) {
            let (kernel, mut hashes) = (Kernel::Gaussian, Hashes(seed));
            let landmarks = Points::new(d, spread_out(m * d, 2.0, &mut hashes));
            let mut z = spread_out(n * d, 2.0, &mut hashes);
            let mut codes = Vec::new();
            for _ in 0..n {
                codes.extend(levels.iter().map(|l| (hashes.draw() % *l as u64) as u32));
            }
            let entries = spread_out(1000, 2.0, &mut hashes);
            let tables = LevelTables::new(m, &levels, |c, l, j| {
                entries[(c * 311 + l * 17 + j * 7) % 1000].abs()
            });
            let mut present = Vec::new();
            if missing > 0 {
                for z in &mut z {
                    if hashes.draw() % 3 < missing {
                        *z = f32::NAN;
                    }
                }
                take_holes(&mut z, &mut present);
            }
            // Padding landmarks are infinitely distant only if at least one value is present, or a
            // level.
            let has_value = present.chunks(d).all(|row| row.iter().any(|p| p.to_bits() != 0));
            prop_assume!(!levels.is_empty() || has_value);
            let rows = Rows { z: &z, codes: &codes, present: &present };
            let ladder = kernel.ladder(&[4.0, 1.0]);
            let mut distances = Vec::with_capacity(n * m);
            let mut expected = vec![0u32; 2 * m];
            for i in 0..n {
                let row = rows.row(i, d, levels.len());
                for j in 0..m {
                    let distance = scalar::distance(kernel, row, &landmarks, Some(&tables), j);
                    distances.push(distance);
                    let units = scalar::kernel_units(distance, &ladder);
                    for (rung, u) in units.iter().enumerate().filter(|_| missing == 0) {
                        expected[rung * m + j] += u;
                    }
                }
            }
            for set in Instructions::all() {
                let tiles = Tiles::new(&landmarks, kernel, Some(&ladder), set);
                let (mut got, mut nearest) = (vec![0u32; 2 * m], Nearest::default());
                let mut tiles = tiles.with_levels(Some(&tables));
                tiles.block(rows, Some(&mut nearest), |rung, j, u| got[rung * m + j] = u);
                prop_assert_eq!(&got, &expected, "{:?}", set);
                let mut two = Nearest::default();
                let tiles = Tiles::new(&landmarks, kernel, None, set);
                tiles.with_levels(Some(&tables)).nearest_two(rows, &mut two);
                prop_assert_eq!((&two.index, &two.distance), (&nearest.index, &nearest.distance));
                for i in 0..n {
                    let found = (nearest.index[i], nearest.distance[i]);
                    let row = rows.row(i, d, levels.len());
                    let first = scalar::nearest(kernel, row, &landmarks, Some(&tables));
                    prop_assert_eq!(found, first);
                    let others = (0..m).filter(|j| *j != two.index[i] as usize);
                    let others = others.map(|j| distances[i * m + j]);
                    prop_assert_eq!(two.second[i], others.fold(f32::INFINITY, f32::min));
                }
            }
        }
    }
}
