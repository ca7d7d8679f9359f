//! A file in a store.

use crate::error::{Error, Result};
use crate::store::{Bytes, Store};
use std::path::PathBuf;
use std::sync::Arc;

/// A file that its reader can open any number of times.
#[derive(Debug, Clone)]
pub struct Stored {
    pub store: Arc<dyn Store>,
    pub path: PathBuf,
    /// The name used in messages.
    pub name: Arc<str>,
}

impl Stored {
    pub fn open(&self) -> Result<Box<dyn Bytes>> {
        self.store.open(&self.path).map_err(|e| Error::read(&self.name, e))
    }
}
