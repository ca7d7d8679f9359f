//! NumPy files with one or two dimensions: real numbers of any width, in either byte order, stored
//! by rows or by columns. Files are read in slices, not mapped. Each thread therefore holds only
//! one part in memory, and a file that is truncated during reading causes an error, not a crash.

use super::arrays::batch;
use super::npy_header;
use super::stored::Stored;
use crate::arrow::type_name;
use crate::batch::Batch;
use crate::error::{Error, Result};
use crate::meter::Meter;
use crate::places::{Places, Value};
use crate::schema::{Kind, Schema};
use crate::store::Bytes;
use crate::track::{Raw, Track};
use arrow_array::*;
use arrow_schema::DataType;
use half::f16;
use nysketch_core::Block;
use nysketch_core::rows::MAX_COLUMNS;
use nysketch_core::rows::part_rows;
use std::io::{BufReader, Seek, SeekFrom};
use std::sync::Arc;

/// Iterates over the numbers of a type in a byte slice.
macro_rules! numbers {
    ($type:ty, $bytes:expr, $big_endian:expr) => {
        $bytes.as_chunks::<{ size_of::<$type>() }>().0.iter().map(|b| match $big_endian {
            false => <$type>::from_le_bytes(*b),
            true => <$type>::from_be_bytes(*b),
        })
    };
}

/// Type of the numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Number {
    Bool,
    F2,
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

