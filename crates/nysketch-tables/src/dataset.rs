//! A source of rows made from paths.

use crate::columns::{ColumnRole, roles};
use crate::error::{Error, Result, cannot_read};
use crate::find::{Found, find_by, is_stdin};
use crate::folders::Folders;
use crate::formats::{Reader, Stored};
use crate::meter::Meter;
use crate::options::{Columns, ReadOptions};
use crate::places::{Names, Places, Text};
use crate::schema::{Kind, Schema};
use crate::selection::{by_default, chosen, left_out, matching, names};
use crate::store::{Metadata, Store};
use crate::table_file::TableFile;
use crate::tracks::DatasetStream;
use arrow_schema::{DataType, Field};
use nysketch_core::rows::{CategoryColumn, read_in_order};
use nysketch_core::{RowSet, RowSource, RowStream};
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

/// A table made of one or more files, which can be read by any number of threads, any number of
/// times.
///
/// It is a [`RowSource`], so every function of `nysketch` that takes rows accepts it. Numbers are
/// columns, and text is a category. Dates are read if [`Columns`] asks for them, and a vector gives
/// one column per coordinate. Folders such as `month=1` below the given path are columns, too.
/// [`roles`](Self::roles) lists how each column is used.
///
/// ```
/// use nysketch_core::{PlanParams, Sketch, SketchParams, make_plan};
/// use nysketch_tables::{Columns, Dataset, ReadOptions};
///
/// let folder = tempfile::tempdir()?;
/// std::fs::write(folder.path().join("day1.csv"), "id,x,y\n1,0.5,2\n2,0.25,3\n3,0.75,1\n")?;
/// std::fs::write(folder.path().join("day2.csv"), "y,x,id\n5,0.125,4\n4,0.5,5\n")?;
///
/// let options = ReadOptions::default().columns(Columns::default().except(["id"]));
/// let days = Dataset::open([folder.path()], &options)?;
/// let plan = make_plan(&days, &PlanParams::default().check()?, &())?.plan;
/// assert_eq!(plan.columns, ["x", "y"]);
/// let sketch = Sketch::of(&plan.into(), &days, SketchParams::default(), &())?;
/// assert_eq!(sketch.rows(), 5);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Dataset {
    files: Vec<TableFile>,
    /// The columns of the first file.
    schema: Schema,
    names: Arc<Names>,
    roles: Vec<ColumnRole>,
    notes: Vec<String>,
    meter: Arc<Meter>,
}

/// A file whose columns have not been chosen yet.
struct Opened {
    file: Stored,
    reader: Reader,
    schema: Schema,
    /// `None` for stdin.
    metadata: Option<Metadata>,
}

impl Dataset {
    /// Opens files, folders and patterns, chooses the columns, and checks that all files have them.
    ///
    /// `-` means stdin, which can be read once. No rows are read yet.
    pub fn open<P: AsRef<Path>>(
        paths: impl IntoIterator<Item = P>,
        options: &ReadOptions,
    ) -> Result<Self> {
        let found = find_by(&*options.store, paths, !options.first_line_is_row())?;
        let meter: Arc<Meter> = Arc::default();
        let mut opened = Vec::new();
        for path in &found.files {
            opened.push(Opened::new(path, options, &meter)?);
        }
        let files = opened.iter().map(|o| (&*o.file.name, &o.schema));
        let folders = Folders::new(&found.keys, files);
        for Opened { file, schema, .. } in &mut opened {
            schema.add_folders(&file.name, &folders.columns)?;
        }
        let Some(first) = opened.first() else { return Err(Error::NoFile) };
        let by_default = by_default(options);
        let unused = if by_default { unused_columns(&opened) } else { Vec::new() };
        let chosen = chosen(&first.file.name, &first.schema, options)?;
        let roles = roles(&first.schema, &chosen, &options.extras.taken(), by_default);
        let schemas: Vec<&Schema> = opened.iter().map(|o| &o.schema).collect();
        let names = Arc::new(names(&first.file.name, &schemas, chosen, options)?);
        let mut places: Vec<Places> = Vec::new();
        for (Opened { file, schema, .. }, values) in opened.iter().zip(&folders.values) {
            places.push(Places::find(&file.name, schema, &names, values)?);
        }
        same_widths(&opened)?;
        let mut truths = places[0].truths.clone();
        places.iter().for_each(|p| truths.join(&p.truths));
        let mut notes = if by_default { left_out(&first.schema, &roles) } else { Vec::new() };
        notes.extend(notes_of(&opened, &places, &unused, &found));
        if matches!(options.columns, Columns::Exactly { .. }) {
            notes.extend(surplus(&opened, &places));
        }
        notes.extend(folders.notes);
        let schema = first.schema.clone();
        let mut files = Vec::new();
        for (Opened { file, reader, schema, metadata }, places) in opened.into_iter().zip(places) {
            let places = Arc::new(Places { truths: truths.clone(), ..places });
            files.push(TableFile { file, reader, rows: schema.rows, places, metadata });
        }
        Ok(Dataset { files, schema, names, roles, notes, meter })
    }

