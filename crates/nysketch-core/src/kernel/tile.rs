//! The vectorised pass over a block of rows: distances, kernel sums and nearest landmarks.
//!
//! A tile is 6 rows × 2 vectors of landmarks held in registers (1 vector for the last landmarks if
//! that is enough), laid out as in [`pack`](super::pack). Each tile is combined with all panels
//! that fit in the cache before the next tile, so that the nearest landmark so far also stays in
//! registers. One generic source compiles to AVX2, AVX-512, NEON and scalar code. Each pair of row
//! and landmark is processed by the operations of [`scalar`](super::scalar) in the same order, so
//! all of them give the same bits.

use super::exp2::{EXP2, ROUND};
use super::ladder::{FLOOR, Ladder, Step};
use super::levels::LevelTables;
use super::pack::{MAX_BLOCK, PackedRows, ROWS, VECTORS, Value, copy_for, pack_points};
use super::row::Rows;
use super::scalar::ONE_BITS;
use super::table::{Kernel, Metric};
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
    least: Vec<f32>,
    least_at: Vec<f32>,
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
            least: vec![0.0; MAX_BLOCK * lanes],
            least_at: vec![0.0; MAX_BLOCK * lanes],
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
        let holed = rows.present.len() == rows.z.len() && self.metric == Metric::Squared;
        assert!(rows.present.is_empty() || holed, "each number is there or not");
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
            self.second.resize(self.least.len(), 0.0);
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
                self.measure::<S, Squared, Holed>(simd)
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
            tiles.least[..n * S::F32_LANES].fill(f32::INFINITY);
            tiles.least_at[..n * S::F32_LANES].fill(0.0);
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

/// The contribution of a coordinate to a distance, in vectors.
pub(super) trait Term {
    fn add<S: Simd>(simd: S, sum: S::f32s, difference: S::f32s) -> S::f32s;
}

pub(super) struct Squared;
struct Absolute;

impl Term for Squared {
    #[inline(always)]
    fn add<S: Simd>(simd: S, sum: S::f32s, difference: S::f32s) -> S::f32s {
        simd.mul_add_f32s(difference, difference, sum)
    }
}

impl Term for Absolute {
    #[inline(always)]
    fn add<S: Simd>(simd: S, sum: S::f32s, difference: S::f32s) -> S::f32s {
        simd.add_f32s(sum, simd.abs_f32s(difference))
    }
}

/// Features of rows beyond complete numeric columns. As a type parameter, they cost nothing for
/// rows without them.
pub(super) trait Extras {
    /// Whether there are categories.
    const LEVELS: bool;
    /// Whether numbers are missing.
    const HOLES: bool;
}

pub(super) struct Plain;
struct Mixed;
struct Holed;

impl Extras for Plain {
    const LEVELS: bool = false;
    const HOLES: bool = false;
}

impl Extras for Mixed {
    const LEVELS: bool = true;
    const HOLES: bool = false;
}

impl Extras for Holed {
    const LEVELS: bool = true;
    const HOLES: bool = true;
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
    let (least, _) = S::as_mut_simd_f32s(&mut tiles.least);
    let (least_at, _) = S::as_mut_simd_f32s(&mut tiles.least_at);
    let (second, _) = S::as_mut_simd_f32s(&mut tiles.second);
    let mut kept = Kept::<S> { least, least_at, second };
    let (tables, _) = S::as_simd_f32s(&tiles.tables);
    let steps = if X::HOLES { &[][..] } else { &tiles.steps };
    let starts = &tiles.starts;
    let mut pass = TilePass::<S, KEPT> { simd, steps, vectors, sums, tables, starts };
    tiles.packed_rows.pack(rows.z);
    if X::HOLES {
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
            let present = if X::HOLES { present.next().unwrap_or(&[]) } else { &[] };
            let codes = &rows.codes[i * categories..];
            let tile = Tile { numbers, present, codes };
            pass.tile::<T, X, _>(tile, first, some, last, kept.from(i));
            i += ROWS;
        }
        let mut present = tiles.packed_present.singles();
        for numbers in tiles.packed_rows.singles() {
            let present = if X::HOLES { present.next().unwrap_or(&[]) } else { &[] };
            let codes = &rows.codes[i * categories..];
            let tile = Tile { numbers, present, codes };
            pass.tile::<T, X, _>(tile, first, some, last, kept.from(i));
            i += 1;
        }
    }
}

/// R rows.
#[derive(Clone, Copy)]
pub(super) struct Tile<'a, const R: usize> {
    /// `[column][row]`.
    pub numbers: &'a [[Value; R]],
    /// `[column][row]`, if values are missing.
    pub present: &'a [[Value; R]],
    /// `[row][category]`.
    pub codes: &'a [u32],
}

