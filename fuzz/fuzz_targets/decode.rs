//! Any bytes: an error or a file that encodes to the same bytes, never a panic or a hang.
//!
//! The checksum is put right first, so that the fuzzer gets past it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nysketch::format::{File, decode};

fuzz_target!(|data: &[u8]| {
    let mut bytes = data.to_vec();
    if let Some(body) = bytes.len().checked_sub(4) {
        let checksum = crc32fast::hash(&bytes[..body]).to_le_bytes();
        bytes[body..].copy_from_slice(&checksum);
    }
    match decode(&bytes) {
        Ok(File::Plan(plan)) => assert_eq!(plan.to_bytes(), bytes),
        Ok(File::Sketch(sketch)) => assert_eq!(sketch.to_bytes(), bytes),
        Err(_) => {}
    }
});
