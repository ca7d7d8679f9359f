//! Parquet files. Only the required columns are read, with one track per row group.

use super::arrays::{ArrowRaw, guarded, lengths_of, lists_of, schema_of};
use super::budget::check_expansion;
use super::inflate::{Packed, check_size};
use super::int96::{self, Int96};
use super::stored::Stored;
use super::thrift::{PageSize, Refused, check_page, check_schema};
use crate::batch::Batch;
use crate::error::{Error, Result};
use crate::meter::Meter;
use crate::places::Places;
use crate::schema::Schema;
use crate::store;
use crate::track::{Raw, Track};
use arrow_array::RecordBatch;
use arrow_schema::{DataType, SchemaRef};
use bytes::Bytes;
use nysketch_core::rows::part_rows;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader,
    ParquetRecordBatchReaderBuilder,
};
use parquet::errors::ParquetError;
use parquet::file::metadata::{ColumnChunkMetaData, RowGroupMetaData};
use parquet::file::reader::{ChunkReader, Length};
use std::collections::HashMap;
use std::io::{self, BufRead, BufReader, Read, SeekFrom};
use std::sync::{Arc, Mutex};

/// A Parquet file.
#[derive(Debug)]
pub struct Parquet {
    file: Stored,
    bytes: u64,
    schema: SchemaRef,
    /// Number of rows in each row group.
    groups: Vec<u64>,
    rows: u64,
    /// The footer, kept from the opening of the first row group to that of the last.
    metadata: Mutex<Option<Loaded>>,
}

/// The footer of a file.
#[derive(Debug, Clone)]
struct Loaded {
    arrow: ArrowReaderMetadata,
    /// `None` where the file has no INT96 timestamps.
    int96: Option<Int96>,
}

impl Parquet {
    /// Reads the footer and, unless `rowwise`, finds the lengths of lists from the first rows.
    pub fn open(file: Stored, rowwise: bool) -> Result<(Self, Schema)> {
        let chunks = Chunks::open(&file)?;
        let (name, bytes) = (&file.name, chunks.length);
        let metadata = load(name, &chunks)?.arrow;
        let rows = |i: usize| u64::try_from(metadata.metadata().row_group(i).num_rows()).ok();
        let groups: Option<Vec<u64>> =
            (0..metadata.metadata().num_row_groups()).map(rows).collect();
        let Some(groups) = groups else {
            let how = "is damaged: a row group has a negative number of rows";
            return Err(Error::damaged(name, how));
        };
        let rows = groups.iter().fold(0u64, |total, rows| total.saturating_add(*rows));
        let lengths =
            if rowwise { HashMap::new() } else { lengths(name, &chunks, &metadata, &groups)? };
        let schema = schema_of(name, metadata.schema(), Some(rows), &lengths)?;
        let arrow = metadata.schema().clone();
        let metadata = Mutex::default();
        Ok((Parquet { file, bytes, schema: arrow, groups, rows, metadata }, schema))
    }

    /// Returns the number of rows in each row group.
    pub fn groups(&self) -> &[u64] {
        &self.groups
    }

    /// Returns the Arrow schema of the file.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Starts reading a row group after this number of its rows.
    pub fn track(
        &self,
        group: usize,
        skip: u64,
        columns: &Arc<Places>,
        meter: &Arc<Meter>,
    ) -> Result<ParquetTrack> {
        let chunks = Chunks::open(&self.file)?;
        let Loaded { arrow, int96 } = self.metadata(group, &chunks)?;
        let roots = columns.projection.iter().copied();
        let mask = ProjectionMask::roots(arrow.parquet_schema(), roots);
        let rows = part_rows(columns.values.len());
        let open = |metadata: ArrowReaderMetadata, mask: ProjectionMask| {
            let pages = Pages::new(chunks.clone(), metadata.metadata().row_group(group));
            let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(pages, metadata)
                .with_row_groups(vec![group])
                .with_projection(mask)
                .with_batch_size(rows)
                .with_offset(skip as usize);
            guarded(&self.file.name, || builder.build())
        };
        let check = int96.and_then(|int96| int96.check(&columns.projection));
        let check = match check {
            Some(check) => Some(Milliseconds {
                reader: open(check.metadata, check.mask)?,
                places: check.places,
            }),
            None => None,
        };
        Ok(ParquetTrack {
            reader: open(arrow, mask)?,
            check,
            columns: columns.clone(),
            name: self.file.name.clone(),
            meter: meter.clone(),
            bytes_per_row: self.bytes as f64 / self.rows.max(1) as f64,
        })
    }

