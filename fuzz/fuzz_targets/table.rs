//! Reads any bytes as a table of any format: an error or rows, never a panic, a hang or a large
//! allocation.
//!
//! `crates/nysketch-tables/tests/seeds.rs` calls these functions with `fuzz/seeds` on the stable
//! toolchain.
#![allow(dead_code, reason = "every target calls one")]

use nysketch::rows::read_in_order;
use nysketch_tables::store::{Bytes, Kind, Metadata, Store};
use nysketch_tables::{Dataset, Error, Format, ReadOptions};
use std::io::{self, Cursor, ErrorKind};
use std::path::{Path, PathBuf};

/// A store with one file, held in memory.
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

/// Reads a whole table in the same way as the commands, and returns the number of rows.
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

/// Checks that as many rows are read as the csv crate finds.
pub fn csv(bytes: &[u8]) {
    let read = rows(bytes, Format::Csv);
    let compressed = bytes.starts_with(b"\x1f\x8b") || bytes.starts_with(b"\x28\xb5\x2f\xfd");
    if let Err(error) = &read {
        assert!(!error.to_string().contains("rows were counted"), "{error}");
    }
    if let (Ok(rows), false) = (read, compressed) {
        let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(bytes);
        // Blank lines count as rows only if there is one column.
        if reader.byte_headers().is_ok_and(|h| h.len() > 1) {
            assert_eq!(rows, reader.byte_records().count() as u64);
        }
    }
}

pub fn npy(bytes: &[u8]) {
    drop(rows(bytes, Format::Npy));
}

pub fn arrow(bytes: &[u8]) {
    drop(rows(bytes, Format::Arrow));
}

pub fn parquet(bytes: &[u8]) {
    drop(rows(bytes, Format::Parquet));
}
