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
//! it passes a [`Reach`]. The search then covers all landmarks up to that distance, and keeps
//! the second smallest distance.
//!
//! Contributions of categories are not negative, so bounds on the numeric columns hold with
//! categories too. Rows with missing values are processed by the tiles. So are all rows for a while
//! if the bounds exclude too little.

use super::Kernel;
use super::left::Left;
use super::levels::LevelTables;
use super::pack::{MAX_BLOCK, PackedRows, ROWS};
use super::panel_search::{LOOK, PanelSearch, vectors};
use super::panels::{PANEL, Panels, Slack, from_centres};
use super::row::Rows;
use super::tile::{Nearest, Tiles};
use crate::numeric::points::Points;
use crate::numeric::simd::Instructions;
use pulp::{Simd, WithSimd};
use std::sync::{Arc, OnceLock};

/// Number of landmarks from which bounds may pay.
const MANY: usize = 512;
/// Approximate number of values of rows searched together, in blocks of [`MAX_BLOCK`] rows.
const TOGETHER: usize = 800;
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
        if landmarks.len() < MANY {
            return None;
        }
        let panels = self.0.get_or_init(|| Arc::new(Panels::new(landmarks, instructions)));
        Some(panels.clone())
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
    /// second smallest distance, or the limit of the search if that is smaller.
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
        if self.pays {
            return (all, true);
        }
        if self.skip == 0 {
            // A trial.
            return (all.min(from + MAX_BLOCK), true);
        }
        let to = all.min(from + self.skip);
        self.skip -= to - from;
        (to, false)
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

#[cfg(test)]
mod tests {
    use super::super::scalar;
    use super::*;
    use crate::numeric::random::Hashes;
    use crate::rows::sample::mix;
    use proptest::prelude::*;

    /// A number within ±1.
    fn unit(hashes: &mut Hashes) -> f32 {
        (hashes.draw() >> 40) as f32 / (1 << 23) as f32 - 1.0
    }

    /// Points of one of several kinds: spread out, in clusters, on a grid with many equal
    /// distances, far from the origin, tiny, huge, with outliers, and mostly equal.
    fn points(kind: u8, n: usize, d: usize, hashes: &mut Hashes) -> Vec<f32> {
        let mut all = Vec::with_capacity(n * d);
        for i in 0..n {
            // Centres of clusters do not depend on the other points.
            let centre = mix(i as u64 % 7);
            for k in 0..d {
                let c = (mix(centre ^ k as u64) >> 40) as f32 / (1 << 20) as f32;
                all.push(match kind {
                    0 => unit(hashes),
                    1 => c + 0.1 * unit(hashes),
                    2 => (unit(hashes) * 1.5).round(),
                    3 => 1e6 + unit(hashes),
                    4 => 1e-22 * (c + unit(hashes)),
                    5 => 1e18 * (c + unit(hashes)),
                    6 => c + 1e-6 * unit(hashes),
                    7 if i % 50 == 3 => 1e10 * unit(hashes),
                    7 => unit(hashes) * 1e-3,
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
            max_groups in prop::sample::select(vec![1usize, 3, 20, 4096]),
            levels in prop::collection::vec(1usize..4, 0..3),
            seed in any::<u64>(),
        ) {
            let mut hashes = Hashes(seed);
            let landmarks = Points::new(d, points(kinds.0, m, d, &mut hashes));
            let kind = if hashes.draw().is_multiple_of(3) { kinds.1 } else { kinds.0 };
            let mut rows = points(kind, n, d, &mut hashes);
            // Some rows equal landmarks, some are invalid.
            for i in (0..n).step_by(5) {
                let j = hashes.draw() as usize % m;
                rows[i * d..(i + 1) * d].copy_from_slice(landmarks.row(j));
            }
            if seed % 8 == 0 {
                let invalid = [f32::NAN, f32::INFINITY, f32::MAX][seed as usize / 8 % 3];
                rows[hashes.draw() as usize % (n * d)] = invalid;
            }
            let mut codes = Vec::new();
            for _ in 0..n {
                codes.extend(levels.iter().map(|l| (hashes.draw() % *l as u64) as u32));
            }
            let tables = LevelTables::new(m, &levels, |c, l, j| {
                if (c + l + j).is_multiple_of(3) { 0.0 } else { 0.5 }
            });
            let tables = Some(tables).filter(|_| !levels.is_empty());
            let given = Rows { z: &rows, codes: &codes, present: &[] };
            for set in Instructions::all() {
                let panels = Arc::new(Panels::in_groups(&landmarks, max_groups, set));
                let mut search = Search::new(&landmarks, tables.as_ref(), Some(panels), set);
                let mut found = Nearest::default();
                search.block(given, &mut found);
                for i in 0..n {
                    let row = given.row(i, d, levels.len());
                    let expected =
                        scalar::nearest(Kernel::Gaussian, row, &landmarks, tables.as_ref());
                    let found = (found.index[i], found.distance[i]);
                    prop_assert_eq!(found, expected, "row {} with {}", i, set.name());
                }
                // The second smallest distance, up to 1.25 times the smallest.
                let mut two = Nearest::default();
                search.block_two(given, &Quarter, &mut two);
                let mut all = Nearest::default();
                let mut tiles = Search::new(&landmarks, tables.as_ref(), None, set);
                tiles.block_two(given, &Quarter, &mut all);
                prop_assert_eq!((&two.index, &two.distance), (&found.index, &found.distance));
                for i in 0..n {
                    let (second, found, limit) =
                        (all.second[i], two.second[i], Quarter.of(two.distance[i]));
                    let known = found == second || second >= limit && found == limit;
                    prop_assert!(known || limit.is_nan(), "row {i}: {found} of {second}");
                }
            }
        }
    }
}
