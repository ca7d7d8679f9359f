//! The vectorised pass over a block of rows: distances, kernel sums and nearest landmarks.
//!
//! A tile is 6 rows × 2 vectors of landmarks held in registers (1 vector for the last landmarks where
//! that is enough), laid out as in [`pack`](super::pack); while a tile stays, all panels that fit the
//! cache pass by, so that the nearest landmark so far stays in registers too. One generic source serves AVX2, AVX-512, NEON and a plain
//! scalar machine; each pair of row and landmark sees the operations of [`scalar`](super::scalar) in
//! the same order, so all of them give the same bits.

use super::exp2::{EXP2, ROUND};
use super::ladder::{FLOOR, Ladder, Step};
use super::pack::{MAX_BLOCK, PackedRows, ROWS, VECTORS, Value, copy_for, pack_points};
use super::scalar::ONE_BITS;
use super::table::{Kernel, Metric};
use crate::points::Points;
use crate::simd::Instructions;
use pulp::{Simd, WithSimd};

/// Bytes of packed landmarks that pass by a tile before the next tile.
const PANEL_BYTES: usize = 1 << 15;

/// Landmarks laid out for the pass, with its scratch memory.
#[derive(Debug, Clone)]
pub struct Tiles {
    instructions: Instructions,
    dims: usize,
    landmarks: usize,
    metric: Metric,
    /// `[panel][column][lane]`, panels of [`VECTORS`] vectors and perhaps one of a single vector;
    /// filled up with infinitely distant points.
    packed: Vec<f32>,
    steps: Vec<Step>,
    /// `[rung][landmark, padded]`, sums of the last block.
    sums: Vec<u32>,
    /// `[row][lane]`: least squared distance so far and the vector it was in, a whole number.
    least: Vec<f32>,
    least_at: Vec<f32>,
    /// The second least squared distance, where it was ever asked for.
    second: Vec<f32>,
    packed_rows: PackedRows,
}

/// The nearest landmark of each row of a block.
#[derive(Debug, Default, Clone)]
pub struct Nearest {
    /// Its index.
    pub index: Vec<u32>,
    /// Its distance, which is squared for the Gaussian kernel.
    pub distance: Vec<f32>,
    /// The least distance of the other landmarks, infinite where there are none; only
    /// [`Tiles::nearest_two`] finds it.
    pub second: Vec<f32>,
}

impl Tiles {
    /// Packs the landmarks. Without a ladder only nearest landmarks are found.
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
            least: vec![0.0; MAX_BLOCK * lanes],
            least_at: vec![0.0; MAX_BLOCK * lanes],
            second: Vec::new(),
            packed_rows: PackedRows::new(d),
        }
    }

    /// Runs the pass over at most [`MAX_BLOCK`] rows (`rows × dims`, row-major).
    ///
    /// `add(rung, landmark, units)` receives the block's kernel sums, in units of 2⁻²³, and `nearest`,
    /// if given, each row's landmark.
    pub fn block(
        &mut self,
        rows: &[f32],
        nearest: Option<&mut Nearest>,
        mut add: impl FnMut(usize, usize, u32),
    ) {
        let n = rows.len() / self.dims;
        assert!(n <= MAX_BLOCK && rows.len() == n * self.dims, "a block has whole rows");
        let padded = self.packed.len() / self.dims;
        self.sums.fill(0);
        let instructions = self.instructions;
        instructions.dispatch(TileBlock::<1> { tiles: self, rows, nearest });
        for rung in 0..self.steps.len() {
            for j in 0..self.landmarks {
                let at = rung * padded + j;
                // Each of the n terms carried the bits of 1.0 along.
                add(rung, j, self.sums[at].wrapping_sub((n as u32).wrapping_mul(ONE_BITS)));
            }
        }
    }

    /// Finds the nearest landmark of at most [`MAX_BLOCK`] rows, and the distance of the second nearest.
    pub fn nearest_two(&mut self, rows: &[f32], nearest: &mut Nearest) {
        let n = rows.len() / self.dims;
        assert!(n <= MAX_BLOCK && rows.len() == n * self.dims, "a block has whole rows");
        assert!(self.steps.is_empty(), "kernel sums are not for predicting");
        self.second.resize(self.least.len(), 0.0);
        let instructions = self.instructions;
        instructions.dispatch(TileBlock::<2> { tiles: self, rows, nearest: Some(nearest) });
    }
}

/// A pass that keeps the KEPT least distances of a row, where nearest landmarks are wanted.
struct TileBlock<'a, const KEPT: usize> {
    tiles: &'a mut Tiles,
    rows: &'a [f32],
    nearest: Option<&'a mut Nearest>,
}

impl<const KEPT: usize> WithSimd for TileBlock<'_, KEPT> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        match self.tiles.metric {
            Metric::Squared => self.measure::<S, Squared>(simd),
            Metric::Absolute => self.measure::<S, Absolute>(simd),
        }
    }
}

impl<const KEPT: usize> TileBlock<'_, KEPT> {
    #[inline(always)]
    fn measure<S: Simd, T: Term>(self, simd: S) {
        let TileBlock { tiles, rows, nearest } = self;
        let n = rows.len() / tiles.dims;
        if let Some(nearest) = nearest {
            tiles.least[..n * S::F32_LANES].fill(f32::INFINITY);
            tiles.least_at[..n * S::F32_LANES].fill(0.0);
            if KEPT == 2 {
                tiles.second[..n * S::F32_LANES].fill(f32::INFINITY);
            }
            run::<S, T, KEPT>(simd, tiles, rows);
            reduce_lanes::<S, KEPT>(simd, tiles, n, nearest);
        } else {
            run::<S, T, 0>(simd, tiles, rows);
        }
    }
}

