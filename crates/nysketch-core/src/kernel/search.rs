//! Search for the nearest landmark of every row. Computes only the distances from panels that may
//! contain it.
//!
//! A row is compared with the centres of all groups of [`panels`](super::panels), then with the
//! panels around the nearest centre. Groups that no bound excludes remain. When they are known for
//! all rows of a block, every group is compared with the rows for which it remains, so that it is
//! read only once. A sum of squares never decreases, in floating point too, so a panel is abandoned
//! before the last column if all its sums exceed the smallest distance so far.
//!
//! The search gives the index and distance of the scalar definition, bit for bit: distances are
//! computed with the operations of [`scalar`](super::scalar) in the same order, excluded landmarks
//! are strictly farther, and ties go to the first landmark.
//!
//! If a caller must prove that a landmark is the nearest despite the rounding of single precision,
//! it passes a [`Reach`]. The search then covers all landmarks within that reach, and keeps the
//! second smallest distance.
//!
//! Contributions of categories are not negative, so bounds on the numeric columns hold with
//! categories too. Rows with missing values are processed by the tiles. So are all rows for a while
//! if the bounds exclude too little.

use super::Kernel;
use super::left::{Left, Possible};
use super::levels::LevelTables;
use super::pack::{MAX_BLOCK, PackedRows, ROWS};
use super::panels::{FAR, PANEL, Panels, Slack, from_centres};
use super::row::Rows;
use super::tile::{Nearest, Squared, Term, Tiles};
use crate::numeric::points::Points;
use crate::numeric::simd::Instructions;
use pulp::{Simd, WithSimd};
use std::sync::{Arc, OnceLock};

/// Number of landmarks from which bounds may pay.
const MANY: usize = 512;
/// Approximate number of values of rows searched together, in blocks of [`MAX_BLOCK`] rows.
const TOGETHER: usize = 800;
/// Number of columns after which sums are checked, if as many columns remain.
const CHECK: usize = 2 * STEP;
/// Number of columns that are added without any check.
const STEP: usize = 8;
/// Cost of starting a panel, in columns.
const LOOK: usize = 48;
/// Share of the columns of all panels up to which the search is faster than the tiles, which
/// process each column faster.
const PAYS: f64 = 0.7;
/// Largest number of blocks of [`MAX_BLOCK`] rows that the tiles process before the next trial.
const LONGEST_WAIT: usize = 256;

/// Panels of fixed landmarks, created on first use.
#[derive(Debug, Default)]
pub struct PanelsOnce(OnceLock<Arc<Panels>>);

impl PanelsOnce {
    /// The panels, if there are enough landmarks.
    pub fn of(&self, landmarks: &Points, instructions: Instructions) -> Option<Arc<Panels>> {
        let new = || Arc::new(Panels::new(landmarks, instructions));
        (landmarks.len() >= MANY).then(|| self.0.get_or_init(new).clone())
    }
}

/// A clone starts empty, because its landmarks may be changed.
impl Clone for PanelsOnce {
    fn clone(&self) -> Self {
        Self::default()
    }
}

/// Always equal, because the panels follow from the landmarks.
impl PartialEq for PanelsOnce {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// Distance up to which a search must find landmarks.
pub trait Reach {
    /// Whether the search covers more than the nearest landmark, and keeps the second smallest
    /// distance.
    const FARTHER: bool;

    /// The squared distance up to which landmarks matter, if the nearest has this one.
    fn of(&self, nearest: f32) -> f32;
}

/// The nearest landmark only.
struct Nearer;

impl Reach for Nearer {
    const FARTHER: bool = false;

