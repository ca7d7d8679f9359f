//! Rows: blocks of them, sources that can be opened again, and the parallel pass.
//!
//! A source hands out *parts* one after the other (a run of CSV records, a slice of a NumPy file, a
//! batch of a row group): handing out is cheap and serial, reading and decoding a part is done by
//! whichever thread took it. Memory is one part per thread, whatever the size of the input.
//!
//! Every row has a *position*, its number in the whole input from 0. What a pass gives depends on
//! positions alone: not on which thread saw a row when, nor on how rows were cut into parts or files.
//!
//! To sketch data of your own kind, implement three traits: [`RowSource`] is the data, [`RowStream`] one
//! reading of it, [`RowPart`] the rows that one thread decodes. [`RowSource`] has a whole example. Rows in
//! memory are a [`Table`]; the crate `nysketch-tables` reads files.

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

/// Most columns of a plan.
pub const MAX_COLUMNS: usize = 1 << 16;

/// Some consecutive rows of one file, row-major.
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
    /// `rows × categories` codes of levels: of the source's vocabularies, or of a plan's levels;
    /// [`MISSING`] where there is none. Empty where the source has no categories.
    pub codes: Vec<u32>,
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

    /// Some of the rows, counted from 0, in this order; without their keys. Their numbers start like those of the block.
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

    /// Refuses a block whose rows do not all come with the key column.
    pub(crate) fn check_keys(&self) -> Result<()> {
        match self.keys.len() == self.len() {
            true => Ok(()),
            false => {
                let expected = format!("one key for each of the {} rows", self.len());
                Err(Error::parameter("the keys of a block", expected, self.keys.len()))
            }
        }
    }

    /// Names a value of this block for a message.
    pub fn place(&self, row: u64, column: &str) -> Place {
        Place { file: self.file.to_string(), row, column: column.to_string() }
    }
}

/// Data that can be read from the start any number of times.
///
/// Planning reads a source once or twice, sketching once, each time by its own call of
/// [`open`](Self::open). What an implementation must keep:
///
/// * **Every reading gives the same rows**, each at the same position. Data that changes between two
///   readings gives a plan of one table and a sketch of another.
/// * **Positions** number the rows of the whole input, from 0, in their order. No two rows share one.
///   There may be gaps: position *i* need not exist.
/// * **Parts** hold consecutive rows, and where one part ends and the next begins depends on the data
///   alone: not on the number of threads, on time, or on which rows are `done`. So a run that was
///   interrupted and saved can say which rows it has seen in terms of whole parts.
/// * **Values** that are missing are NaN. Whether such a row is an error or is skipped is decided later.
///
/// What the library guarantees in return: `open` is called from one thread,
/// [`next_part`](RowStream::next_part) by one thread at a time, [`decode`](RowPart::decode) by any thread,
/// at most one part per thread at once. Every part that was handed out is decoded or dropped before the
/// stream is.
///
/// A whole source, of rows that are computed when they are needed:
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
/// /// One reading: where it has come to, and what it leaves out.
/// struct Reading {
///     rows: u64,
///     next: u64,
///     done: RowSet,
/// }
///
/// impl<'a> RowStream<'a> for Reading {
///     // Cheap: it only says which rows the part has. The thread that takes it makes them.
///     fn next_part(&mut self) -> Option<Box<dyn RowPart + 'a>> {
///         // Rows that are done are whole parts, so that what follows starts with a part, too.
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
/// let plan = Arc::new(plan_for(&spiral, PlanParams::default().landmarks(50))?.0);
/// let sketch = Sketch::of(&plan, &spiral, SketchParams::default().threads(4), &())?;
/// assert_eq!(sketch.rows(), 10_500);
///
/// // The same rows as a table in memory have the same sketch, to the last bit.
/// let table = Table::new(spiral.columns.clone(), (0..10_500).flat_map(point).collect())?;
/// let again = Sketch::of(&plan, &table, SketchParams::default(), &())?;
/// assert_eq!(sketch.to_bytes(), again.to_bytes());
/// # Ok(())
/// # }
/// ```
pub trait RowSource: Sync {
    /// Names of the columns of each block, in the order of its values, without weights and keys. They are
    /// the columns of a plan made from this source; sketching refuses a source with others.
    fn columns(&self) -> &[String];