/// The smallest distances of the rows between groups of panels, one vector per row.
struct Kept<'a, S: Simd> {
    least: &'a mut [S::f32s],
    least_at: &'a mut [S::f32s],
    /// Empty unless requested.
    second: &'a mut [S::f32s],
}

impl<S: Simd> Kept<'_, S> {
    /// The part from this row onwards.
    #[inline(always)]
    fn from(&mut self, row: usize) -> Kept<'_, S> {
        let at = row.min(self.second.len());
        Kept {
            least: &mut self.least[row..],
            least_at: &mut self.least_at[row..],
            second: &mut self.second[at..],
        }
    }
}

struct TilePass<'a, S: Simd, const KEPT: usize> {
    simd: S,
    steps: &'a [Step],
    /// Number of vectors of all landmarks.
    vectors: usize,
    sums: &'a mut [S::u32s],
    /// `[level][vector]`, and the index of the first level of each category.
    tables: &'a [S::f32s],
    starts: &'a [usize],
}

impl<S: Simd, const KEPT: usize> TilePass<'_, S, KEPT> {
    /// Combines one tile of R rows with some panels and possibly a single vector. `first` is the
    /// index of their first vector.
    #[inline(always)]
    fn tile<T: Term, X: Extras, const R: usize>(
        &mut self,
        rows: Tile<'_, R>,
        first: usize,
        panels: &[[S::f32s; VECTORS]],
        last: &[[S::f32s; 1]],
        kept: Kept<'_, S>,
    ) {
        let Kept { least, least_at, second } = kept;
        let never = self.simd.splat_f32s(f32::INFINITY);
        let mut nearest = Best::<S, R, KEPT> {
            d2: std::array::from_fn(|r| least[r]),
            at: std::array::from_fn(|r| least_at[r]),
            second: std::array::from_fn(|r| if KEPT == 2 { second[r] } else { never }),
        };
        let mut vector = first;
        for panel in panels.chunks_exact(rows.numbers.len()) {
            self.panel::<T, X, _, _>(rows, panel, vector, &mut nearest);
            vector += VECTORS;
        }
        if !last.is_empty() {
            self.panel::<T, X, _, _>(rows, last, vector, &mut nearest);
        }
        if KEPT > 0 {
            least[..R].copy_from_slice(&nearest.d2);
            least_at[..R].copy_from_slice(&nearest.at);
        }
        if KEPT == 2 {
            second[..R].copy_from_slice(&nearest.second);
        }
    }

    #[inline(always)]
    fn panel<T: Term, X: Extras, const R: usize, const V: usize>(
        &mut self,
        rows: Tile<'_, R>,
        panel: &[[S::f32s; V]],
        vector: usize,
        nearest: &mut Best<S, R, KEPT>,
    ) {
        let mut d2 = distances::<S, T, X, R, V>(self.simd, rows, panel);
        if X::LEVELS {
            self.add_levels(rows.codes, vector, &mut d2);
        }
        if KEPT > 0 {
            nearest.look(self.simd, vector, &d2);
        }
        self.add(vector, &d2);
    }
}

/// Distances of R rows from V vectors of landmarks, over the values that are present, in the order
/// of the columns.
#[inline(always)]
pub(super) fn distances<S: Simd, T: Term, X: Extras, const R: usize, const V: usize>(
    simd: S,
    rows: Tile<'_, R>,
    panel: &[[S::f32s; V]],
) -> [[S::f32s; V]; R] {
    let mut sum = [[simd.splat_f32s(0.0); V]; R];
    for (k, (x, z)) in rows.numbers.iter().zip(panel).enumerate() {
        for r in 0..R {
            for v in 0..V {
                let copy = copy_for(v, S::F32_LANES);
                let mut difference = simd.sub_f32s(z[v], simd.splat_f32s(x[r][copy]));
                if X::HOLES {
                    let there = simd.splat_f32s(rows.present[k][r][copy]);
                    difference = simd.and_f32s(difference, there);
                }
                sum[r][v] = T::add(simd, sum[r][v], difference);
            }
        }
    }
    sum
}

impl<S: Simd, const KEPT: usize> TilePass<'_, S, KEPT> {
    /// Adds the contributions of the rows' levels, in the order of the categories.
    #[inline(always)]
    fn add_levels<const R: usize, const V: usize>(
        &self,
        codes: &[u32],
        vector: usize,
        d2: &mut [[S::f32s; V]; R],
    ) {
        let categories = self.starts.len();
        for (c, start) in self.starts.iter().enumerate() {
            for r in 0..R {
                let level = start + codes[r * categories + c] as usize;
                let entries = &self.tables[level * self.vectors + vector..][..V];
                for v in 0..V {
                    d2[r][v] = self.simd.add_f32s(d2[r][v], entries[v]);
                }
            }
        }
    }
}

