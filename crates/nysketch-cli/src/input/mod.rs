//! INPUT: from paths on the command line to a source of rows.
//!
//! Each format tells its columns ([`Schema`]) and opens lanes for chosen ones ([`lanes`]); a new
//! format is one more variant of [`Format`].

mod arrays;
pub mod columns;
mod csv;
pub mod find;
mod ipc;
pub mod lanes;
pub mod meter;
mod npy;
mod ordered;
mod parquet;
pub mod records;

use crate::args::{ColumnArgs, InputArgs};
use crate::output::Usage;
use anyhow::{Context, Result, bail};
use arrow_array::ArrayRef;
use arrow_schema::{DataType, Field};
use columns::{Choice, Columns, Kind, Names, Schema};
use find::TableFormat;
use lanes::{InputStream, Lane};
use meter::Meter;
use nysketch::plan::MAX_COLUMNS;
use nysketch::rows::{part_rows, read_in_order};
use nysketch::{Block, RowSet, RowSource, RowStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

pub use arrays::quiet_guarded_panics;

/// Some rows, with the columns that are carried along.
#[derive(Debug)]
pub struct Batch {
    pub block: Block,
    pub kept: Vec<ArrayRef>,
}

#[derive(Debug)]
enum Format {
    Csv(Arc<csv::Csv>),
    Npy(Arc<npy::Npy>),
    Parquet(parquet::Parquet),
    Ipc(ipc::Ipc),
}

impl Format {
    /// Number of rows of a lane of the file, where that is known; `None` where there is no such lane.
    fn segment(&self, lane: usize) -> Option<Option<u64>> {
        match self {
            Format::Csv(_) | Format::Ipc(_) => (lane == 0).then_some(None),
            Format::Npy(npy) => (lane == 0).then_some(Some(npy.rows())),
            Format::Parquet(parquet) => parquet.groups().get(lane).map(|rows| Some(*rows)),
        }
    }

    /// Opens a lane after so many of its rows.
    fn open_lane(
        &self,
        segment: usize,
        skip: u64,
        file: &InputFile,
        meter: &Arc<Meter>,
    ) -> nysketch::Result<Box<dyn Lane>> {
        let columns = &file.columns;
        Ok(match self {
            Format::Csv(csv) => Box::new(csv.lane(columns, meter)?),
            Format::Npy(npy) => Box::new(npy.lane(skip, columns, meter)?),
            Format::Parquet(parquet) => Box::new(parquet.lane(segment, skip, columns, meter)?),
            Format::Ipc(ipc) => Box::new(ipc.lane(columns, meter)?),
        })
    }
}

/// One file of the input.
#[derive(Debug)]
pub struct InputFile {
    name: Arc<str>,
    path: PathBuf,
    format: Format,
    schema: Schema,
    columns: Arc<Columns>,
    bytes: u64,
    modified: Option<SystemTime>,
}

/// Several files as one source of rows.
#[derive(Debug)]
pub struct Input {
    files: Vec<InputFile>,
    names: Names,
    /// Columns that were left out because they hold no numbers.
    pub left_out: Vec<String>,
    /// Numeric columns that only later files have.
    pub unused: Vec<String>,
    /// Files in folders that do not look like tables.
    pub passed_over: Vec<PathBuf>,
    /// Bytes read.
    pub meter: Arc<Meter>,
}

/// A file, or stdin, without a byte in it.
#[derive(Debug, thiserror::Error)]
#[error("{0} is empty")]
pub struct Empty(pub String);

/// Which columns to read as numbers.
pub enum Wanted<'a> {
    /// These, in this order.
    Columns(&'a [String]),
    /// Those the options choose.
    Options(&'a ColumnArgs),
}

/// Which columns to read besides.
#[derive(Debug, Clone, Copy, Default)]
pub struct Besides<'a> {
    /// Column of weights.
    pub weight: Option<&'a str>,
    /// Column that comes as text with every row.
    pub key: Option<&'a str>,
    /// Patterns of columns that are carried along.
    pub kept: &'a [String],
}

/// A file before its columns are chosen.
struct Opened {
    name: Arc<str>,
    path: PathBuf,
    format: Format,
    schema: Schema,
    bytes: u64,
    modified: Option<SystemTime>,
}

impl Input {
    /// Opens every file, finds the columns, and checks that all files have them.
    pub fn open(args: &InputArgs, wanted: Wanted<'_>, besides: Besides<'_>) -> Result<Self> {
        let found = find::files(&args.input)?;
        let meter: Arc<Meter> = Arc::default();
        let mut opened = Vec::new();
        for path in &found.files {
            opened.push(open_file(path, args, &meter)?);
        }
        let Some(first) = opened.first() else { bail!("no input file") };
        let mut left_out = Vec::new();
        let mut unused = Vec::new();
        let values = match wanted {
            Wanted::Columns(columns) => columns.to_vec(),
            Wanted::Options(args) => {
                let taken: Vec<&str> = besides.weight.into_iter().chain(besides.key).collect();
                let choice = Choice { args, taken: &taken };
                let (values, others) = columns::choose(&first.name, &first.schema, choice)?;
                left_out = others;
                if args.columns.is_none() {
                    unused = unused_columns(&opened);
                }
                values
            }
        };
        if values.len() > MAX_COLUMNS {
            bail!(
                "{} columns are more than the {MAX_COLUMNS} that a plan can hold; choose some with --columns",
                values.len()
            );
        }
        let mut kept = Vec::new();
        for pattern in besides.kept {
            for i in columns::matching(&first.name, &first.schema, pattern)? {
                if !kept.contains(&first.schema.names[i]) {
                    kept.push(first.schema.names[i].clone());
                }
            }
        }
        let text = |t: Option<&str>| t.map(str::to_string);
        let names = Names { values, weight: text(besides.weight), key: text(besides.key), kept };
        let mut files = Vec::new();
        for Opened { name, path, format, schema, bytes, modified } in opened {
            let columns = Arc::new(Columns::find(&name, &schema, &names)?);
            files.push(InputFile { name, path, format, schema, columns, bytes, modified });
        }
        let passed_over = found.passed_over;
        Ok(Input { files, names, left_out, unused, passed_over, meter })
    }

    /// Names of the columns of a file.
    pub fn names_of(path: &Path, args: &InputArgs) -> Result<Vec<String>> {
        Ok(open_file(path, args, &Arc::default())?.schema.names)
    }

    /// Files without names whose columns were taken by position.
    pub fn by_position(&self) -> Vec<String> {
        self.files.iter().filter(|f| f.columns.by_position).map(|f| f.name.to_string()).collect()
    }

    /// Size of all files; `None` where one is stdin.
    pub fn bytes(&self) -> Option<u64> {
        let stdin = self.files.iter().any(|f| f.path == Path::new("-"));
        (!stdin).then(|| self.files.iter().map(|f| f.bytes).sum())
    }

    /// What tells whether a file has changed, of every file.
    pub fn identity(&self) -> Vec<Identity> {
        self.files.iter().map(|f| name_size_time(&f.path, f.bytes, f.modified)).collect()
    }

    /// Refuses an output that is one of the files.
    pub fn check_output(&self, output: &Path) -> Result<()> {
        let Ok(output) = output.canonicalize() else { return Ok(()) };
        match self.files.iter().find(|f| f.path.canonicalize().is_ok_and(|p| p == output)) {
            None => Ok(()),
            Some(f) => Err(Usage(format!("{} is both input and output", f.name)).into()),
        }
    }

    /// The columns that are carried along, with their types in the first file.
    pub fn kept_fields(&self) -> Result<Vec<Field>> {
        let mut fields: Vec<Field> = Vec::new();
        for (n, file) in self.files.iter().enumerate() {
            for (i, (name, &column)) in self.names.kept.iter().zip(&file.columns.kept).enumerate() {
                let data_type = match &file.format {
                    Format::Csv(_) => DataType::Utf8,
                    Format::Npy(npy) => npy.data_type(),
                    Format::Parquet(parquet) => parquet.schema().field(column).data_type().clone(),
                    Format::Ipc(ipc) => ipc.schema().field(column).data_type().clone(),
                };
                if n == 0 {
                    fields.push(Field::new(name, data_type, true));
                } else if *fields[i].data_type() != data_type {
                    bail!(
                        "column '{name}' holds {data_type} in {}, but {} in {}; predict them one by one",
                        file.name,
                        fields[i].data_type(),
                        self.files[0].name
                    );
                }
            }
        }
        Ok(fields)
    }

    /// Starts reading in the order of the rows, for however many threads.
    pub fn batches(&self) -> InputStream<'_> {
        self.meter.restart();
        InputStream::new(self, &RowSet::default(), true)
    }

    /// All rows in memory, all of them finite: for files of landmarks.
    pub fn read_all(&self) -> Result<Vec<Vec<f64>>> {
        let mut rows = Vec::new();
        read_in_order(self, &(), |block| {
            for (number, row, _) in block.rows() {
                if let Some(j) = row.iter().position(|x| !x.is_finite()) {
                    let at = block.cell(number, &self.names.values[j]);
                    return Err(nysketch::Error::NonFinite { at, value: row[j] });
                }
                rows.push(row.to_vec());
            }
            Ok(())
        })?;
        Ok(rows)
    }
}

