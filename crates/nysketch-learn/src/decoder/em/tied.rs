//! A step of EM with one covariance matrix shared by all atoms.
//!
//! After whitening by the matrix, all atoms have variance one, and the step is that of diagonal
//! covariances. The next matrix is the covariance of all points, which does not change, minus that
//! of the means:
//!
//! ```text
//! Γ = Cov(x) − Σ_c α_c (μ_c − x̄)(μ_c − x̄)ᵀ
//! ```

use super::diagonal::Diagonal;
use super::levels::Levels;
use super::near::Near;
use super::passed::{Densities, Moments, Passed};
use crate::atom::Atom;
use crate::covariance::{Covariance, Factor, SymmetricMatrix};
use nysketch_core::numeric::linalg::{add_gram, product};
use nysketch_core::numeric::simd::Instructions;

/// Number of points whose covariance is added up at once.
const BLOCK: usize = 256;

/// Points for atoms that share a matrix.
#[derive(Debug)]
pub struct Tied {
    dims: usize,
    weights: Vec<f64>,
    /// Row-major.
    places: Vec<f64>,
}

/// Mean and covariance of all points.
#[derive(Debug)]
pub struct Total {
    mean: Vec<f64>,
    covariance: SymmetricMatrix,
}

/// Returns the average of the covariances of all atoms, weighted by their weights.
pub fn pooled(atoms: &[Atom]) -> Covariance {
    let total: f64 = atoms.iter().map(|a| a.weight).sum();
    Covariance::Full(SymmetricMatrix::from_fn(atoms[0].mean.len(), |i, j| {
        atoms.iter().map(|a| a.weight * a.covariance.get(i, j)).sum::<f64>() / total
    }))
}

impl Total {
    pub fn new(dims: usize, weights: &[f64], places: &[f64]) -> Self {
        let mass: f64 = weights.iter().sum();
        let mut mean = vec![0.0; dims];
        for (x, w) in places.chunks_exact(dims).zip(weights) {
            mean.iter_mut().zip(x).for_each(|(mean, x)| *mean += w / mass * x);
        }
        let (mut gram, mut part) = (vec![0.0; dims * dims], Vec::with_capacity(BLOCK * dims));
        for (places, weights) in places.chunks(BLOCK * dims).zip(weights.chunks(BLOCK)) {
            part.clear();
            for (x, w) in places.chunks_exact(dims).zip(weights) {
                let root = (w / mass).sqrt();
                part.extend(x.iter().zip(&mean).map(|(x, mean)| root * (x - mean)));
            }
            add_gram(&mut gram, &part, dims);
        }
        let covariance = SymmetricMatrix::from_fn(dims, |i, j| gram[j * dims + i]);
        Total { mean, covariance }
    }

    /// Returns the covariance within the atoms: that of all points minus that of the means.
    pub fn within(&self, atoms: &[Atom]) -> Covariance {
        let d = self.mean.len();
        let apart: Vec<Vec<f64>> = atoms
            .iter()
            .map(|a| {
                let root = a.weight.sqrt();
                a.mean.iter().zip(&self.mean).map(move |(m, mean)| root * (m - mean)).collect()
            })
            .collect();
        let mut gram = vec![0.0; d * d];
        add_gram(&mut gram, &apart.concat(), d);
        Covariance::Full(SymmetricMatrix::from_fn(d, |i, j| {
            self.covariance.get(i, j) - gram[j * d + i]
        }))
    }
}

impl Tied {
    pub fn new(dims: usize, weights: &[f64], places: &[f64]) -> Self {
        Tied { dims, weights: weights.to_vec(), places: places.to_vec() }
    }

    /// Returns the same points in another order.
    pub fn ordered(&self, order: &[usize]) -> Self {
        Tied {
            dims: self.dims,
            weights: order.iter().map(|i| self.weights[*i]).collect(),
            places: order
                .iter()
                .flat_map(|i| &self.places[i * self.dims..(i + 1) * self.dims])
                .copied()
                .collect(),
        }
    }

    /// Returns the sums for which each atom is responsible, without second moments. If `near` is
    /// given, each block evaluates only the listed atoms.
    pub fn pass(&self, atoms: &[Atom], levels: &Levels, near: Option<&Near>) -> Passed {
        let Some(factor) = pooled(atoms).cholesky() else {
            return Passed::nothing(atoms.len(), self.dims, levels.total());
        };
        let (points, white) = self.whitened(atoms, &factor);
        let mut passed = points.pass(&white, levels, near, Instructions::best());
        passed.likelihood -= 0.5 * factor.log_det() * self.weights.iter().sum::<f64>();
        for Moments { first, .. } in &mut passed.moments {
            *first = factor.unwhiten(std::mem::take(first));
        }
        passed
    }

    /// Returns the log density of each point and the entropy of its responsibilities.
    pub fn densities(&self, atoms: &[Atom], levels: &Levels) -> Densities {
        let Some(factor) = atoms[0].covariance.cholesky() else {
            return Densities::zero(self.weights.len());
        };
        let (points, white) = self.whitened(atoms, &factor);
        let mut found = points.densities(&white, levels, Instructions::best());
        found.log_density.iter_mut().for_each(|log| *log -= 0.5 * factor.log_det());
        found
    }

    /// Returns the points and the atoms, whitened by the matrix.
    fn whitened(&self, atoms: &[Atom], factor: &Factor) -> (Diagonal, Vec<Atom>) {
        let d = self.dims;
        let (mut whitening, mut white) = (vec![0.0; d * d], vec![0.0; self.places.len()]);
        factor.each_entry(|i, j, w| whitening[j * d + i] = w);
        product(&mut white, &whitening, &self.places, d);
        (
            Diagonal::new(d, &self.weights, &white, &[]),
            atoms
                .iter()
                .map(|a| Atom {
                    levels: a.levels.clone(),
                    ..Atom::diagonal(a.weight, factor.whiten(&a.mean), vec![1.0; d])
                })
                .collect(),
        )
    }
}
