//! Rows: blocks of rows, sources that can be read repeatedly, and the parallel pass.
//!
//! A source hands out *parts* one after the other (a run of CSV records, a slice of a NumPy file, a
//! batch of a row group). Handing out a part is cheap and serial. The thread that takes the part
//! reads and decodes it. Memory is one part per thread, for input of any size.
//!
//! Every row has a *position*, its number in the whole input, counted from 0. The result of a pass
//! depends on positions alone: not on the threads, their timing, or how rows are split into parts
//! and files.
//!
//! To sketch other kinds of data, implement three traits: [`RowSource`] is the data, [`RowStream`]
//! is one reading of it, and [`RowPart`] holds the rows that one thread decodes. [`RowSource`] has
//! a complete example. [`Table`] holds rows in memory. The crate `nysketch-tables` reads files.

mod losses;
mod pass;
pub mod sample;
mod set;
pub mod synthetic;
mod table;
mod vocabulary;
pub mod weight;
pub mod wire;

pub use losses::Losses;
pub(crate) use pass::read_on;
pub use pass::{pass, read_in_order};
pub use set::RowSet;
pub use table::{Table, default_names, part_rows};
pub use vocabulary::{CategoryColumn, Lost, MAX_TEXT_BYTES, MAX_TEXTS, MISSING, OTHER, Vocabulary};

use crate::error::{Error, Place, Result};
use std::sync::Arc;

/// Largest number of columns of a plan.
pub const MAX_COLUMNS: usize = 1 << 16;

/// Consecutive rows of one file, row-major.
///
/// ```
/// use nysketch_core::Block;
/// let block = Block {
///     values: vec![1.0, 2.0, 3.0, 4.0],
///     columns: 2,
///     file: "readings".into(),
///     first_row: 101,
///     position: 100,
///     ..Block::default()
/// };
/// assert_eq!(block.len(), 2);
/// let (number, row, weight) = block.rows().nth(1).unwrap();
/// assert_eq!((number, row, weight), (102, &[3.0, 4.0][..], 1.0));
/// assert_eq!(block.place(number, "y").to_string(), "readings: row 102, column 'y'");
/// ```
#[derive(Debug, Clone, Default)]
pub struct Block {
    /// `rows × columns` values; a missing value is NaN.
    pub values: Vec<f64>,
    /// `rows × categories` codes of levels, either of the source's vocabularies or of a plan's
    /// levels. A missing value is [`MISSING`]. Empty if the source has no categories.
    pub codes: Vec<u32>,
    /// One weight per row, or empty if rows are not weighted.
    pub weights: Vec<f64>,
    /// The text of one further column, such as groups or labels, or empty. `None` is a missing
    /// value.
    pub keys: Vec<Option<Arc<str>>>,
    /// Number of columns.
    pub columns: usize,
    /// Name of the file, for messages.
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

    /// Whether the block has no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Iterates over the rows with their numbers in the file and their weights (1 if rows are not
    /// weighted).
    pub fn rows(&self) -> impl Iterator<Item = (u64, &[f64], f64)> {
        self.values.chunks_exact(self.columns.max(1)).enumerate().map(|(i, row)| {
            let weight = self.weights.get(i).copied().unwrap_or(1.0);
            (self.first_row + i as u64, row, weight)
        })
    }

    /// Copies the given rows, counted from 0, in the given order and without their keys. The copies
    /// are numbered consecutively from `first_row`.
    pub(crate) fn select(&self, rows: impl ExactSizeIterator<Item = usize>) -> Block {
        let (d, c) = (self.columns, self.codes.len() / self.len().max(1));
        let mut some = Block {
            columns: d,
            file: self.file.clone(),
            first_row: self.first_row,
            position: self.position,
            ..Block::default()
        };
        some.values.reserve_exact(rows.len() * d);
        for i in rows {
            some.values.extend_from_slice(&self.values[i * d..(i + 1) * d]);
            some.codes.extend_from_slice(&self.codes[i * c..(i + 1) * c]);
            some.weights.extend(self.weights.get(i));
        }
        some
    }

    /// Checks that every row has a key.
    pub(crate) fn check_keys(&self) -> Result<()> {
        if self.keys.len() == self.len() {
            return Ok(());
        }
        let expected = format!("one key for each of the {} rows", self.len());
        Err(Error::parameter("the keys of a block", expected, self.keys.len()))
    }

    /// Returns the place of a value of this block, for messages.
    pub fn place(&self, row: u64, column: &str) -> Place {
        Place { file: self.file.to_string(), row, column: column.to_string() }
    }
}

