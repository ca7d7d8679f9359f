//! Partial plans on their way between machines: 64-bit words, little-endian. Not a file format:
//! both ends run the same program.

use crate::error::{Error, Result};
use crate::rows::MAX_COLUMNS;

fn damaged() -> Error {
    Error::source("a part of a plan is damaged or of another version")
}

/// Reads words from the start of a byte slice.
pub(crate) struct WireReader<'a>(&'a [u8]);

impl<'a> WireReader<'a> {
    /// A reader of the words in `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        WireReader(bytes)
    }

    /// The next whole number.
    pub fn whole(&mut self) -> Result<u64> {
        let (word, rest) = self.0.split_first_chunk::<8>().ok_or_else(damaged)?;
        self.0 = rest;
        Ok(u64::from_le_bytes(*word))
    }

    /// The next floating-point number.
    pub fn number(&mut self) -> Result<f64> {
        Ok(f64::from_bits(self.whole()?))
    }

    /// The next number of columns.
    pub fn columns(&mut self) -> Result<usize> {
        self.at_most(MAX_COLUMNS + 1)
    }

    /// The next text: its length in bytes, then its bytes, padded to whole words.
    pub fn text(&mut self) -> Result<&'a str> {
        let bytes = self.at_most(self.0.len().saturating_sub(8))?;
        let (text, rest) =
            self.0.split_at_checked(bytes.next_multiple_of(8)).ok_or_else(damaged)?;
        self.0 = rest;
        std::str::from_utf8(&text[..bytes]).map_err(|_| damaged())
    }

    /// The next number of items that take `words_each` words each. Fails if there are not enough
    /// words left.
    pub fn count(&mut self, words_each: usize) -> Result<usize> {
        let left = self.0.len() / 8;
        self.at_most(left / words_each)
    }

    fn at_most(&mut self, limit: usize) -> Result<usize> {
        let size = self.whole()?;
        if size > limit as u64 { Err(damaged()) } else { Ok(size as usize) }
    }
}

/// Appends a whole number.
pub(crate) fn put_whole(out: &mut Vec<u8>, x: u64) {
    out.extend_from_slice(&x.to_le_bytes());
}

/// Appends a text.
pub(crate) fn put_text(out: &mut Vec<u8>, text: &str) {
    put_whole(out, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
    out.resize(out.len().next_multiple_of(8), 0);
}

/// Appends a floating-point number.
pub(crate) fn put_number(out: &mut Vec<u8>, x: f64) {
    put_whole(out, x.to_bits());
}
