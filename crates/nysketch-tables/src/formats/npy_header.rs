//! The header of a NumPy file: a magic string, a version, a length, and a Python dictionary of
//! three entries (NumPy's "NPY format", versions 1 to 3).
//!
//! The entries may be in any order and have any spacing. A structured type is kept as text, so that
//! the error can name it.

use std::io::{self, Read};

const MAGIC: [u8; 6] = *b"\x93NUMPY";
/// NumPy pads headers to 64 bytes and by default refuses headers of more than 10,000 bytes.
const MAX_LENGTH: u32 = 1 << 16;

/// The contents of a header.
#[derive(Debug, PartialEq, Eq)]
pub struct Header {
    /// The NumPy type of the numbers, such as `<f8`.
    pub descr: String,
    /// Whether columns are stored one after the other.
    pub fortran_order: bool,
    /// Length along each dimension.
    pub shape: Vec<u64>,
}

/// A rule that a header breaks.
#[derive(Debug, thiserror::Error)]
pub enum HeaderError {
    #[error("it ends within the header")]
    Short,
    #[error("{0}")]
    Read(io::Error),
    #[error("it does not start with \\x93NUMPY")]
    Magic,
    #[error("version {0} of the format is not known")]
    Version(u8),
    #[error("the header is {0} bytes long; at most {MAX_LENGTH} are allowed")]
    Length(u32),
    #[error("the header has no {0}")]
    Missing(&'static str),
    #[error("the header has no valid {what} at byte {at}")]
    Syntax { what: &'static str, at: usize },
}

impl From<io::Error> for HeaderError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => HeaderError::Short,
            _ => HeaderError::Read(error),
        }
    }
}

type Result<T> = std::result::Result<T, HeaderError>;

/// Reads a header. The numbers follow it in `reader`.
pub fn read(reader: &mut impl Read) -> Result<Header> {
    if array::<6>(reader)? != MAGIC {
        return Err(HeaderError::Magic);
    }
    let [major, _minor] = array(reader)?;
    let length = match major {
        1 => u32::from(u16::from_le_bytes(array(reader)?)),
        2 | 3 => u32::from_le_bytes(array(reader)?),
        other => return Err(HeaderError::Version(other)),
    };
    if length > MAX_LENGTH {
        return Err(HeaderError::Length(length));
    }
    let mut text = vec![0; length as usize];
    reader.read_exact(&mut text)?;
    Literal { text: &text, at: 0 }.header()
}