/// Path, bytes and time of change of a file.
pub type Identity = (String, u64, u128);

/// Of a file that is no table.
pub fn identity(path: &Path) -> std::io::Result<Identity> {
    let metadata = std::fs::metadata(path)?;
    Ok(name_size_time(path, metadata.len(), metadata.modified().ok()))
}

fn name_size_time(path: &Path, bytes: u64, modified: Option<SystemTime>) -> Identity {
    let since = modified.and_then(|t| t.duration_since(SystemTime::UNIX_EPOCH).ok());
    (path.display().to_string(), bytes, since.map_or(0, |d| d.as_nanos()))
}

/// Numeric columns of later files that the first file lacks.
fn unused_columns(opened: &[Opened]) -> Vec<String> {
    let mut unused = Vec::new();
    for file in opened.iter().skip(1).filter(|f| f.schema.named) {
        for (name, kind) in file.schema.names.iter().zip(&file.schema.kinds) {
            if *kind == Kind::Number && !opened[0].schema.names.contains(name) {
                unused.push(format!("'{name}' of {}", file.name));
            }
        }
    }
    unused
}

fn open_file(path: &Path, args: &InputArgs, meter: &Arc<Meter>) -> Result<Opened> {
    let dialect = |format: TableFormat| csv::Dialect {
        delimiter: args.delimiter.unwrap_or(if format == TableFormat::Tsv { b'\t' } else { b',' }),
        header: match (args.header, args.no_header) {
            (true, _) => csv::Header::Yes,
            (_, true) => csv::Header::No,
            _ => csv::Header::Expected,
        },
        lenient: args.skip_invalid,
    };
    if path == Path::new("-") {
        return open_stdin(args, dialect, meter);
    }
    let name: Arc<str> = Arc::from(path.display().to_string());
    let metadata = std::fs::metadata(path).with_context(|| format!("cannot read {name}"))?;
    let format = find::format_of(path, args.format)?;
    let (format, schema) = match format {
        TableFormat::Csv | TableFormat::Tsv => {
            let (csv, schema) = csv::Csv::open(path, name.clone(), dialect(format))?;
            (Format::Csv(Arc::new(csv)), schema)
        }
        TableFormat::Npy => {
            let (npy, schema) = npy::Npy::open(path, name.clone())?;
            (Format::Npy(Arc::new(npy)), schema)
        }
        TableFormat::Parquet => {
            let (parquet, schema) = parquet::Parquet::open(path, name.clone())?;
            (Format::Parquet(parquet), schema)
        }
        TableFormat::Arrow => {
            let (ipc, schema) = ipc::Ipc::open(path, name.clone())?;
            (Format::Ipc(ipc), schema)
        }
    };
    let (bytes, modified) = (metadata.len(), metadata.modified().ok());
    Ok(Opened { name, path: path.to_path_buf(), format, schema, bytes, modified })
}

