//! How the bulk of the rows moved along each column.
//!
//! ```text
//! T_k = (mean_B φ_k − mean_A φ_k) / √((1/n_A + 1/n_B) Var φ_k)
//! ```
//!
//! φ_k is x_k itself unless the column has heavy tails, where far cells would hold most of the variance and hide what the others
//! show. There it is w_jk (x_k − c_k) for x in cell j. The weights are those of a Student distribution whose centre c_k and scale are fitted to
//! both samples together (`Weighed::of`), so that a cell counts the less the farther out its rows are. In cells of few rows x_k is
//! the mean of the cell. Means and variances of φ_k are exact: they need the sums of cells alone.
//!
//! Landmarks are rows, and with heavy tails the far ones (`cells.rs`). The plain mean of a sample does not ask which of its rows were
//! chosen. Weights do, since a row has that of the landmark it is nearest to: counts are then those of the dealing, and within
//! a cell of many rows the landmark hardly counts.

use crate::differences::cells::PairedCells;
use crate::differences::correlation::Correlation;
use nysketch_core::numeric::random::normal;
use nysketch_core::plan::Plan;
use nysketch_core::sums::Sum;
use rand_chacha::ChaCha8Rng;

/// Fourth moment over the square of the second, cells taken as points, from which on tails are heavy: a normal distribution
/// has 3, Laplace's 6.
const HEAVY: f64 = 6.0;
/// Degrees of freedom of the Student distribution, turns of EM that fit it, and the least share of its squared scale in the
/// variance.
const FREEDOM: f64 = 2.0;
const TURNS: usize = 30;
const NARROWEST: f64 = 1e-3;
/// Rows of a cell, of both samples, from which on its own mean is looked at where tails are heavy. With 10 there were 14 %
/// false alarms on skewed columns with 12 rows of A per landmark, with 40 there are 5 %.
const LEAST_ROWS: f64 = 40.0;

/// The statistics of all columns that every row has.
pub(super) struct Shift {
    columns: Vec<Column>,
}

struct Column {
    /// Which column.
    at: usize,
    /// T as it is seen, as far as it happens within cells, and as far as counts make it: `None` where those of the dealing do.
    seen_within: f64,
    seen_counts: Option<f64>,
    /// Mean of φ in each cell, less that of all rows, in standard errors of T.
    levels: Vec<f64>,
    /// Deviation of what happens within cells, in the same unit.
    within: f64,
}

impl Shift {
    /// Of all cells that have rows.
    pub fn new(cells: &PairedCells<'_>, plan: &Plan) -> Self {
        let used: Vec<usize> =
            (0..cells.counts.len()).filter(|cell| cells.rows(*cell) > 0.0).collect();
        let columns = (0..plan.dims()).filter_map(|k| Column::new(cells, k, &used)).collect();
        Shift { columns }
    }

    /// The largest T² and the sum of all: for these differences of shares (A less B) of some cells, with what happens within
    /// cells drawn; in place of the first what is seen, where that is asked for.
    pub fn statistics(
        &self,
        used: &[usize],
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
            let columns = self.columns.iter();
            let values: Vec<f64> = match with_observed && i == 0 {
                true => columns.map(|column| column.seen(used, difference)).collect(),
                false => {
                    let within = self.draw_within(correlation, rng);
                    columns.zip(within).map(|(c, within)| within + c.of(used, difference)).collect()
                }
            };
            let squares = values.iter().map(|t| t * t);
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
        let Weighed { values, slopes, heavy } = Weighed::of(&means, &variances, &rows);
        let centre = values.iter().zip(&rows).map(|(v, n)| v * n).sum::<f64>() / total;
        let between: f64 =
            values.iter().zip(&rows).map(|(v, n)| n / total * (v - centre).powi(2)).sum();
        let inside: f64 =
            (0..used.len()).map(|i| rows[i] / total * slopes[i].powi(2) * variances[i]).sum();
        let noise = 1.0 / cells.totals[0] + 1.0 / cells.totals[1];
        let error = (noise * (between + inside)).sqrt();
        if !(error > 0.0) {
            return None;
        }
        let mut levels = vec![0.0; cells.counts.len()];
        used.iter().zip(&values).for_each(|(j, v)| levels[*j] = (v - centre) / error);
        // How far the sum of the rows of a sample is from what the means of their cells would give.
        let beside = |side: usize| -> f64 {
            let sums = [cells.a, cells.b][side];
            let of = |(i, j): (usize, &usize)| {
                let sum = sums[Sum::CellSum][j * d + k] as f64;
                slopes[i] * (sum - cells.counts[*j][side] * means[i])
            };
            used.iter().enumerate().map(of).sum::<f64>() / (cells.totals[side] * error)
        };
        let counts = |side: usize| -> f64 {
            used.iter().map(|j| cells.counts[*j][side] * levels[*j]).sum::<f64>()
                / cells.totals[side]
        };
        Some(Column {
            at: k,
            seen_within: beside(0) - beside(1),
            seen_counts: (!heavy).then(|| counts(0) - counts(1)),
            levels,
            within: (noise * inside).sqrt() / error,
        })
    }

