//! The test of whether the cells of both samples come from one distribution.
//!
//! Under the null hypothesis, each of the N_j rows of a cell is in A with probability f =
//! n_A/(n_A + n_B). The statistics are:
//!
//! * χ² of the counts, with cells of fewer than 5 expected rows in either sample pooled, and its
//!   largest term;
//! * for each bandwidth, the discrepancy of the cells, δᵀKδ, where δ_j is the difference of the
//!   cell's shares and K is the kernel matrix of the landmarks;
//! * the differences of the columns' means in standard errors, with less weight on distant cells if
//!   tails are heavy (`shift.rs`): the largest, and the sum of squares;
//! * Σ_jk z²_jk of the differences of the cells' means, in standard errors of the column in the
//!   cell.
//!
//! Their joint null distribution is sampled: counts as Binomial(N_j, f), and differences within
//! cells, which are independent of the counts, as normal variables with the columns' correlation
//! within cells. The smallest p-value of the statistics is ranked among the smallest p-values of
//! the draws, which gives one p-value for all statistics.
//!
//! Sampling stops early if the answer is clear: after the first hundred draws if at least twenty of
//! them are as extreme as the observation, and before the first draw if χ² is larger than any draw
//! could be.

use crate::differences::cells::PairedCells;
use crate::differences::correlation::{Correlation, correlation_within};
use crate::differences::params::DriftParams;
use crate::significance::shift::Shift;
use crate::statistics::pooled::is_small;
use nysketch_core::error::{Error, Result};
use nysketch_core::numeric::linalg::{Matrix, dot};
use nysketch_core::numeric::work::Work;
use nysketch_core::plan::Plan;
use nysketch_core::sums::Sum;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Binomial, ChiSquared, Distribution};

/// Smallest number of rows in each sample for which the mean of a cell is tested.
const LEAST_ROWS: i128 = 10;
/// Number of draws after which sampling may stop, and the p-value from which it stops.
const FIRST_DRAWS: usize = 99;
const CLEAR: f64 = 0.2;
/// Limits above which no draws are made: for χ² transformed to a normal variable, and for its
/// largest term as a squared normal variable. A draw exceeds them less than once in 10⁹ tests, even
/// with 10⁴ cells of five expected rows.
const BEYOND: f64 = 7.0;
const LARGEST: f64 = 12.0 * 12.0;

/// The p-value of all statistics of this module, for given numbers of rows of A and B in the cells
/// (see `cells.rs`). `gram` returns the kernel matrix of the landmarks at a bandwidth.
pub fn p_value<'a>(
    cells: &PairedCells<'_>,
    counts: &[[f64; 2]],
    plan: &Plan,
    gram: impl Fn(usize) -> std::borrow::Cow<'a, Matrix>,
    params: &DriftParams,
) -> Result<f64> {
    let rows: Vec<f64> = counts.iter().map(|[a, b]| a + b).collect();
    let used: Vec<usize> = (0..counts.len()).filter(|cell| rows[*cell] > 0.0).collect();
    let pooled: Vec<f64> = used.iter().map(|cell| rows[*cell]).collect();
    let (m, d, draws) = (used.len() as f64, plan.dims() as f64, params.draws as f64);
    let columns = if plan.collect.moments { Work::eigen(plan.dims(), 1) } else { Work::default() };
    let operations = plan.bandwidths.len() as f64 * m * m * (d + 2.0 * draws) + m * d * (d + draws);
    columns.and(operations, 8.0 * (m * m + 3.0 * m * draws)).check("the test of drift")?;
    let share = cells.totals[0] / (cells.totals[0] + cells.totals[1]);
    let observed: Vec<f64> = used.iter().map(|&j| counts[j][0]).collect();
    if chi_square(&observed, &pooled, share).is_beyond_draws() {
        return Ok(1.0 / (params.draws + 1) as f64);
    }
    let binomials = pooled.iter().map(|n| Binomial::new(*n as u64, share));
    let binomials: std::result::Result<Vec<Binomial>, _> = binomials.collect();
    let binomials = binomials.map_err(|_| no_null(pooled.len()))?;
    let correlation = correlation_within(cells, plan)?;
    let shift = Shift::new(cells, plan);
    let within = Within::new(cells, plan, &correlation)?;
    let mut rng = ChaCha8Rng::seed_from_u64(params.seed);
    let mut statistics: Vec<Vec<f64>> = Vec::new();
    let mut drawn = 0;
    loop {
        // Counts of A in every cell: the observed counts, then the draws.
        let more = if drawn == 0 { FIRST_DRAWS.min(params.draws) } else { params.draws - drawn };
        let mut counts = if drawn == 0 { vec![observed.clone()] } else { Vec::new() };
        for _ in 0..more {
            counts.push(binomials.iter().map(|cell| cell.sample(&mut rng) as f64).collect());
        }
        let differences: Vec<Vec<f64>> = counts.iter().map(|a| difference(a, &pooled)).collect();
        let mut next: Vec<Vec<f64>> = vec![Vec::new(); 2];
        for a in &counts {
            let terms = chi_square(a, &pooled, share);
            next[0].push(terms.total);
            next[1].push(terms.largest);
        }
        for rung in 0..plan.bandwidths.len() {
            let products = select(&gram(rung), &used).times_each(&differences);
            next.push(differences.iter().zip(&products).map(|(d, p)| dot(d, p)).collect());
        }
        next.extend(shift.statistics(&used, &differences, drawn == 0, &correlation, &mut rng));
        if let Some(within) = &within {
            next.push(within.statistic(more, drawn == 0, &mut rng));
        }
        statistics = match drawn {
            0 => next,
            _ => statistics.into_iter().zip(next).map(|(all, next)| [all, next].concat()).collect(),
        };
        drawn += more;
        let p_value = joint_p_value(&statistics);
        if drawn == params.draws || p_value >= CLEAR {
            return Ok(p_value);
        }
    }
}

