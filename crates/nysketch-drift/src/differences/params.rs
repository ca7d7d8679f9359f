//! How to compare.

use nysketch_core::error::{Error, Result};

/// Fewer draws cannot show a p-value of 0.05.
const LEAST_DRAWS: usize = 19;
/// More draws take minutes and tell nothing more.
const MOST_DRAWS: usize = 20_000;

/// How to compare.
///
/// ```
/// use nysketch::drift::DriftParams;
/// let params = DriftParams::default().draws(199).seed(1);
/// assert_eq!(params.draws, 199);
/// ```
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct DriftParams {
    /// Draws from the null distribution; the least p-value is 1/(draws + 1).
    pub draws: usize,
    /// Seed of the draws.
    pub seed: u64,
    /// p-values up to this are called drift: the share of false alarms. Intervals have confidence 1 − level.
    pub level: f64,
    /// The share of the rows that may move without a change worth the name; none asks for no verdict on it.
    pub tolerance: Option<f64>,
}

impl Default for DriftParams {
    fn default() -> Self {
        DriftParams { draws: 999, seed: 0, level: 0.05, tolerance: None }
    }
}

impl DriftParams {
    /// Checks every parameter.
    pub fn check(&self) -> Result<()> {
        if !(self.level > 0.0 && self.level < 1.0) {
            return Err(Error::parameter("`level`", "between 0 and 1", self.level));
        }
        if !(LEAST_DRAWS..=MOST_DRAWS).contains(&self.draws) {
            let expected = format!("between {LEAST_DRAWS} and {MOST_DRAWS}");
            return Err(Error::parameter("`draws`", expected, self.draws));
        }
        match self.tolerance {
            Some(share) if !(share > 0.0 && share < 1.0) => {
                Err(Error::parameter("`tolerance`", "between 0 and 1", share))
            }
            _ => Ok(()),
        }
    }

    /// With so many draws from the null distribution.
    #[must_use]
    pub fn draws(mut self, draws: usize) -> Self {
        self.draws = draws;
        self
    }

    /// With this level.
    #[must_use]
    pub fn level(mut self, level: f64) -> Self {
        self.level = level;
        self
    }

    /// With this seed.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Asks whether no more than this share of the rows moved.
    #[must_use]
    pub fn tolerance(mut self, share: impl Into<Option<f64>>) -> Self {
        self.tolerance = share.into();
        self
    }
}
