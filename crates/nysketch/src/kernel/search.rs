//! The nearest landmark of every row, without the distances of all: those of panels that may hold it.
//!
//! A row is compared with the centres of all groups of [`panels`](super::panels), then with the panels around the
//! nearest centre, then with those that no bound excludes, several at a time. A sum of squares only grows, in
//! floating point too, so panels whose sums are all beyond the nearest so far are left before the last column.
//! What is computed of a landmark are the operations of [`scalar`](super::scalar) in their order, what is left out
//! is farther beyond doubt, and of landmarks as near the first counts: index and distance are those of the scalar
//! definition, bit for bit.
//!
//! What categories add is not negative, so bounds on the numbers hold with categories. Rows with holes go through
//! the tiles, and so do all rows for a while where bounds exclude too little.

use super::Kernel;
use super::levels::LevelTables;
use super::pack::{PackedRows, ROWS};
use super::panels::{FAR, PANEL, Panels, Slack, from_centres};
use super::row::Rows;
use super::tile::{Nearest, Squared, Term, Tiles};
use crate::points::Points;
use crate::simd::Instructions;
use pulp::{Simd, WithSimd};
use std::sync::{Arc, OnceLock};

/// Landmarks from which on bounds may pay.
const MANY: usize = 512;
/// Columns after which sums are looked at, where as many are left.
const CHECK: usize = 16;
/// Share of all work from which on the tiles are faster.
const PAYS: f64 = 0.5;
/// Most blocks that go through the tiles before bounds are tried again.
const LONGEST_WAIT: u32 = 63;

/// Panels of landmarks that do not change, made when they are first asked for.
#[derive(Debug, Default)]
pub struct PanelsOnce(OnceLock<Arc<Panels>>);

impl PanelsOnce {
    /// The panels, where there are landmarks enough.
    pub fn of(&self, landmarks: &Points, instructions: Instructions) -> Option<Arc<Panels>> {
        let new = || Arc::new(Panels::new(landmarks, instructions));
        (landmarks.len() >= MANY).then(|| self.0.get_or_init(new).clone())
    }
}

/// A copy may get other landmarks.
impl Clone for PanelsOnce {
    fn clone(&self) -> Self {
        Self::default()
    }
}

/// They follow from the landmarks.
impl PartialEq for PanelsOnce {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// Finds nearest landmarks, in squared distances.
#[derive(Debug, Clone)]
pub struct Search {
    instructions: Instructions,
    tiles: Tiles,
    pruned: Option<Pruned>,
}

/// What the search through panels needs.
#[derive(Debug, Clone)]
struct Pruned {
    panels: Arc<Panels>,
    slack: Slack,
    /// What levels add, `[level][panel][lane]`, and the first level of each category.
    tables: Vec<f32>,
    starts: Vec<usize>,
    packed_rows: PackedRows,
    /// Squared distances of the rows of a tile from all centres.
    squares: Vec<f32>,
    /// Columns of panels that rows were compared with.
    columns: u64,
    /// Blocks that go through the tiles before the next try, and how many did so the last time.
    skip: u32,
    wait: u32,
}

impl Search {
    /// A search among landmarks, through `panels` of them where there are some.
    pub fn new(
        landmarks: &Points,
        tables: Option<&LevelTables>,
        panels: Option<Arc<Panels>>,
        instructions: Instructions,
    ) -> Self {
        let tiles = Tiles::new(landmarks, Kernel::Gaussian, None, instructions);
        let tiles = match tables {
            Some(tables) => tiles.with_levels(tables),
            None => tiles,
        };
        let pruned = panels.map(|panels| Pruned {
            slack: Slack::new(landmarks.dims()),
            tables: tables.map_or(Vec::new(), |tables| tables.arranged(panels.places())),
            starts: tables.map_or(Vec::new(), |tables| tables.starts().to_vec()),
            packed_rows: PackedRows::new(landmarks.dims()),
            squares: vec![0.0; ROWS * panels.line()],
            columns: 0,
            skip: 0,
            wait: 0,
            panels,
        });
        Search { instructions, tiles, pruned }
    }

