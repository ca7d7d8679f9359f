//! D² sampling (k-means++, Arthur and Vassilvitskii 2007), over a stream by rounds (k-means‖,
//! Bahmani et al. 2012).
//!
//! The next landmark is drawn in proportion to `D²(x) = min_j ‖x − x̃_j‖²`. No bandwidth enters, and
//! far-away rows are reached however few they are. On a stream, half the landmarks come from a
//! uniform sample; one more pass then keeps a reservoir of rows drawn in proportion to D² to those,
//! and the other half comes from the reservoir. A row that entered the reservoir with probability p
//! stands for 1/p rows like it and is drawn in proportion to `D²/p`, which makes the draw the same
//! in law as D² sampling over all rows, up to the size of the reservoir.

use crate::points::{PointColumns, Points};
use crate::random::{below, draw};

/// Chooses `m` of `points` in turn, in proportion to `weight · D²`, where D is the distance to
/// `existing` and to those chosen so far. Stops early when every point is a landmark.
pub fn dsquared(
    points: &Points,
    weights: Option<&[f64]>,
    existing: Option<&Points>,
    m: usize,
    rng: &mut impl rand::Rng,
) -> Vec<usize> {
    let n = points.len();
    let weight = |i: usize| weights.map_or(1.0, |w| w[i]);
    let mut d2 = vec![f64::INFINITY; n];
    let mut chosen = Vec::with_capacity(m);
    match existing {
        Some(existing) => d2 = squared_distances(points, existing),
        None if n > 0 && m > 0 => {
            let all: Vec<f64> = (0..n).map(weight).collect();
            let first = if weights.is_some() { draw(&all, rng) } else { Some(below(n, rng)) };
            chosen.extend(first);
        }
        None => {}
    }
    let columns = PointColumns::new(points);
    let (mut scores, mut to_last) = (vec![0.0; n], vec![0.0; n]);
    while chosen.len() < m {
        if let Some(&last) = chosen.last() {
            columns.squared_distances(points.row(last), &mut to_last);
            d2.iter_mut().zip(&to_last).for_each(|(d, last)| *d = d.min(*last));
        }
        for i in 0..n {
            scores[i] = weight(i) * d2[i];
        }
        match draw(&scores, rng) {
            Some(i) => chosen.push(i),
            None => break,
        }
    }
    chosen
}

/// `D²` of every point to `landmarks`.
pub fn squared_distances(points: &Points, landmarks: &Points) -> Vec<f64> {
    points
        .rows()
        .map(|x| {
            landmarks.rows().map(|z| Points::squared_distance(x, z)).fold(f64::INFINITY, f64::min)
        })
        .collect()
}
