//! Converts X, any container of rows, to a source of the library.
//!
//! `nysketch/_input.py` distinguishes files, arrays, sparse matrices and Arrow streams. [`files`],
//! [`array`], [`blocks`] and [`arrow`] read them, the last one through [`stream`]. Arrays in GPU
//! memory stay there: [`device`].

mod array;
mod arrow;
mod blocks;
mod choice;
mod device;
mod files;
mod stream;

pub use choice::{Choice, Chosen, Wanted};
pub use device::DeviceArray;
pub use files::Files;

use crate::error::table_exception;
use array::ArraySource;
use arrow::ArrowSource;
use blocks::BlockSource;
use numpy::{PyReadonlyArray1, PyUntypedArray, PyUntypedArrayMethods};
use nysketch::RowSource;
use nysketch_tables::Dataset;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::sync::Arc;

/// Reads the number in a text as in csv files: NaN if it is missing, infinite if it is no number.
#[pyfunction]
pub fn _read_number(text: &[u8]) -> f64 {
    nysketch_tables::read_number(text)
}

/// Rows of any source.
pub trait Rows: RowSource + Send + Sync {
    /// Returns the columns that names match. Ranges and patterns are supported if the source itself
    /// names its columns.
    fn matching(&self, patterns: &[String]) -> PyResult<Vec<String>> {
        let categories = self.categories().iter().map(|c| &c.name);
        let names: Vec<&String> = self.columns().iter().chain(categories).collect();
        match patterns.iter().find(|pattern| !names.contains(pattern)) {
            None => Ok(patterns.to_vec()),
            Some(other) => Err(PyValueError::new_err(format!(
                "X has no column '{other}'; the columns of an array are called c0, c1, ..."
            ))),
        }
    }
}

impl Rows for ArraySource {}
impl Rows for BlockSource {}

impl Rows for ArrowSource {
    fn matching(&self, patterns: &[String]) -> PyResult<Vec<String>> {
        self.table.matching(patterns).map_err(table_exception)
    }
}

impl Rows for Dataset {
    fn matching(&self, patterns: &[String]) -> PyResult<Vec<String>> {
        Dataset::matching(self, patterns).map_err(table_exception)
    }
}

/// A source of rows, with information about its columns.
pub struct Input {
    pub source: Arc<dyn Rows>,
    /// Number of rows, if known.
    pub rows: Option<u64>,
    /// Notes for the user, such as columns that are left out.
    pub notes: Vec<String>,
    /// Name of the column of weights, if rows are weighted.
    pub weight_column: Option<String>,
    /// Whether columns are identified by position, so that none can be left out.
    pub by_position: bool,
}

/// Options of reading, and what is read in addition to the columns.
#[derive(Default)]
pub struct Extras {
    pub weights: Weights,
    /// A column that groups the rows.
    pub key: Option<String>,
    /// Whether text among the numbers of a csv file is a missing value.
    pub skip_invalid: bool,
    /// Whether missing values are allowed.
    pub allow_missing: bool,
    /// Position of the first row; X may be one of many parts.
    pub position: u64,
}

impl Extras {
    /// Returns extras with weights only.
    pub fn weights(weights: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        Ok(Extras { weights: Weights::new(weights)?, ..Extras::default() })
    }

    /// Returns the columns of weights and groups.
    fn taken(&self) -> Vec<String> {
        let weight = match &self.weights {
            Weights::Column(name) => Some(name),
            _ => None,
        };
        weight.into_iter().chain(&self.key).cloned().collect()
    }
}

/// Row weights, before rows are read.
#[derive(Default)]
pub enum Weights {
    #[default]
    None,
    /// A column of an Arrow table or of files.
    Column(String),
    /// One number per row.
    Values(Vec<f64>),
}

/// Name of the weights if they are not a named column.
pub const WEIGHTS: &str = "weights";

impl Weights {
    /// Reads a column name, or numbers.
    pub fn new(weights: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        let Some(weights) = weights else { return Ok(Weights::None) };
        if let Ok(name) = weights.extract::<String>() {
            return Ok(Weights::Column(name));
        }
        let helper = weights.py().import("nysketch._input")?;
        let values: PyReadonlyArray1<'_, f64> =
            helper.call_method1("weights", (weights,))?.extract()?;
        Ok(Weights::Values(values.as_array().to_vec()))
    }
}

