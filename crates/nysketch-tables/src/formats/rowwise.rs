//! CSV files under a private plan. Each line is a row, is read separately, and is never an error.
//! The format and the columns of a file depend on its name, the options and its header, and never
//! on a row.

use super::csv::{Dialect, Source, column_names, decompressed};
use super::lines::{Cutter, Fields, Lines};
use super::stored::Stored;
use super::text_rows::{Cell, TextRows};
use crate::batch::Batch;
use crate::error::{Error, Result};
use crate::meter::Meter;
use crate::options::{Columns, Header, ReadOptions};
use crate::parse;
use crate::places::{Places, Text};
use crate::schema::{Column, Kind, Schema};
use crate::track::{Raw, Track};
use nysketch_core::rows::default_names;
use std::convert::Infallible;
use std::io::{self, BufReader, Read};
use std::path::Path;
use std::sync::{Arc, Mutex};

/// Approximate size of a part in bytes.
const PART_BYTES: usize = 1 << 19;
/// Maximum number of columns in a file.
const MOST_COLUMNS: usize = 1 << 20;

/// The number of fields of a line.
#[derive(Debug, Clone, Copy)]
struct Width {
    /// Number of fields in every valid line.
    fields: usize,
    /// Whether a line may have more.
    more: bool,
}

/// A CSV file, or stdin, which can be read only once.
pub struct Rowwise {
    name: Arc<str>,
    /// `None` for stdin.
    file: Option<Stored>,
    dialect: Dialect,
    width: Width,
    stdin: Mutex<Option<Cutter<Source>>>,
}

impl std::fmt::Debug for Rowwise {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Rowwise").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Rowwise {
    /// Opens a file and reads its header, if it has one.
    pub fn open(file: Stored, dialect: Dialect, options: &ReadOptions) -> Result<(Self, Schema)> {
        let name = file.name.clone();
        let mut lines = Cutter::new(source_of(file.open()?, &name, &file.path, dialect)?);
        let (width, schema) = columns_of(&mut lines, &name, dialect, options)?;
        let stdin = Mutex::default();
        Ok((Rowwise { name, file: Some(file), dialect, width, stdin }, schema))
    }

    /// Reads the header from stdin, if it has one, and keeps the rest for the only possible track.
    pub fn stdin(
        source: impl Read + Send + 'static,
        dialect: Dialect,
        options: &ReadOptions,
    ) -> Result<(Self, Schema)> {
        let name: Arc<str> = Arc::from("stdin");
        let mut lines = Cutter::new(source_of(source, &name, Path::new(""), dialect)?);
        let (width, schema) = columns_of(&mut lines, &name, dialect, options)?;
        let stdin = Mutex::new(Some(lines));
        Ok((Rowwise { name, file: None, dialect, width, stdin }, schema))
    }

    /// Starts reading.
    pub fn track(self: &Arc<Self>, columns: &Arc<Places>, meter: &Arc<Meter>) -> Result<RowTrack> {
        let lines = match &self.file {
            Some(file) => {
                let bytes = meter.count(file.open()?);
                let mut lines =
                    Cutter::new(source_of(bytes, &self.name, &file.path, self.dialect)?);
                if self.dialect.header != Header::Absent {
                    lines.first().map_err(|e| Error::read(&self.name, e))?;
                }
                lines
            }
            None => {
                let mut stdin = self.stdin.lock().unwrap_or_else(|e| e.into_inner());
                stdin.take().ok_or_else(|| Error::damaged("stdin", "can be read only once"))?
            }
        };
        Ok(RowTrack { csv: self.clone(), columns: columns.clone(), lines })
    }
}

/// Returns the decompressed text. Without a header, the first bytes belong to a row, so the name of
/// the file decides whether it is compressed.
fn source_of(
    bytes: impl Read + Send + 'static,
    name: &str,
    path: &Path,
    dialect: Dialect,
) -> Result<Source> {
    let compressed = path.extension().is_some_and(|e| e == "gz" || e == "zst");
    if dialect.header == Header::Absent && !compressed {
        return Ok(Box::new(BufReader::with_capacity(1 << 17, bytes)));
    }
    decompressed(bytes).map_err(|e: io::Error| Error::read(name, e))
}

