//! D² sampling (k-means++, Arthur and Vassilvitskii 2007), and its version for streams (k-means‖,
//! Bahmani et al. 2012).
//!
//! The next landmark is drawn with probability proportional to `D²(x) = min_j ‖x − x̃_j‖²`. The
//! rule needs no bandwidth, and it finds distant rows even if they are few. On a stream, half of
//! the landmarks come from a uniform sample. A second pass then keeps a reservoir of rows drawn
//! with probability proportional to their D² from the first half, and the other half comes from the
//! reservoir. A row that entered the reservoir with probability p represents 1/p rows and is drawn
//! with probability proportional to `D²/p`. The draw therefore has the same distribution as D²
//! sampling over all rows, up to the size of the reservoir.
//!
//! Large problems draw landmarks in batches. Candidates are drawn with probability proportional to
//! their D² before the batch, and each is kept with a probability equal to the ratio of its current
//! to its initial D². D² never increases, so this rejection sampling has exactly the distribution
//! of sequential draws. One pass through the tiles then updates the D² of all points for the whole
//! batch.

use crate::kernel::Kernel;
use crate::kernel::pack::MAX_BLOCK;
use crate::kernel::tile::{Nearest, Tiles};
use crate::numeric::parallel::in_parallel;
use crate::numeric::points::{PointColumns, Points};
use crate::numeric::random::{below, draw, draw_many, unit};
use crate::numeric::simd::Instructions;

/// Number of coordinates (points × landmarks × columns) up to which landmarks are drawn
/// sequentially: about half a second.
const ONE_BY_ONE: f64 = 5e8;
/// Largest number of candidates in a batch. All pairs of candidates are compared sequentially.
const MAX_CANDIDATES: usize = 256;
/// Number of points that a thread processes at once.
const SOME_POINTS: usize = 4 * MAX_BLOCK;

/// Chooses `m` of `points` sequentially, with probability proportional to `weight · D²`, where D is
/// the distance to the points chosen so far and to earlier landmarks, if any. `before` is D² from
/// the earlier landmarks. Stops early if every point is a landmark.
pub fn dsquared(
    points: &Points,
    weights: Option<&[f64]>,
    before: Option<Vec<f64>>,
    m: usize,
    threads: usize,
    rng: &mut impl rand::Rng,
) -> Vec<usize> {
    let n = points.len();
    if n == 0 || m == 0 {
        return Vec::new();
    }
    let mut search = Search { points, weights, d2: Vec::new(), chosen: Vec::new(), m };
    // With few landmarks so far, a new one lowers D² for many points, and few of many candidates
    // would be kept.
    let few = before.is_none();
    match before {
        Some(d2) => search.d2 = d2,
        None => {
            search.chosen.extend(match weights {
                Some(weights) => draw(weights, rng),
                None => Some(below(n, rng)),
            });
            search.d2 = vec![f64::INFINITY; n];
        }
    }
    if n as f64 * m as f64 * points.dims() as f64 > ONE_BY_ONE {
        search.in_batches(few, threads, rng);
    } else {
        search.one_by_one(rng);
    }
    search.chosen
}

struct Search<'a> {
    points: &'a Points,
    weights: Option<&'a [f64]>,
    /// D² from all chosen points except the last.
    d2: Vec<f64>,
    chosen: Vec<usize>,
    m: usize,
}

