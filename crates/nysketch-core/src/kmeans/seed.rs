//! Greedy k-means++: each next centre is the best of several points drawn with probability
//! proportional to their cost.

use super::points::WeightedPoints;
use crate::numeric::random::draw;

/// Adds centres until there are `k`, each the best of 2 + ln k draws with probability proportional
/// to D². Adds fewer if there are fewer distinct points.
pub(super) fn grow(
    points: &WeightedPoints,
    mut centres: Vec<Vec<f64>>,
    k: usize,
    rng: &mut impl rand::Rng,
) -> Vec<Vec<f64>> {
    if centres.is_empty() {
        return centres;
    }
    let narrowed = points.narrowed();
    let mut d2: Vec<f32> = points.nearest(&centres).iter().map(|near| near.first).collect();
    let (mut scores, mut next, mut best) = (Vec::new(), Vec::new(), Vec::new());
    while centres.len() < k {
        scores.clear();
        scores.extend(d2.iter().zip(points.weights()).map(|(d, w)| f64::from(*d) * w));
        let mut cheapest: Option<(f64, usize)> = None;
        for _ in 0..2 + (k as f64).ln() as usize {
            let Some(i) = draw(&scores, rng) else {
                return centres;
            };
            narrowed.from(narrowed.row(i), &mut next);
            let mut cost = 0.0;
            for ((next, d2), w) in next.iter_mut().zip(&d2).zip(points.weights()) {
                *next = next.min(*d2);
                cost += f64::from(*next) * w;
            }
            if cheapest.is_none_or(|(c, _)| cost < c) {
                cheapest = Some((cost, i));
                std::mem::swap(&mut next, &mut best);
            }
        }
        let Some((_, i)) = cheapest else {
            return centres;
        };
        centres.push(points.point(i).into_owned());
        std::mem::swap(&mut d2, &mut best);
    }
    centres
}

/// Starts with one point, drawn by weight, and adds centres until there are `k`.
pub(super) fn start(points: &WeightedPoints, k: usize, rng: &mut impl rand::Rng) -> Vec<Vec<f64>> {
    match draw(points.weights(), rng).filter(|_| k > 0) {
        Some(first) => grow(points, vec![points.point(first).into_owned()], k, rng),
        None => Vec::new(),
    }
}