/// Data that can be read from the start any number of times.
///
/// Planning reads a source once or twice and sketching reads it once. Each reading starts with a
/// call of [`open`](Self::open). An implementation must guarantee:
///
/// * **Every reading gives the same rows**, each at the same position. If the data changes between
///   two readings, the plan and the sketch describe different tables.
/// * **Positions** number the rows of the whole input from 0, in order. Each position belongs to at
///   most one row. Gaps are allowed: position *i* need not exist.
/// * **Parts** hold consecutive rows. The boundaries between parts depend on the data alone: not on
///   the number of threads, on time, or on the rows in `done`. An interrupted run can therefore
///   save its progress as a set of whole parts.
/// * **Missing values** are NaN. The library decides later whether such a row is an error or is
///   skipped.
///
/// The library guarantees in return: it calls `open` from one thread,
/// [`next_part`](RowStream::next_part) from one thread at a time, and [`decode`](RowPart::decode)
/// from any thread, with at most one part per thread at once. It decodes or drops every part before
/// it drops the stream.
///
/// A complete source, whose rows are computed on demand:
///
/// ```
/// use nysketch_core::{Block, PlanParams, Result, Sketch, SketchParams, Table, plan_for};
/// use nysketch_core::{RowPart, RowSet, RowSource, RowStream};
/// use std::sync::Arc;
///
/// /// Points on a spiral.
/// struct Spiral {
///     columns: Vec<String>,
///     rows: u64,
/// }
///
/// /// Rows in a part: enough work for a thread, and little memory.
/// const PART_ROWS: u64 = 1000;
///
/// fn point(position: u64) -> [f64; 2] {
///     let angle = position as f64 * 0.01;
///     [angle * angle.cos(), angle * angle.sin()]
/// }
///
/// impl RowSource for Spiral {
///     fn columns(&self) -> &[String] {
///         &self.columns
///     }
///
///     fn open(&self, done: &RowSet) -> Result<Box<dyn RowStream<'_> + '_>> {
///         Ok(Box::new(Reading { rows: self.rows, next: 0, done: done.clone() }))
///     }
/// }
///
/// /// One reading: the next row to hand out, and the rows to leave out.
/// struct Reading {
///     rows: u64,
///     next: u64,
///     done: RowSet,
/// }
///
/// impl<'a> RowStream<'a> for Reading {
///     // Cheap: it computes a range. The thread that takes the part computes the rows.
///     fn next_part(&mut self) -> Option<Box<dyn RowPart + 'a>> {
///         // Rows that are done form whole parts, so the first row after them starts a part.
///         let start = self.done.first_missing(self.next);
///         if start >= self.rows {
///             return None;
///         }
///         self.next = (start + PART_ROWS).min(self.rows);
///         Some(Box::new(Part { start, end: self.next }))
///     }
///
///     fn in_order(&self) -> bool {
///         true
///     }
/// }
///
/// struct Part {
///     start: u64,
///     end: u64,
/// }
///
/// impl RowPart for Part {
///     fn position(&self) -> u64 {
///         self.start
///     }
///
///     fn decode(self: Box<Self>) -> Result<Option<Block>> {
///         Ok(Some(Block {
///             values: (self.start..self.end).flat_map(point).collect(),
///             columns: 2,
///             file: Arc::from("spiral"),
///             first_row: self.start + 1,
///             position: self.start,
///             ..Block::default()
///         }))
///     }
/// }
///
/// # fn main() -> Result<()> {
/// let spiral = Spiral { columns: vec!["x".into(), "y".into()], rows: 10_500 };
/// let plan = Arc::new(plan_for(&spiral, PlanParams::default().landmarks(50))?.plan);
/// let sketch = Sketch::of(&plan, &spiral, SketchParams::default().threads(4), &())?;
/// assert_eq!(sketch.rows(), 10_500);
///
/// // A table in memory with the same rows has the same sketch, to the last bit.
/// let table = Table::new(spiral.columns.clone(), (0..10_500).flat_map(point).collect())?;
/// let again = Sketch::of(&plan, &table, SketchParams::default(), &())?;
/// assert_eq!(sketch.to_bytes(), again.to_bytes());
/// # Ok(())
/// # }
/// ```
pub trait RowSource: Sync {
    /// Names of the columns of each block, in the order of its values, without weights and keys. A
    /// plan made from this source has these columns. Sketching refuses a source with other columns.
    fn columns(&self) -> &[String];

    /// Whether a column holds timestamps, in seconds since the start of 1970.
    fn is_time(&self, column: usize) -> bool {
        let _ = column;
        false
    }

    /// Categorical columns, in the order of the [`codes`](Block::codes) of a row.
    fn categories(&self) -> &[CategoryColumn] {
        &[]
    }

    /// Starts reading from the first row, without the rows in `done`.
    ///
    /// `done` is empty unless a run is resumed (see [`Run::resume`](crate::Run::resume)). It then
    /// consists of the positions of whole blocks of earlier readings, in any order. Skip the parts
    /// it covers, for instance with [`RowSet::first_missing`].
    ///
    /// # Errors
    /// If the data cannot be read. Wrap your own error in [`Error::source`](crate::Error::source).
    fn open(&self, done: &RowSet) -> Result<Box<dyn RowStream<'_> + '_>>;
}

