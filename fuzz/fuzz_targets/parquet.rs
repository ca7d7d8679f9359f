//! See `table::parquet`.
#![no_main]

mod table;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| table::parquet(bytes));
