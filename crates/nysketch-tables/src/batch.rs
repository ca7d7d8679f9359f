//! Rows that a reader returns.

use arrow_array::ArrayRef;
use nysketch_core::Block;

/// Consecutive rows, with the columns that are kept for the output.
#[derive(Debug)]
#[non_exhaustive]
pub struct Batch {
    /// The numbers, weights and keys.
    pub block: Block,
    /// The columns of [`Extras::keep`](crate::Extras::keep), in the order of
    /// [`Dataset::kept_fields`](crate::Dataset::kept_fields).
    pub kept: Vec<ArrayRef>,
}

impl Batch {
    pub(crate) fn new(block: Block, kept: Vec<ArrayRef>) -> Self {
        Batch { block, kept }
    }
}
