//! Atoms: the components of a mixture, and their mean embeddings in closed form (appendix A).
//!
//! Every atom is a Gaussian `N(μ, Γ)`. Kernel sums are matched by `Γ = diag γ`; a Dirac is γ = 0. Five families
//! differ in what is learned about γ: [`Family`].

pub mod embedding;

use crate::covariance::Covariance;

/// One component.
#[derive(Debug, Clone, PartialEq)]
pub struct Atom {
    /// α ≥ 0.
    pub weight: f64,
    /// μ, or the place of a Dirac.
    pub mean: Vec<f64>,
    /// Γ, zero for a Dirac.
    pub covariance: Covariance,
    /// The share of each level of each category, one after the other; empty where there are none.
    pub levels: Vec<f64>,
}

impl Atom {
    /// `α N(μ, diag γ)`.
    pub fn diagonal(weight: f64, mean: Vec<f64>, variance: Vec<f64>) -> Self {
        Atom::new(weight, mean, Covariance::Diagonal(variance))
    }

    /// `α N(μ, Γ)`.
    pub fn new(weight: f64, mean: Vec<f64>, covariance: Covariance) -> Self {
        Atom { weight, mean, covariance, levels: Vec::new() }
    }

    /// `α δ_μ`.
    pub fn dirac(weight: f64, mean: Vec<f64>) -> Self {
        let variance = vec![0.0; mean.len()];
        Atom::diagonal(weight, mean, variance)
    }

    /// γ of an atom made by [`Atom::diagonal`], for algorithms that know no others.
    ///
    /// # Panics
    ///
    /// Where the covariance is a matrix.
    pub fn variance(&self) -> &[f64] {
        match &self.covariance {
            Covariance::Diagonal(variance) => variance,
            Covariance::Full(_) => unreachable!("an atom with a diagonal"),
        }
    }

    /// The same, to be changed.
    ///
    /// # Panics
    ///
    /// Where the covariance is a matrix.
    pub fn variance_mut(&mut self) -> &mut [f64] {
        match &mut self.covariance {
            Covariance::Diagonal(variance) => variance,
            Covariance::Full(_) => unreachable!("an atom with a diagonal"),
        }
    }
}

/// What is known and what is learned about the variances.
#[derive(Debug, Clone, PartialEq)]
pub enum Family {
    /// γ = 0: k-means as in the paper.
    Dirac,
    /// γ is known, the same for all atoms (example 2, and k-means with clusters of known width).
    Known(Vec<f64>),
    /// γ = t γ₀, the same for all atoms: γ₀ is where they start, t is learned.
    Scaled,
    /// One diagonal for all atoms, learned.
    Shared,
    /// Each atom has its own diagonal, learned.
    Diagonal,
}