impl Number {
    const NAMES: [(&'static str, Number); 12] = [
        ("b1", Number::Bool),
        ("f2", Number::F2),
        ("f4", Number::F4),
        ("f8", Number::F8),
        ("i1", Number::I1),
        ("i2", Number::I2),
        ("i4", Number::I4),
        ("i8", Number::I8),
        ("u1", Number::U1),
        ("u2", Number::U2),
        ("u4", Number::U4),
        ("u8", Number::U8),
    ];

    fn bytes(self) -> usize {
        match self {
            Number::Bool | Number::I1 | Number::U1 => 1,
            Number::F2 | Number::I2 | Number::U2 => 2,
            Number::F4 | Number::I4 | Number::U4 => 4,
            Number::F8 | Number::I8 | Number::U8 => 8,
        }
    }

    /// Returns all numbers in `bytes` as doubles.
    fn decode(self, bytes: &[u8], big_endian: bool) -> Vec<f64> {
        macro_rules! decode {
            ($type:ty) => {
                numbers!($type, bytes, big_endian).map(|x| x as f64).collect()
            };
        }
        match self {
            Number::F2 => numbers!(f16, bytes, big_endian).map(f64::from).collect(),
            Number::F4 => decode!(f32),
            Number::F8 => decode!(f64),
            Number::I1 => decode!(i8),
            Number::I2 => decode!(i16),
            Number::I4 => decode!(i32),
            Number::I8 => decode!(i64),
            Number::Bool | Number::U1 => decode!(u8),
            Number::U2 => decode!(u16),
            Number::U4 => decode!(u32),
            Number::U8 => decode!(u64),
        }
    }

    /// Returns all numbers in `bytes` in their own type.
    fn array(self, bytes: &[u8], big_endian: bool) -> ArrayRef {
        macro_rules! array {
            ($type:ty, $array:ty) => {
                Arc::new(<$array>::from_iter_values(numbers!($type, bytes, big_endian)))
            };
        }
        match self {
            Number::Bool => Arc::new(BooleanArray::from_iter(bytes.iter().map(|b| Some(*b != 0)))),
            Number::F2 => array!(f16, Float16Array),
            Number::F4 => array!(f32, Float32Array),
            Number::F8 => array!(f64, Float64Array),
            Number::I1 => array!(i8, Int8Array),
            Number::I2 => array!(i16, Int16Array),
            Number::I4 => array!(i32, Int32Array),
            Number::I8 => array!(i64, Int64Array),
            Number::U1 => array!(u8, UInt8Array),
            Number::U2 => array!(u16, UInt16Array),
            Number::U4 => array!(u32, UInt32Array),
            Number::U8 => array!(u64, UInt64Array),
        }
    }

    /// Returns the Arrow type of the numbers.
    fn data_type(self) -> DataType {
        self.array(&[], false).data_type().clone()
    }
}

/// A NumPy file.
#[derive(Debug)]
pub struct Npy {
    file: Stored,
    offset: u64,
    rows: u64,
    columns: usize,
    kind: Number,
    big_endian: bool,
    /// Whether columns are stored one after the other, as in Fortran.
    column_major: bool,
}

impl Npy {
    /// Reads the header and checks that the file holds all the numbers it declares.
    pub fn open(file: Stored) -> Result<(Self, Schema)> {
        let name = file.name.clone();
        let cannot = |e| Error::read(&name, e);
        let refuse = |how: String| Err(Error::not_a_table(&name, how));
        let mut bytes = file.open()?;
        let length = bytes.seek(SeekFrom::End(0)).map_err(cannot)?;
        bytes.rewind().map_err(cannot)?;
        let mut reader = BufReader::new(bytes);
        let header = npy_header::read(&mut reader)
            .map_err(|e| Error::not_a_table(&name, format!("is not a valid npy file: {e}")))?;
        let offset = reader.stream_position().map_err(cannot)?;
        let (kind, big_endian) = number_type(&header.descr, &name)?;
        let (rows, columns) = match *header.shape {
            [rows] => (rows, 1),
            [rows, columns] => (rows, columns),
            ref shape => {
                return refuse(format!("has {} dimensions; a table has two", shape.len()));
            }
        };
        if columns == 0 || columns > MAX_COLUMNS as u64 {
            return refuse(format!(
                "has {columns} columns; between 1 and {MAX_COLUMNS} are allowed"
            ));
        }
        let size = rows
            .checked_mul(columns * kind.bytes() as u64)
            .and_then(|s| s.checked_add(offset))
            .ok_or_else(|| {
                Error::in_file(&name, "the header declares more numbers than a file can hold")
            })?;
        if length < size {
            let how = format!(
                "is truncated: {rows} × {columns} values need {size} bytes, but the file has \
                 {length}"
            );
            return Err(Error::damaged(name, how));
        }
        if length > size {
            let more = length - size;
            return refuse(format!("has {more} bytes after the array; a file holds one array"));
        }
        let npy = Npy {
            file,
            offset,
            rows,
            columns: columns as usize,
            kind,
            big_endian,
            column_major: header.fortran_order && columns > 1,
        };
        let column = (Kind::Number, type_name(&kind.data_type()));
        let schema = Schema::unnamed(&name, vec![column; columns as usize], Some(rows))?;
        Ok((npy, schema))
    }

    /// Starts reading after this many rows.
    pub fn track(
        self: &Arc<Self>,
        skip: u64,
        columns: &Arc<Places>,
        meter: &Arc<Meter>,
    ) -> Result<NpyTrack> {
        let file = self.file.open()?;
        let (npy, columns, meter) = (self.clone(), columns.clone(), meter.clone());
        Ok(NpyTrack { npy, columns, meter, file, next: skip })
    }

    /// Returns the type of the numbers in every column.
    pub fn data_type(&self) -> DataType {
        self.kind.data_type()
    }

