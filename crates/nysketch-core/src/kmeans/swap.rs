//! Local search (Lattanzi and Sohler 2019): a point drawn with probability proportional to its cost
//! replaces the centre whose removal costs least, if that lowers the total cost.
//!
//! With the first and second nearest centres known, all k exchanges for one point are evaluated at
//! once: with x as a centre, a point costs `min(first, x)`, and without its own centre
//! `min(second, x)`.

use super::narrow::{Narrowed, Near};
use super::points::{Loss, WeightedPoints};
use crate::numeric::random::draw;

/// Minimum gain of an exchange, as a share of the cost.
const GAIN: f64 = 1e-7;
/// Number of points to try in addition to one per centre.
const MORE: usize = 20;

/// Tries slightly more points than there are centres and returns the number of exchanges.
pub(super) fn exchange(
    points: &WeightedPoints,
    centres: &mut [Vec<f64>],
    loss: Loss,
    threads: usize,
    rng: &mut impl rand::Rng,
) -> usize {
    let (narrowed, weights) = (points.narrowed(), points.weights());
    let mut places = narrowed.places(centres);
    let mut near = narrowed.all_nearest_two(&places, threads);
    let mut costs = costs_of(&near, weights, loss);
    let (mut from, mut lost, mut exchanged) = (Vec::new(), Vec::new(), 0);
    for _ in 0..centres.len() + MORE {
        let Some(x) = draw(&costs, rng) else { break };
        narrowed.from(narrowed.row(x), &mut from);
        lost.clear();
        lost.resize(centres.len(), 0.0);
        let mut gain = 0.0;
        for (((near, x), w), cost) in near.iter().zip(&from).zip(weights).zip(&costs) {
            if *x < near.first {
                gain += cost - w * loss.of(f64::from(*x));
            } else {
                lost[near.centre as usize] += w * loss.of(f64::from(near.second.min(*x))) - cost;
            }
        }
        let cheapest = lost.iter().enumerate().min_by(|a, b| a.1.total_cmp(b.1));
        let Some((removed, loss_of_removal)) = cheapest else { break };
        if gain - loss_of_removal <= GAIN * costs.iter().sum::<f64>() {
            continue;
        }
        let old = std::mem::replace(&mut places[removed], narrowed.row(x).to_vec());
        centres[removed] = points.point(x).into_owned();
        replace(narrowed, &mut near, removed as u32, &old, &from, &places);
        costs = costs_of(&near, weights, loss);
        exchanged += 1;
    }
    exchanged
}

/// Returns the cost of each point.
fn costs_of(near: &[Near], weights: &[f64], loss: Loss) -> Vec<f64> {
    near.iter().zip(weights).map(|(n, w)| w * loss.of(f64::from(n.first))).collect()
}

/// Updates the nearest centres after one centre moved from `old` to a place whose squared distances
/// are `from`.
fn replace(
    narrowed: &Narrowed,
    near: &mut [Near],
    centre: u32,
    old: &[f32],
    from: &[f32],
    places: &[Vec<f32>],
) {
    let mut before = Vec::new();
    narrowed.from(old, &mut before);
    let mut lost = Vec::new();
    for (i, near) in near.iter_mut().enumerate() {
        // The second nearest centre is identified by its distance, which has the same bits.
        if near.centre == centre || near.second == before[i] {
            lost.push(i as u32);
        } else {
            near.look(centre, from[i]);
        }
    }
    for (i, found) in lost.iter().zip(narrowed.nearest_two(&lost, places, 1)) {
        near[*i as usize] = found;
    }
}
