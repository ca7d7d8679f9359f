//! The report on how a plan was made.

use crate::plan::Plan;
use crate::rows::Losses;
use crate::sketch::columns::ColumnSummary;

/// A plan and the report on how it was made.
///
/// ```
/// use nysketch_core::{PlanParams, Planned, Table, plan_for};
/// # fn main() -> nysketch_core::Result<()> {
/// let table = Table::unnamed(1, (0..100).map(f64::from).collect())?;
/// let Planned { plan, report } = plan_for(&table, PlanParams::default().landmarks(10))?;
/// assert_eq!((plan.landmark_rows().len(), report.rows), (10, 100));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Planned {
    /// The plan.
    pub plan: Plan,
    /// The report on how the plan was made.
    pub report: PlanReport,
}

/// The report on how a plan was made, for display.
///
/// ```
/// use nysketch_core::{PlanParams, Table, plan_for};
/// # fn main() -> nysketch_core::Result<()> {
/// let rows = (0..200).flat_map(|i| [f64::from(i % 10), 1e6 * f64::from(i % 10)]);
/// let table = Table::unnamed(2, rows.collect())?;
/// let report = plan_for(&table, PlanParams::default().landmarks(10))?.report;
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
    /// Number of rows read.
    pub rows: u64,
    /// Numbers of rows skipped as invalid, in total and per column. The weight follows the last
    /// column.
    pub losses: Losses,
    /// The columns of the table and their use in the plan.
    pub columns: Vec<ColumnSummary>,
    /// Number of rows from which landmarks were chosen.
    pub sample_rows: usize,
    /// The parameters and the measured accuracy of leverage sampling.
    pub leverage: Option<LeverageReport>,
    /// Notes for the user.
    pub notes: Vec<String>,
    /// Problems that degrade results.
    pub warnings: Vec<String>,
}

/// Parameters and accuracy of leverage sampling.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct LeverageReport {
    /// λ of eq. (9), over the sample.
    pub lambda: f64,
    /// Estimate of N(λ).
    pub effective_dimension: f64,
    /// z of eq. (10), measured on `accuracy_rows` rows of the sample: BLESS scores at this λ
    /// compared with exact scores. Exact scores of the whole sample would cost too much.
    pub accuracy: f64,
    /// Number of rows on which the accuracy was measured.
    pub accuracy_rows: usize,
}