    pub fn rows(&self) -> u64 {
        self.rows
    }
}

fn number_type(descr: &str, name: &str) -> Result<(Number, bool)> {
    let kind = descr.strip_prefix(['<', '>', '|']).unwrap_or_default();
    match Number::NAMES.iter().find(|(n, _)| *n == kind) {
        Some((_, kind)) => Ok((*kind, descr.starts_with('>'))),
        None => {
            let how = "only real numbers (float32, float64, integers) can be read";
            Err(Error::not_a_table(name, format!("holds {descr}; {how}")))
        }
    }
}

/// A NumPy file being read.
pub struct NpyTrack {
    npy: Arc<Npy>,
    columns: Arc<Places>,
    meter: Arc<Meter>,
    file: Box<dyn Bytes>,
    next: u64,
}

impl NpyTrack {
    fn read_at(&mut self, item: u64, bytes: &mut [u8]) -> Result<()> {
        let at = self.npy.offset + item * self.npy.kind.bytes() as u64;
        self.file
            .seek(SeekFrom::Start(at))
            .and_then(|_| self.file.read_exact(bytes))
            .map_err(|e| Error::read(&self.npy.file.name, e))
    }
}

impl Track for NpyTrack {
    fn read(&mut self) -> nysketch_core::Result<Option<Box<dyn Raw>>> {
        let npy = self.npy.clone();
        let from = self.next;
        let count = (npy.rows - from).min(part_rows(npy.columns) as u64);
        if count == 0 {
            return Ok(None);
        }
        self.next += count;
        let size = npy.kind.bytes();
        // Whole rows are read if rows are contiguous; only the wanted columns are read if columns
        // are.
        let columns = self.columns.clone();
        let width = if npy.column_major { columns.projection.len() } else { npy.columns };
        let mut bytes = vec![0; count as usize * width * size];
        if npy.column_major {
            let spans = bytes.chunks_exact_mut(count as usize * size);
            for (span, &column) in spans.zip(&columns.projection) {
                self.read_at(column as u64 * npy.rows + from, span)?;
            }
        } else {
            self.read_at(from * npy.columns as u64, &mut bytes)?;
        }
        self.meter.add(count * (npy.columns * size) as u64);
        Ok(Some(Box::new(NpyRaw { npy, columns, bytes, count: count as usize })))
    }
}

struct NpyRaw {
    npy: Arc<Npy>,
    columns: Arc<Places>,
    bytes: Vec<u8>,
    count: usize,
}

impl NpyRaw {
    /// Returns the bytes of one column.
    fn column(&self, column: usize) -> Vec<u8> {
        let size = self.npy.kind.bytes();
        if self.npy.column_major {
            let bytes = self.count * size;
            let at = self.columns.place(column);
            return self.bytes[at * bytes..(at + 1) * bytes].to_vec();
        }
        let rows = self.bytes.chunks_exact(self.npy.columns * size);
        rows.flat_map(|row| &row[column * size..(column + 1) * size]).copied().collect()
    }
}

impl Raw for NpyRaw {
    fn rows(&self) -> u64 {
        self.count as u64
    }

    fn decode(self: Box<Self>, first_row: u64) -> nysketch_core::Result<Batch> {
        let (npy, count, columns) = (&*self.npy, self.count, &*self.columns);
        let array = |column: &usize| npy.kind.array(&self.column(*column), npy.big_endian);
        let plain = |value: &Value| matches!(value, Value::Column(_));
        let only_numbers = columns.key.is_none()
            && columns.kept.is_empty()
            && columns.categories.is_empty()
            && columns.values.iter().chain(&columns.weight).all(plain);
        if !only_numbers {
            let arrays: Vec<ArrayRef> = columns.projection.iter().map(array).collect();
            return Ok(batch(&npy.file.name, first_row, count, &arrays, columns)?);
        }
        let numbers = npy.kind.decode(&self.bytes, npy.big_endian);
        let at = |row: usize, value: Value| match value {
            Value::Column(column) if npy.column_major => {
                numbers[columns.place(column) * count + row]
            }
            Value::Column(column) => numbers[row * npy.columns + column],
            Value::Constant(x) => x,
            Value::Vector => f64::NAN,
        };
        let weights = match columns.weight {
            Some(column) => (0..count).map(|row| at(row, column)).collect(),
            None => Vec::new(),
        };
        let d = columns.values.len();
        let as_stored = !npy.column_major
            && columns.values.iter().copied().eq((0..npy.columns).map(Value::Column));
        let values = if as_stored {
            numbers
        } else {
            (0..count * d).map(|i| at(i / d, columns.values[i % d])).collect()
        };
        let block = Block { values, weights, columns: d, ..Block::default() };
        Ok(Batch::new(block, Vec::new()))
    }
}
