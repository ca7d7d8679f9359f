//! CSV and TSV files, plain or compressed. The reader splits the stream into parts of whole
//! records; the thread that takes a part parses its numbers.

use super::gzip::Gzip;
use super::records::{Chunk, RecordError, Records, fields_of, mended, single_fields};
use super::stored::Stored;
use super::text_rows::{Cell, TextRows};
use crate::batch::Batch;
use crate::error::{Error, Result};
use crate::find::peek;
use crate::meter::Meter;
use crate::options::{Columns, Format, Header, ReadOptions};
use crate::parse;
use crate::places::{Places, SharedZone};
use crate::schema::{Column, Kind, Schema, Zone};
use crate::track::{Raw, Track};
use csv::{ByteRecord, ReaderBuilder};
use nysketch_core::Block;
use nysketch_core::rows::{default_names, part_rows};
use std::collections::HashSet;
use std::io::{BufReader, Read};
use std::sync::{Arc, Mutex};

/// Number of values that decide whether a column contains numbers, text or dates.
const SNIFFED: usize = 200;
/// Sizes in bytes of the first look at a file, and of a second look if a column has no value in the
/// first.
const LOOKED_AT: [usize; 2] = [1 << 16, PART_BYTES];
/// Maximum size of a part in bytes.
const PART_BYTES: usize = 1 << 20;
/// Maximum number of columns in a file.
const MOST_COLUMNS: usize = 1 << 20;

/// The rules for reading a CSV file.
#[derive(Debug, Clone, Copy)]
pub struct Dialect {
    pub delimiter: u8,
    pub header: Header,
    /// Whether text in a column of numbers counts as a missing value, so that the row is skipped.
    pub lenient: bool,
    /// Whether rows may contain missing values.
    pub allow_missing: bool,
    /// Whether the options decide the type of each column, so that no values need to be inspected.
    typed: bool,
}

impl Dialect {
    /// Combines the options with the defaults of the format.
    pub fn new(format: Format, options: &ReadOptions) -> Self {
        let usual = if format == Format::Tsv { b'\t' } else { b',' };
        Dialect {
            delimiter: options.delimiter.unwrap_or(usual),
            header: options.header,
            lenient: options.skip_invalid,
            allow_missing: options.skip_invalid || options.allow_missing,
            typed: matches!(options.columns, Columns::Exactly { .. }),
        }
    }
}

/// A stream of decompressed bytes.
pub type Source = Box<dyn Read + Send>;

/// A CSV file, or stdin, which can be read only once.
pub struct Csv {
    name: Arc<str>,
    /// `None` for stdin.
    file: Option<Stored>,
    dialect: Dialect,
    fields: usize,
    /// Average size of a record in bytes, or of a part if the average is unknown.
    record_bytes: usize,
    stdin: Mutex<Option<Records<Source>>>,
}

impl std::fmt::Debug for Csv {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Csv").field("name", &self.name).finish_non_exhaustive()
    }
}

/// An error in a CSV file.
#[derive(Debug, thiserror::Error)]
enum CsvError {
    #[error(
        "{file}: row {row}, column '{column}': '{text}' is not a number; fix it, or skip such rows \
         with `skip_invalid`"
    )]
    NotANumber { file: Arc<str>, row: u64, column: String, text: String },
    #[error(
        "{file}: row {row}, column '{column}': '{text}' is not a date such as 2013-01-31, 2013-01-31T05:15:00 or \
         2013-01-31T05:15:00+01:00; fix it, or skip such rows with `skip_invalid`"
    )]
    NotATime { file: Arc<str>, row: u64, column: String, text: String },
    #[error("{file}: row {row}, column '{column}': '{text}' mixes times with and without a zone")]
    MixedZones { file: Arc<str>, row: u64, column: String, text: String },
    #[error("{file}: row {row}, column '{column}': the value is not valid UTF-8; convert the file")]
    NotUtf8 { file: Arc<str>, row: u64, column: String },
    #[error("{file}: row {row} (line {line}): expected {expected} fields, found {found}")]
    Ragged { file: Arc<str>, row: u64, line: u64, found: usize, expected: usize },
    #[error("{file}: {error}")]
    Records { file: Arc<str>, error: RecordError },
    #[error("{file}: row {row}: {error}")]
    Parse { file: Arc<str>, row: u64, error: csv::Error },
    #[error("stdin can be read only once")]
    StdinTwice,
}