    fn metadata(&self, group: usize, chunks: &Chunks) -> Result<Loaded> {
        let mut kept = self.metadata.lock().unwrap_or_else(|e| e.into_inner());
        let metadata = match kept.take() {
            Some(metadata) => metadata,
            None => {
                let metadata = load(&self.file.name, chunks)?;
                let rows = metadata.arrow.metadata().row_groups().iter().map(|g| g.num_rows());
                if rows.ne(self.groups.iter().map(|rows| *rows as i64)) {
                    return Err(Error::damaged(&self.file.name, "was changed while it was read"));
                }
                metadata
            }
        };
        if group + 1 < self.groups.len() {
            *kept = Some(metadata.clone());
        }
        Ok(metadata)
    }
}

/// Finds the lengths of lists from the first rows.
fn lengths(
    name: &str,
    chunks: &Chunks,
    metadata: &ArrowReaderMetadata,
    groups: &[u64],
) -> Result<HashMap<usize, usize>> {
    let lists = lists_of(metadata.schema());
    let Some(group) = groups.iter().position(|rows| *rows > 0).filter(|_| !lists.is_empty()) else {
        return Ok(HashMap::new());
    };
    let mask = ProjectionMask::roots(metadata.parquet_schema(), lists.iter().copied());
    let pages = Pages::new(chunks.clone(), metadata.metadata().row_group(group));
    let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(pages, metadata.clone())
        .with_row_groups(vec![group])
        .with_projection(mask)
        .with_batch_size(LOOKED_AT_ROWS);
    lengths_of(name, &lists, guarded(name, || builder.build())?)
}

/// Number of rows that are read to find the lengths of lists.
const LOOKED_AT_ROWS: usize = 64;

fn load(name: &str, chunks: &Chunks) -> Result<Loaded> {
    if let Err(Refused::Broken(how)) = check_schema(&chunks.footer(name)?) {
        return Err(Error::damaged(name, format!("cannot be read: {how}")));
    }
    let load = |options| guarded(name, || ArrowReaderMetadata::load(chunks, options));
    let mut arrow = load(ArrowReaderOptions::new())?;
    if arrow.schema().fields().iter().any(|f| is_unreadable(f.data_type())) {
        arrow = load(ArrowReaderOptions::new().with_skip_arrow_metadata(true))?;
    }
    let int96 = guarded(name, || Int96::find(&mut arrow))?;
    Ok(Loaded { arrow, int96 })
}

/// Whether the reader cannot make dictionaries of this type. It supports text and bytes only; other
/// columns are read without dictionaries.
fn is_unreadable(data_type: &DataType) -> bool {
    use DataType::{Binary, LargeBinary, LargeUtf8, Utf8};
    match data_type {
        DataType::Dictionary(_, values) => {
            !matches!(**values, Utf8 | LargeUtf8 | Binary | LargeBinary)
        }
        _ => false,
    }
}

/// Adapts stored bytes to the interface of the Parquet crate, which reads any range through a
/// shared reference.
#[derive(Clone)]
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

    /// Reads up to `length` bytes from a position.
    fn some(&self, at: u64, length: u64) -> io::Result<Vec<u8>> {
        // A damaged file may declare more bytes than it contains.
        let mut bytes = Vec::with_capacity(length.min(self.length) as usize);
        self.at(at).take(length).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Returns the footer without its length; empty if the file is too short for a footer.
    fn footer(&self, name: &str) -> Result<Vec<u8>> {
        let cannot = |e| Error::read(name, e);
        let end = self.some(self.length.saturating_sub(8), 8).map_err(cannot)?;
        let Some(length) = end.first_chunk().map(|b| u64::from(u32::from_le_bytes(*b))) else {
            return Ok(Vec::new());
        };
        match self.length.checked_sub(8 + length) {
            Some(start) => self.some(start, length).map_err(cannot),
            None => Ok(Vec::new()),
        }
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
        let bytes = self.some(start, length as u64)?;
        if bytes.len() == length {
            Ok(bytes.into())
        } else {
            let found = bytes.len();
            Err(ParquetError::EOF(format!("expected {length} bytes, found {found}")))
        }
    }
}

/// A stream of bytes from a position. Each reader has its own position.
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

/// The pages of a row group. Their headers are checked before the Parquet crate reads them.
struct Pages {
    chunks: Chunks,
    largest: Arc<Mutex<Largest>>,
}

