//! NumPy arrays as they lie in memory: any strides, nothing copied but the part at hand.

use numpy::{PyArrayDescrMethods, PyUntypedArray, PyUntypedArrayMethods};
use nysketch::rows::part_rows;
use nysketch::{Block, Result, RowPart, RowSet, RowSource, RowStream};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use std::ops::Range;
use std::sync::Arc;

/// Type of the numbers.
#[derive(Debug, Clone, Copy)]
enum Number {
    F4,
    F8,
    I1,
    I2,
    I4,
    I8,
    U1,
    U2,
    U4,
    U8,
}

/// A two-dimensional array.
pub struct ArraySource {
    /// Keeps the memory.
    _array: Py<PyUntypedArray>,
    data: *const u8,
    number: Number,
    rows: usize,
    /// Bytes from a row to the next and from a column to the next.
    strides: [isize; 2],
    columns: Vec<String>,
    weights: Option<Vec<f64>>,
}

// SAFETY: `data` is only read, and lives as long as `_array`, whose reference is counted. Python code
// that writes to an array while it is read gets rows as torn as with any NumPy function that releases
// the GIL.
unsafe impl Send for ArraySource {}
// SAFETY: as above.
unsafe impl Sync for ArraySource {}

impl ArraySource {
    /// An array that `nysketch/_input.py` has prepared: two dimensions, native byte order.
    pub fn new(
        array: &Bound<'_, PyUntypedArray>,
        columns: Vec<String>,
        weights: Option<Vec<f64>>,
    ) -> PyResult<Self> {
        let dtype = array.dtype();
        let number = match (dtype.kind(), dtype.itemsize()) {
            (b'f', 4) => Number::F4,
            (b'f', 8) => Number::F8,
            (b'i', 1) => Number::I1,
            (b'i', 2) => Number::I2,
            (b'i', 4) => Number::I4,
            (b'i', 8) => Number::I8,
            (b'u' | b'b', 1) => Number::U1,
            (b'u', 2) => Number::U2,
            (b'u', 4) => Number::U4,
            (b'u', 8) => Number::U8,
            _ => return Err(PyTypeError::new_err(format!("X holds {dtype}, not numbers"))),
        };
        let (&[rows, width], &[row, column]) = (array.shape(), array.strides()) else {
            return Err(PyTypeError::new_err("X must have two dimensions"));
        };
        // What reading relies on.
        let fits = width == columns.len() && weights.as_ref().is_none_or(|w| w.len() == rows);
        if !fits || dtype.is_native_byteorder() == Some(false) {
            return Err(PyTypeError::new_err("X is not as it was prepared"));
        }
        // SAFETY: the pointer is that of a live array object.
        let data = unsafe { (*array.as_array_ptr()).fields.data }.cast_const().cast();
        let _array = array.clone().unbind();
        Ok(ArraySource { _array, data, number, rows, strides: [row, column], columns, weights })
    }

    fn values(&self, rows: Range<usize>) -> Vec<f64> {
        match self.number {
            Number::F4 => self.read(rows, f32::into),
            Number::F8 => self.read(rows, |x: f64| x),
            Number::I1 => self.read(rows, i8::into),
            Number::I2 => self.read(rows, i16::into),
            Number::I4 => self.read(rows, i32::into),
            Number::I8 => self.read(rows, |x: i64| x as f64),
            Number::U1 => self.read(rows, u8::into),
            Number::U2 => self.read(rows, u16::into),
            Number::U4 => self.read(rows, u32::into),
            Number::U8 => self.read(rows, |x: u64| x as f64),
        }
    }

    fn read<T: Copy>(&self, rows: Range<usize>, number: impl Fn(T) -> f64) -> Vec<f64> {
        let d = self.columns.len();
        let [row_stride, column_stride] = self.strides;
        let mut values = Vec::with_capacity(rows.len() * d);
        for i in rows {
            // SAFETY: i and j are within the array's shape, so these are its own elements; nothing
            // says that they are aligned.
            unsafe {
                let row = self.data.offset(i as isize * row_stride);
                if column_stride == size_of::<T>() as isize {
                    let row = row.cast::<T>();
                    values.extend((0..d).map(|j| number(row.add(j).read_unaligned())));
                } else {
                    let at = |j: usize| row.offset(j as isize * column_stride).cast::<T>();
                    values.extend((0..d).map(|j| number(at(j).read_unaligned())));
                }
            }
        }
        values
    }
}

impl RowSource for ArraySource {
    fn columns(&self) -> &[String] {
        &self.columns
    }

    fn open(&self, done: &RowSet) -> Result<Box<dyn RowStream<'_> + '_>> {
        Ok(Box::new(ArrayStream { array: self, next: 0, done: done.clone() }))
    }
}

struct ArrayStream<'a> {
    array: &'a ArraySource,
    next: usize,
    done: RowSet,
}

impl<'a> RowStream<'a> for ArrayStream<'a> {
    fn next_part(&mut self) -> Option<Box<dyn RowPart + 'a>> {
        let from = self.done.first_missing(self.next as u64) as usize;
        if from >= self.array.rows {
            return None;
        }
        let to = (from + part_rows(self.array.columns.len())).min(self.array.rows);
        self.next = to;
        Some(Box::new(ArrayPart { array: self.array, rows: from..to }))
    }

    fn in_order(&self) -> bool {
        true
    }
}

struct ArrayPart<'a> {
    array: &'a ArraySource,
    rows: Range<usize>,
}

impl RowPart for ArrayPart<'_> {
    fn position(&self) -> u64 {
        self.rows.start as u64
    }

    fn decode(self: Box<Self>) -> Result<Option<Block>> {
        let ArrayPart { array, rows } = *self;
        let weights = array.weights.as_ref().map_or(Vec::new(), |w| w[rows.clone()].to_vec());
        Ok(Some(Block {
            values: array.values(rows.clone()),
            weights,
            columns: array.columns.len(),
            file: Arc::from("X"),
            // As Python counts.
            first_row: rows.start as u64,
            position: rows.start as u64,
            ..Block::default()
        }))
    }
}
