//! The test: whether the cells of both samples may come from one distribution.
//!
//! If they do, each of the N_j rows of a cell is in A with probability f = n_A/(n_A + n_B). Statistics:
//!
//! * χ² of the counts, cells with less than 5 rows expected in either sample pooled, and its largest term;
//! * for each bandwidth the discrepancy of the cells, δᵀKδ, where δ_j is the difference of the cell's shares and K the
//!   kernel matrix of the landmarks;
//! * the differences of the columns' means in standard errors, far cells counted less where tails are heavy (`shift.rs`): the
//!   largest, and the sum of squares;
//! * Σ_jk z²_jk of the differences of the cells' means, in standard errors of the column in the cell.
//!
//! Their joint null distribution is drawn: counts as Binomial(N_j, f), what happens within cells, which is independent of
//! the counts, as normal numbers with the columns' correlation within cells. The least of the statistics' p-values is
//! ranked among those of the draws: one p-value for all of them.
//!
//! Draws end early where the answer is clear: at the first hundred where twenty of them are as extreme as what is seen, and
//! before the first where χ² is beyond anything that they could show.

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

/// Rows of either sample from which on the mean of a cell is looked at.
const LEAST_ROWS: i128 = 10;
/// Draws after which it is asked whether the answer is clear, and how many must then be as extreme.
const FIRST_DRAWS: usize = 99;
const CLEAR: f64 = 0.2;
/// χ² as a normal number, and its largest term as a square of one, beyond which no draw is made: draws go so far less than once
/// in 10⁹ tests, also in 10⁴ cells with five rows expected.
const BEYOND: f64 = 7.0;
const LARGEST: f64 = 12.0 * 12.0;

