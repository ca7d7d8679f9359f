//! From paths to a source of rows.

use crate::columns::{self, Choice, Kind, Names, Places, Schema};
use crate::error::{Error, Result, cannot_read};
use crate::find::{find, is_stdin};
use crate::formats::{Reader, Stored};
use crate::meter::Meter;
use crate::options::{Columns, Extras, ReadOptions};
use crate::store::Store;
use crate::table_file::TableFile;
use crate::tracks::DatasetStream;
use arrow_schema::Field;
use nysketch::plan::MAX_COLUMNS;
use nysketch::rows::read_in_order;
use nysketch::{RowSet, RowSource, RowStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

/// Files as one table, read by any number of threads, any number of times.
///
/// It is a [`RowSource`]: everything in `nysketch` that takes rows takes it.
///
/// ```
/// use nysketch::{PlanParams, Sketch, SketchParams, make_plan};
/// use nysketch_tables::{Columns, Dataset, ReadOptions};
///
/// let folder = tempfile::tempdir()?;
/// std::fs::write(folder.path().join("day1.csv"), "id,x,y\n1,0.5,2\n2,0.25,3\n3,0.75,1\n")?;
/// std::fs::write(folder.path().join("day2.csv"), "y,x,id\n5,0.125,4\n4,0.5,5\n")?;
///
/// let options = ReadOptions::default().columns(Columns::default().except(["id"]));
/// let days = Dataset::open([folder.path()], &options)?;
/// let (plan, _) = make_plan(&days, &PlanParams::default().check()?, &())?;
/// assert_eq!(plan.columns, ["x", "y"]);
/// let sketch = Sketch::of(&plan.into(), &days, SketchParams::default(), &())?;
/// assert_eq!(sketch.rows(), 5);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Dataset {
    files: Vec<TableFile>,
    names: Names,
    left_out: Vec<String>,
    unused: Vec<String>,
    ignored: Vec<PathBuf>,
    meter: Arc<Meter>,
}

/// A file before its columns are chosen.
struct Opened {
    name: Arc<str>,
    path: PathBuf,
    reader: Reader,
    schema: Schema,
    bytes: u64,
    modified: Option<SystemTime>,
}

impl Dataset {
    /// Opens files, folders and patterns, finds the columns, and checks that all files have them.
    ///
    /// `-` stands for stdin, which can be read once. Rows are not read yet.
    pub fn open<P: AsRef<Path>>(
        paths: impl IntoIterator<Item = P>,
        options: &ReadOptions,
    ) -> Result<Self> {
        let found = find(&*options.store, paths)?;
        let meter: Arc<Meter> = Arc::default();
        let mut opened = Vec::new();
        for path in &found.files {
            opened.push(Opened::new(path, options, &meter)?);
        }
        let Some(first) = opened.first() else { return Err(Error::NoFile) };
        let Extras { weight, key, keep } = options.extras.clone();
        let (mut left_out, mut unused) = (Vec::new(), Vec::new());
        let values = match &options.columns {
            Columns::Exactly(columns) => columns.clone(),
            Columns::Matching { include, exclude } => {
                let taken: Vec<&str> = weight.iter().chain(&key).map(String::as_str).collect();
                let choice = Choice { include: include.as_deref(), exclude, taken: &taken };
                let (values, others) = columns::choose(&first.name, &first.schema, choice)?;
                left_out = others;
                if include.is_none() {
                    unused = unused_columns(&opened);
                }
                values
            }
        };
        if values.len() > MAX_COLUMNS {
            return Err(Error::TooManyColumns { found: values.len(), most: MAX_COLUMNS });
        }
        let mut kept = Vec::new();
        for pattern in &keep {
            for i in columns::matching(&first.name, &first.schema, pattern)? {
                if !kept.contains(&first.schema.names[i]) {
                    kept.push(first.schema.names[i].clone());
                }
            }
        }
        let names = Names { values, weight, key, kept };
        let mut files = Vec::new();
        for Opened { name, path, reader, schema, bytes, modified } in opened {
            let places = Arc::new(Places::find(&name, &schema, &names)?);
            let rows = schema.rows;
            files.push(TableFile { name, path, reader, rows, places, bytes, modified });
        }
        Ok(Dataset { files, names, left_out, unused, ignored: found.ignored, meter })
    }

    /// Names of all columns of a file, whatever they hold.
    pub fn names_of(path: impl AsRef<Path>, options: &ReadOptions) -> Result<Vec<String>> {
        Ok(Opened::new(path.as_ref(), options, &Arc::default())?.schema.names)
    }

    /// Columns of the first file that were left out because they do not hold numbers.
    pub fn left_out(&self) -> &[String] {
        &self.left_out
    }

    /// Numeric columns that only later files have: "'z' of day2.csv".
    pub fn unused(&self) -> &[String] {
        &self.unused
    }

    /// Files in folders that were skipped because they do not look like tables.
    pub fn ignored(&self) -> &[PathBuf] {
        &self.ignored
    }

    /// Number of rows, where every file says how many it has.
    pub fn rows(&self) -> Option<u64> {
        self.files.iter().map(|f| f.rows).sum()
    }

    /// Counts the bytes that are read.
    pub fn meter(&self) -> &Arc<Meter> {
        &self.meter
    }

