//! The fuzz targets of the readers on the stable toolchain: every seed, and each seed damaged in many ways. More ways
//! with `COPIES=1000000 cargo test -p nysketch-tables --test seeds`.

#[path = "../../../fuzz/fuzz_targets/table.rs"]
mod table;

use nysketch_tables::Format;
use std::path::Path;

/// Damaged copies of every seed, unless the environment asks for more.
const COPIES: u64 = 4000;

/// A bad generator is good enough here.
struct Chance(u64);

impl Chance {
    fn below(&mut self, n: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % n.max(1)
    }

    /// Changes a few bytes as they are likely to hurt: lengths become huge, bytes go missing.
    fn damage(&mut self, bytes: &mut Vec<u8>) {
        for _ in 0..1 + self.below(3) {
            let at = self.below(bytes.len());
            let put = |bytes: &mut Vec<u8>, with: &[u8]| {
                let end = bytes.len().min(at + with.len());
                bytes.splice(at..end, with.iter().copied());
            };
            match self.below(7) {
                0 => put(bytes, &[0xff, 0x80, 0x7f, 0, 1, b'"', b'\n', b','][self.below(8)..][..1]),
                1 => put(bytes, &(1u64 << self.below(64)).to_le_bytes()),
                2 => put(bytes, &(u32::MAX - self.below(3) as u32).to_le_bytes()),
                3 => put(bytes, &[0xff, 0xff, 0xff, 0xff, 0x0f]),
                4 => bytes.truncate(at),
                5 => drop(bytes.drain(at..bytes.len().min(at + 1 + self.below(8)))),
                _ => bytes[at] ^= 1 << self.below(8),
            }
            if bytes.is_empty() {
                return;
            }
        }
    }
}

fn replay(name: &str, format: Format, target: fn(&[u8])) {
    nysketch_tables::quiet_guarded_panics();
    let copies = std::env::var("COPIES").map_or(COPIES, |n| n.parse().unwrap());
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds").join(name);
    let mut seeds = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let seed = std::fs::read(&path).unwrap();
        target(&seed);
        // All but those that were made to hurt are tables.
        let hurts = path.ends_with("children");
        let read = table::rows(&seed, format);
        assert_eq!(read.is_err(), hurts, "{}: {read:?}", path.display());
        for copy in 0..copies {
            let mut bytes = seed.clone();
            Chance(copy + (seeds << 32)).damage(&mut bytes);
            target(&bytes);
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
