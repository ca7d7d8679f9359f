//! The tasks that can be learned.

use nysketch_core::error::names::{Choice, Named, name_of};
use nysketch_core::kmeans::Loss;
use serde::{Deserialize, Serialize};

/// A learning task.
///
/// ```
/// use nysketch::{Named, Task};
/// # fn main() -> nysketch::Result<()> {
/// assert_eq!(Task::from_name("gmm")?, Task::Gmm);
/// assert_eq!(Task::Kmedians.to_string(), "kmedians");
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Task {
    /// Centres of smallest mean squared distance.
    Kmeans,
    /// Centres of smallest mean distance.
    Kmedians,
    /// A mixture of Gaussians.
    Gmm,
    /// Principal components.
    Pca,
}

impl Named for Task {
    const PARAMETER: &'static str = "`task`";
    const TABLE: &'static [Choice<Self>] = &[
        Choice::new(Task::Kmeans, "kmeans", "Centres of least mean squared distance"),
        Choice::new(Task::Kmedians, "kmedians", "Centres of least mean distance"),
        Choice::new(Task::Gmm, "gmm", "Gaussian mixture"),
        Choice::new(Task::Pca, "pca", "Principal components"),
    ];
}

impl Task {
    /// Returns the name of the task.
    pub fn name(self) -> &'static str {
        name_of(self)
    }

    /// Returns the cost of a row's distance, for tasks that learn centres.
    pub(crate) fn loss(self) -> Loss {
        if self == Task::Kmedians { Loss::Distance } else { Loss::Squared }
    }
}

impl std::fmt::Display for Task {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}
