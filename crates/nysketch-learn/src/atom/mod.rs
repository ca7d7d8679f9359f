//! Atoms: the components of a mixture, and their mean embeddings in closed form (appendix A).
//!
//! Every atom is a Gaussian `N(μ, Γ)`. To match kernel sums, `Γ = diag γ`; a Dirac has γ = 0. The
//! variants of [`Family`] differ in how γ is learned.

pub mod embedding;

use crate::covariance::Covariance;

/// One component of a mixture.
#[derive(Debug, Clone, PartialEq)]
pub struct Atom {
    /// The weight α ≥ 0.
    pub weight: f64,
    /// The mean μ, or the position of a Dirac.
    pub mean: Vec<f64>,
    /// The covariance Γ, zero for a Dirac.
    pub covariance: Covariance,
    /// The share of each level of each category, concatenated; empty without categories.
    pub levels: Vec<f64>,
}

impl Atom {
    /// Returns the atom `α N(μ, diag γ)`.
    pub fn diagonal(weight: f64, mean: Vec<f64>, variance: Vec<f64>) -> Self {
        Atom::new(weight, mean, Covariance::Diagonal(variance))
    }

    /// Returns the atom `α N(μ, Γ)`.
    pub fn new(weight: f64, mean: Vec<f64>, covariance: Covariance) -> Self {
        Atom { weight, mean, covariance, levels: Vec::new() }
    }

    /// Returns the atom `α δ_μ`.
    pub fn dirac(weight: f64, mean: Vec<f64>) -> Self {
        let variance = vec![0.0; mean.len()];
        Atom::diagonal(weight, mean, variance)
    }

    /// Returns γ of an atom made by [`Atom::diagonal`], for algorithms that handle diagonals only.
    ///
    /// # Panics
    ///
    /// If the covariance is a matrix.
    pub fn variance(&self) -> &[f64] {
        match &self.covariance {
            Covariance::Diagonal(variance) => variance,
            Covariance::Full(_) => unreachable!("an atom with a diagonal"),
        }
    }

    /// Returns γ as a mutable slice.
    ///
    /// # Panics
    ///
    /// If the covariance is a matrix.
    pub fn variance_mut(&mut self) -> &mut [f64] {
        match &mut self.covariance {
            Covariance::Diagonal(variance) => variance,
            Covariance::Full(_) => unreachable!("an atom with a diagonal"),
        }
    }
}

/// The constraints on the variances of all atoms.
#[derive(Debug, Clone, PartialEq)]
pub enum Family {
    /// γ = 0: k-means as in the paper.
    Dirac,
    /// γ is known and the same for all atoms (example 2, and k-means with clusters of known width).
    Known(Vec<f64>),
    /// γ = t γ₀, the same for all atoms: γ₀ is the initial value, t is learned.
    Scaled,
    /// One learned diagonal for all atoms.
    Shared,
    /// One learned diagonal for each atom.
    Diagonal,
}
