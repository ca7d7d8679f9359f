//! Any bytes as a NumPy file: an error or rows, never a panic or a large allocation.
#![no_main]

mod table;

use libfuzzer_sys::fuzz_target;
use nysketch_tables::Format;

fuzz_target!(|bytes: &[u8]| {
    let _ = table::rows(bytes, Format::Npy);
});
