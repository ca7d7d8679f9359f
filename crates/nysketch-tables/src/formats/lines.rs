//! Lines of text as rows. Each line is split separately, so that no line can change how another
//! line is read.
//!
//! `\n`, `\r\n` and `\r` end a line, also within quotes. An empty line is not a row. A quote opens
//! a field only at the start of the field, two quotes within it are one, and the field ends on the
//! same line.

use memchr::{memchr, memchr2, memchr2_iter};
use std::io::{self, Read};

/// Maximum size of a line in bytes.
pub const MOST_BYTES: usize = 64 << 20;
/// Minimum number of bytes to read at once.
const READ_SIZE: usize = 1 << 16;

/// A chunk of whole lines.
#[derive(Debug, PartialEq, Eq)]
pub struct Lines {
    pub bytes: Vec<u8>,
    /// The number of rows.
    pub rows: u64,
}

impl Lines {
    /// Returns the lines that are rows, without their line ends.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        rows_of(&self.bytes)
    }
}

/// Returns the lines that are not empty.
fn rows_of(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let ends = memchr2_iter(b'\n', b'\r', bytes).chain(std::iter::once(bytes.len()));
    let mut start = 0;
    let lines = ends.map(move |end| {
        let line = &bytes[start..end];
        start = end + 1;
        line
    });
    lines.filter(|line| !line.is_empty())
}

/// Cuts a source into lines.
pub struct Cutter<R> {
    source: R,
    buffer: Vec<u8>,
    at_end: bool,
    /// Whether the buffer starts within a line that is too long, whose bytes are dropped.
    too_long: bool,
}

impl<R: Read> Cutter<R> {
    pub fn new(source: R) -> Self {
        Cutter { source, buffer: Vec::new(), at_end: false, too_long: false }
    }

    /// Consumes the first row, or returns `None` if there is none.
    pub fn first(&mut self) -> io::Result<Option<Vec<u8>>> {
        loop {
            let blank = self.buffer.iter().take_while(|b| matches!(b, b'\n' | b'\r')).count();
            self.buffer.drain(..blank);
            if let Some(end) = memchr2(b'\n', b'\r', &self.buffer) {
                let rest = self.buffer.split_off(end);
                return Ok(Some(std::mem::replace(&mut self.buffer, rest)));
            }
            if self.at_end {
                let line = std::mem::take(&mut self.buffer);
                return Ok(Some(line).filter(|line| !line.is_empty()));
            }
            self.fill(self.buffer.len().max(READ_SIZE))?;
        }
    }

    /// Returns whole lines of about `size` bytes with at least one row, or `None` at the end.
    pub fn next(&mut self, size: usize) -> io::Result<Option<Lines>> {
        loop {
            while !self.at_end && self.buffer.len() < size {
                self.fill((size - self.buffer.len()).max(READ_SIZE))?;
            }
            let cut = if self.at_end {
                self.buffer.len()
            } else {
                memchr::memrchr2(b'\n', b'\r', &self.buffer).map_or(0, |last| last + 1)
            };
            let rest = self.buffer.split_off(cut);
            let bytes = std::mem::replace(&mut self.buffer, rest);
            let rows = rows_of(&bytes).count() as u64;
            if rows > 0 {
                return Ok(Some(Lines { bytes, rows }));
            }
            if self.at_end {
                return Ok(None);
            }
            // A long line is scanned again from its start, so read more at a time.
            self.fill(self.buffer.len().max(READ_SIZE))?;
        }
    }

    /// Reads more bytes. A line that is too long is replaced by an open quote, so that its row is
    /// invalid.
    fn fill(&mut self, wanted: usize) -> io::Result<()> {
        let start = self.buffer.len();
        let read = (&mut self.source).take(wanted as u64).read_to_end(&mut self.buffer)?;
        self.at_end = read < wanted;
        if self.too_long {
            let end = memchr2(b'\n', b'\r', &self.buffer[start..]);
            self.too_long = end.is_none();
            self.buffer.drain(start..end.map_or(self.buffer.len(), |end| start + end));
        } else if self.buffer.len() > MOST_BYTES && memchr2(b'\n', b'\r', &self.buffer).is_none() {
            self.too_long = true;
            self.buffer = b"\"".to_vec();
        }
        Ok(())
    }
}