    /// Finds the nearest landmark of at most [`MAX_BLOCK`](super::pack::MAX_BLOCK) rows.
    pub fn block<'r>(&mut self, rows: impl Into<Rows<'r>>, nearest: &mut Nearest) {
        let rows = rows.into();
        match &mut self.pruned {
            Some(pruned) if rows.present.is_empty() && pruned.skip == 0 => {
                pruned.block(rows, nearest, self.instructions);
            }
            pruned => {
                if let Some(pruned) = pruned {
                    pruned.skip = pruned.skip.saturating_sub(1);
                }
                self.tiles.block(rows, Some(nearest), |_, _, _| {});
            }
        }
    }
}

impl Pruned {
    fn block(&mut self, rows: Rows<'_>, nearest: &mut Nearest, instructions: Instructions) {
        nearest.index.clear();
        nearest.distance.clear();
        nearest.second.clear();
        self.columns = 0;
        instructions.dispatch(SearchBlock { pruned: self, rows, nearest });
        let all = nearest.index.len() * self.panels.packed().len() / PANEL;
        // Few rows say little.
        if nearest.index.len() >= ROWS * ROWS {
            let pays = (self.columns as f64) < PAYS * all as f64;
            self.wait = if pays { 0 } else { (2 * self.wait + 1).min(LONGEST_WAIT) };
            self.skip = self.wait;
        }
    }
}

struct SearchBlock<'a> {
    pruned: &'a mut Pruned,
    rows: Rows<'a>,
    nearest: &'a mut Nearest,
}

impl WithSimd for SearchBlock<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        // As many sums side by side as hide the time that one takes.
        match S::F32_LANES {
            16 => self.run::<S, 1, 4>(simd),
            8 => self.run::<S, 2, 4>(simd),
            4 => self.run::<S, 4, 2>(simd),
            _ => self.run::<S, PANEL, 1>(simd),
        }
    }
}

impl SearchBlock<'_> {
    /// P panels of V vectors at a time.
    #[inline(always)]
    fn run<S: Simd, const V: usize, const P: usize>(self, simd: S) {
        let Pruned { panels, slack, tables, starts, packed_rows, squares, columns, .. } =
            self.pruned;
        let (packed, _) = S::as_simd_f32s(panels.packed());
        let (packed, _) = packed.as_chunks::<V>();
        let (tables, _) = S::as_simd_f32s(tables);
        let (tables, _) = tables.as_chunks::<V>();
        let mut search =
            PanelSearch::<S, V> { simd, panels, slack: *slack, packed, tables, starts, columns };
        let (d, c) = (packed.len() / panels.panels(), starts.len());
        let line = panels.line();
        packed_rows.pack(self.rows.z);
        for (tile, numbers) in packed_rows.tiles().enumerate() {
            from_centres(simd, panels.centres(), numbers, squares);
            for r in 0..ROWS {
                let row = self.rows.row(tile * ROWS + r, d, c);
                search.row::<P>(row, &squares[r * line..(r + 1) * line], self.nearest);
            }
        }
        for numbers in packed_rows.singles() {
            from_centres(simd, panels.centres(), numbers, &mut squares[..line]);
            let row = self.rows.row(self.nearest.index.len(), d, c);
            search.row::<P>(row, &squares[..line], self.nearest);
        }
    }
}

/// The nearest landmark so far.
#[derive(Clone, Copy)]
struct Found {
    index: u32,
    distance: f32,
}

struct PanelSearch<'a, S: Simd, const V: usize> {
    simd: S,
    panels: &'a Panels,
    slack: Slack,
    packed: &'a [[S::f32s; V]],
    /// `[level][panel]`, and the first level of each category.
    tables: &'a [[S::f32s; V]],
    starts: &'a [usize],
    columns: &'a mut u64,
}

/// Panels that wait until there are P.
struct Waiting<const P: usize> {
    panels: [usize; P],
    count: usize,
}

