//! The starts of the atoms of a pursuit.
//!
//! The features of all starts are computed once, with the initial variance of atoms, and are used
//! in every round of every pursuit: the best starts are found by one product with the residual.

use super::matching::Objective;
use crate::atom::embedding::Embedding;
use nysketch_core::numeric::linalg::dot;
use nysketch_core::numeric::random::below;

/// Points at which atoms may start, with their features.
#[derive(Debug, Clone)]
pub struct Starts {
    points: Vec<Vec<f64>>,
    /// Initial variance of an atom.
    pub variance: Vec<f64>,
    /// Features divided by their norm in the space of the objective.
    features: Vec<Vec<f64>>,
}

impl Starts {
    /// Creates starts at these points, for atoms of this variance; at least one point is required.
    pub fn new(
        embedding: &Embedding,
        objective: Objective,
        points: Vec<Vec<f64>>,
        variance: Vec<f64>,
    ) -> Self {
        let mut features: Vec<_> =
            points.iter().map(|mean| embedding.features(mean, &variance)).collect();
        if objective == Objective::Projected {
            let products = embedding.metric_times(&features);
            for (f, p) in features.iter_mut().zip(products) {
                let length = dot(f, &p).max(1e-24).sqrt();
                f.iter_mut().for_each(|f| *f /= length);
            }
        }
        Starts { points, variance, features }
    }

    /// Draws `look` starts at random and returns the `follow` starts that are most correlated with
    /// a residual, best first.
    pub fn best(
        &self,
        residual: &[f64],
        look: usize,
        follow: usize,
        rng: &mut impl rand::Rng,
    ) -> Vec<&[f64]> {
        let n = self.points.len();
        let mut order: Vec<usize> = (0..n).collect();
        let look = look.clamp(1, n);
        for i in 0..look {
            order.swap(i, i + below(n - i, rng));
        }
        let mut tried: Vec<(f64, usize)> =
            order[..look].iter().map(|&i| (dot(&self.features[i], residual), i)).collect();
        tried.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        tried.into_iter().take(follow).map(|(_, i)| self.points[i].as_slice()).collect()
    }
}
