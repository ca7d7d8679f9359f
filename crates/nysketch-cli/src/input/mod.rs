//! INPUT: from paths on the command line to a source of rows.
//!
//! Each format tells its columns ([`Schema`]) and opens a stream of parts for chosen ones; a new
//! format is one more variant of [`Format`].

mod csv;
mod npy;

use crate::args::InputArgs;
use crate::output::Usage;
use anyhow::{Context, Result, bail};
use nysketch::plan::MAX_COLUMNS;
use nysketch::rows::{default_names, read_in_order};
use nysketch::{RowPart, RowSource, RowStream};
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

/// Values in one part: about 1 MB of doubles.
const PART_VALUES: usize = 1 << 17;

/// Rows in one part of a table with so many columns.
fn part_rows(columns: usize) -> usize {
    (PART_VALUES / columns.max(1)).clamp(1, 1 << 14)
}

/// The columns of a file.
#[derive(Debug, Clone)]
pub struct Schema {
    /// Names; `c0`, `c1`, … where the file has none.
    names: Vec<String>,
    /// Whether the file itself names them.
    named: bool,
    /// Which hold numbers.
    numeric: Vec<bool>,
    /// Number of rows, where the file tells.
    rows: Option<u64>,
}

/// Where the wanted columns stand in a file.
#[derive(Debug, Clone)]
struct Selection {
    /// Whether names were not found and positions were taken instead.
    by_position: bool,
    columns: Vec<usize>,
    names: Arc<[String]>,
    weight: Option<(usize, String)>,
}

#[derive(Debug)]
enum Format {
    Csv(csv::Csv),
    Npy(npy::Npy),
}

/// One file of the input.
#[derive(Debug)]
struct InputFile {
    name: Arc<str>,
    format: Format,
    schema: Schema,
    selection: Selection,
}

/// Several files as one source of rows.
#[derive(Debug)]
pub struct Input {
    files: Vec<InputFile>,
    columns: Vec<String>,
    /// Text columns that were left out.
    pub left_out: Vec<String>,
    /// Numeric columns that only later files have.
    pub unused: Vec<String>,
}

