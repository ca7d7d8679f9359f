//! NumPy files: two-dimensional (or one column), real numbers of any width, either byte order,
//! rows or columns first. Read in slices, not mapped: memory stays at one part per thread.

use super::{Schema, Selection, part_rows, unnamed};
use anyhow::{Context, Result, bail};
use npyz::{DType, NpyHeader, Order};
use nysketch::{Block, Error, RowPart, RowStream};
use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Type of the numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
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

impl Kind {
    const NAMES: [(&'static str, Kind); 10] = [
        ("f4", Kind::F4),
        ("f8", Kind::F8),
        ("i1", Kind::I1),
        ("i2", Kind::I2),
        ("i4", Kind::I4),
        ("i8", Kind::I8),
        ("u1", Kind::U1),
        ("u2", Kind::U2),
        ("u4", Kind::U4),
        ("u8", Kind::U8),
    ];

    fn bytes(self) -> usize {
        match self {
            Kind::I1 | Kind::U1 => 1,
            Kind::I2 | Kind::U2 => 2,
            Kind::F4 | Kind::I4 | Kind::U4 => 4,
            Kind::F8 | Kind::I8 | Kind::U8 => 8,
        }
    }

    /// All numbers in `bytes`, as doubles.
    fn decode(self, bytes: &[u8], big_endian: bool) -> Vec<f64> {
        macro_rules! numbers {
            ($type:ty) => {
                bytes
                    .as_chunks::<{ size_of::<$type>() }>()
                    .0
                    .iter()
                    .map(|b| match big_endian {
                        false => <$type>::from_le_bytes(*b) as f64,
                        true => <$type>::from_be_bytes(*b) as f64,
                    })
                    .collect()
            };
        }
        match self {
            Kind::F4 => numbers!(f32),
            Kind::F8 => numbers!(f64),
            Kind::I1 => numbers!(i8),
            Kind::I2 => numbers!(i16),
            Kind::I4 => numbers!(i32),
            Kind::I8 => numbers!(i64),
            Kind::U1 => numbers!(u8),
            Kind::U2 => numbers!(u16),
            Kind::U4 => numbers!(u32),
            Kind::U8 => numbers!(u64),
        }
    }
}

/// A NumPy file.
#[derive(Debug)]
pub struct Npy {
    name: Arc<str>,
    path: PathBuf,
    offset: u64,
    rows: u64,
    columns: usize,
    kind: Kind,
    big_endian: bool,
    /// Columns first, as in Fortran.
    column_major: bool,
}

impl Npy {
    /// Reads the header and checks that the file holds all the numbers it promises.
    pub fn open(path: &Path, name: Arc<str>) -> Result<(Self, Schema)> {
        let file = File::open(path).with_context(|| format!("cannot read {name}"))?;
        let length = file.metadata().with_context(|| format!("cannot read {name}"))?.len();
        let mut reader = BufReader::new(file);
        let header = NpyHeader::from_reader(&mut reader)
            .with_context(|| format!("{name} is not a valid npy file"))?;
        let offset = reader.stream_position()?;
        let (kind, big_endian) = number_type(&header.dtype(), &name)?;
        let (rows, columns) = match *header.shape() {
            [rows] => (rows, 1),
            [rows, columns] => (rows, columns),
            ref shape => bail!("{name} has {} dimensions; a table has two", shape.len()),
        };
        if columns == 0 || columns > nysketch::plan::MAX_COLUMNS as u64 {
            bail!(
                "{name} has {columns} columns; between 1 and {} are allowed",
                nysketch::plan::MAX_COLUMNS
            );
        }
        let size = rows
            .checked_mul(columns * kind.bytes() as u64)
            .and_then(|s| s.checked_add(offset))
            .with_context(|| {
                format!("{name}: the header promises more numbers than a file can hold")
            })?;
        if length < size {
            bail!(
                "{name} is truncated: {rows} rows of {columns} need {size} bytes, the file has {length}"
            );
        }
        if length > size {
            bail!("{name} has {} bytes after the array; one array a file, please", length - size);
        }
        let npy = Npy {
            name,
            path: path.to_path_buf(),
            offset,
            rows,
            columns: columns as usize,
            kind,
            big_endian,
            column_major: header.order() == Order::Fortran && columns > 1,
        };
        let schema = unnamed(columns as usize, Some(rows));
        Ok((npy, schema))
    }