/// Share of A minus share of B in each cell, from the counts of A and the pooled counts.
fn difference(a: &[f64], pooled: &[f64]) -> Vec<f64> {
    let na: f64 = a.iter().sum::<f64>().max(1.0);
    let nb = (pooled.iter().sum::<f64>() - na).max(1.0);
    a.iter().zip(pooled).map(|(a, n)| a / na - (n - a) / nb).collect()
}

/// The rows and columns of a matrix that belong to these cells.
fn select(matrix: &Matrix, cells: &[usize]) -> Matrix {
    Matrix::from_fn(cells.len(), cells.len(), |i, j| matrix.get(cells[i], cells[j]))
}

/// Σ z² of the differences of the cells' means, minus its expectation, and its null distribution.
struct Within {
    observed: f64,
    terms: f64,
    eigenvalues: Vec<f64>,
    /// Standard deviation of sums over cells, relative to that of normal variables.
    wider: f64,
    each: ChiSquared<f64>,
}

impl Within {
    /// `None` if no cell has enough rows.
    fn new(
        paired: &PairedCells<'_>,
        plan: &Plan,
        correlation: &Correlation,
    ) -> Result<Option<Self>> {
        let d = plan.dims();
        let (a, b) = (paired.a, paired.b);
        // Σ z² minus its expectation, and the number of terms, of each cell.
        let mut cells: Vec<(f64, f64)> = Vec::new();
        for j in 0..paired.counts.len() {
            let (na, nb) = (a[Sum::CellRows][j], b[Sum::CellRows][j]);
            if na < LEAST_ROWS || nb < LEAST_ROWS {
                continue;
            }
            let (mut excess, mut terms) = (0.0, 0.0);
            for k in 0..d {
                let (na, nb) = (a.present(j, k), b.present(j, k));
                if na < LEAST_ROWS || nb < LEAST_ROWS {
                    continue;
                }
                let freedom = (na + nb - 2) as f64;
                let variance = (a.cell_spread(j, k) + b.cell_spread(j, k)) / freedom;
                if variance > 0.0 {
                    let (na, nb, at) = (na as f64, nb as f64, j * d + k);
                    let change = a[Sum::CellSum][at] as f64 / na - b[Sum::CellSum][at] as f64 / nb;
                    let z2 = change * change / (variance * (1.0 / na + 1.0 / nb));
                    // This factor makes the mean of a squared t variable 1.
                    excess += z2 * (freedom - 2.0) / freedom - 1.0;
                    terms += 1.0;
                }
            }
            if terms > 0.0 {
                cells.push((excess, terms));
            }
        }
        if cells.is_empty() {
            return Ok(None);
        }
        let count = cells.len() as f64;
        let terms: f64 = cells.iter().map(|c| c.1).sum();
        // Columns that are constant in a cell do not contribute there.
        let scale = terms / count / correlation.eigenvalues.iter().sum::<f64>();
        let eigenvalues: Vec<f64> = correlation.eigenvalues.iter().map(|l| l * scale).collect();
        let total: f64 = cells.iter().map(|c| c.0).sum();
        // Sums over a cell of skewed or rare values, such as columns of zeros and ones, vary more
        // than those of normal variables. The null distribution is widened to match if the excess
        // is larger than chance.
        let normal = 2.0 * dot(&eigenvalues, &eigenvalues);
        let freedom = 2.0 * (terms / count).powi(2) / normal;
        let chance = 1.0 + 2.0 * ((2.0 + 12.0 / freedom) / count).sqrt();
        let mean = total / count;
        let variance = cells.iter().map(|c| (c.0 - mean).powi(2)).sum::<f64>() / count;
        let wider = if variance > normal * chance { (variance / normal).sqrt() } else { 1.0 };
        let each = ChiSquared::new(count).map_err(|_| no_null(cells.len()))?;
        Ok(Some(Within { observed: total, terms, eigenvalues, wider, each }))
    }

