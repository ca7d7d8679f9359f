//! At most so many rows of each person.
//!
//! A first reading finds, for each person, the hashes of the rows that count: the smallest. What counts of one person depends on
//! that person's rows alone, whatever their order and whoever else is there, so that adding or removing a person changes no
//! more than that person's rows. Rows with the same hash are equal, or else somebody has found a collision of SHA-256: it does
//! not matter which of them count.

use crate::error::Result;
use crate::plan::Plan;
use crate::plan::private::{People, Private};
use crate::rows::{Block, Progress, RowSource, pass};
use sha2::{Digest, Sha256};
use std::collections::{BinaryHeap, HashMap};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// Which rows of a source count.
#[derive(Debug)]
pub(super) struct Quota {
    plan: Arc<Plan>,
    /// What persons with more rows than count may have.
    limits: HashMap<Arc<str>, Limit>,
    left_out: AtomicU64,
    without: AtomicU64,
}

/// The rows of one person that count.
#[derive(Debug)]
struct Limit {
    /// The largest hash that counts.
    hash: u128,
    /// How many rows of that hash still count: equal rows, of which it does not matter which.
    ties: Mutex<u64>,
}

/// The smallest hashes of each person, at most so many, the largest on top.
type Smallest = HashMap<Arc<str>, BinaryHeap<u128>>;

impl Quota {
    /// Reads all rows of a source, as the plan sees it, once.
    pub fn new(
        plan: &Arc<Plan>,
        source: &dyn RowSource,
        threads: usize,
        progress: &dyn Progress,
    ) -> Result<Option<Self>> {
        let Some((private, people)) = people(plan) else { return Ok(None) };
        let most = people.rows as usize;
        progress.stage("counting rows of each person");
        let visit = |found: &mut Smallest, block: &Block| {
            block.check_keys()?;
            let mut hashes = Hashes::new(plan, private);
            for (i, key) in block.keys.iter().enumerate() {
                // One more than count tells that there are more.
                if let (Some(key), Some(hash)) = (key, hashes.of(block, i)) {
                    keep(found, key, [hash], most + 1);
                }
            }
            Ok(())
        };
        let mut all = Smallest::new();
        for found in pass(source, threads, progress, Smallest::new, visit)? {
            for (key, hashes) in found {
                keep(&mut all, &key, hashes, most + 1);
            }
        }
        progress.stage("sketching");
        all.retain(|_, hashes| hashes.len() > most);
        let limit = |(key, hashes): (Arc<str>, BinaryHeap<u128>)| {
            let hashes = hashes.into_sorted_vec();
            let hash = hashes[most - 1];
            let ties = hashes[..most].iter().filter(|h| **h == hash).count() as u64;
            (key, Limit { hash, ties: Mutex::new(ties) })
        };
        Ok(Some(Quota {
            plan: plan.clone(),
            limits: all.into_iter().map(limit).collect(),
            left_out: AtomicU64::new(0),
            without: AtomicU64::new(0),
        }))
    }

    /// The rows of a block that count. Each row of the source must be asked for once.
    pub fn rows(&self, block: &Block) -> Result<Vec<Range<usize>>> {
        block.check_keys()?;
        let (private, _) = people(&self.plan).expect("a quota is of a plan that protects people");
        let mut hashes = Hashes::new(&self.plan, private);
        let mut rows: Vec<Range<usize>> = Vec::new();
        for (i, key) in block.keys.iter().enumerate() {
            let Some(key) = key else {
                self.without.fetch_add(1, Ordering::Relaxed);
                continue;
            };
            // Invalid rows are no matter of persons.
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

    /// Rows that did not count since their person has more, and rows that say no person.
    pub fn uncounted(&self) -> (u64, u64) {
        (self.left_out.load(Ordering::Relaxed), self.without.load(Ordering::Relaxed))
    }
}

impl Limit {
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

/// Who a plan protects, where that is not a single row.
fn people(plan: &Plan) -> Option<(&Private, &People)> {
    plan.private.as_ref().zip(plan.people())
}

/// Adds hashes to those of a person, and keeps the smallest.
fn keep(found: &mut Smallest, key: &Arc<str>, hashes: impl IntoIterator<Item = u128>, most: usize) {
    let kept = match found.get_mut(key) {
        Some(kept) => kept,
        None => found.entry(key.clone()).or_default(),
    };
    for hash in hashes {
        if kept.len() < most {
            kept.push(hash);
        } else if let Some(mut largest) = kept.peek_mut()
            && hash < *largest
        {
            *largest = hash;
        }
    }
}

/// Hashes of rows as they count: within the bounds.
struct Hashes<'a> {
    plan: &'a Plan,
    private: &'a Private,
    bounded: Vec<f64>,
}

impl<'a> Hashes<'a> {
    fn new(plan: &'a Plan, private: &'a Private) -> Self {
        Hashes { plan, private, bounded: Vec::new() }
    }

    /// The hash of a row of a block; `None` where it is invalid. As FORMAT.md defines it: the first half of the SHA-256 of its
    /// numbers, as a big-endian integer.
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