    /// Starts reading.
    pub fn stream<'a>(
        &'a self,
        selection: &'a Selection,
        file_index: u64,
    ) -> nysketch::Result<Box<dyn RowStream<'a> + 'a>> {
        let file = File::open(&self.path).map_err(|e| self.failed(e))?;
        Ok(Box::new(NpyStream { npy: self, selection, file_index, file, next: 0 }))
    }

    fn failed(&self, error: std::io::Error) -> Error {
        Error::source(format!("cannot read {}: {error}", self.name))
    }
}

fn number_type(dtype: &DType, name: &str) -> Result<(Kind, bool)> {
    let text = match dtype {
        DType::Plain(t) => t.to_string(),
        other => other.descr(),
    };
    let (order, kind) = text.split_at(text.len().min(1));
    match Kind::NAMES.iter().find(|(n, _)| *n == kind) {
        Some((_, kind)) => Ok((*kind, order == ">")),
        None => {
            bail!("{name} holds {text}; only real numbers (float32, float64, integers) can be read")
        }
    }
}

struct NpyStream<'a> {
    npy: &'a Npy,
    selection: &'a Selection,
    file_index: u64,
    file: File,
    next: u64,
}

impl NpyStream<'_> {
    fn read_at(&mut self, item: u64, bytes: &mut [u8]) -> nysketch::Result<()> {
        let at = self.npy.offset + item * self.npy.kind.bytes() as u64;
        self.file
            .seek(SeekFrom::Start(at))
            .and_then(|_| self.file.read_exact(bytes))
            .map_err(|e| self.npy.failed(e))
    }
}

impl<'a> RowStream<'a> for NpyStream<'a> {
    fn next_part(&mut self) -> nysketch::Result<Option<Box<dyn RowPart + 'a>>> {
        let npy = self.npy;
        let from = self.next;
        let count = (npy.rows - from).min(part_rows(npy.columns) as u64);
        if count == 0 {
            return Ok(None);
        }
        self.next += count;
        let size = npy.kind.bytes();
        let mut bytes = vec![0; count as usize * npy.columns * size];
        if npy.column_major {
            for (j, column) in bytes.chunks_exact_mut(count as usize * size).enumerate() {
                self.read_at(j as u64 * npy.rows + from, column)?;
            }
        } else {
            self.read_at(from * npy.columns as u64, &mut bytes)?;
        }
        Ok(Some(Box::new(NpyPart {
            npy,
            selection: self.selection,
            file_index: self.file_index,
            bytes,
            count: count as usize,
            first_row: from + 1,
        })))
    }
}

struct NpyPart<'a> {
    npy: &'a Npy,
    selection: &'a Selection,
    file_index: u64,
    bytes: Vec<u8>,
    count: usize,
    first_row: u64,
}

impl RowPart for NpyPart<'_> {
    fn for_each_block(
        self: Box<Self>,
        visit: &mut dyn FnMut(&Block) -> nysketch::Result<()>,
    ) -> nysketch::Result<()> {
        let (npy, count) = (self.npy, self.count);
        let numbers = npy.kind.decode(&self.bytes, npy.big_endian);
        let at = |row: usize, column: usize| match npy.column_major {
            true => numbers[column * count + row],
            false => numbers[row * npy.columns + column],
        };
        let weights = match &self.selection.weight {
            Some((column, _)) => (0..count).map(|row| at(row, *column)).collect(),
            None => Vec::new(),
        };
        let columns = &self.selection.columns;
        let as_stored = !npy.column_major && columns.iter().copied().eq(0..npy.columns);
        let values = if as_stored {
            numbers
        } else {
            let cell = |i: usize| at(i / columns.len(), columns[i % columns.len()]);
            (0..count * columns.len()).map(cell).collect()
        };
        visit(&Block {
            values,
            weights,
            columns: columns.len(),
            file: npy.name.clone(),
            file_index: self.file_index,
            first_row: self.first_row,
        })
    }
}
