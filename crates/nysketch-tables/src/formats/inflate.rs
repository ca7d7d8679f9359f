//! Compressed pages that may expand to more than they declare.
//!
//! The Parquet crate expands gzip and Brotli to the end of the data and compares sizes afterwards; of other kinds of
//! compression it takes the declared size. So these pages are expanded here first, without keeping the bytes, as far as
//! the declared size.

use brotli::Decompressor;
use flate2::bufread::MultiGzDecoder;
use parquet::basic::Compression;
use std::io::{self, Read};

/// A kind of compression that the Parquet crate expands to the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packed {
    Gzip,
    Brotli,
}

impl Packed {
    /// The kind of this column.
    pub fn of(compression: Compression) -> Option<Self> {
        match compression {
            Compression::GZIP(_) => Some(Packed::Gzip),
            Compression::BROTLI(_) => Some(Packed::Brotli),
            _ => None,
        }
    }
}

/// Times its size that a gzip member expands to, at most: a symbol of one bit is a copy of 258 bytes, and each copy needs
/// two symbols.
const GZIP_RATIO: u64 = 1032;
/// Bytes that a page may expand to without a look at it first: a quarter of those that any page may declare.
const UNCHECKED: u64 = 128 << 20;
/// Bytes that are expanded at a time.
const BUFFER: usize = 1 << 16;

/// Refuses bytes that expand to more than this size.
pub fn check_size(packed: Packed, bytes: &[u8], declared: u64) -> Result<(), String> {
    let expanded = match packed {
        Packed::Gzip if (bytes.len() as u64).saturating_mul(GZIP_RATIO) <= UNCHECKED => {
            return Ok(());
        }
        Packed::Gzip => expanded(MultiGzDecoder::new(bytes), declared),
        // A window of more than 16 MB, which Brotli itself does not have and for which memory is taken at once.
        Packed::Brotli if bytes.first().is_some_and(|first| first & 0x7f == 0x11) => {
            return Err("a page has a Brotli window that is too large".into());
        }
        Packed::Brotli => expanded(Decompressor::new(bytes, BUFFER), declared),
    };
    // Broken data is reported by the reader of the page, in its turn.
    if expanded.is_ok_and(|expanded| expanded > declared) {
        return Err(format!("a page expands to more than the {declared} bytes that it declares"));
    }
    Ok(())
}

/// The size of what comes, up to one byte more than this limit.
fn expanded(source: impl Read, limit: u64) -> io::Result<u64> {
    io::copy(&mut source.take(limit.saturating_add(1)), &mut io::sink())
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::write::GzEncoder;
    use std::io::Write;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::best());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn brotli(bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        brotli::CompressorWriter::new(&mut out, 4096, 5, 22).write_all(bytes).unwrap();
        out
    }

    #[test]
    fn pages_expand_to_what_they_declare() {
        let many = vec![7; 300 << 20];
        let few = &many[..9 << 20];
        let (long, short) = (gzip(&many), brotli(few));
        // A short page of gzip cannot take more than is allowed, whatever it declares.
        assert!((long.len() as u64) * GZIP_RATIO > UNCHECKED, "{}", long.len());
        assert_eq!(check_size(Packed::Gzip, &gzip(few), 5), Ok(()));
        for (packed, page, size) in
            [(Packed::Gzip, &long, many.len() as u64), (Packed::Brotli, &short, few.len() as u64)]
        {
            assert_eq!(check_size(packed, page, size), Ok(()));
            assert!(check_size(packed, page, size - 1).is_err());
            assert!(check_size(packed, page, 8000).is_err());
            // What is broken does not expand further, and the reader of the page says so.
            assert_eq!(check_size(packed, &page[..page.len() / 2], 1 << 40), Ok(()));
        }
        assert!(check_size(Packed::Brotli, &[0x11, 0x1e, 0, 0], 8000).is_err());
    }

    /// Members of gzip follow one another, and each expands by less than the ratio.
    #[test]
    fn the_ratio_of_gzip_is_a_bound() {
        let member = gzip(&vec![0; 64 << 20]);
        assert!((member.len() as u64) * GZIP_RATIO >= 64 << 20);
        let two = [&member[..], &member].concat();
        assert_eq!(expanded(MultiGzDecoder::new(&two[..]), u64::MAX).unwrap(), 128 << 20);
    }
}
