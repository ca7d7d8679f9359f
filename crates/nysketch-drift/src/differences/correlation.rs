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
    let value = |k: usize, l: usize| {
        let (k, l) = (k.max(l), k.min(l));
        let at = k * (k + 1) / 2 + l;
        let (ek, el) = (plan.frame.exponent[k], plan.frame.exponent[l]);
        cells.both[Sum::Outer][at] as f64 * power_of_two(ek) * power_of_two(el)
    };
    let mut within: Vec<f64> = (0..d * d).map(|i| value(i / d, i % d)).collect();
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
    let spread = |sums: &Sums, k: usize| -> f64 {
        let some = (0..cells.counts.len()).filter(|j| sums[Sum::CellRows][*j] > 0);
        let total: f64 = some.map(|j| sums.cell_spread(j, k)).sum();
        total * power_of_two(plan.frame.exponent[k]).powi(2)
    };
    let diagonal: Vec<f64> = (0..d).map(|k| spread(cells.a, k) + spread(cells.b, k)).collect();
    let varying: Vec<usize> = (0..d).filter(|k| diagonal[*k] > 0.0).collect();
    let correlation = Matrix::from_fn(varying.len(), varying.len(), |i, j| {
        let (k, l) = (varying[i], varying[j]);
        match i == j {
            true => 1.0,
            false => (within[k * d + l] / (diagonal[k] * diagonal[l]).sqrt()).clamp(-1.0, 1.0),
        }
    });
    let SymmetricEigen { values, vectors } = symmetric_eigen(&correlation)?;
    let eigenvalues = values.into_iter().map(|v| v.max(0.0)).collect();
    Ok(Correlation { varying, eigenvalues, vectors: Some(vectors) })
}
