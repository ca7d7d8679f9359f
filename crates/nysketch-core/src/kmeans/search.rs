//! The search for k centres of small risk: several starts, Lloyd's iterations, exchanges.

use super::effort::Effort;
use super::points::{Loss, WeightedPoints};
use super::{lloyd, seed, swap};

impl WeightedPoints {
    /// Returns `k` centres: the best of several runs of greedy k-means++ starts, Lloyd's
    /// iterations, and exchanges of centres for distant points. Returns fewer centres if there are
    /// fewer distinct points.
    pub fn cluster(
        &self,
        k: usize,
        loss: Loss,
        effort: Effort,
        rng: &mut impl rand::Rng,
    ) -> Vec<Vec<f64>> {
        self.cluster_from(k, loss, effort, &[], rng).1
    }

    /// Returns the risk and the centres. Fewer than k `warm` centres give an additional run that
    /// adds the others; k `warm` centres are the only start.
    pub fn cluster_from(
        &self,
        k: usize,
        loss: Loss,
        effort: Effort,
        warm: &[Vec<f64>],
        rng: &mut impl rand::Rng,
    ) -> (f64, Vec<Vec<f64>>) {
        if warm.len() == k {
            let mut centres = warm.to_vec();
            self.iterate(&mut centres, loss, effort);
            return (self.risk(&centres, loss), centres);
        }
        let (mut best, mut min_risk) = (Vec::new(), f64::INFINITY);
        let grown = usize::from(!warm.is_empty());
        for run in 0..effort.restarts + grown {
            let mut centres = if run < effort.restarts {
                seed::start(self, k, rng)
            } else {
                seed::grow(self, warm.to_vec(), k, rng)
            };
            let risk = self.improve(&mut centres, loss, effort, rng);
            if risk < min_risk || run == 0 {
                (min_risk, best) = (risk, centres);
            }
        }
        (min_risk, best)
    }

    /// Alternates Lloyd's iterations and exchanges, and returns the risk.
    fn improve(
        &self,
        centres: &mut Vec<Vec<f64>>,
        loss: Loss,
        effort: Effort,
        rng: &mut impl rand::Rng,
    ) -> f64 {
        self.iterate(centres, loss, effort);
        let mut risk = self.risk(centres, loss);
        for _ in 0..effort.exchanges {
            let mut other = centres.clone();
            if swap::exchange(self, &mut other, loss, effort.threads, rng) == 0 {
                break;
            }
            self.iterate(&mut other, loss, effort);
            let found = self.risk(&other, loss);
            if found < risk {
                (risk, *centres) = (found, other);
            }
        }
        risk
    }

    /// Runs Lloyd's iterations from given centres until convergence and returns the number of
    /// iterations.
    pub fn iterate(&self, centres: &mut [Vec<f64>], loss: Loss, effort: Effort) -> usize {
        lloyd::iterate(self, centres, loss, effort)
    }

    /// Adds centres until there are `k`.
    pub fn grow(
        &self,
        centres: Vec<Vec<f64>>,
        k: usize,
        rng: &mut impl rand::Rng,
    ) -> Vec<Vec<f64>> {
        seed::grow(self, centres, k, rng)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    const EFFORT: Effort = Effort::new(5, 100);

    #[test]
    fn weighted_means_and_medians() {
        let points =
            WeightedPoints::new(1, &[0.0, 1.0, 100.0, 102.0, 7.0], &[3.0, 1.0, 1.0, 1.0, 0.0]);
        assert_eq!(points.len(), 4, "weight zero is left out");
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let mut means = points.cluster(2, Loss::Squared, EFFORT, &mut rng);
        means.sort_by(|a, b| a[0].total_cmp(&b[0]));
        assert_eq!(means, [vec![0.25], vec![101.0]]);
        // Three rows at 0 outweigh one at 1, so the median is 0.
        let mut medians = points.cluster(2, Loss::Distance, EFFORT, &mut rng);
        medians.sort_by(|a, b| a[0].total_cmp(&b[0]));
        assert!(medians[0][0].abs() < 1e-6, "{medians:?}");
        assert!(
            (points.risk(&means, Loss::Squared) - (3.0 * 0.0625 + 0.5625 + 2.0) / 6.0).abs()
                < 1e-12
        );
    }

    #[test]
    fn fewer_points_than_centres() {
        let points = WeightedPoints::new(2, &[1.0, 1.0, 1.0, 1.0], &[1.0, 1.0]);
        let centres = points.cluster(3, Loss::Squared, EFFORT, &mut ChaCha8Rng::seed_from_u64(1));
        assert_eq!(centres, [vec![1.0, 1.0]]);
    }
}
