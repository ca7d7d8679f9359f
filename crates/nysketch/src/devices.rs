//! What a plan has in the memory of GPUs.

use nysketch_cuda::Tables;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

/// What the passes of one plan share on each GPU, made when the first of them starts there.
#[derive(Debug, Default)]
pub struct OnDevices {
    tables: Mutex<HashMap<usize, Arc<Tables>>>,
    /// Threads that have been given a GPU so far.
    given: Mutex<usize>,
}

impl OnDevices {
    /// What is shared on the GPU of this number. Where it has to be made, other threads wait for it.
    pub fn of<E>(
        &self,
        ordinal: usize,
        make: impl FnOnce() -> Result<Arc<Tables>, E>,
    ) -> Result<Arc<Tables>, E> {
        let mut tables = self.tables.lock().unwrap_or_else(|e| e.into_inner());
        if let Some(made) = tables.get(&ordinal) {
            return Ok(made.clone());
        }
        let made = make()?;
        tables.insert(ordinal, made.clone());
        Ok(made)
    }

    /// The GPU of the next thread, of so many: each in turn.
    pub fn next(&self, count: usize) -> usize {
        let mut given = self.given.lock().unwrap_or_else(|e| e.into_inner());
        *given += 1;
        (*given - 1) % count.max(1)
    }
}

/// A copy may get other landmarks.
impl Clone for OnDevices {
    fn clone(&self) -> Self {
        Self::default()
    }
}

/// It follows from the plan.
impl PartialEq for OnDevices {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}
