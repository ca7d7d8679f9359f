//! CSV and TSV files, streamed. Records are split while a part is handed out; numbers are read by
//! the thread that took it.

use super::{Schema, Selection, part_rows, unnamed};
use anyhow::{Context, Result, bail};
use csv::{ByteRecord, Reader, ReaderBuilder};
use nysketch::{Block, Error, RowPart, RowStream};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// Records looked at to tell numeric columns from text.
const SNIFFED: usize = 200;
/// Bytes of records after which a part ends.
const PART_BYTES: usize = 1 << 20;
/// Lines of one record beyond which a quote must have been left open.
const MOST_LINES: u64 = 1000;

/// Whether the first line holds names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Header {
    /// Yes, unless it looks like data, which is an error.
    Expected,
    /// Yes.
    Yes,
    /// No.
    No,
}

impl Header {
    /// From the two flags.
    pub fn from_args(header: bool, no_header: bool) -> Self {
        match (header, no_header) {
            (true, _) => Header::Yes,
            (_, true) => Header::No,
            _ => Header::Expected,
        }
    }
}

type Source = Box<dyn Read + Send>;

/// A reader of records that also counts quotes, so that one left open can be told at the end.
struct Records {
    reader: Reader<Source>,
    quotes: Arc<AtomicU64>,
}

struct CountQuotes {
    source: Source,
    quotes: Arc<AtomicU64>,
}

impl Read for CountQuotes {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.source.read(buffer)?;
        let quotes = buffer[..n].iter().filter(|b| **b == b'"').count() as u64;
        self.quotes.fetch_add(quotes, Ordering::Relaxed);
        Ok(n)
    }
}

/// A CSV file, or stdin, which can be read only once.
pub struct Csv {
    name: Arc<str>,
    path: Option<PathBuf>,
    delimiter: u8,
    header: bool,
    /// Whether cells that are not numbers are left to be skipped with their row.
    lenient: bool,
    stdin: Mutex<Option<Records>>,
}

impl std::fmt::Debug for Csv {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Csv").field("name", &self.name).finish_non_exhaustive()
    }
}

/// What can be wrong in a CSV file.
#[derive(Debug, thiserror::Error)]
enum CsvError {
    #[error(
        "{file}: row {row}, column '{column}': '{text}' is not a number; fix it, leave the column out with --exclude, or skip such rows with --skip-invalid"
    )]
    NotANumber { file: Arc<str>, row: u64, column: String, text: String },
    #[error("{file}: row {row} (line {line}) has {found} fields, expected {expected}")]
    Ragged { file: Arc<str>, row: u64, line: u64, found: u64, expected: u64 },
    #[error("{file}: row {row}: {source}")]
    Read { file: Arc<str>, row: u64, source: csv::Error },
    #[error("{file}: row {row} goes on over {lines} lines: a quote (\") is not closed")]
    OpenQuote { file: Arc<str>, row: u64, lines: u64 },
    #[error("stdin can be read only once")]
    StdinTwice,
}

fn records(source: Source, delimiter: u8, header: bool) -> Records {
    let quotes = Arc::new(AtomicU64::new(0));
    let source: Source = Box::new(CountQuotes { source, quotes: quotes.clone() });
    let reader = ReaderBuilder::new()
        .has_headers(header)
        .delimiter(delimiter)
        .buffer_capacity(1 << 18)
        .from_reader(source);
    Records { reader, quotes }
}

fn open_source(path: &Path) -> io::Result<Source> {
    Ok(Box::new(File::open(path)?))
}

