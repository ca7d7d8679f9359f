//! Any object with the Arrow PyCapsule interface, read batch by batch, so that it may be larger
//! than memory.

use super::stream::{Reader, reader_of};
use super::{Extras, Wanted, Weights};
use crate::error::table_exception;
use arrow_array::RecordBatch;
use arrow_schema::{FieldRef, SchemaRef};
use nysketch::rows::{CategoryColumn, part_rows};
use nysketch::{Block, Error, Result, RowPart, RowSet, RowSource, RowStream};
use nysketch_tables::{ArrowTable, ReadOptions};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::sync::{Mutex, MutexGuard};

/// A table that can be read again, a stream that cannot, or a function that returns a new stream.
pub struct ArrowSource {
    origin: Py<PyAny>,
    pub(super) table: ArrowTable,
    /// Indexes of the columns in a batch, with their names and types.
    fields: Vec<(usize, FieldRef)>,
    /// Weights that are not in a column.
    weights: Option<Vec<f64>>,
    /// Position of the first row.
    start: u64,
    /// The stream from which the schema was read, used for the first reading.
    first: Mutex<Option<Reader>>,
    /// Number of rows, known after the first complete reading.
    rows: Mutex<Option<u64>>,
}

impl ArrowSource {
    /// Returns the source, and notes about columns that are left out.
    pub fn new(
        origin: &Bound<'_, PyAny>,
        wanted: Wanted,
        extras: Extras,
    ) -> PyResult<(Self, Vec<String>)> {
        let mut reader = reader_of(origin)?;
        let schema = reader.schema.clone();
        let first = if ArrowTable::has_lists(&schema) {
            reader.peek().map_err(|e| PyValueError::new_err(format!("X cannot be read: {e}")))?
        } else {
            None
        };
        let taken = extras.taken();
        let (weight, weights) = match extras.weights {
            Weights::None => (None, None),
            Weights::Column(name) => (Some(name), None),
            Weights::Values(values) => (None, Some(values)),
        };
        let beside = nysketch_tables::Extras::default().weight(weight).key(extras.key);
        let rowwise = wanted.rowwise().is_some();
        let columns = wanted.columns(taken);
        let options = ReadOptions::default().columns(columns).extras(beside).rowwise(rowwise);
        let table = ArrowTable::new("X", &schema, first.as_ref(), &options);
        let table = table.map_err(table_exception)?;
        let notes = table.notes().to_vec();
        let source = ArrowSource {
            origin: origin.clone().unbind(),
            fields: fields(&table, &schema),
            table,
            weights,
            start: extras.position,
            first: Mutex::new(Some(reader)),
            rows: Mutex::new(None),
        };
        Ok((source, notes))
    }

    /// Returns the first reader, or a new one.
    fn reader(&self) -> Result<Reader> {
        if let Some(first) = locked(&self.first).take() {
            return Ok(first);
        }
        let reader = Python::attach(|py| reader_of(self.origin.bind(py))).map_err(Error::source)?;
        let same = |(place, field): &(usize, FieldRef)| {
            let there = reader.schema.fields().get(*place);
            there.is_some_and(|f| f.name() == field.name() && f.data_type() == field.data_type())
        };
        if self.fields.iter().all(same) {
            Ok(reader)
        } else {
            Err(Error::source("X has other columns than when it was read before"))
        }
    }

    /// Checks the number of rows after every reading: an exhausted stream would look like an empty
    /// table.
    fn ended(&self, rows: u64) -> Result<()> {
        if let Some(weights) = &self.weights
            && weights.len() as u64 != rows
        {
            let given = weights.len();
            return Err(Error::source(format!(
                "weights has {given} values, but X has {rows} rows"
            )));
        }
        match *locked(&self.rows).get_or_insert(rows) {
            first if first == rows => Ok(()),
            first => Err(Error::source(format!(
                "X gave {first} rows when it was read first and {rows} when it was read again. A stream \
                 can be read only once, and a plan reads up to twice: pass a table, a dataset, or a \
                 function that returns a new stream"
            ))),
        }
    }

    /// Converts a batch, whose first row has the number `row`.
    fn block(&self, batch: &RecordBatch, row: u64) -> Result<Block> {
        let mut block = self.table.block(batch, row)?;
        if let Some(all) = &self.weights {
            // Too few weights are an error at the end, when the number of rows is known.
            let weight = |i: usize| all.get(row as usize + i).copied().unwrap_or(0.0);
            block.weights = (0..batch.num_rows()).map(weight).collect();
        }
        block.position = self.start + row;
        Ok(block)
    }
}

/// Returns the columns of a table that are read.
fn fields(table: &ArrowTable, schema: &SchemaRef) -> Vec<(usize, FieldRef)> {
    table.places().iter().map(|i| (*i, schema.fields()[*i].clone())).collect()
}

impl RowSource for ArrowSource {
    fn columns(&self) -> &[String] {
        self.table.columns()
    }

    fn is_time(&self, column: usize) -> bool {
        self.table.is_time(column)
    }

    fn categories(&self) -> &[CategoryColumn] {
        self.table.categories()
    }

    fn open(&self, _done: &RowSet) -> Result<Box<dyn RowStream<'_> + '_>> {
        Ok(Box::new(ArrowStream {
            source: self,
            reader: Some(self.reader()?),
            batch: None,
            row: 0,
        }))
    }
}

struct ArrowStream<'a> {
    source: &'a ArrowSource,
    /// `None` after the end.
    reader: Option<Reader>,
    /// The rest of the current batch.
    batch: Option<RecordBatch>,
    /// Number of the next row.
    row: u64,
}

impl<'a> RowStream<'a> for ArrowStream<'a> {
    fn in_order(&self) -> bool {
        true
    }

    fn next_part(&mut self) -> Option<Box<dyn RowPart + 'a>> {
        let row = self.row;
        let part = |rows| Some(Box::new(ArrowPart { source: self.source, rows, row }) as _);
        let width = self.source.columns().len() + self.source.categories().len();
        loop {
            if let Some(batch) = self.batch.take().filter(|b| b.num_rows() > 0) {
                let rows = batch.num_rows().min(part_rows(width));
                self.batch = Some(batch.slice(rows, batch.num_rows() - rows));
                self.row += rows as u64;
                return part(Ok(batch.slice(0, rows)));
            }
            match self.reader.as_mut()?.next() {
                Ok(Some(batch)) => self.batch = Some(batch),
                Err(error) => {
                    self.reader = None;
                    return part(Err(Error::source(format!("X cannot be read: {error}"))));
                }
                Ok(None) => {
                    self.reader = None;
                    return match self.source.ended(row) {
                        Ok(()) => None,
                        Err(error) => part(Err(error)),
                    };
                }
            }
        }
    }
}

struct ArrowPart<'a> {
    source: &'a ArrowSource,
    rows: Result<RecordBatch>,
    /// Number of the first of these rows.
    row: u64,
}

impl RowPart for ArrowPart<'_> {
    fn position(&self) -> u64 {
        self.source.start + self.row
    }

    fn decode(self: Box<Self>) -> Result<Option<Block>> {
        let ArrowPart { source, rows, row } = *self;
        source.block(&rows?, row).map(Some)
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|e| e.into_inner())
}
