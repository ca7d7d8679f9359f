//! Rows: blocks of them, sources that can be opened again, and the parallel pass.
//!
//! A source hands out *parts* one after the other (a run of CSV records, a slice of a NumPy file,
//! a row group): handing out is cheap and serial, decoding a part into blocks is done by whichever
//! thread took it. Memory is one part per thread, whatever the size of the input.

use crate::error::{Cell, Error, Result};
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// Some consecutive rows of one file, row-major.
#[derive(Debug, Clone)]
pub struct Block {
    /// `rows × columns` values; a missing value is NaN.
    pub values: Vec<f64>,
    /// One weight a row, or empty where rows are not weighted.
    pub weights: Vec<f64>,
    /// Number of columns.
    pub columns: usize,
    /// Which file, for messages.
    pub file: Arc<str>,
    /// Which file, counted from 0 in the order of the input.
    pub file_index: u64,
    /// Number of the first row in its file, from 1.
    pub first_row: u64,
}

impl Block {
    /// Number of rows.
    pub fn len(&self) -> usize {
        self.values.len() / self.columns.max(1)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The rows with their numbers in the file and their weights (1 where not weighted).
    pub fn rows(&self) -> impl Iterator<Item = (u64, &[f64], f64)> {
        self.values.chunks_exact(self.columns).enumerate().map(|(i, row)| {
            let weight = self.weights.get(i).copied().unwrap_or(1.0);
            (self.first_row + i as u64, row, weight)
        })
    }

    /// Names a cell of this block for a message.
    pub fn cell(&self, row: u64, column: &str) -> Cell {
        Cell { file: self.file.to_string(), row, column: column.to_string() }
    }
}

/// Data that can be read from the start any number of times.
pub trait RowSource: Sync {
    /// Names of the columns of each block, without the weights.
    fn columns(&self) -> &[String];
    /// Starts reading from the first row.
    fn open(&self) -> Result<Box<dyn RowStream<'_> + '_>>;
}

/// One reading of a source that lives for `'a`.
pub trait RowStream<'a>: Send {
    /// The next part, or `None` at the end. Part boundaries depend on the data alone.
    fn next_part(&mut self) -> Result<Option<Box<dyn RowPart + 'a>>>;
}

/// Some rows that one thread decodes.
pub trait RowPart: Send {
    /// Calls `visit` with each block, in order.
    fn for_each_block(self: Box<Self>, visit: &mut dyn FnMut(&Block) -> Result<()>) -> Result<()>;
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

/// Reads `source` once on `threads` threads.
///
/// Each thread owns a state made by `init`; `visit` is called with the state, the number of the
/// part and each of its blocks. Returns the states, in no particular order. On failure the error
/// of the earliest part is returned, so the message does not depend on the number of threads.
pub fn pass<S: Send>(
    source: &dyn RowSource,
    threads: usize,
    progress: &dyn Progress,
    init: impl Fn() -> S + Sync,
    visit: impl Fn(&mut S, usize, &Block) -> Result<()> + Sync,
) -> Result<Vec<S>> {
    let queue = Queue {
        stream: Mutex::new((source.open()?, 0)),
        stop: AtomicBool::new(false),
        first_error: Mutex::new(None),
    };
    let work = || {
        let mut state = init();
        while let Some((number, part)) = queue.take() {
            let result = part.for_each_block(&mut |block| {
                if progress.cancelled() {
                    return Err(Error::Cancelled);
                }
                visit(&mut state, number, block)?;
                progress.advance(block.len() as u64);
                Ok(())
            });
            if let Err(error) = result {
                queue.fail(number, error);
            }
        }
        state
    };
    let states = std::thread::scope(|scope| {
        let workers: Vec<_> = (1..threads.max(1)).map(|_| scope.spawn(work)).collect();
        let mut states = vec![work()];
        for worker in workers {
            states.push(worker.join().unwrap_or_else(|p| std::panic::resume_unwind(p)));
        }
        states
    });
    match queue.first_error.into_inner().unwrap_or_else(|e| e.into_inner()) {
        Some((_, error)) => Err(error),
        None => Ok(states),
    }
}

/// Reads `source` once on this thread, block after block, in the order of the rows.
pub fn read_in_order(
    source: &dyn RowSource,
    progress: &dyn Progress,
    mut visit: impl FnMut(&Block) -> Result<()>,
) -> Result<()> {
    let mut stream = source.open()?;
    while let Some(part) = stream.next_part()? {
        part.for_each_block(&mut |block| {
            if progress.cancelled() {
                return Err(Error::Cancelled);
            }
            visit(block)?;
            progress.advance(block.len() as u64);
            Ok(())
        })?;
    }
    Ok(())
}

/// The parts not yet taken. The lock is held while a part is handed out, not while it is decoded.
struct Queue<'a> {
    stream: Mutex<(Box<dyn RowStream<'a> + 'a>, usize)>,
    stop: AtomicBool,
    first_error: Mutex<Option<(usize, Error)>>,
}

