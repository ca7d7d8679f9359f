//! Points in single precision: their nearest centres through the tiles of the pass, and their
//! distances from one place.
//!
//! The medians of the columns are subtracted, so that an outlier does not cost the other points
//! precision, and the unit is chosen so that squares stay within the range of single precision. A
//! distance has the same bits however it is computed: differences, then one multiply-add per
//! column, in the order of the columns.

use crate::kernel::pack::MAX_BLOCK;
use crate::kernel::search::{PanelsOnce, Reach, Search};
use crate::kernel::tile::Nearest;
use crate::numeric::parallel::in_parallel;
use crate::numeric::points::Points;
use crate::numeric::simd::{Instructions, Work};
use std::sync::OnceLock;

/// Minimum and maximum number of points that a thread processes at once.
const CHUNKS: (usize, usize) = (8 * MAX_BLOCK, 64 * MAX_BLOCK);
/// Number of differences above which several threads are faster.
const THREADS_PAY: usize = 1 << 23;
/// Maximum number of points of which a median is computed.
const MIDDLE: usize = 1000;
/// Number of points whose distances from one place are computed together: they fit the first-level
/// cache.
const TOGETHER: usize = 1 << 10;
/// Factor of the squared distance to the nearest centre within which a second nearest is searched
/// for.
const FARTHER: f32 = 1.5;

/// Points laid out for distances.
#[derive(Debug, Clone)]
pub struct Narrowed {
    dims: usize,
    len: usize,
    origin: Vec<f64>,
    unit: f64,
    /// Points row by row, and by column, which is made when distances from one place are first
    /// needed.
    rows: Vec<f32>,
    columns: OnceLock<Vec<f32>>,
    /// By column, the share of a value that is known, if distances are weighted by it.
    known: Vec<f32>,
}

/// Finds the second nearest of all centres.
struct Everything;

impl Reach for Everything {
    const FARTHER: bool = true;

    fn of(&self, _: f32) -> f32 {
        f32::INFINITY
    }
}

/// Finds the second nearest among centres somewhat farther than the nearest.
struct Farther;

impl Reach for Farther {
    const FARTHER: bool = true;

    fn of(&self, nearest: f32) -> f32 {
        FARTHER * nearest
    }
}

/// The second nearest centre that a search finds.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Second {
    /// None.
    Ignored,
    /// One somewhat farther than the nearest, if there is one.
    Near,
    /// One at any distance.
    Any,
}

/// The nearest of some centres.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Near {
    /// The centre.
    pub centre: u32,
    /// The squared distance to it, and to the second nearest if that was requested.
    pub first: f32,
    /// The squared distance to the second nearest.
    pub second: f32,
}

impl Narrowed {
    /// Lays out row-major points; `known` is empty or contains a share for each value.
    pub fn new(dims: usize, points: &[f64], known: &[f64]) -> Self {
        let origin = medians(dims, points);
        let differences = points.chunks_exact(dims).flat_map(|x| x.iter().zip(&origin));
        let farthest = differences.map(|(x, o)| (x - o).abs()).fold(0.0, f64::max);
        let mut all = Narrowed::around(origin, farthest);
        all.reserve(points.len() / dims);
        points.chunks_exact(dims).for_each(|x| all.push(x));
        all.known_in_part(known)
    }

    /// Creates an empty layout for points whose columns are at most about `farthest` from an
    /// origin.
    pub fn around(origin: Vec<f64>, farthest: f64) -> Self {
        let dims = origin.len();
        let radius = farthest * (dims as f64).sqrt();
        let unit = if radius.is_normal() {
            2.0f64.powi(-(radius.log2().ceil().clamp(-1000.0, 1000.0) as i32))
        } else {
            1.0
        };
        let (rows, columns, known) = (Vec::new(), OnceLock::new(), Vec::new());
        Narrowed { dims, len: 0, origin, unit, rows, columns, known }
    }

    /// Adds a point.
    pub fn push(&mut self, x: &[f64]) {
        let columns = x.iter().zip(&self.origin);
        self.rows.extend(columns.map(|(x, o)| ((x - o) * self.unit) as f32));
        self.len += 1;
    }

    /// Reserves memory for `points` more points.
    pub fn reserve(&mut self, points: usize) {
        self.rows.reserve_exact(points * self.dims);
    }

    /// Weights each value in distances by the share of it that is known; empty weights all values
    /// equally.
    #[must_use]
    pub fn known_in_part(mut self, known: &[f64]) -> Self {
        self.known = vec![0.0; known.len()];
        for (at, share) in known.iter().enumerate() {
            self.known[at % self.dims * self.len + at / self.dims] = *share as f32;
        }
        self
    }

    /// Returns the numbers of dimensions and of points.
    pub fn size(&self) -> (usize, usize) {
        (self.dims, self.len)
    }

    /// Returns a point in its original coordinates, up to rounding to single precision.
    pub fn wide(&self, i: usize) -> impl Iterator<Item = f64> {
        let back = 1.0 / self.unit;
        self.row(i).iter().zip(&self.origin).map(move |(x, o)| o + back * f64::from(*x))
    }

