//! From Arrow tables to numbers and text: what Parquet and Arrow files have in common.

use crate::arrow::{is_numeric, numbers, pandas_index, texts};
use crate::batch::Batch;
use crate::columns::{Kind, Places, Schema};
use crate::error::Error;
use crate::track::Raw;
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{ArrowError, Field, SchemaRef};
use nysketch::Block;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// A batch of the wanted columns; `arrays` holds those at `columns.projection`, in that order.
pub fn batch(arrays: &[ArrayRef], columns: &Places) -> Result<Batch, ArrowError> {
    let at = |file_column: usize| &arrays[columns.place(file_column)];
    let rows = arrays.first().map_or(0, |a| a.len());
    let d = columns.values.len();
    let mut values = vec![0.0; rows * d];
    for (j, column) in columns.values.iter().enumerate() {
        numbers(at(*column), &mut values, j, d)?;
    }
    let weights = match columns.weight {
        None => Vec::new(),
        Some(column) => {
            let mut weights = vec![0.0; rows];
            numbers(at(column), &mut weights, 0, 1)?;
            weights
        }
    };
    let keys = match columns.key {
        None => Vec::new(),
        Some(column) => texts(at(column))?,
    };
    let kept = columns.kept.iter().map(|c| at(*c).clone()).collect();
    let block = Block { values, weights, keys, columns: d, ..Block::default() };
    Ok(Batch::new(block, kept))
}

/// What the schema of an Arrow table says about its columns.
pub fn schema_of(name: &str, schema: &SchemaRef, rows: Option<u64>) -> crate::Result<Schema> {
    let names: Vec<String> = schema.fields().iter().map(|f| f.name().clone()).collect();
    let indexes = pandas_index(schema);
    let kind = |field: &Arc<Field>| match field.data_type() {
        t if !is_numeric(t) => Kind::Other(t.to_string()),
        _ if indexes.contains(field.name()) => Kind::Index,
        _ => Kind::Number,
    };
    let kinds = schema.fields().iter().map(kind).collect();
    Schema::named(name, names, kinds, rows)
}

thread_local! {
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// From now on, panics of decoders on damaged files are not printed; they are errors anyway.
///
/// For programs: it replaces the panic hook of the process.
pub fn quiet_guarded_panics() {
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if !GUARDED.get() {
            report(panic);
        }
    }));
}

/// A damaged file may make the decoder panic; here that becomes an ordinary error.
pub fn guarded<T, E: std::fmt::Display>(
    name: &str,
    work: impl FnOnce() -> Result<T, E>,
) -> crate::Result<T> {
    let outer = GUARDED.replace(true);
    let done = catch_unwind(AssertUnwindSafe(work));
    GUARDED.set(outer);
    match done {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(Error::damaged(name, format!("cannot be read: {error}"))),
        Err(_) => Err(Error::damaged(name, "cannot be read: it is damaged")),
    }
}

/// Rows of an Arrow table, of which only the wanted columns are left.
pub struct ArrowRaw {
    pub batch: RecordBatch,
    pub columns: Arc<Places>,
    pub name: Arc<str>,
}

impl Raw for ArrowRaw {
    fn rows(&self) -> u64 {
        self.batch.num_rows() as u64
    }

    fn decode(self: Box<Self>, _first_row: u64) -> nysketch::Result<Batch> {
        Ok(guarded(&self.name, || batch(self.batch.columns(), &self.columns))?)
    }
}
