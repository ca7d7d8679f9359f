//! Converts Arrow tables to numbers and text, for Parquet and Arrow files.

use crate::arrow::{
    codes, first_coordinates, is_numeric, is_text, is_time, numbers, pandas_index, texts_unless,
    times, type_name, vector_of, vectors,
};
use crate::batch::Batch;
use crate::error::{Error, Result};
use crate::places::{Places, Text, Value, Vector};
use crate::schema::{Column, Kind, MOST_COORDINATES, Schema, Zone};
use crate::text::has_text;
use crate::texts::{encode, fill};
use crate::track::Raw;
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch, StringArray};
use arrow_schema::{ArrowError, DataType, Field, SchemaRef};
use nysketch_core::Block;
use nysketch_core::rows::MISSING;
use std::cell::Cell;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Converts the required columns to a batch. `arrays` contains the columns in `columns.projection`,
/// in that order.
pub fn batch(
    file: &str,
    first_row: u64,
    rows: usize,
    arrays: &[ArrayRef],
    columns: &Places,
) -> Result<Batch> {
    let at = |file_column: usize| &arrays[columns.place(file_column)];
    let broken = |e: ArrowError| Error::damaged(file, format!("cannot be read: {e}"));
    let d = columns.values.len();
    let mut values = vec![0.0; rows * d];
    for (j, value) in columns.values.iter().enumerate() {
        match value {
            Value::Column(c) if columns.names.times.contains_key(&j) => {
                times(at(*c), &mut values, j, d).map_err(broken)?;
            }
            Value::Column(c) => numbers(at(*c), &mut values, j, d).map_err(broken)?,
            Value::Constant(x) => values.iter_mut().skip(j).step_by(d).for_each(|out| *out = *x),
            Value::Vector => {}
        }
    }
    for vector in &columns.vectors {
        let all = if columns.names.rowwise {
            first_coordinates(at(vector.column), vector.length).map_err(broken)?
        } else {
            all_coordinates(file, first_row, at(vector.column), vector)?
        };
        let vectors = all.chunks_exact(vector.length);
        for (row, vector_of_row) in values.chunks_exact_mut(d).zip(vectors) {
            vector.picks.iter().for_each(|(from, to)| row[*to] = vector_of_row[*from]);
        }
    }
    let weights = match columns.weight {
        None | Some(Value::Vector) => Vec::new(),
        Some(Value::Constant(x)) => vec![x; rows],
        Some(Value::Column(column)) => {
            let mut weights = vec![0.0; rows];
            numbers(at(column), &mut weights, 0, 1).map_err(broken)?;
            weights
        }
    };
    // Rows with a value that cannot be written as text. They are invalid if rows are read
    // separately.
    let mut textless = Vec::new();
    let mut texts = |column| {
        let failed = |row, error| {
            if columns.names.rowwise {
                textless.push(row);
                Ok(())
            } else {
                Err(error)
            }
        };
        texts_unless(at(column), failed).map_err(broken)
    };
    let keys = match &columns.key {
        None => Vec::new(),
        Some(Text::Constant(text)) => vec![text.clone(); rows],
        Some(Text::Column(column)) => texts(*column)?,
    };
    let wide = columns.categories.len();
    let mut levels = vec![MISSING; rows * wide];
    let categories = columns.categories.iter().zip(&columns.names.categories);
    for (k, (text, category)) in categories.enumerate() {
        let vocabulary = &category.vocabulary;
        match text {
            Text::Column(column) if columns.names.rowwise => {
                let texts = texts(*column)?;
                let texts = texts.iter().map(|t| t.as_deref().filter(|t| !t.is_empty()));
                encode(vocabulary, texts, &mut levels, k, wide);
            }
            Text::Column(column) => {
                codes(at(*column), vocabulary, &mut levels, k, wide).map_err(broken)?;
            }
            Text::Constant(text) => fill(vocabulary, text.as_deref(), &mut levels, k, wide),
        }
    }
    for row in textless {
        values[row * d..][..d].fill(f64::INFINITY);
    }
    let kept = columns.kept.iter().map(|text| match text {
        Text::Column(column) => at(*column).clone(),
        Text::Constant(text) => Arc::new(StringArray::from(vec![text.as_deref(); rows])) as _,
    });
    let kept = kept.collect();
    let block = Block { values, codes: levels, weights, keys, columns: d, ..Block::default() };
    Ok(Batch::new(block, kept))
}

/// Returns the coordinates of vectors, which must all have the same length.
fn all_coordinates(
    file: &str,
    first_row: u64,
    array: &ArrayRef,
    vector: &Vector,
) -> Result<Vec<f64>> {
    let broken = |e: ArrowError| Error::damaged(file, format!("cannot be read: {e}"));
    let n = vector.length;
    vectors(array, n).map_err(broken)?.map_err(|(row, found)| {
        let (row, name) = (first_row + row as u64, &vector.name);
        let how = format!("a vector of {found} numbers, where others have {n}");
        Error::in_file(file, format!("row {row}, column '{name}': {how}"))
    })
}

