//! X: anything that holds rows, as a source of the library.
//!
//! `nysketch/_input.py` tells files, arrays, sparse matrices and Arrow streams apart; [`files`], [`array`], [`blocks`]
//! and [`arrow`] read them, the last by way of [`stream`].

mod array;
mod arrow;
mod blocks;
mod files;
mod stream;

pub use files::Files;

use array::ArraySource;
use arrow::ArrowSource;
use blocks::BlockSource;
use numpy::{PyReadonlyArray1, PyUntypedArray, PyUntypedArrayMethods};
use nysketch::RowSource;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::sync::Arc;

/// Which columns are read.
pub enum Wanted<'a> {
    /// Those that hold numbers.
    Numbers,
    /// All, which must hold numbers.
    All,
    /// These.
    Chosen(Vec<String>),
    /// Those of a plan or a model: by name, or by position where X does not name its columns.
    Given(&'a [String]),
}

impl Wanted<'_> {
    /// All columns that must be read; `None` where they are not known yet.
    fn with(&self, extras: &Extras) -> Option<Vec<String>> {
        let mut names = match self {
            Wanted::Numbers | Wanted::All => return None,
            Wanted::Chosen(names) => names.clone(),
            Wanted::Given(names) => names.to_vec(),
        };
        let weight = match &extras.weights {
            Weights::Column(weight) => Some(weight),
            _ => None,
        };
        for name in weight.into_iter().chain(&extras.key) {
            if !names.contains(name) {
                names.push(name.clone());
            }
        }
        Some(names)
    }
}

/// Rows with the names of their columns.
pub struct Input {
    pub source: Arc<dyn RowSource + Send + Sync>,
    /// Number of rows, where it is known.
    pub rows: Option<u64>,
    /// What a person should know about it: columns left out, and the like.
    pub notes: Vec<String>,
    /// The name of the column of weights, where there are weights.
    pub weight_column: Option<String>,
}

/// What is read beside the columns of numbers, and how.
#[derive(Default)]
pub struct Extras {
    pub weights: Weights,
    /// A column that groups the rows.
    pub key: Option<String>,
    /// Columns that are not read, by name; patterns, where X is files.
    pub exclude: Vec<String>,
    /// Whether text among the numbers of a csv file is a missing value.
    pub skip_invalid: bool,
    /// Position of the first row: X may be one of many parts.
    pub position: u64,
}

impl Extras {
    /// Weights and nothing else.
    pub fn weights(weights: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        Ok(Extras { weights: Weights::new(weights)?, ..Extras::default() })
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
    pub fn open(x: &Bound<'_, PyAny>, wanted: Wanted<'_>, extras: Extras) -> PyResult<Self> {
        if let Some(files) = Files::of(x)? {
            return files.open(wanted, extras);
        }
        let py = x.py();
        let read = wanted.with(&extras);
        let (x, names): (Bound<'_, PyAny>, Option<Vec<String>>) =
            py.import("nysketch._input")?.call_method1("table", (x, read))?.extract()?;
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
        let (names, weights) = Self::of_shape(rows, columns, names, wanted, extras)?;
        let weight_column = weights.is_some().then(|| WEIGHTS.to_string());
        let source: Arc<dyn RowSource + Send + Sync> = match array {
            Ok(array) => Arc::new(ArraySource::new(array, names, weights)?),
            Err(_) => Arc::new(BlockSource::new(&x, rows, names, weights)),
        };
        Ok(Input { source, rows: Some(rows as u64), notes: Vec::new(), weight_column })
    }

    /// The names of the columns and the weights of rows that are known by their position alone.
    fn of_shape(
        rows: usize,
        columns: usize,
        names: Option<Vec<String>>,
        wanted: Wanted<'_>,
        extras: Extras,
    ) -> PyResult<(Vec<String>, Option<Vec<f64>>)> {
        if extras.key.is_some() {
            return Err(PyValueError::new_err(
                "groups are a column of an Arrow table or data frame, by name",
            ));
        }
        let names = names.unwrap_or_else(|| nysketch::rows::default_names(columns));
        if !extras.exclude.is_empty() {
            return Err(PyValueError::new_err(
                "exclude leaves columns out by name, of files, Arrow tables and data frames; take X[:, ...] of an array",
            ));
        }
        let names = match wanted {
            Wanted::Given(given) if given.len() == columns => given.to_vec(),
            Wanted::Given(given) => {
                return Err(PyValueError::new_err(format!(
                    "X has {columns} features, but {} are expected: {}",
                    given.len(),
                    listed(given)
                )));
            }
            Wanted::Numbers | Wanted::All => names,
            Wanted::Chosen(chosen) if chosen == names => names,
            Wanted::Chosen(_) => {
                return Err(PyValueError::new_err(
                    "columns chooses by name, from Arrow tables and data frames; take X[:, ...] of an array",
                ));
            }
        };
        let weights = match extras.weights {
            Weights::None => None,
            Weights::Values(values) if values.len() == rows => Some(values),
            Weights::Values(values) => {
                return Err(PyValueError::new_err(format!(
                    "weights has {} values, but X has {rows} rows",
                    values.len()
                )));
            }
            Weights::Column(_) => {
                return Err(PyValueError::new_err(
                    "weights names a column of an Arrow table or data frame; give an array of numbers beside an array",
                ));
            }
        };
        Ok((names, weights))
    }

    fn of_arrow(x: &Bound<'_, PyAny>, wanted: Wanted<'_>, extras: Extras) -> PyResult<Self> {
        let weight_column = match &extras.weights {
            Weights::None => None,
            Weights::Column(name) => Some(name.clone()),
            Weights::Values(_) => Some(WEIGHTS.to_string()),
        };
        let (source, notes) = ArrowSource::new(x, wanted, extras)?;
        // Tables know their number of rows; streams do not.
        let rows = ["num_rows", "height"].iter().find_map(|name| x.getattr(*name).ok());
        let rows = rows.and_then(|n| n.extract::<u64>().ok());
        Ok(Input { source: Arc::new(source), rows, notes, weight_column })
    }
}

/// Some names, not too many.
fn listed(names: &[String]) -> String {
    match names.len() {
        n if n > 20 => format!("{}, … ({n} columns)", names[..20].join(", ")),
        _ => names.join(", "),
    }
}
