//! Rows: blocks of them, sources that can be opened again, and the parallel pass.
//!
//! A source hands out *parts* one after the other (a run of CSV records, a slice of a NumPy file, a
//! batch of a row group): handing out is cheap and serial, reading and decoding a part is done by
//! whichever thread took it. Memory is one part per thread, whatever the size of the input.
//!
//! Every row has a *position*, its number in the whole input from 0. What a pass gives depends on
//! positions alone: not on which thread saw a row when, nor on how rows were cut into parts or files.

use crate::error::{Error, Place, Result};
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, MutexGuard};

/// Some consecutive rows of one file, row-major.
#[derive(Debug, Clone, Default)]
pub struct Block {
    /// `rows × columns` values; a missing value is NaN.
    pub values: Vec<f64>,
    /// One weight per row, or empty where rows are not weighted.
    pub weights: Vec<f64>,
    /// The text of one more column, such as groups or labels, or empty; `None` where it is missing.
    pub keys: Vec<Option<Arc<str>>>,
    /// Number of columns.
    pub columns: usize,
    /// Which file, for messages.
    pub file: Arc<str>,
    /// Number of the first row in its file, from 1.
    pub first_row: u64,
    /// Position of the first row in the whole input, from 0.
    pub position: u64,
}

impl Block {
    /// Number of rows.
    pub fn len(&self) -> usize {
        match self.columns {
            0 => self.keys.len(),
            d => self.values.len() / d,
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The rows with their numbers in the file and their weights (1 where not weighted).
    pub fn rows(&self) -> impl Iterator<Item = (u64, &[f64], f64)> {
        self.values.chunks_exact(self.columns.max(1)).enumerate().map(|(i, row)| {
            let weight = self.weights.get(i).copied().unwrap_or(1.0);
            (self.first_row + i as u64, row, weight)
        })
    }

    /// Names a value of this block for a message.
    pub fn place(&self, row: u64, column: &str) -> Place {
        Place { file: self.file.to_string(), row, column: column.to_string() }
    }
}

/// Data that can be read from the start any number of times.
pub trait RowSource: Sync {
    /// Names of the columns of each block, without the weights.
    fn columns(&self) -> &[String];
    /// Starts reading from the first row, leaving out those that are `done`, which are whole parts
    /// of an earlier reading.
    fn open(&self, done: &RowSet) -> Result<Box<dyn RowStream<'_> + '_>>;
}

/// One reading of a source that lives for `'a`.
pub trait RowStream<'a>: Send {
    /// The next part, or `None` at the end. Part boundaries depend on the data alone. One thread
    /// that finishes each part before it asks for the next gets them in the order of the rows.
    fn next_part(&mut self) -> Option<Box<dyn RowPart + 'a>>;

    /// Whether parts always come in the order of the rows: then nothing before an error can be left
    /// after it, and the rest need not be read.
    fn in_order(&self) -> bool {
        false
    }
}

/// Some rows that one thread reads and decodes.
pub trait RowPart: Send {
    /// No row of this part stands before this position.
    fn position(&self) -> u64;
    /// The rows, or `None` where there turn out to be none.
    fn decode(self: Box<Self>) -> Result<Option<Block>>;
}

/// Hears how far a pass has come and may stop it.
pub trait Progress: Sync {
    /// That many more rows were read.
    fn advance(&self, rows: u64);
    /// Whether to stop as soon as possible.
    fn cancelled(&self) -> bool {
        false
    }
}

/// Progress that nobody watches.
impl Progress for () {
    fn advance(&self, _rows: u64) {}
}

/// What to do with rows that hold a missing, infinite or out-of-range value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Invalid {
    /// Stop with an error that names the cell.
    #[default]
    Refuse,
    /// Leave the row out and count it.
    Skip,
}

/// A set of positions: sorted ranges that do not touch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RowSet(Vec<Range<u64>>);

impl RowSet {
    /// The union of ranges.
    pub fn new(ranges: impl IntoIterator<Item = Range<u64>>) -> Self {
        let mut set = RowSet::default();
        ranges.into_iter().for_each(|r| set.insert(r));
        set
    }

