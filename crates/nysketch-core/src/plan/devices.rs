//! State of a plan in GPU memory, and the selection of usable GPUs.

use crate::error::Result;
use nysketch_cuda::{Device, Tables};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// Calls `make` for the GPU with this number, or for every usable GPU. If no GPU is usable, returns
/// the error of the first.
pub fn on_each<T>(
    ordinal: Option<usize>,
    mut make: impl FnMut(usize) -> Result<T>,
) -> Result<Vec<T>> {
    let Some(ordinal) = ordinal else {
        let (mut made, mut unusable) = (Vec::new(), None);
        // Without any GPU, opening the first one gives the reason.
        for ordinal in 0..Device::count().max(1) {
            match make(ordinal) {
                Ok(one) => made.push(one),
                Err(reason) if reason.is_of_device() => {
                    unusable.get_or_insert(reason);
                }
                Err(other) => return Err(other),
            }
        }
        return match unusable.filter(|_| made.is_empty()) {
            Some(reason) => Err(reason),
            None => Ok(made),
        };
    };
    Ok(vec![make(ordinal)?])
}

/// State shared by the passes of one plan on each GPU, created when the first pass starts there.
#[derive(Debug, Default)]
pub struct OnDevices {
    tables: Mutex<BTreeMap<usize, Arc<Tables>>>,
    /// Number of threads that have been assigned a GPU.
    given: AtomicUsize,
}

impl OnDevices {
    /// The shared state on the GPU with this number. While it is being created, other threads wait.
    pub fn of(
        &self,
        ordinal: usize,
        make: impl FnOnce() -> Result<Arc<Tables>>,
    ) -> Result<Arc<Tables>> {
        let mut tables = self.tables.lock().unwrap_or_else(|e| e.into_inner());
        if let Some(made) = tables.get(&ordinal) {
            return Ok(made.clone());
        }
        let made = make()?;
        tables.insert(ordinal, made.clone());
        Ok(made)
    }

    /// Assigns the next thread one of `usable`, in turn.
    pub fn next<T>(&self, mut usable: Vec<T>) -> T {
        let turn = self.given.fetch_add(1, Ordering::Relaxed);
        usable.swap_remove(turn % usable.len())
    }
}

/// A clone starts empty, because its landmarks may be changed.
impl Clone for OnDevices {
    fn clone(&self) -> Self {
        Self::default()
    }
}

/// Always equal, because the state follows from the plan.
impl PartialEq for OnDevices {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}