/// Converts to the error of reading rows or of opening a file.
impl From<CsvError> for Error {
    fn from(error: CsvError) -> Self {
        Error::Rows(nysketch_core::Error::source(error))
    }
}

/// Decompresses a stream that starts with a gzip or Zstandard header, and passes others through.
pub fn decompressed(source: impl Read + Send + 'static) -> std::io::Result<Source> {
    let (start, source) = peek(source)?;
    let source = BufReader::with_capacity(1 << 17, source);
    if start.starts_with(b"\x1f\x8b") {
        return Ok(Box::new(Gzip::new(source)));
    }
    // Some Zstandard writers begin with a skippable frame, 0x184D2A50 to 0x184D2A5F.
    let skippable = start.get(1..4) == Some(b"\x2a\x4d\x18") && start[0] & 0xf0 == 0x50;
    if start.starts_with(b"\x28\xb5\x2f\xfd") || skippable {
        return Ok(Box::new(zstd::stream::read::Decoder::with_buffer(source)?));
    }
    Ok(Box::new(source))
}

/// Counts of the kinds of values in a sample of a column.
#[derive(Clone, Default)]
struct Seen {
    /// Values that are not missing.
    values: usize,
    numbers: usize,
    truths: usize,
    dates: usize,
    zone: Zone,
}

impl Seen {
    fn add(&mut self, field: &[u8]) {
        if self.values == SNIFFED {
            return;
        }
        match parse::number(field) {
            Some(x) if x.is_nan() => return,
            Some(_) => self.numbers += 1,
            None if parse::truth(field).is_some() => self.truths += 1,
            None => {
                if let Some(zoned) = parse::time(field).and_then(|t| t.zoned) {
                    self.dates += 1;
                    if self.zone == Zone::Unknown {
                        self.zone = if zoned { Zone::With } else { Zone::Without };
                    }
                }
            }
        }
        self.values += 1;
    }

    /// Returns the kind of the column: text if most values are text, numbers if most are numbers or
    /// `true` and `false`. A single text among numbers is an error when its row is read. A column
    /// without values counts as numbers.
    fn kind(&self) -> (Kind, String) {
        let plain = self.numbers + self.truths;
        let texts = self.values - plain;
        let (kind, holds) = match self {
            Seen { dates, .. } if 2 * dates > self.values => (Kind::Date(self.zone), "date"),
            _ if texts > plain => (Kind::Text, "text"),
            Seen { truths, numbers, .. } if truths > numbers => (Kind::Truth, "bool"),
            _ => (Kind::Number, "number"),
        };
        (kind, holds.into())
    }
}

impl Csv {
    /// Opens a file and inspects its first records.
    pub fn open(file: Stored, dialect: Dialect) -> Result<(Self, Schema)> {
        let name = file.name.clone();
        let source = decompressed(file.open()?).map_err(|e| Error::read(&name, e))?;
        let (csv, schema, _) = Self::start(name, source, dialect, &LOOKED_AT)?;
        Ok((Csv { file: Some(file), ..csv }, schema))
    }

    /// Inspects the first records from stdin and keeps every record for the only possible track.
    pub fn stdin(source: Source, dialect: Dialect) -> Result<(Self, Schema)> {
        let sizes = &LOOKED_AT[..1];
        let (csv, schema, records) = Self::start(Arc::from("stdin"), source, dialect, sizes)?;
        Ok((Csv { stdin: Mutex::new(Some(records)), record_bytes: PART_BYTES, ..csv }, schema))
    }

    /// Reads the header and inspects the records after it without consuming them.
    fn start(
        name: Arc<str>,
        source: Source,
        dialect: Dialect,
        sizes: &[usize],
    ) -> Result<(Self, Schema, Records<Source>)> {
        let mut records = Records::new(source, dialect.delimiter);
        let (names, named) = read_header(&mut records, &name, dialect.header)?;
        let header = if named { Header::Present } else { Header::Absent };
        let dialect = Dialect { header, ..dialect };
        let fields = names.len();
        let stdin = Mutex::default();
        let mut csv = Csv { name, file: None, dialect, fields, record_bytes: 1, stdin };
        let mut seen = vec![Seen::default(); fields];
        let sizes = if dialect.typed { &sizes[..1] } else { sizes };
        for &size in sizes {
            let in_file = |error| CsvError::Records { file: csv.name.clone(), error };
            let Some(chunk) = records.look(size).map_err(in_file)? else { break };
            csv.record_bytes = (chunk.bytes.len() as u64).div_ceil(chunk.rows) as usize;
            if dialect.typed {
                break;
            }
            seen = csv.sniff(&chunk)?;
            if seen.iter().all(|seen| seen.values > 0) {
                break;
            }
        }
        let kind = |seen: &Seen| {
            if dialect.typed { (Kind::Text, "text".to_string()) } else { seen.kind() }
        };
        let kinds = seen.iter().map(kind);
        let mut schema =
            match names {
                names if named => {
                    let columns = names
                        .into_iter()
                        .zip(kinds)
                        .map(|(name, (kind, holds))| Column { name, holds, kind, index: false });
                    Schema::named(&csv.name, columns.collect(), None)?
                }
                _ => Schema::unnamed(&csv.name, kinds.collect(), None)?,
            };
        schema.texts = true;
        Ok((csv, schema, records))
    }