    fn of(&self, nearest: f32) -> f32 {
        nearest
    }
}

/// Finds nearest landmarks, by squared distance.
#[derive(Debug, Clone)]
pub struct Search {
    instructions: Instructions,
    dims: usize,
    tiles: Tiles,
    pruned: Option<Pruned>,
}

/// State of the search through panels.
#[derive(Debug, Clone)]
struct Pruned {
    panels: Arc<Panels>,
    slack: Slack,
    /// Contributions of levels, `[level][panel][lane]`, and the index of the first level of each
    /// category.
    tables: Vec<f32>,
    starts: Vec<usize>,
    packed_rows: PackedRows,
    /// Squared distances of the rows of a tile from all centres.
    squares: Vec<f32>,
    left: Left,
    found: Nearest,
    /// For every row of a block, the distance up to which landmarks matter, if it exceeds that of
    /// the nearest.
    limits: Vec<f32>,
    /// Number of columns of panels that rows were compared with, including equivalent work.
    work: usize,
    /// Whether the search was faster than the tiles in the last trial. If not, `skip` rows go
    /// through the tiles before the next trial, out of `wait` in total.
    pays: bool,
    skip: usize,
    wait: usize,
}

impl Search {
    /// A search among landmarks, through `panels` if given.
    pub fn new(
        landmarks: &Points,
        tables: Option<&LevelTables>,
        panels: Option<Arc<Panels>>,
        instructions: Instructions,
    ) -> Self {
        let tiles = Tiles::new(landmarks, Kernel::Gaussian, None, instructions).with_levels(tables);
        let pruned = panels.map(|panels| Pruned {
            slack: Slack::new(landmarks.dims()),
            tables: tables.map_or(Vec::new(), |tables| tables.arranged(panels.places())),
            starts: tables.map_or(Vec::new(), |tables| tables.starts().to_vec()),
            packed_rows: PackedRows::new(landmarks.dims()),
            squares: vec![0.0; ROWS * panels.line()],
            left: Left::default(),
            found: Nearest::default(),
            limits: Vec::new(),
            work: 0,
            pays: false,
            skip: 0,
            wait: 0,
            panels,
        });
        Search { instructions, dims: landmarks.dims(), tiles, pruned }
    }

    /// Best number of rows to search together.
    pub fn rows(&self) -> usize {
        match &self.pruned {
            Some(_) => (TOGETHER / self.dims).clamp(1, 16) * MAX_BLOCK,
            None => MAX_BLOCK,
        }
    }

    /// Finds the nearest landmark of every row.
    pub fn block<'r>(&mut self, rows: impl Into<Rows<'r>>, nearest: &mut Nearest) {
        self.within(rows.into(), &Nearer, nearest);
    }

    /// As [`block`](Self::block), with a lower bound on the distance of all other landmarks: the
    /// second smallest distance, or the reach if that is smaller.
    pub fn block_two<'r>(
        &mut self,
        rows: impl Into<Rows<'r>>,
        reach: &impl Reach,
        nearest: &mut Nearest,
    ) {
        self.within(rows.into(), reach, nearest);
    }

    fn within<R: Reach>(&mut self, rows: Rows<'_>, reach: &R, nearest: &mut Nearest) {
        nearest.clear();
        let all = rows.z.len() / self.dims;
        let mut from = 0;
        while from < all {
            let (to, pruned) = match &mut self.pruned {
                Some(pruned) if rows.present.is_empty() => pruned.next(from, all),
                _ => (all, false),
            };
            let some = rows.part(from..to, self.dims, self.tiles.categories());
            match &mut self.pruned {
                Some(this) if pruned => this.search(some, reach, nearest, self.instructions),
                _ if R::FARTHER => self.tiles.nearest_two(some, nearest),
                _ => self.tiles.nearest(some, nearest),
            }
            from = to;
        }
    }
}

impl Pruned {
    /// The end of the next range of rows that are searched in the same way, and whether it is
    /// searched in panels.
    fn next(&mut self, from: usize, all: usize) -> (usize, bool) {
        match (self.pays, self.skip) {
            (true, _) => (all, true),
            // A trial.
            (false, 0) => (all.min(from + MAX_BLOCK), true),
            (false, skip) => {
                let to = all.min(from + skip);
                self.skip -= to - from;
                (to, false)
            }
        }
    }

