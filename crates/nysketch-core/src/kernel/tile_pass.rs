//! One tile of rows and landmarks in registers: distances, nearest landmarks and kernel sums.

use super::exp2::{EXP2, ROUND};
use super::ladder::{FLOOR, Step};
use super::pack::{VECTORS, Value, copy_for};
use pulp::Simd;

/// The contribution of a coordinate to a distance, in vectors.
pub(super) trait Term {
    fn add<S: Simd>(simd: S, sum: S::f32s, difference: S::f32s) -> S::f32s;
}

pub(super) struct Squared;
pub(super) struct Absolute;

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
    /// Whether values are missing.
    const MISSING: bool;
}

pub(super) struct Plain;
pub(super) struct Mixed;
pub(super) struct Incomplete;

impl Extras for Plain {
    const LEVELS: bool = false;
    const MISSING: bool = false;
}

impl Extras for Mixed {
    const LEVELS: bool = true;
    const MISSING: bool = false;
}

impl Extras for Incomplete {
    const LEVELS: bool = true;
    const MISSING: bool = true;
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
pub(super) struct Kept<'a, S: Simd> {
    pub min_distance: &'a mut [S::f32s],
    pub min_at: &'a mut [S::f32s],
    /// Empty unless requested.
    pub second: &'a mut [S::f32s],
}

impl<S: Simd> Kept<'_, S> {
    /// The part from this row onwards.
    #[inline(always)]
    pub fn from(&mut self, row: usize) -> Kept<'_, S> {
        let at = row.min(self.second.len());
        Kept {
            min_distance: &mut self.min_distance[row..],
            min_at: &mut self.min_at[row..],
            second: &mut self.second[at..],
        }
    }
}

/// The pass of tiles over panels, which keeps the KEPT smallest distances of a row.
pub(super) struct TilePass<'a, S: Simd, const KEPT: usize> {
    pub simd: S,
    pub steps: &'a [Step],
    /// Number of vectors of all landmarks.
    pub vectors: usize,
    pub sums: &'a mut [S::u32s],
    /// `[level][vector]`, and the index of the first level of each category.
    pub tables: &'a [S::f32s],
    pub starts: &'a [usize],
}

impl<S: Simd, const KEPT: usize> TilePass<'_, S, KEPT> {
    /// Combines one tile of R rows with some panels and possibly a single vector. `first` is the
    /// index of their first vector.
    #[inline(always)]
    pub fn tile<T: Term, X: Extras, const R: usize>(
        &mut self,
        rows: Tile<'_, R>,
        first: usize,
        panels: &[[S::f32s; VECTORS]],
        last: &[[S::f32s; 1]],
        kept: Kept<'_, S>,
    ) {
        let Kept { min_distance, min_at, second } = kept;
        let never = self.simd.splat_f32s(f32::INFINITY);
        let mut nearest = Best::<S, R, KEPT> {
            d2: std::array::from_fn(|r| min_distance[r]),
            at: std::array::from_fn(|r| min_at[r]),
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
            min_distance[..R].copy_from_slice(&nearest.d2);
            min_at[..R].copy_from_slice(&nearest.at);
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
                if X::MISSING {
                    let flag = simd.splat_f32s(rows.present[k][r][copy]);
                    difference = simd.and_f32s(difference, flag);
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

impl<S: Simd, const KEPT: usize> TilePass<'_, S, KEPT> {
    /// Kernel values of a tile at every bandwidth, rounded to fixed point and summed over its rows.
    #[inline(always)]
    fn add<const R: usize, const V: usize>(&mut self, vector: usize, d2: &[[S::f32s; V]; R]) {
        let simd = self.simd;
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
            let total = &mut self.sums[rung * self.vectors + vector..][..V];
            for v in 0..V {
                let mut sum = fixed_point(simd, kappa[0][v]);
                for row in &kappa[1..] {
                    sum = simd.add_u32s(sum, fixed_point(simd, row[v]));
                }
                total[v] = simd.add_u32s(total[v], sum);
            }
        }
    }
}

/// The bits of κ + 1: those of 1.0 plus κ in units of 2⁻²³; see [`units`](super::scalar::units).
#[inline(always)]
fn fixed_point<S: Simd>(simd: S, kappa: S::f32s) -> S::u32s {
    simd.transmute_u32s_f32s(simd.add_f32s(kappa, simd.splat_f32s(1.0)))
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
