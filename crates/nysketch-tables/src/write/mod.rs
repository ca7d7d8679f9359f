//! Output of tables as CSV, Parquet or NumPy.
//!
//! Rows are *gathered* into groups, in order; groups are *encoded*, on any thread; and encoded
//! groups are *appended* to the file, in order. The size of a group depends only on the rows, not
//! on the number of threads.

mod csv;
mod group;
mod npy;
mod parquet;
mod units;

pub(crate) use group::Group;

use crate::error::{Error, Result};
use ::parquet::arrow::arrow_writer::ArrowColumnChunk;
use arrow_array::{Array, RecordBatch};
use arrow_schema::SchemaRef;
use nysketch_core::format::file::Out;
use std::path::Path;

/// Format of an output table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum OutputFormat {
    /// Comma-separated text.
    Csv,
    /// NumPy array; all columns must be numbers of one type.
    Npy,
    /// Apache Parquet.
    Parquet,
}

impl OutputFormat {
    /// Returns the format for an extension.
    ///
    /// ```
    /// use nysketch_tables::OutputFormat;
    ///
    /// assert_eq!(OutputFormat::of("y.parquet".as_ref())?, OutputFormat::Parquet);
    /// assert!(OutputFormat::of("y.xlsx".as_ref()).unwrap_err().is_usage());
    /// # Ok::<(), nysketch_tables::Error>(())
    /// ```
    pub fn of(path: &Path) -> Result<Self> {
        match path.extension().and_then(|e| e.to_str()).map(str::to_ascii_lowercase).as_deref() {
            Some("csv") => Ok(OutputFormat::Csv),
            Some("npy") => Ok(OutputFormat::Npy),
            Some("parquet") => Ok(OutputFormat::Parquet),
            _ => {
                let message =
                    format!("{}: use the extension .parquet, .csv or .npy", path.display());
                Err(Error::Usage(message))
            }
        }
    }
}

/// A table that is being written.
///
/// The file is complete only after [`finish`](TableWriter::finish).
/// [`Dataset::map_to_table`](crate::Dataset::map_to_table) writes rows computed from another table,
/// on all threads.
///
/// ```
/// use arrow_array::{Int32Array, RecordBatch};
/// use nysketch_tables::{OutputFormat, TableWriter};
/// use std::io::Cursor;
/// use std::sync::Arc;
///
/// let labels = Int32Array::from(vec![2, 0]);
/// let batch = RecordBatch::try_from_iter([("label", Arc::new(labels) as _)])?;
/// let mut bytes = Cursor::new(Vec::new());
/// let mut writer = TableWriter::new(OutputFormat::Csv, &batch.schema(), &mut bytes)?;
/// writer.write(&batch)?;
/// writer.finish()?;
/// assert_eq!(bytes.into_inner(), b"label\n2\n0\n");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct TableWriter<'a> {
    pub(crate) gather: Gather,
    pub(crate) encoder: Encoder,
    pub(crate) out: Appender<'a>,
}

impl std::fmt::Debug for TableWriter<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TableWriter").finish_non_exhaustive()
    }
}

impl<'a> TableWriter<'a> {
    /// Starts a table with these columns.
    pub fn new(format: OutputFormat, schema: &SchemaRef, out: &'a mut dyn Out) -> Result<Self> {
        let mut grouped = None;
        let (encoder, out) = match format {
            OutputFormat::Csv => {
                let header = csv::header(schema)?;
                out.write_all(&header).map_err(Error::writing)?;
                (Encoder::Csv, Appender::Bytes { out, rows: 0, npy: None })
            }
            OutputFormat::Npy => {
                let header = npy::header(0, schema)?;
                out.write_all(&header).map_err(Error::writing)?;
                (Encoder::Npy, Appender::Bytes { out, rows: 0, npy: Some(schema.clone()) })
            }
            OutputFormat::Parquet => {
                let schema = units::schema_of(schema)?;
                let (encoder, file) = parquet::start(&schema, out)?;
                let writer = (Encoder::Parquet(encoder), Appender::Parquet(Box::new(file)));
                grouped = Some(schema);
                writer
            }
        };
        Ok(TableWriter { gather: Gather::new(grouped), encoder, out })
    }

    /// Writes some rows.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        for group in self.gather.push(batch.clone())? {
            self.out.append(self.encoder.encode(group)?)?;
        }
        Ok(())
    }

    /// Writes the remaining rows and the end of the file.
    pub fn finish(mut self) -> Result<()> {
        if let Some(group) = self.gather.rest() {
            self.out.append(self.encoder.encode(group)?)?;
        }
        self.out.finish()
    }
}

/// Maximum number of rows in a Parquet row group.
const GROUP_ROWS: usize = 1 << 17;
/// Approximate maximum size of the values of a group in memory, in bytes.
const GROUP_BYTES: usize = 64 << 20;

/// Rows that do not fill a group yet.
pub(crate) struct Gather {
    /// The columns as they are written, if rows are collected into groups. If `None`, every batch
    /// is a group.
    grouped: Option<SchemaRef>,
    batches: Vec<RecordBatch>,
    rows: usize,
    bytes: usize,
    /// Number of output rows so far.
    written: u64,
}

impl Gather {
    fn new(grouped: Option<SchemaRef>) -> Self {
        Gather { grouped, batches: Vec::new(), rows: 0, bytes: 0, written: 0 }
    }

