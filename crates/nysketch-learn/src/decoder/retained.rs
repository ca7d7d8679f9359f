//! The retained rows of a cell, compared with the sums of the cell.

use super::cells::{Cell, Cells};
use super::represent::{ENOUGH, TOO_FEW};
use nysketch_core::kernel::squared_distance;

/// Ratio of exact variance to variance of the retained rows above which a column has rows that no
/// retained row represents.
const UNREPRESENTED: f64 = 10.0;

/// The sums of a cell, with all cells.
pub(super) struct Known<'a> {
    pub cell: Cell<'a>,
    pub cells: &'a Cells,
}

/// Rows of a cell that no retained row represents.
pub(super) struct Unrepresented {
    pub column: usize,
    /// Their share of the rows of the cell.
    pub share: f64,
    /// Their value in the column.
    pub value: f64,
}

/// The retained rows in a cell.
pub(super) struct Retained {
    pub rows: Vec<f64>,
    pub codes: Vec<u32>,
    /// The weight of each.
    pub counts: Vec<f64>,
    pub total: f64,
    mean: Vec<f64>,
    variance: Vec<f64>,
}

impl Retained {
    pub fn new(d: usize, rows: Vec<f64>, codes: Vec<u32>, counts: Vec<f64>) -> Self {
        let total: f64 = counts.iter().sum();
        let divisor = total.max(f64::MIN_POSITIVE);
        let (mut mean, mut variance) = (Vec::with_capacity(d), Vec::with_capacity(d));
        for k in 0..d {
            let column = rows.iter().skip(k).step_by(d).zip(&counts);
            let centre = column.clone().map(|(x, c)| c * x).sum::<f64>() / divisor;
            let squares = column.map(|(x, c)| c * (x - centre).powi(2)).sum::<f64>();
            mean.push(centre);
            variance.push(squares / divisor);
        }
        Retained { rows, codes, counts, total, mean, variance }
    }

    fn len(&self) -> f64 {
        self.counts.len() as f64
    }

    /// Returns a bound on the error of a value of column `k` from rounding to single precision and
    /// to the resolution of the sums.
    fn rounding(&self, known: &Known<'_>, k: usize) -> f64 {
        1e-6 * (known.cell.mean[k].abs() + self.mean[k].abs()) + known.cells.step(k)
    }

    /// Returns whether these rows can come from the cell and are enough to determine its shape.
    pub fn determines(&self, known: &Known<'_>, at_least: f64) -> bool {
        let d = self.mean.len();
        let enough = if known.cell.is_point() {
            // If all rows are equal, one row is enough.
            1.0
        } else {
            (ENOUGH as f64).min(known.cell.rows).max(at_least / TOO_FEW)
        };
        self.len() >= enough
            && (0..d).map(|k| self.apart(known, k)).sum::<f64>() <= 30.0 + 3.0 * d as f64
    }

    /// Returns the squared distance of the means in column `k`, in standard errors: about 1.
    fn apart(&self, known: &Known<'_>, k: usize) -> f64 {
        let off = (known.cell.mean[k] - self.mean[k]).abs() - self.rounding(known, k);
        let error = known.cell.variance(k) / self.len();
        if off > 0.0 { off * off / error.max(f64::MIN_POSITIVE) } else { 0.0 }
    }

    /// Returns the rows that no retained row represents in column `k`; `None` if the retained rows
    /// agree with the sums.
    pub fn unrepresented(&self, known: &Known<'_>, k: usize) -> Option<Unrepresented> {
        let apart = known.cell.mean[k] - self.mean[k];
        let more = known.cell.variance(k) + apart * apart - self.variance[k];
        let share = apart * apart / more;
        // At least one row, but so few that possibly none was retained.
        let is_rare = share * known.cell.rows >= 0.5 && share * self.len() < 3.0;
        let is_real =
            apart.abs() > self.rounding(known, k) && more > UNREPRESENTED * self.variance[k];
        let value = self.mean[k] + more / apart;
        (is_real && is_rare).then_some(Unrepresented { column: k, share, value })
    }

    /// Returns the retained row nearest to the mean of all, with its levels.
    pub fn most_ordinary(&self, d: usize) -> (&[f64], &[u32]) {
        let c = self.codes.len() / self.counts.len().max(1);
        let distances: Vec<f64> =
            self.rows.chunks_exact(d).map(|row| squared_distance(row, &self.mean)).collect();
        match (0..distances.len()).min_by(|a, b| distances[*a].total_cmp(&distances[*b])) {
            Some(i) => (&self.rows[i * d..(i + 1) * d], &self.codes[i * c..(i + 1) * c]),
            None => (&self.mean, &[]),
        }
    }

    /// Returns whether these are all the rows of the cell.
    pub fn is_all_of(&self, known: &Known<'_>) -> bool {
        let has_weights = self.counts.iter().any(|c| *c != 1.0);
        (self.len() == known.cell.rows || has_weights)
            && (0..self.mean.len()).all(|k| self.has_moments_of(known, k))
    }

    /// Returns whether the mean and the variance of column `k` are those of the cell, up to
    /// rounding.
    fn has_moments_of(&self, known: &Known<'_>, k: usize) -> bool {
        let (rounding, variance) = (self.rounding(known, k), known.cell.variance(k));
        (known.cell.mean[k] - self.mean[k]).abs() <= rounding + 1e-6 * variance.sqrt()
            && (variance - self.variance[k]).abs() <= 1e-4 * variance + rounding * rounding
    }
}