/// One reading of a source that lives for `'a`.
///
/// Threads take parts from it one after the other, under a lock, and decode them in parallel.
///
/// ```
/// use nysketch_core::{RowSet, RowSource, Table};
/// # fn main() -> nysketch_core::Result<()> {
/// let table = Table::unnamed(1, vec![5.0, 6.0, 7.0])?.with_part_rows(2);
/// let mut stream = table.open(&RowSet::default())?;
/// let mut sizes = Vec::new();
/// while let Some(part) = stream.next_part() {
///     sizes.push(part.decode()?.map_or(0, |block| block.len()));
/// }
/// assert_eq!(sizes, [2, 1]);
/// # Ok(())
/// # }
/// ```
pub trait RowStream<'a>: Send {
    /// Returns the next part, or `None` at the end. The library does not call it again after
    /// `None`.
    ///
    /// Other threads wait while this function runs, so leave the work to [`RowPart::decode`]. The
    /// function may wait for parts that are being decoded, but must continue if they are dropped
    /// instead. A thread that decodes each part before it asks for the next one must get the parts
    /// in the order of the rows. With several threads, any order is allowed.
    fn next_part(&mut self) -> Option<Box<dyn RowPart + 'a>>;

    /// Whether parts come in the order of the rows for any number of threads. If so, no row before
    /// an error can still follow, and reading stops at the first error. `false` is always correct.
    fn in_order(&self) -> bool {
        false
    }
}

/// Rows that one thread reads and decodes.
///
/// A part either holds its rows or only locates them: by a range of a file, an offset or a seed.
/// [`RowSource`] has an example.
pub trait RowPart: Send {
    /// A lower bound on the positions of the rows of this part. If several parts fail, the library
    /// reports the error of the part with the smallest bound.
    fn position(&self) -> u64;

    /// Decodes the rows. Returns `None` if the part has no rows.
    ///
    /// The block has [`columns`](Block::columns) set and holds rows × columns values, even if a row
    /// is invalid. [`position`](Block::position) is the position of its first row; the other rows
    /// follow without gaps. [`file`](Block::file) and [`first_row`](Block::first_row) are used in
    /// messages only.
    ///
    /// # Errors
    /// If the rows cannot be read. Wrap your own error in [`Error::source`](crate::Error::source).
    fn decode(self: Box<Self>) -> Result<Option<Block>>;
}

/// Receives the progress of a pass and can cancel it. Pass `&()` to ignore progress.
///
/// ```
/// use nysketch_core::{PlanParams, Progress, Sketch, SketchParams, Table, plan_for};
/// use std::sync::atomic::{AtomicU64, Ordering};
///
/// /// Counts rows and stops after 1,000 of them.
/// #[derive(Default)]
/// struct Limit(AtomicU64);
///
/// impl Progress for Limit {
///     fn advance(&self, rows: u64) {
///         self.0.fetch_add(rows, Ordering::Relaxed);
///     }
///     fn cancelled(&self) -> bool {
///         self.0.load(Ordering::Relaxed) >= 1000
///     }
/// }
/// # fn main() -> nysketch_core::Result<()> {
/// let table = Table::unnamed(1, (0..5000).map(f64::from).collect())?.with_part_rows(100);
/// let plan = std::sync::Arc::new(plan_for(&table, PlanParams::default())?.plan);
/// let stopped = Sketch::of(&plan, &table, SketchParams::default(), &Limit::default());
/// assert!(matches!(stopped, Err(nysketch_core::Error::Cancelled)));
/// # Ok(())
/// # }
/// ```
pub trait Progress: Sync {
    /// Reports that `rows` more rows were read.
    fn advance(&self, rows: u64);
    /// Reports the start of work without rows, such as `"choosing landmarks"`. It ends with the
    /// next row or with the call.
    fn stage(&self, what: &'static str) {
        let _ = what;
    }
    /// Whether to stop as soon as possible.
    fn cancelled(&self) -> bool {
        false
    }
}

/// Ignores progress.
impl Progress for () {
    fn advance(&self, _rows: u64) {}
}

/// Treatment of a row with an infinite or out-of-range value, or with a missing value that the plan
/// does not allow (see [`Missing`](crate::planning::Missing)).
///
/// ```
/// use nysketch_core::{Invalid, PlanParams, Table, plan_for};
/// # fn main() -> nysketch_core::Result<()> {
/// let table = Table::unnamed(1, vec![1.0, f64::INFINITY, 3.0])?;
/// let error = plan_for(&table, PlanParams::default()).unwrap_err();
/// assert!(error.to_string().starts_with("table: row 2, column 'c0'"));
/// let report = plan_for(&table, PlanParams::default().invalid(Invalid::Skip))?.report;
/// assert_eq!((report.rows, report.losses.skipped()), (2, 1));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Invalid {
    /// Stop with an error that names the row and the column.
    #[default]
    Refuse,
    /// Skip the row and count it.
    Skip,
}
