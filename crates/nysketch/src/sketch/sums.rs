//! The sums of a sketch: named arrays of 128-bit integers.
//!
//! | array | shape | what is summed | unit |
//! |---|---|---|---|
//! | `rows` | 1 | weights of the rows | 1 |
//! | `skipped` | 1 | rows left out as invalid | 1 |
//! | `features` | bandwidths × m | κ(x̃_j, x), or cosines then sines | 2⁻²³ |
//! | `coverage` | bandwidths | κ(x, nearest landmark)² | 2⁻²³ |
//! | `cell_rows` | m | weights of the rows nearest to x̃_j | 1 |
//! | `cell_sum` | m × d | their coordinates | 2^e_k |
//! | `cell_square` | m × d | their squared coordinates | 2^2e_k |
//! | `sum` | d | coordinates of all rows | 2^e_k |
//! | `outer` | d(d+1)/2 | products of coordinates k ≥ l, row by row | 2^(e_k+e_l) |
//!
//! Arrays that the plan does not collect are empty.

use crate::error::{Error, Result};
use crate::fixed::{COORDINATE_LIMIT, FEATURE_ONE, MAX_WEIGHT, centred_sum, coordinate_value};
use crate::plan::{Features, Plan};

/// See the table of the module.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs, reason = "each field is a row of the module's table")]
pub struct Sums {
    pub rows: Vec<i128>,
    pub skipped: Vec<i128>,
    pub features: Vec<i128>,
    pub coverage: Vec<i128>,
    pub cell_rows: Vec<i128>,
    pub cell_sum: Vec<i128>,
    pub cell_square: Vec<i128>,
    pub sum: Vec<i128>,
    pub outer: Vec<i128>,
}

/// A rule that sums break: no data has such sums.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrokenRule {
    /// Which sum.
    pub sum: String,
    /// What is wrong with it.
    pub how: String,
}

/// Names and shapes of the arrays that a plan collects.
pub fn shapes(plan: &Plan) -> Vec<(&'static str, Vec<usize>)> {
    let (d, m, rungs) = (plan.dims(), plan.features.points().len(), plan.bandwidths.len());
    let mut shapes = vec![("rows", vec![1]), ("skipped", vec![1])];
    if plan.collect.kernel {
        shapes.push(("features", vec![rungs, plan.features_per_bandwidth()]));
        if plan.landmarks().is_some() {
            shapes.push(("coverage", vec![rungs]));
        }
    }
    if plan.collect.cells {
        shapes.push(("cell_rows", vec![m]));
        shapes.push(("cell_sum", vec![m, d]));
        shapes.push(("cell_square", vec![m, d]));
    }
    if plan.collect.moments {
        shapes.push(("sum", vec![d]));
        shapes.push(("outer", vec![d * (d + 1) / 2]));
    }
    shapes
}

impl Sums {
    /// All sums zero.
    pub fn zero(plan: &Plan) -> Self {
        let shapes = shapes(plan);
        let array = |name: &str| {
            let shape = shapes.iter().find(|(n, _)| *n == name);
            vec![0; shape.map_or(0, |(_, s)| s.iter().product())]
        };
        Sums {
            rows: array("rows"),
            skipped: array("skipped"),
            features: array("features"),
            coverage: array("coverage"),
            cell_rows: array("cell_rows"),
            cell_sum: array("cell_sum"),
            cell_square: array("cell_square"),
            sum: array("sum"),
            outer: array("outer"),
        }
    }

    /// The array of a name.
    pub fn array(&self, name: &str) -> &[i128] {
        self.arrays().into_iter().find(|(n, _)| *n == name).map_or(&[], |(_, a)| a)
    }