/// For each lane of each row: the smallest distance, the first vector with that distance, and the
/// second smallest distance if two are kept.
struct Best<S: Simd, const R: usize, const KEPT: usize> {
    d2: [S::f32s; R],
    at: [S::f32s; R],
    second: [S::f32s; R],
}

impl<S: Simd, const R: usize, const KEPT: usize> Best<S, R, KEPT> {
    #[inline(always)]
    fn look<const V: usize>(&mut self, simd: S, vector: usize, d2: &[[S::f32s; V]; R]) {
        for v in 0..V {
            let here = simd.splat_f32s((vector + v) as f32);
            for r in 0..R {
                if KEPT == 2 {
                    let further = simd.max_f32s(d2[r][v], self.d2[r]);
                    self.second[r] = simd.min_f32s(self.second[r], further);
                }
                let closer = simd.less_than_f32s(d2[r][v], self.d2[r]);
                self.d2[r] = simd.select_f32s(closer, d2[r][v], self.d2[r]);
                self.at[r] = simd.select_f32s(closer, here, self.at[r]);
            }
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
    let (least, _) = S::as_simd_f32s(&tiles.least);
    let (least_at, _) = S::as_simd_f32s(&tiles.least_at);
    let (lanes, _) = S::as_simd_f32s(&LANES);
    // Indices are below 2²⁴, so an f32 holds them exactly.
    let width = simd.splat_f32s(S::F32_LANES as f32);
    let never = simd.splat_f32s(f32::INFINITY);
    let (second, _) = S::as_simd_f32s(&tiles.second);
    for (i, (d2, at)) in least[..n].iter().zip(least_at).enumerate() {
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

impl<S: Simd, const KEPT: usize> TilePass<'_, S, KEPT> {
    /// Kernel values of a tile at every bandwidth, rounded to fixed point and summed over its rows.
    #[inline(always)]
    fn add<const R: usize, const V: usize>(&mut self, vector: usize, d2: &[[S::f32s; V]; R]) {
        let simd = self.simd;
        let one = simd.splat_f32s(1.0);
        let floor = simd.splat_f32s(FLOOR);
        let mut kappa = *d2;
        for (rung, step) in self.steps.iter().enumerate() {
            match *step {
                Step::Exp { factor, limit } => {
                    for r in 0..R {
                        for v in 0..V {
                            kappa[r][v] = exp2(simd, d2[r][v], factor, limit);
                        }
                    }
                }
                Step::Square { times } => {
                    for r in 0..R {
                        for v in 0..V {
                            let mut k = kappa[r][v];
                            k = simd.mul_f32s(k, k);
                            if times == 2 {
                                k = simd.mul_f32s(k, k);
                            }
                            kappa[r][v] = simd.max_f32s(k, floor);
                        }
                    }
                }
            }
            let bits = |k: S::f32s| simd.transmute_u32s_f32s(simd.add_f32s(k, one));
            let total = &mut self.sums[rung * self.vectors + vector..][..V];
            for v in 0..V {
                let mut sum = bits(kappa[0][v]);
                for row in &kappa[1..] {
                    sum = simd.add_u32s(sum, bits(row[v]));
                }
                total[v] = simd.add_u32s(total[v], sum);
            }
        }
    }
}

/// `2^(min(d², limit) · factor)`; see [`exp2_product`](super::exp2::exp2_product).
#[inline(always)]
fn exp2<S: Simd>(simd: S, d2: S::f32s, factor: f32, limit: f32) -> S::f32s {
    let round = simd.splat_f32s(ROUND);
    let factor = simd.splat_f32s(factor);
    let d2 = simd.min_f32s(d2, simd.splat_f32s(limit));
    let rounded = simd.mul_add_f32s(d2, factor, round);
    let whole = simd.sub_f32s(round, rounded);
    let fraction = simd.mul_add_f32s(d2, factor, whole);
    let mut p = simd.splat_f32s(EXP2[4]);
    for k in [3, 2, 1, 0] {
        p = simd.mul_add_f32s(p, fraction, simd.splat_f32s(EXP2[k]));
    }
    p = simd.mul_add_f32s(p, fraction, simd.splat_f32s(1.0));
    let exponent =
        simd.wrapping_dyn_shl_u32s(simd.transmute_u32s_f32s(rounded), simd.splat_u32s(23));
    simd.transmute_f32s_u32s(simd.add_u32s(simd.transmute_u32s_f32s(p), exponent))
}

#[cfg(test)]
mod tests {
    use super::super::row::{ABSENT, PRESENT};
    use super::super::scalar;
    use super::*;
    use proptest::prelude::*;

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
            let mut state = seed;
            let mut next = || {
                state = crate::rows::sample::mix(state);
                ((state >> 40) as f32 / (1 << 24) as f32 - 0.5) * spread
            };
            let landmarks = Points::new(d, (0..m * d).map(|_| next()).collect());
            let rows = Points::new(d, (0..n * d).map(|_| next()).collect());
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
                    prop_assert_eq!((nearest.index[i], nearest.distance[i]), scalar::nearest(kernel, x.into(), &landmarks, None));
                }
                let mut two = Nearest::default();
                Tiles::new(&landmarks, kernel, None, set).nearest_two(rows.data(), &mut two);
                prop_assert_eq!((&two.index, &two.distance), (&nearest.index, &nearest.distance));
                for (i, x) in rows.rows().enumerate() {
                    let others = landmarks.rows().enumerate().filter(|(j, _)| *j != two.index[i] as usize);
                    let second = others.map(|(_, z)| kernel.distance(x, z)).fold(f32::INFINITY, f32::min);
                    prop_assert_eq!(two.second[i], second);
                }
            }
        }