/// Csv, plain or compressed, or Arrow.
fn open_stdin(
    args: &InputArgs,
    dialect: impl Fn(TableFormat) -> csv::Dialect,
    meter: &Arc<Meter>,
) -> Result<Opened> {
    let stdin = meter.count(std::io::stdin());
    let (start, stdin) = find::peek(stdin).context("cannot read stdin")?;
    let format = match args.format {
        Some(format) => format.into(),
        None => find::by_content(&start).unwrap_or(TableFormat::Csv),
    };
    let (format, schema) = match format {
        TableFormat::Csv | TableFormat::Tsv => {
            let source = csv::decompressed(stdin).context("cannot read stdin")?;
            let (csv, schema) = csv::Csv::stdin(source, dialect(format))?;
            (Format::Csv(Arc::new(csv)), schema)
        }
        TableFormat::Arrow => {
            let (ipc, schema) = ipc::Ipc::stdin(stdin)?;
            (Format::Ipc(ipc), schema)
        }
        TableFormat::Npy | TableFormat::Parquet => {
            bail!("stdin can be csv or an Arrow stream; save this to a file and name it")
        }
    };
    let (name, path) = (Arc::from("stdin"), PathBuf::from("-"));
    Ok(Opened { name, path, format, schema, bytes: 0, modified: None })
}

impl RowSource for Input {
    fn columns(&self) -> &[String] {
        &self.names.values
    }

    fn open(&self, done: &RowSet) -> nysketch::Result<Box<dyn RowStream<'_> + '_>> {
        self.meter.restart();
        Ok(Box::new(InputStream::new(self, done, false)))
    }
}
