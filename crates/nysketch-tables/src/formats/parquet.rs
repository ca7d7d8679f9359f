//! Parquet files: the wanted columns alone, one track per row group.

use super::arrays::{ArrowRaw, guarded, schema_of};
use super::stored::Stored;
use crate::arrow::is_numeric;
use crate::columns::{Places, Schema};
use crate::error::{Error, Result};
use crate::meter::Meter;
use crate::store;
use crate::track::{Raw, Track};
use arrow_schema::{DataType, SchemaRef};
use bytes::Bytes;
use nysketch::rows::part_rows;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader,
    ParquetRecordBatchReaderBuilder,
};
use parquet::errors::ParquetError;
use parquet::file::reader::{ChunkReader, Length};
use std::io::{self, BufReader, Read, SeekFrom};
use std::sync::{Arc, Mutex};

/// A Parquet file.
#[derive(Debug)]
pub struct Parquet {
    file: Stored,
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
    pub fn open(file: Stored) -> Result<(Self, Schema)> {
        let chunks = Chunks::open(&file)?;
        let (name, bytes) = (&file.name, chunks.length);
        let metadata = load(name, &chunks)?;
        let rows = |i: usize| u64::try_from(metadata.metadata().row_group(i).num_rows()).ok();
        let groups: Option<Vec<u64>> =
            (0..metadata.metadata().num_row_groups()).map(rows).collect();
        let Some(groups) = groups else {
            let how = "is damaged: a row group has a negative number of rows";
            return Err(Error::damaged(name, how));
        };
        let rows = groups.iter().fold(0u64, |total, rows| total.saturating_add(*rows));
        let schema = schema_of(name, metadata.schema(), Some(rows))?;
        let arrow = metadata.schema().clone();
        let metadata = Mutex::default();
        Ok((Parquet { file, bytes, schema: arrow, groups, rows, metadata }, schema))
    }

    /// Rows of each row group.
    pub fn groups(&self) -> &[u64] {
        &self.groups
    }

    /// The types of its columns.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Starts reading a row group after this many of its rows.
    pub fn track(
        &self,
        group: usize,
        skip: u64,
        columns: &Arc<Places>,
        meter: &Arc<Meter>,
    ) -> Result<ParquetTrack> {
        let chunks = Chunks::open(&self.file)?;
        let metadata = self.metadata(group, &chunks)?;
        let roots = columns.projection.iter().copied();
        let mask = ProjectionMask::roots(metadata.parquet_schema(), roots);
        let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(chunks, metadata)
            .with_row_groups(vec![group])
            .with_projection(mask)
            .with_batch_size(part_rows(columns.values.len()))
            .with_offset(skip as usize);
        Ok(ParquetTrack {
            reader: guarded(&self.file.name, || builder.build())?,
            columns: columns.clone(),
            name: self.file.name.clone(),
            meter: meter.clone(),
            bytes_per_row: self.bytes as f64 / self.rows.max(1) as f64,
        })
    }

    fn metadata(&self, group: usize, chunks: &Chunks) -> Result<ArrowReaderMetadata> {
        let mut kept = self.metadata.lock().unwrap_or_else(|e| e.into_inner());
        let metadata = match kept.take() {
            Some(metadata) => metadata,
            None => load(&self.file.name, chunks)?,
        };
        let rows = metadata.metadata().row_groups().iter().map(|g| g.num_rows());
        if rows.ne(self.groups.iter().map(|rows| *rows as i64)) {
            return Err(Error::damaged(&self.file.name, "was changed while it was read"));
        }
        if group + 1 < self.groups.len() {
            *kept = Some(metadata.clone());
        }
        Ok(metadata)
    }
}

fn load(name: &str, chunks: &Chunks) -> Result<ArrowReaderMetadata> {
    let load = |options| guarded(name, || ArrowReaderMetadata::load(chunks, options));
    let metadata = load(ArrowReaderOptions::new())?;
    // The reader makes dictionaries of texts only; other columns it can read as plain ones.
    let unreadable = |t: &DataType| match t {
        DataType::Dictionary(_, values) => is_numeric(values),
        _ => false,
    };
    match metadata.schema().fields().iter().any(|f| unreadable(f.data_type())) {
        true => load(ArrowReaderOptions::new().with_skip_arrow_metadata(true)),
        false => Ok(metadata),
    }
}

/// Stored bytes as the Parquet crate wants them: from any place, by a shared reference.
struct Chunks {
    file: Arc<Mutex<Box<dyn store::Bytes>>>,
    length: u64,
}

impl Chunks {
    fn open(file: &Stored) -> Result<Self> {
        let mut bytes = file.open()?;
        let length = bytes.seek(SeekFrom::End(0)).map_err(|e| Error::read(&file.name, e))?;
        Ok(Chunks { file: Arc::new(Mutex::new(bytes)), length })
    }

    fn at(&self, at: u64) -> ChunkBytes {
        ChunkBytes { file: self.file.clone(), at }
    }
}

impl Length for Chunks {
    fn len(&self) -> u64 {
        self.length
    }
}

impl ChunkReader for Chunks {
    type T = BufReader<ChunkBytes>;

    fn get_read(&self, start: u64) -> Result<Self::T, ParquetError> {
        Ok(BufReader::new(self.at(start)))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        // A damaged file may declare more than there is.
        let mut bytes = Vec::with_capacity(length.min(self.length as usize));
        let read = self.at(start).take(length as u64).read_to_end(&mut bytes)?;
        match read == length {
            true => Ok(bytes.into()),
            false => Err(ParquetError::EOF(format!("expected {length} bytes, found {read}"))),
        }
    }
}

/// Bytes from one place on; each reader has a place of its own.
struct ChunkBytes {
    file: Arc<Mutex<Box<dyn store::Bytes>>>,
    at: u64,
}

impl Read for ChunkBytes {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut file = self.file.lock().unwrap_or_else(|e| e.into_inner());
        file.seek(SeekFrom::Start(self.at))?;
        let read = file.read(buffer)?;
        self.at += read as u64;
        Ok(read)
    }
}

/// A row group being read.
pub struct ParquetTrack {
    reader: ParquetRecordBatchReader,
    columns: Arc<Places>,
    name: Arc<str>,
    meter: Arc<Meter>,
    bytes_per_row: f64,
}

impl Track for ParquetTrack {
    fn read(&mut self) -> nysketch::Result<Option<Box<dyn Raw>>> {
        let batch = guarded(&self.name, || self.reader.next().transpose())?;
        let Some(batch) = batch else { return Ok(None) };
        self.meter.add((batch.num_rows() as f64 * self.bytes_per_row) as u64);
        Ok(Some(Box::new(ArrowRaw {
            batch,
            columns: self.columns.clone(),
            name: self.name.clone(),
        })))
    }
}