    /// Counts the kinds of the first values of each column.
    fn sniff(&self, chunk: &Chunk) -> Result<Vec<Seen>> {
        let mut columns = vec![Seen::default(); self.fields];
        let mut records = 0;
        let looked = self.for_each_record(chunk, 1, |_, fields| {
            records += 1;
            columns.iter_mut().zip(fields).for_each(|(seen, field)| seen.add(field));
            Ok(())
        });
        // An error in a later record is reported when that record is read.
        if records == 0 {
            looked?;
        }
        Ok(columns)
    }

    /// Starts reading.
    pub fn track(self: &Arc<Self>, columns: &Arc<Places>, meter: &Arc<Meter>) -> Result<CsvTrack> {
        let in_file = |error| CsvError::Records { file: self.name.clone(), error };
        let records = match &self.file {
            Some(file) => {
                let source = decompressed(meter.count(file.open()?));
                let source = source.map_err(|e| Error::read(&self.name, e))?;
                let mut records = Records::new(source, self.dialect.delimiter);
                if self.dialect.header != Header::Absent {
                    records.skip().map_err(in_file)?;
                }
                if self.fields == 1 {
                    records.single_column();
                }
                records
            }
            None => {
                let mut stdin = self.stdin.lock().unwrap_or_else(|e| e.into_inner());
                stdin.take().ok_or(CsvError::StdinTwice)?
            }
        };
        // Aim at the number of rows in a part of other formats, unless the part gets too large.
        let rows = part_rows(columns.values.len());
        let size = (rows * self.record_bytes).clamp(1 << 12, PART_BYTES);
        Ok(CsvTrack { csv: self.clone(), columns: columns.clone(), records, size })
    }

    /// Calls `visit` with the number and the fields of each record. A record with a different
    /// number of fields is an error.
    fn for_each_record(
        &self,
        chunk: &Chunk,
        first_row: u64,
        mut visit: impl FnMut(u64, &ByteRecord) -> Result<(), CsvError>,
    ) -> Result<(), CsvError> {
        let bytes = &*mended(&chunk.bytes, self.dialect.delimiter);
        let ragged = |row: u64, at: usize, found: usize| CsvError::Ragged {
            file: self.name.clone(),
            row,
            line: chunk.line + count_lines(bytes, at),
            found,
            expected: self.fields,
        };
        // A record of millions of fields would need many times its size in memory.
        let usual = (chunk.rows as usize).saturating_mul(self.fields).max(MOST_COLUMNS);
        let counted = |byte: u8| memchr::memchr_iter(byte, bytes).count();
        if bytes.len() > usual && counted(self.dialect.delimiter) > usual.saturating_mul(2) {
            let most = self.fields.max(MOST_COLUMNS);
            let long = fields_of(bytes, self.dialect.delimiter).enumerate();
            if let Some((i, (at, found))) = { long }.find(|(_, (_, found))| *found > most) {
                return Err(ragged(first_row + i as u64, at, found));
            }
        }
        let mut row = first_row;
        let mut check = |at: usize, record: &ByteRecord| {
            if record.len() != self.fields {
                return Err(ragged(row, at, record.len()));
            }
            visit(row, record)?;
            row += 1;
            Ok(())
        };
        let mut reader = ReaderBuilder::new();
        reader.has_headers(false).flexible(true).delimiter(self.dialect.delimiter);
        let mut record = ByteRecord::new();
        if self.fields > 1 {
            let mut reader = reader.from_reader(bytes);
            loop {
                let at = reader.position().byte() as usize;
                match reader.read_byte_record(&mut record) {
                    Ok(true) => check(at, &record)?,
                    Ok(false) => return Ok(()),
                    Err(error) => {
                        let file = self.name.clone();
                        return Err(CsvError::Parse { file, row, error });
                    }
                }
            }
        }
        let mut result = Ok(());
        single_fields(bytes, self.dialect.delimiter, |field| {
            if result.is_err() {
                return;
            }
            record.clear();
            if field.contains(&b'"') || field.contains(&self.dialect.delimiter) {
                // A single record without its line end always parses.
                let _ = reader.from_reader(field).read_byte_record(&mut record);
            } else {
                record.push_field(field);
            }
            let at = field.as_ptr().addr().wrapping_sub(bytes.as_ptr().addr());
            result = check(at, &record);
        });
        result
    }