    /// Every array with its name.
    pub fn arrays(&self) -> [(&'static str, &[i128]); 9] {
        [
            ("rows", &self.rows),
            ("skipped", &self.skipped),
            ("features", &self.features),
            ("coverage", &self.coverage),
            ("cell_rows", &self.cell_rows),
            ("cell_sum", &self.cell_sum),
            ("cell_square", &self.cell_square),
            ("sum", &self.sum),
            ("outer", &self.outer),
        ]
    }

    /// Every array with its name, to be filled.
    pub fn arrays_mut(&mut self) -> [(&'static str, &mut Vec<i128>); 9] {
        [
            ("rows", &mut self.rows),
            ("skipped", &mut self.skipped),
            ("features", &mut self.features),
            ("coverage", &mut self.coverage),
            ("cell_rows", &mut self.cell_rows),
            ("cell_sum", &mut self.cell_sum),
            ("cell_square", &mut self.cell_square),
            ("sum", &mut self.sum),
            ("outer", &mut self.outer),
        ]
    }

    /// Applies `op` entry by entry. Valid sums are at most 2¹²⁶ in magnitude, so two of them add up
    /// without wrapping to anything that [`check`](Self::check) accepts.
    pub(crate) fn combine(&mut self, other: &Sums, op: impl Fn(i128, i128) -> i128) {
        for ((_, a), (_, b)) in self.arrays_mut().into_iter().zip(other.arrays()) {
            for (x, y) in a.iter_mut().zip(b) {
                *x = op(*x, *y);
            }
        }
    }

    /// Mean of a cell that has rows, in the plan's coordinates.
    pub(crate) fn cell_mean(&self, cell: usize, exponent: &[i32]) -> Vec<f64> {
        let (d, rows) = (exponent.len(), self.cell_rows[cell] as f64);
        let sums = self.cell_sum[cell * d..(cell + 1) * d].iter().zip(exponent);
        sums.map(|(sum, e)| coordinate_value(*sum, *e) / rows).collect()
    }

    /// `Σ (q − q̄)²` of a column over the rows of a cell, in units of the column squared.
    pub(crate) fn cell_spread(&self, cell: usize, column: usize) -> f64 {
        let at = cell * (self.cell_sum.len() / self.cell_rows.len()) + column;
        let sum = self.cell_sum[at];
        centred_sum(self.cell_square[at], sum, sum, self.cell_rows[cell])
    }

    /// Refuses more rows than the sums are guaranteed for.
    pub fn check_rows(&self) -> Result<()> {
        match self.rows[0] {
            rows if rows > MAX_WEIGHT => Err(Error::TooManyRows { rows }),
            _ => Ok(()),
        }
    }

    /// Checks every bound that sums of real rows keep: counts are not negative and add up, features
    /// lie in their range, squares are not negative.
    pub fn check(&self, plan: &Plan) -> std::result::Result<(), BrokenRule> {
        let broken = |sum: String, how: &str| Err(BrokenRule { sum, how: how.to_string() });
        let n = self.rows[0];
        if n < 0 {
            return broken("the number of rows".into(), "become negative");
        }
        if n > MAX_WEIGHT {
            return broken("the number of rows".into(), "exceed 2^38");
        }
        if self.skipped[0] < 0 {
            return broken("the number of skipped rows".into(), "become negative");
        }
        if self.skipped[0] > i128::from(u64::MAX) {
            return broken("the number of skipped rows".into(), "exceed 2^64");
        }
        let one = i128::from(FEATURE_ONE);
        let signed = matches!(plan.features, Features::Fourier(_));
        let q = i128::from(COORDINATE_LIMIT);
        // Lower and upper bound of each array's entries; counts of a cell bound its moments.
        let cell = |i: usize| self.cell_rows[i / plan.dims()];
        let bounds = |name: &str, i: usize| match name {
            "features" if signed => (-n * one, n * one),
            "features" | "coverage" => (0, n * one),
            "cell_rows" => (0, n),
            "cell_sum" => (-cell(i) * q, cell(i) * q),
            "cell_square" => (0, cell(i) * q * q),
            "sum" => (-n * q, n * q),
            "outer" if is_diagonal(i) => (0, n * q * q),
            "outer" => (-n * q * q, n * q * q),
            _ => (0, i128::MAX),
        };
        for (name, array) in self.arrays() {
            for (i, x) in array.iter().enumerate() {
                let (low, high) = bounds(name, i);
                if *x < low {
                    return broken(format!("{name}[{i}]"), "fall below what its rows can give");
                }
                if *x > high {
                    return broken(format!("{name}[{i}]"), "exceed what its rows can give");
                }
            }
        }
        if plan.collect.cells && self.cell_rows.iter().sum::<i128>() != n {
            return broken("the rows of the cells".into(), "not add up to the number of rows");
        }
        Ok(())
    }
}

/// Whether entry i of a packed lower triangle is on the diagonal: i + 1 is a triangular number.
fn is_diagonal(i: usize) -> bool {
    let root = (8 * (i + 1) + 1).isqrt();
    root * root == 8 * (i + 1) + 1
}

#[cfg(test)]
mod tests {
    #[test]
    fn diagonal_entries_of_a_packed_triangle() {
        let mut at = 0;
        for k in 0..50 {
            for l in 0..=k {
                assert_eq!(super::is_diagonal(at), k == l, "{k} {l}");
                at += 1;
            }
        }
    }
}
