//! Readers, one file per format. Each reader finds the columns of a file ([`Schema`]) and opens
//! tracks for the chosen columns.

mod arrays;
mod budget;
mod csv;
mod gzip;
mod inflate;
mod int96;
mod ipc;
mod lines;
mod npy;
mod npy_header;
mod parquet;
mod records;
mod rowwise;
mod stored;
mod text_rows;
mod thrift;

pub use arrays::{batch, first_length, lists_of, quiet_guarded_panics, schema_of};
pub use stored::Stored;

use crate::error::{Error, Result};
use crate::find::{by_content, check_readable, first_line, format_of, peek};
use crate::meter::Meter;
use crate::options::{Format, ReadOptions};
use crate::places::Places;
use crate::schema::Schema;
use crate::track::Track;
use arrow_schema::DataType;
use std::sync::Arc;

/// The reader of one file.
#[derive(Debug)]
pub enum Reader {
    Csv(Arc<csv::Csv>),
    Rowwise(Arc<rowwise::Rowwise>),
    Npy(Arc<npy::Npy>),
    Parquet(parquet::Parquet),
    Ipc(ipc::Ipc),
}

impl Reader {
    pub fn open(file: Stored, options: &ReadOptions) -> Result<(Self, Schema)> {
        let format = format_of(&file.path, options)?;
        Ok(match format {
            Format::Csv | Format::Tsv if options.rowwise => {
                let dialect = csv::Dialect::new(format, options);
                let (csv, schema) = rowwise::Rowwise::open(file, dialect, options)?;
                (Reader::Rowwise(Arc::new(csv)), schema)
            }
            Format::Csv | Format::Tsv => {
                let (csv, schema) = csv::Csv::open(file, csv::Dialect::new(format, options))?;
                (Reader::Csv(Arc::new(csv)), schema)
            }
            Format::Npy => {
                let (npy, schema) = npy::Npy::open(file)?;
                (Reader::Npy(Arc::new(npy)), schema)
            }
            Format::Parquet => {
                let (parquet, schema) = parquet::Parquet::open(file, options.rowwise)?;
                (Reader::Parquet(parquet), schema)
            }
            Format::Arrow => {
                let (ipc, schema) = ipc::Ipc::open(file, options.rowwise)?;
                (Reader::Ipc(ipc), schema)
            }
        })
    }

    /// Starts reading stdin: csv, plain or compressed, or an Arrow stream.
    pub fn stdin(options: &ReadOptions, meter: &Arc<Meter>) -> Result<(Self, Schema)> {
        let cannot = |e| Error::read("stdin", e);
        let (start, stdin) = peek(meter.count(std::io::stdin())).map_err(cannot)?;
        let first_is_row = options.first_line_is_row();
        let start = if options.rowwise { first_line(&start) } else { &start };
        if options.format.is_none() && !first_is_row {
            check_readable("stdin", start)?;
        }
        let found = by_content(start).filter(|_| !first_is_row);
        let format = options.format.or(found).unwrap_or(Format::Csv);
        Ok(match format {
            Format::Csv | Format::Tsv if options.rowwise => {
                let dialect = csv::Dialect::new(format, options);
                let (csv, schema) = rowwise::Rowwise::stdin(stdin, dialect, options)?;
                (Reader::Rowwise(Arc::new(csv)), schema)
            }
            Format::Csv | Format::Tsv => {
                let source = csv::decompressed(stdin).map_err(cannot)?;
                let (csv, schema) = csv::Csv::stdin(source, csv::Dialect::new(format, options))?;
                (Reader::Csv(Arc::new(csv)), schema)
            }
            Format::Arrow => {
                let (ipc, schema) = ipc::Ipc::stdin(stdin, options.rowwise)?;
                (Reader::Ipc(ipc), schema)
            }
            Format::Npy | Format::Parquet => {
                let how = "must be csv or an Arrow stream; save the data to a file and name that";
                return Err(Error::not_a_table("stdin", how));
            }
        })
    }

    /// Returns the number of rows of a track, `Some(None)` if it is unknown, or `None` if there is
    /// no such track.
    pub fn rows_of(&self, track: usize) -> Option<Option<u64>> {
        match self {
            Reader::Csv(_) | Reader::Rowwise(_) | Reader::Ipc(_) => (track == 0).then_some(None),
            Reader::Npy(npy) => (track == 0).then_some(Some(npy.rows())),
            Reader::Parquet(parquet) => parquet.groups().get(track).map(|rows| Some(*rows)),
        }
    }

    /// Opens a track and skips this many of its rows.
    pub fn track(
        &self,
        number: usize,
        skip: u64,
        places: &Arc<Places>,
        meter: &Arc<Meter>,
    ) -> Result<Box<dyn Track>> {
        Ok(match self {
            Reader::Csv(csv) => Box::new(csv.track(places, meter)?),
            Reader::Rowwise(csv) => Box::new(csv.track(places, meter)?),
            Reader::Npy(npy) => Box::new(npy.track(skip, places, meter)?),
            Reader::Parquet(parquet) => Box::new(parquet.track(number, skip, places, meter)?),
            Reader::Ipc(ipc) => Box::new(ipc.track(places, meter)?),
        })
    }

    /// Returns the Arrow type of a kept column.
    pub fn data_type(&self, column: usize) -> DataType {
        match self {
            Reader::Csv(_) | Reader::Rowwise(_) => DataType::Utf8,
            Reader::Npy(npy) => npy.data_type(),
            Reader::Parquet(parquet) => parquet.schema().field(column).data_type().clone(),
            Reader::Ipc(ipc) => ipc.schema().field(column).data_type().clone(),
        }
    }
}
