//! What happened while planning, for people.

use crate::rows::Losses;
use crate::sketch::columns::ColumnSummary;

/// What happened while planning, for people.
///
/// ```
/// use nysketch_core::{PlanParams, Table, plan_for};
/// # fn main() -> nysketch_core::Result<()> {
/// let table = Table::unnamed(2, (0..400).map(|i| f64::from(i % 20) * [1.0, 1e6][i as usize % 2]).collect())?;
/// let (_, report) = plan_for(&table, PlanParams::default().landmarks(10))?;
/// assert_eq!((report.rows, report.losses.skipped()), (200, 0));
/// for note in report.notes.iter().chain(&report.warnings) {
///     println!("{note}");
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct PlanReport {
    /// Rows read.
    pub rows: u64,
    /// Rows skipped as invalid, and the columns that cost them; the weight comes after the last column.
    pub losses: Losses,
    /// The columns of the table, and what becomes of them.
    pub columns: Vec<ColumnSummary>,
    /// Rows that landmarks were chosen from.
    pub sample_rows: usize,
    /// λ, the effective dimension N(λ) and the measured accuracy z of leverage sampling.
    pub leverage: Option<LeverageReport>,
    /// Remarks that a user should read.
    pub notes: Vec<String>,
    /// What makes results worse than they look.
    pub warnings: Vec<String>,
}

/// What leverage sampling did.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct LeverageReport {
    /// λ of eq. (9), over the sample.
    pub lambda: f64,
    /// Estimate of N(λ).
    pub effective_dimension: f64,
    /// z of eq. (10): BLESS at this λ against exact scores, both on `accuracy_rows` rows of the
    /// sample, since exact scores of all of it would cost too much.
    pub accuracy: f64,
    /// Rows it was measured on.
    pub accuracy_rows: usize,
}
