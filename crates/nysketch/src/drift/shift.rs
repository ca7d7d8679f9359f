//! How the bulk of the rows moved along each column.
//!
//! ```text
//! T_k = (mean_B φ_k − mean_A φ_k) / √((1/n_A + 1/n_B) Var φ_k)
//! ```
//!
//! φ_k(x) is x_k where the cell of x is among the bulk of the rows and narrow along the column, and else the mean of the cell, moved to
//! the border of the bulk. Where no cell is far out, T_k is the plain difference of means in standard errors; with heavy tails,
//! where far cells hold most of the variance, it sees what they would hide. Means and variances of φ_k are exact: they
//! need the sums of cells alone.

use super::cells::PairedCells;
use super::correlation::Correlation;
use crate::plan::Plan;
use crate::random::normal;
use crate::sums::Sum;
use rand_chacha::ChaCha8Rng;

/// The bulk: from this quantile of the rows to its mirror image, and half as far again on either side.
const TAIL: f64 = 0.05;
const BEYOND: f64 = 0.5;

/// The statistics of all columns that every row has.
pub(super) struct Shift {
    columns: Vec<Column>,
}

struct Column {
    /// Which column.
    at: usize,
    /// Mean of φ in each cell that has rows, less that of all rows, in standard errors of T.
    levels: Vec<f64>,
    /// Deviation of what happens within cells, in the same unit.
    within: f64,
    /// T within cells, as it is seen: the rest is that of the counts.
    observed_within: f64,
}

impl Shift {
    /// Of the cells that have rows.
    pub fn new(cells: &PairedCells<'_>, plan: &Plan, used: &[usize]) -> Self {
        let columns = (0..plan.dims()).filter_map(|k| Column::new(cells, k, used)).collect();
        Shift { columns }
    }

    /// The largest T² and the sum of all: for these differences of shares (A less B), of which the first may be those
    /// seen, with what happens within cells drawn.
    pub fn statistics(
        &self,
        differences: &[Vec<f64>],
        with_observed: bool,
        correlation: &Correlation,
        rng: &mut ChaCha8Rng,
    ) -> Vec<Vec<f64>> {
        if self.columns.is_empty() {
            return Vec::new();
        }
        let (mut largest, mut total) = (Vec::new(), Vec::new());
        for (i, difference) in differences.iter().enumerate() {
            let within = match with_observed && i == 0 {
                true => self.columns.iter().map(|c| c.observed_within).collect(),
                false => self.draw_within(correlation, rng),
            };
            let squares = self.columns.iter().zip(within).map(|(column, within)| {
                let counts: f64 = column.levels.iter().zip(difference).map(|(l, d)| l * d).sum();
                (counts + within).powi(2)
            });
            let (most, sum) = squares.fold((0.0f64, 0.0), |(m, s), t| (m.max(t), s + t));
            largest.push(most);
            total.push(sum);
        }
        vec![largest, total]
    }

    /// Normal numbers with the columns' correlation within cells.
    fn draw_within(&self, correlation: &Correlation, rng: &mut ChaCha8Rng) -> Vec<f64> {
        let independent: Vec<f64> =
            correlation.eigenvalues.iter().map(|l| l.sqrt() * normal(rng)).collect();
        let drawn = match &correlation.vectors {
            None => independent,
            Some(vectors) => vectors.times(&independent),
        };
        let of = |column: &Column| {
            let place = correlation.varying.binary_search(&column.at);
            place.map_or(0.0, |place| column.within * drawn[place])
        };
        self.columns.iter().map(of).collect()
    }
}

impl Column {
    /// `None` where rows lack it or it does not vary.
    fn new(cells: &PairedCells<'_>, k: usize, used: &[usize]) -> Option<Self> {
        let d = cells.both[Sum::CellSum].len() / cells.counts.len();
        if used.iter().any(|j| cells.both.present(*j, k) != cells.both[Sum::CellRows][*j]) {
            return None;
        }
        let rows: Vec<f64> = used.iter().map(|j| cells.rows(*j)).collect();
        let total: f64 = rows.iter().sum();
        let mean = |j: usize| cells.both[Sum::CellSum][j * d + k] as f64 / cells.rows(j);
        let means: Vec<f64> = used.iter().map(|j| mean(*j)).collect();
        let variance = |j: usize| cells.both.cell_spread(j, k) / cells.rows(j);
        let variances: Vec<f64> = used.iter().map(|j| variance(*j)).collect();
        let (low, high) = bulk(&means, &variances, &rows);
        let in_bulk = |i: usize| {
            let width = 2.0 * variances[i].sqrt();
            means[i] - width >= low && means[i] + width <= high
        };
        let values: Vec<f64> = means.iter().map(|m| m.clamp(low, high)).collect();
        let centre = values.iter().zip(&rows).map(|(v, n)| v * n).sum::<f64>() / total;
        let between: f64 =
            values.iter().zip(&rows).map(|(v, n)| n / total * (v - centre).powi(2)).sum();
        let bulk: Vec<usize> = (0..used.len()).filter(|i| in_bulk(*i)).collect();
        let inside: f64 = bulk.iter().map(|i| rows[*i] / total * variances[*i]).sum();
        let noise = 1.0 / cells.totals[0] + 1.0 / cells.totals[1];
        let error = (noise * (between + inside)).sqrt();
        if !(error > 0.0) {
            return None;
        }
        // Of the rows of a cell in A and B, how far their sum is from what the cell's mean would give.
        let beside = |side: usize, i: usize| {
            let (j, sums) = (used[i], [cells.a, cells.b][side]);
            (sums[Sum::CellSum][j * d + k] as f64 - cells.counts[j][side] * means[i])
                / cells.totals[side]
        };
        let observed: f64 = bulk.iter().map(|i| beside(0, *i) - beside(1, *i)).sum();
        Some(Column {
            at: k,
            levels: values.iter().map(|v| (v - centre) / error).collect(),
            within: (noise * inside).sqrt() / error,
            observed_within: observed / error,
        })
    }
}

/// Where the bulk of the rows begins and ends, each cell taken as a normal distribution at its mean and two deviations
/// to either side.
fn bulk(means: &[f64], variances: &[f64], rows: &[f64]) -> (f64, f64) {
    let points = means.iter().zip(variances).zip(rows).flat_map(|((mean, variance), rows)| {
        [-1.0, 1.0].map(|side| (mean + side * variance.sqrt(), 0.5 * rows))
    });
    let mut points: Vec<(f64, f64)> = points.collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    let total: f64 = points.iter().map(|p| p.1).sum();
    let quantile = |share: f64| {
        let mut below = 0.0;
        let at = points.iter().position(|p| {
            below += p.1;
            below >= share * total
        });
        points[at.unwrap_or(points.len() - 1)].0
    };
    let (low, high) = (quantile(TAIL), quantile(1.0 - TAIL));
    (low - BEYOND * (high - low), high + BEYOND * (high - low))
}
