//! Lloyd's iterations, which look only at what has changed: the points of a centre that moved look at all centres, all
//! others at those that moved. Centres of cells settle one after the other, so most iterations look at few.

use super::effort::Effort;
use super::narrow::Narrowed;
use super::points::{Loss, WeightedPoints};

/// A point changes its centre only for one that is nearer by this share of the squared distance: mostly more than rounding
/// can feign.
const NEARER: f32 = 1e-6;

/// Iterations from given centres, until nothing changes; returns how many were made.
pub(super) fn iterate(
    points: &WeightedPoints,
    centres: &mut [Vec<f64>],
    loss: Loss,
    effort: Effort,
) -> usize {
    if centres.is_empty() || points.is_empty() {
        return 0;
    }
    let narrowed = points.narrowed();
    points.project(centres);
    let mut places = narrowed.places(centres);
    let mut moved: Vec<u32> = (0..centres.len() as u32).collect();
    let mut own: Vec<Own> = vec![Own { centre: u32::MAX, d2: f32::INFINITY }; points.len()];
    let mut unsettled = vec![true; centres.len()];
    let mut cost = f64::INFINITY;
    for done in 0..effort.iterations {
        let before: Vec<u32> = own.iter().map(|o| o.centre).collect();
        assign(narrowed, &places, &moved, &mut own, effort.threads);
        for (before, now) in before.iter().zip(&own).filter(|(b, n)| **b != n.centre) {
            unsettled[now.centre as usize] = true;
            if let Some(left) = unsettled.get_mut(*before as usize) {
                *left = true;
            }
        }
        let mut members = vec![Vec::new(); centres.len()];
        for (i, own) in own.iter().enumerate().filter(|(_, o)| unsettled[o.centre as usize]) {
            members[own.centre as usize].push(i);
        }
        moved.clear();
        let before = std::mem::replace(&mut cost, cost_of(points, &own, loss));
        // Where nothing is gained, rounding moves points to and fro.
        let little = before - cost <= effort.tolerance * cost;
        for (c, members) in members.iter().enumerate() {
            if members.is_empty() {
                continue;
            }
            let next = points.centre_of(members, &centres[c], loss);
            let shift: f64 = next.iter().zip(&centres[c]).map(|(a, b)| (a - b).powi(2)).sum();
            let size: f64 = next.iter().map(|a| a * a).sum();
            unsettled[c] = shift > 1e-20 * size;
            if unsettled[c] {
                // Means settle at once, medians step by step.
                unsettled[c] = loss == Loss::Distance;
                moved.push(c as u32);
                places[c] = narrowed.place(&next);
                centres[c] = next;
            }
        }
        if moved.is_empty() || little {
            return done + 1;
        }
    }
    effort.iterations
}

/// The centre of a point and the squared distance to it.
#[derive(Debug, Clone, Copy)]
struct Own {
    centre: u32,
    d2: f32,
}

fn cost_of(points: &WeightedPoints, own: &[Own], loss: Loss) -> f64 {
    own.iter().zip(points.weights()).map(|(own, w)| w * loss.of(f64::from(own.d2))).sum()
}

/// Finds the centres of all points again after some have moved.
fn assign(
    narrowed: &Narrowed,
    places: &[Vec<f32>],
    moved: &[u32],
    own: &mut [Own],
    threads: usize,
) {
    let mut has_moved = vec![false; places.len()];
    moved.iter().for_each(|c| has_moved[*c as usize] = true);
    let of_moved = |o: &Own| has_moved.get(o.centre as usize).copied().unwrap_or(true);
    let few = 2 * moved.len() < places.len();
    let all_of = |of: &dyn Fn(&Own) -> bool| -> Vec<u32> {
        (0..own.len() as u32).filter(|i| of(&own[*i as usize])).collect()
    };
    let theirs = all_of(&|o| !few || of_moved(o));
    let others = all_of(&|o| few && !of_moved(o));
    for (i, near) in theirs.iter().zip(narrowed.nearest(&theirs, places, threads)) {
        let (at, own) = (*i as usize, &mut own[*i as usize]);
        if let Some(place) = places.get(own.centre as usize) {
            own.d2 = narrowed.own(at, place);
        }
        own.look(near.centre, near.first);
    }
    let some: Vec<Vec<f32>> = moved.iter().map(|c| places[*c as usize].clone()).collect();
    if some.is_empty() || others.is_empty() {
        return;
    }
    for (i, near) in others.iter().zip(narrowed.nearest(&others, &some, threads)) {
        own[*i as usize].look(moved[near.centre as usize], near.first);
    }
}

impl Own {
    fn look(&mut self, centre: u32, d2: f32) {
        if d2 < self.d2 * (1.0 - NEARER) || self.centre == u32::MAX {
            *self = Own { centre, d2 };
        }
    }
}
