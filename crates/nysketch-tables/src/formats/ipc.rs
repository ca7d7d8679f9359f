//! Arrow IPC files and streams, also from stdin. This module reads and checks the messages; the
//! Arrow crate decodes them.

use super::arrays::{ArrowRaw, first_length, guarded, lengths_of, lists_of, schema_of};
use super::budget::check_expansion;
use super::stored::Stored;
use crate::error::{Error, Result};
use crate::find::{ARROW_FILE, ARROW_STREAM as CONTINUATION, peek};
use crate::meter::Meter;
use crate::places::Places;
use crate::schema::Schema;
use crate::track::{Raw, Track};
use arrow_array::RecordBatch;
use arrow_ipc::convert::try_fb_to_schema;
use arrow_ipc::reader::{FileDecoder, read_footer_length};
use arrow_ipc::{Block, Message, MessageHeader, MetadataVersion, root_as_footer, root_as_message};
use arrow_schema::{ArrowError, SchemaRef};
use nysketch_core::rows::part_rows;
use std::collections::HashMap;
use std::io::{self, BufReader, Cursor, ErrorKind, Read, Seek, SeekFrom};
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
    /// Opens a file and, unless `rowwise`, finds the lengths of lists from the first rows.
    pub fn open(file: Stored, rowwise: bool) -> Result<(Self, Schema)> {
        let name = file.name.clone();
        let (arrow, _) = batches(&name, file.open()?, None)?;
        let lists = lists_of(&arrow);
        let lengths = if lists.is_empty() || rowwise {
            HashMap::new()
        } else {
            lengths_of(&name, &lists, batches(&name, file.open()?, Some(&lists))?.1)?
        };
        let schema = schema_of(&name, &arrow, None, &lengths)?;
        Ok((Ipc { name, file: Some(file), schema: arrow, stdin: Mutex::default() }, schema))
    }

    /// Reads the schema from stdin and keeps the rest for the only possible track.
    pub fn stdin(source: impl Read + Send + 'static, rowwise: bool) -> Result<(Self, Schema)> {
        let name: Arc<str> = Arc::from("stdin");
        let (arrow, mut batches) = stream(&name, source, None)?;
        let mut lengths = HashMap::new();
        let lists = lists_of(&arrow);
        // The first rows from stdin may be slow, so wait for them only if there are lists.
        if !lists.is_empty()
            && !rowwise
            && let Some(first) = guarded(&name, || batches.next().transpose())?
        {
            let found = lists.iter().filter_map(|i| Some((*i, first_length(first.column(*i))?)));
            lengths.extend(found);
            batches = Box::new(std::iter::once(Ok(first)).chain(batches));
        }
        let schema = schema_of(&name, &arrow, None, &lengths)?;
        Ok((Ipc { name, file: None, schema: arrow, stdin: Mutex::new(Some(batches)) }, schema))
    }

    /// Returns the Arrow schema.
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

/// Returns the batches of a file. If the file has a footer, the footer lists them, so that a
/// missing batch is detected.
fn batches(
    name: &str,
    mut file: impl Read + Seek + Send + 'static,
    columns: Option<&[usize]>,
) -> Result<(SchemaRef, Batches)> {
    let cannot = |e| Error::read(name, e);
    let length = file.seek(SeekFrom::End(0)).map_err(cannot)?;
    file.rewind().map_err(cannot)?;
    let (start, _) = peek(&mut file).map_err(cannot)?;
    file.rewind().map_err(cannot)?;
    if !start.starts_with(ARROW_FILE) {
        return stream(name, file, columns);
    }
    let blocks = guarded(name, || Blocks::open(file, length, columns))?;
    Ok((blocks.schema.clone(), Box::new(blocks)))
}

/// Returns the batches of a stream. The file format is a stream after its first bytes, which are
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
    let source = Cursor::new(start).chain(source);
    let stream = guarded(name, || Stream::open(source, columns, is_file))?;
    Ok((stream.schema.clone(), Box::new(stream)))
}

/// Batches at the positions that the footer of a file lists.
struct Blocks<R> {
    file: R,
    length: u64,
    schema: SchemaRef,
    decoder: FileDecoder,
    /// The dictionaries, which precede all batches.
    dictionaries: std::vec::IntoIter<Block>,
    batches: std::vec::IntoIter<Block>,
}

