//! Weighted points, and what centres cost on them.

use super::narrow::Narrowed;
use super::{lloyd, seed, swap};
use crate::kernel::squared_distance;
use crate::points::Points;
use std::sync::OnceLock;

/// Weighted points in double precision.
#[derive(Debug, Clone)]
pub struct WeightedPoints {
    dims: usize,
    points: Vec<f64>,
    weights: Vec<f64>,
    /// What share of each number of a point is known, as points; empty where all are.
    known: Vec<f64>,
    /// Whether distances count a number by that share. Means always do.
    near_by_known: bool,
    narrowed: OnceLock<Narrowed>,
}

impl WeightedPoints {
    /// Row-major points with one weight each; points of weight zero are left out.
    pub fn new(dims: usize, points: &[f64], weights: &[f64]) -> Self {
        Self::known_in_part(dims, points, weights, &[], false)
    }

    /// The same, with what share of each number is known, where that is not all.
    pub(crate) fn known_in_part(
        dims: usize,
        points: &[f64],
        weights: &[f64],
        known: &[f64],
        near_by_known: bool,
    ) -> Self {
        let (mut kept, mut there) = (Vec::new(), Vec::new());
        let mut shares = Vec::new();
        for (i, (x, &w)) in points.chunks_exact(dims).zip(weights).enumerate() {
            if w > 0.0 {
                kept.extend_from_slice(x);
                there.push(w);
                shares.extend_from_slice(known.get(i * dims..(i + 1) * dims).unwrap_or(&[]));
            }
        }
        Self::owned(dims, kept, there, shares, near_by_known)
    }

    /// The same from what is at hand; all weights are positive.
    pub(crate) fn owned(
        dims: usize,
        points: Vec<f64>,
        weights: Vec<f64>,
        known: Vec<f64>,
        near_by_known: bool,
    ) -> Self {
        debug_assert!(weights.iter().all(|w| *w > 0.0) && points.len() == dims * weights.len());
        WeightedPoints { dims, points, weights, known, near_by_known, narrowed: OnceLock::new() }
    }

    /// Row-major rows of equal weight.
    pub fn of_rows(dims: usize, rows: &[f64]) -> Self {
        WeightedPoints::new(dims, rows, &vec![1.0; rows.len() / dims])
    }

    /// Points of equal weight.
    pub fn of_points(points: &Points) -> Self {
        let data: Vec<f64> = points.data().iter().map(|x| f64::from(*x)).collect();
        WeightedPoints::of_rows(points.dims(), &data)
    }

    /// Number of dimensions.
    pub fn dims(&self) -> usize {
        self.dims
    }

    /// Number of points.
    pub fn len(&self) -> usize {
        self.weights.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.weights.is_empty()
    }

    /// The points with their weights.
    pub fn iter(&self) -> impl Iterator<Item = (&[f64], f64)> {
        self.points.chunks_exact(self.dims).zip(self.weights.iter().copied())
    }

    pub(super) fn point(&self, i: usize) -> &[f64] {
        &self.points[i * self.dims..(i + 1) * self.dims]
    }

    pub(super) fn weights(&self) -> &[f64] {
        &self.weights
    }

    /// The points laid out for distances.
    pub(super) fn narrowed(&self) -> &Narrowed {
        let known = if self.near_by_known { &self.known[..] } else { &[] };
        self.narrowed.get_or_init(|| Narrowed::new(self.dims, &self.points, known))
    }

    /// Squared distance of a point from some place.
    pub(crate) fn distance(&self, i: usize, place: &[f64]) -> f64 {
        let x = self.point(i);
        match self.known.get(i * self.dims..(i + 1) * self.dims).filter(|_| self.near_by_known) {
            None => squared_distance(x, place),
            Some(known) => {
                let terms = x.iter().zip(place).zip(known);
                terms.map(|((x, c), share)| share * (x - c) * (x - c)).sum()
            }
        }
    }

    /// The nearest centre of every point.
    pub(crate) fn assign(&self, centres: &[Vec<f64>]) -> Vec<usize> {
        if centres.is_empty() || self.is_empty() {
            return vec![0; self.len()];
        }
        let narrowed = self.narrowed();
        let places: Vec<Vec<f32>> = centres.iter().map(|c| narrowed.place(c)).collect();
        let all: Vec<u32> = (0..self.len() as u32).collect();
        narrowed.nearest(&all, &places, 1).iter().map(|near| near.centre as usize).collect()
    }

