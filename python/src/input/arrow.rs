//! Anything with the Arrow PyCapsule interface, batch by batch: a table larger than memory streams
//! through.

use super::stream::{Reader, reader_of};
use super::{Extras, Wanted, Weights, listed};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{ArrowError, DataType, SchemaRef};
use nysketch::rows::part_rows;
use nysketch::{Block, Error, Result, RowPart, RowSet, RowSource, RowStream};
use nysketch_tables::arrow::{is_numeric, numbers, pandas_index, texts};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::sync::{Arc, Mutex, MutexGuard};

/// A table that can be read again, a stream that cannot, or a function that gives a new one each time.
pub struct ArrowSource {
    origin: Py<PyAny>,
    columns: Vec<String>,
    /// Where the columns stand in a batch, and their types.
    places: Vec<(usize, DataType)>,
    weight: Weight,
    /// Where the column of groups stands.
    key: Option<usize>,
    /// Position of the first row.
    start: u64,
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
    /// The source, and notes about columns that are left out.
    pub fn new(
        origin: &Bound<'_, PyAny>,
        wanted: Wanted<'_>,
        extras: Extras,
    ) -> PyResult<(Self, Vec<String>)> {
        let reader = reader_of(origin)?;
        let schema = reader.schema.clone();
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
        let weight = match extras.weights {
            Weights::None => Weight::None,
            Weights::Values(values) => Weight::Values(values),
            Weights::Column(name) => Weight::Column(find(&name)?),
        };
        let key = extras.key.map(|name| find(&name)).transpose()?;
        if matches!(wanted, Wanted::Numbers | Wanted::All) {
            extras.exclude.iter().try_for_each(|name| find(name).map(drop))?;
        }
        let excluded = |name: &String| extras.exclude.contains(name);
        let (mut left_out, mut index) = (Vec::new(), Vec::new());
        let columns = match &wanted {
            Wanted::Given(names) => names.to_vec(),
            Wanted::Chosen(names) => names.iter().filter(|n| !excluded(n)).cloned().collect(),
            Wanted::Numbers | Wanted::All => {
                let all = matches!(wanted, Wanted::All);
                let indexes = pandas_index(&schema);
                let mut chosen = Vec::new();
                for (i, field) in schema.fields().iter().enumerate() {
                    match &weight {
                        Weight::Column(w) if *w == i => {}
                        _ if key == Some(i) || excluded(field.name()) => {}
                        _ if all => chosen.push(field.name().clone()),
                        _ if indexes.contains(field.name()) => index.push(field.name().clone()),
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
            key,
            start: extras.position,
            first: Mutex::new(Some(reader)),
            rows: Mutex::new(None),
        };
        let listed = |what: &str, names: Vec<String>| {
            (!names.is_empty()).then(|| format!("{what}: {}", names.join(", ")))
        };
        let left_out = listed("columns skipped because they hold no numbers", left_out);
        let index = listed("columns skipped because they are the index", index);
        Ok((source, left_out.into_iter().chain(index).collect()))
    }

    /// The first reader, or a new one.
    fn reader(&self) -> Result<Reader> {
        if let Some(first) = locked(&self.first).take() {
            return Ok(first);
        }
        let reader = Python::attach(|py| reader_of(self.origin.bind(py))).map_err(Error::source)?;
        let schema = &reader.schema;
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

    /// The rows of a batch, of which the first is the `row`-th of all.
    fn block(&self, batch: &RecordBatch, row: u64) -> std::result::Result<Block, ArrowError> {
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
            Weight::Values(all) => (row as usize..row as usize + rows)
                .map(|i| all.get(i).copied().unwrap_or(0.0))
                .collect(),
        };
        Ok(Block {
            codes: Vec::new(),
            values,
            weights,
            keys: self.key.map_or(Ok(Vec::new()), |place| texts(array(place)))?,
            columns: d,
            file: Arc::from("X"),
            first_row: row,
            position: self.start + row,
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
            row: 0,
        }))
    }
}

struct ArrowStream<'a> {
    source: &'a ArrowSource,
    /// `None` after the end.
    reader: Option<Reader>,
    /// What is left of the batch at hand.
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
        loop {
            if let Some(batch) = self.batch.take().filter(|b| b.num_rows() > 0) {
                let rows = batch.num_rows().min(part_rows(self.source.columns.len()));
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
    /// Number of the first of them.
    row: u64,
}

impl RowPart for ArrowPart<'_> {
    fn position(&self) -> u64 {
        self.source.start + self.row
    }

    fn decode(self: Box<Self>) -> Result<Option<Block>> {
        let ArrowPart { source, rows, row } = *self;
        let block = source.block(&rows?, row);
        block.map(Some).map_err(|e| Error::source(format!("X cannot be read: {e}")))
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|e| e.into_inner())
}

fn names_of(schema: &SchemaRef) -> Vec<String> {
    schema.fields().iter().map(|f| f.name().clone()).collect()
}