    /// Parses the number in a field; with `truths`, `true` and `false` are numbers.
    fn number(&self, row: u64, field: &[u8], column: &str, truths: bool) -> Result<f64, CsvError> {
        match parse::number(field) {
            Some(x) => Ok(x),
            None if truths && let Some(x) = parse::truth(field) => Ok(x),
            // Not missing but unusable: the row is invalid even if missing values are allowed.
            None if self.dialect.lenient => Ok(f64::INFINITY),
            None => {
                let (file, column, text) = self.place(column, field);
                Err(CsvError::NotANumber { file, row, column, text })
            }
        }
    }

    /// Parses the point in time in a field.
    fn time(
        &self,
        row: u64,
        field: &[u8],
        column: &str,
        zone: &SharedZone,
    ) -> Result<f64, CsvError> {
        match parse::time(field) {
            Some(time) if time.zoned.is_none_or(|zoned| zone.agrees(zoned)) => Ok(time.seconds),
            None if self.dialect.lenient => Ok(f64::INFINITY),
            found => {
                let (file, column, text) = self.place(column, field);
                Err(match found {
                    Some(_) => CsvError::MixedZones { file, row, column, text },
                    None => CsvError::NotATime { file, row, column, text },
                })
            }
        }
    }

    /// Returns the text in a field unchanged.
    fn text<'a>(&self, row: u64, field: &'a [u8], column: &str) -> Result<&'a str, CsvError> {
        str::from_utf8(field).map_err(|_| {
            let (file, column, _) = self.place(column, field);
            CsvError::NotUtf8 { file, row, column }
        })
    }

    /// Returns the file, the column and the text for an error message.
    fn place(&self, column: &str, field: &[u8]) -> (Arc<str>, String, String) {
        let text = String::from_utf8_lossy(field).chars().take(40).collect();
        (self.name.clone(), column.to_string(), text)
    }
}

/// Counts the line feeds before the record that starts at or after this byte.
fn count_lines(bytes: &[u8], at: usize) -> u64 {
    let blank = |b: &&u8| matches!(**b, b'\n' | b'\r');
    let start = at + bytes.get(at..).unwrap_or_default().iter().take_while(blank).count();
    let before = &bytes[..start.min(bytes.len())];
    before.iter().filter(|b| **b == b'\n').count() as u64
}

/// Returns the names of the columns, and whether the file has a header.
fn read_header(
    records: &mut Records<Source>,
    name: &Arc<str>,
    header: Header,
) -> Result<(Vec<String>, bool)> {
    let in_file = |error| CsvError::Records { file: name.clone(), error };
    let delimiter = records.delimiter();
    let first = records.peek().map_err(in_file)?;
    if first.starts_with(b"\xff\xfe") || first.starts_with(b"\xfe\xff") {
        return Err(Error::not_a_table(name, "is UTF-16 text; convert it to UTF-8"));
    }
    if memchr::memchr_iter(delimiter, first).count() >= MOST_COLUMNS {
        let columns = fields_of(first, delimiter).next().map_or(0, |(_, fields)| fields);
        if columns > MOST_COLUMNS {
            let how = format!("has {columns} columns; at most {MOST_COLUMNS} can be read");
            return Err(Error::not_a_table(name, how));
        }
    }
    let mut reader = ReaderBuilder::new();
    let mut reader = reader.has_headers(false).delimiter(delimiter).from_reader(first);
    let mut record = ByteRecord::new();
    let failed = |e: csv::Error| Error::damaged(name, format!("cannot be read: {e}"));
    reader.read_byte_record(&mut record).map_err(failed)?;
    if record.is_empty() {
        return Err(Error::Empty { name: name.to_string() });
    }
    let single = record.len() == 1;
    let number = |field: &[u8]| parse::number(field).is_some_and(|x| !x.is_nan());
    if header == Header::Absent || header == Header::Guessed && record.iter().all(number) {
        if single {
            records.single_column();
        }
        return Ok((default_names(record.len()), false));
    }
    let names = column_names(name, record.iter())?;
    if header == Header::Expected && names.iter().all(|n| n.parse::<f64>().is_ok()) {
        let start = names[..names.len().min(3)].join(",");
        let how = format!(
            "the first line looks like data ({start}…); pass `no_header` if it is, `header` if \
             these are names"
        );
        return Err(Error::in_file(name, how));
    }
    records.skip().map_err(in_file)?;
    if single {
        records.single_column();
    }
    Ok((names, true))
}

