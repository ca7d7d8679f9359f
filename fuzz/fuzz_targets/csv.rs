//! Any bytes as a csv file: an error or rows, as many as the csv crate finds, never a panic.
#![no_main]

mod table;

use libfuzzer_sys::fuzz_target;
use nysketch_tables::Format;

fuzz_target!(|bytes: &[u8]| {
    let read = table::rows(bytes, Format::Csv);
    let compressed = bytes.starts_with(b"\x1f\x8b") || bytes.starts_with(b"\x28\xb5\x2f\xfd");
    if let Err(error) = &read {
        assert!(!error.to_string().contains("rows were counted"), "{error}");
    }
    if let (Ok(rows), false) = (read, compressed) {
        let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(bytes);
        // Blank lines count where there is one column.
        if reader.byte_headers().is_ok_and(|h| h.len() > 1) {
            assert_eq!(rows, reader.byte_records().count() as u64);
        }
    }
});
