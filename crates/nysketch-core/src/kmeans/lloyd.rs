//! Lloyd's iterations, which compute only what has changed: centres of points that changed theirs, and points that
//! [bounds](super::assignment) do not tell that nothing changed for them.

use super::assignment::{Assignment, Own};
use super::effort::Effort;
use super::points::{Loss, WeightedPoints};

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
    points.project(centres);
    let mut assignment = Assignment::new(points.narrowed(), centres, effort.threads);
    let mut unsettled = vec![true; centres.len()];
    let mut cost = f64::INFINITY;
    for done in 0..effort.iterations {
        let before: Vec<u32> = assignment.own().iter().map(|o| o.centre).collect();
        assignment.round();
        let own = assignment.own();
        for (before, now) in before.iter().zip(own).filter(|(b, n)| **b != n.centre) {
            unsettled[now.centre as usize] = true;
            if let Some(left) = unsettled.get_mut(*before as usize) {
                *left = true;
            }
        }
        let before = std::mem::replace(&mut cost, cost_of(points, own, loss));
        // Where nothing is gained, rounding moves points to and fro.
        let little = before - cost <= effort.tolerance * cost;
        let mut moved = false;
        let best = points.best_centres(|i| own[i].centre as usize, &unsettled, centres, loss);
        for (c, next) in best.into_iter().enumerate() {
            let Some(next) = next else { continue };
            let shift: f64 = next.iter().zip(&centres[c]).map(|(a, b)| (a - b).powi(2)).sum();
            let size: f64 = next.iter().map(|a| a * a).sum();
            unsettled[c] = shift > 1e-20 * size;
            if unsettled[c] {
                // Means settle at once, medians step by step.
                unsettled[c] = loss == Loss::Distance;
                moved = true;
                assignment.place(c, &next);
                centres[c] = next;
            }
        }
        if !moved || little {
            return done + 1;
        }
    }
    effort.iterations
}

fn cost_of(points: &WeightedPoints, own: &[Own], loss: Loss) -> f64 {
    own.iter().zip(points.weights()).map(|(own, w)| w * loss.of(f64::from(own.d2))).sum()
}