    fn search<R: Reach>(
        &mut self,
        rows: Rows<'_>,
        reach: &R,
        nearest: &mut Nearest,
        instructions: Instructions,
    ) {
        self.found.clear();
        self.limits.clear();
        self.work = 0;
        instructions.dispatch(SearchBlock { pruned: self, rows, reach });
        nearest.index.extend_from_slice(&self.found.index);
        nearest.distance.extend_from_slice(&self.found.distance);
        let seconds = self.found.second.iter().zip(&self.limits);
        nearest.second.extend(seconds.map(|(second, limit)| second.min(*limit)));
        let n = self.found.index.len();
        let columns = self.panels.packed().len() / PANEL;
        let dims = columns / self.panels.panels();
        // Comparing a row with centres costs as much as comparing it with landmarks, plus the
        // bounds.
        self.work += n * self.panels.groups() * (dims / PANEL + LOOK / PANEL);
        self.pays = (self.work as f64) < PAYS * (n * columns) as f64;
        // A small number of rows gives no reliable measurement.
        if self.pays {
            self.wait = 0;
        } else if n >= MAX_BLOCK / 2 {
            self.wait = (2 * self.wait).clamp(4 * MAX_BLOCK, LONGEST_WAIT * MAX_BLOCK);
            self.skip = self.wait;
        }
    }
}

struct SearchBlock<'a, R: Reach> {
    pruned: &'a mut Pruned,
    rows: Rows<'a>,
    reach: &'a R,
}

impl<R: Reach> WithSimd for SearchBlock<'_, R> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        // As many parallel sums as needed to hide the latency of one.
        match S::F32_LANES {
            16 => self.run::<S, 1, 4>(simd),
            8 => self.run::<S, 2, 4>(simd),
            4 => self.run::<S, 4, 2>(simd),
            _ => self.run::<S, PANEL, 1>(simd),
        }
    }
}

impl<R: Reach> SearchBlock<'_, R> {
    /// Searches panels of V vectors, with N panels or N rows at a time.
    #[inline(always)]
    fn run<S: Simd, const V: usize, const N: usize>(self, simd: S) {
        let Pruned {
            panels,
            slack,
            tables,
            starts,
            packed_rows,
            squares,
            left,
            found,
            limits,
            work,
            ..
        } = self.pruned;
        let panels: &Panels = panels;
        let (packed, _) = vectors::<S>(panels.packed()).as_chunks::<V>();
        let (tables, _) = vectors::<S>(tables).as_chunks::<V>();
        let Self { rows, reach, .. } = self;
        let mut search = PanelSearch::<S, V, R> {
            simd,
            panels,
            packed,
            tables,
            starts,
            rows,
            nearest: found,
            reach,
            limits,
            work,
        };
        let line = panels.line();
        left.clear();
        packed_rows.pack(rows.z);
        let mut row = 0;
        for numbers in packed_rows.tiles() {
            from_centres(simd, panels.centres(), numbers, squares);
            for r in 0..ROWS {
                search.begin::<N>(row + r, &squares[r * line..(r + 1) * line], *slack, left);
            }
            row += ROWS;
        }
        for numbers in packed_rows.singles() {
            from_centres(simd, panels.centres(), numbers, &mut squares[..line]);
            search.begin::<N>(row, &squares[..line], *slack, left);
            row += 1;
        }
        left.sort(panels.groups());
        for group in 0..panels.groups() {
            search.finish::<N>(group, left.of_group(group));
        }
    }
}

struct PanelSearch<'a, S: Simd, const V: usize, F: Reach> {
    simd: S,
    panels: &'a Panels,
    packed: &'a [[S::f32s; V]],
    /// `[level][panel]`, and the index of the first level of each category.
    tables: &'a [[S::f32s; V]],
    starts: &'a [usize],
    rows: Rows<'a>,
    /// The nearest landmarks so far.
    nearest: &'a mut Nearest,
    reach: &'a F,
    limits: &'a mut Vec<f32>,
    work: &'a mut usize,
}

