//! k-means on a few points in memory: greedy k-means++ starts, then Lloyd's iterations.

use crate::landmarks::{below, draw};
use crate::points::Points;

/// `k` centres (fewer where there are fewer different points), in double precision.
pub fn kmeans(
    points: &Points,
    k: usize,
    iterations: usize,
    rng: &mut impl rand::Rng,
) -> Vec<Vec<f64>> {
    let mut centres = greedy_start(points, k, rng);
    for _ in 0..iterations {
        let mut sums = vec![vec![0.0; points.dims()]; centres.len()];
        let mut counts = vec![0.0; centres.len()];
        for x in points.rows() {
            let (c, _) = nearest(x, &centres);
            counts[c] += 1.0;
            for (s, v) in sums[c].iter_mut().zip(x) {
                *s += f64::from(*v);
            }
        }
        let mut moved = false;
        for ((centre, sum), count) in centres.iter_mut().zip(sums).zip(&counts) {
            if *count > 0.0 {
                let mean: Vec<f64> = sum.iter().map(|s| s / count).collect();
                moved |= mean != *centre;
                *centre = mean;
            }
        }
        if !moved {
            break;
        }
    }
    centres
}

/// The nearest centre and the squared distance to it.
pub fn nearest(x: &[f32], centres: &[Vec<f64>]) -> (usize, f64) {
    let mut best = (0, f64::INFINITY);
    for (c, centre) in centres.iter().enumerate() {
        let d2 = centre
            .iter()
            .zip(x)
            .map(|(a, b)| (a - f64::from(*b)).powi(2))
            .sum();
        if d2 < best.1 {
            best = (c, d2);
        }
    }
    best
}

/// k-means++ where each centre is the best of 2 + ln k draws.
fn greedy_start(points: &Points, k: usize, rng: &mut impl rand::Rng) -> Vec<Vec<f64>> {
    let as_centre = |i: usize| {
        points
            .row(i)
            .iter()
            .map(|v| f64::from(*v))
            .collect::<Vec<f64>>()
    };
    if points.is_empty() || k == 0 {
        return Vec::new();
    }
    let mut centres = vec![as_centre(below(points.len(), rng))];
    let mut d2: Vec<f64> = points.rows().map(|x| nearest(x, &centres).1).collect();
    while centres.len() < k {
        let mut best: Option<(f64, usize, Vec<f64>)> = None;
        for _ in 0..2 + (k as f64).ln() as usize {
            let Some(i) = draw(&d2, rng) else {
                return centres;
            };
            let z = points.row(i);
            let next: Vec<f64> = points
                .rows()
                .zip(&d2)
                .map(|(x, d)| d.min(Points::squared_distance(x, z)))
                .collect();
            let cost = next.iter().sum();
            if best.as_ref().is_none_or(|(c, _, _)| cost < *c) {
                best = Some((cost, i, next));
            }
        }
        let Some((_, i, next)) = best else {
            return centres;
        };
        centres.push(as_centre(i));
        d2 = next;
    }
    centres
}