/// Returns the columns of the header or, without a header, the columns that the options require.
fn columns_of(
    lines: &mut Cutter<Source>,
    name: &Arc<str>,
    dialect: Dialect,
    options: &ReadOptions,
) -> Result<(Width, Schema)> {
    let kind = || (Kind::Text, "text".to_string());
    let (width, mut schema) = if dialect.header == Header::Absent {
        let width = width_of(options);
        (width, Schema::unnamed(name, vec![kind(); width.fields], None)?)
    } else {
        let header = lines.first().map_err(|e| Error::read(name, e))?;
        let header = header.ok_or_else(|| Error::Empty { name: name.to_string() })?;
        if header.starts_with(b"\xff\xfe") || header.starts_with(b"\xfe\xff") {
            return Err(Error::not_a_table(name, "is UTF-16 text; convert it to UTF-8"));
        }
        let mut fields = Fields::default();
        if !fields.split(&header, dialect.delimiter, MOST_COLUMNS) {
            let how = "a quote (\") in the first line, which names the columns, is never closed";
            return Err(Error::in_file(name, how));
        }
        let found = fields.len();
        if found > MOST_COLUMNS {
            let how = format!("has more than {MOST_COLUMNS} columns, the most that can be read");
            return Err(Error::not_a_table(name, how));
        }
        let names = column_names(name, (0..found).map(|i| fields.get(i)))?;
        let column = |name| {
            let (kind, holds) = kind();
            Column { name, holds, kind, index: false }
        };
        let columns = names.into_iter().map(column).collect();
        (Width { fields: found, more: false }, Schema::named(name, columns, None)?)
    };
    schema.texts = true;
    Ok((width, schema))
}

/// Returns the number of fields in a line of a file without a header. If all columns are called
/// `c0`, `c1`, …, a line may have more fields than are read. Otherwise its fields are the columns
/// of numbers in their order.
fn width_of(options: &ReadOptions) -> Width {
    let Columns::Exactly { numbers, categories, .. } = &options.columns else {
        return Width { fields: 0, more: true };
    };
    let extras = &options.extras;
    let others = categories.iter().chain(&extras.weight).chain(&extras.key).chain(&extras.keep);
    let last = numbers.iter().chain(others).map(|name| number_of(name)).collect::<Option<Vec<_>>>();
    match last.and_then(|all| all.into_iter().max()) {
        Some(last) => Width { fields: last + 1, more: true },
        None => Width { fields: numbers.len(), more: false },
    }
}

/// Returns the number of a column with a default name, such as 3 for `c3`.
fn number_of(name: &str) -> Option<usize> {
    let number: usize = name.strip_prefix('c')?.parse().ok()?;
    (number < MOST_COLUMNS && default_names(number + 1).last().is_some_and(|n| n == name))
        .then_some(number)
}

/// A CSV file that is being read.
pub struct RowTrack {
    csv: Arc<Rowwise>,
    columns: Arc<Places>,
    lines: Cutter<Source>,
}

impl Track for RowTrack {
    fn read(&mut self) -> nysketch_core::Result<Option<Box<dyn Raw>>> {
        let lines = self.lines.next(PART_BYTES).map_err(|e| Error::read(&self.csv.name, e))?;
        let (csv, columns) = (self.csv.clone(), self.columns.clone());
        Ok(lines.map(|lines| Box::new(Rows { csv, columns, lines }) as Box<dyn Raw>))
    }
}

struct Rows {
    csv: Arc<Rowwise>,
    columns: Arc<Places>,
    lines: Lines,
}

impl Raw for Rows {
    fn rows(&self) -> u64 {
        self.lines.rows
    }

    fn decode(self: Box<Self>, _: u64) -> nysketch_core::Result<Batch> {
        let (columns, rows) = (&*self.columns, self.lines.rows as usize);
        let (Width { fields, more }, delimiter) = (self.csv.width, self.csv.dialect.delimiter);
        let most = fields.saturating_sub(usize::from(more));
        let texts: Vec<usize> = text_columns(columns).collect();
        let mut record = Fields::default();
        let mut all = TextRows::new(columns, rows);
        for line in self.lines.iter() {
            let readable = record.split(line, delimiter, most)
                && record.len() == fields
                && texts.iter().all(|column| str::from_utf8(record.get(*column)).is_ok());
            if !readable {
                record.clear();
            }
            let number = |cell: &Cell<'_>| -> Result<f64, Infallible> {
                Ok(if readable { number_in(&record, cell) } else { f64::INFINITY })
            };
            // The text was checked above.
            let text = |column, _: &str| Ok(str::from_utf8(record.get(column)).unwrap_or_default());
            let Ok(()) = all.add(number, text);
        }
        Ok(all.finish(rows))
    }
}

/// Returns the columns that are read as text.
fn text_columns(columns: &Places) -> impl Iterator<Item = usize> {
    let texts = columns.categories.iter().chain(&columns.key).chain(&columns.kept);
    texts.filter_map(|text| match text {
        Text::Column(column) => Some(*column),
        Text::Constant(_) => None,
    })
}

/// Returns the number in a cell. It is infinite, so that the row is invalid, if the field cannot be
/// parsed.
fn number_in(record: &Fields, cell: &Cell<'_>) -> f64 {
    match cell {
        Cell::Constant(x) => *x,
        Cell::Number { column, .. } => parse::read_number(record.get(*column)),
        // Rows may differ in whether they have a zone: other rows must not affect this one.
        Cell::Time { column, .. } => {
            parse::time(record.get(*column)).map_or(f64::INFINITY, |time| time.seconds)
        }
    }
}