impl<S: Simd, const V: usize, F: Reach> PanelSearch<'_, S, V, F> {
    /// The squared distance up to which landmarks matter for a row.
    #[inline(always)]
    fn limit(&self, row: usize) -> f32 {
        if F::FARTHER { self.limits[row] } else { self.nearest.distance[row] }
    }

    /// Compares a row with the panels around its nearest centre, and records the groups that
    /// remain. `squares` are its squared distances from all centres.
    #[inline(always)]
    fn begin<const P: usize>(
        &mut self,
        row: usize,
        squares: &[f32],
        slack: Slack,
        left: &mut Left,
    ) {
        let simd = self.simd;
        self.nearest.index.push(0);
        self.nearest.distance.push(f32::INFINITY);
        if F::FARTHER {
            self.nearest.second.push(f32::INFINITY);
            self.limits.push(f32::INFINITY);
        }
        let own = place_of_least(simd, squares).min(self.panels.groups() - 1);
        let first = self.panels.first(own);
        for some in first.chunks(P) {
            let at = std::array::from_fn(|p| some[p.min(some.len() - 1)]);
            self.look::<1, P>([row], at, some.len());
        }
        let limit = self.limit(row);
        let near = simd.splat_f32s(-slack.above(squares[own]));
        let shrink = simd.splat_f32s(slack.shrink());
        let least = simd.splat_f32s(slack.least());
        let (far, zero) = (simd.splat_f32s(FAR), simd.splat_f32s(0.0));
        let (farthest, inverse) = self.panels.bounds(own);
        let bounds = vectors::<S>(squares).iter().zip(vectors::<S>(farthest));
        for (at, ((square, farthest), inverse)) in bounds.zip(vectors::<S>(inverse)).enumerate() {
            let difference = simd.mul_add_f32s(simd.min_f32s(*square, far), shrink, near);
            let bound = simd.mul_f32s(simd.sub_f32s(difference, *farthest), *inverse);
            // NaN excludes nothing.
            let bound = simd.max_f32s(simd.sub_f32s(bound, least), zero);
            let bound = simd.mul_f32s(simd.mul_f32s(bound, bound), shrink);
            let excluded = simd.less_than_f32s(simd.splat_f32s(limit), bound);
            if has_any(simd, simd.not_m32s(excluded)) {
                let mut lanes = [0.0; PANEL];
                S::as_mut_simd_f32s(&mut lanes).0[0] = bound;
                left.add(row, at * S::F32_LANES, &lanes[..S::F32_LANES], limit);
            }
        }
    }

    /// Compares a group's panels with the rows for which the group remains.
    #[inline(always)]
    fn finish<const R: usize>(&mut self, group: usize, left: &[Possible]) {
        let (mut rows, mut count) = ([0; R], 0);
        for (i, possible) in left.iter().enumerate() {
            let row = possible.row as usize;
            rows[count] = row;
            count += usize::from(!(possible.square > self.limit(row)));
            if count == R || count > 0 && i + 1 == left.len() {
                // Unused slots repeat the last row, which changes nothing.
                let some = std::array::from_fn(|r| rows[r.min(count - 1)]);
                for panel in self.panels.of_group(group) {
                    self.look::<R, 1>(some, [panel], count);
                }
                count = 0;
            }
        }
    }

    /// Compares rows with panels, of which `count` pairs are distinct.
    #[inline(always)]
    fn look<const R: usize, const P: usize>(
        &mut self,
        rows: [usize; R],
        panels: [usize; P],
        count: usize,
    ) {
        let Some(sums) = self.measure(rows, panels, count) else { return };
        let (simd, never) = (self.simd, self.simd.splat_f32s(f32::INFINITY));
        for (row, sums) in rows.iter().zip(&sums) {
            if R > 1 && all_beyond(simd, sums, self.limit(*row)) {
                continue;
            }
            let (index, distance) =
                (&mut self.nearest.index[*row], &mut self.nearest.distance[*row]);
            let before = *distance;
            let least = simd.reduce_min_f32s(least_of(simd, sums));
            let value = simd.splat_f32s(least);
            let mut first = never;
            for (panel, sums) in panels.iter().zip(sums) {
                let places = &self.panels.places()[panel * PANEL..(panel + 1) * PANEL];
                for (place, sum) in vectors::<S>(places).iter().zip(sums) {
                    let here = simd.select_f32s(simd.equal_f32s(*sum, value), *place, never);
                    first = simd.min_f32s(first, here);
                }
            }
            let first = simd.reduce_min_f32s(first) as u32;
            let nearer = least < *distance || least == *distance && first < *index;
            if nearer {
                (*index, *distance) = (first, least);
            }
            if F::FARTHER {
                // A row, panel or landmark may occur twice, so the second smallest is taken over
                // all landmarks except the nearest.
                let (nearest, other) = (*index as f32, if nearer { before } else { f32::INFINITY });
                let second = self.second_of(nearest, panels, sums).min(other);
                self.nearest.second[*row] = self.nearest.second[*row].min(second);
                self.limits[*row] = self.reach.of(self.nearest.distance[*row]);
            }
        }
    }

    /// The smallest sum of panels, except that of one landmark.
    #[inline(always)]
    fn second_of<const P: usize>(
        &self,
        but: f32,
        panels: [usize; P],
        sums: &[[S::f32s; V]; P],
    ) -> f32 {
        let (simd, never) = (self.simd, self.simd.splat_f32s(f32::INFINITY));
        let (but, mut least) = (simd.splat_f32s(but), never);
        for (panel, sums) in panels.iter().zip(sums) {
            let places = &self.panels.places()[panel * PANEL..(panel + 1) * PANEL];
            for (place, sum) in vectors::<S>(places).iter().zip(sums) {
                let other = simd.select_f32s(simd.equal_f32s(*place, but), never, *sum);
                least = simd.min_f32s(least, other);
            }
        }
        simd.reduce_min_f32s(least)
    }

    /// Squared distances of rows from the landmarks of panels, `[row][panel]`, or `None` if all
    /// exceed the limit of their row.
    #[inline(always)]
    fn measure<const R: usize, const P: usize>(
        &mut self,
        rows: [usize; R],
        panels: [usize; P],
        count: usize,
    ) -> Option<[[[S::f32s; V]; P]; R]> {
        let simd = self.simd;
        let d = self.packed.len() / self.panels.panels();
        let mut sums = [[[simd.splat_f32s(0.0); V]; P]; R];
        let x: [_; R] = std::array::from_fn(|r| {
            self.rows.z[rows[r] * d..(rows[r] + 1) * d].as_chunks::<STEP>()
        });
        let z: [_; P] = std::array::from_fn(|p| {
            self.packed[panels[p] * d..(panels[p] + 1) * d].as_chunks::<STEP>()
        });
        for step in 0..d / STEP {
            let x: [&[f32; STEP]; R] = std::array::from_fn(|r| &x[r].0[step]);
            let z: [&[[S::f32s; V]; STEP]; P] = std::array::from_fn(|p| &z[p].0[step]);
            for k in 0..STEP {
                let x: [f32; R] = std::array::from_fn(|r| x[r][k]);
                let z: [[S::f32s; V]; P] = std::array::from_fn(|p| z[p][k]);
                add_column(simd, x, z, &mut sums);
            }
            let done = (step + 1) * STEP;
            if done.is_multiple_of(CHECK) && done + CHECK <= d && self.all_beyond(rows, &sums) {
                *self.work += count * (done + LOOK);
                return None;
            }
        }
        for k in 0..d % STEP {
            let x: [f32; R] = std::array::from_fn(|r| x[r].1[k]);
            let z: [[S::f32s; V]; P] = std::array::from_fn(|p| z[p].1[k]);
            add_column(simd, x, z, &mut sums);
        }
        *self.work += count * (d + LOOK);
        self.add_levels(rows, panels, &mut sums);
        (!self.all_beyond(rows, &sums)).then_some(sums)
    }

    /// Whether all sums exceed the limit of their row.
    #[inline(always)]
    fn all_beyond<const R: usize, const P: usize>(
        &self,
        rows: [usize; R],
        sums: &[[[S::f32s; V]; P]; R],
    ) -> bool {
        let mut within = false;
        for r in 0..R {
            within |= !all_beyond(self.simd, &sums[r], self.limit(rows[r]));
        }
        !within
    }

    /// Adds the contributions of the rows' levels, in the order of the categories.
    #[inline(always)]
    fn add_levels<const R: usize, const P: usize>(
        &self,
        rows: [usize; R],
        panels: [usize; P],
        sums: &mut [[[S::f32s; V]; P]; R],
    ) {
        for (c, start) in self.starts.iter().enumerate() {
            for r in 0..R {
                let level = start + self.rows.codes[rows[r] * self.starts.len() + c] as usize;
                for p in 0..P {
                    let entries = &self.tables[level * self.panels.panels() + panels[p]];
                    for v in 0..V {
                        sums[r][p][v] = self.simd.add_f32s(sums[r][p][v], entries[v]);
                    }
                }
            }
        }
    }
}

