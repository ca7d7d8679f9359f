//! Statistics of columns, computed in chunks of rows that are combined in a tree.

use crate::planning::survey::Column;
use crate::rows::Losses;
use crate::rows::weight::WeightRange;
use std::collections::BTreeMap;

/// Rows with the same position / `CHUNK` are summarised together.
pub const CHUNK: u64 = 64;

/// Statistics of a block.
pub struct Piece {
    /// Position of its first row.
    first: u64,
    rows: u64,
    pub losses: Losses,
    weights: WeightRange,
    dims: usize,
    chunks: Vec<Chunk>,
    /// Rows of the current chunk, each followed by its weight.
    open: Vec<f64>,
    /// Position at which the current chunk begins in the block.
    start: u64,
}

enum Chunk {
    /// The statistics of all rows of the chunk with this number.
    Whole(u64, Moments),
    /// The valid rows of a part of a chunk, which has `count` positions from `position` on.
    Rows { position: u64, count: u64, rows: Vec<f64> },
}

impl Piece {
    pub fn new(position: u64, dims: usize) -> Self {
        Piece {
            first: position,
            rows: 0,
            losses: Losses::default(),
            weights: WeightRange::default(),
            dims,
            chunks: Vec::new(),
            open: Vec::new(),
            start: position,
        }
    }

    pub fn push(&mut self, row: &[f64], units: f64) {
        self.rows += 1;
        self.weights.add(units);
        self.open.extend_from_slice(row);
        self.open.push(units);
    }

    /// Ends the current chunk, or the block, before this position.
    pub fn end_chunk(&mut self, end: u64) {
        let count = end - self.start;
        if count == CHUNK {
            let moments = Moments::of(&self.open, self.dims);
            self.chunks.push(Chunk::Whole(self.start / CHUNK, moments));
            self.open.clear();
        } else if count > 0 {
            let rows = std::mem::take(&mut self.open);
            self.chunks.push(Chunk::Rows { position: self.start, count, rows });
        }
        self.start = end;
    }
}

/// Combines chunks in pairs, then pairs of pairs, and so on, by their numbers. The pairing does not
/// depend on the order in which chunks arrive, and few chunks wait for their neighbour.
pub struct Tree {
    /// Position of the first row.
    pub first: u64,
    pub rows: u64,
    pub losses: Losses,
    pub weights: WeightRange,
    dims: usize,
    /// By the number of the first chunk: the number of pairings, and the statistics.
    nodes: BTreeMap<u64, (u32, Moments)>,
    /// Incomplete chunks: the number of positions seen, and the rows by position.
    cut: BTreeMap<u64, (u64, BTreeMap<u64, Vec<f64>>)>,
}

impl Tree {
    pub fn new(dims: usize) -> Self {
        Tree {
            first: u64::MAX,
            rows: 0,
            losses: Losses::default(),
            weights: WeightRange::default(),
            dims,
            nodes: BTreeMap::new(),
            cut: BTreeMap::new(),
        }
    }

    pub fn add(&mut self, piece: Piece) {
        self.first = self.first.min(piece.first);
        self.rows += piece.rows;
        self.losses.merge(&piece.losses);
        self.weights.merge(piece.weights);
        for chunk in piece.chunks {
            match chunk {
                Chunk::Whole(number, moments) => self.insert(number, moments),
                Chunk::Rows { position, count, rows } => {
                    let number = position / CHUNK;
                    let (seen, parts) = self.cut.entry(number).or_default();
                    *seen += count;
                    parts.insert(position, rows);
                    if *seen == CHUNK {
                        self.close(number);
                    }
                }
            }
        }
    }

    /// Adds the statistics of a chunk that arrived in several parts.
    fn close(&mut self, number: u64) {
        if let Some((_, parts)) = self.cut.remove(&number) {
            let rows: Vec<f64> = parts.into_values().flatten().collect();
            self.insert(number, Moments::of(&rows, self.dims));
        }
    }

    fn insert(&mut self, mut number: u64, mut moments: Moments) {
        let mut level = 0;
        loop {
            let (left, size) = (number >> level & 1 == 0, 1 << level);
            let sibling = if left { number + size } else { number - size };
            match self.nodes.get(&sibling) {
                Some((l, _)) if *l == level => {}
                _ => break,
            }
            let Some((_, other)) = self.nodes.remove(&sibling) else { break };
            moments = if left { moments.merged(&other) } else { other.merged(&moments) };
            number = number.min(sibling);
            level += 1;
        }
        self.nodes.insert(number, (level, moments));
    }

