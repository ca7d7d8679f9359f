//! A file in a store.

use crate::error::{Error, Result};
use crate::store::{Bytes, Store};
use std::path::PathBuf;
use std::sync::Arc;

/// A file that its reader opens as often as it needs.
#[derive(Debug, Clone)]
pub struct Stored {
    pub store: Arc<dyn Store>,
    pub path: PathBuf,
    /// For messages.
    pub name: Arc<str>,
}

impl Stored {
    pub fn open(&self) -> Result<Box<dyn Bytes>> {
        self.store.open(&self.path).map_err(|e| Error::read(&self.name, e))
    }
}
