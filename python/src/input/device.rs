//! Arrays in GPU memory, read in place.

use super::{Extras, Wanted, beside, named};
use nysketch::{DeviceChoice, EngineKind, Error, Plan, Result};
use nysketch_cuda::{Device, DeviceError, DeviceRows, Element};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use std::sync::Arc;

/// A two-dimensional array in GPU memory, as described by `nysketch/_device.py`.
#[derive(FromPyObject)]
struct Described {
    address: u64,
    dtype: String,
    shape: (u64, usize),
    /// Distance between rows, and between columns, in values.
    strides: (i64, i64),
    /// The stream that wrote the array, if it must be waited for.
    stream: Option<usize>,
    keep: Py<PyAny>,
}

/// Rows in GPU memory, with their weights.
pub struct DeviceArray {
    pub rows: DeviceRows<'static>,
    /// One weight per row, or empty.
    pub weights: Vec<f64>,
    /// The GPU that holds the rows; `None` if there are no rows.
    gpu: std::result::Result<Option<usize>, DeviceError>,
    /// Keeps the memory alive.
    _keep: Py<PyAny>,
}

impl DeviceArray {
    /// Returns the rows of X if X is in GPU memory and its columns are the wanted ones in order. A
    /// data frame is not used in place if further columns must be read (`beside_them`). `extras` is
    /// called only for an array in GPU memory.
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
        // Columns in a different order are rearranged on this machine.
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

    /// Returns the engine of the GPU that holds the rows, or `None` if there are no rows.
    pub fn engine(&self, choice: DeviceChoice, plan: &Arc<Plan>) -> Result<Option<EngineKind>> {
        if self.rows.is_empty() {
            return Ok(None);
        }
        let here = self.gpu.clone()?;
        match (choice, here) {
            (DeviceChoice::Cuda(Some(other)), Some(here)) if other != here => {
                Err(Error::source(format!(
                    "X is in the memory of GPU {here}, not {other}; leave `device` out, or move X \
                     there"
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
    /// Returns the GPU that holds the array.
    fn gpu(&self) -> std::result::Result<Option<usize>, DeviceError> {
        match self.shape.0 {
            0 => Ok(None),
            _ => Device::of_address(self.address),
        }
    }

    /// Describes the rows, valid only as long as `keep`.
    fn rows(&self) -> PyResult<DeviceRows<'static>> {
        let (rows, columns) = self.shape;
        let (row_stride, column_stride) = self.strides;
        let element = element(&self.dtype)?;
        // SAFETY: the producer of the array guarantees that its values exist, and `keep` keeps them
        // alive. As with NumPy arrays, code that writes during reading may cause torn rows.
        let there = unsafe {
            DeviceRows::new(self.address, element, rows, columns)
                .with_strides(row_stride, column_stride)
        };
        Ok(match self.stream {
            None => there,
            // SAFETY: the stream is the default stream or one that the producer of the array named.
            Some(stream) => unsafe { there.written_on(waited_for(stream)) },
        })
    }
}

/// Returns the stream to wait for. Stream 2 is the default stream of a thread, and another thread
/// will do the waiting. The legacy default stream, 0, waits for the default streams of all threads.
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