/// Adds the contribution of a column to the squared distances of rows from the landmarks of panels.
#[inline(always)]
fn add_column<S: Simd, const V: usize, const P: usize, const R: usize>(
    simd: S,
    x: [f32; R],
    z: [[S::f32s; V]; P],
    sums: &mut [[[S::f32s; V]; P]; R],
) {
    for r in 0..R {
        for p in 0..P {
            for v in 0..V {
                let difference = simd.sub_f32s(z[p][v], simd.splat_f32s(x[r]));
                sums[r][p][v] = Squared::add(simd, sums[r][p][v], difference);
            }
        }
    }
}

/// Views a slice of whole vectors as vectors.
#[inline(always)]
fn vectors<S: Simd>(values: &[f32]) -> &[S::f32s] {
    S::as_simd_f32s(values).0
}

/// Index of the smallest value.
#[inline(always)]
fn place_of_least<S: Simd>(simd: S, values: &[f32]) -> usize {
    let mut least = simd.splat_f32s(f32::INFINITY);
    let mut least_at = simd.splat_f32s(0.0);
    for (at, value) in vectors::<S>(values).iter().enumerate() {
        let closer = simd.less_than_f32s(*value, least);
        least = simd.select_f32s(closer, *value, least);
        least_at = simd.select_f32s(closer, simd.splat_f32s(at as f32), least_at);
    }
    let (mut lanes, mut lanes_at) = ([f32::INFINITY; PANEL], [0.0; PANEL]);
    S::as_mut_simd_f32s(&mut lanes).0[0] = least;
    S::as_mut_simd_f32s(&mut lanes_at).0[0] = least_at;
    let mut first = 0;
    for lane in 1..S::F32_LANES {
        if lanes[lane] < lanes[first] {
            first = lane;
        }
    }
    lanes_at[first] as usize * S::F32_LANES + first
}

