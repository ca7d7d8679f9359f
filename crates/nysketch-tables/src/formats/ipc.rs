//! Arrow IPC: files and streams, also from stdin.

use super::arrays::{ArrowRaw, guarded, schema_of};
use super::stored::Stored;
use crate::columns::{Places, Schema};
use crate::error::{Error, Result};
use crate::find::{ARROW_FILE, peek};
use crate::meter::Meter;
use crate::track::{Raw, Track};
use arrow_array::RecordBatch;
use arrow_ipc::reader::{FileReader, StreamReader};
use arrow_schema::{ArrowError, SchemaRef};
use nysketch::rows::part_rows;
use std::io::{BufReader, Cursor, ErrorKind, Read, Seek};
use std::sync::{Arc, Mutex};

type NextBatch = std::result::Result<RecordBatch, ArrowError>;
type Batches = Box<dyn Iterator<Item = NextBatch> + Send>;

/// An Arrow file or stream, or stdin, which can be read only once.
pub struct Ipc {
    name: Arc<str>,
    /// `None` for stdin.
    file: Option<Stored>,
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
    pub fn open(file: Stored) -> Result<(Self, Schema)> {
        let name = file.name.clone();
        let (arrow, _) = batches(&name, file.open()?, None)?;
        let schema = schema_of(&name, &arrow, None)?;
        Ok((Ipc { name, file: Some(file), schema: arrow, stdin: Mutex::default() }, schema))
    }

    /// Reads the schema from stdin and keeps the rest for the one track there can be.
    pub fn stdin(source: impl Read + Send + 'static) -> Result<(Self, Schema)> {
        let name: Arc<str> = Arc::from("stdin");
        let (arrow, batches) = stream(&name, source, None)?;
        let schema = schema_of(&name, &arrow, None)?;
        Ok((Ipc { name, file: None, schema: arrow, stdin: Mutex::new(Some(batches)) }, schema))
    }

    /// The types of its columns.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Starts reading.
    pub fn track(&self, columns: &Arc<Places>, meter: &Arc<Meter>) -> Result<IpcTrack> {
        let batches = match &self.file {
            Some(file) => {
                let file = meter.count(file.open()?);
                batches(&self.name, file, Some(&columns.projection))?.1
            }
            None => {
                let mut stdin = self.stdin.lock().unwrap_or_else(|e| e.into_inner());
                stdin.take().ok_or_else(|| Error::damaged("stdin", "can be read only once"))?
            }
        };
        let (columns, name) = (columns.clone(), self.name.clone());
        Ok(IpcTrack { batches, batch: None, at: 0, columns, name })
    }
}

/// The batches of a file: by its footer where it has one, so that none can be missing.
fn batches(
    name: &str,
    file: impl Read + Seek + Send + 'static,
    columns: Option<&[usize]>,
) -> Result<(SchemaRef, Batches)> {
    let mut file = BufReader::with_capacity(1 << 17, file);
    let cannot = |e| Error::read(name, e);
    let (start, _) = peek(&mut file).map_err(cannot)?;
    file.rewind().map_err(cannot)?;
    if !start.starts_with(ARROW_FILE) {
        return stream(name, file, columns);
    }
    let reader = guarded(name, || FileReader::try_new(file, columns.map(|c| c.to_vec())))?;
    let left = reader.num_batches();
    Ok((reader.schema(), Box::new(Counted { batches: reader, left })))
}

/// As many batches as the footer says.
struct Counted<I> {
    batches: I,
    left: usize,
}

impl<I: Iterator<Item = NextBatch>> Iterator for Counted<I> {
    type Item = NextBatch;

    fn next(&mut self) -> Option<Self::Item> {
        match self.batches.next() {
            None if self.left > 0 => {
                let message = format!("it is damaged: {} batches are missing", self.left);
                self.left = 0;
                Some(Err(ArrowError::IpcError(message)))
            }
            next => {
                self.left = self.left.saturating_sub(1);
                next
            }
        }
    }
}

/// The batches of a stream. One in the file format is a stream after its first bytes, which are
/// padded with zeros to a multiple of eight.
fn stream(
    name: &str,
    source: impl Read + Send + 'static,
    columns: Option<&[usize]>,
) -> Result<(SchemaRef, Batches)> {
    let mut source = BufReader::with_capacity(1 << 17, source);
    let mut next = || {
        let mut word = [0; 8];
        match source.read_exact(&mut word) {
            Ok(()) => Ok(word),
            Err(e) if e.kind() == ErrorKind::UnexpectedEof => {
                Err(Error::damaged(name, "cannot be read: it is truncated"))
            }
            Err(e) => Err(Error::read(name, e)),
        }
    };
    let mut start = next()?;
    let is_file = start.starts_with(ARROW_FILE);
    if is_file {
        start = next()?;
        while start == [0; 8] {
            start = next()?;
        }
    }
    let last = Arc::new(Mutex::new([0; 8]));
    let source = Tail { source: Cursor::new(start).chain(source), last: last.clone() };
    let reader = guarded(name, || StreamReader::try_new(source, columns.map(|c| c.to_vec())))?;
    Ok((reader.schema(), Box::new(Whole { reader: Some(reader), last, footer: is_file })))
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
    /// Whether a footer follows.
    footer: bool,
}

impl<R: Read> Iterator for Whole<R> {
    type Item = NextBatch;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.reader.as_mut()?.next();
        if next.is_some() {
            return next;
        }
        let mut reader = self.reader.take()?;
        let ended = *self.last.lock().unwrap_or_else(|e| e.into_inner());
        let message = if ended != *b"\xff\xff\xff\xff\0\0\0\0" {
            "the stream ends before its end marker; it is truncated"
        } else if !self.footer && matches!(reader.get_mut().read(&mut [0]), Ok(1)) {
            "there are bytes after the end of the stream; a file holds one table"
        } else {
            return None;
        };
        Some(Err(ArrowError::IpcError(message.into())))
    }
}

/// An Arrow file being read.
pub struct IpcTrack {
    batches: Batches,
    batch: Option<RecordBatch>,
    at: usize,
    columns: Arc<Places>,
    name: Arc<str>,
}

impl Track for IpcTrack {
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
            let Some(batch) = next? else { return Ok(None) };
            // Of stdin all columns were asked for before the wanted ones were known.
            let all = batch.num_columns() > self.columns.projection.len();
            self.batch = Some(match all {
                true => batch.project(&self.columns.projection).map_err(nysketch::Error::source)?,
                false => batch,
            });
            self.at = 0;
        }
    }
}
