//! The test for weighted rows and for rows that are dependent within a key, such as a user: based
//! on the folds of both sketches.
//!
//! All rows of a key are in one fold, so folds are independent even if rows are not. Each fold
//! contributes to every difference between A and B,
//!
//! ```text
//! d_f = (a_f − n_Af·p)/n_A − (b_f − n_Bf·p)/n_B ,   Σ_f d_f = a/n_A − b/n_B
//! ```
//!
//! where a_f and b_f are the rows of fold f in a cell and p is the cell's share in both samples. If
//! nothing changed, d_f is equally likely to have either sign, even if the same users are in A and
//! in B. The sums Σ_f ±d_f with random signs therefore give the null distribution. All statistics
//! are quadratic forms of the signs: χ² of the cells, their discrepancy at every bandwidth, χ² of
//! levels and of missing values, and the largest and the sum of the squared differences of means. F
//! folds have 2^(F−1) sets of signs, so the p-value cannot be below 2^(1−F).

use crate::differences::cells::PairedCells;
use crate::differences::params::DriftParams;
use crate::significance::null::joint_p_value;
use crate::statistics::pooled::is_small;
use nysketch_core::numeric::linalg::{Matrix, dot};
use nysketch_core::numeric::work::Work;
use nysketch_core::plan::Plan;
use nysketch_core::sketch::Sketch;
use nysketch_core::sums::{Sum, Sums};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::borrow::Cow;

/// Result of the test by folds.
pub struct ByFolds {
    pub p_value: f64,
    /// The smallest p-value possible with this number of folds.
    pub least_p_value: f64,
    /// Degrees of freedom of estimates from folds.
    pub freedom: usize,
    /// Variance of the cells' shares relative to that of independent rows.
    pub widening: f64,
    /// Difference of the means, B minus A, of each column, in standard errors estimated from folds.
    pub z: Vec<f64>,
}

/// The sums of each fold of A and B.
type Sides<'a> = [&'a [Sums]; 2];

impl ByFolds {
    /// Tests two sketches. `None` unless both have folds with the same rule, and at least two folds
    /// have rows.
    pub fn of<'a>(
        sketches: [&Sketch; 2],
        cells: &PairedCells<'_>,
        gram: impl Fn(usize) -> Cow<'a, Matrix>,
        params: &DriftParams,
    ) -> Option<Self> {
        let [a, b] = [sketches[0].folds()?, sketches[1].folds()?];
        if a.rule() != b.rule() {
            return None;
        }
        let plan = sketches[0].plan();
        let used: Vec<usize> = (0..a.len()).filter(|f| a.rows(*f) + b.rows(*f) > 0).collect();
        if used.len() < 2 {
            return None;
        }
        let all = [a.sums(), b.sums()];
        let parts = Parts { sides: all, folds: &used };
        let counts = parts.differences(cells.counts.len(), |sums, j| sums[Sum::CellRows][j] as f64);
        let mut forms = vec![chi_squared(&counts, &cells.counts, cells.totals)];
        let size = (cells.counts.len() as f64).powi(2);
        let rungs = plan.bandwidths.len();
        let work = Work::default().and(2.0 * size * (a.len() * rungs) as f64, 8.0 * size);
        // If the kernel matrices are too large, the discrepancy is omitted; χ² and means remain.
        for rung in 0..if work.is_small() { rungs } else { 0 } {
            let gram = gram(rung);
            let products = gram.times_each(&counts);
            forms.push(form(&counts, |f, g| dot(&counts[f], &products[g])));
        }
        forms.extend(parts.other_shares(plan));
        let means = parts.means(plan, &cells.both);
        let p_value = p_value(&forms, &means, params);
        let folds = used.len() as i32;
        let z = means.iter().map(|d| {
            let (sum, error) = (d.iter().sum::<f64>(), deviation(d));
            if error > 0.0 { -sum / error } else { 0.0 }
        });
        Some(ByFolds {
            p_value,
            least_p_value: (1.0 / (params.draws + 1) as f64).max(2.0f64.powi(1 - folds)),
            freedom: used.len() - 1,
            widening: widening(&counts, &cells.counts, cells.totals, plan),
            z: z.collect(),
        })
    }
}

