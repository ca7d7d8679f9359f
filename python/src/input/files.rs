//! Files, folders and patterns, read in the same way as by the command line.

use super::{Extras, Input, Wanted, Weights};
use crate::error::table_exception;
use crate::options::named;
use nysketch_tables::{Columns, Dataset, Format, Header, ReadOptions};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::Arc;

/// The attributes of `nysketch.Files`.
#[derive(FromPyObject)]
pub struct Files {
    paths: Vec<PathBuf>,
    format: Option<String>,
    delimiter: Option<String>,
    header: Option<bool>,
}

impl Files {
    /// Returns the files that an object names, or `None` if it is another kind of object.
    pub fn of(x: &Bound<'_, PyAny>) -> PyResult<Option<Self>> {
        x.py().import("nysketch._input")?.call_method1("files", (x,))?.extract()
    }

    fn options(&self) -> PyResult<ReadOptions> {
        let format = self.format.as_deref().map(named::<Format>).transpose()?;
        let delimiter = match self.delimiter.as_deref().map(str::as_bytes) {
            None => None,
            Some([c]) if c.is_ascii() && !b"\"\n\r".contains(c) => Some(*c),
            Some(_) => {
                return Err(PyValueError::new_err("delimiter must be one ASCII character"));
            }
        };
        let header = match self.header {
            None => Header::Expected,
            Some(true) => Header::Present,
            Some(false) => Header::Absent,
        };
        Ok(ReadOptions::default().format(format).delimiter(delimiter).header(header))
    }

    /// Opens the files without reading rows.
    pub fn open(self, wanted: Wanted, extras: Extras) -> PyResult<Input> {
        let refuse = |message: &str| Err(PyValueError::new_err(message.to_string()));
        let taken = extras.taken();
        let weight = match extras.weights {
            Weights::None => None,
            Weights::Column(name) => Some(name),
            Weights::Values(_) => {
                return refuse("weights of files are one of their columns, by name");
            }
        };
        if extras.position != 0 {
            return refuse("the rows of files are counted from the first");
        }
        let rowwise = wanted.rowwise().is_some();
        let columns = wanted.columns(taken);
        let beside = nysketch_tables::Extras::default().weight(weight.clone()).key(extras.key);
        let options = self
            .options()?
            .columns(columns)
            .extras(beside)
            .rowwise(rowwise)
            .skip_invalid(extras.skip_invalid)
            .allow_missing(extras.allow_missing);
        let dataset = Dataset::open(&self.paths, &options).map_err(table_exception)?;
        Ok(Input {
            rows: dataset.rows(),
            notes: dataset.notes().to_vec(),
            weight_column: weight,
            source: Arc::new(dataset),
            by_position: false,
        })
    }

    /// Reads all rows, for landmarks: these columns, or all columns of numbers.
    pub fn read_all(self, columns: Option<&[String]>) -> PyResult<Vec<Vec<f64>>> {
        let columns = columns.map_or(Columns::default(), Columns::exactly);
        let options = self.options()?.columns(columns);
        let dataset = Dataset::open(&self.paths, &options).map_err(table_exception)?;
        dataset.read_all().map_err(crate::error::exception)
    }
}