    /// The ranges, in order.
    pub fn ranges(&self) -> &[Range<u64>] {
        &self.0
    }

    /// Number of positions.
    pub fn len(&self) -> u64 {
        self.0.iter().map(|r| r.end - r.start).sum()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds a range.
    pub fn insert(&mut self, range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        let from = self.0.partition_point(|r| r.end < range.start);
        let to = self.0.partition_point(|r| r.start <= range.end);
        let start = self.0.get(from).map_or(range.start, |r| r.start.min(range.start));
        let end = if to > from { self.0[to - 1].end.max(range.end) } else { range.end };
        self.0.splice(from..to, [if to > from { start..end } else { range }]);
    }

    /// The first position from `at` on that is not in the set.
    pub fn first_missing(&self, at: u64) -> u64 {
        self.0.iter().find(|r| r.contains(&at)).map_or(at, |r| r.end)
    }
}

/// Reads `source` once on `threads` threads.
///
/// Each thread owns a state made by `init`; `visit` is called with the state and each block.
/// Returns the states, in no particular order. On failure the error of the earliest part is
/// returned, so the message does not depend on the number of threads.
pub fn pass<S: Send>(
    source: &dyn RowSource,
    threads: usize,
    progress: &dyn Progress,
    init: impl Fn() -> S + Sync,
    visit: impl Fn(&mut S, &Block) -> Result<()> + Sync,
) -> Result<Vec<S>> {
    let mut stream = source.open(&RowSet::default())?;
    let stretch = read_on(&mut *stream, threads, progress, &|| false, init, visit)?;
    Ok(stretch.states)
}

/// What one stretch of a pass has done.
pub(crate) struct Stretch<S> {
    /// One state per thread.
    pub states: Vec<S>,
    /// The rows that were visited.
    pub rows: RowSet,
    /// Whether the stream has come to its end.
    pub finished: bool,
}

/// Reads on, until the stream ends or `pause` says so; every part that was begun is then done.
pub(crate) fn read_on<'a, S: Send>(
    stream: &mut (dyn RowStream<'a> + 'a),
    threads: usize,
    progress: &dyn Progress,
    pause: &(dyn Fn() -> bool + Sync),
    init: impl Fn() -> S + Sync,
    visit: impl Fn(&mut S, &Block) -> Result<()> + Sync,
) -> Result<Stretch<S>> {
    let queue = Queue {
        stream: Mutex::new(stream),
        progress,
        pause,
        begun: AtomicBool::new(false),
        finished: AtomicBool::new(false),
        limit: AtomicU64::new(u64::MAX),
        first_error: Mutex::new(None),
    };
    let work = || {
        let (mut state, mut rows) = (init(), RowSet::default());
        while let Some(part) = queue.take() {
            let position = part.position();
            let done = part.decode().and_then(|block| {
                let Some(block) = block else { return Ok(()) };
                visit(&mut state, &block)?;
                rows.insert(block.position..block.position + block.len() as u64);
                progress.advance(block.len() as u64);
                Ok(())
            });
            match done {
                Ok(()) => {}
                Err(Error::Cancelled) => queue.fail(0, Error::Cancelled),
                Err(error) => queue.fail(position, error),
            }
        }
        (state, rows)
    };
    let results = std::thread::scope(|scope| {
        let workers: Vec<_> = (1..threads.max(1)).map(|_| scope.spawn(work)).collect();
        let mut results = vec![work()];
        for worker in workers {
            results.push(worker.join().unwrap_or_else(|p| std::panic::resume_unwind(p)));
        }
        results
    });
    if let Some((_, error)) = queue.first_error.into_inner().unwrap_or_else(|e| e.into_inner()) {
        return Err(error);
    }
    let (states, sets): (Vec<S>, Vec<RowSet>) = results.into_iter().unzip();
    Ok(Stretch {
        states,
        rows: RowSet::new(sets.into_iter().flat_map(|s| s.0)),
        finished: queue.finished.into_inner(),
    })
}