/// The p-value of the module's head, for rows of A and B in the cells (`cells.rs` says which); `gram` are the kernel matrices of the landmarks, one for each bandwidth.
pub fn p_value<'a>(
    cells: &PairedCells<'_>,
    counts: &[[f64; 2]],
    plan: &Plan,
    gram: impl Fn(usize) -> std::borrow::Cow<'a, Matrix>,
    params: &DriftParams,
) -> Result<f64> {
    let rows = |cell: &usize| counts[*cell][0] + counts[*cell][1];
    let used: Vec<usize> = (0..counts.len()).filter(|cell| rows(cell) > 0.0).collect();
    let pooled: Vec<f64> = used.iter().map(rows).collect();
    let (m, d, draws) = (used.len() as f64, plan.dims() as f64, params.draws as f64);
    let columns = if plan.collect.moments { Work::eigen(plan.dims(), 1) } else { Work::default() };
    let operations = plan.bandwidths.len() as f64 * m * m * (d + 2.0 * draws) + m * d * (d + draws);
    columns.and(operations, 8.0 * (m * m + 3.0 * m * draws)).check("the test of drift")?;
    let share = cells.totals[0] / (cells.totals[0] + cells.totals[1]);
    let observed: Vec<f64> = used.iter().map(|&j| counts[j][0]).collect();
    if chi_square(&observed, &pooled, share).is_beyond_draws() {
        return Ok(1.0 / (params.draws + 1) as f64);
    }
    let binomial = |n: &f64| Binomial::new(*n as u64, share).map_err(|_| no_null(pooled.len()));
    let binomials: Vec<Binomial> = pooled.iter().map(binomial).collect::<Result<_>>()?;
    let correlation = correlation_within(cells, plan)?;
    let shift = Shift::new(cells, plan);
    let within = Within::new(cells, plan, &correlation)?;
    let mut rng = ChaCha8Rng::seed_from_u64(params.seed);
    let mut statistics: Vec<Vec<f64>> = Vec::new();
    let mut drawn = 0;
    loop {
        // Counts of A in every cell: the sample's, then draws.
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

/// Share of A less that of B of each cell, from counts of A among pooled counts.
fn difference(a: &[f64], pooled: &[f64]) -> Vec<f64> {
    let na: f64 = a.iter().sum::<f64>().max(1.0);
    let nb = (pooled.iter().sum::<f64>() - na).max(1.0);
    a.iter().zip(pooled).map(|(a, n)| a / na - (n - a) / nb).collect()
}

/// The rows and columns of a matrix that belong to these cells.
fn select(matrix: &Matrix, cells: &[usize]) -> Matrix {
    Matrix::from_fn(cells.len(), cells.len(), |i, j| matrix.get(cells[i], cells[j]))
}

/// Σ z² of the differences of the cells' means, less its expectation, and its null distribution.
struct Within {
    observed: f64,
    terms: f64,
    eigenvalues: Vec<f64>,
    /// How much wider sums over cells are than those of normal variables.
    wider: f64,
    each: ChiSquared<f64>,
}

impl Within {
    /// `None` where no cell has rows enough.
    fn new(
        paired: &PairedCells<'_>,
        plan: &Plan,
        correlation: &Correlation,
    ) -> Result<Option<Self>> {
        let d = plan.dims();
        let (a, b) = (paired.a, paired.b);
        // Σ z² less its expectation, and the number of terms, of each cell.
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
                    // The mean of a squared t of so many degrees of freedom is 1 after this.
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
        // Columns that are constant in a cell count there for nothing.
        let scale = terms / count / correlation.eigenvalues.iter().sum::<f64>();
        let eigenvalues: Vec<f64> = correlation.eigenvalues.iter().map(|l| l * scale).collect();
        let total: f64 = cells.iter().map(|c| c.0).sum();
        // Sums over a cell of skewed or rare values, as in columns of zeros and ones, vary more than those of
        // normal variables. So they are taken to where they are seen to, beyond chance.
        let variance = |mean: f64| cells.iter().map(|c| (c.0 - mean).powi(2)).sum::<f64>() / count;
        let normal = 2.0 * dot(&eigenvalues, &eigenvalues);
        let freedom = 2.0 * (terms / count).powi(2) / normal;
        let chance = 1.0 + 2.0 * ((2.0 + 12.0 / freedom) / count).sqrt();
        let seen = variance(total / count);
        let wider = if seen > normal * chance { (seen / normal).sqrt() } else { 1.0 };
        let each = ChiSquared::new(count).map_err(|_| no_null(cells.len()))?;
        Ok(Some(Within { observed: total, terms, eigenvalues, wider, each }))
    }

    /// Draws, after what is seen where that is asked for.
    fn statistic(&self, draws: usize, with_observed: bool, rng: &mut ChaCha8Rng) -> Vec<f64> {
        let mut statistic = if with_observed { vec![self.observed] } else { Vec::new() };
        for _ in 0..draws {
            let sum: f64 = self.eigenvalues.iter().map(|l| l * self.each.sample(rng)).sum();
            statistic.push(self.wider * (sum - self.terms));
        }
        statistic
    }
}

/// There are draws for all counts that occur.
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
    /// Whether no draw could come near, by the approximation of Wilson and Hilferty.
    fn is_beyond_draws(&self) -> bool {
        let freedom = (self.terms - 1.0).max(1.0);
        let width = 2.0 / (9.0 * freedom);
        let normal = ((self.total / freedom).cbrt() - (1.0 - width)) / width.sqrt();
        normal > BEYOND || self.largest > LARGEST
    }
}

/// χ² of the counts of A among pooled counts, small cells taken together.
fn chi_square(a: &[f64], pooled: &[f64], share: f64) -> ChiSquare {
    // Pooling goes by the expected share, terms by the share of these counts, whose total varies.
    let own = a.iter().sum::<f64>() / pooled.iter().sum::<f64>();
    let own = if own > 0.0 && own < 1.0 { own } else { share };
    let term = |a: f64, n: f64| (a - n * own).powi(2) / (n * own * (1.0 - own));
    let mut sum = ChiSquare { total: 0.0, largest: 0.0, terms: 0.0 };
    let mut add = |term: f64| {
        sum.total += term;
        sum.largest = f64::max(sum.largest, term);
        sum.terms += 1.0;
    };
    let mut rest = (0.0, 0.0);
    for (&a, &n) in a.iter().zip(pooled) {
        if is_small(n, share) {
            rest = (rest.0 + a, rest.1 + n);
        } else {
            add(term(a, n));
        }
    }
    if rest.1 > 0.0 {
        add(term(rest.0, rest.1));
    }
    sum
}

/// The least p-value of several statistics and of the sum of their logarithms, which sees what shows a little in many; ranked among
/// those of the draws. Of equal ones, the one with the largest statistic in standard deviations is the more extreme. The
/// first value of each statistic is the one observed.
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
    let as_extreme = |e: &&(usize, f64)| e.0 < rank || (e.0 == rank && e.1 >= size);
    extreme.0.iter().filter(as_extreme).count() as f64 / count as f64
}

/// The least rank of each draw over the statistics so far, and its largest deviation.
struct Extreme(Vec<(usize, f64)>);

impl Extreme {
    /// The rank of each value: how many are at least as large, itself counted.
    fn add(&mut self, values: &[f64]) -> Vec<usize> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n;
        let deviation = variance.sqrt().max(f64::MIN_POSITIVE);
        let rank = |value: &f64| values.len() - sorted.partition_point(|v| v < value);
        let ranks: Vec<usize> = values.iter().map(rank).collect();
        for ((least, size), (rank, value)) in self.0.iter_mut().zip(ranks.iter().zip(values)) {
            *least = (*least).min(*rank);
            *size = size.max((value - mean) / deviation);
        }
        ranks
    }
}
