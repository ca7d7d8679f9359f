//! Runs the fuzz targets of the readers on the stable toolchain, with every seed and with damaged
//! copies of it. For more copies, run `COPIES=1000000 cargo test -p nysketch-tables --test seeds`.

#[path = "../../../fuzz/fuzz_targets/damage.rs"]
mod damage;
#[path = "../../../fuzz/fuzz_targets/table.rs"]
mod table;

use nysketch_tables::Format;
use std::path::Path;

/// Number of damaged copies of each seed, unless the environment sets another.
const COPIES: u64 = 4000;

fn replay(name: &str, format: Format, target: fn(&[u8])) {
    nysketch_tables::quiet_guarded_panics();
    let copies = std::env::var("COPIES").map_or(COPIES, |n| n.parse().unwrap());
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds").join(name);
    let mut seeds = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let seed = std::fs::read(&path).unwrap();
        target(&seed);
        // Every seed is a valid table except the malicious one.
        let hurts = path.ends_with("children");
        let read = table::rows(&seed, format);
        assert_eq!(read.is_err(), hurts, "{}: {read:?}", path.display());
        for copy in 0..copies {
            target(&damage::damaged(&seed, copy + (seeds << 32)));
        }
        seeds += 1;
    }
    assert!(seeds > 2);
}

#[test]
fn csv() {
    replay("csv", Format::Csv, table::csv);
}

#[test]
fn npy() {
    replay("npy", Format::Npy, table::npy);
}

#[test]
fn arrow() {
    replay("arrow", Format::Arrow, table::arrow);
}

#[test]
fn parquet() {
    replay("parquet", Format::Parquet, table::parquet);
}