struct Parts<'a> {
    sides: Sides<'a>,
    /// The folds with rows.
    folds: &'a [usize],
}

impl Parts<'_> {
    /// The contribution of each fold to the differences of shares.
    fn differences(&self, size: usize, count: impl Fn(&Sums, usize) -> f64) -> Vec<Vec<f64>> {
        let totals = self.sides.map(|side| side.iter().map(rows).sum::<f64>());
        let mut shares = Vec::new();
        for j in 0..size {
            let all: f64 = self.sides.iter().copied().flatten().map(|sums| count(sums, j)).sum();
            shares.push(all / (totals[0] + totals[1]));
        }
        let mut differences = Vec::new();
        for &fold in self.folds {
            let [a, b] = self.sides.map(|side| &side[fold]);
            let parts = shares.iter().enumerate().map(|(j, share)| {
                let part_a = (count(a, j) - rows(a) * share) / totals[0];
                part_a - (count(b, j) - rows(b) * share) / totals[1]
            });
            differences.push(parts.collect());
        }
        differences
    }

    /// χ² of levels and of missing values, if the plan has any.
    fn other_shares(&self, plan: &Plan) -> Vec<Matrix> {
        let mut forms = Vec::new();
        for (sum, size) in [(Sum::CellLevels, plan.recipe.levels()), (Sum::CellAbsent, plan.dims())]
        {
            if size == 0 || self.sides[0][0][sum].is_empty() {
                continue;
            }
            let differences = self.differences(size, |sums, j| over_cells(&sums[sum], j, size));
            let counts: Vec<[f64; 2]> = (0..size)
                .map(|j| {
                    self.sides.map(|side| side.iter().map(|s| over_cells(&s[sum], j, size)).sum())
                })
                .collect();
            let totals = self.sides.map(|side| side.iter().map(rows).sum());
            forms.push(chi_squared(&differences, &counts, totals));
        }
        forms
    }

    /// The contribution of each fold to the difference of means, column by column.
    fn means(&self, plan: &Plan, both: &Sums) -> Vec<Vec<f64>> {
        let d = plan.dims();
        let mut means = Vec::new();
        for k in 0..d {
            let mean = over_cells(&both[Sum::CellSum], k, d) / present_rows(both, k).max(1.0);
            let totals = self
                .sides
                .map(|side| side.iter().map(|s| present_rows(s, k)).sum::<f64>().max(1.0));
            let parts = self.folds.iter().map(|fold| {
                let [a, b] = [0, 1].map(|side| {
                    let sums = &self.sides[side][*fold];
                    let sum = over_cells(&sums[Sum::CellSum], k, d);
                    (sum - present_rows(sums, k) * mean) / totals[side]
                });
                a - b
            });
            means.push(parts.collect());
        }
        means
    }
}

/// The number of rows.
fn rows(sums: &Sums) -> f64 {
    sums[Sum::Rows][0] as f64
}

/// The number of rows with a value of column `k`.
fn present_rows(sums: &Sums, k: usize) -> f64 {
    (0..sums[Sum::CellRows].len()).map(|j| sums.present(j, k)).sum::<i128>() as f64
}

/// The sum over all cells of entry `j` of the `size` entries of a cell.
fn over_cells(entries: &[i128], j: usize, size: usize) -> f64 {
    entries.iter().skip(j).step_by(size).sum::<i128>() as f64
}

/// The matrix of a quadratic form of the folds' signs.
fn form(parts: &[Vec<f64>], value: impl Fn(usize, usize) -> f64) -> Matrix {
    Matrix::from_fn(parts.len(), parts.len(), value)
}

