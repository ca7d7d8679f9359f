//! Whole numbers that are not negative, with the error that scikit-learn users expect for others.

use pyo3::exceptions::{PyOverflowError, PyValueError};
use pyo3::prelude::*;

/// A whole number that is not negative.
#[derive(Debug, Clone, Copy)]
pub struct Natural(pub u64);

impl Natural {
    /// As a size.
    pub fn size(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }
}

impl<'a, 'py> FromPyObject<'a, 'py> for Natural {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        object.extract().map(Natural).map_err(|error: PyErr| {
            if !error.is_instance_of::<PyOverflowError>(object.py()) {
                return error;
            }
            let got = object.to_owned();
            PyValueError::new_err(format!("expected a whole number from 0 to 2^64 - 1, got {got}"))
        })
    }
}

/// The same as a plain number, for arguments whose default is one.
pub fn from_object(object: &Bound<'_, PyAny>) -> PyResult<u64> {
    object.extract::<Natural>().map(|n| n.0)
}
