//! Landmarks weighted so that their sketch is the data's, and what can be learned from them.
//!
//! Weights are those of non-negative least squares at all bandwidths at once: in the metric of each, min Σ_l ‖W_l(K_l w − k̄_l)‖²
//! has the normal equations (Σ_l K_l) w = Σ_l k̄_l. Landmarks are rows, so k-means and EM on them find clusters of any shape,
//! where matching the sketch by a mixture supposes that there is one.

use super::em::{Em, Floor, Shaped, TOLERANCE, Until};
use super::params::FitParams;
use crate::atom::Atom;
use crate::covariance::{Covariance, CovarianceKind};
use crate::kmeans::{Effort, Loss, WeightedPoints};
use crate::optimize::nonnegative_exact;
use crate::parallel::in_parallel;
use crate::sketch::Sketch;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

/// How many points' worth of the variances of all components together those of one may be mixed with.
const SHRINKAGES: [f64; 4] = [0.0, 1.0, 4.0, 16.0];
/// Starts of EM and its steps.
const STARTS: usize = 10;
const STEPS: usize = 300;
/// Parts of the points, each of which is held out once.
const FOLDS: usize = 4;

/// Row-major landmarks weighted so that their sketch is the data's.
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

/// Centres as atoms, with the share of the points nearest to each.
pub fn weighted(points: &WeightedPoints, centres: Vec<Vec<f64>>) -> Vec<Atom> {
    let mut mass = vec![0.0; centres.len()];
    let total = points.mass();
    for (w, own) in points.weights().iter().zip(points.assign(&centres)) {
        mass[own] += w / total;
    }
    let atom = |(mean, weight): (Vec<f64>, f64)| Atom::dirac(weight, mean);
    centres.into_iter().zip(mass).map(atom).collect()
}

/// Centres as atoms that share, in each column, the variance of the points around them.
fn pooled(points: &WeightedPoints, centres: Vec<Vec<f64>>) -> Vec<Atom> {
    let variance = points.variance_around(&centres);
    let mut atoms = weighted(points, centres);
    atoms.iter_mut().for_each(|a| a.covariance = Covariance::Diagonal(variance.clone()));
    atoms
}

/// A mixture learned from points, and how likely it makes rows.
#[derive(Debug, Clone)]
pub struct Learned {
    /// The mixture.
    pub atoms: Vec<Atom>,
    /// Its mean log-likelihood on rows that are not among the points, as far as the points tell.
    pub likelihood: f64,
}

/// A diagonal mixture of k components by EM. Few points carry few variances: those of a component are mixed with those of
/// all, as far as mixtures of three quarters of the points find best for the last quarter.
///
/// `floor` is the least variance in each column.
pub fn mixture(points: &WeightedPoints, k: usize, floor: &Floor, params: &FitParams) -> Learned {
    let em = |points: &WeightedPoints, shrinkage: f64| {
        let places: Vec<f64> = points.iter().flat_map(|(x, _)| x.into_owned()).collect();
        let shaped = Shaped { kind: CovarianceKind::Diag, floor, shrinkage };
        Em::new(points.weights(), &places, &[], shaped)
    };
    let learn = |points: &WeightedPoints, shrinkage: f64, starts: usize| {
        let (em, rng) = (em(points, shrinkage), &mut ChaCha8Rng::seed_from_u64(params.seed));
        let each = |_: usize| {
            let centres = points.cluster(k, Loss::Squared, Effort::new(2, 50), rng);
            let mut atoms = pooled(points, centres);
            atoms.iter_mut().for_each(|a| floor.lift(&mut a.covariance));
            let until = Until { steps: STEPS, tolerance: TOLERANCE };
            Learned { likelihood: em.run(&mut atoms, until).likelihood, atoms }
        };
        let better = |a: Learned, b: Learned| if b.likelihood > a.likelihood { b } else { a };
        (0..starts).map(each).reduce(better).expect("there is a start")
    };
    let mut folds: Vec<_> = (0..FOLDS).map(|fold| points.without(fold, FOLDS)).collect();
    folds.retain(|(rest, fold)| rest.len() >= k && !fold.is_empty());
    if folds.is_empty() {
        // Too few points to tell anything but themselves.
        return learn(points, 0.0, STARTS);
    }
    let told: f64 = folds.iter().map(|(_, fold)| fold.mass()).sum();
    let tried = SHRINKAGES.iter().flat_map(|s| folds.iter().map(move |fold| (*s, fold))).collect();
    let held_out = |(shrinkage, (rest, fold)): (f64, &(WeightedPoints, WeightedPoints))| {
        let mut atoms = learn(rest, shrinkage, STARTS / 3).atoms;
        em(fold, 0.0).step(&mut atoms) * fold.mass() / told
    };
    let said = in_parallel(params.threads, tried, held_out);
    let scored = said.chunks(folds.len()).map(|each| each.iter().sum::<f64>()).zip(SHRINKAGES);
    let (other, shrinkage) =
        scored.reduce(|a, b| if b.0 > a.0 { b } else { a }).expect("there is a choice");
    let own = learn(points, shrinkage, STARTS);
    // With p numbers and s points the likelihood is p/2s too large on them, p/2s too small on other rows, and 4/3 of that too
    // small on a quarter of the points under what was fitted to the others.
    Learned { likelihood: (own.likelihood + 6.0 * other) / 7.0, atoms: own.atoms }
}