/// What a coordinate adds to a distance, in vectors.
trait Term {
    fn add<S: Simd>(simd: S, sum: S::f32s, difference: S::f32s) -> S::f32s;
}

struct Squared;
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

/// All tiles of a block with all panels.
#[inline(always)]
fn run<S: Simd, T: Term, const KEPT: usize>(simd: S, tiles: &mut Tiles, rows: &[f32]) {
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
    let mut pass = TilePass::<S, KEPT> { simd, steps: &tiles.steps, vectors, sums };
    tiles.packed_rows.pack(rows);
    let together = (PANEL_BYTES / (d * VECTORS * size_of::<S::f32s>())).max(1);
    let groups = full.div_ceil(together).max(1);
    for group in 0..groups {
        let range = (group * together).min(full)..((group + 1) * together).min(full);
        let first = range.start * VECTORS;
        let some = &panels[range.start * d..range.end * d];
        // The single vector goes with the last panels.
        let last = if group + 1 == groups { last } else { &[] };
        let mut i = 0;
        for tile in tiles.packed_rows.tiles() {
            pass.tile::<T, _>(tile, first, some, last, kept.from(i));
            i += ROWS;
        }
        for row in tiles.packed_rows.singles() {
            pass.tile::<T, _>(row, first, some, last, kept.from(i));
            i += 1;
        }
    }
}

/// What is kept of the rows between groups of panels, a vector for each row.
struct Kept<'a, S: Simd> {
    least: &'a mut [S::f32s],
    least_at: &'a mut [S::f32s],
    /// Empty where it is not asked for.
    second: &'a mut [S::f32s],
}

impl<S: Simd> Kept<'_, S> {
    /// From this row on.
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
    /// Vectors of all landmarks.
    vectors: usize,
    sums: &'a mut [S::u32s],
}

impl<S: Simd, const KEPT: usize> TilePass<'_, S, KEPT> {
    /// One tile of R rows with some panels and perhaps a single vector; `first` is the number of their
    /// first vector.
    #[inline(always)]
    fn tile<T: Term, const R: usize>(
        &mut self,
        rows: &[[Value; R]],
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
        for panel in panels.chunks_exact(rows.len()) {
            self.panel::<T, _, _>(rows, panel, vector, &mut nearest);
            vector += VECTORS;
        }
        if !last.is_empty() {
            self.panel::<T, _, _>(rows, last, vector, &mut nearest);
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
    fn panel<T: Term, const R: usize, const V: usize>(
        &mut self,
        rows: &[[Value; R]],
        panel: &[[S::f32s; V]],
        vector: usize,
        nearest: &mut Best<S, R, KEPT>,
    ) {
        let d2 = distances::<S, T, R, V>(self.simd, rows, panel);
        if KEPT > 0 {
            nearest.look(self.simd, vector, &d2);
        }
        self.add(vector, &d2);
    }
}

/// Distances of R rows from V vectors of landmarks, in the order of the columns.
#[inline(always)]
fn distances<S: Simd, T: Term, const R: usize, const V: usize>(
    simd: S,
    rows: &[[Value; R]],
    panel: &[[S::f32s; V]],
) -> [[S::f32s; V]; R] {
    let mut sum = [[simd.splat_f32s(0.0); V]; R];
    for (x, z) in rows.iter().zip(panel) {
        for r in 0..R {
            for v in 0..V {
                let x = simd.splat_f32s(x[r][copy_for(v, S::F32_LANES)]);
                let difference = simd.sub_f32s(z[v], x);
                sum[r][v] = T::add(simd, sum[r][v], difference);
            }
        }
    }
    sum
}

/// In each lane of each row the least distance, the first vector that had it, and where two are kept the
/// second least.
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

/// The nearest landmark over all lanes; the smallest index where several are as near.
#[inline(always)]
fn reduce_lanes<S: Simd, const KEPT: usize>(
    simd: S,
    tiles: &Tiles,
    n: usize,
    nearest: &mut Nearest,
) {
    nearest.index.clear();
    nearest.distance.clear();
    nearest.second.clear();
    let (least, _) = S::as_simd_f32s(&tiles.least);
    let (least_at, _) = S::as_simd_f32s(&tiles.least_at);
    let (lanes, _) = S::as_simd_f32s(&LANES);
    // Indices are below 2²⁴, so singles hold them exactly.
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
            // The lane of the nearest offers its second, every other lane its least.
            let chosen = simd.equal_f32s(index, simd.splat_f32s(first));
            let others = simd.select_f32s(chosen, second[i], *d2);
            nearest.second.push(simd.reduce_min_f32s(others));
        }
    }
}

/// Numbers of lanes, as many as the widest vectors have.
const LANES: [f32; 16] =
    [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0, 13.0, 14.0, 15.0];

impl<S: Simd, const KEPT: usize> TilePass<'_, S, KEPT> {
    /// Kernel values of a tile at every rung, rounded to fixed point and summed over its rows.
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
                state = crate::sample::mix(state);
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
                    prop_assert_eq!((nearest.index[i], nearest.distance[i]), scalar::nearest(kernel, x, &landmarks));
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
    }
}
