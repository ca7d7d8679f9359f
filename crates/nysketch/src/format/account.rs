//! What a release says about its cost, in a file.

use crate::privacy::{Release, Spending};
use serde::{Deserialize, Serialize};

/// What a release promises, and what each mechanism costs.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Account {
    pub delta: String,
    pub epsilon: String,
    pub mechanisms: Vec<Cost>,
    neighbours: String,
}

/// What one mechanism costs.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cost {
    pub name: String,
    pub rho: u64,
    sensitivity_squared: String,
    variance: String,
}

/// Data sets are neighbours if one has one row more.
const NEIGHBOURS: &str = "one row added or removed";

impl Account {
    /// That of a release.
    pub fn of(release: &Release) -> Self {
        let cost = |s: &Spending| Cost {
            name: s.mechanism.name().into(),
            rho: s.rho.0,
            sensitivity_squared: s.sensitivity.to_string(),
            variance: s.variance.to_string(),
        };
        Account {
            delta: release.budget().delta.to_string(),
            epsilon: release.budget().epsilon.to_string(),
            mechanisms: release.spendings().iter().map(cost).collect(),
            neighbours: NEIGHBOURS.into(),
        }
    }
}
