//! Uniform sampling without replacement among different points.

use crate::numeric::points::Points;
use crate::numeric::random::below;
use std::collections::HashSet;

/// The bits of a point, the same for −0 and 0.
fn key(row: &[f32]) -> Vec<u32> {
    row.iter().map(|x| (x + 0.0).to_bits()).collect()
}

/// Chooses `m` different points by drawing rows uniformly without replacement. Skips rows equal to
/// one drawn before or to one of `chosen`.
pub fn uniform(
    points: &Points,
    chosen: &[usize],
    m: usize,
    rng: &mut impl rand::Rng,
) -> Vec<usize> {
    let mut seen: HashSet<Vec<u32>> = chosen.iter().map(|&i| key(points.row(i))).collect();
    let mut order: Vec<usize> = (0..points.len()).collect();
    let mut picked = Vec::with_capacity(m);
    for i in 0..order.len() {
        if picked.len() == m {
            break;
        }
        let j = i + below(order.len() - i, rng);
        order.swap(i, j);
        if seen.insert(key(points.row(order[i]))) {
            picked.push(order[i]);
        }
    }
    picked
}

/// Indices of the points that differ from all earlier ones.
pub fn distinct(points: &Points) -> Vec<usize> {
    let mut seen = HashSet::new();
    (0..points.len()).filter(|&i| seen.insert(key(points.row(i)))).collect()
}
