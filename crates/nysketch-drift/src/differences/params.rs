//! Parameters of a comparison.

use nysketch_core::error::{Error, Result};

/// Smallest number of draws that can give a p-value of 0.05.
const LEAST_DRAWS: usize = 19;
/// Largest number of draws. More take minutes without adding precision that matters.
const MOST_DRAWS: usize = 20_000;

/// Parameters of a comparison.
///
/// ```
/// use nysketch::drift::DriftParams;
/// let params = DriftParams::default().draws(199).seed(1);
/// assert_eq!(params.draws, 199);
/// ```
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct DriftParams {
    /// Number of draws from the null distribution. The smallest p-value is 1/(draws + 1).
    pub draws: usize,
    /// Seed of the draws.
    pub seed: u64,
    /// Level at or below which a p-value means drift: the rate of false alarms. Intervals have
    /// confidence 1 − level.
    pub level: f64,
    /// The tolerated share of moved rows; `None` for no verdict.
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

    /// Sets the number of draws from the null distribution.
    #[must_use]
    pub fn draws(mut self, draws: usize) -> Self {
        self.draws = draws;
        self
    }

    /// Sets the level.
    #[must_use]
    pub fn level(mut self, level: f64) -> Self {
        self.level = level;
        self
    }

    /// Sets the seed.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Sets the tolerated share of moved rows, and asks for a verdict.
    #[must_use]
    pub fn tolerance(mut self, share: impl Into<Option<f64>>) -> Self {
        self.tolerance = share.into();
        self
    }
}
