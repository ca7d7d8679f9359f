//! Sampling of rows from a stream, independent of the number of threads.
//!
//! Each row gets the priority `−ln(u)/w`, where `u` is a hash of the seed and of the row's position
//! in the input, and `w` is its weight. The rows with the smallest priorities form the sample
//! (Efraimidis and Spirakis 2006). With equal weights this is uniform sampling without replacement;
//! with `w = d²` it is the D² sampling of k-means‖. The sample does not depend on the order in
//! which rows arrive, so the pass can run on every core.

use crate::error::Result;
use crate::rows::wire::{WireReader, put_number, put_whole};
use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering as Memory};

/// A well-mixed 64-bit hash of a 64-bit number (the finaliser of SplitMix64).
pub fn mix(x: u64) -> u64 {
    let mut z = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A pseudo-random number in (0, 1] for each row.
fn uniform(seed: u64, position: u64) -> f64 {
    let hash = mix(mix(mix(seed)) ^ (position + 1));
    ((hash >> 11) + 1) as f64 * 2.0f64.powi(-53)
}

/// The rows with the smallest priorities so far, shared by all threads of a pass.
#[derive(Debug)]
pub struct Reservoir {
    seed: u64,
    capacity: usize,
    dims: usize,
    /// Bits of the largest priority that is still accepted. Priorities are not negative, so their
    /// bits have the same order.
    threshold: AtomicU64,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    heap: BinaryHeap<Entry>,
    values: Vec<f64>,
}

#[derive(Debug, PartialEq)]
struct Entry {
    priority: f64,
    position: u64,
    slot: usize,
}

impl Eq for Entry {}
impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Entry {
    fn cmp(&self, other: &Self) -> Ordering {
        self.priority.total_cmp(&other.priority).then(self.position.cmp(&other.position))
    }
}

impl Reservoir {
    /// A reservoir of at most `capacity` rows of `dims` values, the last of which is the extra one.
    pub fn new(capacity: usize, dims: usize, seed: u64) -> Self {
        Reservoir {
            seed,
            capacity,
            dims,
            threshold: AtomicU64::new(f64::MAX.to_bits()),
            kept: Mutex::default(),
        }
    }

    /// Offers a row with an extra number. Rows of weight zero are never kept.
    pub fn offer(&self, position: u64, weight: f64, row: &[f64], extra: f64) {
        let u = uniform(self.seed, position);
        let threshold = self.threshold.load(Memory::Relaxed);
        // −ln(u) ≥ 1 − u, so most rows need no logarithm. The margin covers rounding.
        if (1.0 - u) * (1.0 - 1e-9) > f64::from_bits(threshold) * weight {
            return;
        }
        // `0.0 −` avoids −0, whose bits would compare as the largest. A weight of zero gives
        // infinity.
        let priority = (0.0 - u.ln()) / weight;
        if priority.to_bits() > threshold {
            return;
        }
        self.keep(priority, position, row.iter().chain([&extra]));
    }

    /// Keeps a row, with its extra number at the end, if its priority is among the smallest.
    fn keep<'a>(&self, priority: f64, position: u64, row: impl IntoIterator<Item = &'a f64>) {
        let mut kept = self.kept.lock().unwrap_or_else(|e| e.into_inner());
        let Kept { heap, values } = &mut *kept;
        if heap.len() < self.capacity {
            heap.push(Entry { priority, position, slot: heap.len() });
            values.extend(row);
        } else if let Some(mut worst) = heap.peek_mut() {
            let slot = worst.slot;
            let entry = Entry { priority, position, slot };
            if entry < *worst {
                *worst = entry;
                let kept = &mut values[slot * self.dims..(slot + 1) * self.dims];
                kept.iter_mut().zip(row).for_each(|(kept, x)| *kept = *x);
            }
        }
        if heap.len() == self.capacity
            && let Some(worst) = heap.peek()
        {
            self.threshold.store(worst.priority.to_bits(), Memory::Relaxed);
        }
    }

    /// The largest priority that was kept, or infinity if every row was kept. A row of weight w is
    /// kept with probability `1 − exp(−w · threshold)`.
    pub fn threshold(&self) -> f64 {
        let kept = self.kept.lock().unwrap_or_else(|e| e.into_inner());
        match kept.heap.peek() {
            Some(worst) if kept.heap.len() == self.capacity => worst.priority,
            _ => f64::INFINITY,
        }
    }

    /// Merges another reservoir of the same kind, as if its rows had been offered to this one.
    pub fn merge(&self, other: Reservoir) {
        self.merge_with(other, |_| {});
    }

    /// Merges another reservoir after applying `change` to each of its rows.
    pub(crate) fn merge_with(&self, other: Reservoir, change: impl Fn(&mut [f64])) {
        let mut kept = other.kept.into_inner().unwrap_or_else(|e| e.into_inner());
        for e in kept.heap.into_vec() {
            let row = &mut kept.values[e.slot * self.dims..(e.slot + 1) * self.dims];
            change(row);
            self.keep(e.priority, e.position, &*row);
        }
    }

    /// Serialises the reservoir for another machine.
    pub fn to_bytes(&self) -> Vec<u8> {
        let kept = self.kept.lock().unwrap_or_else(|e| e.into_inner());
        let mut out = Vec::with_capacity(8 * (4 + kept.values.len() + 2 * kept.heap.len()));
        for word in [self.seed, self.capacity as u64, self.dims as u64, kept.heap.len() as u64] {
            put_whole(&mut out, word);
        }
        for e in &kept.heap {
            put_number(&mut out, e.priority);
            put_whole(&mut out, e.position);
            let row = &kept.values[e.slot * self.dims..(e.slot + 1) * self.dims];
            row.iter().for_each(|x| put_number(&mut out, *x));
        }
        out
    }

    /// Restores a reservoir from another machine.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        Self::read(&mut WireReader::new(bytes))
    }

    pub(crate) fn read(words: &mut WireReader<'_>) -> Result<Self> {
        let (seed, capacity) = (words.whole()?, words.whole()?);
        let dims = words.columns()?;
        let reservoir = Reservoir::new(usize::try_from(capacity).unwrap_or(usize::MAX), dims, seed);
        let mut row = vec![0.0; dims];
        for _ in 0..words.count(dims + 2)? {
            let (priority, position) = (words.number()?, words.whole()?);
            for x in &mut row {
                *x = words.number()?;
            }
            reservoir.keep(priority, position, &row);
        }
        Ok(reservoir)
    }

    /// Number of rows kept.
    pub(crate) fn len(&self) -> usize {
        self.kept.lock().unwrap_or_else(|e| e.into_inner()).heap.len()
    }

    /// Passes the kept rows to `take`, in the order of the input.
    pub(crate) fn each_row(self, mut take: impl FnMut(&[f64])) {
        let kept = self.kept.into_inner().unwrap_or_else(|e| e.into_inner());
        let mut entries = kept.heap.into_vec();
        entries.sort_by_key(|e| e.position);
        entries
            .iter()
            .for_each(|e| take(&kept.values[e.slot * self.dims..(e.slot + 1) * self.dims]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draw(
        order: impl Iterator<Item = u64>,
        capacity: usize,
        seed: u64,
        weight: impl Fn(u64) -> f64,
    ) -> Vec<f64> {
        let reservoir = Reservoir::new(capacity, 2, seed);
        for row in order {
            reservoir.offer(row, weight(row), &[row as f64], 0.0);
        }
        let mut rows = Vec::new();
        reservoir.each_row(|row| rows.push(row[0]));
        rows
    }

    #[test]
    fn order_of_arrival_does_not_matter() {
        let forward = draw(1..=1000, 50, 7, |_| 1.0);
        assert_eq!(forward, draw((1..=1000).rev(), 50, 7, |_| 1.0));
        assert_eq!(forward.len(), 50);
        assert_ne!(forward, draw(1..=1000, 50, 8, |_| 1.0));
    }

    /// Each of 100 rows is kept with probability 0.2. Over 2,000 seeds, the mean is 400 and the
    /// standard deviation 17.9; six standard deviations make a false alarm rarer than 1e-6.
    #[test]
    fn sampling_is_uniform() {
        let mut hits = [0u32; 100];
        for seed in 0..2000 {
            for x in draw(1..=100, 20, seed, |_| 1.0) {
                hits[x as usize - 1] += 1;
            }
        }
        assert!(hits.iter().all(|h| h.abs_diff(400) < 108), "{hits:?}");
    }

    #[test]
    fn weights_steer_and_zero_excludes() {
        let mut heavy = 0;
        for seed in 0..1000 {
            let kept = draw(1..=10, 1, seed, |r| {
                if r == 3 {
                    9.0
                } else if r == 4 {
                    0.0
                } else {
                    1.0
                }
            });
            heavy += u32::from(kept == [3.0]);
            assert_ne!(kept, [4.0]);
        }
        // Probability 9/17: mean 529, standard deviation 15.8.
        assert!(heavy.abs_diff(529) < 95, "{heavy}");
    }
}
