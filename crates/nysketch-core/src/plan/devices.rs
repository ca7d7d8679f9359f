//! What a plan has in the memory of GPUs, and which of them can be used.

use crate::error::Result;
use nysketch_cuda::{Device, Tables};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// Makes something on the GPU of this number, or on every GPU that can be used; where none can, why the first cannot.
pub fn on_each<T>(
    ordinal: Option<usize>,
    mut make: impl FnMut(usize) -> Result<T>,
) -> Result<Vec<T>> {
    let Some(ordinal) = ordinal else {
        let (mut made, mut unusable) = (Vec::new(), None);
        // Without any GPU, opening the first one says why.
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

/// What the passes of one plan share on each GPU, made when the first of them starts there.
#[derive(Debug, Default)]
pub struct OnDevices {
    tables: Mutex<BTreeMap<usize, Arc<Tables>>>,
    /// Threads that have been given a GPU so far.
    given: AtomicUsize,
}

impl OnDevices {
    /// What is shared on the GPU of this number. Where it has to be made, other threads wait for it.
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

    /// What the next thread works with, of these: each in turn.
    pub fn next<T>(&self, mut usable: Vec<T>) -> T {
        let turn = self.given.fetch_add(1, Ordering::Relaxed);
        usable.swap_remove(turn % usable.len())
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