    /// Names of the files that do not name their columns, so that these were matched by position.
    pub fn by_position(&self) -> Vec<String> {
        self.files.iter().filter(|f| f.places.by_position).map(|f| f.name.to_string()).collect()
    }

    /// Size of all files; `None` where one is stdin.
    pub fn bytes(&self) -> Option<u64> {
        let stdin = self.files.iter().any(|f| is_stdin(&f.path));
        (!stdin).then(|| self.files.iter().map(|f| f.bytes).sum())
    }

    /// The stamp of every file, which shows whether it has changed.
    pub fn stamps(&self) -> Vec<Stamp> {
        self.files.iter().map(|f| Stamp::new(&f.path, f.bytes, f.modified)).collect()
    }

    /// Refuses an output that is one of the files.
    pub fn check_output(&self, output: &Path) -> Result<()> {
        match self.files.iter().find(|f| nysketch::file::same(&f.path, output)) {
            None => Ok(()),
            Some(f) => Err(Error::Usage(format!("{} is both input and output", f.name))),
        }
    }

    /// The kept columns, which must have the same type in every file.
    pub fn kept_fields(&self) -> Result<Vec<Field>> {
        let mut fields: Vec<Field> = Vec::new();
        for (n, file) in self.files.iter().enumerate() {
            for (i, (name, &column)) in self.names.kept.iter().zip(&file.places.kept).enumerate() {
                let data_type = file.reader.data_type(column);
                if n == 0 {
                    fields.push(Field::new(name, data_type, true));
                } else if *fields[i].data_type() != data_type {
                    let first = format!("{} in {}", fields[i].data_type(), self.files[0].name);
                    let (column, here) = (name.clone(), format!("{data_type} in {}", file.name));
                    return Err(Error::MixedTypes { column, here, first });
                }
            }
        }
        Ok(fields)
    }

    /// Starts reading in the order of the rows, for however many threads.
    pub(crate) fn batches(&self) -> DatasetStream<'_> {
        self.meter.restart();
        DatasetStream::new(&self.files, &self.meter, &RowSet::default(), true)
    }

    /// All rows in memory, all of them finite: for small tables, such as landmarks.
    pub fn read_all(&self) -> nysketch::Result<Vec<Vec<f64>>> {
        let mut rows = Vec::new();
        read_in_order(self, &(), |block| {
            for (number, row, _) in block.rows() {
                if let Some(j) = row.iter().position(|x| !x.is_finite()) {
                    let at = block.place(number, &self.names.values[j]);
                    return Err(nysketch::Error::NonFinite { at, value: row[j] });
                }
                rows.push(row.to_vec());
            }
            Ok(())
        })?;
        Ok(rows)
    }
}

impl RowSource for Dataset {
    fn columns(&self) -> &[String] {
        &self.names.values
    }

    fn open(&self, done: &RowSet) -> nysketch::Result<Box<dyn RowStream<'_> + '_>> {
        self.meter.restart();
        Ok(Box::new(DatasetStream::new(&self.files, &self.meter, done, false)))
    }
}

/// Name, size and modification time of a file: if all are the same, the file counts as unchanged.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stamp {
    /// The path as it was given.
    pub path: String,
    /// Size.
    pub bytes: u64,
    /// Nanoseconds from 1970 to the last change; 0 where that is unknown.
    pub modified: u128,
}

impl Stamp {
    /// The stamp of a file, which need not be a table.
    pub fn of(store: &dyn Store, path: &Path) -> Result<Self> {
        let metadata = store.metadata(path).map_err(cannot_read(path))?;
        Ok(Self::new(path, metadata.bytes, metadata.modified))
    }

    fn new(path: &Path, bytes: u64, modified: Option<SystemTime>) -> Self {
        let since = modified.and_then(|t| t.duration_since(SystemTime::UNIX_EPOCH).ok());
        let modified = since.map_or(0, |d| d.as_nanos());
        Stamp { path: path.display().to_string(), bytes, modified }
    }
}

/// Numeric columns of later files that the first file lacks.
fn unused_columns(opened: &[Opened]) -> Vec<String> {
    let mut unused = Vec::new();
    for file in opened.iter().skip(1).filter(|f| f.schema.named || !opened[0].schema.named) {
        for (name, kind) in file.schema.names.iter().zip(&file.schema.kinds) {
            if *kind == Kind::Number && !opened[0].schema.names.contains(name) {
                unused.push(format!("'{name}' of {}", file.name));
            }
        }
    }
    unused
}

impl Opened {
    fn new(path: &Path, options: &ReadOptions, meter: &Arc<Meter>) -> Result<Self> {
        let path = path.to_path_buf();
        if is_stdin(&path) {
            let (reader, schema) = Reader::stdin(options, meter)?;
            let name = Arc::from("stdin");
            return Ok(Opened { name, path, reader, schema, bytes: 0, modified: None });
        }
        let name: Arc<str> = Arc::from(path.display().to_string());
        let metadata = options.store.metadata(&path).map_err(cannot_read(&path))?;
        let file = Stored { store: options.store.clone(), path: path.clone(), name: name.clone() };
        let (reader, schema) = Reader::open(file, options)?;
        let (bytes, modified) = (metadata.bytes, metadata.modified);
        Ok(Opened { name, path, reader, schema, bytes, modified })
    }
}
