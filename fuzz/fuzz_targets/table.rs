//! Bytes as the only file there is, without a file system.

use nysketch::rows::read_in_order;
use nysketch_tables::store::{Bytes, Kind, Metadata, Store};
use nysketch_tables::{Dataset, Error, Format, ReadOptions};
use std::io::{self, Cursor, ErrorKind};
use std::path::{Path, PathBuf};

#[derive(Debug)]
struct One(Vec<u8>);

impl Store for One {
    fn metadata(&self, _: &Path) -> io::Result<Metadata> {
        Ok(Metadata { kind: Kind::File, bytes: self.0.len() as u64, modified: None, id: None })
    }

    fn list(&self, _: &Path) -> io::Result<Vec<PathBuf>> {
        Err(ErrorKind::NotADirectory.into())
    }

    fn open(&self, _: &Path) -> io::Result<Box<dyn Bytes>> {
        Ok(Box::new(Cursor::new(self.0.clone())))
    }
}

/// Reads a whole table as the commands do and returns the number of rows.
pub fn rows(bytes: &[u8], format: Format) -> Result<u64, Error> {
    let options =
        ReadOptions::default().store(One(bytes.to_vec())).format(format).skip_invalid(true);
    let table = Dataset::open(["table"], &options)?;
    let mut rows = 0;
    read_in_order(&table, &(), |block| {
        rows += block.len() as u64;
        Ok(())
    })?;
    Ok(rows)
}