impl<R: Read + Seek> Blocks<R> {
    fn open(mut file: R, length: u64, columns: Option<&[usize]>) -> Result<Self, ArrowError> {
        let mut end = [0; 10];
        file.seek(SeekFrom::Start(length.saturating_sub(10)))?;
        file.read_exact(&mut end)?;
        let footer_length = read_footer_length(end)? as u64;
        let Some(start) = length.checked_sub(10 + footer_length) else {
            return Err(damaged("its footer is longer than the file"));
        };
        file.seek(SeekFrom::Start(start))?;
        let bytes = bytes_of(&mut file, footer_length)?;
        let footer =
            root_as_footer(&bytes).map_err(|e| damaged(format!("its footer is not valid: {e}")))?;
        let (Some(schema), Some(batches)) = (footer.schema(), footer.recordBatches()) else {
            return Err(damaged("its footer has no schema or no batches"));
        };
        let schema = schema_from(schema)?;
        let dictionaries = footer.dictionaries().iter().flatten().copied().collect::<Vec<_>>();
        Ok(Blocks {
            file,
            length,
            decoder: decoder(&schema, footer.version(), columns),
            schema,
            dictionaries: dictionaries.into_iter(),
            batches: batches.iter().copied().collect::<Vec<_>>().into_iter(),
        })
    }

    /// Reads and checks the message of a block.
    fn read(&mut self, block: &Block) -> Result<Vec<u8>, ArrowError> {
        let size = |bytes: i64| u64::try_from(bytes).ok();
        let (start, metadata) = (size(block.offset()), size(block.metaDataLength().into()));
        let length = metadata.zip(size(block.bodyLength())).and_then(|(m, b)| m.checked_add(b));
        let ends = start.zip(length).and_then(|(start, length)| start.checked_add(length));
        let (Some(start), Some(length), true) =
            (start, length, ends.is_some_and(|end| end <= self.length))
        else {
            return Err(damaged("a block is longer than the file"));
        };
        self.file.seek(SeekFrom::Start(start))?;
        let bytes = bytes_of(&mut self.file, length)?;
        check_message(&bytes, block.metaDataLength() as usize)?;
        Ok(bytes)
    }

    fn next_batch(&mut self) -> Result<Option<RecordBatch>, ArrowError> {
        while let Some(block) = self.dictionaries.next() {
            let bytes = self.read(&block)?;
            self.decoder.read_dictionary(&block, &bytes.into())?;
        }
        let Some(block) = self.batches.next() else { return Ok(None) };
        let bytes = self.read(&block)?;
        match self.decoder.read_record_batch(&block, &bytes.into())? {
            Some(batch) => Ok(Some(batch)),
            None => Err(damaged("a batch is missing")),
        }
    }
}

impl<R: Read + Seek> Iterator for Blocks<R> {
    type Item = NextBatch;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_batch().transpose()
    }
}

/// Consecutive batches up to an end marker. A stream that was cut between two batches is accepted.
struct Stream<R> {
    source: R,
    schema: SchemaRef,
    decoder: FileDecoder,
    /// Whether a footer follows the batches.
    footer: bool,
    ended: bool,
}

impl<R: Read> Stream<R> {
    fn open(mut source: R, columns: Option<&[usize]>, footer: bool) -> Result<Self, ArrowError> {
        let Some((bytes, metadata)) = next_message(&mut source)? else {
            return Err(damaged("the stream has no schema"));
        };
        let message = message_of(&bytes[..metadata])?;
        let Some(schema) = message.header_as_schema() else {
            return Err(damaged("the stream does not start with a schema"));
        };
        let schema = schema_from(schema)?;
        let decoder = decoder(&schema, message.version(), columns);
        Ok(Stream { source, schema, decoder, footer, ended: false })
    }

    fn next_batch(&mut self) -> Result<Option<RecordBatch>, ArrowError> {
        while !self.ended {
            let Some((bytes, metadata)) = next_message(&mut self.source)? else {
                self.ended = true;
                if !self.footer && matches!(self.source.read(&mut [0]), Ok(1)) {
                    let how = "there are bytes after the end of the stream; a file holds one table";
                    return Err(ArrowError::IpcError(how.into()));
                }
                break;
            };
            check_message(&bytes, metadata)?;
            let kind = message_of(&bytes[..metadata])?.header_type();
            let block = Block::new(0, metadata as i32, (bytes.len() - metadata) as i64);
            if kind == MessageHeader::DictionaryBatch {
                self.decoder.read_dictionary(&block, &bytes.into())?;
            } else if let Some(batch) = self.decoder.read_record_batch(&block, &bytes.into())? {
                return Ok(Some(batch));
            }
        }
        Ok(None)
    }
}

impl<R: Read> Iterator for Stream<R> {
    type Item = NextBatch;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_batch().transpose()
    }
}

fn decoder(schema: &SchemaRef, version: MetadataVersion, columns: Option<&[usize]>) -> FileDecoder {
    let decoder = FileDecoder::new(schema.clone(), version);
    match columns {
        Some(columns) => decoder.with_projection(columns.to_vec()),
        None => decoder,
    }
}

fn schema_from(schema: arrow_ipc::Schema<'_>) -> Result<SchemaRef, ArrowError> {
    if !schema.endianness().equals_to_target_endianness() {
        return Err(damaged("its numbers have the byte order of another kind of machine"));
    }
    Ok(Arc::new(try_fb_to_schema(schema)?))
}

