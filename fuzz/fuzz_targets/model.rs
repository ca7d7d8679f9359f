#![no_main]

mod file;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| file::model(data));
