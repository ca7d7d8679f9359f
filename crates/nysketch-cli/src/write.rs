//! Tables out: csv, Parquet or NumPy, batch after batch.

use crate::output::Usage;
use anyhow::{Result, bail};
use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Int32Type, UInt32Type};
use arrow_array::{Array, RecordBatch};
use arrow_schema::{DataType, SchemaRef};
use nysketch::file::Out;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;
use std::io::{SeekFrom, Write};
use std::path::Path;

/// Rows of a row group, at most: what the writer holds in memory.
const GROUP_ROWS: usize = 1 << 17;
/// Bytes of a row group, about, at most.
const GROUP_BYTES: usize = 64 << 20;

/// Format of a table to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableKind {
    Csv,
    Npy,
    Parquet,
}

impl TableKind {
    /// By the extension.
    pub fn of(path: &Path) -> Result<Self> {
        match path.extension().and_then(|e| e.to_str()).map(str::to_ascii_lowercase).as_deref() {
            Some("csv") => Ok(TableKind::Csv),
            Some("npy") => Ok(TableKind::Npy),
            Some("parquet") => Ok(TableKind::Parquet),
            _ => {
                let message = format!("{}: name the file .parquet, .csv or .npy", path.display());
                Err(Usage(message).into())
            }
        }
    }
}

/// A table being written.
pub enum TableWriter<'a> {
    Csv(Box<arrow_csv::Writer<&'a mut dyn Out>>),
    Parquet(Box<ArrowWriter<&'a mut dyn Out>>),
    /// Numbers of one type, row by row; the header is written again when the rows are counted.
    Npy {
        out: &'a mut dyn Out,
        rows: u64,
        schema: SchemaRef,
    },
}

impl<'a> TableWriter<'a> {
    /// Starts a table with these columns.
    pub fn new(kind: TableKind, schema: &SchemaRef, out: &'a mut dyn Out) -> Result<Self> {
        Ok(match kind {
            TableKind::Csv => {
                let mut writer = arrow_csv::Writer::new(out);
                writer.write(&RecordBatch::new_empty(schema.clone()))?;
                TableWriter::Csv(Box::new(writer))
            }
            TableKind::Parquet => {
                let properties = WriterProperties::builder()
                    .set_compression(Compression::ZSTD(ZstdLevel::try_new(1)?))
                    .set_max_row_group_row_count(Some(GROUP_ROWS))
                    .build();
                let writer = ArrowWriter::try_new(out, schema.clone(), Some(properties))?;
                TableWriter::Parquet(Box::new(writer))
            }
            TableKind::Npy => {
                npy_header(out, 0, schema)?;
                TableWriter::Npy { out, rows: 0, schema: schema.clone() }
            }
        })
    }

    pub fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        match self {
            TableWriter::Csv(writer) => writer.write(batch).map_err(root)?,
            TableWriter::Parquet(writer) => {
                writer.write(batch).map_err(root)?;
                if writer.in_progress_size() > GROUP_BYTES {
                    writer.flush().map_err(root)?;
                }
            }
            TableWriter::Npy { out, rows, .. } => {
                *rows += batch.num_rows() as u64;
                out.write_all(&row_major(batch)?)?;
            }
        }
        Ok(())
    }

    pub fn finish(self) -> Result<()> {
        match self {
            TableWriter::Csv(_) => {}
            TableWriter::Parquet(writer) => drop(writer.close().map_err(root)?),
            TableWriter::Npy { out, rows, schema } => {
                out.seek(SeekFrom::Start(0))?;
                npy_header(out, rows, &schema)?;
            }
        }
        Ok(())
    }
}

/// The cause of an error, which the formats wrap in their own words.
fn root(error: impl std::error::Error + Send + Sync + 'static) -> anyhow::Error {
    let error = anyhow::Error::new(error);
    anyhow::anyhow!("{}", error.root_cause())
}

/// The bytes of a batch of numbers of one type, row by row.
fn row_major(batch: &RecordBatch) -> Result<Vec<u8>> {
    let d = batch.num_columns();
    let mut bytes = vec![0u8; batch.num_rows() * d * 4];
    for (j, column) in batch.columns().iter().enumerate() {
        let cells = bytes.as_chunks_mut::<4>().0.iter_mut().skip(j).step_by(d);
        match column.data_type() {
            DataType::Float32 => cells
                .zip(column.as_primitive::<Float32Type>().values())
                .for_each(|(cell, x)| *cell = x.to_le_bytes()),
            DataType::Int32 => cells
                .zip(column.as_primitive::<Int32Type>().values())
                .for_each(|(cell, x)| *cell = x.to_le_bytes()),
            DataType::UInt32 => cells
                .zip(column.as_primitive::<UInt32Type>().values())
                .for_each(|(cell, x)| *cell = x.to_le_bytes()),
            other => bail!("columns of {other} cannot be written to npy"),
        }
    }
    Ok(bytes)
}

/// The header of a little-endian, row-major NumPy file: 128 bytes, whatever the number of rows.
fn npy_header(out: &mut dyn Out, rows: u64, schema: &SchemaRef) -> Result<()> {
    let dtype = match schema.fields().first().map(|f| f.data_type()) {
        Some(DataType::Float32) => "<f4",
        Some(DataType::Int32) => "<i4",
        _ => "<u4",
    };
    let shape = match schema.fields().len() {
        1 if dtype != "<f4" => format!("({rows},)"),
        d => format!("({rows}, {d})"),
    };
    let text = format!("{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}");
    out.write_all(b"\x93NUMPY\x01\x00\x76\x00")?;
    Ok(writeln!(out, "{text:117}")?)
}
