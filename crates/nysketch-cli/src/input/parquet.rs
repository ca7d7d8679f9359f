//! Parquet files: the wanted columns alone, one lane a row group.

use super::lanes::{Lane, Raw};
use super::{Batch, Columns, Kind, Meter, Schema, arrays, part_rows};
use anyhow::{Result, anyhow};
use arrow_array::RecordBatch;
use arrow_schema::{Field, SchemaRef};
use nysketch::Error;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader,
    ParquetRecordBatchReaderBuilder,
};
use std::cell::Cell;
use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// A Parquet file.
#[derive(Debug)]
pub struct Parquet {
    name: Arc<str>,
    path: PathBuf,
    bytes: u64,
    schema: SchemaRef,
    /// Rows of each row group.
    groups: Vec<Option<u64>>,
    /// Kept from the first row group that is opened to the last.
    metadata: Mutex<Option<ArrowReaderMetadata>>,
}

/// What the schema of an Arrow table says about its columns.
pub fn schema_of(name: &str, schema: &SchemaRef, rows: Option<u64>) -> Result<Schema> {
    let names: Vec<String> = schema.fields().iter().map(|f| f.name().clone()).collect();
    let mut seen = std::collections::HashSet::new();
    if let Some(twice) = names.iter().find(|n| !seen.insert(*n)) {
        return Err(anyhow!("{name}: two columns are called '{twice}'"));
    }
    let kind = |field: &Arc<Field>| match field.data_type() {
        t if arrays::is_numeric(t) => Kind::Number,
        t => Kind::Other(t.to_string()),
    };
    let kinds = schema.fields().iter().map(kind).collect();
    Ok(Schema { names, named: true, kinds, rows })
}

thread_local! {
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// From now on panics that are caught by [`guarded`] are not reported as such.
pub fn quiet_guarded_panics() {
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if !GUARDED.get() {
            report(panic);
        }
    }));
}

/// A damaged file may make the decoder panic; here that is an error like others.
pub fn guarded<T, E: std::fmt::Display>(
    name: &str,
    work: impl FnOnce() -> Result<T, E>,
) -> Result<T, String> {
    let outer = GUARDED.replace(true);
    let done = catch_unwind(AssertUnwindSafe(work));
    GUARDED.set(outer);
    match done {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(format!("{name} cannot be read: {error}")),
        Err(_) => Err(format!("{name} cannot be read: it is damaged")),
    }
}

impl Parquet {
    /// Reads the footer.
    pub fn open(path: &Path, name: Arc<str>) -> Result<(Self, Schema)> {
        let file = File::open(path).map_err(|e| anyhow!("cannot read {name}: {e}"))?;
        let bytes = file.metadata().map_or(0, |m| m.len());
        let metadata = load(&name, &file).map_err(|e| anyhow!(e))?;
        let rows = |i: usize| u64::try_from(metadata.metadata().row_group(i).num_rows()).ok();
        let groups: Vec<Option<u64>> =
            (0..metadata.metadata().num_row_groups()).map(rows).collect();
        let Some(total) = groups.iter().copied().sum::<Option<u64>>() else {
            return Err(anyhow!("{name} is damaged: a row group has a negative number of rows"));
        };
        let schema = schema_of(&name, metadata.schema(), Some(total))?;
        let arrow = metadata.schema().clone();
        let path = path.to_path_buf();
        Ok((
            Parquet { name, path, bytes, schema: arrow, groups, metadata: Mutex::default() },
            schema,
        ))
    }

    /// Rows of each row group.
    pub fn groups(&self) -> &[Option<u64>] {
        &self.groups
    }

    /// The types of its columns.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Starts reading a row group after so many of its rows.
    pub fn lane(
        &self,
        group: usize,
        skip: u64,
        columns: &Arc<Columns>,
        meter: &Arc<Meter>,
    ) -> nysketch::Result<ParquetLane> {
        let open = || File::open(&self.path).map_err(|e| format!("cannot read {}: {e}", self.name));
        let build = || -> Result<ParquetRecordBatchReader, String> {
            let file = open()?;
            let metadata = self.metadata(group, &file)?;
            let roots = columns.projection.iter().copied();
            let mask = ProjectionMask::roots(metadata.parquet_schema(), roots);
            let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(file, metadata)
                .with_row_groups(vec![group])
                .with_projection(mask)
                .with_batch_size(part_rows(columns.values.len()))
                .with_offset(skip as usize);
            guarded(&self.name, || builder.build())
        };
        let total: u64 = self.groups.iter().flatten().sum();
        Ok(ParquetLane {
            reader: build().map_err(Error::source)?,
            columns: columns.clone(),
            name: self.name.clone(),
            meter: meter.clone(),
            bytes_per_row: self.bytes as f64 / total.max(1) as f64,
        })
    }

    fn metadata(&self, group: usize, file: &File) -> Result<ArrowReaderMetadata, String> {
        let mut kept = self.metadata.lock().unwrap_or_else(|e| e.into_inner());
        let metadata = match kept.take() {
            Some(metadata) => metadata,
            None => load(&self.name, file)?,
        };
        if metadata.metadata().num_row_groups() != self.groups.len() {
            return Err(format!("{} was changed while it was read", self.name));
        }
        if group + 1 < self.groups.len() {
            *kept = Some(metadata.clone());
        }
        Ok(metadata)
    }
}

fn load(name: &str, file: &File) -> Result<ArrowReaderMetadata, String> {
    guarded(name, || ArrowReaderMetadata::load(file, ArrowReaderOptions::new()))
}

/// A row group being read.
pub struct ParquetLane {
    reader: ParquetRecordBatchReader,
    columns: Arc<Columns>,
    name: Arc<str>,
    meter: Arc<Meter>,
    bytes_per_row: f64,
}

impl Lane for ParquetLane {
    fn read(&mut self) -> nysketch::Result<Option<Box<dyn Raw>>> {
        let batch =
            guarded(&self.name, || self.reader.next().transpose()).map_err(Error::source)?;
        let Some(batch) = batch else { return Ok(None) };
        self.meter.add((batch.num_rows() as f64 * self.bytes_per_row) as u64);
        Ok(Some(Box::new(ArrowRaw {
            batch,
            columns: self.columns.clone(),
            name: self.name.clone(),
        })))
    }
}

/// Rows of an Arrow table, of which only the wanted columns are left.
pub struct ArrowRaw {
    pub batch: RecordBatch,
    pub columns: Arc<Columns>,
    pub name: Arc<str>,
}

impl Raw for ArrowRaw {
    fn rows(&self) -> u64 {
        self.batch.num_rows() as u64
    }

    fn decode(self: Box<Self>, _first_row: u64) -> nysketch::Result<Batch> {
        let decoded = guarded(&self.name, || arrays::batch(self.batch.columns(), &self.columns));
        decoded.map_err(Error::source)
    }
}