    fn columns(&self) -> &[f32] {
        let (d, n) = (self.dims, self.len);
        self.columns.get_or_init(|| (0..n * d).map(|at| self.rows[at % n * d + at / n]).collect())
    }

    /// Converts a place to the coordinates of the points.
    pub fn place(&self, x: &[f64]) -> Vec<f32> {
        let columns = x.iter().zip(&self.origin);
        columns.map(|(x, o)| ((x - o) * self.unit) as f32).collect()
    }

    /// Converts centres to the coordinates of the points.
    pub fn places(&self, centres: &[Vec<f64>]) -> Vec<Vec<f32>> {
        centres.iter().map(|c| self.place(c)).collect()
    }

    /// Returns the coordinates of a point.
    #[inline(always)]
    pub fn row(&self, i: usize) -> &[f32] {
        &self.rows[i * self.dims..(i + 1) * self.dims]
    }

    /// Computes the squared distances of all points from one place.
    pub fn from(&self, place: &[f32], out: &mut Vec<f32>) {
        out.clear();
        out.resize(self.len, 0.0);
        let (columns, known) = (self.columns(), &self.known[..]);
        Instructions::best().run(FromPlace { columns, known, place, out });
    }

    /// Returns the squared distance of a point from one place.
    #[inline(always)]
    fn distance(&self, i: usize, place: &[f32]) -> f32 {
        let mut sum = 0.0f32;
        for (x, c) in self.row(i).iter().zip(place) {
            let t = c - x;
            sum = t.mul_add(t, sum);
        }
        sum
    }

    /// Finds the nearest of some centres for some of the points, in their order; the result does
    /// not depend on the number of threads. If the second nearest is beyond the search range, its
    /// distance is that of the range.
    pub fn nearest_and_reach(
        &self,
        points: &[u32],
        centres: &[Vec<f32>],
        threads: usize,
    ) -> Vec<Near> {
        self.search(points, centres, threads, Second::Near)
    }

    /// Finds the nearest of some centres for some of the points, without a second nearest.
    pub fn nearest(&self, points: &[u32], centres: &[Vec<f32>], threads: usize) -> Vec<Near> {
        self.search(points, centres, threads, Second::Ignored)
    }

    /// Finds the nearest of some centres for some of the points, with the distance of the second
    /// nearest at any distance.
    pub fn nearest_two(&self, points: &[u32], centres: &[Vec<f32>], threads: usize) -> Vec<Near> {
        self.search(points, centres, threads, Second::Any)
    }

    fn search(
        &self,
        points: &[u32],
        centres: &[Vec<f32>],
        threads: usize,
        second: Second,
    ) -> Vec<Near> {
        if points.is_empty() {
            return Vec::new();
        }
        if !self.known.is_empty() {
            return self.nearest_known(points, centres);
        }
        let flat: Vec<f32> = centres.iter().flatten().copied().collect();
        let landmarks = Points::new(self.dims, flat);
        let panels_pay = match second {
            Second::Ignored => true,
            // With few points, comparing them costs less than making panels.
            Second::Near => points.len() >= centres.len(),
            Second::Any => false,
        };
        let instructions = Instructions::best();
        let panels =
            if panels_pay { PanelsOnce::default().of(&landmarks, instructions) } else { None };
        let search = Search::new(&landmarks, None, panels, instructions);
        if threads < 2 || points.len() * centres.len() * self.dims < THREADS_PAY {
            return self.search_chunk(points, search, second);
        }
        let chunk = (points.len() / (4 * threads)).clamp(CHUNKS.0, CHUNKS.1);
        let chunks = points.chunks(chunk).collect();
        let found =
            in_parallel(threads, chunks, |chunk| self.search_chunk(chunk, search.clone(), second));
        found.concat()
    }

    /// Searches the centres for some points, on one thread.
    fn search_chunk(&self, points: &[u32], mut search: Search, second: Second) -> Vec<Near> {
        let mut nearest = Nearest::default();
        let (mut rows, mut found) = (Vec::new(), Vec::with_capacity(points.len()));
        for block in points.chunks(search.rows()) {
            rows.clear();
            block.iter().for_each(|i| rows.extend_from_slice(self.row(*i as usize)));
            match second {
                Second::Ignored => {
                    search.block(&rows, &mut nearest);
                    nearest.second.resize(nearest.index.len(), f32::INFINITY);
                }
                Second::Near => search.block_two(&rows, &Farther, &mut nearest),
                Second::Any => search.block_two(&rows, &Everything, &mut nearest),
            }
            let Nearest { index, distance, second } = &nearest;
            let each = index.iter().zip(distance).zip(second);
            found.extend(each.map(|((i, first), second)| Near {
                centre: *i,
                first: *first,
                second: *second,
            }));
        }
        found
    }

    /// Finds the two nearest of some centres for all points.
    pub fn all_nearest_two(&self, centres: &[Vec<f32>], threads: usize) -> Vec<Near> {
        let all: Vec<u32> = (0..self.len as u32).collect();
        self.nearest_two(&all, centres, threads)
    }