/// Returns the names in a header. A column without a name gets a name that no other column has.
pub fn column_names<'a>(file: &str, fields: impl Iterator<Item = &'a [u8]>) -> Result<Vec<String>> {
    let mut names: Vec<String> = Vec::new();
    for (j, field) in fields.enumerate() {
        let not_text =
            |_| Error::in_file(file, format!("the name of column {} is not valid UTF-8", j + 1));
        let text = std::str::from_utf8(field).map_err(not_text)?.trim();
        names.push(text.to_string());
    }
    let given: HashSet<String> = names.iter().cloned().collect();
    let free = |name: &String| !given.contains(name);
    let mut others = (0..).map(|i| format!("unnamed{i}")).filter(free);
    for (j, name) in names.iter_mut().enumerate().filter(|(_, name)| name.is_empty()) {
        // Follow the convention of pandas for an unnamed index, and avoid names that the file uses.
        *name = Some(format!("c{j}")).filter(free).or_else(|| others.next()).unwrap_or_default();
    }
    Ok(names)
}

/// Returns the error of the first row with a missing value, which precedes the error of a later row
/// that cannot be parsed.
fn first_missing(block: &Block, columns: &Places) -> Option<nysketch_core::Error> {
    // Ignore values of the row that cannot be parsed.
    for (number, row, weight) in block.rows() {
        let names = columns.names.values.iter().chain(&columns.names.weight);
        let values = row.iter().copied().chain(columns.weight.map(|_| weight));
        if let Some((value, name)) = values.zip(names).find(|(x, _)| !x.is_finite()) {
            return Some(nysketch_core::Error::NonFinite { at: block.place(number, name), value });
        }
    }
    None
}

/// A CSV file that is being read.
pub struct CsvTrack {
    csv: Arc<Csv>,
    columns: Arc<Places>,
    records: Records<Source>,
    size: usize,
}

impl Track for CsvTrack {
    fn read(&mut self) -> nysketch_core::Result<Option<Box<dyn Raw>>> {
        let chunk = self.records.next_chunk(self.size).map_err(|error| {
            nysketch_core::Error::source(CsvError::Records { file: self.csv.name.clone(), error })
        })?;
        let (csv, columns) = (self.csv.clone(), self.columns.clone());
        Ok(chunk.map(|chunk| Box::new(CsvRaw { csv, columns, chunk }) as Box<dyn Raw>))
    }
}

struct CsvRaw {
    csv: Arc<Csv>,
    columns: Arc<Places>,
    chunk: Chunk,
}

impl Raw for CsvRaw {
    fn rows(&self) -> u64 {
        self.chunk.rows
    }

    fn decode(self: Box<Self>, first_row: u64) -> nysketch_core::Result<Batch> {
        let (csv, columns) = (&self.csv, &*self.columns);
        let rows = self.chunk.rows as usize;
        let mut all = TextRows::new(columns, rows);
        let visited = csv.for_each_record(&self.chunk, first_row, |row, record| {
            let field = |column: usize| record.get(column).unwrap_or_default();
            let number = |cell: &Cell<'_>| match cell {
                Cell::Constant(x) => Ok(*x),
                Cell::Number { column, name, truths } => {
                    csv.number(row, field(*column), name, *truths)
                }
                Cell::Time { column, name, zone } => csv.time(row, field(*column), name, zone),
            };
            all.add(number, |column, name| csv.text(row, field(column), name))
        });
        if let Err(error) = visited {
            let block = &mut all.block;
            block.first_row = first_row;
            block.file = csv.name.clone();
            // A missing value before the error comes first, unless missing values are allowed.
            let missing =
                if csv.dialect.allow_missing { None } else { first_missing(block, columns) };
            return Err(missing.unwrap_or_else(|| nysketch_core::Error::source(error)));
        }
        Ok(all.finish(rows))
    }
}
