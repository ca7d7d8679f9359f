//! Calibrated landmarks: landmarks weighted so that their sketch matches that of the data, and
//! mixtures learned from them.
//!
//! The weights solve a non-negative least-squares problem at all bandwidths at once: in the metric
//! of each bandwidth, min Σ_l ‖W_l(K_l w − k̄_l)‖² has the normal equations (Σ_l K_l) w = Σ_l k̄_l.
//! Landmarks are rows, so k-means and EM on them find clusters of any shape, whereas matching the
//! sketch by a mixture assumes that the data is a mixture.

use super::em::{Em, Floor, Shaped, TOLERANCE, Until};
use super::params::FitParams;
use crate::atom::Atom;
use crate::covariance::{Covariance, CovarianceKind};
use crate::optimize::nonnegative_exact;
use nysketch_core::kmeans::{Effort, Loss, WeightedPoints};
use nysketch_core::numeric::parallel::in_parallel;
use nysketch_core::sketch::Sketch;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

/// Candidate amounts of shrinkage: the weight, in points, of the variances pooled over all
/// components.
const SHRINKAGES: [f64; 4] = [0.0, 1.0, 4.0, 16.0];
/// Number of EM starts and of steps per start.
const STARTS: usize = 10;
const STEPS: usize = 300;
/// Number of parts of the points, each of which is held out once.
const FOLDS: usize = 4;

/// Returns the landmarks, row-major, weighted so that their sketch matches that of the data.
pub fn calibrated(sketch: &Sketch, landmarks: &[f64]) -> WeightedPoints {
    let plan = sketch.plan();
    let d = plan.dims();
    let m = landmarks.len() / d;
    let (mut gram, mut target) = (vec![0.0; m * m], vec![0.0; m]);
    for (rung, sigma2) in plan.bandwidths.iter().enumerate() {
        let kernel = plan.kernel.at(*sigma2);
        target.iter_mut().zip(sketch.feature_means(rung)).for_each(|(t, mean)| *t += mean);
        for (i, a) in landmarks.chunks_exact(d).enumerate() {
            for (j, b) in landmarks.chunks_exact(d).enumerate().take(i + 1) {
                gram[i * m + j] += kernel.value(a, b);
            }
        }
    }
    for i in 0..m {
        for j in 0..i {
            gram[j * m + i] = gram[i * m + j];
        }
    }
    let weights = nonnegative_exact(&gram, &target);
    WeightedPoints::new(d, landmarks, &weights)
}

/// Returns centres as atoms, with the share of the points nearest to each.
pub fn weighted(points: &WeightedPoints, centres: Vec<Vec<f64>>) -> Vec<Atom> {
    let mut mass = vec![0.0; centres.len()];
    let total = points.mass();
    for (w, nearest) in points.weights().iter().zip(points.assign(&centres)) {
        mass[nearest] += w / total;
    }
    centres.into_iter().zip(mass).map(|(mean, weight)| Atom::dirac(weight, mean)).collect()
}

/// Returns centres as atoms that share, in each column, the variance of the points around them.
fn pooled(points: &WeightedPoints, centres: Vec<Vec<f64>>) -> Vec<Atom> {
    let variance = points.variance_around(&centres);
    let mut atoms = weighted(points, centres);
    atoms.iter_mut().for_each(|a| a.covariance = Covariance::Diagonal(variance.clone()));
    atoms
}

/// A mixture learned from points, with its likelihood.
#[derive(Debug, Clone)]
pub struct Learned {
    /// The mixture.
    pub atoms: Vec<Atom>,
    /// Estimated mean log-likelihood of the mixture on rows that are not among the points.
    pub likelihood: f64,
}

/// The settings of EM on a few points.
struct Learning<'a> {
    k: usize,
    /// Minimum variance in each column.
    floor: &'a Floor,
    seed: u64,
}

impl Learning<'_> {
    fn em(&self, points: &WeightedPoints, shrinkage: f64) -> Em<'_> {
        let places: Vec<f64> = points.iter().flat_map(|(x, _)| x.into_owned()).collect();
        let shaped = Shaped { kind: CovarianceKind::Diag, floor: self.floor, shrinkage };
        Em::new(points.weights(), &places, &[], shaped)
    }

    /// Returns the most likely mixture of several starts, with its likelihood on the points.
    fn learned(&self, points: &WeightedPoints, shrinkage: f64, starts: usize) -> Learned {
        let (em, rng) = (self.em(points, shrinkage), &mut ChaCha8Rng::seed_from_u64(self.seed));
        (0..starts)
            .map(|_| {
                let centres = points.cluster(self.k, Loss::Squared, Effort::new(2, 50), rng);
                let mut atoms = pooled(points, centres);
                atoms.iter_mut().for_each(|a| self.floor.lift(&mut a.covariance));
                let until = Until { steps: STEPS, tolerance: TOLERANCE };
                Learned { likelihood: em.run(&mut atoms, until).likelihood, atoms }
            })
            .reduce(|a, b| if b.likelihood > a.likelihood { b } else { a })
            .expect("there is a start")
    }
}