impl Search<'_> {
    /// `weight · D²` of every point.
    fn scores(&self) -> Vec<f64> {
        match self.weights {
            Some(weights) => weights.iter().zip(&self.d2).map(|(w, d2)| w * d2).collect(),
            None => self.d2.clone(),
        }
    }

    /// Draws sequentially, as in the definition.
    fn one_by_one(&mut self, rng: &mut impl rand::Rng) {
        let columns = PointColumns::new(self.points);
        let mut to_last = vec![0.0; self.points.len()];
        while self.chosen.len() < self.m {
            if let Some(&last) = self.chosen.last() {
                columns.squared_distances(self.points.row(last), &mut to_last);
                self.d2.iter_mut().zip(&to_last).for_each(|(d, last)| *d = d.min(*last));
            }
            match draw(&self.scores(), rng) {
                Some(i) => self.chosen.push(i),
                None => break,
            }
        }
    }

    /// Draws in batches, with the same distribution and one pass over all points per batch. If
    /// `few`, a batch has at most as many candidates as there are landmarks.
    fn in_batches(&mut self, few: bool, threads: usize, rng: &mut impl rand::Rng) {
        let mut fresh = self.chosen.clone();
        while self.chosen.len() < self.m {
            lower(&mut self.d2, self.points, &self.points.select(&fresh), threads);
            let max = if few { self.chosen.len().min(MAX_CANDIDATES) } else { MAX_CANDIDATES };
            let candidates = draw_many(&self.scores(), max, rng);
            if candidates.is_empty() {
                break;
            }
            fresh = self.kept(&candidates, rng);
            self.chosen.extend(&fresh);
        }
    }

    /// The candidates that become landmarks. The first always does.
    fn kept(&self, candidates: &[usize], rng: &mut impl rand::Rng) -> Vec<usize> {
        let mut kept: Vec<usize> = Vec::new();
        for &c in candidates {
            if self.chosen.len() + kept.len() == self.m {
                break;
            }
            let candidate = self.points.row(c);
            let distances = kept.iter().map(|k| self.points.row(*k));
            let distances = distances.map(|x| Points::squared_distance(candidate, x));
            let now = distances.fold(self.d2[c], f64::min);
            let drawn = unit(rng) * self.d2[c];
            if kept.is_empty() || drawn < now {
                kept.push(c);
            }
        }
        kept
    }
}

/// `D²` of every point from `landmarks`.
pub fn squared_distances(points: &Points, landmarks: &Points, threads: usize) -> Vec<f64> {
    let mut d2 = vec![f64::INFINITY; points.len()];
    lower(&mut d2, points, landmarks, threads);
    d2
}