fn array<const N: usize>(reader: &mut impl Read) -> Result<[u8; N]> {
    let mut bytes = [0; N];
    reader.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// A Python literal, parsed from left to right.
struct Literal<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Literal<'a> {
    /// Parses `{'descr': …, 'fortran_order': …, 'shape': …, }`.
    fn header(mut self) -> Result<Header> {
        let (mut descr, mut fortran_order, mut shape) = (None, None, None);
        self.expect(b'{', "dictionary")?;
        while !self.take(b'}') {
            let key = self.string()?;
            self.expect(b':', "entry")?;
            match key {
                b"descr" => descr = Some(self.descr()?),
                b"fortran_order" => fortran_order = Some(self.boolean()?),
                b"shape" => shape = Some(self.tuple()?),
                _ => return Err(self.invalid("key")),
            }
            if !self.take(b',') {
                self.expect(b'}', "end of the dictionary")?;
                break;
            }
        }
        self.skip_spaces();
        if self.at < self.text.len() {
            return Err(self.invalid("padding"));
        }
        Ok(Header {
            descr: descr.ok_or(HeaderError::Missing("descr"))?,
            fortran_order: fortran_order.ok_or(HeaderError::Missing("fortran_order"))?,
            shape: shape.ok_or(HeaderError::Missing("shape"))?,
        })
    }

    fn invalid(&self, what: &'static str) -> HeaderError {
        HeaderError::Syntax { what, at: self.at }
    }

    fn skip_spaces(&mut self) {
        self.at += self.text[self.at..].iter().take_while(|b| b.is_ascii_whitespace()).count();
    }

    /// Skips spaces, and then the given character if it is next.
    fn take(&mut self, character: u8) -> bool {
        self.skip_spaces();
        let found = self.text.get(self.at) == Some(&character);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, character: u8, what: &'static str) -> Result<()> {
        if self.take(character) { Ok(()) } else { Err(self.invalid(what)) }
    }

    /// Returns the bytes up to the first one that does not belong.
    fn span(&mut self, belongs: impl Fn(u8) -> bool) -> &'a [u8] {
        let rest = &self.text[self.at..];
        let length = rest.iter().take_while(|b| belongs(**b)).count();
        self.at += length;
        &rest[..length]
    }

    /// Parses a string in single or double quotes, without escapes: NumPy writes none.
    fn string(&mut self) -> Result<&'a [u8]> {
        let quote = if self.take(b'\'') { b'\'' } else { b'"' };
        if quote == b'"' {
            self.expect(quote, "string")?;
        }
        let contents = self.span(|b| b != quote && b != b'\\');
        if self.text.get(self.at) != Some(&quote) {
            return Err(self.invalid("end of a string"));
        }
        self.at += 1;
        Ok(contents)
    }

    /// Parses a type: a string, or a list of fields, which is returned as text.
    fn descr(&mut self) -> Result<String> {
        self.skip_spaces();
        let start = self.at;
        if !self.take(b'[') {
            return Ok(String::from_utf8_lossy(self.string()?).into_owned());
        }
        let mut depth = 1;
        while depth > 0 {
            match self.text.get(self.at) {
                Some(b'\'' | b'"') => {
                    self.string()?;
                    continue;
                }
                Some(b'[') => depth += 1,
                Some(b']') => depth -= 1,
                Some(_) => {}
                None => return Err(self.invalid("end of a list")),
            }
            self.at += 1;
        }
        Ok(String::from_utf8_lossy(&self.text[start..self.at]).into_owned())
    }

    fn boolean(&mut self) -> Result<bool> {
        self.skip_spaces();
        match self.span(|b| b.is_ascii_alphabetic()) {
            b"True" => Ok(true),
            b"False" => Ok(false),
            _ => Err(self.invalid("True or False")),
        }
    }

    /// Parses `()`, `(3,)` or `(3, 4)`.
    fn tuple(&mut self) -> Result<Vec<u64>> {
        let mut numbers = Vec::new();
        self.expect(b'(', "tuple")?;
        while !self.take(b')') {
            numbers.push(self.number()?);
            if !self.take(b',') {
                self.expect(b')', "end of a tuple")?;
                break;
            }
        }
        Ok(numbers)
    }

    /// Parses a whole number; Python 2 appended an L.
    fn number(&mut self) -> Result<u64> {
        self.skip_spaces();
        let digits = std::str::from_utf8(self.span(|b| b.is_ascii_digit())).unwrap_or_default();
        let number = digits.parse().map_err(|_| self.invalid("length"))?;
        self.take(b'L');
        Ok(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn file(version: u8, text: &str) -> Vec<u8> {
        let length = text.len() as u32;
        let mut bytes = [&MAGIC[..], &[version, 0]].concat();
        bytes.extend(&length.to_le_bytes()[..if version == 1 { 2 } else { 4 }]);
        bytes.extend(text.as_bytes());
        bytes
    }

    fn parsed(text: &str) -> Result<Header> {
        read(&mut &file(1, text)[..])
    }

    fn header(descr: &str, fortran_order: bool, shape: &[u64]) -> Header {
        Header { descr: descr.into(), fortran_order, shape: shape.into() }
    }

    #[test]
    fn as_numpy_writes_it() {
        let text = "{'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), }          \n";
        for version in [1, 2, 3] {
            let mut bytes = file(version, text);
            bytes.extend([1, 2, 3]);
            let mut rest = &bytes[..];
            assert_eq!(read(&mut rest).unwrap(), header("<f8", false, &[3, 4]));
            assert_eq!(rest, [1, 2, 3]);
        }
    }

    #[test]
    fn as_others_write_it() {
        let text = "{\"shape\":(5L,) ,'fortran_order':True,'descr':\">i4\"}";
        assert_eq!(parsed(text).unwrap(), header(">i4", true, &[5]));
        let text =
            "{'descr': [('a]', '<f8'), ('b', '<i4', (2,))], 'fortran_order': False, 'shape': ()}";
        let descr = "[('a]', '<f8'), ('b', '<i4', (2,))]";
        assert_eq!(parsed(text).unwrap(), header(descr, false, &[]));
    }

    #[test]
    fn broken_rules_are_named() {
        let shape = |s: &str| {
            parsed(&format!("{{'descr': '<f8', 'fortran_order': False, 'shape': {s}}}"))
                .unwrap_err()
                .to_string()
        };
        for wrong in ["(3, 4", "(-1,)", "(1e3,)", "3", "(99999999999999999999,)", "(1,,)"] {
            assert!(shape(wrong).contains("no valid"), "{wrong}");
        }
        let missing = parsed("{'descr': '<f8', 'fortran_order': False}").unwrap_err();
        assert!(matches!(missing, HeaderError::Missing("shape")));
        let unknown = parsed("{'descr': '<f8', 'more': 1}").unwrap_err();
        assert!(matches!(unknown, HeaderError::Syntax { what: "key", .. }));
        let after =
            parsed("{'descr': '<f8', 'fortran_order': False, 'shape': (1,)} x").unwrap_err();
        assert!(matches!(after, HeaderError::Syntax { what: "padding", .. }));
        assert!(matches!(read(&mut &b"\x93NUMPX\x01\0"[..]), Err(HeaderError::Magic)));
        assert!(matches!(read(&mut &file(4, "{}")[..]), Err(HeaderError::Version(4))));
        assert!(matches!(read(&mut &file(1, "{}")[..11]), Err(HeaderError::Short)));
        let mut long = file(2, "{}");
        long[8..12].copy_from_slice(&u32::MAX.to_le_bytes());
        assert!(matches!(read(&mut &long[..]), Err(HeaderError::Length(u32::MAX))));
    }

    proptest! {
        /// Every header that can be written is read back, whatever its spacing.
        #[test]
        fn what_is_written_is_read(
            descr in "[<>|][fiu][1248]",
            fortran in any::<bool>(),
            shape in prop::collection::vec(any::<u64>(), 0..4),
            space in "[ \n]{0,3}",
        ) {
            let lengths: String = shape.iter().map(|n| format!("{n}{space},{space}")).collect();
            let order = if fortran { "True" } else { "False" };
            let text = format!(
                "{{{space}'descr':{space}'{descr}',{space}'fortran_order'{space}:{order}{space},'shape':({space}{lengths}){space},}}{space}"
            );
            prop_assert_eq!(parsed(&text).unwrap(), header(&descr, fortran, &shape));
        }

        /// No input causes a panic.
        #[test]
        fn damage_is_an_error_or_a_header(text in "[{}()\\[\\]'\",:LTrueFalsedcrhpno_0-9 ]{0,60}") {
            drop(parsed(&text));
        }
    }
}
