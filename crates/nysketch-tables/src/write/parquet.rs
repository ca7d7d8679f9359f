//! Parquet row groups, each encoded by one thread, column by column.

use super::group::Group;
use crate::error::{Error, Result};
use arrow_schema::SchemaRef;
use nysketch_core::format::file::Out;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::{ArrowColumnChunk, ArrowRowGroupWriterFactory, compute_leaves};
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;

/// The file to which row groups are appended.
pub type File<'a> = SerializedFileWriter<&'a mut dyn Out>;

/// Encodes row groups.
pub struct Groups {
    factory: ArrowRowGroupWriterFactory,
    schema: SchemaRef,
}

/// Starts a file.
pub fn start<'a>(schema: &SchemaRef, out: &'a mut dyn Out) -> Result<(Groups, File<'a>)> {
    let level = ZstdLevel::try_new(1).map_err(Error::writing)?;
    let properties = WriterProperties::builder().set_compression(Compression::ZSTD(level)).build();
    // The row groups of this writer are not used, but it stores the Arrow schema in the file.
    let (file, factory) = ArrowWriter::try_new(out, schema.clone(), Some(properties))
        .and_then(ArrowWriter::into_serialized_writer)
        .map_err(Error::writing)?;
    Ok((Groups { factory, schema: schema.clone() }, file))
}

impl Groups {
    /// Returns the encoded columns of a row group. Each column is freed after it has been encoded.
    pub fn encode(&self, group: Group) -> Result<Vec<ArrowColumnChunk>> {
        self.columns(group).map_err(Error::writing)
    }

    fn columns(&self, group: Group) -> Result<Vec<ArrowColumnChunk>, ParquetError> {
        // The index of a row group matters only in encrypted files.
        let mut writers = self.factory.create_column_writers(0)?.into_iter();
        let mut chunks = Vec::new();
        for (j, field) in self.schema.fields().iter().enumerate() {
            let mut open = Vec::new();
            for batch in &group {
                for (k, leaf) in compute_leaves(field, batch.column(j))?.iter().enumerate() {
                    if open.len() == k {
                        open.extend(writers.next());
                    }
                    open[k].write(leaf)?;
                }
            }
            for writer in open {
                chunks.push(writer.close()?);
            }
        }
        Ok(chunks)
    }
}

/// Copies a row group into the file.
pub fn append(file: &mut File<'_>, columns: Vec<ArrowColumnChunk>) -> Result<()> {
    let copy = || {
        let mut group = file.next_row_group()?;
        for column in columns {
            column.append_to_row_group(&mut group)?;
        }
        group.close().map(drop)
    };
    copy().map_err(Error::writing)
}
