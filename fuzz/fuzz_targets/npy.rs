//! Any bytes as a NumPy file: an error or rows, never a panic or a large allocation.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let file = std::env::temp_dir().join(format!("nysketch-fuzz-{}.npy", std::process::id()));
    std::fs::write(&file, bytes).unwrap();
    let _ = nysketch_cli::read_table(&file, "npy");
});
