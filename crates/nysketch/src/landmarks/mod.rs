//! Landmarks: the points x̃₁ … x̃_m at which the data is measured (section 3.2 of the paper).
//!
//! | sampling | rule |
//! |---|---|
//! | [`uniform`] | every subset of m distinct rows is as likely |
//! | [`leverage`] | in proportion to approximate leverage scores (BLESS) |
//! | [`cholesky`] greedy | the row farthest, in feature space, from the span of those chosen |
//! | [`cholesky`] rpcholesky | a row drawn in proportion to that squared distance |
//! | [`dsquared`] | a row drawn in proportion to its squared distance from those chosen |
//!
//! Planning brings all of them to exactly `m` different points, or to every different point where
//! there are fewer. Rules that need a bandwidth use the middle rung of the ladder.

pub mod cholesky;
pub mod dsquared;
pub mod leverage;
pub mod uniform;

use crate::error::{Error, Result};

/// How landmarks are chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Sampling {
    /// Uniform without replacement.
    Uniform,
    /// Approximate leverage scores by BLESS.
    Leverage,
    /// Largest Schur complement.
    Greedy,
    /// Randomly pivoted Cholesky.
    Rpcholesky,
    /// D² sampling: the default, since it reaches rare clusters and heavy tails.
    #[default]
    Dsquared,
    /// Given by the user.
    Given,
}

impl Sampling {
    /// Every rule with its name on the command line and in files.
    pub const NAMES: [(Sampling, &'static str); 6] = [
        (Sampling::Uniform, "uniform"),
        (Sampling::Leverage, "leverage"),
        (Sampling::Greedy, "greedy"),
        (Sampling::Rpcholesky, "rpcholesky"),
        (Sampling::Dsquared, "dsquared"),
        (Sampling::Given, "given"),
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(s, _)| *s == self).map_or("", |(_, n)| n)
    }
}

impl std::str::FromStr for Sampling {
    type Err = Error;
    fn from_str(s: &str) -> Result<Self> {
        Self::NAMES.iter().find(|(_, n)| *n == s).map(|(sampling, _)| *sampling).ok_or_else(|| {
            Error::parameter("`sampling`", "uniform, leverage, greedy, rpcholesky or dsquared", s)
        })
    }
}
