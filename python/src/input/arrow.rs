//! Anything with the Arrow PyCapsule interface, batch by batch: a table larger than memory streams
//! through.

use super::{Wanted, Weights, listed};
use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi};
use arrow_array::ffi_stream::{FFI_ArrowArrayStream, RecordBatchStreamReader};
use arrow_array::{ArrayRef, RecordBatch, RecordBatchIterator, RecordBatchReader, StructArray};
use arrow_schema::{ArrowError, DataType, Schema, SchemaRef};
use nysketch::rows::part_rows;
use nysketch::{Block, Error, Result, RowPart, RowSet, RowSource, RowStream};
use nysketch_arrow::{is_numeric, numbers};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::ffi::c_str;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use std::sync::{Arc, Mutex, MutexGuard};

type Reader = Box<dyn RecordBatchReader + Send>;

/// A table that can be read again, a stream that cannot, or a function that gives a new one each time.
pub struct ArrowSource {
    origin: Py<PyAny>,
    columns: Vec<String>,
    /// Where the columns stand in a batch, and their types.
    places: Vec<(usize, DataType)>,
    weight: Weight,
    /// The stream that told the schema is also the first to be read.
    first: Mutex<Option<Reader>>,
    /// Rows of the first reading, once it has come to its end.
    rows: Mutex<Option<u64>>,
}

enum Weight {
    None,
    Column(usize),
    Values(Vec<f64>),
}

impl ArrowSource {
    /// The source, and the columns left out because they hold no numbers.
    pub fn new(
        origin: &Bound<'_, PyAny>,
        wanted: Wanted<'_>,
        weights: Weights,
    ) -> PyResult<(Self, Vec<String>)> {
        let reader = reader_of(origin)?;
        let schema = reader.schema();
        let find = |name: &str| -> PyResult<usize> {
            let found: Vec<usize> =
                (0..schema.fields().len()).filter(|i| schema.field(*i).name() == name).collect();
            match found[..] {
                [one] => Ok(one),
                [] => Err(PyValueError::new_err(format!(
                    "X lacks the column '{name}'; it has {}",
                    listed(&names_of(&schema))
                ))),
                _ => Err(PyValueError::new_err(format!("two columns are called '{name}'"))),
            }
        };
        let weight = match weights {
            Weights::None => Weight::None,
            Weights::Values(values) => Weight::Values(values),
            Weights::Column(name) => Weight::Column(find(&name)?),
        };
        let mut left_out = Vec::new();
        let columns = match wanted {
            Wanted::Given(names) => names.to_vec(),
            Wanted::Chosen(Some(names)) => names,
            Wanted::Chosen(None) => {
                let mut chosen = Vec::new();
                for (i, field) in schema.fields().iter().enumerate() {
                    match &weight {
                        Weight::Column(w) if *w == i => {}
                        _ if is_numeric(field.data_type()) => chosen.push(field.name().clone()),
                        _ => left_out.push(format!("{} ({})", field.name(), field.data_type())),
                    }
                }
                if chosen.is_empty() {
                    let message =
                        format!("X has no column of numbers; it has {}", listed(&left_out));
                    return Err(PyValueError::new_err(message));
                }
                chosen
            }
        };
        let mut places = Vec::new();
        for name in &columns {
            let place = find(name)?;
            let data_type = schema.field(place).data_type().clone();
            if !is_numeric(&data_type) {
                let message = format!("column '{name}' of X holds {data_type}, not numbers");
                return Err(PyValueError::new_err(message));
            }
            places.push((place, data_type));
        }
        let source = ArrowSource {
            origin: origin.clone().unbind(),
            columns,
            places,
            weight,
            first: Mutex::new(Some(reader)),
            rows: Mutex::new(None),
        };
        Ok((source, left_out))
    }

    /// The first reader, or a new one.
    fn reader(&self) -> Result<Reader> {
        if let Some(first) = locked(&self.first).take() {
            return Ok(first);
        }
        let reader = Python::attach(|py| reader_of(self.origin.bind(py))).map_err(Error::source)?;
        let schema = reader.schema();
        let same = |(name, (place, data_type)): (&String, &(usize, DataType))| {
            schema
                .fields()
                .get(*place)
                .is_some_and(|f| f.name() == name && f.data_type() == data_type)
        };
        match self.columns.iter().zip(&self.places).all(same) {
            true => Ok(reader),
            false => Err(Error::source("X has other columns than when it was read before")),
        }
    }

    /// Rows are counted at every reading: a stream that was used up would be an empty table.
    fn ended(&self, rows: u64) -> Result<()> {
        if let Weight::Values(weights) = &self.weight
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

    fn block(&self, batch: &RecordBatch, position: u64) -> std::result::Result<Block, ArrowError> {
        let (rows, d) = (batch.num_rows(), self.columns.len());
        let array = |place: usize| -> &ArrayRef { batch.column(place) };
        let mut values = vec![0.0; rows * d];
        for (j, (place, _)) in self.places.iter().enumerate() {
            numbers(array(*place), &mut values, j, d)?;
        }
        let weights = match &self.weight {
            Weight::None => Vec::new(),
            Weight::Column(place) => {
                let mut weights = vec![0.0; rows];
                numbers(array(*place), &mut weights, 0, 1)?;
                weights
            }
            // Too few are told at the end, when it is known how many are wanted.
            Weight::Values(all) => (position as usize..position as usize + rows)
                .map(|i| all.get(i).copied().unwrap_or(0.0))
                .collect(),
        };
        Ok(Block {
            values,
            weights,
            columns: d,
            file: Arc::from("X"),
            first_row: position,
            position,
            ..Block::default()
        })
    }
}

impl RowSource for ArrowSource {
    fn columns(&self) -> &[String] {
        &self.columns
    }

