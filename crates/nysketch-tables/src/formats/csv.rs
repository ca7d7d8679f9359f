//! CSV and TSV files, plain or compressed. Records are split while a part is handed out; numbers are
//! read by the thread that took it.

use super::records::{Chunk, RecordError, Records, single_fields};
use super::stored::Stored;
use crate::batch::Batch;
use crate::columns::{Kind, Places, Schema};
use crate::error::{Error, Result};
use crate::find::peek;
use crate::meter::Meter;
use crate::options::{Format, Header, ReadOptions};
use crate::track::{Raw, Track};
use arrow_array::StringArray;
use csv::{ByteRecord, ReaderBuilder};
use nysketch::Block;
use nysketch::rows::part_rows;
use std::collections::HashMap;
use std::io::{BufReader, Read};
use std::sync::{Arc, Mutex};

/// Records that decide which columns are numeric and which are text.
const SNIFFED: usize = 200;
/// Bytes of a part, at most.
const PART_BYTES: usize = 1 << 20;

/// How to read csv files.
#[derive(Debug, Clone, Copy)]
pub struct Dialect {
    pub delimiter: u8,
    pub header: Header,
    /// Whether text among numbers is a missing value, for the row to be skipped.
    pub lenient: bool,
}

impl Dialect {
    /// What the options say, or the format implies.
    pub fn new(format: Format, options: &ReadOptions) -> Self {
        let usual = if format == Format::Tsv { b'\t' } else { b',' };
        Dialect {
            delimiter: options.delimiter.unwrap_or(usual),
            header: options.header,
            lenient: options.skip_invalid,
        }
    }
}

/// Bytes, decompressed.
pub type Source = Box<dyn Read + Send>;

/// A CSV file, or stdin, which can be read only once.
pub struct Csv {
    name: Arc<str>,
    /// `None` for stdin.
    file: Option<Stored>,
    dialect: Dialect,
    fields: usize,
    /// Bytes of a usual record; of a part where that is not known.
    record_bytes: usize,
    stdin: Mutex<Option<Records<Source>>>,
}

impl std::fmt::Debug for Csv {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Csv").field("name", &self.name).finish_non_exhaustive()
    }
}

/// What can go wrong in a CSV file.
#[derive(Debug, thiserror::Error)]
enum CsvError {
    #[error(
        "{file}: row {row}, column '{column}': '{text}' is not a number; fix it, leave the column out with `exclude`, or skip such rows with `skip_invalid`"
    )]
    NotANumber { file: Arc<str>, row: u64, column: String, text: String },
    #[error("{file}: row {row}: a value is not valid UTF-8; convert the file")]
    NotUtf8 { file: Arc<str>, row: u64 },
    #[error("{file}: row {row} (line {line}): expected {expected} fields, found {found}")]
    Ragged { file: Arc<str>, row: u64, line: u64, found: usize, expected: usize },
    #[error("{file}: {error}")]
    Records { file: Arc<str>, error: RecordError },
    #[error("{file}: row {row}: {error}")]
    Parse { file: Arc<str>, row: u64, error: csv::Error },
    #[error("stdin can be read only once")]
    StdinTwice,
}

/// As an error of reading rows, or of opening a file.
impl From<CsvError> for Error {
    fn from(error: CsvError) -> Self {
        Error::Rows(nysketch::Error::source(error))
    }
}

/// Decompresses what starts like gzip or Zstandard.
pub fn decompressed(source: impl Read + Send + 'static) -> std::io::Result<Source> {
    let (start, source) = peek(source)?;
    let source = BufReader::with_capacity(1 << 17, source);
    if start.starts_with(b"\x1f\x8b") {
        return Ok(Box::new(flate2::bufread::MultiGzDecoder::new(source)));
    }
    // Some writers begin with a frame to skip, 0x184D2A50 … 5F.
    let skippable = start.get(1..4) == Some(b"\x2a\x4d\x18") && start[0] & 0xf0 == 0x50;
    if start.starts_with(b"\x28\xb5\x2f\xfd") || skippable {
        return Ok(Box::new(zstd::stream::read::Decoder::with_buffer(source)?));
    }
    Ok(Box::new(source))
}

