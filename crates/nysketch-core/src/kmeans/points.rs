//! Weighted points, and the cost of centres on them.

use super::narrow::{Narrowed, Near};
use crate::kernel::squared_distance;
use crate::numeric::points::Points;
use crate::plan::sphere::Spheres;
use std::borrow::Cow;
use std::sync::OnceLock;

/// Weighted points, in double or single precision.
#[derive(Debug, Clone)]
pub struct WeightedPoints {
    dims: usize,
    /// Row-major; empty if the points exist in single precision only.
    points: Vec<f64>,
    weights: Vec<f64>,
    /// The share of each value of a point that is known, in the layout of `points`; empty if all
    /// values are known.
    known: Vec<f64>,
    /// Whether distances weight each value by that share. Means always do.
    near_by_known: bool,
    /// The spheres on which centres lie.
    spheres: Spheres,
    narrowed: OnceLock<Narrowed>,
}

impl WeightedPoints {
    /// Creates points from row-major coordinates and one weight each; points of weight zero are
    /// dropped.
    pub fn new(dims: usize, points: &[f64], weights: &[f64]) -> Self {
        Self::known_in_part(dims, points, weights, &[], false)
    }

    /// Creates points of which only a share of each value is known.
    pub fn known_in_part(
        dims: usize,
        points: &[f64],
        weights: &[f64],
        known: &[f64],
        near_by_known: bool,
    ) -> Self {
        let (mut kept, mut kept_weights) = (Vec::new(), Vec::new());
        let mut shares = Vec::new();
        for (i, (x, &w)) in points.chunks_exact(dims).zip(weights).enumerate() {
            if w > 0.0 {
                kept.extend_from_slice(x);
                kept_weights.push(w);
                shares.extend_from_slice(known.get(i * dims..(i + 1) * dims).unwrap_or(&[]));
            }
        }
        Self::owned(dims, kept, kept_weights, shares, near_by_known)
    }

    /// Creates points from owned vectors; all weights must be positive.
    pub(crate) fn owned(
        dims: usize,
        points: Vec<f64>,
        weights: Vec<f64>,
        known: Vec<f64>,
        near_by_known: bool,
    ) -> Self {
        debug_assert!(weights.iter().all(|w| *w > 0.0) && points.len() == dims * weights.len());
        let (spheres, narrowed) = (Spheres::default(), OnceLock::new());
        WeightedPoints { dims, points, weights, known, near_by_known, spheres, narrowed }
    }

    /// Requires centres to lie on some spheres.
    #[must_use]
    pub fn on(self, spheres: Spheres) -> Self {
        WeightedPoints { spheres, ..self }
    }

    /// Creates points in single precision, which take half the memory.
    pub fn narrow(
        narrowed: Narrowed,
        weights: Vec<f64>,
        known: Vec<f64>,
        near_by_known: bool,
    ) -> Self {
        let (dims, len) = narrowed.size();
        debug_assert!(weights.iter().all(|w| *w > 0.0) && len == weights.len());
        let narrowed = narrowed.known_in_part(if near_by_known { &known } else { &[] });
        let (points, spheres) = (Vec::new(), Spheres::default());
        let narrowed = OnceLock::from(narrowed);
        WeightedPoints { dims, points, weights, known, near_by_known, spheres, narrowed }
    }

    /// Creates points of equal weight from row-major rows.
    pub fn of_rows(dims: usize, rows: &[f64]) -> Self {
        WeightedPoints::new(dims, rows, &vec![1.0; rows.len() / dims])
    }

    /// Creates points of equal weight.
    pub fn of_points(points: &Points) -> Self {
        let data: Vec<f64> = points.data().iter().map(|x| f64::from(*x)).collect();
        WeightedPoints::of_rows(points.dims(), &data)
    }

    /// Splits the points into those outside one fold and those of the fold; all values must be
    /// known.
    pub fn without(&self, fold: usize, folds: usize) -> (Self, Self) {
        let (inside, outside): (Vec<usize>, Vec<usize>) =
            (0..self.len()).partition(|i| i % folds == fold);
        (self.select(&outside), self.select(&inside))
    }

    /// Returns the points with these indices; all values must be known.
    fn select(&self, indices: &[usize]) -> Self {
        let points: Vec<f64> = indices.iter().flat_map(|i| self.point(*i).into_owned()).collect();
        let weights: Vec<f64> = indices.iter().map(|i| self.weights[*i]).collect();
        WeightedPoints::new(self.dims, &points, &weights)
    }

    /// Returns `(Σw)²/Σw²`, the number of points of equal weight with the same information.
    pub fn effective(&self) -> f64 {
        let squares: f64 = self.weights.iter().map(|w| w * w).sum();
        self.mass().powi(2) / squares.max(f64::MIN_POSITIVE)
    }

    /// Returns the number of dimensions.
    pub fn dims(&self) -> usize {
        self.dims
    }

