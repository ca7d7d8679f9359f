//! Compressed pages that may expand to more than their declared size.
//!
//! For gzip and Brotli, the Parquet crate decompresses all data and compares the sizes afterwards;
//! for other compressions it limits itself to the declared size. This module therefore decompresses
//! gzip and Brotli pages first, up to the declared size and without keeping the bytes.

use brotli::Decompressor;
use flate2::bufread::MultiGzDecoder;
use parquet::basic::Compression;
use std::io::{self, Read};

/// A compression that the Parquet crate decompresses to the end of the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packed {
    Gzip,
    Brotli,
}

impl Packed {
    /// Returns the variant for the compression of a column, if it needs the check.
    pub fn of(compression: Compression) -> Option<Self> {
        match compression {
            Compression::GZIP(_) => Some(Packed::Gzip),
            Compression::BROTLI(_) => Some(Packed::Brotli),
            _ => None,
        }
    }
}

/// Maximum expansion ratio of gzip: a symbol of one bit is a copy of 258 bytes, and each copy needs
/// two symbols.
const GZIP_RATIO: u64 = 1032;
/// Size in bytes to which a page may expand without a check: a quarter of the limit for any page.
const UNCHECKED: u64 = 128 << 20;
/// Number of bytes that are decompressed at a time.
const BUFFER: usize = 1 << 16;

/// Refuses bytes that expand to more than the declared size.
pub fn check_size(packed: Packed, bytes: &[u8], declared: u64) -> Result<(), String> {
    let expanded = match packed {
        Packed::Gzip if (bytes.len() as u64).saturating_mul(GZIP_RATIO) <= UNCHECKED => {
            return Ok(());
        }
        Packed::Gzip => expanded(MultiGzDecoder::new(bytes), declared),
        // A window of more than 16 MiB, which standard Brotli does not support and whose memory
        // would be allocated at once.
        Packed::Brotli if bytes.first().is_some_and(|first| first & 0x7f == 0x11) => {
            return Err("a page has a Brotli window that is too large".into());
        }
        Packed::Brotli => expanded(Decompressor::new(bytes, BUFFER), declared),
    };
    // The reader of the page reports damaged data.
    if expanded.is_ok_and(|expanded| expanded > declared) {
        return Err(format!("a page expands to more than the {declared} bytes that it declares"));
    }
    Ok(())
}

/// Returns the decompressed size, or `limit` + 1 if it is larger than the limit.
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
        // A short gzip page cannot exceed the allowed size, whatever it declares.
        assert!((long.len() as u64) * GZIP_RATIO > UNCHECKED, "{}", long.len());
        assert_eq!(check_size(Packed::Gzip, &gzip(few), 5), Ok(()));
        for (packed, page, size) in
            [(Packed::Gzip, &long, many.len() as u64), (Packed::Brotli, &short, few.len() as u64)]
        {
            assert_eq!(check_size(packed, page, size), Ok(()));
            assert!(check_size(packed, page, size - 1).is_err());
            assert!(check_size(packed, page, 8000).is_err());
            // Damaged data stops expanding, and the reader of the page reports it.
            assert_eq!(check_size(packed, &page[..page.len() / 2], 1 << 40), Ok(()));
        }
        assert!(check_size(Packed::Brotli, &[0x11, 0x1e, 0, 0], 8000).is_err());
    }

    /// Gzip members follow one another, and each expands by less than the ratio.
    #[test]
    fn the_ratio_of_gzip_is_a_bound() {
        let member = gzip(&vec![0; 64 << 20]);
        assert!((member.len() as u64) * GZIP_RATIO >= 64 << 20);
        let two = [&member[..], &member].concat();
        assert_eq!(expanded(MultiGzDecoder::new(&two[..]), u64::MAX).unwrap(), 128 << 20);
    }
}
