//! Synthetic data of appendix E.1: a balanced Gaussian mixture, generated on the fly.
//!
//! ```text
//! x ~ 1/k Σ_i N(μ_i, I),   μ_i ~ N(0, σ²_inter I),   σ_inter = s k^{1/d}
//! ```

use crate::error::{Error, Result};
use crate::numeric::random::normal;
use crate::rows::MAX_COLUMNS;
use crate::rows::{Block, RowPart, RowSet, RowSource, RowStream, default_names};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use std::sync::Arc;

/// Number of rows that share a random stream.
pub const CHUNK_ROWS: usize = 1 << 14;

/// A balanced Gaussian mixture. Row i does not depend on the rows generated before it.
///
/// ```
/// use nysketch_core::{Mixture, PlanParams, plan_for};
/// # fn main() -> nysketch_core::Result<()> {
/// let mixture = Mixture::new(4, 5, 2.0, 7)?;
/// let some = mixture.rows(0, 10);
/// assert_eq!((some.values.len(), some.labels.len()), (40, 10));
/// // A source generates rows when they are read.
/// let report = plan_for(&mixture.source(50_000), PlanParams::default().landmarks(20))?.report;
/// assert_eq!(report.rows, 50_000);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Mixture {
    /// One mean per cluster.
    pub means: Vec<Vec<f64>>,
    seed: u64,
}

/// Some generated rows.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Generated {
    /// Row-major.
    pub values: Vec<f64>,
    /// The cluster of each row.
    pub labels: Vec<u32>,
}

/// Numbers of all means together, at most: half a gigabyte.
const MOST_NUMBERS: usize = 1 << 26;

impl Mixture {
    /// Draws `clusters` means in `dims` dimensions with separation `s`.
    pub fn new(dims: usize, clusters: usize, separation: f64, seed: u64) -> Result<Self> {
        if !(1..=MAX_COLUMNS).contains(&dims) {
            let expected = format!("between 1 and {MAX_COLUMNS}, the most columns of a plan");
            return Err(Error::parameter("`dims`", expected, dims));
        }
        if !(1..=1 << 20).contains(&clusters) {
            return Err(Error::parameter("`clusters`", "between 1 and 1048576", clusters));
        }
        if dims * clusters > MOST_NUMBERS {
            let expected = format!("at most {} with {dims} columns", MOST_NUMBERS / dims);
            return Err(Error::parameter("`clusters`", expected, clusters));
        }
        if !(0.0..1e6).contains(&separation) {
            return Err(Error::parameter("`separation`", "between 0 and 1e6", separation));
        }
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let inter = separation * (clusters as f64).powf(1.0 / dims as f64);
        let means =
            (0..clusters).map(|_| (0..dims).map(|_| inter * normal(&mut rng)).collect()).collect();
        Ok(Mixture { means, seed })
    }

    /// Returns the number of dimensions.
    pub fn dims(&self) -> usize {
        self.means[0].len()
    }

    /// Returns the first `count` rows of chunk number `chunk`.
    pub fn rows(&self, chunk: u64, count: usize) -> Generated {
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
        rng.set_stream(chunk + 1);
        let mut values = Vec::with_capacity(count * self.dims());
        let mut labels = Vec::with_capacity(count);
        for _ in 0..count {
            let c = crate::numeric::random::below(self.means.len(), &mut rng);
            labels.push(c as u32);
            values.extend(self.means[c].iter().map(|mu| mu + normal(&mut rng)));
        }
        Generated { values, labels }
    }

    /// Returns the first `rows` rows, chunk by chunk.
    pub fn chunks(&self, rows: u64) -> impl Iterator<Item = Generated> {
        let size = CHUNK_ROWS as u64;
        (0..rows.div_ceil(size))
            .map(move |chunk| self.rows(chunk, (rows - chunk * size).min(size) as usize))
    }

    /// Returns the first `rows` rows as a source.
    pub fn source(&self, rows: u64) -> MixtureSource<'_> {
        MixtureSource { mixture: self, rows, columns: default_names(self.dims()) }
    }
}

/// A mixture as a source of a given number of rows.
#[derive(Debug)]
pub struct MixtureSource<'a> {
    mixture: &'a Mixture,
    rows: u64,
    columns: Vec<String>,
}

impl RowSource for MixtureSource<'_> {
    fn columns(&self) -> &[String] {
        &self.columns
    }

    fn open(&self, done: &RowSet) -> Result<Box<dyn RowStream<'_> + '_>> {
        Ok(Box::new(MixtureStream {
            mixture: self.mixture,
            rows: self.rows,
            next: 0,
            done: done.clone(),
        }))
    }
}

struct MixtureStream<'a> {
    mixture: &'a Mixture,
    rows: u64,
    next: u64,
    done: RowSet,
}

impl<'a> RowStream<'a> for MixtureStream<'a> {
    fn next_part(&mut self) -> Option<Box<dyn RowPart + 'a>> {
        let from = self.done.first_missing(self.next);
        let count = self.rows.saturating_sub(from).min(CHUNK_ROWS as u64);
        if count == 0 {
            return None;
        }
        self.next = from + count;
        Some(Box::new(MixturePart { mixture: self.mixture, from, count: count as usize }))
    }
}

struct MixturePart<'a> {
    mixture: &'a Mixture,
    from: u64,
    count: usize,
}

impl RowPart for MixturePart<'_> {
    fn position(&self) -> u64 {
        self.from
    }

    fn decode(self: Box<Self>) -> Result<Option<Block>> {
        Ok(Some(Block {
            values: self.mixture.rows(self.from / CHUNK_ROWS as u64, self.count).values,
            columns: self.mixture.dims(),
            file: Arc::from("generated"),
            first_row: self.from + 1,
            position: self.from,
            ..Block::default()
        }))
    }
}