    /// The statistics of all rows.
    pub fn total(mut self) -> Moments {
        while let Some(number) = self.cut.keys().next().copied() {
            self.close(number);
        }
        let none = Moments::new(self.dims);
        self.nodes.into_values().fold(none, |total, (_, m)| total.merged(&m))
    }
}

/// Weight, mean, sum of squared deviations and range of every column.
#[derive(Debug, Clone)]
pub struct Moments {
    pub weight: f64,
    pub columns: Vec<Moment>,
}

#[derive(Debug, Clone, Copy)]
pub struct Moment {
    /// Weight of the rows with a value.
    pub weight: f64,
    /// Number of rows without a value.
    pub missing: u64,
    pub mean: f64,
    pub m2: f64,
    pub low: f64,
    pub high: f64,
}

impl Moments {
    fn new(d: usize) -> Self {
        let (low, high) = (f64::INFINITY, f64::NEG_INFINITY);
        let none = Moment { weight: 0.0, missing: 0, mean: 0.0, m2: 0.0, low, high };
        Moments { weight: 0.0, columns: vec![none; d] }
    }

    /// Statistics of rows that are each followed by their weight. Computes the mean first and then
    /// the deviations from it, while the rows are in the cache.
    fn of(rows: &[f64], d: usize) -> Self {
        let mut moments = Moments::new(d);
        moments.weight = rows.iter().skip(d).step_by(d + 1).sum();
        for row in rows.chunks_exact(d + 1) {
            let missing = moments.columns.iter_mut().zip(row).filter(|(_, x)| x.is_nan());
            missing.for_each(|(column, _)| column.missing += 1);
        }
        for row in rows.chunks_exact(d + 1) {
            for (column, x) in moments.columns.iter_mut().zip(row).filter(|(_, x)| !x.is_nan()) {
                column.weight += row[d];
                column.low = column.low.min(*x);
                column.high = column.high.max(*x);
            }
        }
        for row in rows.chunks_exact(d + 1) {
            for (column, x) in moments.columns.iter_mut().zip(row).filter(|(_, x)| !x.is_nan()) {
                column.mean += row[d] / column.weight.max(f64::MIN_POSITIVE) * x;
            }
        }
        for row in rows.chunks_exact(d + 1) {
            for (column, x) in moments.columns.iter_mut().zip(row).filter(|(_, x)| !x.is_nan()) {
                column.m2 += row[d] * (x - column.mean).powi(2);
            }
        }
        moments
    }

    /// Combines two sets with the update of Chan, Golub and LeVeque.
    pub fn merged(mut self, other: &Moments) -> Moments {
        self.weight += other.weight;
        for (a, b) in self.columns.iter_mut().zip(&other.columns) {
            a.low = a.low.min(b.low);
            a.high = a.high.max(b.high);
            a.missing += b.missing;
            if b.weight > 0.0 {
                let weight = a.weight + b.weight;
                let share = b.weight / weight;
                let delta = b.mean - a.mean;
                a.m2 += b.m2 + delta * delta * (a.weight * share);
                a.mean += delta * share;
                a.weight = weight;
            }
        }
        self
    }

    /// The statistics of one column. For values beyond 1e150, whose squares overflow, they are
    /// derived from the range.
    pub fn column(&self, j: usize) -> Column {
        let Moment { weight, missing, mean, m2, low, high } = self.columns[j];
        if weight == 0.0 {
            // No row has a value.
            return Column {
                low: 0.0,
                high: 0.0,
                mean: 0.0,
                deviation: 0.0,
                present: 0.0,
                missing,
            };
        }
        let deviation = (m2 / weight).max(0.0).sqrt();
        let half = high / 2.0 - low / 2.0;
        Column {
            low,
            high,
            mean: if mean.is_finite() { mean.clamp(low, high) } else { low / 2.0 + high / 2.0 },
            deviation: if m2.is_finite() { deviation } else { half },
            present: weight / self.weight,
            missing,
        }
    }
}