impl Csv {
    /// Opens a file and looks at its first records.
    pub fn open(file: Stored, dialect: Dialect) -> Result<(Self, Schema)> {
        let name = file.name.clone();
        let source = decompressed(file.open()?).map_err(|e| Error::read(&name, e))?;
        let mut records = Records::new(source, dialect.delimiter);
        let mut schema = read_header(&mut records, &name, dialect.header)?;
        let fields = schema.names.len();
        let mut csv = Csv {
            name: name.clone(),
            file: Some(file),
            dialect,
            fields,
            record_bytes: 1,
            stdin: Mutex::new(None),
        };
        let in_file = |error| CsvError::Records { file: name.clone(), error };
        if let Some(chunk) = records.next_chunk(1 << 16).map_err(in_file)? {
            csv.record_bytes = (chunk.bytes.len() as u64).div_ceil(chunk.rows) as usize;
            schema.kinds = csv.sniff(&chunk)?;
        }
        Ok((csv, schema))
    }

    /// Reads the header from stdin and keeps the rest for the one track there can be.
    pub fn stdin(source: Source, dialect: Dialect) -> Result<(Self, Schema)> {
        let name: Arc<str> = Arc::from("stdin");
        let mut records = Records::new(source, dialect.delimiter);
        let schema = read_header(&mut records, &name, dialect.header)?;
        let fields = schema.names.len();
        let stdin = Mutex::new(Some(records));
        let file = None;
        Ok((Csv { name, file, dialect, fields, record_bytes: PART_BYTES, stdin }, schema))
    }

    /// A column is text where most of its values are, or all are missing; one odd value among numbers is
    /// an error later.
    fn sniff(&self, chunk: &Chunk) -> Result<Vec<Kind>> {
        let mut balance = vec![0i32; self.fields];
        let mut numbers = vec![false; self.fields];
        let mut seen = 0;
        self.for_each_record(chunk, 1, |_, fields| {
            seen += 1;
            if seen > SNIFFED {
                return Ok(());
            }
            for (j, balance) in balance.iter_mut().enumerate() {
                *balance += match parse(fields.get(j)) {
                    Some(x) if x.is_nan() => 0,
                    Some(_) => {
                        numbers[j] = true;
                        1
                    }
                    None => -1,
                };
            }
            Ok(())
        })?;
        let kind = |(b, numbers): (&i32, &bool)| match *b >= 0 && *numbers {
            true => Kind::Number,
            false => Kind::Text,
        };
        Ok(balance.iter().zip(&numbers).map(kind).collect())
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
        // About as many rows as a part of another format has, where its bytes allow it.
        let rows = part_rows(columns.values.len());
        let size = (rows * self.record_bytes).clamp(1 << 12, PART_BYTES);
        Ok(CsvTrack { csv: self.clone(), columns: columns.clone(), records, size })
    }