    fn open(&self, _done: &RowSet) -> Result<Box<dyn RowStream<'_> + '_>> {
        Ok(Box::new(ArrowStream {
            source: self,
            reader: Some(self.reader()?),
            batch: None,
            position: 0,
        }))
    }
}

struct ArrowStream<'a> {
    source: &'a ArrowSource,
    /// `None` after the end.
    reader: Option<Reader>,
    /// What is left of the batch at hand.
    batch: Option<RecordBatch>,
    position: u64,
}

impl<'a> RowStream<'a> for ArrowStream<'a> {
    fn next_part(&mut self) -> Option<Box<dyn RowPart + 'a>> {
        let position = self.position;
        let part = |rows| Some(Box::new(ArrowPart { source: self.source, rows, position }) as _);
        loop {
            if let Some(batch) = self.batch.take().filter(|b| b.num_rows() > 0) {
                let rows = batch.num_rows().min(part_rows(self.source.columns.len()));
                self.batch = Some(batch.slice(rows, batch.num_rows() - rows));
                self.position += rows as u64;
                return part(Ok(batch.slice(0, rows)));
            }
            match self.reader.as_mut()?.next() {
                Some(Ok(batch)) => self.batch = Some(batch),
                Some(Err(error)) => {
                    self.reader = None;
                    return part(Err(Error::source(format!("X cannot be read: {error}"))));
                }
                None => {
                    self.reader = None;
                    return match self.source.ended(position) {
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
    position: u64,
}

impl RowPart for ArrowPart<'_> {
    fn position(&self) -> u64 {
        self.position
    }

    fn decode(self: Box<Self>) -> Result<Option<Block>> {
        let ArrowPart { source, rows, position } = *self;
        let block = source.block(&rows?, position);
        block.map(Some).map_err(|e| Error::source(format!("X cannot be read: {e}")))
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|e| e.into_inner())
}

fn names_of(schema: &SchemaRef) -> Vec<String> {
    schema.fields().iter().map(|f| f.name().clone()).collect()
}

/// Starts reading what an object holds, or what the function that it is returns.
fn reader_of(origin: &Bound<'_, PyAny>) -> PyResult<Reader> {
    let unreadable = |e: ArrowError| PyValueError::new_err(format!("X cannot be read: {e}"));
    let origin = &match origin.is_callable() && !origin.hasattr("__arrow_c_stream__")? {
        true => origin.call0()?,
        false => origin.clone(),
    };
    if origin.hasattr("__arrow_c_stream__")? {
        let capsule = origin.call_method0("__arrow_c_stream__")?;
        let capsule = capsule.cast::<PyCapsule>()?;
        let stream = capsule.pointer_checked(Some(c_str!("arrow_array_stream")))?;
        // SAFETY: by the PyCapsule interface a capsule of this name holds an ArrowArrayStream, which is
        // moved out; what is left behind is marked as released.
        let stream = unsafe { FFI_ArrowArrayStream::from_raw(stream.as_ptr().cast()) };
        let reader = RecordBatchStreamReader::try_new(stream).map_err(unreadable)?;
        return Ok(Box::new(reader));
    }
    if origin.hasattr("__arrow_c_array__")? {
        let pair = origin.call_method0("__arrow_c_array__")?;
        let (schema, array): (Bound<'_, PyCapsule>, Bound<'_, PyCapsule>) = pair.extract()?;
        let schema = schema.pointer_checked(Some(c_str!("arrow_schema")))?;
        let array = array.pointer_checked(Some(c_str!("arrow_array")))?;
        // SAFETY: by the PyCapsule interface capsules of these names hold an ArrowSchema and an
        // ArrowArray that belong together; both are moved out and marked as released.
        let data = unsafe {
            let schema = FFI_ArrowSchema::from_raw(schema.as_ptr().cast());
            let array = FFI_ArrowArray::from_raw(array.as_ptr().cast());
            from_ffi(array, &schema)
        };
        let data = data.map_err(unreadable)?;
        if !matches!(data.data_type(), DataType::Struct(_)) {
            return Err(PyValueError::new_err("X is one Arrow array; a table has named columns"));
        }
        let batch = RecordBatch::from(StructArray::from(data));
        let schema: Arc<Schema> = batch.schema();
        return Ok(Box::new(RecordBatchIterator::new([Ok(batch)], schema)));
    }
    Err(PyTypeError::new_err(format!(
        "X must be an array, or have the Arrow stream interface, or be a function that returns such a stream; got {}",
        origin.get_type().name()?
    )))
}
