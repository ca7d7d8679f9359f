//! The shift of the bulk of the rows along each column.
//!
//! ```text
//! T_k = (mean_B φ_k − mean_A φ_k) / √((1/n_A + 1/n_B) Var φ_k)
//! ```
//!
//! φ_k is x_k itself unless the column has heavy tails, where distant cells would dominate the
//! variance and hide changes in the others. For heavy tails it is w_jk (x_k − c_k) for x in cell j.
//! The weights are those of a Student distribution whose centre c_k and scale are fitted to both
//! samples together (`Weighed::of`), so that distant cells get small weights. In cells of few rows,
//! x_k is the mean of the cell. Means and variances of φ_k are exact and need only the sums of
//! cells.
//!
//! Landmarks are rows, and with heavy tails they are mostly distant ones (`cells.rs`). The plain
//! mean of a sample does not depend on which of its rows became landmarks. Weighted means do,
//! because a row gets the weight of its cell. They therefore use the counts for the assumed origin
//! of the landmarks. Within a cell of many rows, the landmark barely matters.

use crate::differences::cells::PairedCells;
use crate::differences::correlation::Correlation;
use nysketch_core::numeric::random::normal;
use nysketch_core::plan::Plan;
use nysketch_core::sums::Sum;
use rand_chacha::ChaCha8Rng;

/// Kurtosis, with cells taken as points, above which tails are heavy: a normal distribution has 3,
/// a Laplace distribution has 6.
const HEAVY: f64 = 6.0;
/// Degrees of freedom of the Student distribution, number of EM steps that fit it, and lower limit
/// of its squared scale relative to the variance.
const FREEDOM: f64 = 2.0;
const TURNS: usize = 30;
const NARROWEST: f64 = 1e-3;
/// Smallest number of rows in a cell, of both samples, for which its own mean is used if tails are
/// heavy. With a limit of 10, skewed columns with 12 rows of A per landmark gave 14 % false alarms;
/// with 40, they give 5 %.
const LEAST_ROWS: f64 = 40.0;

/// The statistics of all columns without missing values.
pub(super) struct Shift {
    columns: Vec<Column>,
}

struct Column {
    /// Index of the column.
    at: usize,
    /// The observed T: its part from within cells, and its part from counts. The latter is `None`
    /// if it depends on the assumed origin of the landmarks.
    observed_within: f64,
    observed_counts: Option<f64>,
    /// Mean of φ in each cell minus that of all rows, in standard errors of T.
    levels: Vec<f64>,
    /// Standard deviation of the part from within cells, in the same unit.
    within: f64,
}

impl Shift {
    /// The statistics of all non-empty cells.
    pub fn new(cells: &PairedCells<'_>, plan: &Plan) -> Self {
        let used: Vec<usize> =
            (0..cells.counts.len()).filter(|cell| cells.rows(*cell) > 0.0).collect();
        let columns = (0..plan.dims()).filter_map(|k| Column::new(cells, k, &used)).collect();
        Shift { columns }
    }

    /// The largest T² and the sum of all T², for given differences of shares (A minus B) of the
    /// used cells and random differences within cells. If `with_observed`, the first entry uses the
    /// observed values.
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
            let values: Vec<f64> = if with_observed && i == 0 {
                columns.map(|column| column.observed(used, difference)).collect()
            } else {
                let within = self.draw_within(correlation, rng);
                columns.zip(within).map(|(c, within)| within + c.of(used, difference)).collect()
            };
            let squares = values.iter().map(|t| t * t);
            let (max, sum) = squares.fold((0.0f64, 0.0), |(m, s), t| (m.max(t), s + t));
            largest.push(max);
            total.push(sum);
        }
        vec![largest, total]
    }

    /// Normal variables with the columns' correlation within cells.
    fn draw_within(&self, correlation: &Correlation, rng: &mut ChaCha8Rng) -> Vec<f64> {
        let independent: Vec<f64> =
            correlation.eigenvalues.iter().map(|l| l.sqrt() * normal(rng)).collect();
        let drawn = match &correlation.vectors {
            None => independent,
            Some(vectors) => vectors.times(&independent),
        };
        let columns = self.columns.iter().map(|column| {
            let place = correlation.varying.binary_search(&column.at);
            place.map_or(0.0, |place| column.within * drawn[place])
        });
        columns.collect()
    }
}