/// Reads `source` once on this thread, block after block, in the order of the rows.
pub fn read_in_order(
    source: &dyn RowSource,
    progress: &dyn Progress,
    mut visit: impl FnMut(&Block) -> Result<()>,
) -> Result<()> {
    let mut stream = source.open(&RowSet::default())?;
    while let Some(part) = stream.next_part() {
        let block = part.decode()?;
        if progress.cancelled() {
            return Err(Error::Cancelled);
        }
        if let Some(block) = block {
            visit(&block)?;
            progress.advance(block.len() as u64);
        }
    }
    Ok(())
}

/// The parts not yet taken. The lock is held while a part is handed out, not while it is decoded.
struct Queue<'q, 'a> {
    stream: Mutex<&'q mut (dyn RowStream<'a> + 'a)>,
    progress: &'q dyn Progress,
    pause: &'q (dyn Fn() -> bool + Sync),
    begun: AtomicBool,
    finished: AtomicBool,
    /// Where the earliest error is: rows before it are still read, in case one of them is worse.
    limit: AtomicU64,
    first_error: Mutex<Option<(u64, Error)>>,
}

impl<'a> Queue<'_, 'a> {
    fn take(&self) -> Option<Box<dyn RowPart + 'a>> {
        let mut stream: MutexGuard<'_, _> = self.stream.lock().unwrap_or_else(|e| e.into_inner());
        // A stretch takes at least one part, or it could stand still for ever.
        let pause = || self.begun.load(Ordering::Relaxed) && (self.pause)();
        let end = || self.finished.store(true, Ordering::Relaxed);
        while !self.finished.load(Ordering::Relaxed) && !pause() {
            if self.progress.cancelled() {
                self.fail(0, Error::Cancelled);
                end();
                break;
            }
            match stream.next_part() {
                Some(part) if part.position() < self.limit.load(Ordering::Relaxed) => {
                    self.begun.store(true, Ordering::Relaxed);
                    return Some(part);
                }
                Some(_) if stream.in_order() => end(),
                Some(_) => {}
                None => end(),
            }
        }
        None
    }

    fn fail(&self, position: u64, error: Error) {
        self.limit.fetch_min(position, Ordering::Relaxed);
        let mut first = self.first_error.lock().unwrap_or_else(|e| e.into_inner());
        if first.as_ref().is_none_or(|(earliest, _)| position < *earliest) {
            *first = Some((position, error));
        }
    }
}

/// A table in memory.
#[derive(Debug, Clone)]
pub struct Table {
    columns: Vec<String>,
    values: Vec<f64>,
    weights: Vec<f64>,
    part_rows: usize,
}

impl Table {
    /// Row-major `values` with the given column names.
    pub fn new(columns: Vec<String>, values: Vec<f64>) -> Result<Self> {
        if columns.is_empty() || !values.len().is_multiple_of(columns.len()) {
            return Err(Error::parameter(
                "values",
                format!("a multiple of {} columns", columns.len()),
                values.len(),
            ));
        }
        let part_rows = part_rows(columns.len());
        Ok(Table { columns, values, weights: Vec::new(), part_rows })
    }

    /// Columns named `c0`, `c1`, …
    pub fn unnamed(columns: usize, values: Vec<f64>) -> Result<Self> {
        Self::new(default_names(columns), values)
    }

    /// The same table with one weight per row.
    pub fn with_weights(mut self, weights: Vec<f64>) -> Result<Self> {
        if weights.len() != self.len() {
            return Err(Error::parameter(
                "weights",
                format!("{} values", self.len()),
                weights.len(),
            ));
        }
        self.weights = weights;
        Ok(self)
    }

    /// The same table handed out in parts of that many rows.
    pub fn with_part_rows(mut self, rows: usize) -> Self {
        self.part_rows = rows.max(1);
        self
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.values.len() / self.columns.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// The values, row-major.
    pub fn values(&self) -> &[f64] {
        &self.values
    }
}

/// Values in one part: about 1 MB of doubles.
const PART_VALUES: usize = 1 << 17;

/// Rows in one part of a table with so many columns.
pub fn part_rows(columns: usize) -> usize {
    (PART_VALUES / columns.max(1)).clamp(1, 1 << 14)
}

/// Names for columns that have none: `c0`, `c1`, …
pub fn default_names(columns: usize) -> Vec<String> {
    (0..columns).map(|j| format!("c{j}")).collect()
}

impl RowSource for Table {
    fn columns(&self) -> &[String] {
        &self.columns
    }