    /// T as it is seen, with the differences of shares of a dealing.
    fn seen(&self, used: &[usize], difference: &[f64]) -> f64 {
        self.seen_within + self.seen_counts.unwrap_or_else(|| self.of(used, difference))
    }

    /// T of differences of the shares of some cells, as far as counts make it.
    fn of(&self, used: &[usize], difference: &[f64]) -> f64 {
        used.iter().zip(difference).map(|(j, d)| self.levels[*j] * d).sum()
    }
}

/// φ of a column.
struct Weighed {
    /// Its mean in each cell, and how much it changes with the values of the cell's rows.
    values: Vec<f64>,
    slopes: Vec<f64>,
    /// Whether tails are heavy.
    heavy: bool,
}

impl Weighed {
    /// Weights are those of EM for a Student distribution, `w_j = (ν + 1)/(ν + E_j (x − c)²/s²)`.
    fn of(means: &[f64], variances: &[f64], rows: &[f64]) -> Self {
        let total: f64 = rows.iter().sum();
        let average = |weights: &[f64], value: &dyn Fn(usize) -> f64| -> f64 {
            (0..rows.len()).map(|i| weights[i] * rows[i] / total * value(i)).sum()
        };
        let square = |i: usize, centre: f64| (means[i] - centre).powi(2) + variances[i];
        let mut weights = vec![1.0; rows.len()];
        let mut centre = average(&weights, &|i| means[i]);
        let mut scale = average(&weights, &|i| square(i, centre));
        if !(average(&weights, &|i| square(i, centre).powi(2)) > HEAVY * scale * scale) {
            return Weighed { values: means.to_vec(), slopes: weights, heavy: false };
        }
        let least = NARROWEST * scale;
        for _ in 0..TURNS {
            let weight = |i| (FREEDOM + 1.0) / (FREEDOM + square(i, centre) / scale);
            weights = (0..rows.len()).map(weight).collect();
            centre = average(&weights, &|i| means[i]) / average(&weights, &|_| 1.0);
            scale = average(&weights, &|i| square(i, centre)).max(least);
        }
        let slope = |(weight, rows): (&f64, &f64)| if *rows < LEAST_ROWS { 0.0 } else { *weight };
        Weighed {
            values: means.iter().zip(&weights).map(|(mean, w)| w * (mean - centre)).collect(),
            slopes: weights.iter().zip(rows).map(slope).collect(),
            heavy: true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_count_alike_unless_tails_are_heavy() {
        let means: Vec<f64> = (0..21).map(|i| f64::from(i) - 10.0).collect();
        let (variances, rows) = (vec![0.1; 21], vec![100.0; 21]);
        let plain = Weighed::of(&means, &variances, &rows);
        assert!(!plain.heavy);
        assert_eq!((plain.values, plain.slopes), (means.clone(), vec![1.0; 21]));
        // One cell of few rows a hundred times as far out.
        let (means, variances) = ([&means[..], &[1000.0]].concat(), vec![0.1; 22]);
        let heavy = Weighed::of(&means, &variances, &[&rows[..], &[10.0]].concat());
        assert!(heavy.heavy);
        assert_eq!(heavy.slopes[21], 0.0, "few rows");
        // A row far out counts like one near the border of the others: with the plain mean 100 times as much.
        assert!(heavy.values[21].abs() < heavy.values[20].abs(), "{:?}", heavy.values);
        assert!(heavy.slopes[10] > 2.0 * heavy.slopes[20], "{:?}", heavy.slopes);
    }
}
