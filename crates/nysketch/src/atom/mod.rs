//! Atoms: the components of a mixture, and their mean embeddings in closed form (appendix A).
//!
//! Every atom is a Gaussian `N(μ, diag γ)`; a Dirac is γ = 0. Five families differ in what is
//! learned about γ: [`Family`].

pub mod embedding;

/// One component.
#[derive(Debug, Clone, PartialEq)]
pub struct Atom {
    /// α ≥ 0.
    pub weight: f64,
    /// μ, or the place of a Dirac.
    pub mean: Vec<f64>,
    /// γ, zero for a Dirac.
    pub variance: Vec<f64>,
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