impl<'a> Queue<'a> {
    fn take(&self) -> Option<(usize, Box<dyn RowPart + 'a>)> {
        let mut guard = self.stream.lock().unwrap_or_else(|e| e.into_inner());
        if self.stop.load(Ordering::Relaxed) {
            return None;
        }
        let (stream, next) = &mut *guard;
        let number = *next;
        *next += 1;
        match stream.next_part() {
            Ok(Some(part)) => Some((number, part)),
            Ok(None) => {
                self.stop.store(true, Ordering::Relaxed);
                None
            }
            Err(error) => {
                self.fail(number, error);
                None
            }
        }
    }

    fn fail(&self, number: usize, error: Error) {
        self.stop.store(true, Ordering::Relaxed);
        let mut first = self.first_error.lock().unwrap_or_else(|e| e.into_inner());
        if first.as_ref().is_none_or(|(earliest, _)| number < *earliest) {
            *first = Some((number, error));
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
        Ok(Table { columns, values, weights: Vec::new(), part_rows: 4096 })
    }

    /// Columns named `c0`, `c1`, …
    pub fn unnamed(columns: usize, values: Vec<f64>) -> Result<Self> {
        Self::new(default_names(columns), values)
    }

    /// The same table with one weight a row.
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

/// Names for columns that have none: `c0`, `c1`, …
pub fn default_names(columns: usize) -> Vec<String> {
    (0..columns).map(|j| format!("c{j}")).collect()
}

impl RowSource for Table {
    fn columns(&self) -> &[String] {
        &self.columns
    }

    fn open(&self) -> Result<Box<dyn RowStream<'_> + '_>> {
        Ok(Box::new(TableStream { table: self, next: 0 }))
    }
}

struct TableStream<'a> {
    table: &'a Table,
    next: usize,
}

impl<'a> RowStream<'a> for TableStream<'a> {
    fn next_part(&mut self) -> Result<Option<Box<dyn RowPart + 'a>>> {
        let from = self.next;
        if from >= self.table.len() {
            return Ok(None);
        }
        let to = (from + self.table.part_rows).min(self.table.len());
        self.next = to;
        Ok(Some(Box::new(TablePart { table: self.table, from, to })))
    }
}

struct TablePart<'a> {
    table: &'a Table,
    from: usize,
    to: usize,
}

impl RowPart for TablePart<'_> {
    fn for_each_block(self: Box<Self>, visit: &mut dyn FnMut(&Block) -> Result<()>) -> Result<()> {
        let d = self.table.columns.len();
        visit(&Block {
            values: self.table.values[self.from * d..self.to * d].to_vec(),
            weights: self.table.weights.get(self.from..self.to).unwrap_or(&[]).to_vec(),
            columns: d,
            file: Arc::from("table"),
            file_index: 0,
            first_row: self.from as u64 + 1,
        })
    }
}