impl Csv {
    /// Opens a file and looks at its first records.
    pub fn open(
        path: &Path,
        name: Arc<str>,
        delimiter: u8,
        header: Header,
        lenient: bool,
    ) -> Result<(Self, Schema)> {
        let has_header = header != Header::No;
        let source = open_source(path).with_context(|| format!("cannot read {name}"))?;
        let mut records = records(source, delimiter, has_header).reader;
        let mut schema = read_header(&mut records, &name, has_header)?;
        if header == Header::Expected && schema.names.iter().all(|n| n.parse::<f64>().is_ok()) {
            bail!(
                "{name}: the first line looks like data ({}…); pass --no-header if it is, --header if these are names",
                schema.names.iter().take(3).cloned().collect::<Vec<_>>().join(",")
            );
        }
        // A column is text where most of its values are; one odd cell among numbers is an error later.
        let mut balance = vec![0i32; schema.names.len()];
        for (row, record) in records.byte_records().take(SNIFFED).enumerate() {
            let record = record.map_err(|e| read_error(&name, row as u64 + 1, e))?;
            for (j, field) in record.iter().enumerate() {
                balance[j] += match parse(field) {
                    Some(x) if x.is_nan() => 0,
                    Some(_) => 1,
                    None => -1,
                };
            }
        }
        schema.numeric = balance.iter().map(|b| *b >= 0).collect();
        let csv = Csv {
            name,
            path: Some(path.to_path_buf()),
            delimiter,
            header: has_header,
            lenient,
            stdin: Mutex::new(None),
        };
        Ok((csv, schema))
    }

    /// Reads the header from stdin and keeps the rest for the one stream there can be.
    pub fn stdin(delimiter: u8, header: bool, lenient: bool) -> Result<(Self, Schema)> {
        let name: Arc<str> = Arc::from("stdin");
        let mut records = records(Box::new(io::stdin()), delimiter, header);
        let schema = read_header(&mut records.reader, &name, header)?;
        let stdin = Mutex::new(Some(records));
        Ok((Csv { name, path: None, delimiter: b',', header, lenient, stdin }, schema))
    }

    /// Starts reading.
    pub fn stream<'a>(
        &'a self,
        selection: &'a Selection,
        file_index: u64,
    ) -> nysketch::Result<Box<dyn RowStream<'a> + 'a>> {
        let mut records = match &self.path {
            Some(path) => {
                records(open_source(path).map_err(Error::source)?, self.delimiter, self.header)
            }
            None => self
                .stdin
                .lock()
                .unwrap_or_else(|e| e.into_inner())
                .take()
                .ok_or_else(|| Error::source(CsvError::StdinTwice))?,
        };
        if self.header {
            // Past the header, so that lines are counted from the first row on.
            let header = records.reader.byte_headers();
            header.map_err(|e| Error::source(read_error(&self.name, 1, e)))?;
        }
        Ok(Box::new(CsvStream {
            csv: self,
            selection,
            file_index,
            records,
            next_row: 1,
            extra_lines: 0,
        }))
    }
}

/// Names of the columns; all are taken for numeric until records say otherwise.
fn read_header(records: &mut Reader<Source>, name: &str, header: bool) -> Result<Schema> {
    let first = records.byte_headers().map_err(|e| read_error(&Arc::from(name), 1, e))?;
    if first.is_empty() {
        bail!("{name} is empty");
    }
    if !header {
        return Ok(unnamed(first.len(), None));
    }
    let mut names: Vec<String> = Vec::new();
    for (j, field) in first.iter().enumerate() {
        let text = std::str::from_utf8(field)
            .with_context(|| format!("{name}: the name of column {} is not valid UTF-8", j + 1))?
            .trim();
        // As pandas writes its index.
        let default = format!("c{j}");
        let text = if text.is_empty() { default.as_str() } else { text };
        if names.iter().any(|n| n == text) {
            bail!("{name}: two columns are called '{text}'");
        }
        names.push(text.to_string());
    }
    Ok(Schema { numeric: vec![true; names.len()], names, named: true, rows: None })
}

fn read_error(file: &Arc<str>, row: u64, error: csv::Error) -> CsvError {
    match error.kind() {
        csv::ErrorKind::UnequalLengths { pos, expected_len, len } => CsvError::Ragged {
            file: file.clone(),
            row,
            line: pos.as_ref().map_or(0, |p| p.line()),
            found: *len,
            expected: *expected_len,
        },
        _ => CsvError::Read { file: file.clone(), row, source: error },
    }
}

/// The number in a field: NaN where it is missing, `None` where it is text.
fn parse(field: &[u8]) -> Option<f64> {
    let text = std::str::from_utf8(field).ok()?.trim();
    match text {
        "" | "NA" | "N/A" | "null" | "NULL" | "None" => Some(f64::NAN),
        _ => text.parse().ok(),
    }
}

