//! What can be learned.

use crate::error::{Error, Result};
use crate::measure::Loss;
use serde::{Deserialize, Serialize};

/// What to learn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Task {
    /// Centres of least mean squared distance.
    Kmeans,
    /// Centres of least mean distance.
    Kmedians,
    /// A mixture of Gaussians with diagonal covariances.
    Gmm,
    /// Principal components.
    Pca,
}

impl Task {
    /// Every task with its name on the command line, in models and in Python.
    pub const NAMES: [(Task, &'static str); 4] = [
        (Task::Kmeans, "kmeans"),
        (Task::Kmedians, "kmedians"),
        (Task::Gmm, "gmm"),
        (Task::Pca, "pca"),
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize].1
    }

    /// What a row's distance costs, where centres are learned.
    pub fn loss(self) -> Loss {
        if self == Task::Kmedians { Loss::Distance } else { Loss::Squared }
    }
}

impl std::fmt::Display for Task {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl std::str::FromStr for Task {
    type Err = Error;
    fn from_str(name: &str) -> Result<Self> {
        let known = Self::NAMES.iter().find(|(_, n)| *n == name);
        known
            .map(|(task, _)| *task)
            .ok_or_else(|| Error::parameter("`task`", "kmeans, kmedians, gmm or pca", name))
    }
}