    /// Returns the number of points.
    pub fn len(&self) -> usize {
        self.weights.len()
    }

    /// Returns whether there are no points.
    pub fn is_empty(&self) -> bool {
        self.weights.is_empty()
    }

    /// Iterates over the points and their weights.
    pub fn iter(&self) -> impl Iterator<Item = (Cow<'_, [f64]>, f64)> {
        self.weights.iter().enumerate().map(|(i, w)| (self.point(i), *w))
    }

    /// Returns point `i`.
    pub(super) fn point(&self, i: usize) -> Cow<'_, [f64]> {
        match self.wide(i) {
            Some(x) => Cow::Borrowed(x),
            None => Cow::Owned(self.narrowed().wide(i).collect()),
        }
    }

    /// Returns point `i` if the points are in double precision.
    fn wide(&self, i: usize) -> Option<&[f64]> {
        self.points.get(i * self.dims..(i + 1) * self.dims)
    }

    /// Returns the weight of each point.
    pub fn weights(&self) -> &[f64] {
        &self.weights
    }

    /// Returns the points laid out for distances.
    pub(super) fn narrowed(&self) -> &Narrowed {
        let known = if self.near_by_known { &self.known[..] } else { &[] };
        self.narrowed.get_or_init(|| Narrowed::new(self.dims, &self.points, known))
    }

    /// Returns the squared distance of point `i` from a place.
    pub(crate) fn distance(&self, i: usize, place: &[f64]) -> f64 {
        let known = self.known.get(i * self.dims..(i + 1) * self.dims);
        let known = known.filter(|_| self.near_by_known);
        match self.wide(i) {
            Some(x) if known.is_none() => squared_distance(x, place),
            Some(x) => distance(x.iter().copied(), place, known),
            None => distance(self.narrowed().wide(i), place, known),
        }
    }

    /// Returns the nearest centre of every point.
    pub fn assign(&self, centres: &[Vec<f64>]) -> Vec<usize> {
        if centres.is_empty() || self.is_empty() {
            return vec![0; self.len()];
        }
        self.nearest(centres).iter().map(|near| near.centre as usize).collect()
    }

    /// Finds the nearest of some centres for every point.
    pub(super) fn nearest(&self, centres: &[Vec<f64>]) -> Vec<Near> {
        let narrowed = self.narrowed();
        let all: Vec<u32> = (0..self.len() as u32).collect();
        narrowed.nearest(&all, &narrowed.places(centres), 1)
    }

    /// Finds the two nearest of some centres for every point.
    fn nearest_two(&self, centres: &[Vec<f64>]) -> Vec<Near> {
        let narrowed = self.narrowed();
        narrowed.all_nearest_two(&narrowed.places(centres), 1)
    }

    /// Returns, for every point, `(b − a)/b`, where a and b are the distances to the nearest and
    /// second nearest centre.
    pub fn margins(&self, centres: &[Vec<f64>]) -> Vec<f64> {
        let mut margins = Vec::with_capacity(self.len());
        for near in self.nearest_two(centres) {
            let (a, b) = (f64::from(near.first).sqrt(), f64::from(near.second).sqrt());
            margins.push(if b > 0.0 { (b - a) / b } else { 0.0 });
        }
        margins
    }

    /// Returns the sum of the weights.
    pub fn mass(&self) -> f64 {
        self.weights.iter().sum()
    }

    /// Returns the mean over the points of the distance to the nearest centre, or of its square.
    pub fn risk(&self, centres: &[Vec<f64>], loss: Loss) -> f64 {
        let costs = self.assign(centres).into_iter().enumerate().map(|(i, c)| {
            centres
                .get(c)
                .map_or(f64::INFINITY, |centre| self.weights[i] * loss.of(self.distance(i, centre)))
        });
        costs.sum::<f64>() / self.mass()
    }

    /// Returns the variance of each column around the nearest of some centres.
    pub fn variance_around(&self, centres: &[Vec<f64>]) -> Vec<f64> {
        let (mut variance, mass) = (vec![0.0; self.dims], self.mass());
        for ((x, w), c) in self.iter().zip(self.assign(centres)) {
            for k in 0..self.dims {
                variance[k] += w / mass * (x[k] - centres[c][k]).powi(2);
            }
        }
        variance
    }

    /// Projects centres onto the spheres.
    pub(super) fn project(&self, centres: &mut [Vec<f64>]) {
        for centre in centres {
            let before = centre.clone();
            self.spheres.project(centre, &before);
        }
    }

    /// Returns the best centre of the points of each centre: their mean, or their median
    /// approximated by a few steps, projected onto the spheres if there are any. Returns `None` for
    /// centres that are not requested or have no points. A coordinate that is known for none of the
    /// points is not changed.
    pub(super) fn best_centres(
        &self,
        centre_of: impl Fn(usize) -> usize,
        requested: &[bool],
        centres: &[Vec<f64>],
        loss: Loss,
    ) -> Vec<Option<Vec<f64>>> {
        let mut members = vec![Vec::new(); centres.len()];
        let mut means: Vec<Mean> = centres.iter().map(|_| Mean::default()).collect();
        for i in 0..self.len() {
            let c = centre_of(i);
            match loss {
                _ if !requested[c] => {}
                Loss::Squared => means[c].add(self, i, self.weights[i]),
                Loss::Distance => members[c].push(i),
            }
        }
        let mut best = Vec::with_capacity(centres.len());
        for (c, centre) in centres.iter().enumerate() {
            best.push(match loss {
                Loss::Squared => means[c].centre(self, centre),
                Loss::Distance if members[c].is_empty() => None,
                Loss::Distance => Some(self.median(&members[c], centre)),
            });
        }
        best
    }

    /// Runs a few of Weiszfeld's steps towards the geometric median.
    fn median(&self, members: &[usize], from: &[f64]) -> Vec<f64> {
        let mut centre = from.to_vec();
        let distances = members.iter().map(|&i| self.distance(i, &centre).sqrt());
        let min_distance = 1e-9 * (distances.sum::<f64>() / members.len() as f64);
        if min_distance == 0.0 {
            return centre;
        }
        for _ in 0..8 {
            // A point at the centre would get infinite weight; the limit keeps the centre near it.
            let mut mean = Mean::default();
            for &i in members {
                let distance = self.distance(i, &centre).sqrt();
                mean.add(self, i, self.weights[i] / distance.max(min_distance));
            }
            centre = mean.centre(self, &centre).unwrap_or(centre);
        }
        centre
    }
}

