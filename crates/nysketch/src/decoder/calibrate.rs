//! Landmarks weighted so that their sketch is the data's: non-negative least squares, min ‖W(Kw − k̄)‖²,
//! whose normal equations are K w = k̄. Landmarks are rows, so k-means on them starts near the clusters.

use crate::atom::Atom;
use crate::atom::embedding::Embedding;
use crate::covariance::Covariance;
use crate::kernel::ScaledKernel;
use crate::kmeans::WeightedPoints;
use crate::optimize::nonnegative_quadratic;

/// Sweeps of the calibration.
const SWEEPS: usize = 300;

/// Landmarks weighted so that their sketch is the data's.
pub fn calibrated(embedding: &Embedding) -> Option<WeightedPoints> {
    let landmarks = embedding.landmarks()?;
    let (d, m) = (embedding.dims(), embedding.len());
    let kernel: ScaledKernel = embedding.kernel();
    let row = |i: usize| &landmarks[i * d..(i + 1) * d];
    let mut gram = vec![0.0; m * m];
    for i in 0..m {
        for j in 0..=i {
            let k = kernel.value(row(i), row(j));
            gram[i * m + j] = k;
            gram[j * m + i] = k;
        }
    }
    let weights = nonnegative_quadratic(&gram, &embedding.target, SWEEPS);
    Some(WeightedPoints::new(d, landmarks, &weights))
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

/// Centres as atoms that share, in each column, the variance of the points around them: more than
/// that a few points cannot tell.
pub fn pooled(points: &WeightedPoints, centres: Vec<Vec<f64>>) -> Vec<Atom> {
    let mut variance = points.variance_around(&centres);
    let least = 1e-6 * variance.iter().fold(1e-12, |a: f64, v| a.max(*v));
    variance.iter_mut().for_each(|v| *v = v.max(least));
    let mut atoms = weighted(points, centres);
    atoms.iter_mut().for_each(|a| a.covariance = Covariance::Diagonal(variance.clone()));
    atoms
}
