//! How landmarks are chosen, by name.

use crate::error::names::{Choice, Named, name_of};

/// How landmarks are chosen.
///
/// ```
/// use nysketch_core::{PlanParams, Sampling, Table, plan_for};
/// # fn main() -> nysketch_core::Result<()> {
/// let table = Table::unnamed(1, (0..1000).map(f64::from).collect())?;
/// let params = PlanParams::default().landmarks(30).sampling(Sampling::Leverage);
/// let (plan, report) = plan_for(&table, params)?;
/// assert_eq!(plan.landmark_rows().len(), 30);
/// assert!(report.leverage.unwrap().effective_dimension > 1.0);
/// # Ok(())
/// # }
/// ```
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

impl Named for Sampling {
    const PARAMETER: &'static str = "`sampling`";
    const TABLE: &'static [Choice<Self>] = &[
        Choice::new(Sampling::Uniform, "uniform", "Every subset of rows is equally likely"),
        Choice::new(Sampling::Leverage, "leverage", "By approximate leverage scores (BLESS)"),
        Choice::new(
            Sampling::Greedy,
            "greedy",
            "The row farthest, in feature space, from those chosen",
        ),
        Choice::new(
            Sampling::Rpcholesky,
            "rpcholesky",
            "Drawn in proportion to that distance (randomly pivoted Cholesky)",
        ),
        Choice::new(
            Sampling::Dsquared,
            "dsquared",
            "Drawn in proportion to the squared distance from those chosen, over all rows",
        ),
        Choice::new(Sampling::Given, "given", ""),
    ];
}

impl Sampling {
    /// Its name.
    pub fn name(self) -> &'static str {
        name_of(self)
    }
}