    fn open(&self, done: &RowSet) -> Result<Box<dyn RowStream<'_> + '_>> {
        Ok(Box::new(TableStream { table: self, next: 0, done: done.clone() }))
    }
}

struct TableStream<'a> {
    table: &'a Table,
    next: usize,
    done: RowSet,
}

impl<'a> RowStream<'a> for TableStream<'a> {
    fn next_part(&mut self) -> Option<Box<dyn RowPart + 'a>> {
        let from = self.done.first_missing(self.next as u64) as usize;
        if from >= self.table.len() {
            return None;
        }
        let to = (from + self.table.part_rows).min(self.table.len());
        self.next = to;
        Some(Box::new(TablePart { table: self.table, rows: from..to }))
    }

    fn in_order(&self) -> bool {
        true
    }
}

struct TablePart<'a> {
    table: &'a Table,
    rows: Range<usize>,
}

impl RowPart for TablePart<'_> {
    fn position(&self) -> u64 {
        self.rows.start as u64
    }

    fn decode(self: Box<Self>) -> Result<Option<Block>> {
        let d = self.table.columns.len();
        let Range { start, end } = self.rows;
        Ok(Some(Block {
            values: self.table.values[start * d..end * d].to_vec(),
            weights: self.table.weights.get(start..end).unwrap_or(&[]).to_vec(),
            columns: d,
            file: Arc::from("table"),
            first_row: start as u64 + 1,
            position: start as u64,
            ..Block::default()
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn row_sets_are_sets(ranges in prop::collection::vec((0u64..60, 0u64..9), 0..20)) {
            let set = RowSet::new(ranges.iter().map(|(a, n)| *a..a + n));
            let inside = |x: u64| ranges.iter().any(|(a, n)| (*a..a + n).contains(&x));
            for x in 0..80 {
                prop_assert_eq!(set.ranges().iter().any(|r| r.contains(&x)), inside(x));
                let missing = (x..).find(|y| !inside(*y));
                prop_assert_eq!(Some(set.first_missing(x)), missing);
            }
            prop_assert!(set.ranges().windows(2).all(|w| w[0].end < w[1].start));
            prop_assert_eq!(set.len(), (0..80).filter(|x| inside(*x)).count() as u64);
        }
    }

    /// Every row has its own error; whichever thread is first, the first row's is reported.
    #[test]
    fn the_earliest_error_is_reported() {
        let table = Table::unnamed(1, vec![f64::NAN; 5000]).unwrap().with_part_rows(3);
        for threads in 1..5 {
            let fail = |_: &mut (), b: &Block| Err(Error::source(b.position.to_string()));
            let error = pass(&table, threads, &(), || (), fail).unwrap_err();
            assert_eq!(error.to_string(), "0");
        }
    }

    #[test]
    fn stretches_cover_every_row_once() {
        let table = Table::unnamed(1, (0..1000).map(f64::from).collect()).unwrap();
        let table = table.with_part_rows(7);
        let (mut done, mut total, mut stretches) = (RowSet::default(), 0.0, 0);
        loop {
            // As after a crash: a new stream, and the rows that are done.
            let mut stream = table.open(&done).unwrap();
            let parts = AtomicU64::new(0);
            let pause = || parts.fetch_add(1, Ordering::Relaxed) > 20;
            let add = |s: &mut f64, b: &Block| {
                *s += b.values.iter().sum::<f64>();
                Ok(())
            };
            let stretch = read_on(&mut *stream, 3, &(), &pause, || 0.0, add).unwrap();
            total += stretch.states.iter().sum::<f64>();
            stretch.rows.ranges().iter().for_each(|r| done.insert(r.clone()));
            stretches += 1;
            if stretch.finished {
                break;
            }
        }
        assert!(stretches > 3);
        assert_eq!((total, done), (499_500.0, RowSet::new(Some(0..1000))));
    }
}
