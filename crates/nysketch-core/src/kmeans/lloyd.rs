//! Lloyd's iterations. They recompute only centres whose points have changed, and only points whose
//! nearest centre the [bounds](super::assignment) leave undecided.

use super::assignment::{Assigned, Assignment};
use super::effort::Effort;
use super::points::{Loss, WeightedPoints};

/// Iterates from given centres until convergence and returns the number of iterations.
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
        let before: Vec<u32> = assignment.assigned().iter().map(|o| o.centre).collect();
        assignment.round();
        let assigned = assignment.assigned();
        for (before, now) in before.iter().zip(assigned).filter(|(b, n)| **b != n.centre) {
            unsettled[now.centre as usize] = true;
            if let Some(left) = unsettled.get_mut(*before as usize) {
                *left = true;
            }
        }
        let before = std::mem::replace(&mut cost, cost_of(points, assigned, loss));
        // If the cost does not decrease, rounding moves points back and forth.
        let little = before - cost <= effort.tolerance * cost;
        let mut moved = false;
        let best = points.best_centres(|i| assigned[i].centre as usize, &unsettled, centres, loss);
        for (c, next) in best.into_iter().enumerate() {
            let Some(next) = next else { continue };
            let shift: f64 = next.iter().zip(&centres[c]).map(|(a, b)| (a - b).powi(2)).sum();
            let size: f64 = next.iter().map(|a| a * a).sum();
            unsettled[c] = shift > 1e-20 * size;
            if unsettled[c] {
                // A mean is final for its points; a median converges step by step.
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

fn cost_of(points: &WeightedPoints, assigned: &[Assigned], loss: Loss) -> f64 {
    assigned.iter().zip(points.weights()).map(|(point, w)| w * loss.of(f64::from(point.d2))).sum()
}