impl<S: Simd, const V: usize> PanelSearch<'_, S, V> {
    /// Adds the nearest landmark of a row whose squared distances from all centres are known.
    #[inline(always)]
    fn row<const P: usize>(&mut self, row: Rows<'_>, squares: &[f32], nearest: &mut Nearest) {
        let simd = self.simd;
        let mut best = Found { index: 0, distance: f32::INFINITY };
        let mut waiting = Waiting::<P> { panels: [0; P], count: 0 };
        let own = place_of_least(simd, squares).min(self.panels.groups() - 1);
        for group in self.panels.first(own) {
            self.add_group(row, *group as usize, &mut waiting, &mut best);
        }
        self.look(row, &mut waiting, &mut best);

        let slack = self.slack;
        let near = simd.splat_f32s(-slack.square_above(squares[own]));
        let (shrink, far) = (simd.splat_f32s(slack.shrink()), simd.splat_f32s(FAR));
        // Of rows too far away nothing is excluded.
        let nothing = if squares[own] <= FAR { 0.0 } else { f32::INFINITY };
        let mut so_far = best.distance;
        let mut beyond = slack.distance_above(so_far) + nothing;
        let (farthest, inverse) = self.panels.bounds(own);
        let bounds = vectors::<S>(squares).iter().zip(vectors::<S>(farthest));
        for (at, ((square, farthest), inverse)) in bounds.zip(vectors::<S>(inverse)).enumerate() {
            let difference = simd.mul_add_f32s(simd.min_f32s(*square, far), shrink, near);
            let bound = simd.mul_f32s(simd.sub_f32s(difference, *farthest), *inverse);
            // What is not a number excludes nothing.
            let excluded = simd.less_than_f32s(simd.splat_f32s(beyond), bound);
            if !has_any(simd, simd.not_m32s(excluded)) {
                continue;
            }
            let mut lanes = [0.0; PANEL];
            S::as_mut_simd_f32s(&mut lanes).0[0] = bound;
            // Without branches, which nothing could foretell.
            let (mut groups, mut count) = ([0; PANEL], 0);
            for (lane, bound) in lanes[..S::F32_LANES].iter().enumerate() {
                groups[count] = at * S::F32_LANES + lane;
                count += usize::from(!(*bound > beyond));
            }
            for group in &groups[..count] {
                self.add_group(row, *group, &mut waiting, &mut best);
            }
            if best.distance < so_far {
                so_far = best.distance;
                beyond = slack.distance_above(so_far) + nothing;
            }
        }
        self.look(row, &mut waiting, &mut best);
        nearest.index.push(best.index);
        nearest.distance.push(best.distance);
    }

    /// Lets the panels of a group wait, and looks at those that wait whenever there are P.
    #[inline(always)]
    fn add_group<const P: usize>(
        &mut self,
        row: Rows<'_>,
        group: usize,
        waiting: &mut Waiting<P>,
        best: &mut Found,
    ) {
        for panel in self.panels.of_group(group) {
            waiting.panels[waiting.count] = panel;
            waiting.count += 1;
            if waiting.count == P {
                self.look(row, waiting, best);
            }
        }
    }

    /// Compares a row with the panels that wait.
    #[inline(always)]
    fn look<const P: usize>(&mut self, row: Rows<'_>, waiting: &mut Waiting<P>, best: &mut Found) {
        if waiting.count == 0 {
            return;
        }
        // Others in the place of those that are not there: a landmark seen twice changes nothing.
        let panels = waiting.panels;
        let count = std::mem::take(&mut waiting.count);
        let panels: [usize; P] =
            std::array::from_fn(|p| if p < count { panels[p] } else { panels[0] });
        let Some(sums) = self.measure(row, panels, count, best.distance) else { return };
        let simd = self.simd;
        let mut least = sums[0][0];
        for sum in sums.as_flattened() {
            least = simd.min_f32s(least, *sum);
        }
        let least = simd.reduce_min_f32s(least);
        let (value, never) = (simd.splat_f32s(least), simd.splat_f32s(f32::INFINITY));
        let mut index = never;
        for (panel, sums) in panels.iter().zip(sums) {
            let places = vectors::<S>(&self.panels.places()[panel * PANEL..(panel + 1) * PANEL]);
            for v in 0..V {
                let here = simd.equal_f32s(sums[v], value);
                index = simd.min_f32s(index, simd.select_f32s(here, places[v], never));
            }
        }
        let index = simd.reduce_min_f32s(index) as u32;
        if least < best.distance || least == best.distance && index < best.index {
            *best = Found { index, distance: least };
        }
    }

    /// Squared distances from the landmarks of some panels, or `None` where all are beyond `limit`.
    #[inline(always)]
    fn measure<const P: usize>(
        &mut self,
        row: Rows<'_>,
        panels: [usize; P],
        count: usize,
        limit: f32,
    ) -> Option<[[S::f32s; V]; P]> {
        let simd = self.simd;
        let d = row.z.len();
        let mut sums = [[simd.splat_f32s(0.0); V]; P];
        let mut start = 0;
        while start < d {
            let end = if start + 2 * CHECK <= d { start + CHECK } else { d };
            let x = &row.z[start..end];
            let z: [&[[S::f32s; V]]; P] =
                std::array::from_fn(|p| &self.packed[panels[p] * d + start..][..x.len()]);
            for (k, x) in x.iter().enumerate() {
                let x = simd.splat_f32s(*x);
                for p in 0..P {
                    for v in 0..V {
                        let difference = simd.sub_f32s(z[p][k][v], x);
                        sums[p][v] = Squared::add(simd, sums[p][v], difference);
                    }
                }
            }
            start = end;
            *self.columns += (count * x.len()) as u64;
            if start == d {
                self.add_levels(row.codes, panels, &mut sums);
            }
            if all_beyond(simd, &sums, limit) {
                return None;
            }
        }
        Some(sums)
    }

    /// Adds what the levels of the row add, in the order of the categories.
    #[inline(always)]
    fn add_levels<const P: usize>(
        &self,
        codes: &[u32],
        panels: [usize; P],
        sums: &mut [[S::f32s; V]; P],
    ) {
        for (start, code) in self.starts.iter().zip(codes) {
            let entries = &self.tables[(start + *code as usize) * self.panels.panels()..];
            for p in 0..P {
                for v in 0..V {
                    sums[p][v] = self.simd.add_f32s(sums[p][v], entries[panels[p]][v]);
                }
            }
        }
    }
}

