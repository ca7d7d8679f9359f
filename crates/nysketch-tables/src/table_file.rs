//! One file of a dataset, with its reader and the places of its columns.

use crate::error::{Error, Result};
use crate::formats::{Reader, Stored};
use crate::places::Places;
use crate::store::Metadata;
use std::sync::Arc;

#[derive(Debug)]
pub(crate) struct TableFile {
    pub file: Stored,
    pub reader: Reader,
    pub rows: Option<u64>,
    pub places: Arc<Places>,
    /// Its metadata when it was opened; `None` for stdin.
    pub metadata: Option<Metadata>,
}

impl TableFile {
    /// Returns the approximate size of this number of rows in bytes, or 0 if the number of rows is
    /// unknown.
    pub fn bytes_of(&self, rows: u64) -> u64 {
        let bytes = self.metadata.map_or(0, |m| m.bytes);
        let share = |total: u64| bytes as f64 * (rows as f64 / total.max(1) as f64);
        self.rows.map_or(0, |total| share(total) as u64)
    }

    /// Refuses a file that has changed since it was opened: every reading must see the same rows.
    pub fn check_unchanged(&self) -> Result<()> {
        let Some(before) = self.metadata else { return Ok(()) };
        match self.file.store.metadata(&self.file.path) {
            Ok(now) if now == before => Ok(()),
            Ok(_) => Err(Error::damaged(
                &self.file.name,
                "was changed while it was read; wait until it is complete, and start again",
            )),
            Err(error) => Err(Error::read(&self.file.name, error)),
        }
    }
}
