//! Limits the number of rows per person.
//!
//! A first reading finds, for each person, the smallest hashes of their rows. Only the rows with
//! these hashes are sketched. The selection for one person depends on that person's rows alone, in
//! any order and with any other people, so adding or removing a person changes only that person's
//! contribution. Rows with the same hash are equal (unless SHA-256 has a collision), so it does not
//! matter which ones are selected.

use crate::error::Result;
use crate::plan::Plan;
use crate::plan::private::{People, Private};
use crate::rows::{Block, Progress, RowSource, pass};
use sha2::{Digest, Sha256};
use std::collections::{BinaryHeap, HashMap};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// The selected rows of a source.
#[derive(Debug)]
pub(super) struct Quota {
    plan: Arc<Plan>,
    /// Limits of the people with more rows than allowed.
    limits: HashMap<Arc<str>, Limit>,
    left_out: AtomicU64,
    without_person: AtomicU64,
}

/// The selected rows of one person.
#[derive(Debug)]
struct Limit {
    /// The largest selected hash.
    hash: u128,
    /// Number of rows with that hash that may still be selected.
    ties: Mutex<u64>,
}

/// The smallest hashes of each person, up to a fixed number, with the largest on top.
type Smallest = HashMap<Arc<str>, BinaryHeap<u128>>;

impl Quota {
    /// Reads all rows of a source, in the columns of the plan, once. `None` if the plan does not
    /// protect people.
    pub fn new(
        plan: &Arc<Plan>,
        source: &dyn RowSource,
        threads: usize,
        progress: &dyn Progress,
    ) -> Result<Option<Self>> {
        let Some((private, people)) = people(plan) else { return Ok(None) };
        let max_rows = people.rows as usize;
        progress.stage("counting rows of each person");
        // One more hash than allowed shows that the person has more rows.
        let max_hashes = max_rows + 1;
        let threads = pass(source, threads, progress, Smallest::new, |found, block| {
            block.check_keys()?;
            let mut hashes = Hashes::new(plan, private);
            for (i, key) in block.keys.iter().enumerate() {
                if let (Some(key), Some(hash)) = (key, hashes.of(block, i)) {
                    keep(found, key, [hash], max_hashes);
                }
            }
            Ok(())
        })?;
        let mut all = Smallest::new();
        for found in threads {
            for (key, hashes) in found {
                keep(&mut all, &key, hashes, max_hashes);
            }
        }
        progress.stage("sketching");
        all.retain(|_, hashes| hashes.len() > max_rows);
        let limits = all.into_iter();
        Ok(Some(Quota {
            plan: plan.clone(),
            limits: limits.map(|(key, hashes)| (key, Limit::new(hashes, max_rows))).collect(),
            left_out: AtomicU64::new(0),
            without_person: AtomicU64::new(0),
        }))
    }

    /// The selected rows of a block. Must be called exactly once for each row of the source.
    pub fn rows(&self, block: &Block) -> Result<Vec<Range<usize>>> {
        block.check_keys()?;
        let (private, _) = people(&self.plan).expect("a quota is of a plan that protects people");
        let mut hashes = Hashes::new(&self.plan, private);
        let mut rows: Vec<Range<usize>> = Vec::new();
        for (i, key) in block.keys.iter().enumerate() {
            let Some(key) = key else {
                self.without_person.fetch_add(1, Ordering::Relaxed);
                continue;
            };
            // Invalid rows pass, because the accumulator skips them.
            let limit = self.limits.get(key);
            let limited = limit.and_then(|limit| Some(limit.takes(hashes.of(block, i)?)));
            let counts = limited.unwrap_or(true);
            match rows.last_mut() {
                _ if !counts => drop(self.left_out.fetch_add(1, Ordering::Relaxed)),
                Some(last) if last.end == i => last.end += 1,
                _ => rows.push(i..i + 1),
            }
        }
        Ok(rows)
    }

    /// Number of rows dropped because their person has more rows than allowed, and number of rows
    /// without a person.
    pub fn uncounted(&self) -> (u64, u64) {
        (self.left_out.load(Ordering::Relaxed), self.without_person.load(Ordering::Relaxed))
    }
}

impl Limit {
    /// The limit of a person with more than `max_rows` rows.
    fn new(hashes: BinaryHeap<u128>, max_rows: usize) -> Self {
        let hashes = hashes.into_sorted_vec();
        let hash = hashes[max_rows - 1];
        let ties = hashes[..max_rows].iter().filter(|h| **h == hash).count() as u64;
        Limit { hash, ties: Mutex::new(ties) }
    }

    /// Whether a row with this hash is selected.
    fn takes(&self, hash: u128) -> bool {
        if hash != self.hash {
            return hash < self.hash;
        }
        let mut ties = self.ties.lock().unwrap_or_else(|e| e.into_inner());
        let left = *ties > 0;
        *ties -= u64::from(left);
        left
    }
}

/// The people that a plan protects; `None` if it protects single rows.
fn people(plan: &Plan) -> Option<(&Private, &People)> {
    plan.private.as_ref().zip(plan.people())
}

/// Adds hashes to those of a person and keeps the smallest.
fn keep(
    found: &mut Smallest,
    key: &Arc<str>,
    hashes: impl IntoIterator<Item = u128>,
    max_hashes: usize,
) {
    let kept = match found.get_mut(key) {
        Some(kept) => kept,
        None => found.entry(key.clone()).or_default(),
    };
    for hash in hashes {
        if kept.len() < max_hashes {
            kept.push(hash);
        } else if let Some(mut largest) = kept.peek_mut()
            && hash < *largest
        {
            *largest = hash;
        }
    }
}

/// Computes hashes of rows after clipping them to the bounds.
struct Hashes<'a> {
    plan: &'a Plan,
    private: &'a Private,
    bounded: Vec<f64>,
}

impl<'a> Hashes<'a> {
    fn new(plan: &'a Plan, private: &'a Private) -> Self {
        Hashes { plan, private, bounded: Vec::new() }
    }

    /// The hash of a row of a block, or `None` if the row is invalid. As FORMAT.md defines it: the
    /// first half of the SHA-256 of its numbers, as a big-endian integer.
    fn of(&mut self, block: &Block, row: usize) -> Option<u128> {
        let d = self.plan.dims();
        let values = &block.values[row * d..(row + 1) * d];
        self.private.bound_rows(values, &mut self.bounded);
        if self.plan.frame.all_invalid(&self.bounded).next().is_some() {
            return None;
        }
        let mut hash = Sha256::new();
        // Both zeros are the same number.
        self.bounded.iter().for_each(|x| hash.update((x + 0.0).to_le_bytes()));
        let hash: [u8; 32] = hash.finalize().into();
        Some(u128::from_be_bytes(*hash.first_chunk().expect("32 bytes")))
    }
}
