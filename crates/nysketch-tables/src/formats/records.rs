//! Record boundaries in CSV: cuts a stream of bytes into chunks of whole records, so that many
//! threads can parse the chunks.
//!
//! The rules are those of the csv crate, which parses the chunks. A quote opens a field only at its
//! start; two quotes within a quoted field are one. A record ends at `\n`, `\r` or `\r\n`. A blank
//! line is a record only in a file with one column, as a missing value.

use std::borrow::Cow;
use std::io::{self, Read};

/// Maximum size of a record in bytes. A longer one is probably an error, such as an open quote.
const MOST_BYTES: usize = 64 << 20;

const OPEN_QUOTE: &str = "a quote (\") is opened and never closed";

/// The position of a byte within a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Before the first byte of a record.
    Record,
    /// Before the first byte of a record, right after `\r`: a following `\n` belongs to that `\r`.
    AfterReturn,
    /// Before the first byte of a field.
    Field,
    /// In a field without quotes, or after the closing quote.
    Plain,
    /// Between quotes.
    Quoted,
    /// After a quote within a quoted field.
    Quote,
}

/// The effect of a byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Nothing,
    Record,
    BlankLine,
}

impl State {
    #[inline]
    fn step(&mut self, byte: u8, delimiter: u8) -> End {
        let between = matches!(self, State::Record | State::AfterReturn);
        let after_return = *self == State::AfterReturn;
        *self = match (*self, byte) {
            (State::Quoted, b'"') => State::Quote,
            (State::Quoted, _) | (State::Quote, b'"') => State::Quoted,
            (_, b'\n') => {
                *self = State::Record;
                return match (between, after_return) {
                    (false, _) => End::Record,
                    (true, false) => End::BlankLine,
                    (true, true) => End::Nothing,
                };
            }
            (_, b'\r') => {
                *self = State::AfterReturn;
                return if between { End::BlankLine } else { End::Record };
            }
            (State::Record | State::AfterReturn | State::Field, b'"') => State::Quoted,
            (_, b) if b == delimiter => State::Field,
            _ => State::Plain,
        };
        End::Nothing
    }
}

/// A chunk of whole records.
#[derive(Debug, PartialEq, Eq)]
pub struct Chunk {
    pub bytes: Vec<u8>,
    /// The number of records.
    pub rows: u64,
    /// The number of the line that contains the first byte, from 1.
    pub line: u64,
}

/// The reason why no chunk can be cut.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    #[error("row {row} (line {line}): {what}")]
    Broken { row: u64, line: u64, what: &'static str },
    /// After at least this number of whole records.
    #[error("it cannot be read after row {rows}: {error}")]
    Read { rows: u64, error: io::Error },
}

/// Cuts a source into chunks of whole records.
pub struct Records<R> {
    source: R,
    delimiter: u8,
    /// Minimum number of bytes to read at once.
    read_size: usize,
    /// Whether blank lines are records.
    single_column: bool,
    state: State,
    buffer: Vec<u8>,
    /// Number of bytes in the buffer that have been scanned.
    scanned: usize,
    /// The end of the last whole record in the buffer, and the number of whole records.
    cut: usize,
    rows: u64,
    /// End of the first record.
    first: Option<usize>,
    /// Blank lines since the last record.
    blank: u64,
    at_end: bool,
    /// The error after the last whole record, if any.
    broken: Option<&'static str>,
    /// The numbers of records and of lines in the chunks already returned.
    rows_before: u64,
    lines_before: u64,
}

impl<R: Read> Records<R> {
    pub fn new(source: R, delimiter: u8) -> Self {
        Records {
            source,
            delimiter,
            read_size: 1 << 16,
            single_column: false,
            state: State::Record,
            buffer: Vec::new(),
            scanned: 0,
            cut: 0,
            rows: 0,
            first: None,
            blank: 0,
            at_end: false,
            broken: None,
            rows_before: 0,
            lines_before: 0,
        }
    }

    /// Returns the byte that separates the fields.
    pub fn delimiter(&self) -> u8 {
        self.delimiter
    }

    /// Returns the first remaining record without consuming it; empty at the end.
    pub fn peek(&mut self) -> Result<&[u8], RecordError> {
        while self.first.is_none() || self.after_return() {
            if self.at_end || self.broken.is_some() {
                break;
            }
            self.fill(self.read_size)?;
        }
        match self.first {
            None if self.broken.is_some() => Err(self.error()),
            first => Ok(&self.buffer[..first.unwrap_or(0)]),
        }
    }

