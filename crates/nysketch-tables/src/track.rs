//! Sequences of rows that a reader returns: read in order, decoded later.

use crate::batch::Batch;

/// A sequence of rows that must be read in order.
pub trait Track: Send {
    /// Reads the next rows; `None` at the end.
    fn read(&mut self) -> nysketch_core::Result<Option<Box<dyn Raw>>>;
}

/// Rows that were read but not decoded.
pub trait Raw: Send {
    /// Number of rows.
    fn rows(&self) -> u64;
    /// Decodes numbers and text. `first_row` is the number of the first row in its file.
    fn decode(self: Box<Self>, first_row: u64) -> nysketch_core::Result<Batch>;
}
