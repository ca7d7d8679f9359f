//! The cluster of each point that represents rows, and the matching of clusters between two models.

use super::context::Context;
use super::stand_ins::StandIns;
use crate::atom::Atom;
use crate::model::{Model, Shape};
use nysketch_core::error::Result;

/// The cluster and the weight of each point.
#[derive(Debug, Clone)]
pub(super) struct Labels {
    k: usize,
    weights: Vec<f64>,
    labels: Vec<usize>,
}

impl Context<'_> {
    /// Returns the cluster or component of each point of this sketch under a model; no points for
    /// principal components.
    pub(super) fn labelled(&self, model: &Model) -> Result<Labels> {
        let k = model.k();
        match &model.shape {
            Shape::Components { .. } => Ok(Labels { k, weights: Vec::new(), labels: Vec::new() }),
            Shape::Centres { .. } => {
                let points = self.risk_points()?;
                let labels = points.assign(&self.centres_of(model).unwrap_or_default());
                Ok(Labels { k, weights: points.iter().map(|(_, w)| w).collect(), labels })
            }
            Shape::Mixture { .. } => {
                let atoms = self.atoms_of(model).unwrap_or_default();
                let points = self.stand_ins();
                let labels = points.as_ref().map_or(Vec::new(), |p| most_likely(p, &atoms));
                let weights = points.map_or(Vec::new(), |p| p.weights().to_vec());
                Ok(Labels { k, weights, labels })
            }
        }
    }
}

/// Returns the most likely component of each point, the first one in case of ties.
fn most_likely(points: &StandIns, atoms: &[Atom]) -> Vec<usize> {
    let levels = points.levels();
    let mut best = vec![(0, f64::NEG_INFINITY); points.len()];
    for (c, atom) in atoms.iter().enumerate() {
        let Some(factor) = atom.covariance.cholesky() else { continue };
        let (weight, logs) = (atom.weight.ln(), levels.logs(&atom.levels));
        for (i, best) in best.iter_mut().enumerate() {
            let of_levels = levels.log(&logs, i);
            let log = weight + factor.log_density(points.point(i), &atom.mean) + of_levels;
            if log > best.1 {
                *best = (c, log);
            }
        }
    }
    best.into_iter().map(|(c, _)| c).collect()
}

impl Labels {
    /// Returns, for each cluster of `self`, the Jaccard similarity to its match in `other`, labels
    /// of the same points. The match of a cluster is the one with which it shares more than half of
    /// their union; the similarity is 0 if there is none.
    pub fn found_again(&self, other: &Labels) -> Vec<f64> {
        let mut shared = vec![vec![0.0; other.k]; self.k];
        let (mut ours, mut theirs) = (vec![0.0; self.k], vec![0.0; other.k]);
        for ((a, b), weight) in self.labels.iter().zip(&other.labels).zip(&self.weights) {
            shared[*a][*b] += weight;
            ours[*a] += weight;
            theirs[*b] += weight;
        }
        let mut matches = Vec::with_capacity(self.k);
        for (a, shared) in shared.iter().enumerate() {
            let mut best = 0.0;
            for (b, both) in shared.iter().enumerate() {
                let either: f64 = ours[a] + theirs[b] - both;
                best = f64::max(best, both / either.max(f64::MIN_POSITIVE));
            }
            matches.push(if best > 0.5 { best } else { 0.0 });
        }
        matches
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(k: usize, labels: &[usize]) -> Labels {
        Labels { k, weights: vec![1.0, 1.0, 2.0, 1.0, 1.0, 2.0], labels: labels.to_vec() }
    }

    #[test]
    fn clusters_that_share_more_than_half_match() {
        let model = labels(3, &[0, 0, 0, 1, 1, 2]);
        assert_eq!(model.found_again(&labels(3, &[2, 2, 2, 0, 0, 1])), [1.0; 3]);
        // In turn: shares three of four points, half of a cluster of two, and two of a union of
        // three.
        assert_eq!(model.found_again(&labels(3, &[0, 1, 0, 1, 2, 2])), [0.75, 0.0, 2.0 / 3.0]);
    }
}