/// A running weighted mean.
#[derive(Debug, Clone, Default)]
struct Mean {
    sum: Vec<f64>,
    /// The total weight, or that of each coordinate if values are known in part.
    mass: Vec<f64>,
}

impl Mean {
    #[inline]
    fn add(&mut self, points: &WeightedPoints, i: usize, weight: f64) {
        let d = points.dims;
        self.sum.resize(d, 0.0);
        if points.known.is_empty() {
            self.mass.resize(1, 0.0);
            self.mass[0] += weight;
            return match points.wide(i) {
                Some(x) => add(&mut self.sum, weight, x.iter().copied()),
                None => add(&mut self.sum, weight, points.narrowed().wide(i)),
            };
        }
        self.mass.resize(d, 0.0);
        let known = &points.known[i * d..(i + 1) * d];
        for (k, (x, share)) in points.point(i).iter().zip(known).enumerate() {
            self.mass[k] += weight * share;
            self.sum[k] += weight * share * x;
        }
    }

    /// Returns the point of smallest mean squared distance; a coordinate that is known for no point
    /// is not changed.
    fn centre(&self, points: &WeightedPoints, from: &[f64]) -> Option<Vec<f64>> {
        let mut centre = Vec::with_capacity(self.sum.len());
        for (k, sum) in self.sum.iter().enumerate() {
            let mass = self.mass.get(k).or(self.mass.first()).copied().unwrap_or(0.0);
            centre.push(if mass > 0.0 { sum / mass } else { from[k] });
        }
        if centre.is_empty() {
            return None;
        }
        points.spheres.project(&mut centre, from);
        Some(centre)
    }
}

/// Adds a weighted point to a sum.
fn add(sum: &mut [f64], weight: f64, point: impl Iterator<Item = f64>) {
    sum.iter_mut().zip(point).for_each(|(s, x)| *s += weight * x);
}

/// Returns the squared distance of a point from a place, with values weighted by the share that is
/// known.
fn distance(point: impl Iterator<Item = f64>, place: &[f64], known: Option<&[f64]>) -> f64 {
    let terms = point.zip(place).map(|(x, c)| (x - c) * (x - c));
    match known {
        None => terms.sum(),
        Some(known) => terms.zip(known).map(|(term, share)| share * term).sum(),
    }
}

/// The cost of a row at a given distance from its centre.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    /// ‖x − c‖²: k-means.
    Squared,
    /// ‖x − c‖: k-medians.
    Distance,
}

impl Loss {
    /// Returns the cost of a squared distance.
    pub(super) fn of(self, d2: f64) -> f64 {
        match self {
            Loss::Squared => d2,
            Loss::Distance => d2.sqrt(),
        }
    }
}

/// Returns the indices of the row-major points nearest to each centre.
pub fn members(dims: usize, points: &[f64], centres: &[Vec<f64>]) -> Vec<Vec<usize>> {
    let mut members = vec![Vec::new(); centres.len()];
    for (i, x) in points.chunks_exact(dims).enumerate() {
        members[nearest(x, centres).0].push(i);
    }
    members
}

/// Returns the nearest centre and the squared distance to it.
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
