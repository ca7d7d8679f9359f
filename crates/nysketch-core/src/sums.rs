//! The sums of a sketch: arrays of 128-bit integers, by name. [`Sum`] lists them.

pub use crate::plan::table::Sum;

use crate::error::{Error, Result};
use crate::numeric::fixed::{MAX_WEIGHT, centred_sum, coordinate_value, squares_possible};
use crate::plan::Plan;
use crate::plan::table::{Over, SUMS};
use std::ops::{Index, IndexMut};

/// The sums of some rows. Sums that the plan does not collect are empty.
///
/// ```
/// use nysketch_core::{PlanParams, Sketch, SketchParams, Sum, Table, plan_for};
/// # fn main() -> nysketch_core::Result<()> {
/// let table = Table::unnamed(1, vec![1.0, 2.0, 7.0])?;
/// let plan = std::sync::Arc::new(plan_for(&table, PlanParams::default())?.plan);
/// let sketch = Sketch::of(&plan, &table, SketchParams::default(), &())?;
/// assert_eq!(sketch.sums()[Sum::Rows], [3]);
/// assert_eq!(sketch.sums()[Sum::CellRows], [1, 1, 1]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sums([Vec<i128>; SUMS]);

impl Index<Sum> for Sums {
    type Output = Vec<i128>;
    fn index(&self, sum: Sum) -> &Vec<i128> {
        &self.0[sum as usize]
    }
}

impl IndexMut<Sum> for Sums {
    fn index_mut(&mut self, sum: Sum) -> &mut Vec<i128> {
        &mut self.0[sum as usize]
    }
}

/// A rule that sums violate: no rows have such sums.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BrokenRule {
    /// The invalid sum.
    pub sum: String,
    /// The way in which it is invalid.
    pub how: String,
}

/// The violation of [`Sums::check_squares`].
const NO_SQUARES: &str = "not be squares of its rows";

impl BrokenRule {
    fn new(sum: impl Into<String>, how: &str) -> Self {
        BrokenRule { sum: sum.into(), how: how.to_string() }
    }
}

/// The rule that an entry below or above its bounds violates.
fn out_of_bounds(sum: Sum, entry: usize, is_below: bool) -> BrokenRule {
    let name = match sum {
        Sum::Rows => "the number of rows".to_string(),
        Sum::Skipped => "the number of skipped rows".to_string(),
        _ => format!("{}[{entry}]", sum.name()),
    };
    let how = match sum {
        Sum::Rows | Sum::Skipped if is_below => "become negative",
        Sum::Rows => "exceed 2^38",
        Sum::Skipped => "exceed 2^64",
        _ if is_below => "fall below what its rows can give",
        _ => "exceed what its rows can give",
    };
    BrokenRule::new(name, how)
}

/// The quantised coordinate q of n equal rows: `n q = Σq` and `n q² = Σq²`; `None` if the rows
/// differ.
fn only_value(sum: i128, square: i128, n: i128) -> Option<i128> {
    let q = sum / n;
    let is_only = sum % n == 0 && q.checked_mul(q)?.checked_mul(n)? == square;
    is_only.then_some(q)
}

impl Sums {
    /// Empty arrays, to be filled.
    pub fn none() -> Self {
        Sums(Default::default())
    }

    /// Sums of no rows.
    pub fn zero(plan: &Plan) -> Self {
        let mut sums = Sums::none();
        for spec in plan.measured().specs() {
            sums[spec.sum] = vec![0; spec.entries()];
        }
        sums
    }

    /// Mutable references to several sums at once.
    ///
    /// # Panics
    /// If a sum is listed twice.
    pub fn each_mut<const N: usize>(&mut self, sums: [Sum; N]) -> [&mut Vec<i128>; N] {
        self.0.get_disjoint_mut(sums.map(|sum| sum as usize)).expect("different sums")
    }

    /// Memory of the sums of a plan, in bytes.
    pub(crate) fn bytes(plan: &Plan) -> usize {
        plan.measured().specs().iter().map(|spec| spec.entries() * size_of::<i128>()).sum()
    }

    /// Applies `op` entry by entry. Valid sums are at most 2¹²⁶ in magnitude, so a result that
    /// wraps around is never accepted by `check`.
    pub fn combine(&mut self, other: &Sums, op: impl Fn(i128, i128) -> i128) {
        for (a, b) in self.0.iter_mut().zip(&other.0) {
            for (x, y) in a.iter_mut().zip(b) {
                *x = op(*x, *y);
            }
        }
    }

    /// Number of complete rows. Only these contribute to kernel sums, coverage and moments.
    pub fn complete(&self) -> i128 {
        self[Sum::Complete].first().copied().unwrap_or(self[Sum::Rows][0])
    }