        /// The same for categories and missing values.
        #[test]
        fn levels_and_holes_match_the_definition(
            d in 1usize..12,
            m in 1usize..70,
            n in 1usize..40,
            levels in prop::collection::vec(1usize..9, 0..4),
            holes in 0u64..3,
            seed in any::<u64>(),
        ) {
            let mut state = seed;
            let mut next = || {
                state = crate::rows::sample::mix(state);
                state >> 40
            };
            let value = |bits: u64| bits as f32 / (1 << 23) as f32 - 1.0;
            let landmarks = Points::new(d, (0..m * d).map(|_| value(next())).collect());
            let mut z: Vec<f32> = (0..n * d).map(|_| value(next())).collect();
            let mut codes = Vec::new();
            for _ in 0..n {
                codes.extend(levels.iter().map(|l| (next() % *l as u64) as u32));
            }
            let entries: Vec<f32> = (0..1000).map(|_| value(next()).abs()).collect();
            let entry = |c: usize, l: usize, j: usize| entries[(c * 311 + l * 17 + j * 7) % 1000];
            let tables = LevelTables::new(m, &levels, entry);
            let present: Vec<f32> = match holes {
                0 => Vec::new(),
                holes => z.iter_mut().map(|z| match next() % 3 < holes {
                    true => { *z = 0.0; ABSENT }
                    false => PRESENT,
                }).collect(),
            };
            let rows = Rows { z: &z, codes: &codes, present: &present };
            let ladder = Kernel::Gaussian.ladder(&[4.0, 1.0]);
            let one = |i: usize| rows.row(i, d, levels.len());
            let distance = |i: usize, j: usize| {
                scalar::distance(Kernel::Gaussian, one(i), &landmarks, Some(&tables), j)
            };
            let mut expected = vec![0u32; 2 * m];
            for (i, j) in (0..n).flat_map(|i| (0..m).map(move |j| (i, j))).filter(|_| holes == 0) {
                for (rung, u) in scalar::kernel_units(distance(i, j), &ladder).iter().enumerate() {
                    expected[rung * m + j] += u;
                }
            }
            // Padding landmarks are infinitely distant only if at least one value is present, or a
            // level.
            let somewhere = |i: usize| !levels.is_empty() || present.is_empty()
                || present[i * d..(i + 1) * d].iter().any(|p| p.to_bits() != 0);
            prop_assume!((0..n).all(somewhere));
            for set in Instructions::all() {
                let new = |ladder| Tiles::new(&landmarks, Kernel::Gaussian, ladder, set).with_levels(Some(&tables));
                let (mut got, mut nearest) = (vec![0u32; 2 * m], Nearest::default());
                new(Some(&ladder)).block(rows, Some(&mut nearest), |rung, j, u| got[rung * m + j] = u);
                prop_assert_eq!(&got, &expected, "{:?}", set);
                let mut two = Nearest::default();
                new(None).nearest_two(rows, &mut two);
                prop_assert_eq!((&two.index, &two.distance), (&nearest.index, &nearest.distance));
                for i in 0..n {
                    let found = (nearest.index[i], nearest.distance[i]);
                    prop_assert_eq!(found, scalar::nearest(Kernel::Gaussian, one(i), &landmarks, Some(&tables)));
                    let others = (0..m).filter(|j| *j != two.index[i] as usize);
                    let second = others.map(|j| distance(i, j)).fold(f32::INFINITY, f32::min);
                    prop_assert_eq!(two.second[i], second);
                }
            }
        }
    }
}