    /// Lists how each column of the first file is used, in file order, followed by the folders.
    pub fn roles(&self) -> &[ColumnRole] {
        &self.roles
    }

    /// Returns the columns of the first file that match names, ranges or patterns, each once,
    /// whether or not they are read.
    pub fn matching<S: AsRef<str>>(
        &self,
        patterns: impl IntoIterator<Item = S>,
    ) -> Result<Vec<String>> {
        matching(&self.files[0].file.name, &self.schema, patterns)
    }

    /// Returns the names of all columns of a file, whatever their types.
    pub fn names_of(path: impl AsRef<Path>, options: &ReadOptions) -> Result<Vec<String>> {
        let columns = Opened::new(path.as_ref(), options, &Arc::default())?.schema.columns;
        Ok(columns.into_iter().map(|c| c.name).collect())
    }

    /// Notes about the input for the user, one sentence each: columns and files that are left out,
    /// files that were found twice but are read once, columns matched by position.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Returns the number of rows if every file states its own.
    pub fn rows(&self) -> Option<u64> {
        self.files.iter().map(|f| f.rows).sum()
    }

    /// Returns the counter of the bytes that are read.
    pub fn meter(&self) -> &Arc<Meter> {
        &self.meter
    }

    /// Returns the total size of the files, or `None` if one of them is stdin.
    pub fn bytes(&self) -> Option<u64> {
        self.files.iter().map(|f| f.metadata.map(|m| m.bytes)).sum()
    }

    /// Returns a stamp per file, which shows whether the file has changed.
    pub fn stamps(&self) -> Vec<Stamp> {
        self.files.iter().map(|f| Stamp::new(&f.file.path, f.metadata)).collect()
    }

    /// Refuses an output path that is one of the input files.
    pub fn check_output(&self, output: &Path) -> Result<()> {
        match self.files.iter().find(|f| nysketch_core::format::file::same(&f.file.path, output)) {
            None => Ok(()),
            Some(f) => Err(Error::Usage(format!("{} is both input and output", f.file.name))),
        }
    }

    /// Returns the kept columns, which must have the same type in every file.
    pub fn kept_fields(&self) -> Result<Vec<Field>> {
        let mut fields: Vec<Field> = Vec::new();
        for (n, file) in self.files.iter().enumerate() {
            for (i, (name, text)) in self.names.kept.iter().zip(&file.places.kept).enumerate() {
                let data_type = match text {
                    Text::Column(column) => file.reader.data_type(*column),
                    Text::Constant(_) => DataType::Utf8,
                };
                if n == 0 {
                    fields.push(Field::new(name, data_type, true));
                } else if *fields[i].data_type() != data_type {
                    let first = format!("{} in {}", fields[i].data_type(), self.files[0].file.name);
                    let (column, here) =
                        (name.clone(), format!("{data_type} in {}", file.file.name));
                    return Err(Error::MixedTypes { column, here, first });
                }
            }
        }
        Ok(fields)
    }

