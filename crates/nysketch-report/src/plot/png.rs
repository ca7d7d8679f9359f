//! Writes PNG files with three bytes per pixel, after sections 5, 9 and 11 of the specification
//! (ISO/IEC 15948).

use flate2::{Compression, write::ZlibEncoder};
use std::io::{self, Write};

const SIGNATURE: [u8; 8] = *b"\x89PNG\r\n\x1a\n";
/// Bits per sample, colour type (red, green, blue), the only compression and filtering methods, and
/// no interlacing.
const FORMAT: [u8; 5] = [8, 2, 0, 0, 0];
/// The filter type before each row. Plots have flat colours, so unfiltered rows compress best.
const NO_FILTER: u8 = 0;

/// Encodes an image, given row by row from the top.
pub fn encode(width: usize, height: usize, rgb: &[u8]) -> io::Result<Vec<u8>> {
    assert_eq!(rgb.len(), 3 * width * height, "three bytes per pixel");
    let side = |n: usize| u32::try_from(n).map(u32::to_be_bytes).map_err(io::Error::other);
    let header = [&side(width)?[..], &side(height)?, &FORMAT].concat();
    let mut rows = ZlibEncoder::new(Vec::new(), Compression::default());
    for row in rgb.chunks_exact((3 * width).max(1)) {
        rows.write_all(&[NO_FILTER])?;
        rows.write_all(row)?;
    }
    let mut file = SIGNATURE.to_vec();
    chunk(&mut file, b"IHDR", &header)?;
    chunk(&mut file, b"IDAT", &rows.finish()?)?;
    chunk(&mut file, b"IEND", &[])?;
    Ok(file)
}

/// Writes a chunk: length, name, contents, and the checksum of name and contents.
fn chunk(file: &mut Vec<u8>, name: &[u8; 4], contents: &[u8]) -> io::Result<()> {
    let length = u32::try_from(contents.len()).map_err(io::Error::other)?;
    file.extend(length.to_be_bytes());
    let start = file.len();
    file.extend(name);
    file.extend(contents);
    file.extend(crc32fast::hash(&file[start..]).to_be_bytes());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The smallest image, byte by byte; the checksums agree with those of other writers.
    #[test]
    fn one_pixel() {
        let file = encode(1, 1, &[255, 0, 0]).unwrap();
        assert_eq!(file[..8], SIGNATURE);
        assert_eq!(file[8..33], *b"\0\0\0\x0dIHDR\0\0\0\x01\0\0\0\x01\x08\x02\0\0\0\x90wS\xde");
        assert_eq!(file[file.len() - 12..], *b"\0\0\0\0IEND\xaeB`\x82");
        assert_eq!(rows(&file), [0, 255, 0, 0]);
    }

    #[test]
    fn rows_come_back() {
        let rgb: Vec<u8> = (0..3 * 5 * 7).map(|i| (i * 37) as u8).collect();
        let expected: Vec<u8> = rgb.chunks(15).flat_map(|r| [&[NO_FILTER], r].concat()).collect();
        assert_eq!(rows(&encode(5, 7, &rgb).unwrap()), expected);
    }

    /// Returns the decompressed rows of the single data chunk.
    fn rows(file: &[u8]) -> Vec<u8> {
        let contents = &file[33..file.len() - 12];
        assert_eq!(contents[4..8], *b"IDAT");
        let mut rows = Vec::new();
        let data = &contents[8..contents.len() - 4];
        io::Read::read_to_end(&mut flate2::read::ZlibDecoder::new(data), &mut rows).unwrap();
        rows
    }
}