fn damaged(how: impl Into<String>) -> ArrowError {
    ArrowError::IpcError(format!("it is damaged: {}", how.into()))
}

/// Reads exactly `length` bytes. Memory grows with the bytes read, not with the declared length.
fn bytes_of(source: &mut impl Read, length: u64) -> Result<Vec<u8>, ArrowError> {
    let mut bytes = Vec::with_capacity(length.min(16 << 20) as usize);
    source.take(length).read_to_end(&mut bytes)?;
    if bytes.len() as u64 == length {
        Ok(bytes)
    } else {
        Err(ArrowError::IpcError("it is truncated".into()))
    }
}

/// Returns the next message of a stream and the start of its body; `None` at the end marker.
fn next_message(source: &mut impl Read) -> Result<Option<(Vec<u8>, usize)>, ArrowError> {
    let ends = |e: io::Error| match e.kind() {
        ErrorKind::UnexpectedEof => {
            ArrowError::IpcError("the stream ends before its end marker; it is truncated".into())
        }
        _ => e.into(),
    };
    let mut word = [0; 4];
    source.read_exact(&mut word).map_err(ends)?;
    let mut bytes = word.to_vec();
    // Before version 0.15 of Arrow, a message started with its length.
    if word == CONTINUATION {
        source.read_exact(&mut word).map_err(ends)?;
        bytes.extend(word);
    }
    let length = match u64::try_from(i32::from_le_bytes(word)) {
        Ok(0) => return Ok(None),
        Ok(length) => length,
        Err(_) => return Err(damaged("a message has a negative length")),
    };
    bytes.extend(bytes_of(source, length)?);
    let metadata = bytes.len();
    let Ok(body) = u64::try_from(message_of(&bytes)?.bodyLength()) else {
        return Err(damaged("a message has a negative length"));
    };
    bytes.reserve_exact(body.min(16 << 20) as usize);
    let read = source.take(body).read_to_end(&mut bytes)?;
    if read as u64 == body {
        Ok(Some((bytes, metadata)))
    } else {
        Err(ArrowError::IpcError("it is truncated".into()))
    }
}

/// Parses the metadata of a message, without its length.
fn message_of(metadata: &[u8]) -> Result<Message<'_>, ArrowError> {
    let prefix = if metadata.starts_with(&CONTINUATION) { 8 } else { 4 };
    root_as_message(metadata.get(prefix..).unwrap_or_default())
        .map_err(|e| damaged(format!("a message is not valid: {e}")))
}

/// Checks the buffers of a message against its body, and their declared sizes after decompression,
/// because the decoder allocates the declared amount of memory.
fn check_message(bytes: &[u8], metadata: usize) -> Result<(), ArrowError> {
    let (metadata, body) =
        bytes.split_at_checked(metadata).ok_or_else(|| damaged("a block is too short"))?;
    let message = message_of(metadata)?;
    let dictionary = message.header_as_dictionary_batch().and_then(|d| d.data());
    let Some(batch) = message.header_as_record_batch().or(dictionary) else { return Ok(()) };
    let nodes = batch.nodes().into_iter().flatten();
    let mut counts = nodes.flat_map(|node| [node.length(), node.null_count()]);
    if batch.length() < 0 || counts.any(|count| count < 0) {
        return Err(damaged("a batch has a negative number of rows"));
    }
    let compressed = batch.compression().is_some();
    let mut expanded = 0u64;
    for buffer in batch.buffers().iter().flatten() {
        let place =
            usize::try_from(buffer.offset()).ok().zip(usize::try_from(buffer.length()).ok());
        let end = place.and_then(|(start, length)| start.checked_add(length));
        let Some(bytes) = place.zip(end).and_then(|((start, _), end)| body.get(start..end)) else {
            return Err(damaged("a buffer is longer than its batch"));
        };
        // A compressed buffer starts with its decompressed length in eight bytes, or −1 if it is
        // stored uncompressed.
        let declared = bytes.first_chunk().map(|b| i64::from_le_bytes(*b)).filter(|_| compressed);
        let declared = declared.and_then(|length| u64::try_from(length).ok());
        expanded = expanded.saturating_add(declared.unwrap_or(bytes.len() as u64));
    }
    check_expansion(body.len() as u64, expanded).map_err(damaged)
}

/// Arrow data that is being read.
pub struct IpcTrack {
    batches: Batches,
    batch: Option<RecordBatch>,
    at: usize,
    columns: Arc<Places>,
    name: Arc<str>,
}

impl Track for IpcTrack {
    fn read(&mut self) -> nysketch_core::Result<Option<Box<dyn Raw>>> {
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
            // A batch from stdin contains all columns, because it was decoded before the required
            // ones were known.
            let all = batch.num_columns() > self.columns.projection.len();
            self.batch = Some(if all {
                batch.project(&self.columns.projection).map_err(nysketch_core::Error::source)?
            } else {
                batch
            });
            self.at = 0;
        }
    }
}
