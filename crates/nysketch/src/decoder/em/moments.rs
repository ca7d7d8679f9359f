//! What a step of EM adds up.

use crate::covariance::Covariance;

/// What an atom is responsible for, around its mean before, so that no digits are lost: Σ w, Σ w (x − μ), and
/// Σ w (x − μ)(x − μ)ᵀ or its diagonal.
#[derive(Debug, Clone)]
pub struct Moments {
    pub mass: f64,
    pub first: Vec<f64>,
    pub second: Covariance,
    /// Σ w of each level; empty where there are none.
    pub levels: Vec<f64>,
}
