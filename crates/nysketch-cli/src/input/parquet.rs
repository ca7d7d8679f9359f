//! Parquet files: the wanted columns alone, one lane a row group.

use super::arrays::{ArrowRaw, guarded, schema_of};
use super::lanes::{Lane, Raw};
use super::{Columns, Meter, Schema, part_rows};
use anyhow::{Result, anyhow};
use arrow_schema::{DataType, SchemaRef};
use nysketch::Error;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader,
    ParquetRecordBatchReaderBuilder,
};
use std::fs::File;
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
    groups: Vec<u64>,
    rows: u64,
    /// Kept from the first row group that is opened to the last.
    metadata: Mutex<Option<ArrowReaderMetadata>>,
}

impl Parquet {
    /// Reads the footer.
    pub fn open(path: &Path, name: Arc<str>) -> Result<(Self, Schema)> {
        let file = File::open(path).map_err(|e| anyhow!("cannot read {name}: {e}"))?;
        let bytes = file.metadata().map_or(0, |m| m.len());
        let metadata = load(&name, &file).map_err(|e| anyhow!(e))?;
        let rows = |i: usize| u64::try_from(metadata.metadata().row_group(i).num_rows()).ok();
        let groups: Option<Vec<u64>> =
            (0..metadata.metadata().num_row_groups()).map(rows).collect();
        let Some(groups) = groups else {
            return Err(anyhow!("{name} is damaged: a row group has a negative number of rows"));
        };
        let rows = groups.iter().fold(0u64, |total, rows| total.saturating_add(*rows));
        let schema = schema_of(&name, metadata.schema(), Some(rows))?;
        let arrow = metadata.schema().clone();
        let path = path.to_path_buf();
        let metadata = Mutex::default();
        Ok((Parquet { name, path, bytes, schema: arrow, groups, rows, metadata }, schema))
    }

    /// Rows of each row group.
    pub fn groups(&self) -> &[u64] {
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
        Ok(ParquetLane {
            reader: build().map_err(Error::source)?,
            columns: columns.clone(),
            name: self.name.clone(),
            meter: meter.clone(),
            bytes_per_row: self.bytes as f64 / self.rows.max(1) as f64,
        })
    }

    fn metadata(&self, group: usize, file: &File) -> Result<ArrowReaderMetadata, String> {
        let mut kept = self.metadata.lock().unwrap_or_else(|e| e.into_inner());
        let metadata = match kept.take() {
            Some(metadata) => metadata,
            None => load(&self.name, file)?,
        };
        let rows = metadata.metadata().row_groups().iter().map(|g| g.num_rows());
        if rows.ne(self.groups.iter().map(|rows| *rows as i64)) {
            return Err(format!("{} was changed while it was read", self.name));
        }
        if group + 1 < self.groups.len() {
            *kept = Some(metadata.clone());
        }
        Ok(metadata)
    }
}

fn load(name: &str, file: &File) -> Result<ArrowReaderMetadata, String> {
    let load = |options| guarded(name, || ArrowReaderMetadata::load(file, options));
    let metadata = load(ArrowReaderOptions::new())?;
    // The reader makes dictionaries of texts only; other columns it can read as plain ones.
    let unreadable = |t: &DataType| match t {
        DataType::Dictionary(_, values) => nysketch_arrow::is_numeric(values),
        _ => false,
    };
    match metadata.schema().fields().iter().any(|f| unreadable(f.data_type())) {
        true => load(ArrowReaderOptions::new().with_skip_arrow_metadata(true)),
        false => Ok(metadata),
    }
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
