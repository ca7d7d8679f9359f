//! Arrow IPC: files and streams, also from stdin.

use super::lanes::{Lane, Raw};
use super::parquet::{ArrowRaw, guarded, schema_of};
use super::{Columns, Meter, Schema, part_rows};
use anyhow::{Result, anyhow};
use arrow_array::RecordBatch;
use arrow_ipc::reader::{FileReader, StreamReader};
use arrow_schema::{ArrowError, SchemaRef};
use nysketch::Error;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// How a file starts.
pub const FILE_MAGIC: &[u8] = b"ARROW1";
/// How a stream starts: a continuation marker.
pub const STREAM_MAGIC: &[u8] = b"\xff\xff\xff\xff";

type Batches = Box<dyn Iterator<Item = Result<RecordBatch, ArrowError>> + Send>;

/// An Arrow file or stream, or stdin, which can be read only once.
pub struct Ipc {
    name: Arc<str>,
    path: Option<PathBuf>,
    schema: SchemaRef,
    stdin: Mutex<Option<Batches>>,
}

impl std::fmt::Debug for Ipc {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ipc").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Ipc {
    /// Opens a file.
    pub fn open(path: &Path, name: Arc<str>) -> Result<(Self, Schema)> {
        let file = File::open(path).map_err(|e| anyhow!("cannot read {name}: {e}"))?;
        let (arrow, _) = batches(&name, file).map_err(|e| anyhow!(e))?;
        let schema = schema_of(&name, &arrow, None)?;
        let path = Some(path.to_path_buf());
        Ok((Ipc { name, path, schema: arrow, stdin: Mutex::default() }, schema))
    }

    /// Reads the schema from stdin and keeps the rest for the one lane there can be.
    pub fn stdin(source: impl Read + Send + 'static) -> Result<(Self, Schema)> {
        let name: Arc<str> = Arc::from("stdin");
        let (arrow, batches) = stream(&name, source).map_err(|e| anyhow!(e))?;
        let schema = schema_of(&name, &arrow, None)?;
        Ok((Ipc { name, path: None, schema: arrow, stdin: Mutex::new(Some(batches)) }, schema))
    }

    /// The types of its columns.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Starts reading.
    pub fn lane(&self, columns: &Arc<Columns>, meter: &Arc<Meter>) -> nysketch::Result<IpcLane> {
        let batches = match &self.path {
            Some(path) => {
                let file = File::open(path);
                let file =
                    file.map_err(|e| Error::source(format!("cannot read {}: {e}", self.name)));
                batches(&self.name, meter.count(file?)).map_err(Error::source)?.1
            }
            None => {
                let mut stdin = self.stdin.lock().unwrap_or_else(|e| e.into_inner());
                stdin.take().ok_or_else(|| Error::source("stdin can be read only once"))?
            }
        };
        Ok(IpcLane {
            batches,
            batch: None,
            at: 0,
            columns: columns.clone(),
            name: self.name.clone(),
        })
    }
}

/// The batches of a file: by its footer where it has one, so that none can be missing.
fn batches(
    name: &str,
    file: impl Read + std::io::Seek + Send + 'static,
) -> Result<(SchemaRef, Batches), String> {
    let mut file = BufReader::with_capacity(1 << 17, file);
    let mut start = [0; 8];
    let cannot = |e| format!("cannot read {name}: {e}");
    file.read_exact(&mut start).map_err(cannot)?;
    std::io::Seek::rewind(&mut file).map_err(cannot)?;
    if !start.starts_with(FILE_MAGIC) {
        return stream(name, file);
    }
    let reader = guarded(name, || FileReader::try_new(file, None))?;
    Ok((reader.schema(), Box::new(reader)))
}

/// The batches of a stream. One in the file format is a stream after its first bytes, which are
/// padded with zeros to a multiple of eight.
fn stream(name: &str, source: impl Read + Send + 'static) -> Result<(SchemaRef, Batches), String> {
    let mut source = BufReader::with_capacity(1 << 17, source);
    let cannot = |e| format!("cannot read {name}: {e}");
    if source.fill_buf().map_err(cannot)?.starts_with(FILE_MAGIC) {
        source.consume(8);
        while source.fill_buf().map_err(cannot)?.starts_with(&[0; 8]) {
            source.consume(8);
        }
    }
    let last = Arc::new(Mutex::new([0; 8]));
    let source = Tail { source, last: last.clone() };
    let reader = guarded(name, || StreamReader::try_new(source, None))?;
    Ok((reader.schema(), Box::new(Whole { reader: Some(reader), last })))
}

/// Remembers the last eight bytes.
struct Tail<R> {
    source: R,
    last: Arc<Mutex<[u8; 8]>>,
}

impl<R: Read> Read for Tail<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let n = self.source.read(buffer)?;
        let mut last = self.last.lock().unwrap_or_else(|e| e.into_inner());
        let fresh = &buffer[n.saturating_sub(8)..n];
        last.rotate_left(fresh.len());
        last[8 - fresh.len()..].copy_from_slice(fresh);
        Ok(n)
    }
}

/// A stream that must end with its marker: one that was cut between two batches reads well, too.
struct Whole<R: Read> {
    reader: Option<StreamReader<R>>,
    last: Arc<Mutex<[u8; 8]>>,
}

impl<R: Read> Iterator for Whole<R> {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.reader.as_mut()?.next();
        if next.is_none() {
            self.reader = None;
            let last = self.last.lock().unwrap_or_else(|e| e.into_inner());
            if *last != *b"\xff\xff\xff\xff\0\0\0\0" {
                let message = "the stream ends before its end marker; it is truncated";
                return Some(Err(ArrowError::IpcError(message.into())));
            }
        }
        next
    }
}

/// An Arrow file being read.
pub struct IpcLane {
    batches: Batches,
    batch: Option<RecordBatch>,
    at: usize,
    columns: Arc<Columns>,
    name: Arc<str>,
}

impl Lane for IpcLane {
    fn read(&mut self) -> nysketch::Result<Option<Box<dyn Raw>>> {
        loop {
            if let Some(batch) = &self.batch
                && self.at < batch.num_rows()
            {
                let rows = (batch.num_rows() - self.at).min(part_rows(self.columns.values.len()));
                let batch = batch.slice(self.at, rows);
                self.at += rows;
                let (columns, name) = (self.columns.clone(), self.name.clone());
                return Ok(Some(Box::new(ArrowRaw { batch, columns, name })));
            }
            let next = guarded(&self.name, || self.batches.next().transpose());
            let Some(batch) = next.map_err(Error::source)? else { return Ok(None) };
            let wanted = batch.project(&self.columns.projection);
            self.batch = Some(wanted.map_err(Error::source)?);
            self.at = 0;
        }
    }
}