    /// Whether a column holds points in time: seconds since the start of 1970.
    fn is_time(&self, column: usize) -> bool {
        let _ = column;
        false
    }

    /// Columns of categories, in the order of the [`codes`](Block::codes) of a row.
    fn categories(&self) -> &[CategoryColumn] {
        &[]
    }

    /// Starts reading from the first row, leaving out the rows that are `done`.
    ///
    /// `done` is empty but for runs that are taken up again (see [`Run::resume`](crate::pass::Run::resume)). It is
    /// then made of the positions of whole blocks that earlier readings gave, in any order: skip the parts
    /// it covers, for instance with [`RowSet::first_missing`].
    ///
    /// # Errors
    /// Where the data cannot be read; wrap an error of your own by [`Error::source`](crate::error::Error::source).
    fn open(&self, done: &RowSet) -> Result<Box<dyn RowStream<'_> + '_>>;
}

/// One reading of a source that lives for `'a`.
///
/// Threads take parts from it one after the other, under a lock, and work on them at the same time.
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
    /// The next part, or `None` at the end; once `None`, it is not called again.
    ///
    /// Other threads wait while it runs, so leave the work to [`RowPart::decode`]. It may wait for parts
    /// that are being decoded, but must go on when they are dropped instead. A thread that decodes each
    /// part before it asks for the next must get them in the order of the rows; where several threads ask,
    /// any order will do.
    fn next_part(&mut self) -> Option<Box<dyn RowPart + 'a>>;

    /// Whether parts come in the order of the rows however many threads ask: then no row before an error
    /// can still be to come, and the rest need not be read. `false` is always right.
    fn in_order(&self) -> bool {
        false
    }
}

/// Some rows that one thread reads and decodes.
///
/// A part may hold the rows already, or only say where they are: a range of a file, an offset, a seed.
/// [`RowSource`] has an example.
pub trait RowPart: Send {
    /// No row of this part stands before this position. Of several errors, the one of the part with the
    /// least position is reported.
    fn position(&self) -> u64;

    /// The rows, or `None` where there turn out to be none.
    ///
    /// The block has [`columns`](Block::columns) set and as many values as rows times columns, even where
    /// a row is invalid. [`position`](Block::position) is that of its first row; the others follow it
    /// without gaps. [`file`](Block::file) and [`first_row`](Block::first_row) are for messages alone.
    ///
    /// # Errors
    /// Where the rows cannot be read; wrap an error of your own by [`Error::source`](crate::error::Error::source).
    fn decode(self: Box<Self>) -> Result<Option<Block>>;
}

/// Hears how far a pass has come and may stop it. Pass `&()` where nobody listens.
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
/// let plan = std::sync::Arc::new(plan_for(&table, PlanParams::default())?.0);
/// let stopped = Sketch::of(&plan, &table, SketchParams::default(), &Limit::default());
/// assert!(matches!(stopped, Err(nysketch_core::Error::Cancelled)));
/// # Ok(())
/// # }
/// ```
pub trait Progress: Sync {
    /// That many more rows were read.
    fn advance(&self, rows: u64);
    /// Work without rows begins, such as `"choosing landmarks"`; it ends with the next row or with the call.
    fn stage(&self, what: &'static str) {
        let _ = what;
    }
    /// Whether to stop as soon as possible.
    fn cancelled(&self) -> bool {
        false
    }
}

/// Progress that nobody watches.
impl Progress for () {
    fn advance(&self, _rows: u64) {}
}

/// What to do with rows that hold an infinite or out-of-range value, or lack one where the plan does not allow for it (see
/// [`Missing`](crate::planning::Missing)).
///
/// ```
/// use nysketch_core::{Invalid, PlanParams, Table, plan_for};
/// # fn main() -> nysketch_core::Result<()> {
/// let table = Table::unnamed(1, vec![1.0, f64::INFINITY, 3.0])?;
/// let error = plan_for(&table, PlanParams::default()).unwrap_err();
/// assert!(error.to_string().starts_with("table: row 2, column 'c0'"));
/// let (_, report) = plan_for(&table, PlanParams::default().invalid(Invalid::Skip))?;
/// assert_eq!((report.rows, report.losses.skipped()), (2, 1));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Invalid {
    /// Stop with an error that names the cell.
    #[default]
    Refuse,
    /// Leave the row out and count it.
    Skip,
}