    /// Consumes the first record without counting it as a row.
    pub fn skip(&mut self) -> Result<(), RecordError> {
        self.peek()?;
        let Some(mut first) = self.first else { return Ok(()) };
        if self.buffer[..first].ends_with(b"\r") && self.buffer.get(first) == Some(&b'\n') {
            first += 1;
        }
        self.lines_before += lines(&self.buffer[..first]);
        self.buffer.drain(..first);
        self.look_again();
        Ok(())
    }

    /// Counts blank lines as records. It must be called before the first chunk.
    pub fn single_column(&mut self) {
        self.single_column = true;
        self.look_again();
    }

    /// Scans the buffer again from the start of a record.
    fn look_again(&mut self) {
        (self.state, self.scanned, self.cut, self.rows) = (State::Record, 0, 0, 0);
        (self.first, self.blank, self.broken) = (None, 0, None);
        self.scan();
    }

    /// Returns whole records of about `size` bytes, at least one, or `None` at the end.
    pub fn next_chunk(&mut self, size: usize) -> Result<Option<Chunk>, RecordError> {
        self.fill_chunk(size)?;
        if self.rows == 0 {
            return Ok(None);
        }
        let rest = self.buffer.split_off(self.cut);
        let bytes = std::mem::replace(&mut self.buffer, rest);
        let chunk = Chunk { rows: self.rows, line: self.lines_before + 1, bytes };
        self.lines_before += lines(&chunk.bytes);
        self.rows_before += self.rows;
        self.scanned -= self.cut;
        (self.cut, self.rows, self.first) = (0, 0, None);
        Ok(Some(chunk))
    }

    /// Reads until a chunk can be cut, or to the end.
    fn fill_chunk(&mut self, size: usize) -> Result<(), RecordError> {
        while self.rows == 0 || self.buffer.len() < size || self.after_return() {
            if self.at_end || self.broken.is_some() {
                break;
            }
            self.fill(size.saturating_sub(self.buffer.len()).max(self.read_size))?;
        }
        if self.rows == 0 && self.broken.is_some() { Err(self.error()) } else { Ok(()) }
    }

    /// Returns the records that the next chunk of this size would contain, without consuming them.
    pub fn look(&mut self, size: usize) -> Result<Option<Chunk>, RecordError> {
        self.fill_chunk(size)?;
        let bytes = self.buffer[..self.cut].to_vec();
        let chunk = Chunk { rows: self.rows, line: self.lines_before + 1, bytes };
        Ok((self.rows > 0).then_some(chunk))
    }

    /// Whether the next byte may belong to the end of the last record.
    fn after_return(&self) -> bool {
        self.state == State::AfterReturn && self.cut == self.scanned
    }

    /// Returns the error of the first remaining record.
    fn error(&self) -> RecordError {
        let blank = if self.single_column { self.blank } else { 0 };
        let breaks = |b: &&u8| matches!(**b, b'\n' | b'\r');
        let before = self.buffer.iter().take_while(breaks).filter(|b| **b == b'\n').count() as u64;
        RecordError::Broken {
            row: self.rows_before + blank + 1,
            line: self.lines_before + before + 1,
            what: self.broken.unwrap_or_default(),
        }
    }

    /// Reads more bytes and scans them.
    fn fill(&mut self, wanted: usize) -> Result<(), RecordError> {
        let rows = self.rows_before + self.rows;
        let read = (&mut self.source).take(wanted as u64).read_to_end(&mut self.buffer);
        let read = read.map_err(|error| RecordError::Read { rows, error })?;
        let start = self.lines_before == 0 && self.scanned == 0 && self.rows_before == 0;
        if start && self.buffer.starts_with(b"\xef\xbb\xbf") {
            self.buffer.drain(..3);
        }
        self.at_end = read < wanted;
        self.scan();
        if self.buffer.len() - self.cut > MOST_BYTES {
            self.broken = Some(match self.state {
                State::Quoted => OPEN_QUOTE,
                _ => "it is longer than 64 MB; is this a text file?",
            });
        }
        Ok(())
    }

