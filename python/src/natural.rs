//! Non-negative whole numbers. For other values the error is the one that scikit-learn users
//! expect.

use pyo3::exceptions::{PyOverflowError, PyValueError};
use pyo3::prelude::*;

/// A non-negative whole number.
#[derive(Debug, Clone, Copy)]
pub struct Natural(pub u64);

impl Natural {
    /// Returns the number as a size, limited to the largest one.
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

/// Reads a plain number, for arguments with a numeric default.
pub fn from_object(object: &Bound<'_, PyAny>) -> PyResult<u64> {
    object.extract::<Natural>().map(|n| n.0)
}