    /// Adds rows, and returns the groups that they complete.
    pub fn push(&mut self, batch: RecordBatch) -> Result<Vec<Group>> {
        let Some(schema) = &self.grouped else { return Ok(vec![vec![batch]]) };
        let mut batch = units::convert(batch, schema, self.written + 1)?;
        self.written += batch.num_rows() as u64;
        let mut groups = Vec::new();
        while batch.num_rows() > 0 {
            let fit = (GROUP_ROWS - self.rows).min(batch.num_rows());
            let some = batch.slice(0, fit);
            batch = batch.slice(fit, batch.num_rows() - fit);
            self.rows += fit;
            self.bytes += bytes_of(&some);
            self.batches.push(some);
            if self.rows == GROUP_ROWS || self.bytes > GROUP_BYTES {
                groups.extend(self.rest());
            }
        }
        Ok(groups)
    }

    /// Returns the remaining rows as the last group.
    fn rest(&mut self) -> Option<Group> {
        (self.rows, self.bytes) = (0, 0);
        let group = std::mem::take(&mut self.batches);
        (!group.is_empty()).then_some(group)
    }
}

/// Returns the size of the values of a batch, not of the arrays from which it was sliced.
fn bytes_of(batch: &RecordBatch) -> usize {
    let size = |column: &dyn Array| {
        let data = column.to_data();
        data.get_slice_memory_size().unwrap_or_else(|_| data.get_buffer_memory_size())
    };
    batch.columns().iter().map(|column| size(column)).sum()
}

/// Converts groups to bytes; shared by all threads.
pub(crate) enum Encoder {
    Csv,
    Npy,
    Parquet(parquet::Groups),
}

/// A group in the form in which it is appended to the file.
pub(crate) enum Encoded {
    Bytes { bytes: Vec<u8>, rows: usize },
    Columns(Vec<ArrowColumnChunk>),
}

impl Encoder {
    pub fn encode(&self, group: Group) -> Result<Encoded> {
        let rows = group.iter().map(|batch| batch.num_rows()).sum();
        Ok(match self {
            Encoder::Csv => Encoded::Bytes { bytes: csv::encode(&group)?, rows },
            Encoder::Npy => Encoded::Bytes { bytes: npy::encode(&group)?, rows },
            Encoder::Parquet(groups) => Encoded::Columns(groups.encode(group)?),
        })
    }
}

/// Appends encoded groups to the file.
pub(crate) enum Appender<'a> {
    Bytes {
        out: &'a mut dyn Out,
        rows: u64,
        /// The columns of a NumPy file, whose header is rewritten when the number of rows is known.
        npy: Option<SchemaRef>,
    },
    Parquet(Box<parquet::File<'a>>),
}

impl Appender<'_> {
    pub fn append(&mut self, encoded: Encoded) -> Result<()> {
        match (self, encoded) {
            (Appender::Bytes { out, rows, .. }, Encoded::Bytes { bytes, rows: more }) => {
                *rows += more as u64;
                out.write_all(&bytes).map_err(Error::writing)
            }
            (Appender::Parquet(file), Encoded::Columns(columns)) => parquet::append(file, columns),
            _ => Err(Error::Write("rows were encoded for another format".into())),
        }
    }

    fn finish(self) -> Result<()> {
        match self {
            Appender::Bytes { out, rows, npy: Some(schema) } => {
                let header = npy::header(rows, &schema)?;
                out.rewind().and_then(|()| out.write_all(&header)).map_err(Error::writing)
            }
            Appender::Bytes { .. } => Ok(()),
            Appender::Parquet(file) => file.close().map(drop).map_err(Error::writing),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::{ArrayRef, Int32Array, StringArray};
    use std::sync::Arc;

    fn numbers(rows: usize) -> RecordBatch {
        let column: ArrayRef = Arc::new(Int32Array::from(vec![7; rows]));
        RecordBatch::try_from_iter([("n", column)]).unwrap()
    }

    #[test]
    fn groups_are_cut_by_rows_or_bytes() {
        let rows = |groups: &[Group]| -> Vec<usize> {
            groups.iter().map(|g| g.iter().map(|b| b.num_rows()).sum()).collect()
        };
        let mut gather = Gather::new(Some(numbers(0).schema()));
        assert!(gather.push(numbers(GROUP_ROWS - 1)).unwrap().is_empty());
        assert_eq!(rows(&gather.push(numbers(2 * GROUP_ROWS)).unwrap()), [GROUP_ROWS, GROUP_ROWS]);
        assert_eq!(rows(&gather.push(numbers(1)).unwrap()), [GROUP_ROWS]);
        assert!(gather.rest().is_none());
        // Long texts fill a group before it has the maximum number of rows; values outside a slice
        // do not count.
        let text: ArrayRef = Arc::new(StringArray::from(vec!["x".repeat(1 << 20); 70]));
        let texts = RecordBatch::try_from_iter([("t", text)]).unwrap();
        let mut gather = Gather::new(Some(texts.schema()));
        let push = |i| gather.push(texts.slice(i, 1)).unwrap();
        let slices = (0..70).flat_map(push).collect::<Vec<_>>();
        assert_eq!(rows(&slices), [64]);
        assert_eq!(gather.rest().unwrap().len(), 6);
    }
}
