//! Rows in the form that a model reads.

use nysketch_core::rows::Block;
use std::ops::Range;

/// Rows in a model's columns, row-major, with the levels of its categories.
///
/// Rows without categories can be given as a slice of numbers. Rows of a table come from the blocks
/// of a [`View`](nysketch_core::recipe::View) of the table with the model's preprocessing.
#[derive(Debug, Clone, Copy, Default)]
pub struct ModelRows<'a> {
    /// Numbers, NaN for a missing value.
    pub values: &'a [f64],
    /// Levels of the categories.
    pub codes: &'a [u32],
}

impl<'a> From<&'a [f64]> for ModelRows<'a> {
    fn from(values: &'a [f64]) -> Self {
        ModelRows { values, codes: &[] }
    }
}

impl<'a> From<&'a Vec<f64>> for ModelRows<'a> {
    fn from(values: &'a Vec<f64>) -> Self {
        ModelRows::from(&values[..])
    }
}

impl<'a, const N: usize> From<&'a [f64; N]> for ModelRows<'a> {
    fn from(values: &'a [f64; N]) -> Self {
        ModelRows::from(&values[..])
    }
}

impl<'a> From<&'a Block> for ModelRows<'a> {
    fn from(block: &'a Block) -> Self {
        ModelRows { values: &block.values, codes: &block.codes }
    }
}

impl<'a> ModelRows<'a> {
    /// Returns the number of rows, given the number of numeric columns.
    pub fn len(&self, dims: usize) -> usize {
        self.values.len() / dims.max(1)
    }

    /// Returns a range of the rows.
    pub fn some(&self, rows: Range<usize>, dims: usize) -> ModelRows<'a> {
        let categories = self.codes.len() / self.len(dims).max(1);
        ModelRows {
            values: &self.values[rows.start * dims..rows.end * dims],
            codes: &self.codes[rows.start * categories..rows.end * categories],
        }
    }
}