/// The smallest sum in each lane.
#[inline(always)]
fn least_of<S: Simd, const V: usize, const P: usize>(simd: S, sums: &[[S::f32s; V]; P]) -> S::f32s {
    let mut least = sums[0][0];
    for sum in sums.as_flattened() {
        least = simd.min_f32s(least, *sum);
    }
    least
}

/// Whether all sums are greater than a limit.
#[inline(always)]
fn all_beyond<S: Simd, const V: usize, const P: usize>(
    simd: S,
    sums: &[[S::f32s; V]; P],
    limit: f32,
) -> bool {
    let within = simd.less_than_or_equal_f32s(least_of(simd, sums), simd.splat_f32s(limit));
    !has_any(simd, within)
}

/// Whether any lane of a mask is true.
#[inline(always)]
fn has_any<S: Simd>(simd: S, mask: S::m32s) -> bool {
    // The index of the lane found depends on the instruction set.
    simd.first_true_m32s(mask) < S::F32_LANES
}

#[cfg(test)]
mod tests {
    use super::super::scalar;
    use super::*;
    use proptest::prelude::*;

    /// Points of one of several kinds: spread out, in clusters, on a grid with many equal
    /// distances, far from the origin, tiny, huge, with outliers, and mostly equal.
    fn points(kind: u8, n: usize, d: usize, next: &mut impl FnMut() -> u64) -> Vec<f32> {
        let mut unit = || (next() >> 40) as f32 / (1 << 23) as f32 - 1.0;
        let mut all = Vec::with_capacity(n * d);
        for i in 0..n {
            // Centres of clusters do not depend on the other points.
            let centre = crate::rows::sample::mix(i as u64 % 7);
            for k in 0..d {
                let c =
                    (crate::rows::sample::mix(centre ^ k as u64) >> 40) as f32 / (1 << 20) as f32;
                all.push(match kind {
                    0 => unit(),
                    1 => c + 0.1 * unit(),
                    2 => (unit() * 1.5).round(),
                    3 => 1e6 + unit(),
                    4 => 1e-22 * (c + unit()),
                    5 => 1e18 * (c + unit()),
                    6 => c + 1e-6 * unit(),
                    7 if i % 50 == 3 => 1e10 * unit(),
                    7 => unit() * 1e-3,
                    _ => f32::from(i % 40 == 0),
                });
            }
        }
        all
    }

