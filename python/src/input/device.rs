//! Arrays in the memory of a GPU, which are read where they lie.

use super::{Extras, Wanted, beside, named};
use nysketch::{DeviceChoice, EngineKind, Error, Plan, Result};
use nysketch_cuda::{Device, DeviceError, DeviceRows, Element};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use std::sync::Arc;

/// A two-dimensional array in the memory of a GPU, as `nysketch/_device.py` describes it.
#[derive(FromPyObject)]
struct Described {
    address: u64,
    dtype: String,
    shape: (u64, usize),
    /// Values from a row to the next and from a column to the next.
    strides: (i64, i64),
    /// What wrote it, where that must be waited for.
    stream: Option<usize>,
    keep: Py<PyAny>,
}

/// Rows in the memory of a GPU, with their weights.
pub struct DeviceArray {
    pub rows: DeviceRows<'static>,
    /// One for each row, or none.
    pub weights: Vec<f64>,
    /// The GPU that has them; of no rows none.
    gpu: std::result::Result<Option<usize>, DeviceError>,
    /// Keeps the memory.
    _keep: Py<PyAny>,
}

impl DeviceArray {
    /// The rows of X, if it lies in the memory of a GPU, with its columns in the order of those that are wanted. A frame of which
    /// others are read `beside` them does not; `extras` are looked at only for one that does.
    pub fn of(
        x: &Bound<'_, PyAny>,
        wanted: Wanted,
        beside_them: bool,
        extras: impl FnOnce() -> PyResult<Extras>,
    ) -> PyResult<Option<Self>> {
        let helper = x.py().import("nysketch._input")?;
        let found: Option<Described> =
            helper.call_method1("on_device", (x, wanted.names(), beside_them))?.extract()?;
        let Some(array) = found else { return Ok(None) };
        let (rows, columns) = array.shape;
        let expected = wanted.names();
        let (names, _) = named(columns, None, wanted)?;
        // Columns in another order are brought into that of the plan on this machine.
        if expected.is_some_and(|expected| expected != names) {
            return Ok(None);
        }
        let weights = beside(rows as usize, extras()?)?.unwrap_or_default();
        let gpu = array.gpu();
        if let (1.., Ok(None)) = (rows, &gpu) {
            let at = array.address;
            return Err(PyValueError::new_err(format!(
                "X says that it is in GPU memory, but no GPU has the address {at:#x}"
            )));
        }
        let rows = array.rows()?;
        Ok(Some(DeviceArray { rows, weights, gpu, _keep: array.keep }))
    }

    /// The engine of the GPU that has the rows; `None` where there are none.
    pub fn engine(&self, choice: DeviceChoice, plan: &Arc<Plan>) -> Result<Option<EngineKind>> {
        if self.rows.is_empty() {
            return Ok(None);
        }
        let here = self.gpu.clone()?;
        match (choice, here) {
            (DeviceChoice::Cuda(Some(other)), Some(here)) if other != here => {
                Err(Error::source(format!(
                    "X is in the memory of GPU {here}, not {other}; leave `device` out, or move X there"
                )))
            }
            _ => {
                let there = DeviceChoice::Cuda(here);
                Ok(Some(there.engine(plan, Some(self.rows.len()), 1, false)?.0))
            }
        }
    }
}

impl Described {
    /// Which GPU has it.
    fn gpu(&self) -> std::result::Result<Option<usize>, DeviceError> {
        match self.shape.0 {
            0 => Ok(None),
            _ => Device::of_address(self.address),
        }
    }

    /// For no longer than `keep` is kept.
    fn rows(&self) -> PyResult<DeviceRows<'static>> {
        let (rows, columns) = self.shape;
        let (row_stride, column_stride) = self.strides;
        let element = element(&self.dtype)?;
        // SAFETY: whoever made the array says that its values are there, and `keep` keeps them. As with an array of NumPy,
        // code that writes to it meanwhile gets torn rows.
        let there = unsafe {
            DeviceRows::new(self.address, element, rows, columns)
                .with_strides(row_stride, column_stride)
        };
        Ok(match self.stream {
            None => there,
            // SAFETY: it is the default stream, or one that whoever made the array has named.
            Some(stream) => unsafe { there.written_on(waited_for(stream)) },
        })
    }
}

/// The stream to wait for. What 2 means depends on the thread, which will be another one: the default stream, here 0, waits for
/// the default streams of all threads.
fn waited_for(stream: usize) -> usize {
    match stream {
        1 | 2 => 0,
        other => other,
    }
}

fn element(dtype: &str) -> PyResult<Element> {
    match dtype {
        "float64" => Ok(Element::F64),
        "float32" => Ok(Element::F32),
        "float16" => Ok(Element::F16),
        "bfloat16" => Ok(Element::Bf16),
        other => Err(PyTypeError::new_err(format!("X holds {other}"))),
    }
}
