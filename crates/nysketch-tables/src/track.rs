//! What a reader of a format gives: rows one after the other, decoded later.

use crate::batch::Batch;

/// Rows that are read one after the other.
pub trait Track: Send {
    /// The next rows, or `None` at the end.
    fn read(&mut self) -> nysketch_core::Result<Option<Box<dyn Raw>>>;
}

/// Rows as they were read.
pub trait Raw: Send {
    /// How many.
    fn rows(&self) -> u64;
    /// Numbers and text; the first row has this number in its file.
    fn decode(self: Box<Self>, first_row: u64) -> nysketch_core::Result<Batch>;
}