impl Column {
    /// `None` if the column has missing values or does not vary.
    fn new(cells: &PairedCells<'_>, k: usize, used: &[usize]) -> Option<Self> {
        let d = cells.both[Sum::CellSum].len() / cells.counts.len();
        if used.iter().any(|j| cells.both.present(*j, k) != cells.both[Sum::CellRows][*j]) {
            return None;
        }
        let rows: Vec<f64> = used.iter().map(|j| cells.rows(*j)).collect();
        let total: f64 = rows.iter().sum();
        let cell_sums = &cells.both[Sum::CellSum];
        let means = used.iter().map(|j| cell_sums[j * d + k] as f64 / cells.rows(*j));
        let means: Vec<f64> = means.collect();
        let variances = used.iter().map(|j| cells.both.cell_spread(*j, k) / cells.rows(*j));
        let variances: Vec<f64> = variances.collect();
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
        // The part of a sample's mean of φ that is not explained by the means of the cells, and the
        // part that is.
        let (mut within, mut counts) = ([0.0; 2], [0.0; 2]);
        for (side, sums) in [cells.a, cells.b].into_iter().enumerate() {
            let terms = used.iter().enumerate().map(|(i, j)| {
                let sum = sums[Sum::CellSum][j * d + k] as f64;
                slopes[i] * (sum - cells.counts[*j][side] * means[i])
            });
            within[side] = terms.sum::<f64>() / (cells.totals[side] * error);
            let terms = used.iter().map(|j| cells.counts[*j][side] * levels[*j]);
            counts[side] = terms.sum::<f64>() / cells.totals[side];
        }
        Some(Column {
            at: k,
            observed_within: within[0] - within[1],
            observed_counts: (!heavy).then(|| counts[0] - counts[1]),
            levels,
            within: (noise * inside).sqrt() / error,
        })
    }

    /// The observed T, with the differences of shares for one origin of the landmarks.
    fn observed(&self, used: &[usize], difference: &[f64]) -> f64 {
        self.observed_within + self.observed_counts.unwrap_or_else(|| self.of(used, difference))
    }

    /// The part of T from counts, for given differences of shares of the used cells.
    fn of(&self, used: &[usize], difference: &[f64]) -> f64 {
        used.iter().zip(difference).map(|(j, d)| self.levels[*j] * d).sum()
    }
}

/// φ of a column.
struct Weighed {
    /// Mean of φ in each cell, and its slope with respect to the values of the cell's rows.
    values: Vec<f64>,
    slopes: Vec<f64>,
    /// Whether tails are heavy.
    heavy: bool,
}

impl Weighed {
    /// Computes the weights by EM for a Student distribution, `w_j = (ν + 1)/(ν + E_j (x −
    /// c)²/s²)`.
    fn of(means: &[f64], variances: &[f64], rows: &[f64]) -> Self {
        let mut weights = vec![1.0; rows.len()];
        let mut centre = average(&weights, rows, means.iter().copied());
        let mut squares = squared_distances(means, variances, centre);
        let mut scale = average(&weights, rows, squares.iter().copied());
        let fourth = average(&weights, rows, squares.iter().map(|square| square.powi(2)));
        if !(fourth > HEAVY * scale * scale) {
            return Weighed { values: means.to_vec(), slopes: weights, heavy: false };
        }
        let min_scale = NARROWEST * scale;
        for _ in 0..TURNS {
            weights = squares.iter().map(|s| (FREEDOM + 1.0) / (FREEDOM + s / scale)).collect();
            let total = average(&weights, rows, rows.iter().map(|_| 1.0));
            centre = average(&weights, rows, means.iter().copied()) / total;
            squares = squared_distances(means, variances, centre);
            scale = average(&weights, rows, squares.iter().copied()).max(min_scale);
        }
        let slopes = weights.iter().zip(rows);
        Weighed {
            values: means.iter().zip(&weights).map(|(mean, w)| w * (mean - centre)).collect(),
            slopes: slopes.map(|(w, n)| if *n < LEAST_ROWS { 0.0 } else { *w }).collect(),
            heavy: true,
        }
    }
}

/// The average of values over all rows, `Σ_j w_j n_j/n value_j`.
fn average(weights: &[f64], rows: &[f64], values: impl Iterator<Item = f64>) -> f64 {
    let total: f64 = rows.iter().sum();
    weights.iter().zip(rows).zip(values).map(|((w, n), value)| w * n / total * value).sum()
}

/// The mean squared distance of the rows of each cell from the centre, `E_j (x − c)²`.
fn squared_distances(means: &[f64], variances: &[f64], centre: f64) -> Vec<f64> {
    means.iter().zip(variances).map(|(mean, variance)| (mean - centre).powi(2) + variance).collect()
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
        // One cell of few rows, a hundred times as far from the centre.
        let (means, variances) = ([&means[..], &[1000.0]].concat(), vec![0.1; 22]);
        let heavy = Weighed::of(&means, &variances, &[&rows[..], &[10.0]].concat());
        assert!(heavy.heavy);
        assert_eq!(heavy.slopes[21], 0.0, "few rows");
        // A distant row has about the effect of a row at the edge of the others; on the plain mean,
        // it would have 100 times that effect.
        assert!(heavy.values[21].abs() < heavy.values[20].abs(), "{:?}", heavy.values);
        assert!(heavy.slopes[10] > 2.0 * heavy.slopes[20], "{:?}", heavy.slopes);
    }
}