    fn scan(&mut self) {
        let fresh = &self.buffer[self.scanned..];
        let plain = matches!(self.state, State::Record | State::Field | State::Plain);
        if plain && memchr::memchr2(b'"', b'\r', fresh).is_none() {
            self.scan_plain();
        } else {
            self.scan_bytes();
        }
        if self.at_end && self.broken.is_none() {
            match self.state {
                State::Record | State::AfterReturn => {}
                State::Quoted => self.broken = Some(OPEN_QUOTE),
                _ => {
                    self.end_record(self.buffer.len());
                    self.state = State::Record;
                }
            }
        }
    }

    fn scan_bytes(&mut self) {
        while self.scanned < self.buffer.len() {
            let byte = self.buffer[self.scanned];
            self.scanned += 1;
            match self.state.step(byte, self.delimiter) {
                End::Record => self.end_record(self.scanned),
                End::BlankLine => self.blank += 1,
                // The `\n` of `\r\n` belongs to the previous record.
                End::Nothing if self.state == State::Record => {
                    if self.rows > 0 && self.cut + 1 == self.scanned {
                        self.cut = self.scanned;
                    }
                }
                End::Nothing => {}
            }
        }
    }

    /// Scans bytes without quotes and carriage returns, where only line feeds matter.
    fn scan_plain(&mut self) {
        let buffer = std::mem::take(&mut self.buffer);
        let mut between = self.state == State::Record;
        let mut start = self.scanned;
        for end in memchr::memchr_iter(b'\n', &buffer[self.scanned..]) {
            let end = self.scanned + end;
            if between && end == start {
                self.blank += 1;
            } else {
                self.end_record(end + 1);
            }
            (between, start) = (true, end + 1);
        }
        self.state = match buffer[start..].last() {
            None if between => State::Record,
            None => self.state,
            Some(b) if *b == self.delimiter => State::Field,
            Some(_) => State::Plain,
        };
        self.scanned = buffer.len();
        self.buffer = buffer;
    }

    fn end_record(&mut self, end: usize) {
        self.rows += 1 + if self.single_column { self.blank } else { 0 };
        self.cut = end;
        self.first.get_or_insert(end);
        self.blank = 0;
    }
}

fn lines(bytes: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', bytes).count() as u64
}

/// Visits the records of a chunk with one column, including blank lines, without their line ends.
pub fn single_fields(chunk: &[u8], delimiter: u8, mut visit: impl FnMut(&[u8])) {
    let (mut state, mut start) = (State::Record, 0);
    for (at, byte) in chunk.iter().enumerate() {
        match state.step(*byte, delimiter) {
            End::Record => visit(&chunk[start..at]),
            End::BlankLine => visit(b""),
            End::Nothing if state == State::Record => {}
            End::Nothing => continue,
        }
        start = at + 1;
    }
    if start < chunk.len() {
        visit(&chunk[start..]);
    }
}

/// Returns the start and the number of fields of each record.
pub fn fields_of(bytes: &[u8], delimiter: u8) -> impl Iterator<Item = (usize, usize)> {
    let (mut state, mut at) = (State::Record, 0);
    std::iter::from_fn(move || {
        let (mut start, mut fields) = (at, 1);
        while at < bytes.len() {
            let byte = bytes[at];
            let quoted = state == State::Quoted;
            at += 1;
            match state.step(byte, delimiter) {
                End::Record => return Some((start, fields)),
                End::BlankLine => start = at,
                End::Nothing if state == State::Record => start = at,
                End::Nothing => fields += usize::from(byte == delimiter && !quoted),
            }
        }
        let open = !matches!(state, State::Record | State::AfterReturn);
        state = State::Record;
        open.then_some((start, fields))
    })
}

/// Returns the records with extra quotes, so that the csv crate reads a field such as `"1"5`
/// unchanged. Otherwise it would return 15, a number that the file does not contain.
pub fn mended(bytes: &[u8], delimiter: u8) -> Cow<'_, [u8]> {
    if !may_need_mending(bytes, delimiter) {
        return Cow::Borrowed(bytes);
    }
    let mut mended = Vec::new();
    let mut copied = 0;
    let mut at = 0;
    while let Some(quote) = memchr::memchr(b'"', &bytes[at..]).map(|n| at + n) {
        let before = quote.checked_sub(1).map(|i| bytes[i]);
        let opens = before.is_none_or(|b| b == delimiter || matches!(b, b'\n' | b'\r'));
        at = quote + 1;
        if !opens {
            continue;
        }
        at = closing_quote(bytes, at) + 1;
        let ends = |b: &u8| *b == delimiter || matches!(*b, b'\n' | b'\r');
        let rest = bytes.get(at..).unwrap_or_default();
        let length = rest.iter().position(ends).unwrap_or(rest.len());
        if !rest[..length].trim_ascii().is_empty() {
            at += length;
            mended.extend_from_slice(&bytes[copied..quote]);
            mended.push(b'"');
            for byte in &bytes[quote..at] {
                mended.extend(std::iter::repeat_n(*byte, 1 + usize::from(*byte == b'"')));
            }
            mended.push(b'"');
            copied = at;
        }
    }
    mended.extend_from_slice(&bytes[copied..]);
    Cow::Owned(mended)
}

