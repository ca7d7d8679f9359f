//! Landmarks: the points x̃₁ … x̃_m at which the data is measured (section 3.2 of the paper).
//!
//! | sampling | rule |
//! |---|---|
//! | `uniform` | every subset of m distinct rows is equally likely |
//! | `leverage` | with probability proportional to approximate leverage scores (BLESS) |
//! | `cholesky` greedy | the row farthest, in feature space, from the span of the chosen rows |
//! | `cholesky` rpcholesky | a row drawn with probability proportional to that squared distance |
//! | `dsquared` | a row drawn with probability proportional to its D² from the chosen rows |
//!
//! Planning extends the result of each rule to exactly `m` different points, or to all different
//! points if there are fewer. Rules that need a bandwidth use the middle one.

use crate::error::names::{Choice, Named, name_of};

/// The method that chooses landmarks.
///
/// ```
/// use nysketch_core::{PlanParams, Planned, Sampling, Table, plan_for};
/// # fn main() -> nysketch_core::Result<()> {
/// let table = Table::unnamed(1, (0..1000).map(f64::from).collect())?;
/// let params = PlanParams::default().landmarks(30).sampling(Sampling::Leverage);
/// let Planned { plan, report } = plan_for(&table, params)?;
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
    /// Greedy Cholesky: the largest Schur complement.
    Greedy,
    /// Randomly pivoted Cholesky.
    Rpcholesky,
    /// D² sampling: the default, because it finds rare clusters and heavy tails.
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
    /// Name of the option value.
    pub fn name(self) -> &'static str {
        name_of(self)
    }
}