    /// Draws of the statistic, preceded by the observed value if `with_observed`.
    fn statistic(&self, draws: usize, with_observed: bool, rng: &mut ChaCha8Rng) -> Vec<f64> {
        let mut statistic = if with_observed { vec![self.observed] } else { Vec::new() };
        for _ in 0..draws {
            let sum: f64 = self.eigenvalues.iter().map(|l| l * self.each.sample(rng)).sum();
            statistic.push(self.wider * (sum - self.terms));
        }
        statistic
    }
}

/// The error of a failed distribution. It does not occur for valid counts.
fn no_null(size: usize) -> Error {
    Error::NoConvergence { what: "the null distribution", size }
}

/// χ² of counts, and its largest term.
struct ChiSquare {
    total: f64,
    largest: f64,
    terms: f64,
}

impl ChiSquare {
    /// Adds the term of `a` of `n` rows in A, for an expected share.
    #[inline]
    fn add(&mut self, a: f64, n: f64, share: f64) {
        let term = (a - n * share).powi(2) / (n * share * (1.0 - share));
        self.total += term;
        self.largest = f64::max(self.largest, term);
        self.terms += 1.0;
    }

    /// Whether no draw could be as large, by the approximation of Wilson and Hilferty.
    fn is_beyond_draws(&self) -> bool {
        let freedom = (self.terms - 1.0).max(1.0);
        let width = 2.0 / (9.0 * freedom);
        let normal = ((self.total / freedom).cbrt() - (1.0 - width)) / width.sqrt();
        normal > BEYOND || self.largest > LARGEST
    }
}

/// χ² of the counts of A among the pooled counts, with small cells pooled.
fn chi_square(a: &[f64], pooled: &[f64], share: f64) -> ChiSquare {
    // Cells are pooled by the expected share. The terms use the share of these counts, whose total
    // varies.
    let drawn = a.iter().sum::<f64>() / pooled.iter().sum::<f64>();
    let drawn = if drawn > 0.0 && drawn < 1.0 { drawn } else { share };
    let mut sum = ChiSquare { total: 0.0, largest: 0.0, terms: 0.0 };
    let mut rest = (0.0, 0.0);
    for (&a, &n) in a.iter().zip(pooled) {
        if is_small(n, share) {
            rest = (rest.0 + a, rest.1 + n);
        } else {
            sum.add(a, n, drawn);
        }
    }
    if rest.1 > 0.0 {
        sum.add(rest.0, rest.1, drawn);
    }
    sum
}

/// Ranks the smallest p-value of several statistics among those of the draws. The sum of the
/// logarithms of the p-values counts as a further statistic, which detects small effects in many
/// statistics. Ties are broken by the largest statistic in standard deviations. The first value of
/// each statistic is the observed one.
pub(super) fn joint_p_value(statistics: &[Vec<f64>]) -> f64 {
    let count = statistics[0].len();
    let mut extreme = Extreme(vec![(usize::MAX, f64::NEG_INFINITY); count]);
    let mut logarithms = vec![0.0; count];
    for values in statistics {
        let ranks = extreme.add(values);
        logarithms.iter_mut().zip(ranks).for_each(|(sum, rank)| *sum -= (rank as f64).ln());
    }
    extreme.add(&logarithms);
    let (rank, size) = extreme.0[0];
    let as_extreme = extreme.0.iter().filter(|e| e.0 < rank || (e.0 == rank && e.1 >= size));
    as_extreme.count() as f64 / count as f64
}

/// The smallest rank of each draw over the statistics so far, and its largest deviation.
struct Extreme(Vec<(usize, f64)>);

impl Extreme {
    /// The rank of each value: the number of values at least as large, itself included.
    fn add(&mut self, values: &[f64]) -> Vec<usize> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n;
        let deviation = variance.sqrt().max(f64::MIN_POSITIVE);
        let ranks = values.iter().map(|value| values.len() - sorted.partition_point(|v| v < value));
        let ranks: Vec<usize> = ranks.collect();
        for ((min_rank, size), (rank, value)) in self.0.iter_mut().zip(ranks.iter().zip(values)) {
            *min_rank = (*min_rank).min(*rank);
            *size = size.max((value - mean) / deviation);
        }
        ranks
    }
}