/// Lowers `D²` of every point to the squared distance of its nearest landmark, if that is smaller.
fn lower(d2: &mut [f64], points: &Points, landmarks: &Points, threads: usize) {
    if landmarks.is_empty() {
        return;
    }
    let d = points.dims();
    let tiles = Tiles::new(landmarks, Kernel::Gaussian, None, Instructions::best());
    let parts = points.data().chunks(SOME_POINTS * d).zip(d2.chunks_mut(SOME_POINTS));
    in_parallel(threads, parts.collect(), |(rows, d2): (&[f32], &mut [f64])| {
        let (mut tiles, mut nearest) = (tiles.clone(), Nearest::default());
        for (rows, d2) in rows.chunks(MAX_BLOCK * d).zip(d2.chunks_mut(MAX_BLOCK)) {
            tiles.block(rows, Some(&mut nearest), |_, _, _| {});
            d2.iter_mut()
                .zip(&nearest.distance)
                .for_each(|(d2, new)| *d2 = d2.min(f64::from(*new)));
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;
    use std::collections::{BTreeMap, BTreeSet};

    fn search<'a>(points: &'a Points, weights: &'a [f64], m: usize, first: usize) -> Search<'a> {
        let d2 = vec![f64::INFINITY; points.len()];
        Search { points, weights: Some(weights), d2, chosen: vec![first], m }
    }

    /// The ways to draw landmarks.
    #[derive(Clone, Copy)]
    enum Draws {
        OneByOne,
        /// Batches that grow with the landmarks, on this number of threads.
        FewAtOnce(usize),
        ManyAtOnce,
    }

    impl Draws {
        fn run(self, search: &mut Search<'_>, seed: u64) {
            let rng = &mut ChaCha8Rng::seed_from_u64(seed);
            match self {
                Draws::OneByOne => search.one_by_one(rng),
                Draws::FewAtOnce(threads) => search.in_batches(true, threads, rng),
                Draws::ManyAtOnce => search.in_batches(false, 1, rng),
            }
        }
    }

    /// `weight · D²` of point i from the chosen points.
    fn score(points: &Points, weights: &[f64], chosen: &[usize], i: usize) -> f64 {
        let chosen = chosen.iter().map(|j| points.row(*j));
        let distances = chosen.map(|x| Points::squared_distance(points.row(i), x));
        weights[i] * distances.fold(f64::INFINITY, f64::min)
    }

    /// Probability of drawing the points after the first in this order.
    fn chance(points: &Points, weights: &[f64], order: &[usize]) -> f64 {
        let mut chance = 1.0;
        for t in 1..order.len() {
            let scores = (0..points.len()).map(|i| score(points, weights, &order[..t], i));
            chance *= score(points, weights, &order[..t], order[t]) / scores.sum::<f64>();
        }
        chance
    }

    /// Every order of four landmarks of five points occurs as often as D² predicts, sequentially
    /// and in small and large batches.
    #[test]
    fn batches_have_the_law_of_one_draw_after_the_other() {
        let points = Points::new(1, vec![0.0, 0.5, 1.0, 3.0, 3.5]);
        let weights = [1.0, 2.0, 1.0, 0.5, 1.0];
        let times = 40_000u32;
        for draws in [Draws::OneByOne, Draws::FewAtOnce(1), Draws::ManyAtOnce] {
            let mut orders: BTreeMap<Vec<usize>, u32> = BTreeMap::new();
            for seed in 0..times {
                let mut search = search(&points, &weights, 4, 1);
                draws.run(&mut search, u64::from(seed));
                *orders.entry(search.chosen).or_default() += 1;
            }
            assert_eq!(orders.len(), 24, "all orders of three of the other four");
            let mut chi2 = 0.0;
            for (order, found) in &orders {
                let mean = chance(&points, &weights, order) * f64::from(times);
                chi2 += (f64::from(*found) - mean).powi(2) / mean;
            }
            // 23 degrees of freedom: χ² exceeds 64 once in 10⁵.
            assert!(chi2 < 64.0, "{chi2}");
        }
    }

    proptest! {
        /// D² computed by tiles equals that of all pairs up to single precision, for any number of
        /// threads.
        #[test]
        fn tiles_give_the_squared_distances_of_pairs(
            d in 1usize..9,
            values in prop::collection::vec(-10.0..10.0f32, 20..3000),
            threads in 1usize..4,
        ) {
            let n = values.len() / d;
            let points = Points::new(d, values[..n * d].to_vec());
            let landmarks = points.select(&(0..n).step_by(3).collect::<Vec<_>>());
            let found = squared_distances(&points, &landmarks, threads);
            prop_assert_eq!(&found, &squared_distances(&points, &landmarks, 1));
            for (x, d2) in points.rows().zip(found) {
                let pairs = landmarks.rows().map(|z| Points::squared_distance(x, z));
                let exact = pairs.fold(f64::INFINITY, f64::min);
                prop_assert!((d2 - exact).abs() <= 1e-6 * exact, "{} {}", d2, exact);
            }
        }
    }

    /// Large enough for batches: every landmark is chosen once, for any number of threads, and the
    /// result is as good as with sequential draws.
    #[test]
    fn batches_choose_as_well_as_one_by_one() {
        let rows =
            crate::rows::synthetic::Mixture::new(8, 30, 3.0, 5).unwrap().rows(0, 6000).values;
        let points = Points::new(8, rows.iter().map(|x| *x as f32).collect());
        let weights = vec![1.0; points.len()];
        let [one, three] = [1, 3].map(|threads| {
            let mut search = search(&points, &weights, 600, 17);
            Draws::FewAtOnce(threads).run(&mut search, 3);
            search.chosen
        });
        assert_eq!(one, three);
        assert_eq!(one.iter().collect::<BTreeSet<_>>().len(), 600);
        // The sum of D² over five choices.
        let [batches, single] = [Draws::FewAtOnce(1), Draws::OneByOne].map(|draws| {
            let mut potential = 0.0;
            for seed in 0..5 {
                let mut search = search(&points, &weights, 600, 17);
                draws.run(&mut search, seed);
                let landmarks = points.select(&search.chosen);
                potential += squared_distances(&points, &landmarks, 1).iter().sum::<f64>();
            }
            potential
        });
        let ratio = batches / single;
        // The potential of one choice varies by 0.5 %.
        assert!((0.98..1.02).contains(&ratio), "{ratio}");
    }

    #[test]
    fn every_different_point_and_no_more() {
        let points = Points::new(1, vec![1.0, 2.0, 1.0, 3.0, 2.0]);
        let weights = [1.0; 5];
        for draws in [Draws::OneByOne, Draws::FewAtOnce(2)] {
            let mut search = search(&points, &weights, 5, 0);
            draws.run(&mut search, 1);
            assert_eq!(search.chosen.len(), 3);
        }
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        assert!(dsquared(&points, None, Some(vec![0.0; 5]), 2, 1, &mut rng).is_empty());
        assert!(dsquared(&points, Some(&[0.0; 5]), None, 2, 1, &mut rng).is_empty());
    }
}