/// χ² of differences of shares, with small cells pooled.
fn chi_squared(parts: &[Vec<f64>], counts: &[[f64; 2]], totals: [f64; 2]) -> Matrix {
    let share = totals[0] / (totals[0] + totals[1]);
    let weights = counts.iter().map(|[a, b]| {
        let is_used = a + b > 0.0 && !is_small(a + b, share);
        if is_used { (totals[0] + totals[1]) / (a + b) } else { 0.0 }
    });
    let weights: Vec<f64> = weights.collect();
    let scaled: Vec<Vec<f64>> =
        parts.iter().map(|d| d.iter().zip(&weights).map(|(d, w)| d * w).collect()).collect();
    let small: f64 =
        counts.iter().filter(|[a, b]| is_small(a + b, share)).map(|[a, b]| a + b).sum();
    let mut rests = Vec::<f64>::new();
    for part in parts {
        let rest = part.iter().zip(counts).filter(|(_, [a, b])| is_small(a + b, share));
        rests.push(rest.map(|(d, _)| d).sum());
    }
    let weight = if small > 0.0 { (totals[0] + totals[1]) / small } else { 0.0 };
    form(parts, |f, g| dot(&parts[f], &scaled[g]) + weight * rests[f] * rests[g])
}

/// √(F/(F−1) Σ_f (d_f − d̄)²): the standard error of Σ_f d_f.
fn deviation(parts: &[f64]) -> f64 {
    let count = parts.len() as f64;
    let mean = parts.iter().sum::<f64>() / count;
    (count / (count - 1.0) * parts.iter().map(|d| (d - mean).powi(2)).sum::<f64>()).sqrt()
}

/// Variance of the cells' differences relative to that of independent rows, at least 1 if rows are
/// not weighted.
fn widening(parts: &[Vec<f64>], counts: &[[f64; 2]], totals: [f64; 2], plan: &Plan) -> f64 {
    let noise = 1.0 / totals[0] + 1.0 / totals[1];
    let shares = counts.iter().map(|[a, b]| (a + b) / (totals[0] + totals[1]));
    let independent: f64 = shares.map(|share| share * (1.0 - share) * noise).sum();
    let observed: f64 = (0..counts.len())
        .map(|j| deviation(&parts.iter().map(|d| d[j]).collect::<Vec<f64>>()).powi(2))
        .sum();
    let ratio = if independent > 0.0 { observed / independent } else { 1.0 };
    if plan.weighting.is_some() { ratio } else { ratio.max(1.0) }
}

/// The p-value of all forms and means together: the statistics with the observed signs, compared
/// with those of random signs.
fn p_value(forms: &[Matrix], means: &[Vec<f64>], params: &DriftParams) -> f64 {
    let folds = forms[0].nrows();
    let mut rng = ChaCha8Rng::seed_from_u64(params.seed);
    let mut statistics: Vec<Vec<f64>> = vec![Vec::new(); forms.len() + 2];
    // All sets of signs are used if there are no more of them than draws. Flipping all signs
    // changes nothing, so half of the sets suffice.
    let sets = (folds <= 20).then(|| 1usize << (folds - 1)).filter(|n| *n <= params.draws + 1);
    let squares: Vec<f64> = means.iter().map(|d| dot(d, d)).collect();
    for draw in 0..sets.unwrap_or(params.draws + 1) as u64 {
        let bits = if draw == 0 || sets.is_some() { draw } else { rng.next_u64() };
        let signs: Vec<f64> =
            (0..folds).map(|f| if bits >> f & 1 == 0 { 1.0 } else { -1.0 }).collect();
        for (statistic, form) in statistics.iter_mut().zip(forms) {
            statistic.push(dot(&form.times(&signs), &signs));
        }
        let changes = means.iter().zip(&squares).filter(|(_, s)| **s > 0.0);
        let changes = changes.map(|(d, square)| dot(d, &signs).powi(2) / square);
        let (largest, sum) = changes.fold((0.0f64, 0.0), |(m, s), t| (m.max(t), s + t));
        statistics[forms.len()].push(largest);
        statistics[forms.len() + 1].push(sum);
    }
    joint_p_value(&statistics)
}
