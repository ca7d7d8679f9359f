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

/// The file that row groups are appended to.
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
    // Its own row groups are not used, but it knows how to note the Arrow schema.
    let (file, factory) = ArrowWriter::try_new(out, schema.clone(), Some(properties))
        .and_then(ArrowWriter::into_serialized_writer)
        .map_err(Error::writing)?;
    Ok((Groups { factory, schema: schema.clone() }, file))
}

impl Groups {
    /// The columns of a row group. A column is encoded and dropped before the next one is begun.
    pub fn encode(&self, group: Group) -> Result<Vec<ArrowColumnChunk>> {
        self.columns(group).map_err(Error::writing)
    }

    fn columns(&self, group: Group) -> Result<Vec<ArrowColumnChunk>, ParquetError> {
        // The number of a row group matters only where files are encrypted.
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
