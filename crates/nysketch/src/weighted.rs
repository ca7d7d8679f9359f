//! Weighted points. Cell means with their counts, or landmarks with calibrated weights,
//! stand for the rows; k-means and k-medians on them are the decoders' workhorses.

use crate::kernel::squared_distance;
use crate::points::Points;
use crate::random::draw;

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
        let (points_of, weights_of, known_of) = (Vec::new(), Vec::new(), Vec::new());
        let mut kept = WeightedPoints {
            dims,
            points: points_of,
            weights: weights_of,
            known: known_of,
            near_by_known,
        };
        for (i, (x, &w)) in points.chunks_exact(dims).zip(weights).enumerate() {
            if w > 0.0 {
                kept.points.extend_from_slice(x);
                kept.weights.push(w);
                kept.known.extend_from_slice(known.get(i * dims..(i + 1) * dims).unwrap_or(&[]));
            }
        }
        kept
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

    /// The nearest centre of a point and the squared distance to it.
    pub(crate) fn nearest(&self, i: usize, centres: &[Vec<f64>]) -> (usize, f64) {
        let mut best = (0, f64::INFINITY);
        for (c, centre) in centres.iter().enumerate() {
            let d2 = self.distance(i, centre);
            if d2 < best.1 {
                best = (c, d2);
            }
        }
        best
    }

    /// The points nearest to each centre.
    fn members(&self, centres: &[Vec<f64>]) -> Vec<Vec<usize>> {
        let mut members = vec![Vec::new(); centres.len()];
        (0..self.len()).for_each(|i| members[self.nearest(i, centres).0].push(i));
        members
    }

    fn point(&self, i: usize) -> &[f64] {
        &self.points[i * self.dims..(i + 1) * self.dims]
    }

    /// Sum of the weights.
    pub fn mass(&self) -> f64 {
        self.weights.iter().sum()
    }

    /// Mean over the points of `min_c ‖x − c‖^power`, for power 1 or 2.
    pub fn risk(&self, centres: &[Vec<f64>], loss: Loss) -> f64 {
        let cost = |i: usize| self.weights[i] * loss.of(self.nearest(i, centres).1);
        let total: f64 = (0..self.len()).map(cost).sum();
        total / self.mass()
    }

    /// Variance of each column around the nearest of some centres.
    pub fn variance_around(&self, centres: &[Vec<f64>]) -> Vec<f64> {
        let (mut variance, mass) = (vec![0.0; self.dims], self.mass());
        for (x, w) in self.iter() {
            let centre = &centres[nearest(x, centres).0];
            for k in 0..self.dims {
                variance[k] += w / mass * (x[k] - centre[k]).powi(2);
            }
        }
        variance
    }

    /// `k` centres of least risk among several runs: greedy k-means++ starts, then Lloyd's
    /// iterations. Fewer where there are fewer different points.
    pub fn cluster(
        &self,
        k: usize,
        loss: Loss,
        effort: Effort,
        rng: &mut impl rand::Rng,
    ) -> Vec<Vec<f64>> {
        let mut best: Option<(f64, Vec<Vec<f64>>)> = None;
        for _ in 0..effort.restarts {
            let mut centres = self.greedy_start(k, rng);
            self.iterate(&mut centres, loss, effort.iterations);
            let risk = self.risk(&centres, loss);
            if best.as_ref().is_none_or(|(r, _)| risk < *r) {
                best = Some((risk, centres));
            }
        }
        best.map_or(Vec::new(), |(_, centres)| centres)
    }

    /// Lloyd's iterations from given centres, until nothing moves; returns how many were made.
    pub fn iterate(&self, centres: &mut [Vec<f64>], loss: Loss, iterations: usize) -> usize {
        for done in 0..iterations {
            let members = self.members(centres);
            let mut moved = false;
            for (centre, members) in centres.iter_mut().zip(&members) {
                if members.is_empty() {
                    continue;
                }
                let next = match loss {
                    Loss::Squared => self.mean(members, centre),
                    Loss::Distance => self.median(members, centre),
                };
                let shift: f64 = next.iter().zip(&*centre).map(|(a, b)| (a - b).powi(2)).sum();
                let size: f64 = next.iter().map(|a| a * a).sum();
                moved |= shift > 1e-20 * size;
                *centre = next;
            }
            if !moved {
                return done + 1;
            }
        }
        iterations
    }

    /// The mean of some points; where none of them knows a number, it stays as it was.
    fn mean(&self, members: &[usize], from: &[f64]) -> Vec<f64> {
        self.mean_by(members, from, |i| self.weights[i])
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

    /// k-means++ where each centre is the best of 2 + ln k draws.
    fn greedy_start(&self, k: usize, rng: &mut impl rand::Rng) -> Vec<Vec<f64>> {
        match draw(&self.weights, rng).filter(|_| k > 0) {
            Some(first) => self.grow(vec![self.point(first).to_vec()], k, rng),
            None => Vec::new(),
        }
    }

    /// Adds centres until there are `k`, each the best of 2 + ln k draws in proportion to D².
    pub fn grow(
        &self,
        mut centres: Vec<Vec<f64>>,
        k: usize,
        rng: &mut impl rand::Rng,
    ) -> Vec<Vec<f64>> {
        let mut d2: Vec<f64> = (0..self.len()).map(|i| self.nearest(i, &centres).1).collect();
        while centres.len() < k {
            let scores: Vec<f64> = d2.iter().zip(&self.weights).map(|(d, w)| d * w).collect();
            let mut best: Option<(f64, usize, Vec<f64>)> = None;
            for _ in 0..2 + (k as f64).ln() as usize {
                let Some(i) = draw(&scores, rng) else {
                    return centres;
                };
                let next: Vec<f64> = (0..self.len())
                    .zip(&d2)
                    .map(|(j, d)| d.min(self.distance(j, self.point(i))))
                    .collect();
                let cost: f64 = next.iter().zip(&self.weights).map(|(d, w)| d * w).sum();
                if best.as_ref().is_none_or(|(c, _, _)| cost < *c) {
                    best = Some((cost, i, next));
                }
            }
            let Some((_, i, next)) = best else {
                return centres;
            };
            centres.push(self.point(i).to_vec());
            d2 = next;
        }
        centres
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
    fn of(self, d2: f64) -> f64 {
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

    const EFFORT: Effort = Effort { restarts: 5, iterations: 100 };

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