/// A slice as vectors; it has whole ones.
#[inline(always)]
fn vectors<S: Simd>(values: &[f32]) -> &[S::f32s] {
    S::as_simd_f32s(values).0
}

/// Where the least of some values stands.
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

/// Whether all sums are greater than a limit.
#[inline(always)]
fn all_beyond<S: Simd, const V: usize, const P: usize>(
    simd: S,
    sums: &[[S::f32s; V]; P],
    limit: f32,
) -> bool {
    let mut least = sums[0][0];
    for sum in sums.as_flattened() {
        least = simd.min_f32s(least, *sum);
    }
    let within = simd.less_than_or_equal_f32s(least, simd.splat_f32s(limit));
    !has_any(simd, within)
}

/// Whether a mask has a lane that is true.
#[inline(always)]
fn has_any<S: Simd>(simd: S, mask: S::m32s) -> bool {
    // Which lane this finds depends on the instructions.
    simd.first_true_m32s(mask) < S::F32_LANES
}

#[cfg(test)]
mod tests {
    use super::super::pack::MAX_BLOCK;
    use super::super::scalar;
    use super::*;
    use proptest::prelude::*;

    /// Points of one of several kinds: spread out, in clusters, on a grid with many equal distances, far from the origin,
    /// tiny, huge, and all the same but for a few.
    fn points(kind: u8, n: usize, d: usize, next: &mut impl FnMut() -> u64) -> Vec<f32> {
        let mut unit = || (next() >> 40) as f32 / (1 << 23) as f32 - 1.0;
        let mut all = Vec::with_capacity(n * d);
        for i in 0..n {
            // Centres of clusters do not depend on the other points.
            let centre = crate::sample::mix(i as u64 % 7);
            for k in 0..d {
                let c = (crate::sample::mix(centre ^ k as u64) >> 40) as f32 / (1 << 20) as f32;
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

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(160))]
        /// Index and distance of the scalar definition, whatever the points, the groups and the instructions.
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
            let mut next = || { state = crate::sample::mix(state); state };
            let landmarks = Points::new(d, points(kinds.0, m, d, &mut next));
            let mut rows = points(if next() % 3 > 0 { kinds.0 } else { kinds.1 }, n, d, &mut next);
            // Some rows are landmarks, some invalid.
            for i in (0..n).step_by(5) {
                let j = next() as usize % m;
                rows[i * d..(i + 1) * d].copy_from_slice(landmarks.row(j));
            }
            if seed % 8 == 0 {
                rows[next() as usize % (n * d)] = [f32::NAN, f32::INFINITY, f32::MAX][seed as usize / 8 % 3];
            }
            let codes: Vec<u32> = (0..n).flat_map(|_| levels.clone()).map(|l| (next() % l as u64) as u32).collect();
            let entry = |c: usize, l: usize, j: usize| if (c + l + j) % 3 == 0 { 0.0 } else { 0.5 };
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
            }
        }
    }

    #[test]
    #[ignore]
    fn timing() {
        let read = |file: &str| -> (usize, Vec<f32>) {
            let bytes = std::fs::read(file).unwrap();
            let header = String::from_utf8_lossy(&bytes[..128]).to_string();
            let at = 10 + u16::from_le_bytes([bytes[8], bytes[9]]) as usize;
            let d = header.split("(").nth(1).unwrap().split(")").next().unwrap();
            let d: usize = d.split(",").nth(1).unwrap().trim().parse().unwrap();
            let v = bytes[at..].chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().unwrap()));
            (d, v.collect())
        };
        for file in std::env::var("FILES").unwrap().split(",") {
            let (d, rows) = read(file);
            let total = rows.len() / d;
            let sizes = std::env::var("SIZES").unwrap_or("400,800,2000,10000,50000".into());
            for m in sizes.split(",").map(|m| m.parse::<usize>().unwrap()) {
                if m * 2 > total {
                    continue;
                }
                let landmarks: Vec<f32> = (0..m)
                    .flat_map(|j| {
                        let i = crate::sample::mix(j as u64) as usize % total;
                        rows[i * d..(i + 1) * d].to_vec()
                    })
                    .collect();
                let landmarks = Points::new(d, landmarks);
                let set = Instructions::best();
                let n = (4_000_000_000 / (m * d)).clamp(2520, 100_000).min(total) / MAX_BLOCK
                    * MAX_BLOCK;
                let mut tiles = Tiles::new(&landmarks, Kernel::Gaussian, None, set);
                let t = std::time::Instant::now();
                let (mut a, mut b) = (Vec::new(), Vec::new());
                let mut near = Nearest::default();
                for block in rows[..n * d].chunks_exact(MAX_BLOCK * d) {
                    tiles.block(block, Some(&mut near), |_, _, _| {});
                    a.extend(
                        near.index.iter().copied().zip(near.distance.iter().map(|x| x.to_bits())),
                    );
                }
                let plain = t.elapsed().as_secs_f64();
                let t = std::time::Instant::now();
                let most = std::env::var("MOST").map_or(4096, |m| m.parse().unwrap());
                let panels = Arc::new(Panels::in_groups(&landmarks, most, set));
                let build = t.elapsed().as_secs_f64();
                let mut search = Search::new(&landmarks, None, Some(panels), set);
                let (mut columns, mut blocks) = (0, 0);
                let t = std::time::Instant::now();
                for block in rows[..n * d].chunks_exact(MAX_BLOCK * d) {
                    if std::env::var("FORCE").is_ok() {
                        search.pruned.as_mut().unwrap().skip = 0;
                    }
                    let p = search.pruned.as_ref().unwrap().skip == 0;
                    search.block(block, &mut near);
                    if p {
                        columns += search.pruned.as_ref().unwrap().columns;
                        blocks += 1;
                    }
                    b.extend(
                        near.index.iter().copied().zip(near.distance.iter().map(|x| x.to_bits())),
                    );
                }
                let pruned = t.elapsed().as_secs_f64();
                assert_eq!(a, b);
                let share = columns as f64 / (blocks * MAX_BLOCK * d * m.div_ceil(16)) as f64;
                println!(
                    "{} d {d} m {m} n {n}: plain {:.2} µs/row, pruned {:.2} ({:.2}x) share {share:.3} pruned blocks {blocks}/{} build {build:.3}s",
                    file.rsplit("/").next().unwrap(),
                    plain / n as f64 * 1e6,
                    pruned / n as f64 * 1e6,
                    plain / pruned,
                    n / MAX_BLOCK
                );
            }
        }
    }
}