    /// Starts reading in row order, for any number of threads.
    pub(crate) fn batches(&self) -> DatasetStream<'_> {
        self.meter.restart();
        DatasetStream::new(&self.files, &self.meter, &RowSet::default(), true)
    }

    /// Reads all rows into memory and requires that all values are finite. Meant for small tables
    /// such as landmarks.
    pub fn read_all(&self) -> nysketch_core::Result<Vec<Vec<f64>>> {
        let mut rows = Vec::new();
        read_in_order(self, &(), |block| {
            for (number, row, _) in block.rows() {
                if let Some(j) = row.iter().position(|x| !x.is_finite()) {
                    let at = block.place(number, &self.names.values[j]);
                    return Err(nysketch_core::Error::NonFinite { at, value: row[j] });
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

    fn is_time(&self, column: usize) -> bool {
        self.names.times.contains_key(&column)
    }

    fn categories(&self) -> &[CategoryColumn] {
        &self.names.categories
    }

    fn open(&self, done: &RowSet) -> nysketch_core::Result<Box<dyn RowStream<'_> + '_>> {
        self.meter.restart();
        Ok(Box::new(DatasetStream::new(&self.files, &self.meter, done, false)))
    }
}

/// Name, size and modification time of a file. A file counts as unchanged if all three are equal.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stamp {
    /// The path as the user gave it.
    pub path: String,
    /// Size in bytes.
    pub bytes: u64,
    /// Nanoseconds from 1970 to the last modification, or 0 if unknown.
    pub modified: u128,
}

impl Stamp {
    /// Makes the stamp of a file, which need not be a table.
    pub fn of(store: &dyn Store, path: &Path) -> Result<Self> {
        let metadata = store.metadata(path).map_err(cannot_read(path))?;
        Ok(Self::new(path, Some(metadata)))
    }

    fn new(path: &Path, metadata: Option<Metadata>) -> Self {
        let modified = metadata.and_then(|m| m.modified);
        let since = modified.and_then(|t| t.duration_since(SystemTime::UNIX_EPOCH).ok());
        Stamp {
            path: path.display().to_string(),
            bytes: metadata.map_or(0, |m| m.bytes),
            modified: since.map_or(0, |d| d.as_nanos()),
        }
    }
}

/// Checks that files without column names have as many columns as the first one. Nothing else shows
/// which column is which.
fn same_widths(opened: &[Opened]) -> Result<()> {
    let unnamed = |o: &&Opened| !o.schema.named;
    let width = |o: &Opened| o.schema.width;
    let Some(first) = opened.iter().find(unnamed) else { return Ok(()) };
    match opened.iter().filter(unnamed).find(|o| width(o) != width(first)) {
        None => Ok(()),
        Some(other) => {
            let how = format!(
                "has {} columns, but {} has {}; without names they cannot be matched",
                width(other),
                first.file.name,
                width(first)
            );
            Err(Error::columns(&other.file.name, how))
        }
    }
}

/// Collects the notes of [`Dataset::notes`].
fn notes_of(opened: &[Opened], places: &[Places], unused: &[String], found: &Found) -> Vec<String> {
    let mut notes = Vec::new();
    if !unused.is_empty() {
        let unused = unused.join(", ");
        notes.push(format!("columns skipped because the first file does not have them: {unused}"));
    }
    notes.extend(found.notes());
    for (opened, _) in opened.iter().zip(places).filter(|(_, p)| p.by_position) {
        let name = &opened.file.name;
        notes.push(format!("{name} has no column names; its columns were matched by position"));
    }
    notes
}

/// Returns a note if a plan or a model reads only the first columns of a file without names. The
/// other columns may have been excluded from the plan, or the file may be a different table; this
/// cannot be decided here.
fn surplus(opened: &[Opened], places: &[Places]) -> Option<String> {
    let mut unnamed = opened.iter().zip(places).filter(|(o, _)| !o.schema.named);
    let (Opened { file, schema, .. }, places) = unnamed.next()?;
    let (all, some) = (schema.width, places.projection.len());
    let first = some < all && places.projection.last().is_some_and(|last| last + 1 == some);
    first.then(|| {
        format!("{} has {all} columns without names, of which the first {some} are read", file.name)
    })
}

/// Lists the columns of numbers and text of later files that the first file does not have: "'z' of
/// day2.csv".
fn unused_columns(opened: &[Opened]) -> Vec<String> {
    let mut unused = Vec::new();
    let first = &opened[0].schema;
    for Opened { file, schema, .. } in opened.iter().skip(1) {
        if !schema.named && first.named {
            continue;
        }
        for column in &schema.columns {
            let (name, kind) = (&column.name, &column.kind);
            let plain = matches!(kind, Kind::Number | Kind::Truth | Kind::Text | Kind::Vector(_));
            if plain && first.whole(name).is_none() {
                unused.push(format!("'{name}' of {}", file.name));
            }
        }
    }
    unused
}

impl Opened {
    fn new(path: &Path, options: &ReadOptions, meter: &Arc<Meter>) -> Result<Self> {
        let stdin = is_stdin(path);
        let name = if stdin { "stdin".to_string() } else { path.display().to_string() };
        let file = Stored {
            store: options.store.clone(),
            path: path.to_path_buf(),
            name: Arc::from(name),
        };
        if stdin {
            let (reader, schema) = Reader::stdin(options, meter)?;
            return Ok(Opened { file, reader, schema, metadata: None });
        }
        let metadata = options.store.metadata(path).map_err(cannot_read(path))?;
        let (reader, schema) = Reader::open(file.clone(), options)?;
        Ok(Opened { file, reader, schema, metadata: Some(metadata) })
    }
}
