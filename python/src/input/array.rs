//! NumPy arrays, read in place with any strides. Only the current part is copied.

use arrow_array::{ArrayRef, Float64Array};
use numpy::{PyArrayDescrMethods, PyUntypedArray, PyUntypedArrayMethods};
use nysketch::rows::{CategoryColumn, MISSING, part_rows};
use nysketch::{Block, Error, Result, RowPart, RowSet, RowSource, RowStream};
use nysketch_tables::arrow::codes;
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
    /// Keeps the memory alive.
    _array: Py<PyUntypedArray>,
    data: *const u8,
    number: Number,
    rows: usize,
    /// Bytes between rows, and between columns.
    strides: [isize; 2],
    columns: Vec<String>,
    /// Indexes of the columns that are numbers; `levels` has those of the categories.
    numbers: Vec<usize>,
    levels: Vec<usize>,
    categories: Vec<CategoryColumn>,
    weights: Option<Vec<f64>>,
}

// SAFETY: `data` is only read, and it lives as long as `_array`, whose reference is counted. If
// Python code writes to the array during reading, rows may be torn, as with any NumPy function that
// releases the GIL.
unsafe impl Send for ArraySource {}
// SAFETY: as above.
unsafe impl Sync for ArraySource {}

impl ArraySource {
    /// Wraps an array that `nysketch/_input.py` has prepared: two dimensions, native byte order.
    pub fn new(
        array: &Bound<'_, PyUntypedArray>,
        names: Vec<String>,
        categories: &[String],
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
        // Reading depends on these properties.
        let fits = width == names.len() && weights.as_ref().is_none_or(|w| w.len() == rows);
        if !fits || dtype.is_native_byteorder() == Some(false) {
            return Err(PyTypeError::new_err("X is not as it was prepared"));
        }
        // SAFETY: the pointer is that of a live array object.
        let data = unsafe { (*array.as_array_ptr()).fields.data }.cast_const().cast();
        let _array = array.clone().unbind();
        let (levels, numbers): (Vec<usize>, Vec<usize>) =
            (0..width).partition(|j| categories.contains(&names[*j]));
        let category =
            |j: &usize| CategoryColumn { name: names[*j].clone(), vocabulary: Arc::default() };
        Ok(ArraySource {
            _array,
            data,
            number,
            rows,
            strides: [row, column],
            columns: numbers.iter().map(|j| names[*j].clone()).collect(),
            categories: levels.iter().map(category).collect(),
            numbers,
            levels,
            weights,
        })
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
        let d = self.width();
        let [row_stride, column_stride] = self.strides;
        let mut values = Vec::with_capacity(rows.len() * d);
        for i in rows {
            // SAFETY: i and j are within the shape of the array, so these are its elements. They
            // may be unaligned.
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

impl ArraySource {
    /// Number of columns of the array.
    fn width(&self) -> usize {
        self.numbers.len() + self.levels.len()
    }

    /// Splits rows into the numbers, and the codes of the other columns. A category has the texts
    /// of its numbers as levels.
    fn split(&self, values: Vec<f64>) -> Result<(Vec<f64>, Vec<u32>)> {
        let (width, wide) = (self.width(), self.levels.len());
        let rows = values.chunks_exact(width);
        let mut levels = vec![MISSING; rows.len() * wide];
        for (k, (j, category)) in self.levels.iter().zip(&self.categories).enumerate() {
            let column: Float64Array =
                rows.clone().map(|row| Some(row[*j]).filter(|x| !x.is_nan())).collect();
            let column: ArrayRef = Arc::new(column);
            codes(&column, &category.vocabulary, &mut levels, k, wide).map_err(Error::source)?;
        }
        let numbers = rows.flat_map(|row| self.numbers.iter().map(|j| row[*j])).collect();
        Ok((numbers, levels))
    }
}

impl RowSource for ArraySource {
    fn columns(&self) -> &[String] {
        &self.columns
    }

    fn categories(&self) -> &[CategoryColumn] {
        &self.categories
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
        let to = (from + part_rows(self.array.width())).min(self.array.rows);
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
        let values = array.values(rows.clone());
        let (values, codes) =
            if array.levels.is_empty() { (values, Vec::new()) } else { array.split(values)? };
        Ok(Some(Block {
            values,
            codes,
            weights,
            columns: array.columns.len(),
            file: Arc::from("X"),
            // Python counts from 0.
            first_row: rows.start as u64,
            position: rows.start as u64,
            ..Block::default()
        }))
    }
}