struct CsvStream<'a> {
    csv: &'a Csv,
    selection: &'a Selection,
    file_index: u64,
    records: Records,
    next_row: u64,
    /// Lines that the last record goes on over after its first.
    extra_lines: u64,
}

impl CsvStream<'_> {
    /// Reads one record, and before it the blank lines of a file of one column, which are missing
    /// values there. `false` at the end.
    fn read(&mut self, into: &mut Vec<ByteRecord>) -> nysketch::Result<bool> {
        let fail = |error| Err(Error::source(error));
        let mut record = ByteRecord::new();
        let reader = &mut self.records.reader;
        let before = reader.position().line();
        match reader.read_byte_record(&mut record) {
            Ok(true) => {}
            Ok(false)
                if self.extra_lines > 0 && self.records.quotes.load(Ordering::Relaxed) % 2 == 1 =>
            {
                let (file, row) = (self.csv.name.clone(), self.next_row - 1);
                return fail(CsvError::OpenQuote { file, row, lines: self.extra_lines + 1 });
            }
            Ok(false) => return Ok(false),
            Err(e) => return fail(read_error(&self.csv.name, self.next_row, e)),
        }
        self.extra_lines = record.as_slice().iter().filter(|b| **b == b'\n').count() as u64;
        if self.extra_lines > MOST_LINES {
            let (file, row) = (self.csv.name.clone(), self.next_row);
            return fail(CsvError::OpenQuote { file, row, lines: self.extra_lines + 1 });
        }
        if record.len() == 1 {
            let lines = reader.position().line() - before;
            for _ in self.extra_lines + 1..lines {
                into.push(ByteRecord::from(vec![""]));
                self.next_row += 1;
            }
        }
        into.push(record);
        self.next_row += 1;
        Ok(true)
    }
}

impl<'a> RowStream<'a> for CsvStream<'a> {
    fn next_part(&mut self) -> nysketch::Result<Option<Box<dyn RowPart + 'a>>> {
        let first_row = self.next_row;
        let wanted = part_rows(self.selection.columns.len());
        let mut records = Vec::new();
        let mut bytes = 0;
        // Whole records are kept, also of columns that nobody wants: their bytes count too.
        while records.len() < wanted && bytes < PART_BYTES && self.read(&mut records)? {
            bytes += records.last().map_or(0, |r: &ByteRecord| r.as_slice().len());
        }
        if records.is_empty() {
            return Ok(None);
        }
        Ok(Some(Box::new(CsvPart {
            csv: self.csv,
            selection: self.selection,
            file_index: self.file_index,
            records,
            first_row,
        })))
    }
}

struct CsvPart<'a> {
    csv: &'a Csv,
    selection: &'a Selection,
    file_index: u64,
    records: Vec<ByteRecord>,
    first_row: u64,
}

impl CsvPart<'_> {
    fn number(&self, i: usize, column: usize, name: &str) -> nysketch::Result<f64> {
        let field = self.records[i].get(column).unwrap_or_default();
        match parse(field) {
            Some(x) => Ok(x),
            None if self.csv.lenient => Ok(f64::NAN),
            None => Err(Error::source(CsvError::NotANumber {
                file: self.csv.name.clone(),
                row: self.first_row + i as u64,
                column: name.to_string(),
                text: String::from_utf8_lossy(field).chars().take(40).collect(),
            })),
        }
    }
}

impl RowPart for CsvPart<'_> {
    fn for_each_block(
        self: Box<Self>,
        visit: &mut dyn FnMut(&Block) -> nysketch::Result<()>,
    ) -> nysketch::Result<()> {
        let selection = self.selection;
        let mut values = Vec::with_capacity(self.records.len() * selection.columns.len());
        let mut weights = Vec::new();
        for i in 0..self.records.len() {
            for (&column, name) in selection.columns.iter().zip(selection.names.iter()) {
                values.push(self.number(i, column, name)?);
            }
            if let Some((column, name)) = &selection.weight {
                weights.push(self.number(i, *column, name)?);
            }
        }
        visit(&Block {
            values,
            weights,
            columns: selection.columns.len(),
            file: self.csv.name.clone(),
            file_index: self.file_index,
            first_row: self.first_row,
        })
    }
}