    /// Number of rows of a cell with a value in a column.
    pub fn present(&self, cell: usize, column: usize) -> i128 {
        let rows = self[Sum::CellRows][cell];
        let dims = self[Sum::CellSum].len() / self[Sum::CellRows].len();
        rows - self[Sum::CellAbsent].get(cell * dims + column).copied().unwrap_or(0)
    }

    /// Mean of a non-empty cell in the plan's coordinates, over the rows with a value; zero, the
    /// centre of the column, if no row has one.
    pub fn cell_mean(&self, cell: usize, exponent: &[i32]) -> Vec<f64> {
        let d = exponent.len();
        let sums = self[Sum::CellSum][cell * d..(cell + 1) * d].iter().zip(exponent);
        let mut mean = Vec::with_capacity(d);
        for (k, (sum, e)) in sums.enumerate() {
            mean.push(coordinate_value(*sum, *e) / self.present(cell, k).max(1) as f64);
        }
        mean
    }

    /// `Σ (q − q̄)²` of a column over the rows of a cell with a value, in squared units of the
    /// column.
    pub fn cell_spread(&self, cell: usize, column: usize) -> f64 {
        let dims = self[Sum::CellSum].len() / self[Sum::CellRows].len();
        let at = cell * dims + column;
        let sum = self[Sum::CellSum][at];
        match self.present(cell, column) {
            0 => 0.0,
            rows => centred_sum(self[Sum::CellSquare][at], sum, sum, rows),
        }
    }

    /// If all rows of a cell are equal: their quantised coordinates, with `None` for missing
    /// values, and their levels. The rows are equal if n·Σq² = (Σq)² in every column, and they have
    /// the same missing values and the same levels.
    pub fn only_row(&self, plan: &Plan, cell: usize) -> Option<(Vec<Option<i128>>, Vec<u32>)> {
        let (rows, levels) = (self[Sum::CellRows][cell], plan.recipe.levels());
        if rows == 0 {
            return None;
        }
        let mut counts = &self[Sum::CellLevels][cell * levels..(cell + 1) * levels];
        let mut only_levels = Vec::new();
        for category in plan.categories() {
            let of_category = counts.split_off(..category.len())?;
            only_levels.push(of_category.iter().position(|n| *n == rows)? as u32);
        }
        let mut coordinates = Vec::with_capacity(plan.dims());
        for k in 0..plan.dims() {
            let at = cell * plan.dims() + k;
            let (sum, square) = (self[Sum::CellSum][at], self[Sum::CellSquare][at]);
            coordinates.push(match self.present(cell, k) {
                0 => None,
                present if present == rows => Some(only_value(sum, square, rows)?),
                _ => return None,
            });
        }
        Some((coordinates, only_levels))
    }

    /// Sum of a column over all cells.
    pub(crate) fn column_total(&self, sum: Sum, dims: usize, column: usize) -> i128 {
        self[sum].iter().skip(column).step_by(dims).sum()
    }

    /// Refuses `more` further rows if the sums could overflow.
    pub(crate) fn check_room(&self, more: i128) -> Result<()> {
        match self[Sum::Rows][0] + more {
            rows if rows > MAX_WEIGHT => Err(Error::TooManyRows { rows, most: MAX_WEIGHT }),
            _ => Ok(()),
        }
    }

    /// Checks every bound on sums of real rows: counts are non-negative and consistent, features
    /// are within their range, squares are possible for their sums, and cells add up to the total.
    pub(crate) fn check(&self, plan: &Plan) -> std::result::Result<(), BrokenRule> {
        let n = self[Sum::Rows][0];
        for spec in plan.measured().specs() {
            for (i, x) in self[spec.sum].iter().enumerate() {
                let weight = match spec.over {
                    Over::Cell(entries) => self[Sum::CellRows][i / entries],
                    Over::Present(entries) => self.present(i / entries, i % entries),
                    Over::Complete => self.complete(),
                    Over::All | Over::Themselves => n,
                };
                let (low, high) = spec.bounds(i, weight);
                if *x < low || *x > high {
                    return Err(out_of_bounds(spec.sum, i, *x < low));
                }
            }
        }
        if plan.private.is_some() && self[Sum::Skipped][0] != 0 {
            return Err(BrokenRule::new(
                "the number of skipped rows",
                "be above 0, although the plan is private",
            ));
        }
        if let Some(people) = plan.people()
            && n > 0
            && self[Sum::PersonRows][0] < i128::from(people.rows)
        {
            return Err(BrokenRule::new(
                "the most rows of a person",
                "fall below those of the plan",
            ));
        }
        if plan.collect.cells && self[Sum::CellRows].iter().sum::<i128>() != n {
            return Err(BrokenRule::new(
                "the rows of the cells",
                "not add up to the number of rows",
            ));
        }
        self.check_levels(plan)?;
        self.check_squares(plan)?;
        self.check_totals(plan)
    }