/// The fields of a line.
#[derive(Debug, Default)]
pub struct Fields {
    text: Vec<u8>,
    ends: Vec<usize>,
}

impl Fields {
    /// Removes all fields.
    pub fn clear(&mut self) {
        self.text.clear();
        self.ends.clear();
    }

    /// Returns the number of fields.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns a field, which is empty if the line has too few.
    pub fn get(&self, i: usize) -> &[u8] {
        let Some(end) = self.ends.get(i) else { return b"" };
        let start = if i == 0 { 0 } else { self.ends[i - 1] };
        &self.text[start..*end]
    }

    /// Splits a line into at most `most + 1` fields. Returns `false` if a quote is not closed or
    /// the line is too long.
    ///
    /// A field with text after its closing quote, such as `"1"5`, keeps its quotes and is not the
    /// number 15. A byte order mark at the start of the line is ignored.
    pub fn split(&mut self, line: &[u8], delimiter: u8, most: usize) -> bool {
        self.clear();
        if line.len() > MOST_BYTES {
            return false;
        }
        let mut rest = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        while self.len() <= most {
            let length = match rest.first() {
                Some(b'"') => match self.push_quoted(rest, delimiter) {
                    Some(length) => length,
                    None => return false,
                },
                _ => {
                    let length = memchr(delimiter, rest).unwrap_or(rest.len());
                    self.text.extend_from_slice(&rest[..length]);
                    length
                }
            };
            self.ends.push(self.text.len());
            match rest.get(length + 1..) {
                Some(after) => rest = after,
                None => break,
            }
        }
        true
    }

    /// Adds a field that starts with a quote, and returns its length in bytes, or `None` if the
    /// quote is not closed.
    fn push_quoted(&mut self, field: &[u8], delimiter: u8) -> Option<usize> {
        let start = self.text.len();
        let mut at = 1;
        loop {
            let quote = at + memchr(b'"', &field[at..])?;
            self.text.extend_from_slice(&field[at..quote]);
            at = quote + 1;
            if field.get(at) != Some(&b'"') {
                break;
            }
            self.text.push(b'"');
            at += 1;
        }
        let after = &field[at..];
        let length = memchr(delimiter, after).unwrap_or(after.len());
        if after[..length].trim_ascii().is_empty() {
            self.text.extend_from_slice(&after[..length]);
        } else {
            self.text.truncate(start);
            self.text.extend_from_slice(&field[..at + length]);
        }
        Some(at + length)
    }
}

#[cfg(test)]
mod tests {
    use super::super::records::mended;
    use super::*;
    use csv::ReaderBuilder;
    use proptest::prelude::*;