/// Bounds the memory for the pages of a row group: one data page and one dictionary per column.
struct Largest {
    /// The columns in the order of their positions in the file.
    columns: Vec<PagesOfColumn>,
    /// Sum of the largest pages of all columns, in bytes.
    expanded: u64,
    /// Size of the row group in the file, in bytes.
    compressed: u64,
}

/// The pages of a column that have been read so far.
#[derive(Default)]
struct PagesOfColumn {
    start: u64,
    /// Whether the column contains lists.
    lists: bool,
    /// Size of the largest page in bytes.
    largest: u64,
    /// Size of all pages in the file, in bytes.
    compressed: u64,
    /// Number of values in all pages.
    values: u64,
    /// The compression, if its data may expand to more than the declared size.
    packed: Option<Packed>,
    /// The contents of the last dictionary and of the last data page whose headers have been read.
    contents: [Option<Contents>; 2],
}

/// The declared properties of the bytes after a page header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Contents {
    start: u64,
    /// Number of bytes at the start that are not compressed.
    plain: u64,
    /// Declared size after decompression, in bytes.
    expanded: u64,
}

impl Largest {
    fn new(group: &RowGroupMetaData) -> Self {
        let size = |bytes: i64| u64::try_from(bytes).unwrap_or(0);
        let column = |column: &ColumnChunkMetaData| {
            let data = column.data_page_offset();
            let start = size(column.dictionary_page_offset().map_or(data, |at| at.min(data)));
            let lists = column.column_descr().max_rep_level() > 0;
            let packed = Packed::of(column.compression());
            PagesOfColumn { start, lists, packed, ..PagesOfColumn::default() }
        };
        let mut columns: Vec<PagesOfColumn> = group.columns().iter().map(column).collect();
        columns.sort_unstable_by_key(|column| column.start);
        let compressed = group.columns().iter().map(|column| size(column.compressed_size()));
        Largest { columns, expanded: 0, compressed: compressed.fold(0, u64::saturating_add) }
    }

    /// Counts a page, and refuses one that would need memory out of proportion to the file.
    fn add(&mut self, at: u64, page: PageSize) -> std::result::Result<(), String> {
        let mut more = 0;
        if let Some(column) = self.column(at) {
            more = page.expanded.saturating_sub(column.largest);
            column.largest = page.expanded.max(column.largest);
            column.compressed = column.compressed.saturating_add(page.compressed);
            column.values = column.values.saturating_add(page.values);
            column.contents[usize::from(!page.dictionary)] = page.packed.then_some(Contents {
                start: at.saturating_add(page.header),
                plain: page.plain,
                expanded: page.expanded,
            });
            // Other columns are read a batch of rows at a time, but a single list may contain all
            // values.
            if column.lists {
                check_expansion(column.compressed, column.values.saturating_mul(VALUE))?;
            }
        }
        self.expanded += more;
        check_expansion(self.compressed, self.expanded)
    }

    /// Finds the column whose pages contain this position.
    fn column(&mut self, at: u64) -> Option<&mut PagesOfColumn> {
        let after = self.columns.partition_point(|column| column.start <= at);
        after.checked_sub(1).and_then(|i| self.columns.get_mut(i))
    }

    /// Returns the contents to check for the page at this position.
    fn contents(&mut self, at: u64) -> Option<(Packed, Contents)> {
        let column = self.column(at)?;
        let contents = column.contents.into_iter().flatten().find(|c| c.start == at)?;
        Some((column.packed?, contents))
    }
}

/// Memory for a value of a list, in bytes.
const VALUE: u64 = 8;

impl Pages {
    fn new(chunks: Chunks, group: &RowGroupMetaData) -> Self {
        Pages { chunks, largest: Arc::new(Mutex::new(Largest::new(group))) }
    }
}

impl Length for Pages {
    fn len(&self) -> u64 {
        self.chunks.length
    }
}

impl ChunkReader for Pages {
    type T = PageBytes;

    fn get_read(&self, start: u64) -> Result<Self::T, ParquetError> {
        let bytes = BufReader::new(self.chunks.at(start));
        Ok(PageBytes { bytes, start, checked: false, largest: self.largest.clone() })
    }

    /// Returns the contents of a page whose header has already been read.
    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        let bytes = self.chunks.get_bytes(start, length)?;
        let contents = self.largest.lock().unwrap_or_else(|e| e.into_inner()).contents(start);
        if let Some((packed, Contents { plain, expanded, .. })) = contents {
            let compressed = bytes.get(plain as usize..).unwrap_or_default();
            check_size(packed, compressed, expanded.saturating_sub(plain))
                .map_err(ParquetError::General)?;
        }
        Ok(bytes)
    }
}