    /// How much nearer the nearest centre of every point is than the second nearest, as a share of that distance.
    pub(crate) fn margins(&self, centres: &[Vec<f64>]) -> Vec<f64> {
        let narrowed = self.narrowed();
        let places: Vec<Vec<f32>> = centres.iter().map(|c| narrowed.place(c)).collect();
        let all: Vec<u32> = (0..self.len() as u32).collect();
        let margin = |(first, second): (f32, f32)| {
            let (a, b) = (f64::from(first).sqrt(), f64::from(second).sqrt());
            if b > 0.0 { (b - a) / b } else { 0.0 }
        };
        let near = narrowed.nearest(&all, &places, 1);
        near.iter().map(|near| margin((near.first, near.second))).collect()
    }

    /// Sum of the weights.
    pub fn mass(&self) -> f64 {
        self.weights.iter().sum()
    }

    /// Mean over the points of `min_c ‖x − c‖^power`, for power 1 or 2.
    pub fn risk(&self, centres: &[Vec<f64>], loss: Loss) -> f64 {
        let own = self.assign(centres);
        let cost = |i: usize| match centres.get(own[i]) {
            Some(centre) => self.weights[i] * loss.of(self.distance(i, centre)),
            None => f64::INFINITY,
        };
        let total: f64 = (0..self.len()).map(cost).sum();
        total / self.mass()
    }

    /// Variance of each column around the nearest of some centres.
    pub fn variance_around(&self, centres: &[Vec<f64>]) -> Vec<f64> {
        let (mut variance, mass) = (vec![0.0; self.dims], self.mass());
        for ((x, w), own) in self.iter().zip(self.assign(centres)) {
            for k in 0..self.dims {
                variance[k] += w / mass * (x[k] - centres[own][k]).powi(2);
            }
        }
        variance
    }

    /// `k` centres of least risk among several runs: greedy k-means++ starts, Lloyd's iterations, and exchanges of
    /// centres for points far from all of them. Fewer where there are fewer different points.
    pub fn cluster(
        &self,
        k: usize,
        loss: Loss,
        effort: Effort,
        rng: &mut impl rand::Rng,
    ) -> Vec<Vec<f64>> {
        self.cluster_from(k, loss, effort, &[], rng).1
    }

    /// The same with its risk, also from fewer `warm` centres with more added, or from k `warm` centres alone.
    pub(crate) fn cluster_from(
        &self,
        k: usize,
        loss: Loss,
        effort: Effort,
        warm: &[Vec<f64>],
        rng: &mut impl rand::Rng,
    ) -> (f64, Vec<Vec<f64>>) {
        if warm.len() == k {
            let mut centres = warm.to_vec();
            self.iterate(&mut centres, loss, effort);
            return (self.risk(&centres, loss), centres);
        }
        let (mut best, mut least) = (Vec::new(), f64::INFINITY);
        let grown = usize::from(!warm.is_empty());
        for run in 0..effort.restarts + grown {
            let mut centres = match run < effort.restarts {
                true => seed::start(self, k, rng),
                false => seed::grow(self, warm.to_vec(), k, rng),
            };
            let risk = self.improve(&mut centres, loss, effort, rng);
            if risk < least || run == 0 {
                (least, best) = (risk, centres);
            }
        }
        (least, best)
    }

    /// Lloyd's iterations and exchanges in turn; returns the risk.
    fn improve(
        &self,
        centres: &mut Vec<Vec<f64>>,
        loss: Loss,
        effort: Effort,
        rng: &mut impl rand::Rng,
    ) -> f64 {
        self.iterate(centres, loss, effort);
        let mut risk = self.risk(centres, loss);
        for _ in 0..effort.exchanges {
            let mut other = centres.clone();
            if swap::exchange(self, &mut other, loss, effort.threads, rng) == 0 {
                break;
            }
            self.iterate(&mut other, loss, effort);
            let found = self.risk(&other, loss);
            if found < risk {
                (risk, *centres) = (found, other);
            }
        }
        risk
    }

    /// Lloyd's iterations from given centres, until nothing changes; returns how many were made.
    pub fn iterate(&self, centres: &mut [Vec<f64>], loss: Loss, effort: Effort) -> usize {
        lloyd::iterate(self, centres, loss, effort)
    }

    /// Adds centres until there are `k`.
    pub fn grow(
        &self,
        centres: Vec<Vec<f64>>,
        k: usize,
        rng: &mut impl rand::Rng,
    ) -> Vec<Vec<f64>> {
        seed::grow(self, centres, k, rng)
    }

    /// The mean or, by a few steps from a centre, the median of some points; where none of them knows a number, it
    /// stays as it was.
    pub(super) fn centre_of(&self, members: &[usize], from: &[f64], loss: Loss) -> Vec<f64> {
        match loss {
            Loss::Squared => self.mean_by(members, from, |i| self.weights[i]),
            Loss::Distance => self.median(members, from),
        }
    }