    /// Checks that every row has one level of each category, and that the number of complete rows
    /// fits the numbers of missing values.
    fn check_levels(&self, plan: &Plan) -> std::result::Result<(), BrokenRule> {
        if !plan.collect.cells {
            return Ok(());
        }
        let (levels, d) = (plan.recipe.levels(), plan.dims());
        for (cell, rows) in self[Sum::CellRows].iter().enumerate() {
            let mut counts = self[Sum::CellLevels].iter().skip(cell * levels);
            for category in plan.categories() {
                if counts.by_ref().take(category.len()).sum::<i128>() != *rows {
                    let sum = format!("the levels of '{}' in cell {cell}", category.name);
                    return Err(BrokenRule::new(sum, "not add up to its rows"));
                }
            }
        }
        let incomplete = self[Sum::Rows][0] - self.complete();
        let missing: i128 = self[Sum::CellAbsent].iter().sum();
        // An incomplete row has between one and `d` missing values.
        if plan.is_partial()
            && (incomplete > missing
                || incomplete * (d as i128) < missing
                || (0..d).any(|k| self.column_total(Sum::CellAbsent, d, k) > incomplete))
        {
            return Err(BrokenRule::new(
                "the number of complete rows",
                "not fit the numbers of missing values",
            ));
        }
        Ok(())
    }

    /// Checks that sums and squares are possible for the same rows: the Cauchy–Schwarz inequality
    /// for every cell and column, and for every pair of columns.
    fn check_squares(&self, plan: &Plan) -> std::result::Result<(), BrokenRule> {
        let d = plan.dims();
        let each_once = plan.weighting.is_none();
        if plan.collect.cells {
            for cell in (0..self[Sum::CellRows].len()).filter(|c| self[Sum::CellRows][*c] > 0) {
                for at in cell * d..(cell + 1) * d {
                    let n = self.present(cell, at - cell * d);
                    let (sum, square) = (self[Sum::CellSum][at], self[Sum::CellSquare][at]);
                    let one_row = each_once && n == 1;
                    if n > 0 && !squares_possible(square, sum, n) || one_row && square != sum * sum
                    {
                        return Err(BrokenRule::new(format!("cell_square[{at}]"), NO_SQUARES));
                    }
                }
            }
        }
        let n = self.complete();
        if plan.collect.moments && n > 0 {
            let squares: Vec<f64> = (0..d).map(|k| self.centred_product(k, k)).collect();
            for k in 0..d {
                let at = k * (k + 3) / 2;
                if !squares_possible(self[Sum::Outer][at], self[Sum::Sum][k], n) {
                    return Err(BrokenRule::new(format!("outer[{at}]"), NO_SQUARES));
                }
                for l in 0..k {
                    // Products of centred sums take up to 252 bits; doubles represent them with a
                    // relative error of 2⁻⁵⁰.
                    let limit = squares[k] * squares[l] * (1.0 + 1e-12);
                    if self.centred_product(k, l).powi(2) > limit {
                        let at = k * (k + 1) / 2 + l;
                        return Err(BrokenRule::new(format!("outer[{at}]"), NO_SQUARES));
                    }
                }
            }
        }
        Ok(())
    }

    /// `Σ (q_k − q̄_k)(q_l − q̄_l)` of two columns over the complete rows, with l ≤ k.
    fn centred_product(&self, k: usize, l: usize) -> f64 {
        let (sum, product) = (&self[Sum::Sum], self[Sum::Outer][k * (k + 1) / 2 + l]);
        centred_sum(product, sum[k], sum[l], self.complete())
    }

    /// Checks that the cells add up to the sums of all rows, because every row is in one cell.
    fn check_totals(&self, plan: &Plan) -> std::result::Result<(), BrokenRule> {
        // The cells of a private plan clip rows to a radius around their landmark; other sums do
        // not.
        let same_rows = self.complete() == self[Sum::Rows][0] && plan.private.is_none();
        if !(plan.collect.cells && plan.collect.moments && same_rows) {
            return Ok(());
        }
        let d = plan.dims();
        for k in 0..d {
            let squares = self[Sum::Outer][k * (k + 3) / 2];
            if self.column_total(Sum::CellSum, d, k) != self[Sum::Sum][k]
                || self.column_total(Sum::CellSquare, d, k) != squares
            {
                let sum = format!("the cells of column {k}");
                return Err(BrokenRule::new(sum, "not add up to the sums of all rows"));
            }
        }
        Ok(())
    }
}