impl Input {
    /// Inspects X without reading its rows.
    pub fn open(x: &Bound<'_, PyAny>, wanted: Wanted, extras: Extras) -> PyResult<Self> {
        if let Some(files) = Files::of(x)? {
            return files.open(wanted, extras);
        }
        let py = x.py();
        let taken = extras.taken();
        let read = wanted.names().map(|mut names| {
            names
                .extend(taken.into_iter().filter(|name| !names.contains(name)).collect::<Vec<_>>());
            names
        });
        let input = py.import("nysketch._input")?;
        let (x, names): (Bound<'_, PyAny>, Option<Vec<String>>) =
            input.call_method1("table", (x, read, wanted.rowwise()))?.extract()?;
        let array = x.cast::<PyUntypedArray>();
        let shape = match &array {
            Ok(array) => match array.shape() {
                &[rows, columns] => Some((rows, columns)),
                _ => return Err(PyValueError::new_err("Expected 2D array")),
            },
            // An object that provides blocks of rows without column names.
            Err(_) if x.hasattr("block")? => Some(x.getattr("shape")?.extract()?),
            Err(_) => None,
        };
        let Some((rows, columns)) = shape else {
            return Self::of_arrow(&x, wanted, extras);
        };
        let (names, categories) = named(columns, names, wanted)?;
        let weights = beside(rows, extras)?;
        let weight_column = weights.is_some().then(|| WEIGHTS.to_string());
        let source: Arc<dyn Rows> = match array {
            Ok(array) => Arc::new(ArraySource::new(array, names, &categories, weights)?),
            Err(_) if !categories.is_empty() => {
                let message = "the columns of a sparse matrix are numbers; pass categories as \
                    columns of a data frame";
                return Err(PyValueError::new_err(message));
            }
            Err(_) => Arc::new(BlockSource::new(&x, rows, names, weights)),
        };
        let (rows, by_position) = (Some(rows as u64), true);
        Ok(Input { source, rows, notes: Vec::new(), weight_column, by_position })
    }

    fn of_arrow(x: &Bound<'_, PyAny>, wanted: Wanted, extras: Extras) -> PyResult<Self> {
        let weight_column = match &extras.weights {
            Weights::None => None,
            Weights::Column(name) => Some(name.clone()),
            Weights::Values(_) => Some(WEIGHTS.to_string()),
        };
        let (source, notes) = ArrowSource::new(x, wanted, extras)?;
        // Tables know their number of rows, but streams do not.
        let rows = ["num_rows", "height"].iter().find_map(|name| x.getattr(*name).ok());
        let rows = rows.and_then(|n| n.extract::<u64>().ok());
        let source = Arc::new(source);
        Ok(Input { source, rows, notes, weight_column, by_position: false })
    }
}

/// Returns the names of the columns of an array, and the names of its categories.
fn named(
    columns: usize,
    names: Option<Vec<String>>,
    wanted: Wanted,
) -> PyResult<(Vec<String>, Vec<String>)> {
    let refuse = |message: String| Err(PyValueError::new_err(message));
    let own = names.is_some();
    let names = names.unwrap_or_else(|| nysketch::rows::default_names(columns));
    let choice = match wanted {
        Wanted::Choice(choice) => choice,
        Wanted::Exactly { numbers, times, categories, .. } => {
            let all = [&numbers[..], &categories[..]].concat();
            if let Some(time) = times.first() {
                return refuse(format!(
                    "X is an array of numbers, but '{time}' is a date; pass a table with its \
                     columns by name"
                ));
            }
            if all.len() != columns {
                return refuse(format!(
                    "X has {columns} features, but {} are expected: {}",
                    all.len(),
                    listed(&all)
                ));
            }
            return match all.iter().all(|name| names.contains(name)) {
                true => Ok((names, categories)),
                false if categories.is_empty() && !own => Ok((numbers, categories)),
                false => refuse(format!(
                    "X does not name its columns, but {} is a category; pass a table with its \
                     columns by name",
                    listed(&categories)
                )),
            };
        }
    };
    if !choice.exclude.is_empty() {
        return refuse(
            "exclude leaves columns out by name, of files, Arrow tables and data frames; take X[:, \
             ...] of an array".into(),
        );
    }
    if matches!(&choice.columns, Chosen::These(chosen) if *chosen != names) {
        return refuse(
            "columns chooses by name, from Arrow tables and data frames; take X[:, ...] of an \
             array"
                .into(),
        );
    }
    if !choice.dates.is_empty() {
        return refuse(
            "dates are columns of files, Arrow tables and data frames; an array holds numbers"
                .into(),
        );
    }
    if let Some(other) = choice.categorical.iter().find(|name| !names.contains(name)) {
        return refuse(format!("X has no column '{other}'; it has {}", listed(&names)));
    }
    Ok((names, choice.categorical))
}

/// Returns the weights of the rows of an array.
fn beside(rows: usize, extras: Extras) -> PyResult<Option<Vec<f64>>> {
    if extras.key.is_some() {
        return Err(PyValueError::new_err(
            "groups are a column of an Arrow table or data frame, by name",
        ));
    }
    match extras.weights {
        Weights::None => Ok(None),
        Weights::Values(values) if values.len() == rows => Ok(Some(values)),
        Weights::Values(values) => Err(PyValueError::new_err(format!(
            "weights has {} values, but X has {rows} rows",
            values.len()
        ))),
        Weights::Column(_) => Err(PyValueError::new_err(
            "weights names a column of an Arrow table or data frame; give an array of numbers \
             beside an array",
        )),
    }
}

/// Lists names, at most 20 of them.
fn listed(names: &[String]) -> String {
    match names.len() {
        n if n > 20 => format!("{}, … ({n} columns)", names[..20].join(", ")),
        _ => names.join(", "),
    }
}
