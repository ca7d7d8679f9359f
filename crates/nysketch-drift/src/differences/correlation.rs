//! Correlation of columns within cells.

use crate::differences::cells::PairedCells;
use nysketch_core::error::Result;
use nysketch_core::numeric::fixed::power_of_two;
use nysketch_core::numeric::linalg::{Matrix, SymmetricEigen, symmetric_eigen};
use nysketch_core::plan::Plan;
use nysketch_core::sums::{Sum, Sums};

/// The correlation of the columns within cells.
pub struct Correlation {
    /// Columns that vary within cells.
    pub varying: Vec<usize>,
    pub eigenvalues: Vec<f64>,
    /// Eigenvectors over those columns; `None` if columns are taken as uncorrelated.
    pub vectors: Option<Matrix>,
}

/// Computes the correlation. It is the identity if moments are not kept or do not cover all rows.
pub fn correlation_within(cells: &PairedCells<'_>, plan: &Plan) -> Result<Correlation> {
    let d = plan.dims();
    if !plan.collect.moments || plan.is_partial() {
        return Ok(Correlation {
            varying: (0..d).collect(),
            eigenvalues: vec![1.0; d],
            vectors: None,
        });
    }
    let mut within = vec![0.0; d * d];
    for k in 0..d {
        for l in 0..=k {
            let (ek, el) = (plan.frame.exponent[k], plan.frame.exponent[l]);
            let sum = cells.both[Sum::Outer][k * (k + 1) / 2 + l] as f64;
            let value = sum * power_of_two(ek) * power_of_two(el);
            within[k * d + l] = value;
            within[l * d + k] = value;
        }
    }
    for j in 0..cells.counts.len() {
        let rows = cells.both[Sum::CellRows][j] as f64;
        if rows > 0.0 {
            let mean = cells.both.cell_mean(j, &plan.frame.exponent);
            for k in 0..d {
                for l in 0..d {
                    within[k * d + l] -= rows * mean[k] * mean[l];
                }
            }
        }
    }
    // The diagonal is computed exactly: differences of large sums would leave rounding errors where
    // the spread is zero.
    let diagonal: Vec<f64> =
        (0..d).map(|k| spread_within(cells.a, k, plan) + spread_within(cells.b, k, plan)).collect();
    let varying: Vec<usize> = (0..d).filter(|k| diagonal[*k] > 0.0).collect();
    let correlation = Matrix::from_fn(varying.len(), varying.len(), |i, j| {
        let (k, l) = (varying[i], varying[j]);
        if i == j {
            1.0
        } else {
            (within[k * d + l] / (diagonal[k] * diagonal[l]).sqrt()).clamp(-1.0, 1.0)
        }
    });
    let SymmetricEigen { values, vectors } = symmetric_eigen(&correlation)?;
    let eigenvalues = values.into_iter().map(|v| v.max(0.0)).collect();
    Ok(Correlation { varying, eigenvalues, vectors: Some(vectors) })
}

/// The sum of squared deviations of column `k` from the means of the cells.
fn spread_within(sums: &Sums, k: usize, plan: &Plan) -> f64 {
    let rows = &sums[Sum::CellRows];
    let used = (0..rows.len()).filter(|j| rows[*j] > 0);
    let total: f64 = used.map(|j| sums.cell_spread(j, k)).sum();
    total * power_of_two(plan.frame.exponent[k]).powi(2)
}