/// Which columns to read.
pub enum Wanted<'a> {
    /// Those of a plan.
    Plan(&'a nysketch::Plan),
    /// These, and a column that comes as the blocks' weights.
    Columns(&'a [String], Option<&'a str>),
    /// Those the options choose, and a column of weights.
    Options { weights: Option<&'a str> },
}

impl Input {
    /// Opens every file, finds the columns, and checks that all files have them.
    pub fn open(args: &InputArgs, wanted: Wanted<'_>) -> Result<Self> {
        let mut opened = Vec::new();
        for path in &args.input {
            opened.push(open_file(path, args)?);
        }
        let Some(first) = opened.first() else { bail!("no input file") };
        let mut left_out = Vec::new();
        let mut unused = Vec::new();
        let (columns, weight) = match wanted {
            Wanted::Plan(plan) => {
                (plan.columns.clone(), plan.weighting.as_ref().map(|w| w.column.clone()))
            }
            Wanted::Columns(columns, extra) => (columns.to_vec(), extra.map(str::to_string)),
            Wanted::Options { weights } => {
                let columns = choose_columns(args, &first.2, &first.0, weights, &mut left_out)?;
                if args.columns.is_none() {
                    let known = |n: &String| {
                        columns.contains(n) || args.exclude.contains(n) || weights == Some(n)
                    };
                    for (file, _, schema) in &opened {
                        for (name, numeric) in schema.names.iter().zip(&schema.numeric) {
                            if *numeric && !known(name) && !left_out.contains(name) {
                                unused.push(format!("'{name}' of {file}"));
                            }
                        }
                    }
                }
                (columns, weights.map(str::to_string))
            }
        };
        if columns.len() > MAX_COLUMNS {
            bail!(
                "{} columns are more than the {MAX_COLUMNS} that a plan can hold; choose some with --columns",
                columns.len()
            );
        }
        let mut files = Vec::new();
        for (name, format, schema) in opened {
            let selection = select(&name, &schema, &columns, weight.as_deref())?;
            files.push(InputFile { name, format, schema, selection });
        }
        Ok(Input { files, columns, left_out, unused })
    }

    /// Names of the columns of a file.
    pub fn names_of(path: &Path, args: &InputArgs) -> Result<Vec<String>> {
        Ok(open_file(path, args)?.2.names)
    }

    /// Files without names whose columns were taken by position.
    pub fn by_position(&self) -> Vec<String> {
        self.files.iter().filter(|f| f.selection.by_position).map(|f| f.name.to_string()).collect()
    }

    /// Number of rows, where every file tells.
    pub fn rows_hint(&self) -> Option<u64> {
        self.files.iter().map(|f| f.schema.rows).sum()
    }

    /// All rows in memory, all of them finite: for files of landmarks.
    pub fn read_all(&self) -> Result<Vec<Vec<f64>>> {
        let mut rows = Vec::new();
        read_in_order(self, &(), |block| {
            for (number, row, _) in block.rows() {
                if let Some(j) = row.iter().position(|x| !x.is_finite()) {
                    let at = block.cell(number, &self.columns[j]);
                    return Err(nysketch::Error::NonFinite { at, value: row[j] });
                }
                rows.push(row.to_vec());
            }
            Ok(())
        })?;
        Ok(rows)
    }
}

/// The name shown, the format and the columns of one path.
fn open_file(path: &Path, args: &InputArgs) -> Result<(Arc<str>, Format, Schema)> {
    if path == Path::new("-") {
        let delimiter = args.delimiter.unwrap_or(b',');
        let (csv, schema) = csv::Csv::stdin(delimiter, !args.no_header, args.skip_invalid)?;
        return Ok((Arc::from("stdin"), Format::Csv(csv), schema));
    }
    let name: Arc<str> = Arc::from(path.display().to_string());
    let metadata = std::fs::metadata(path).with_context(|| format!("cannot read {name}"))?;
    if metadata.is_dir() {
        bail!("{name} is a folder; name the files in it");
    }
    if !metadata.is_file() {
        bail!(
            "{name} is not a regular file, and files are read more than once; pipe csv into '-' with --plan"
        );
    }
    let mut start = [0u8; 8];
    let length = File::open(path)
        .and_then(|mut f| {
            let mut read = 0;
            while read < start.len() {
                match f.read(&mut start[read..])? {
                    0 => break,
                    n => read += n,
                }
            }
            Ok(read)
        })
        .with_context(|| format!("cannot read {name}"))?;
    if length == 0 {
        bail!("{name} is empty");
    }
    let extension = path.extension().and_then(|e| e.to_str()).unwrap_or("").to_ascii_lowercase();
    let npy_content = start.starts_with(b"\x93NUMPY");
    match extension.as_str() {
        "npy" => {}
        _ if npy_content => {}
        "parquet" | "arrow" | "feather" | "gz" | "zst" | "xlsx" | "npz" => {
            bail!("{name}: .{extension} files cannot be read; convert it to csv or npy")
        }
        _ if start.starts_with(b"PAR1") || start.starts_with(b"ARROW1") => {
            bail!("{name}: Parquet and Arrow files cannot be read; convert it to csv or npy")
        }
        _ => {
            let usual = if extension == "tsv" { b'\t' } else { b',' };
            let delimiter = args.delimiter.unwrap_or(usual);
            let header = csv::Header::from_args(args.header, args.no_header);
            let (csv, schema) =
                csv::Csv::open(path, name.clone(), delimiter, header, args.skip_invalid)?;
            return Ok((name, Format::Csv(csv), schema));
        }
    }
    let (npy, schema) = npy::Npy::open(path, name.clone())?;
    Ok((name, Format::Npy(npy), schema))
}

/// The columns that the options choose from the first file.
fn choose_columns(
    args: &InputArgs,
    schema: &Schema,
    file: &str,
    weights: Option<&str>,
    left_out: &mut Vec<String>,
) -> Result<Vec<String>> {
    let known = |name: &String| schema.names.contains(name);
    let named = args.columns.iter().flatten().chain(&args.exclude);
    for name in named.cloned().chain(weights.map(str::to_string)) {
        if !known(&name) {
            bail!("{file} has no column '{name}'; it has {}", schema.names.join(", "));
        }
    }
    if let Some(columns) = &args.columns {
        let mut seen = std::collections::HashSet::new();
        if let Some(twice) = columns.iter().find(|c| !seen.insert(*c)) {
            return Err(Usage(format!("--columns names '{twice}' twice")).into());
        }
        return Ok(columns.clone());
    }
    let mut columns = Vec::new();
    for (name, numeric) in schema.names.iter().zip(&schema.numeric) {
        if args.exclude.contains(name) || weights == Some(name) {
            continue;
        }
        if *numeric { &mut columns } else { &mut *left_out }.push(name.clone());
    }
    let alone = match schema.names.as_slice() {
        [name] => name.as_str(),
        _ => "",
    };
    if let Some(c) = [';', '\t', '|', ','].into_iter().find(|c| alone.contains(*c)) {
        bail!(
            "{file} has one column called '{alone}'; if '{c}' separates columns, pass --delimiter '{c}'"
        );
    }
    if columns.is_empty() {
        bail!("{file} has no numeric column to read; it has {}", schema.names.join(", "));
    }
    Ok(columns)
}

/// Finds columns in a file by name, or by position where the file does not name its columns.
fn select(
    file: &str,
    schema: &Schema,
    columns: &[String],
    weight: Option<&str>,
) -> Result<Selection> {
    let find = |name: &str| schema.names.iter().position(|n| n == name);
    let all: Vec<&str> = columns.iter().map(String::as_str).chain(weight).collect();
    let missing: Vec<&str> = all.iter().copied().filter(|n| find(n).is_none()).collect();
    // Where a weight stands among unnamed columns cannot be told.
    let by_position = !schema.named && weight.is_none() && schema.names.len() == columns.len();
    if !missing.is_empty() && !by_position {
        let has = if schema.named || schema.names.len() <= 12 {
            schema.names.join(", ")
        } else {
            format!("{} columns without names", schema.names.len())
        };
        bail!(
            "{file} lacks the column{} {}; it has {has}",
            if missing.len() > 1 { "s" } else { "" },
            missing.join(", ")
        );
    }
    let place = |i: usize, name: &str| find(name).unwrap_or(i);
    Ok(Selection {
        columns: columns.iter().enumerate().map(|(i, c)| place(i, c)).collect(),
        names: columns.into(),
        weight: weight.map(|w| (place(columns.len(), w), w.to_string())),
        by_position: !missing.is_empty(),
    })
}

impl RowSource for Input {
    fn columns(&self) -> &[String] {
        &self.columns
    }

    fn open(&self) -> nysketch::Result<Box<dyn RowStream<'_> + '_>> {
        Ok(Box::new(InputStream { input: self, file: 0, current: None }))
    }
}

/// The files one after the other.
struct InputStream<'a> {
    input: &'a Input,
    file: usize,
    current: Option<Box<dyn RowStream<'a> + 'a>>,
}

impl<'a> RowStream<'a> for InputStream<'a> {
    fn next_part(&mut self) -> nysketch::Result<Option<Box<dyn RowPart + 'a>>> {
        loop {
            let Some(file) = self.input.files.get(self.file) else {
                return Ok(None);
            };
            let stream = match &mut self.current {
                Some(stream) => stream,
                none => none.insert(match &file.format {
                    Format::Csv(csv) => csv.stream(&file.selection, self.file as u64)?,
                    Format::Npy(npy) => npy.stream(&file.selection, self.file as u64)?,
                }),
            };
            if let Some(part) = stream.next_part()? {
                return Ok(Some(part));
            }
            self.current = None;
            self.file += 1;
        }
    }
}

/// Names for a file that has none.
fn unnamed(columns: usize, rows: Option<u64>) -> Schema {
    Schema { names: default_names(columns), named: false, numeric: vec![true; columns], rows }
}