/// Whether a closing quote is followed by anything except the end of its field. The check inspects
/// each quote and its neighbours only, because it runs over every quoted file.
fn may_need_mending(bytes: &[u8], delimiter: u8) -> bool {
    let ends =
        |byte: Option<&u8>| byte.is_none_or(|b| *b == delimiter || matches!(b, b'\n' | b'\r'));
    let (mut quoted, mut next) = (false, 0);
    for quote in memchr::memchr_iter(b'"', bytes) {
        if quote < next {
            continue;
        }
        let after = bytes.get(quote + 1);
        if !quoted {
            quoted = ends(quote.checked_sub(1).map(|i| &bytes[i]));
        } else if after == Some(&b'"') {
            next = quote + 2;
        } else if ends(after) {
            quoted = false;
        } else {
            return true;
        }
    }
    false
}

/// Returns the end of the quoted field that contains `from`, or of the bytes if it is not closed.
fn closing_quote(bytes: &[u8], mut from: usize) -> usize {
    while let Some(quote) = memchr::memchr(b'"', bytes.get(from..).unwrap_or_default()) {
        let quote = from + quote;
        if bytes.get(quote + 1) != Some(&b'"') {
            return quote;
        }
        from = quote + 2;
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns all chunks of about `size` bytes, reading `read_size` bytes at a time.
    fn chunks(text: &[u8], single: bool, size: usize, read_size: usize) -> Option<Vec<Chunk>> {
        let mut records = Records::new(text, b',');
        (records.single_column, records.read_size) = (single, read_size);
        let mut all = Vec::new();
        while let Some(chunk) = records.next_chunk(size).ok()? {
            all.push(chunk);
        }
        Some(all)
    }

    fn parse(text: &[u8]) -> Vec<csv::ByteRecord> {
        let mut reader = csv::ReaderBuilder::new();
        let reader = reader.has_headers(false).flexible(true).from_reader(text);
        reader.into_byte_records().map(|r| r.unwrap()).collect()
    }

    fn text() -> impl Strategy<Value = Vec<u8>> {
        let bytes = prop::sample::select(b"1,,\"\n\n\rx".to_vec());
        prop::collection::vec(bytes, 0..60)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(3000))]

        /// Parsing the chunks one by one gives the records of the whole text, and the declared
        /// counts.
        #[test]
        fn chunks_hold_the_records_of_the_whole(text in text(), size in 1usize..40, read in 1usize..9) {
            let Some(chunks) = chunks(&text, false, size, read) else {
                // Only an open quote is refused: a line added to the text does not become a record.
                let added = [&text[..], b"\nx,y,z"].concat();
                prop_assert!(parse(&added).last().is_none_or(|r| r != vec!["x", "y", "z"]));
                return Ok(());
            };
            let mut records = Vec::new();
            let mut line = 1;
            for chunk in &chunks {
                let parsed = parse(&chunk.bytes);
                prop_assert_eq!(parsed.len() as u64, chunk.rows);
                prop_assert_eq!(chunk.line, line);
                line += lines(&chunk.bytes);
                records.extend(parsed);
            }
            prop_assert_eq!(&records, &parse(&text));
        }

        /// With one column, blank lines count, except after the last record.
        #[test]
        fn blank_lines_of_one_column_count(text in text(), size in 1usize..40, read in 1usize..9) {
            let Some(chunks) = chunks(&text, true, size, read) else { return Ok(()) };
            let mut fields = Vec::new();
            for chunk in &chunks {
                let before = fields.len() as u64;
                single_fields(&chunk.bytes, b',', |f| fields.push(f.to_vec()));
                prop_assert_eq!(fields.len() as u64 - before, chunk.rows);
            }
            let full: Vec<_> = fields.iter().filter(|f| !f.is_empty()).flat_map(|f| parse(f)).collect();
            prop_assert_eq!(full, parse(&text));
            let mut whole = Vec::new();
            single_fields(&text, b',', |f| whole.push(f.to_vec()));
            while whole.last().is_some_and(|f| f.is_empty()) {
                whole.pop();
            }
            prop_assert_eq!(fields, whole);
        }

        /// The number of fields equals the result of the csv crate.
        #[test]
        fn fields_are_counted(text in text()) {
            let Some(chunks) = chunks(&text, false, 60, 9) else { return Ok(()) };
            for Chunk { bytes, .. } in chunks {
                let counted: Vec<usize> = fields_of(&bytes, b',').map(|(_, fields)| fields).collect();
                let parsed: Vec<usize> = parse(&bytes).iter().map(|r| r.len()).collect();
                prop_assert_eq!(counted, parsed);
            }
        }

        /// Only fields with text after their closing quote change, and the csv crate then reads
        /// them as written.
        #[test]
        fn mending_keeps_records_and_whole_fields(text in text()) {
            let Some(chunks) = chunks(&text, false, 60, 9) else { return Ok(()) };
            for Chunk { bytes, .. } in chunks {
                let (before, after) = (parse(&bytes), parse(&mended(&bytes, b',')));
                prop_assert_eq!(before.len(), after.len());
                for (a, b) in before.iter().zip(&after) {
                    prop_assert_eq!(a.len(), b.len());
                    for (a, b) in a.iter().zip(b) {
                        prop_assert!(a == b || bytes.windows(b.len()).any(|w| w == b));
                        prop_assert!(a == b || b.starts_with(b"\""));
                    }
                }
            }
        }

        #[test]
        fn the_header_is_taken_off(text in text(), read in 1usize..9) {
            let mut records = Records::new(&text[..], b',');
            records.read_size = read;
            let all = parse(&text);
            let Ok(first) = records.peek() else { return Ok(()) };
            let first = parse(first);
            prop_assert_eq!(first.first(), all.first());
            if records.skip().is_err() {
                return Ok(());
            }
            let mut rest = Vec::new();
            loop {
                match records.next_chunk(7) {
                    Ok(Some(chunk)) => rest.extend(parse(&chunk.bytes)),
                    Ok(None) => break,
                    Err(_) => return Ok(()),
                }
            }
            prop_assert_eq!(&rest[..], all.get(1..).unwrap_or(&[]));
        }
    }

    #[test]
    fn text_after_a_closing_quote_is_kept_with_the_quotes() {
        let fields = |text: &str| -> Vec<String> {
            let records = parse(&mended(text.as_bytes(), b','));
            records.iter().flatten().map(|f| String::from_utf8_lossy(f).into_owned()).collect()
        };
        assert_eq!(fields("\"1\"5,2\n"), ["\"1\"5", "2"]);
        assert_eq!(fields("3,\"a,\"\"b\"c"), ["3", "\"a,\"\"b\"c"]);
        assert_eq!(fields("\"1\",\"2\"\r\n\"3\" ,4\"\"5"), ["1", "2", "3 ", "4\"\"5"]);
        assert!(matches!(mended(b"\"1\",\"\"\"2\"\n3,4", b','), Cow::Borrowed(_)));
    }

    #[test]
    fn an_open_quote_is_named_by_its_row() {
        let fails = |text: String| {
            let mut records = Records::new(text.as_bytes(), b',');
            loop {
                match records.next_chunk(1000) {
                    Ok(Some(_)) => {}
                    Ok(None) => return String::new(),
                    Err(e) => return e.to_string(),
                }
            }
        };
        let plain = "1,2\n".repeat(500);
        let expected = "row 501 (line 501): a quote (\") is opened and never closed";
        assert_eq!(fails(format!("{plain}3,\"4\n1,2\n")), expected);
        assert_eq!(fails(format!("{plain}3,\"4\n{}", plain.repeat(9))), expected);
        assert_eq!(fails(format!("{plain}3,\"4\n{}", plain.repeat(40_000))), expected);
        assert_eq!(fails(format!("{plain}3,4\"\n")), "");
        let late = "row 501 (line 503): a quote (\") is opened and never closed";
        assert_eq!(fails(format!("{plain}\n\n3,\"4")), late);
        let long = "x".repeat(MOST_BYTES + 70_000);
        assert!(
            fails(format!("{plain}{long}")).contains("row 501 (line 501): it is longer than 64 MB")
        );
    }
}