    /// Up to 1.25 times the distance of the nearest.
    struct Quarter;

    impl Reach for Quarter {
        const FARTHER: bool = true;

        fn of(&self, nearest: f32) -> f32 {
            1.25 * nearest
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(160))]
        /// The search gives the index and distance of the scalar definition for any points, groups
        /// and instruction sets.
        #[test]
        fn nearest_landmarks_are_those_of_the_definition(
            d in prop::sample::select(vec![1usize, 2, 3, 5, 8, 17, 40, 100]),
            m in 1usize..1500,
            n in 1usize..60,
            kinds in (0u8..9, 0u8..9),
            most in prop::sample::select(vec![1usize, 3, 20, 4096]),
            levels in prop::collection::vec(1usize..4, 0..3),
            seed in any::<u64>(),
        ) {
            let mut state = seed;
            let mut next = || { state = crate::rows::sample::mix(state); state };
            let landmarks = Points::new(d, points(kinds.0, m, d, &mut next));
            let mut rows = points(if next() % 3 > 0 { kinds.0 } else { kinds.1 }, n, d, &mut next);
            // Some rows equal landmarks, some are invalid.
            for i in (0..n).step_by(5) {
                let j = next() as usize % m;
                rows[i * d..(i + 1) * d].copy_from_slice(landmarks.row(j));
            }
            if seed % 8 == 0 {
                rows[next() as usize % (n * d)] = [f32::NAN, f32::INFINITY, f32::MAX][seed as usize / 8 % 3];
            }
            let codes: Vec<u32> = (0..n).flat_map(|_| levels.clone()).map(|l| (next() % l as u64) as u32).collect();
            let entry = |c: usize, l: usize, j: usize| if (c + l + j).is_multiple_of(3) { 0.0 } else { 0.5 };
            let tables = (!levels.is_empty()).then(|| LevelTables::new(m, &levels, entry));
            let given = Rows { z: &rows, codes: &codes, present: &[] };
            for set in Instructions::all() {
                let panels = Arc::new(Panels::in_groups(&landmarks, most, set));
                let mut search = Search::new(&landmarks, tables.as_ref(), Some(panels), set);
                let mut found = Nearest::default();
                search.block(given, &mut found);
                for i in 0..n {
                    let expected = scalar::nearest(Kernel::Gaussian, given.row(i, d, levels.len()), &landmarks, tables.as_ref());
                    prop_assert_eq!((found.index[i], found.distance[i]), expected, "row {} with {}", i, set.name());
                }
                // The second smallest distance, up to the reach.
                let mut two = Nearest::default();
                search.block_two(given, &Quarter, &mut two);
                let mut all = Nearest::default();
                Search::new(&landmarks, tables.as_ref(), None, set).block_two(given, &Quarter, &mut all);
                for i in 0..n {
                    prop_assert_eq!((two.index[i], two.distance[i]), (found.index[i], found.distance[i]));
                    let (second, reach) = (all.second[i], Quarter.of(two.distance[i]));
                    let known = two.second[i] == second || second >= reach && two.second[i] == reach;
                    prop_assert!(known || two.distance[i].is_nan(), "row {}: {} of {}", i, two.second[i], second);
                }
            }
        }
    }
}
