//! The expected noise of the releases of a plan in readable units, before any rows are read.
//!
//! ```text
//! noise of a cell's sum of column j = σ·2^e·s_j ,     divided by n for a mean of n rows
//! ```
//!
//! σ is the deviation of the noise on `sums`, 2^e the unit of the frame and s_j the scale of the
//! column. The result does not depend on rows.

use super::budget::Budget;
use super::mechanism::Mechanism;
use super::terms::{Spending, Terms};
use num_bigint::BigUint;
use nysketch_core::error::{Error, Result};
use nysketch_core::plan::Plan;
use serde::Serialize;

/// Number of rows of the means in the result.
pub const ROWS_OF_MEAN: u64 = 1000;

/// The noise of a mechanism.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct MechanismNoise {
    /// Name of the mechanism.
    pub name: &'static str,
    /// Number of released numbers.
    pub numbers: usize,
    /// Δ, the maximum effect of a row or a person: in rows, kernel values, coordinates or their
    /// squares.
    pub sensitivity: f64,
    /// Δ² in units of the integers.
    pub sensitivity_squared: String,
    /// Standard deviation of the noise, in the unit of `sensitivity`.
    pub noise: f64,
}

/// The noise of a column, in its own unit after its step.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ColumnNoise {
    /// Name of the column.
    pub column: String,
    /// Standard deviation of the noise on the sum over a cell, in plans with cells.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cell_sum: Option<f64>,
    /// Standard deviation of the noise on the mean of a cell of [`ROWS_OF_MEAN`] rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cell_mean: Option<f64>,
    /// Standard deviation of the noise on the sum over all rows, in plans with moments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<f64>,
}

/// The noise of a release with this budget, split by default.
///
/// ```
/// use nysketch::privacy::{Budget, ExpectedNoise};
/// use nysketch::{PlanParams, PrivateParams, plan_for};
/// # fn main() -> nysketch::Result<()> {
/// let private = PrivateParams::new([("age".into(), 0.0, 120.0)]);
/// let anywhere = private.anywhere(1000, 0)?;
/// let plan = plan_for(&anywhere, PlanParams::default().landmarks(20).private(private))?.plan;
/// let noise = ExpectedNoise::of(&plan, Budget::new(1.0, 1e-6)?)?;
/// assert_eq!((noise.columns[0].column.as_str(), noise.mechanisms[0].name), ("age", "counts"));
/// assert!(noise.columns[0].cell_mean < Some(0.1), "years");
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ExpectedNoise {
    /// ε.
    pub epsilon: f64,
    /// δ.
    pub delta: f64,
    /// The mechanisms of the plan.
    pub mechanisms: Vec<MechanismNoise>,
    /// The columns of the plan; empty if the plan has kernel sums only.
    pub columns: Vec<ColumnNoise>,
}

impl ExpectedNoise {
    /// Computes the noise for a private plan. Returns an error if the cost of the plan, which was
    /// computed from a release, exceeds the budget.
    pub fn of(plan: &Plan, budget: Budget) -> Result<Self> {
        let person_rows = plan.people().map(|people| people.rows);
        let terms = Terms::new(plan, budget, &[], person_rows, None)?;
        let mechanisms = terms.spendings.iter().map(|s| mechanism_noise(s, plan)).collect();
        let columns = (0..plan.dims()).map(|j| column_noise(&terms, plan, j));
        let shown = |c: &ColumnNoise| c.cell_sum.is_some() || c.total.is_some();
        let columns = columns.collect::<Result<Vec<_>>>()?.into_iter().filter(shown).collect();
        Ok(ExpectedNoise { epsilon: budget.epsilon, delta: budget.delta, mechanisms, columns })
    }
}

fn mechanism_noise(spending: &Spending, plan: &Plan) -> MechanismNoise {
    let unit = spending.mechanism.unit(plan);
    MechanismNoise {
        name: spending.mechanism.name(),
        numbers: spending.mechanism.len(plan),
        sensitivity: number(&spending.sensitivity).sqrt() * unit,
        sensitivity_squared: spending.sensitivity.to_string(),
        noise: spending.deviation() * unit,
    }
}

fn column_noise(terms: &Terms, plan: &Plan, j: usize) -> Result<ColumnNoise> {
    let scale = plan.frame.scale[j];
    let of = |mechanism: Mechanism| {
        let spending = terms.spendings.iter().find(|s| s.mechanism == mechanism)?;
        Some(spending.deviation() * mechanism.unit(plan) * scale)
    };
    let (cell_sum, total) = (of(Mechanism::Sums), of(Mechanism::Totals));
    if [cell_sum, total].iter().flatten().any(|noise| !noise.is_finite()) {
        return Err(Error::parameter("`bounds`", "such that noise is a number", "wider"));
    }
    let cell_mean = cell_sum.map(|noise| noise / ROWS_OF_MEAN as f64);
    Ok(ColumnNoise { column: plan.columns[j].clone(), cell_sum, cell_mean, total })
}

/// Converts an integer to a double.
fn number(x: &BigUint) -> f64 {
    x.to_string().parse().unwrap_or(f64::INFINITY)
}