/// Returns the columns of number lists whose length the schema does not declare.
pub fn lists_of(schema: &SchemaRef) -> Vec<usize> {
    let list =
        |(_, field): &(usize, &Arc<Field>)| matches!(vector_of(field.data_type()), Some((_, None)));
    schema.fields().iter().enumerate().filter(list).map(|(i, _)| i).collect()
}

/// Number of batches that are searched for the lengths of lists.
const LOOKED_AT: usize = 16;

/// Finds the length of the first list in each column. `batches` contain only these columns.
pub fn lengths_of<E: std::fmt::Display>(
    name: &str,
    columns: &[usize],
    batches: impl Iterator<Item = std::result::Result<RecordBatch, E>>,
) -> Result<HashMap<usize, usize>> {
    let mut lengths = HashMap::new();
    let mut batches = batches.take(LOOKED_AT);
    while lengths.len() < columns.len() {
        let Some(batch) = guarded(name, || batches.next().transpose())? else { break };
        for (array, column) in batch.columns().iter().zip(columns) {
            if let Some(length) = first_length(array) {
                lengths.entry(*column).or_insert(length);
            }
        }
    }
    Ok(lengths)
}

/// Returns the length of the first list that is not missing.
pub fn first_length(array: &ArrayRef) -> Option<usize> {
    let row = (0..array.len()).find(|i| array.is_valid(*i))?;
    match array.data_type() {
        DataType::List(_) => usize::try_from(array.as_list::<i32>().value_length(row)).ok(),
        DataType::LargeList(_) => usize::try_from(array.as_list::<i64>().value_length(row)).ok(),
        _ => None,
    }
}

/// Converts the schema of an Arrow table. `lengths` contains the lengths that were found for lists.
pub fn schema_of(
    name: &str,
    schema: &SchemaRef,
    rows: Option<u64>,
    lengths: &HashMap<usize, usize>,
) -> Result<Schema> {
    let indexes = pandas_index(schema);
    let column = |(i, field): (usize, &Arc<Field>)| {
        let kind = kind_of(field.data_type(), lengths.get(&i).copied());
        let holds = match (lengths.get(&i), vector_of(field.data_type())) {
            (Some(n), Some((values, _))) => format!("{}[{n}]", type_name(values)),
            _ => type_name(field.data_type()),
        };
        let index = indexes.contains(field.name());
        Column { name: field.name().clone(), holds, kind, index }
    };
    Schema::named(name, schema.fields().iter().enumerate().map(column).collect(), rows)
}

fn kind_of(data_type: &DataType, length: Option<usize>) -> Kind {
    let vector = vector_of(data_type).map(|(_, declared)| declared.or(length));
    match data_type {
        t if is_numeric(t) => Kind::Number,
        t if is_text(t) => Kind::Text,
        t if is_time(t) => Kind::Date(zone_of(t)),
        DataType::ListView(field) | DataType::LargeListView(field)
            if field.data_type().is_integer() || field.data_type().is_floating() =>
        {
            Kind::View
        }
        _ => match vector {
            Some(None) => Kind::List,
            Some(Some(n)) if (1..=MOST_COORDINATES).contains(&n) => Kind::Vector(n),
            _ => Kind::Other { text: has_text(data_type) },
        },
    }
}

fn zone_of(data_type: &DataType) -> Zone {
    match data_type {
        DataType::Dictionary(_, values) => zone_of(values),
        DataType::Timestamp(_, Some(_)) => Zone::With,
        _ => Zone::Without,
    }
}

thread_local! {
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Suppresses the output of panics that decoders raise on damaged files; these are reported as
/// errors anyway.
///
/// Meant for programs, because it replaces the panic hook of the process.
pub fn quiet_guarded_panics() {
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if !GUARDED.get() {
            report(panic);
        }
    }));
}

/// Converts a panic of a decoder on a damaged file to an ordinary error.
pub fn guarded<T, E: std::fmt::Display>(
    name: &str,
    work: impl FnOnce() -> std::result::Result<T, E>,
) -> Result<T> {
    let outer = GUARDED.replace(true);
    let done = catch_unwind(AssertUnwindSafe(work));
    GUARDED.set(outer);
    match done {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(Error::damaged(name, format!("cannot be read: {error}"))),
        Err(_) => Err(Error::damaged(name, "cannot be read: it is damaged")),
    }
}

/// Rows of an Arrow table, reduced to the required columns.
pub struct ArrowRaw {
    pub batch: RecordBatch,
    pub columns: Arc<Places>,
    pub name: Arc<str>,
}

impl Raw for ArrowRaw {
    fn rows(&self) -> u64 {
        self.batch.num_rows() as u64
    }

    fn decode(self: Box<Self>, first_row: u64) -> nysketch_core::Result<Batch> {
        let rows = self.batch.num_rows();
        let decoded = guarded(&self.name, || {
            let arrays = self.batch.columns();
            Ok::<_, ArrowError>(batch(&self.name, first_row, rows, arrays, &self.columns))
        })?;
        Ok(decoded?)
    }
}
