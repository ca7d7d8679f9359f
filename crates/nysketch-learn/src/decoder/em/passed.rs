//! The results of one pass over all points.

use super::near::Near;
use crate::covariance::Covariance;

/// The moments of the points for which an atom is responsible, around its previous mean to avoid
/// cancellation: Σ w, Σ w (x − μ), and Σ w (x − μ)(x − μ)ᵀ or its diagonal.
#[derive(Debug, Clone)]
pub struct Moments {
    pub mass: f64,
    pub first: Vec<f64>,
    pub second: Covariance,
    /// Σ w of each level; empty without categories.
    pub levels: Vec<f64>,
}

/// The sums of one step of EM.
#[derive(Debug)]
pub struct Passed {
    /// Sum of the log-likelihoods.
    pub likelihood: f64,
    /// The moments of each atom.
    pub moments: Vec<Moments>,
    /// The best atom of each point, and the atoms within range of each block of points; empty if
    /// there are few atoms.
    pub best: Vec<u32>,
    pub near: Near,
}

/// The log density and the entropy of every point under a mixture.
#[derive(Debug, Default)]
pub struct Densities {
    /// `log Σ_c α_c N(x; μ_c, Γ_c)`.
    pub log_density: Vec<f64>,
    /// `−Σ_c r_c log r_c`, where r_c is the probability of the component given the point.
    pub entropy: Vec<f64>,
}

impl Passed {
    /// Returns the result if no atom has a density.
    pub fn nothing(atoms: usize, dims: usize, levels: usize) -> Self {
        let second = Covariance::Diagonal(vec![0.0; dims]);
        let none = Moments { mass: 0.0, first: vec![0.0; dims], second, levels: vec![0.0; levels] };
        Passed {
            likelihood: f64::NEG_INFINITY,
            moments: vec![none; atoms],
            best: Vec::new(),
            near: Near::default(),
        }
    }
}

impl Densities {
    /// Returns the result for points at which no atom has a density.
    pub fn zero(points: usize) -> Self {
        Densities { log_density: vec![f64::NEG_INFINITY; points], entropy: vec![0.0; points] }
    }

    /// Adds a point whose largest log density is `max`; `total` is Σ e and `spread` is Σ e log e
    /// over the densities e relative to the largest.
    #[inline(always)]
    pub fn push(&mut self, max: f64, total: f64, spread: f64) {
        self.log_density.push(max + total.ln());
        self.entropy.push((total.ln() - spread / total).max(0.0));
    }
}