    /// Finds the two nearest centres if distances are weighted by known shares, centre by centre.
    fn nearest_known(&self, points: &[u32], centres: &[Vec<f32>]) -> Vec<Near> {
        let none = Near { centre: 0, first: f32::INFINITY, second: f32::INFINITY };
        let (mut found, mut all) = (vec![none; points.len()], Vec::new());
        for (c, centre) in centres.iter().enumerate() {
            self.from(centre, &mut all);
            for (near, i) in found.iter_mut().zip(points) {
                near.look(c as u32, all[*i as usize]);
            }
        }
        found
    }

    /// Returns the squared distance of a point from one place, with values weighted by the share
    /// that is known.
    #[inline(always)]
    pub fn weighted_distance(&self, i: usize, place: &[f32]) -> f32 {
        if self.known.is_empty() {
            return self.distance(i, place);
        }
        let mut sum = 0.0f32;
        for (k, c) in place.iter().enumerate() {
            let at = k * self.len + i;
            let t = c - self.row(i)[k];
            sum = (self.known[at] * t).mul_add(t, sum);
        }
        sum
    }
}

/// Returns the median of each column of row-major points.
pub fn medians(dims: usize, points: &[f64]) -> Vec<f64> {
    (0..dims).map(|k| median(points, dims, k)).collect()
}

/// Returns the median of a column, of about a thousand points if there are more.
fn median(points: &[f64], dims: usize, column: usize) -> f64 {
    let step = (points.len() / dims).div_ceil(MIDDLE).max(1);
    let mut values: Vec<f64> = points.iter().skip(column).step_by(step * dims).copied().collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

impl Near {
    /// Updates the nearest and second nearest with another centre; centres must be visited in
    /// order.
    pub fn look(&mut self, centre: u32, d2: f32) {
        if d2 < self.first {
            *self = Near { centre, first: d2, second: self.first };
        } else if d2 < self.second {
            self.second = d2;
        }
    }
}

struct FromPlace<'a> {
    columns: &'a [f32],
    known: &'a [f32],
    place: &'a [f32],
    out: &'a mut [f32],
}

impl Work for FromPlace<'_> {
    #[inline(always)]
    fn work(self) {
        let n = self.out.len();
        for start in (0..n).step_by(TOGETHER) {
            let end = n.min(start + TOGETHER);
            let out = &mut self.out[start..end];
            for (k, &place) in self.place.iter().enumerate() {
                let column = &self.columns[k * n + start..k * n + end];
                match self.known.get(k * n + start..k * n + end) {
                    None => {
                        for (out, x) in out.iter_mut().zip(column) {
                            let t = place - x;
                            *out = t.mul_add(t, *out);
                        }
                    }
                    Some(known) => {
                        for ((out, x), share) in out.iter_mut().zip(column).zip(known) {
                            let t = place - x;
                            *out = (share * t).mul_add(t, *out);
                        }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numeric::random::Hashes;
    use proptest::prelude::*;

    /// Whole numbers from 0 to 7, divided by `divisor`.
    fn numbers(count: usize, divisor: f64, hashes: &mut Hashes) -> Vec<f64> {
        let mut numbers = Vec::with_capacity(count);
        for _ in 0..count {
            numbers.push((hashes.draw() % 8) as f64 / divisor);
        }
        numbers
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        /// The tiles, distances from one place and single pairs give the same bits, with any number
        /// of threads.
        #[test]
        fn all_ways_give_the_same_distances(
            d in 1usize..12,
            k in 1usize..40,
            n in 1usize..400,
            seed in any::<u64>(),
            partly in any::<bool>(),
        ) {
            let mut hashes = Hashes(seed);
            let points = numbers(n * d, 1.0, &mut hashes);
            let known = numbers(if partly { n * d } else { 0 }, 8.0, &mut hashes);
            let narrowed = Narrowed::new(d, &points, &known);
            let mut centres = Vec::new();
            for _ in 0..k {
                centres.push(narrowed.place(&numbers(d, 1.0, &mut hashes)));
            }
            let all: Vec<u32> = (0..n as u32).rev().collect();
            let found = narrowed.nearest_two(&all, &centres, 1);
            let mut out = Vec::new();
            let mut expected =
                vec![Near { centre: 0, first: f32::INFINITY, second: f32::INFINITY }; n];
            for (c, centre) in centres.iter().enumerate() {
                narrowed.from(centre, &mut out);
                for i in 0..n {
                    let d2 = narrowed.weighted_distance(i, centre);
                    prop_assert_eq!(out[i].to_bits(), d2.to_bits());
                    expected[i].look(c as u32, out[i]);
                }
            }
            expected.reverse();
            prop_assert_eq!(&found, &expected);
            let nearest = narrowed.nearest(&all, &centres, 2);
            prop_assert_eq!(nearest.len(), n);
            for (near, expected) in nearest.iter().zip(&expected) {
                prop_assert_eq!((near.centre, near.first), (expected.centre, expected.first));
            }
        }
    }
}
