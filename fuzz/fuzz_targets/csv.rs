//! Any bytes as a csv file: an error or rows, as many as the csv crate finds, never a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let file = std::env::temp_dir().join(format!("nysketch-fuzz-{}.csv", std::process::id()));
    std::fs::write(&file, bytes).unwrap();
    let read = nysketch_cli::read_table(&file, "csv");
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