    fn mean_by(&self, members: &[usize], from: &[f64], weight: impl Fn(usize) -> f64) -> Vec<f64> {
        let d = self.dims;
        let mut sum = vec![0.0; d];
        if self.known.is_empty() {
            let mut mass = 0.0;
            for &i in members {
                let w = weight(i);
                mass += w;
                for (s, x) in sum.iter_mut().zip(self.point(i)) {
                    *s += w * x;
                }
            }
            return sum.iter().map(|s| s / mass).collect();
        }
        let mut mass = vec![0.0; d];
        for &i in members {
            let known = &self.known[i * d..(i + 1) * d];
            for (k, (x, share)) in self.point(i).iter().zip(known).enumerate() {
                let w = weight(i) * share;
                mass[k] += w;
                sum[k] += w * x;
            }
        }
        (0..d).map(|k| if mass[k] > 0.0 { sum[k] / mass[k] } else { from[k] }).collect()
    }

    /// A few of Weiszfeld's steps towards the geometric median.
    fn median(&self, members: &[usize], from: &[f64]) -> Vec<f64> {
        let mut centre = from.to_vec();
        let size = |c: &[f64]| {
            members.iter().map(|&i| self.distance(i, c).sqrt()).sum::<f64>() / members.len() as f64
        };
        let least = 1e-9 * size(&centre);
        if least == 0.0 {
            return centre;
        }
        for _ in 0..8 {
            // A point at the centre would get infinite weight; this holds it there softly.
            let weight = |i: usize| self.weights[i] / self.distance(i, &centre).sqrt().max(least);
            centre = self.mean_by(members, &centre, weight);
        }
        centre
    }
}

/// What a row's distance costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    /// ‖x − c‖²: k-means.
    Squared,
    /// ‖x − c‖: k-medians.
    Distance,
}

impl Loss {
    pub(super) fn of(self, d2: f64) -> f64 {
        match self {
            Loss::Squared => d2,
            Loss::Distance => d2.sqrt(),
        }
    }
}

/// How hard to try.
#[derive(Debug, Clone, Copy)]
pub struct Effort {
    /// Starts.
    pub restarts: usize,
    /// Lloyd's iterations of each.
    pub iterations: usize,
    /// Rounds of exchanges of each at most, k points in each round.
    pub exchanges: usize,
    /// Iterations end where the cost falls by less than this share of it.
    pub tolerance: f64,
    /// Threads; they do not show in the result.
    pub threads: usize,
}

impl Effort {
    /// So many starts and iterations of Lloyd's until nothing moves, and no exchanges.
    pub const fn new(restarts: usize, iterations: usize) -> Self {
        Effort { restarts, iterations, exchanges: 0, tolerance: 0.0, threads: 1 }
    }
}

/// Which of some row-major points are nearest to each centre.
pub(crate) fn members(dims: usize, points: &[f64], centres: &[Vec<f64>]) -> Vec<Vec<usize>> {
    let mut members = vec![Vec::new(); centres.len()];
    for (i, x) in points.chunks_exact(dims).enumerate() {
        members[nearest(x, centres).0].push(i);
    }
    members
}

/// The nearest centre and the squared distance to it.
pub fn nearest(x: &[f64], centres: &[Vec<f64>]) -> (usize, f64) {
    let mut best = (0, f64::INFINITY);
    for (c, centre) in centres.iter().enumerate() {
        let d2 = squared_distance(x, centre);
        if d2 < best.1 {
            best = (c, d2);
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    const EFFORT: Effort = Effort::new(5, 100);

    #[test]
    fn weighted_means_and_medians() {
        let points =
            WeightedPoints::new(1, &[0.0, 1.0, 100.0, 102.0, 7.0], &[3.0, 1.0, 1.0, 1.0, 0.0]);
        assert_eq!(points.len(), 4, "weight zero is left out");
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let mut means = points.cluster(2, Loss::Squared, EFFORT, &mut rng);
        means.sort_by(|a, b| a[0].total_cmp(&b[0]));
        assert_eq!(means, [vec![0.25], vec![101.0]]);
        // Three rows at 0 outweigh one at 1: the median is 0.
        let mut medians = points.cluster(2, Loss::Distance, EFFORT, &mut rng);
        medians.sort_by(|a, b| a[0].total_cmp(&b[0]));
        assert!(medians[0][0].abs() < 1e-6, "{medians:?}");
        assert!(
            (points.risk(&means, Loss::Squared) - (3.0 * 0.0625 + 0.5625 + 2.0) / 6.0).abs()
                < 1e-12
        );
    }

    #[test]
    fn fewer_points_than_centres() {
        let points = WeightedPoints::new(2, &[1.0, 1.0, 1.0, 1.0], &[1.0, 1.0]);
        let centres = points.cluster(3, Loss::Squared, EFFORT, &mut ChaCha8Rng::seed_from_u64(1));
        assert_eq!(centres, [vec![1.0, 1.0]]);
    }
}
