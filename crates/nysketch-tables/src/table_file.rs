//! One file of a dataset, with its reader and the places of its columns.

use crate::columns::Places;
use crate::formats::Reader;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

/// One file of a dataset.
#[derive(Debug)]
pub(crate) struct TableFile {
    pub name: Arc<str>,
    pub path: PathBuf,
    pub reader: Reader,
    pub rows: Option<u64>,
    pub places: Arc<Places>,
    pub bytes: u64,
    pub modified: Option<SystemTime>,
}

impl TableFile {
    /// Bytes that so many rows take, as far as the number of rows is known.
    pub fn bytes_of(&self, rows: u64) -> u64 {
        let share = |total: u64| self.bytes as f64 * (rows as f64 / total.max(1) as f64);
        self.rows.map_or(0, |total| share(total) as u64)
    }
}
