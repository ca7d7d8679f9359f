//! X: anything that holds rows, as a source of the library.
//!
//! `nysketch/_input.py` tells files, arrays, sparse matrices and Arrow streams apart; [`files`], [`array`], [`blocks`]
//! and [`arrow`] read them, the last by way of [`stream`]. Arrays in the memory of a GPU stay there: [`device`].

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

/// The number in a text, as csv files have it: NaN where it is missing, infinite where there is none.
#[pyfunction]
pub fn _read_number(text: &[u8]) -> f64 {
    nysketch_tables::read_number(text)
}

/// Rows of any kind.
pub trait Rows: RowSource + Send + Sync {
    /// The columns that names mean; also ranges and patterns, where columns have names of their own.
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

/// Rows with the names of their columns.
pub struct Input {
    pub source: Arc<dyn Rows>,
    /// Number of rows, where it is known.
    pub rows: Option<u64>,
    /// What a person should know about it: columns left out, and the like.
    pub notes: Vec<String>,
    /// The name of the column of weights, where there are weights.
    pub weight_column: Option<String>,
    /// Whether columns are known by their position, so that none can be left out.
    pub by_position: bool,
}

/// What is read beside the columns, and how.
#[derive(Default)]
pub struct Extras {
    pub weights: Weights,
    /// A column that groups the rows.
    pub key: Option<String>,
    /// Whether text among the numbers of a csv file is a missing value.
    pub skip_invalid: bool,
    /// Whether missing values are no mistake.
    pub allow_missing: bool,
    /// Position of the first row: X may be one of many parts.
    pub position: u64,
}

impl Extras {
    /// Weights and nothing else.
    pub fn weights(weights: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        Ok(Extras { weights: Weights::new(weights)?, ..Extras::default() })
    }

    /// Columns that are weights or groups.
    fn taken(&self) -> Vec<String> {
        let weight = match &self.weights {
            Weights::Column(name) => Some(name),
            _ => None,
        };
        weight.into_iter().chain(&self.key).cloned().collect()
    }
}

/// Row weights, before the rows are known.
#[derive(Default)]
pub enum Weights {
    #[default]
    None,
    /// A column of an Arrow table or of files.
    Column(String),
    /// One number per row.
    Values(Vec<f64>),
}

/// What a column of weights is called where it has no name.
pub const WEIGHTS: &str = "weights";

impl Weights {
    /// A column name, or numbers.
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
    /// Looks at X without reading it.
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
            // Blocks of rows without names.
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
                let message = "the columns of a sparse matrix are numbers; pass categories as columns of a data frame";
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
        // Tables know their number of rows; streams do not.
        let rows = ["num_rows", "height"].iter().find_map(|name| x.getattr(*name).ok());
        let rows = rows.and_then(|n| n.extract::<u64>().ok());
        let source = Arc::new(source);
        Ok(Input { source, rows, notes, weight_column, by_position: false })
    }
}

/// The names of the columns of an array, and those of them that are categories.
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
                    "X is an array of numbers, but '{time}' is a date; pass a table with its columns by name"
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
                    "X does not name its columns, but {} is a category; pass a table with its columns by name",
                    listed(&categories)
                )),
            };
        }
    };
    if !choice.exclude.is_empty() {
        return refuse(
            "exclude leaves columns out by name, of files, Arrow tables and data frames; take X[:, ...] of an array".into(),
        );
    }
    if matches!(&choice.columns, Chosen::These(chosen) if *chosen != names) {
        return refuse(
            "columns chooses by name, from Arrow tables and data frames; take X[:, ...] of an array".into(),
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

/// The weights of the rows of an array.
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
            "weights names a column of an Arrow table or data frame; give an array of numbers beside an array",
        )),
    }
}

/// Some names, not too many.
fn listed(names: &[String]) -> String {
    match names.len() {
        n if n > 20 => format!("{}, … ({n} columns)", names[..20].join(", ")),
        _ => names.join(", "),
    }
}
