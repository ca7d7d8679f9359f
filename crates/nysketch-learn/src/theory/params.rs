//! The parameters of the theory computations.

use nysketch_core::error::{Error, Result};

/// The parameters of the theory computations.
///
/// ```
/// use nysketch::theory::TheoryParams;
/// // At the second bandwidth of the plan, for k-means with 10 centres.
/// let params = TheoryParams::new(10).rung(1).delta(0.01).secants(100);
/// assert_eq!(params.known_variance, 0.0);
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct TheoryParams {
    /// Index of the bandwidth in the plan; the middle one by default.
    pub rung: Option<usize>,
    /// The λ of the sizes; by default the one at which theorem 4.1 holds with C = 2 C_F.
    pub lambda: Option<f64>,
    /// Probability of failure.
    pub delta: f64,
    /// Number of atoms of the mixtures of the model set.
    pub k: usize,
    /// Variance of the atoms in every coordinate: 0 for k-means (example 5), positive for mixtures
    /// of known variance (6).
    pub known_variance: f64,
    /// Number of secants to sample; the worst ones are then improved by ascent.
    pub secants: usize,
    /// Seed of the sample; that of the plan by default.
    pub seed: Option<u64>,
    /// Rows of the data, in the table's units, to use instead of the plan's retained rows.
    pub rows: Vec<Vec<f64>>,
}

impl Default for TheoryParams {
    fn default() -> Self {
        TheoryParams {
            rung: None,
            lambda: None,
            delta: 0.1,
            k: 10,
            known_variance: 0.0,
            secants: 300,
            seed: None,
            rows: Vec::new(),
        }
    }
}

impl TheoryParams {
    /// Returns the defaults for mixtures of k atoms.
    pub fn new(k: usize) -> Self {
        TheoryParams { k, ..TheoryParams::default() }
    }

    /// Sets the index of the bandwidth in the plan.
    #[must_use]
    pub fn rung(mut self, rung: usize) -> Self {
        self.rung = Some(rung);
        self
    }

    /// Sets the λ for which sizes are computed.
    #[must_use]
    pub fn lambda(mut self, lambda: Option<f64>) -> Self {
        self.lambda = lambda;
        self
    }

    /// Sets the probability of failure.
    #[must_use]
    pub fn delta(mut self, delta: f64) -> Self {
        self.delta = delta;
        self
    }

    /// Sets the variance of the atoms in every coordinate.
    #[must_use]
    pub fn known_variance(mut self, variance: f64) -> Self {
        self.known_variance = variance;
        self
    }

    /// Sets the number of sampled secants.
    #[must_use]
    pub fn secants(mut self, secants: usize) -> Self {
        self.secants = secants;
        self
    }

    /// Sets the seed.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Sets rows, in the table's units, to use instead of the retained rows of the plan.
    #[must_use]
    pub fn rows(mut self, rows: Vec<Vec<f64>>) -> Self {
        self.rows = rows;
        self
    }

    /// Checks every parameter that can be checked without a sketch.
    pub fn check(&self) -> Result<()> {
        if !(self.delta > 0.0 && self.delta < 1.0) {
            return Err(Error::parameter("`delta`", "between 0 and 1", self.delta));
        }
        if let Some(got) = self.lambda.filter(|l| !(*l > 0.0 && *l <= 1.0)) {
            return Err(Error::parameter("`lambda`", "above 0 and at most 1", got));
        }
        if self.k == 0 || self.k > 100_000 {
            return Err(Error::parameter("`k`", "between 1 and 100,000", self.k));
        }
        if self.secants == 0 {
            return Err(Error::parameter("`secants`", "at least 1", 0));
        }
        if !(self.known_variance >= 0.0 && self.known_variance.is_finite()) {
            return Err(Error::parameter("`known_variance`", "0 or more", self.known_variance));
        }
        Ok(())
    }
}
