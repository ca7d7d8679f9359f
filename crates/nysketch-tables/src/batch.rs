//! Rows on their way out of a reader.

use arrow_array::ArrayRef;
use nysketch_core::Block;

/// Some consecutive rows, with the columns that are carried along.
#[derive(Debug)]
#[non_exhaustive]
pub struct Batch {
    /// The numbers, weights and keys.
    pub block: Block,
    /// The columns of [`Extras::keep`](crate::Extras::keep), in the order of [`Dataset::kept_fields`](crate::Dataset::kept_fields).
    pub kept: Vec<ArrayRef>,
}

impl Batch {
    pub(crate) fn new(block: Block, kept: Vec<ArrayRef>) -> Self {
        Batch { block, kept }
    }
}