    /// A reader that returns a few bytes at a time.
    struct Slowly<'a>(&'a [u8], usize);

    impl Read for Slowly<'_> {
        fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
            let n = self.1.min(self.0.len()).min(out.len());
            out[..n].copy_from_slice(&self.0[..n]);
            self.0 = &self.0[n..];
            Ok(n)
        }
    }

    fn text() -> impl Strategy<Value = Vec<u8>> {
        let bytes = prop::sample::select(b"1,, \"\"\n\n\rx".to_vec());
        prop::collection::vec(bytes, 0..60)
    }

    fn split(line: &[u8]) -> Option<Vec<Vec<u8>>> {
        let mut fields = Fields::default();
        fields
            .split(line, b',', 1000)
            .then(|| (0..fields.len()).map(|i| fields.get(i).to_vec()).collect())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(3000))]

        /// The lines do not depend on the sizes of the reads.
        #[test]
        fn chunks_hold_the_lines_of_the_whole(text in text(), size in 1usize..40, read in 1usize..9) {
            let mut cutter = Cutter::new(Slowly(&text, read));
            let mut lines: Vec<Vec<u8>> = Vec::new();
            while let Some(chunk) = cutter.next(size).unwrap() {
                let before = lines.len() as u64;
                lines.extend(chunk.iter().map(<[u8]>::to_vec));
                prop_assert_eq!(lines.len() as u64 - before, chunk.rows);
            }
            let all = text.split(|b| matches!(b, b'\n' | b'\r')).filter(|l| !l.is_empty());
            prop_assert_eq!(&lines, &all.map(<[u8]>::to_vec).collect::<Vec<_>>());
            let mut cutter = Cutter::new(Slowly(&text, read));
            prop_assert_eq!(cutter.first().unwrap(), lines.first().cloned());
            let mut rest = Vec::new();
            while let Some(chunk) = cutter.next(size).unwrap() {
                rest.extend(chunk.iter().map(<[u8]>::to_vec));
            }
            prop_assert_eq!(&rest[..], lines.get(1..).unwrap_or(&[]));
        }

        /// The csv crate finds the same fields in a line whose quotes are closed.
        #[test]
        fn fields_are_those_of_csv(text in text()) {
            for line in rows_of(&text) {
                // For the csv crate, an open quote would include the next line.
                let records = |line: &[u8]| -> Vec<Vec<Vec<u8>>> {
                    let more = [line, b"\n7"].concat();
                    let mut reader = ReaderBuilder::new();
                    let reader = reader.has_headers(false).flexible(true).from_reader(&more[..]);
                    let fields = |r: csv::ByteRecord| r.iter().map(<[u8]>::to_vec).collect();
                    reader.into_byte_records().map(|r| fields(r.unwrap())).collect()
                };
                match split(line) {
                    None => prop_assert_eq!(records(line).len(), 1),
                    Some(fields) => {
                        prop_assert_eq!(records(&mended(line, b',')), [fields, vec![b"7".to_vec()]]);
                    }
                }
            }
        }
    }

    #[test]
    fn fields_end_with_their_line() {
        let texts = |line: &[u8]| -> Option<Vec<String>> {
            let text = |field: &Vec<u8>| String::from_utf8_lossy(field).into_owned();
            Some(split(line)?.iter().map(text).collect())
        };
        let found = |fields: &[&str]| Some(fields.iter().map(|f| f.to_string()).collect());
        assert_eq!(texts(b"1,\"2\",\"a,\"\"b\"\"\" ,"), found(&["1", "2", "a,\"b\" ", ""]));
        assert_eq!(texts(b"\"1\"5,2"), found(&["\"1\"5", "2"]));
        assert_eq!(texts(b"\xef\xbb\xbf1,2"), found(&["1", "2"]));
        assert_eq!(texts(b"1,\"2"), None);
        assert_eq!(texts(b"\"1\"\""), None);
        // Splitting stops at the limit.
        let mut fields = Fields::default();
        assert!(fields.split(&b",".repeat(1000), b',', 2) && fields.len() == 3);
    }

    #[test]
    fn lines_that_are_too_long_are_one_invalid_row() {
        let long = [&b"1,2\n"[..], &b"3,".repeat(MOST_BYTES / 2 + 1), b"\n4,5\n"].concat();
        for (size, read) in [(1, 1 << 20), (1 << 20, 1 << 22), (200 << 20, 1 << 24)] {
            let mut cutter = Cutter::new(Slowly(&long, read));
            let mut rows = Vec::new();
            while let Some(chunk) = cutter.next(size).unwrap() {
                rows.extend(chunk.iter().map(|line| split(line).map(|fields| fields.len())));
            }
            assert_eq!(rows, [Some(2), None, Some(2)], "{size}");
        }
    }
}