/// Learns a diagonal mixture of k components by EM. A few points do not determine all variances, so
/// the variances of each component are shrunk towards those pooled over all components. The amount
/// is the one for which mixtures of three quarters of the points are most likely on the remaining
/// quarter.
///
/// `floor` is the minimum variance in each column.
pub fn mixture(points: &WeightedPoints, k: usize, floor: &Floor, params: &FitParams) -> Learned {
    let learning = Learning { k, floor, seed: params.seed };
    let mut folds: Vec<_> = (0..FOLDS).map(|fold| points.without(fold, FOLDS)).collect();
    folds.retain(|(rest, fold)| rest.len() >= k && !fold.is_empty());
    if folds.is_empty() {
        // There are too few points to hold any out.
        return learning.learned(points, 0.0, STARTS);
    }
    let mass: f64 = folds.iter().map(|(_, fold)| fold.mass()).sum();
    let tried = SHRINKAGES.iter().flat_map(|s| folds.iter().map(move |fold| (*s, fold))).collect();
    let likelihoods = in_parallel(params.threads, tried, |(shrinkage, (rest, fold))| {
        let mut atoms = learning.learned(rest, shrinkage, STARTS / 3).atoms;
        learning.em(fold, 0.0).step(&mut atoms) * fold.mass() / mass
    });
    let scored =
        likelihoods.chunks(folds.len()).map(|each| each.iter().sum::<f64>()).zip(SHRINKAGES);
    let (other, shrinkage) =
        scored.reduce(|a, b| if b.0 > a.0 { b } else { a }).expect("there is a choice");
    let learned = learning.learned(points, shrinkage, STARTS);
    // With p parameters and s points, the log-likelihood is p/2s too large on the points
    // themselves, p/2s too small on other rows, and 4/3 times as much too small on a quarter of the
    // points under the mixture fitted to the rest.
    Learned { likelihood: (learned.likelihood + 6.0 * other) / 7.0, atoms: learned.atoms }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::task::Task;

    fn learned(points: &[f64], weights: &[f64], k: usize) -> Learned {
        let points = WeightedPoints::new(1, points, weights);
        let floor = Floor::new(vec![1e-3]);
        mixture(&points, k, &floor, &FitParams::new(Task::Gmm, k))
    }

    /// Two clusters of weighted points; each component has the total weight of its points.
    #[test]
    fn em_on_weighted_points_finds_the_clusters() {
        let points: Vec<f64> = (0..60)
            .map(|i| if i < 40 { i as f64 * 0.05 } else { 50.0 + (i - 40) as f64 * 0.1 })
            .collect();
        let weights: Vec<f64> = (0..60).map(|i| if i < 40 { 1.0 } else { 6.0 }).collect();
        let mut atoms = learned(&points, &weights, 2).atoms;
        atoms.sort_by(|a, b| a.mean[0].total_cmp(&b.mean[0]));
        for (atom, weight, mean) in [(&atoms[0], 0.25, 0.975), (&atoms[1], 0.75, 50.95)] {
            assert!((atom.weight - weight).abs() < 1e-6, "{atoms:?}");
            assert!((atom.mean[0] - mean).abs() < 1e-6, "{atoms:?}");
        }
        // The variance of 40 points at distances of 0.05 is 0.05²·(40² − 1)/12; shrinkage moves it
        // towards that of the other cluster.
        let (first, second) = (0.05f64.powi(2) * 1599.0 / 12.0, 0.01 * 399.0 / 12.0);
        let found = atoms[0].variance()[0];
        assert!(found <= first + 1e-9 && found > 0.99 * first.min(second), "{found}");
    }

    /// No combination panics, whatever number of points remains.
    #[test]
    fn few_points_give_few_atoms() {
        for (count, k) in [(1, 1), (1, 3), (3, 1), (3, 3), (4, 2), (5, 5), (7, 3)] {
            let points: Vec<f64> = (0..count).map(|i| i as f64).collect();
            let found = learned(&points, &vec![1.0; count], k);
            assert_eq!(found.atoms.len(), k.min(count), "{count} points, k = {k}");
            assert!(
                found.likelihood.is_finite() && found.atoms.iter().all(|a| a.weight.is_finite())
            );
        }
    }
}