    /// Calls `visit` with the number and the fields of each record, and refuses ragged ones.
    fn for_each_record(
        &self,
        chunk: &Chunk,
        first_row: u64,
        mut visit: impl FnMut(u64, &ByteRecord) -> Result<(), CsvError>,
    ) -> Result<(), CsvError> {
        let mut row = first_row;
        let mut check = |at: usize, record: &ByteRecord| {
            if record.len() != self.fields {
                return Err(CsvError::Ragged {
                    file: self.name.clone(),
                    row,
                    line: chunk.line + count_lines(&chunk.bytes, at),
                    found: record.len(),
                    expected: self.fields,
                });
            }
            visit(row, record)?;
            row += 1;
            Ok(())
        };
        let mut reader = ReaderBuilder::new();
        reader.has_headers(false).flexible(true).delimiter(self.dialect.delimiter);
        let mut record = ByteRecord::new();
        if self.fields > 1 {
            let mut reader = reader.from_reader(&chunk.bytes[..]);
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
        single_fields(&chunk.bytes, self.dialect.delimiter, |field| {
            if result.is_err() {
                return;
            }
            record.clear();
            if field.contains(&b'"') || field.contains(&self.dialect.delimiter) {
                // One record without its end always parses.
                let _ = reader.from_reader(field).read_byte_record(&mut record);
            } else {
                record.push_field(field);
            }
            let at = field.as_ptr().addr().wrapping_sub(chunk.bytes.as_ptr().addr());
            result = check(at, &record);
        });
        result
    }

    fn number(&self, row: u64, field: Option<&[u8]>, column: &str) -> Result<f64, CsvError> {
        match parse(field) {
            Some(x) => Ok(x),
            None if self.dialect.lenient => Ok(f64::NAN),
            None => Err(CsvError::NotANumber {
                file: self.name.clone(),
                row,
                column: column.to_string(),
                text: String::from_utf8_lossy(field.unwrap_or_default()).chars().take(40).collect(),
            }),
        }
    }
}

/// Line feeds before the record that starts at or after this byte.
fn count_lines(bytes: &[u8], at: usize) -> u64 {
    let blank = |b: &&u8| matches!(**b, b'\n' | b'\r');
    let start = at + bytes.get(at..).unwrap_or_default().iter().take_while(blank).count();
    let before = &bytes[..start.min(bytes.len())];
    before.iter().filter(|b| **b == b'\n').count() as u64
}

/// Names of the columns; all count as numeric until records show otherwise.
fn read_header(records: &mut Records<Source>, name: &Arc<str>, header: Header) -> Result<Schema> {
    let in_file = |error| CsvError::Records { file: name.clone(), error };
    let delimiter = records.delimiter();
    let first = records.peek().map_err(in_file)?;
    if first.starts_with(b"\xff\xfe") || first.starts_with(b"\xfe\xff") {
        return Err(Error::not_a_table(name, "is UTF-16 text; convert it to UTF-8"));
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
    if header == Header::Absent {
        if single {
            records.single_column();
        }
        return Ok(Schema::unnamed(record.len(), None));
    }
    let mut names: Vec<String> = Vec::new();
    let mut seen = std::collections::HashSet::new();
    for (j, field) in record.iter().enumerate() {
        let not_text =
            |_| Error::in_file(name, format!("the name of column {} is not valid UTF-8", j + 1));
        let text = std::str::from_utf8(field).map_err(not_text)?.trim();
        // As pandas writes its index.
        let text = if text.is_empty() { format!("c{j}") } else { text.to_string() };
        if !seen.insert(text.clone()) {
            return Err(Error::in_file(name, format!("two columns are called '{text}'")));
        }
        names.push(text);
    }
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
    Ok(Schema { kinds: vec![Kind::Number; names.len()], names, named: true, rows: None })
}

/// Fields that stand for a missing value.
fn is_missing(text: &str) -> bool {
    matches!(text, "" | "NA" | "N/A" | "null" | "NULL" | "None")
}

/// The number in a field: NaN where it is missing, `None` where it is text.
fn parse(field: Option<&[u8]>) -> Option<f64> {
    let text = std::str::from_utf8(field.unwrap_or_default()).ok()?.trim_ascii();
    if is_missing(text) { Some(f64::NAN) } else { text.parse().ok() }
}

/// A CSV file being read.
pub struct CsvTrack {
    csv: Arc<Csv>,
    columns: Arc<Places>,
    records: Records<Source>,
    size: usize,
}

impl Track for CsvTrack {
    fn read(&mut self) -> nysketch::Result<Option<Box<dyn Raw>>> {
        let chunk = self.records.next_chunk(self.size).map_err(|error| {
            nysketch::Error::source(CsvError::Records { file: self.csv.name.clone(), error })
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

    fn decode(self: Box<Self>, first_row: u64) -> nysketch::Result<Batch> {
        let (csv, columns) = (&self.csv, &*self.columns);
        let rows = self.chunk.rows as usize;
        let d = columns.values.len();
        let mut block = Block { columns: d, ..Block::default() };
        block.values.reserve(rows * d);
        let mut kept: Vec<Vec<Option<String>>> = vec![Vec::new(); columns.kept.len()];
        let mut keys: HashMap<String, Arc<str>> = HashMap::new();
        // Text is taken as it is; only a field without a byte is missing.
        let text = |row: u64, field: Option<&[u8]>| match str::from_utf8(field.unwrap_or_default())
        {
            Ok("") => Ok(None),
            Ok(text) => Ok(Some(text.to_string())),
            Err(_) => Err(CsvError::NotUtf8 { file: csv.name.clone(), row }),
        };
        let visited = csv.for_each_record(&self.chunk, first_row, |row, record| {
            for (&column, name) in columns.values.iter().zip(&columns.names.values) {
                block.values.push(csv.number(row, record.get(column), name)?);
            }
            if let (Some(column), Some(name)) = (columns.weight, &columns.names.weight) {
                block.weights.push(csv.number(row, record.get(column), name)?);
            }
            if let Some(column) = columns.key {
                let key = text(row, record.get(column))?
                    .map(|t| keys.entry(t).or_insert_with_key(|t| Arc::from(t.as_str())).clone());
                block.keys.push(key);
            }
            for (out, &column) in kept.iter_mut().zip(&columns.kept) {
                out.push(text(row, record.get(column))?);
            }
            Ok(())
        });
        visited.map_err(nysketch::Error::source)?;
        let kept = kept.into_iter().map(|k| Arc::new(StringArray::from(k)) as _).collect();
        Ok(Batch::new(block, kept))
    }
}
