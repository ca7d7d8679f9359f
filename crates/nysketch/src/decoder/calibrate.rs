//! Landmarks weighted so that their sketch is the data's: non-negative least squares, min ‖W(Kw − k̄)‖²,
//! whose normal equations are K w = k̄. Landmarks are rows, so k-means on them starts near the clusters.

use crate::atom::Atom;
use crate::atom::embedding::Embedding;
use crate::kernel::ScaledKernel;
use crate::measure::{Measure, nearest};
use crate::optimize::nonnegative_quadratic;

/// Sweeps of the calibration.
const SWEEPS: usize = 300;

/// Landmarks weighted so that their sketch is the data's.
pub fn calibrated(embedding: &Embedding) -> Option<Measure> {
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
    Some(Measure::new(d, landmarks, &weights))
}

/// Centres as atoms, with the share of the measure nearest to each.
pub fn weighted(measure: &Measure, centres: Vec<Vec<f64>>) -> Vec<Atom> {
    let mut mass = vec![0.0; centres.len()];
    for (x, w) in measure.iter() {
        mass[nearest(x, &centres).0] += w / measure.mass();
    }
    let atom =
        |(mean, weight): (Vec<f64>, f64)| Atom { weight, variance: vec![0.0; mean.len()], mean };
    centres.into_iter().zip(mass).map(atom).collect()
}

/// Centres as atoms that share, in each column, the variance of the measure around them: more than
/// that a few points cannot tell.
pub fn pooled(measure: &Measure, centres: Vec<Vec<f64>>) -> Vec<Atom> {
    let mut variance = measure.variance_around(&centres);
    let least = 1e-6 * variance.iter().fold(1e-12, |a: f64, v| a.max(*v));
    variance.iter_mut().for_each(|v| *v = v.max(least));
    let mut atoms = weighted(measure, centres);
    atoms.iter_mut().for_each(|a| a.variance.clone_from(&variance));
    atoms
}