/// A page, starting at its header. The header is checked when the first byte is read, because the
/// crate also creates readers that it never uses.
struct PageBytes {
    bytes: BufReader<ChunkBytes>,
    start: u64,
    checked: bool,
    largest: Arc<Mutex<Largest>>,
}

impl PageBytes {
    /// Maximum size of a header in bytes. Headers contain statistics, so they can be long.
    const LONGEST: u64 = 16 << 20;

    fn check(&self, start: &[u8]) -> io::Result<()> {
        let mut page = check_page(start);
        if page == Err(Refused::Short) {
            let mut longer = Vec::new();
            let bytes = ChunkBytes { file: self.bytes.get_ref().file.clone(), at: self.start };
            bytes.take(Self::LONGEST).read_to_end(&mut longer)?;
            page = check_page(&longer);
        }
        let page = page.map_err(|refused| match refused {
            Refused::Short => io::Error::other("a page ends within its header"),
            Refused::Broken(how) => io::Error::other(how),
        })?;
        let mut largest = self.largest.lock().unwrap_or_else(|e| e.into_inner());
        largest.add(self.start, page).map_err(io::Error::other)
    }
}

impl Read for PageBytes {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if !self.checked {
            self.bytes.fill_buf()?;
            self.check(self.bytes.buffer())?;
            self.checked = true;
        }
        self.bytes.read(buffer)
    }
}

/// A Parquet row group that is being read.
pub struct ParquetTrack {
    reader: ParquetRecordBatchReader,
    check: Option<Milliseconds>,
    columns: Arc<Places>,
    name: Arc<str>,
    meter: Arc<Meter>,
    bytes_per_row: f64,
}

/// The INT96 columns in milliseconds, in batches of the same rows.
struct Milliseconds {
    reader: ParquetRecordBatchReader,
    /// Indices of the INT96 columns among the required columns.
    places: Arc<[usize]>,
}

impl Track for ParquetTrack {
    fn read(&mut self) -> nysketch_core::Result<Option<Box<dyn Raw>>> {
        let batch = guarded(&self.name, || self.reader.next().transpose())?;
        let Some(batch) = batch else { return Ok(None) };
        self.meter.add((batch.num_rows() as f64 * self.bytes_per_row) as u64);
        let raw = ArrowRaw { batch, columns: self.columns.clone(), name: self.name.clone() };
        let Some(check) = &mut self.check else { return Ok(Some(Box::new(raw))) };
        let milliseconds = guarded(&self.name, || check.reader.next().transpose())?;
        let Some(milliseconds) = milliseconds.filter(|m| m.num_rows() == raw.batch.num_rows())
        else {
            return Err(Error::damaged(&self.name, "was changed while it was read").into());
        };
        Ok(Some(Box::new(CheckedRaw { raw, milliseconds, places: check.places.clone() })))
    }
}

/// Rows with INT96 timestamps that have been checked.
struct CheckedRaw {
    raw: ArrowRaw,
    milliseconds: RecordBatch,
    places: Arc<[usize]>,
}

impl Raw for CheckedRaw {
    fn rows(&self) -> u64 {
        self.raw.rows()
    }

    fn decode(self: Box<Self>, first_row: u64) -> nysketch_core::Result<Batch> {
        let CheckedRaw { raw, milliseconds, places } = *self;
        int96::check(&raw.name, first_row, &raw.batch, &milliseconds, &places)?;
        Box::new(raw).decode(first_row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A few bytes may declare a list of any length, and all of its values are in memory at once.
    #[test]
    fn values_of_lists_have_a_limit() {
        let add = |lists: bool, values: u64| {
            let column = PagesOfColumn { start: 4, lists, ..PagesOfColumn::default() };
            let mut pages = Largest { columns: vec![column], expanded: 0, compressed: 100 };
            let page = PageSize { compressed: 50, expanded: 60, values, ..PageSize::default() };
            pages.add(4, page).and_then(|()| pages.add(200, page))
        };
        assert_eq!(add(false, 1 << 31), Ok(()));
        assert_eq!(add(true, 1 << 25), Ok(()));
        let refused = add(true, 1 << 26).unwrap_err();
        assert!(refused.contains("100 bytes would expand to 1073741824"), "{refused}");
    }
}
