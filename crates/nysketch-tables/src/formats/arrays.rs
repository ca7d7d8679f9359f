//! From Arrow tables to numbers and text: what Parquet and Arrow files have in common.

use crate::arrow::{
    codes, is_numeric, is_text, is_time, numbers, pandas_index, texts, times, type_name, vector_of,
    vectors,
};
use crate::batch::Batch;
use crate::error::{Error, Result};
use crate::places::{Places, Text, Value};
use crate::schema::{Column, Kind, MOST_COORDINATES, Schema, Zone};
use crate::text::has_text;
use crate::texts::fill;
use crate::track::Raw;
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch, StringArray};
use arrow_schema::{ArrowError, DataType, Field, SchemaRef};
use nysketch::Block;
use nysketch::rows::MISSING;
use std::cell::Cell;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// A batch of the wanted columns; `arrays` holds those at `columns.projection`, in that order.
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
        let n = vector.length;
        let all = vectors(at(vector.column), n).map_err(broken)?.map_err(|(row, found)| {
            let (row, name) = (first_row + row as u64, &vector.name);
            let how = format!("a vector of {found} numbers, where others have {n}");
            Error::in_file(file, format!("row {row}, column '{name}': {how}"))
        })?;
        for (row, vector_of_row) in values.chunks_exact_mut(d).zip(all.chunks_exact(n)) {
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
    let keys = match &columns.key {
        None => Vec::new(),
        Some(Text::Constant(text)) => vec![text.clone(); rows],
        Some(Text::Column(column)) => texts(at(*column)).map_err(broken)?,
    };
    let wide = columns.categories.len();
    let mut levels = vec![MISSING; rows * wide];
    let categories = columns.categories.iter().zip(&columns.names.categories);
    for (k, (text, category)) in categories.enumerate() {
        match text {
            Text::Column(column) => {
                codes(at(*column), &category.vocabulary, &mut levels, k, wide).map_err(broken)?;
            }
            Text::Constant(text) => {
                fill(&category.vocabulary, text.as_deref(), &mut levels, k, wide)
            }
        }
    }
    let kept = columns.kept.iter().map(|text| match text {
        Text::Column(column) => at(*column).clone(),
        Text::Constant(text) => Arc::new(StringArray::from(vec![text.as_deref(); rows])) as _,
    });
    let kept = kept.collect();
    let block = Block { values, codes: levels, weights, keys, columns: d, ..Block::default() };
    Ok(Batch::new(block, kept))
}

/// The columns of lists of numbers, whose length the schema does not tell.
pub fn lists_of(schema: &SchemaRef) -> Vec<usize> {
    let list =
        |(_, field): &(usize, &Arc<Field>)| matches!(vector_of(field.data_type()), Some((_, None)));
    schema.fields().iter().enumerate().filter(list).map(|(i, _)| i).collect()
}

/// Batches that are looked at for the lengths of lists.
const LOOKED_AT: usize = 16;

/// The length of the first list in each of these columns; `batches` hold these columns alone.
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

/// The length of the first list of an array that is not missing.
pub fn first_length(array: &ArrayRef) -> Option<usize> {
    let row = (0..array.len()).find(|i| array.is_valid(*i))?;
    match array.data_type() {
        DataType::List(_) => usize::try_from(array.as_list::<i32>().value_length(row)).ok(),
        DataType::LargeList(_) => usize::try_from(array.as_list::<i64>().value_length(row)).ok(),
        _ => None,
    }
}

/// What the schema of an Arrow table says about its columns. Lists have the lengths that were found.
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

    fn decode(self: Box<Self>, first_row: u64) -> nysketch::Result<Batch> {
        let rows = self.batch.num_rows();
        let decoded = guarded(&self.name, || {
            let arrays = self.batch.columns();
            Ok::<_, ArrowError>(batch(&self.name, first_row, rows, arrays, &self.columns))
        })?;
        Ok(decoded?)
    }
}
