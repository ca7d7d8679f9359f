//! Checks of the Thrift structures in a Parquet file before the Parquet crate decodes them.
//!
//! The crate trusts a few numbers: it allocates memory for the declared number of children of a
//! schema node, recurses to the depth of the schema, and allocates the declared decompressed size
//! of a page. Failures there cannot be caught, so this module checks these numbers against the rest
//! of the file first. The crate identifies fields by their ids and ignores their declared types. A
//! field of an unexpected type is therefore refused, so that both readers interpret the bytes in
//! the same way.

use super::budget::check_expansion;

/// Maximum depth of a schema; a list takes two levels.
const MOST_LEVELS: usize = 64;

/// Type codes of the compact protocol.
const BOOLEANS: [u8; 2] = [1, 2];
const BYTE: u8 = 3;
const I16: u8 = 4;
const I32: u8 = 5;
const I64: u8 = 6;
const DOUBLE: u8 = 7;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const SET: u8 = 10;
const MAP: u8 = 11;
const STRUCT: u8 = 12;
const UUID: u8 = 13;

/// The type that the Parquet crate expects in a field.
#[derive(Clone, Copy)]
enum Shape {
    Boolean,
    Byte,
    I32,
    I64,
    Binary,
    Struct(&'static [(i16, Shape)]),
}

use Shape::{Binary, Boolean, Byte, Struct};

const EMPTY: Shape = Struct(&[]);
const UNIT: Shape = Struct(&[(1, EMPTY), (2, EMPTY), (3, EMPTY)]);
const TIME: Shape = Struct(&[(1, Boolean), (2, UNIT)]);
const LOGICAL_TYPE: Shape = Struct(&[
    (1, EMPTY),
    (2, EMPTY),
    (3, EMPTY),
    (4, EMPTY),
    (5, Struct(&[(1, Shape::I32), (2, Shape::I32)])),
    (6, EMPTY),
    (7, TIME),
    (8, TIME),
    (10, Struct(&[(1, Byte), (2, Boolean)])),
    (11, EMPTY),
    (12, EMPTY),
    (13, EMPTY),
    (14, EMPTY),
    (15, EMPTY),
    (16, Struct(&[(1, Byte)])),
    (17, Struct(&[(1, Binary)])),
    (18, Struct(&[(1, Binary), (2, Shape::I32)])),
]);
/// Type, length, repetition, name, children, converted type, scale, precision, id, logical type.
const SCHEMA_ELEMENT: &[(i16, Shape)] = &[
    (1, Shape::I32),
    (2, Shape::I32),
    (3, Shape::I32),
    (4, Binary),
    (CHILDREN, Shape::I32),
    (6, Shape::I32),
    (7, Shape::I32),
    (8, Shape::I32),
    (9, Shape::I32),
    (10, LOGICAL_TYPE),
];
const CHILDREN: i16 = 5;

const STATISTICS: Shape = Struct(&[
    (1, Binary),
    (2, Binary),
    (3, Shape::I64),
    (4, Shape::I64),
    (5, Binary),
    (6, Binary),
    (7, Boolean),
    (8, Boolean),
]);
/// Type, decompressed size, compressed size, checksum, then the headers of the page types.
const PAGE_HEADER: &[(i16, Shape)] = &[
    (1, Shape::I32),
    (EXPANDED, Shape::I32),
    (COMPRESSED, Shape::I32),
    (4, Shape::I32),
    (
        DATA,
        Struct(&[
            (1, Shape::I32),
            (2, Shape::I32),
            (3, Shape::I32),
            (4, Shape::I32),
            (5, STATISTICS),
        ]),
    ),
    (6, EMPTY),
    (DICTIONARY, Struct(&[(1, Shape::I32), (2, Shape::I32), (3, Boolean)])),
    (
        DATA_V2,
        Struct(&[
            (1, Shape::I32),
            (2, Shape::I32),
            (3, Shape::I32),
            (4, Shape::I32),
            (5, Shape::I32),
            (6, Shape::I32),
            (7, Boolean),
            (8, STATISTICS),
        ]),
    ),
];
const EXPANDED: i16 = 2;
const COMPRESSED: i16 = 3;
const DATA: i16 = 5;
const DICTIONARY: i16 = 7;
const DATA_V2: i16 = 8;

/// The reason why a structure is refused.
#[derive(Debug, PartialEq, Eq)]
pub enum Refused {
    /// More bytes are needed to decide.
    Short,
    /// The structure breaks a rule.
    Broken(String),
}

type Result<T> = std::result::Result<T, Refused>;

fn broken<T>(how: impl Into<String>) -> Result<T> {
    Err(Refused::Broken(how.into()))
}

/// Checks that the schema at the start of a footer is a tree of bounded depth.
pub fn check_schema(footer: &[u8]) -> Result<()> {
    let mut thrift = Thrift { rest: footer };
    let mut last = 0;
    // Every footer starts with the version and the schema.
    loop {
        match thrift.field(&mut last)? {
            Some((1, I32)) => drop(thrift.integer()?),
            Some((2, LIST)) => break,
            _ => return broken("its footer does not start with a schema"),
        }
    }
    let (count, kind) = thrift.list()?;
    if kind != STRUCT || count > thrift.rest.len() as u64 {
        return broken("its schema has more columns than its footer has bytes");
    }
    // Number of remaining children on each level.
    let mut levels: Vec<u64> = vec![1];
    for left in (0..count).rev() {
        let mut children = 0;
        thrift.structure(SCHEMA_ELEMENT, &mut |path, value| {
            if path == [CHILDREN] {
                children = value as i32;
            }
        })?;
        while levels.last() == Some(&0) {
            levels.pop();
        }
        let Some(level) = levels.last_mut() else { return broken("its schema has two roots") };
        *level -= 1;
        if u64::try_from(children).map_or(true, |children| children > left) {
            return broken(format!(
                "a column has {children} children, but {left} are left in its schema"
            ));
        }
        levels.push(children as u64);
        if levels.len() > MOST_LEVELS + 1 {
            return broken(format!("its schema is more than {MOST_LEVELS} levels deep"));
        }
    }
    if levels.iter().all(|left| *left == 0) {
        Ok(())
    } else {
        broken("its schema ends before all columns are there")
    }
}

/// The sizes of a page in the file and in memory, and its contents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PageSize {
    /// Size of the header in bytes.
    pub header: u64,
    /// Size after the header, in bytes.
    pub compressed: u64,
    /// Size of the content after decompression, in bytes.
    pub expanded: u64,
    /// Number of bytes at the start of the content that are never compressed.
    pub plain: u64,
    /// Whether the rest is compressed, if the column has a compression.
    pub packed: bool,
    /// Number of values, including missing ones.
    pub values: u64,
    /// Whether the page is a dictionary.
    pub dictionary: bool,
}

/// Checks the page header at the start of some bytes.
pub fn check_page(bytes: &[u8]) -> Result<PageSize> {
    let (mut expanded, mut compressed, mut values, mut entries) = (0, 0, 0, None);
    let (mut levels, mut packed) = ([0, 0], true);
    let mut thrift = Thrift { rest: bytes };
    thrift.structure(PAGE_HEADER, &mut |path, value| match path {
        [EXPANDED] => expanded = value as i32,
        [COMPRESSED] => compressed = value as i32,
        [DICTIONARY, 1] => entries = Some(value as i32),
        [DATA | DATA_V2, 1] => values = value as i32,
        [DATA_V2, 5] => levels[0] = value as i32,
        [DATA_V2, 6] => levels[1] = value as i32,
        [DATA_V2, 7] => packed = value == 1,
        _ => {}
    })?;
    let header = (bytes.len() - thrift.rest.len()) as u64;
    let (Ok(expanded), Ok(compressed)) = (u64::try_from(expanded), u64::try_from(compressed))
    else {
        return broken("a page has a negative size");
    };
    // Every entry takes at least one byte, and the crate allocates memory for all entries at once.
    if let Some(entries) = entries
        && u64::try_from(entries).map_or(true, |entries| entries > expanded)
    {
        return broken(format!("a dictionary of {expanded} bytes declares {entries} values"));
    }
    let (Ok(first), Ok(second)) = (u64::try_from(levels[0]), u64::try_from(levels[1])) else {
        return broken("a page has levels of a negative size");
    };
    let Ok(values) = u64::try_from(values) else {
        return broken("a page has a negative number of values");
    };
    check_expansion(compressed, expanded).map_err(Refused::Broken)?;
    let (plain, dictionary) = (first + second, entries.is_some());
    Ok(PageSize { header, compressed, expanded, plain, packed, values, dictionary })
}

/// A function that receives each integer of a structure, and booleans as 1 and 2, with the path of
/// field ids that leads to it.
type Visit<'a> = &'a mut dyn FnMut(&[i16], i64);

/// The remaining bytes in the compact protocol.
struct Thrift<'a> {
    rest: &'a [u8],
}

impl Thrift<'_> {
    fn byte(&mut self) -> Result<u8> {
        let (first, rest) = self.rest.split_first().ok_or(Refused::Short)?;
        self.rest = rest;
        Ok(*first)
    }

    fn skip_bytes(&mut self, count: u64) -> Result<()> {
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        self.rest = self.rest.get(count..).ok_or(Refused::Short)?;
        Ok(())
    }

    /// Reads an integer of variable length, at most ten bytes.
    fn varint(&mut self) -> Result<u64> {
        let mut number = 0;
        for shift in (0..70).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f).checked_shl(shift).unwrap_or(0);
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        broken("a number is longer than ten bytes")
    }

    fn integer(&mut self) -> Result<i64> {
        let number = self.varint()?;
        Ok((number >> 1) as i64 ^ -((number & 1) as i64))
    }

    /// Reads the id and the type of the next field; `None` at the end of a structure.
    fn field(&mut self, last: &mut i16) -> Result<Option<(i16, u8)>> {
        let head = self.byte()?;
        let (delta, kind) = (head >> 4, head & 0xf);
        if kind == 0 {
            return Ok(None);
        }
        *last = match delta {
            0 => self.integer()? as i16,
            _ => match last.checked_add(i16::from(delta)) {
                Some(number) => number,
                None => return broken("a field has too large a number"),
            },
        };
        Ok(Some((*last, kind)))
    }

    /// Reads the length of a list and the type of its elements.
    fn list(&mut self) -> Result<(u64, u8)> {
        let head = self.byte()?;
        let count = if head >> 4 == 15 { self.varint()? } else { u64::from(head >> 4) };
        Ok((count, head & 0xf))
    }

    /// Reads a structure and skips the fields that are not listed.
    fn structure(&mut self, fields: &[(i16, Shape)], visit: Visit<'_>) -> Result<()> {
        self.fields(fields, &mut Vec::new(), visit)
    }

    fn fields(
        &mut self,
        fields: &[(i16, Shape)],
        path: &mut Vec<i16>,
        visit: Visit<'_>,
    ) -> Result<()> {
        let mut last = 0;
        while let Some((number, kind)) = self.field(&mut last)? {
            let shape = fields.iter().find(|(n, _)| *n == number).map(|(_, shape)| *shape);
            path.push(number);
            match (shape, kind) {
                (None, kind) => self.skip(kind, 16)?,
                (Some(Boolean), kind) if BOOLEANS.contains(&kind) => visit(path, kind.into()),
                (Some(Byte), BYTE) => drop(self.byte()?),
                (Some(Shape::I32), I32) | (Some(Shape::I64), I64) => visit(path, self.integer()?),
                (Some(Binary), BINARY) => self.skip(BINARY, 1)?,
                (Some(Struct(fields)), STRUCT) => self.fields(fields, path, visit)?,
                _ => return broken(format!("field {path:?} has type {kind}")),
            }
            path.pop();
        }
        Ok(())
    }

    /// Skips a value of any type with at most `levels` levels of nesting.
    fn skip(&mut self, kind: u8, levels: usize) -> Result<()> {
        let Some(levels) = levels.checked_sub(1) else { return broken("it is nested too deeply") };
        match kind {
            1 | 2 => Ok(()),
            BYTE => self.byte().map(drop),
            I16 | I32 | I64 => self.varint().map(drop),
            DOUBLE => self.skip_bytes(8),
            UUID => self.skip_bytes(16),
            BINARY => {
                let length = self.varint()?;
                self.skip_bytes(length)
            }
            STRUCT => {
                let mut last = 0;
                while let Some((_, kind)) = self.field(&mut last)? {
                    self.skip(kind, levels)?;
                }
                Ok(())
            }
            LIST | SET => {
                let (count, kind) = self.list()?;
                // Readers disagree on the size of list elements of type boolean, which footers and
                // page headers never contain.
                if BOOLEANS.contains(&kind) && count > 0 {
                    return broken("it holds a list of booleans");
                }
                (0..count).try_for_each(|_| self.skip(kind, levels))
            }
            MAP => broken("it holds a map, which Parquet does not have"),
            _ => broken(format!("a field has the unknown type {kind}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The start of a footer with these numbers of children.
    fn footer(children: &[i64]) -> Vec<u8> {
        let mut bytes = vec![0x15, 2, 0x19, 0xfc];
        varint(&mut bytes, children.len() as u64);
        for count in children {
            // A required node called "a".
            bytes.extend([0x35, 0, 0x18, 1, b'a', 0x15]);
            varint(&mut bytes, (count << 1 ^ count >> 63) as u64);
            bytes.push(0);
        }
        bytes
    }

    fn varint(bytes: &mut Vec<u8>, mut number: u64) {
        while number > 0x7f {
            bytes.push(number as u8 | 0x80);
            number >>= 7;
        }
        bytes.push(number as u8);
    }

    #[test]
    fn schemas_are_trees() {
        let refused = |children: &[i64]| match check_schema(&footer(children)) {
            Err(Refused::Broken(how)) => how,
            other => format!("{other:?}"),
        };
        assert_eq!(check_schema(&footer(&[2, 0, 2, 0, 0])), Ok(()));
        assert_eq!(check_schema(&footer(&[0])), Ok(()));
        assert!(refused(&[1 << 31, 0]).contains("-2147483648 children"));
        assert!(refused(&[(1 << 31) - 1, 0]).contains("2147483647 children, but 1 are left"));
        assert!(refused(&[-1]).contains("-1 children"));
        assert!(refused(&[1, 0, 0]).contains("two roots"));
        assert!(refused(&[2, 0]).contains("2 children"));
        assert!(refused(&[2, 1, 0]).contains("ends before"));
        let chain = |levels: usize| {
            let mut children = vec![1; levels];
            children.push(0);
            children
        };
        assert_eq!(check_schema(&footer(&chain(MOST_LEVELS - 1))), Ok(()));
        assert!(refused(&chain(10_000)).contains("64 levels deep"));
        let good = footer(&[1, 0]);
        for end in 0..good.len() {
            assert!(check_schema(&good[..end]).is_err(), "{end}");
        }
    }

    /// Readers that disagree on the length of a list would read different fields after it.
    #[test]
    fn lists_of_booleans_are_refused() {
        let mut bytes = footer(&[0]);
        assert_eq!(bytes.pop(), Some(0));
        // Field 11, a list of one boolean.
        bytes.extend([0x69, 0x12, 1, 0]);
        let refused = check_schema(&bytes).unwrap_err();
        assert!(format!("{refused:?}").contains("list of booleans"), "{refused:?}");
    }

    /// The crate reads a number if it expects one, whatever type the field declares.
    #[test]
    fn fields_of_another_type_are_refused() {
        let mut bytes = footer(&[1, 0]);
        let at = bytes.iter().rposition(|b| *b == 0x15).unwrap();
        bytes[at] = 0x18;
        assert!(matches!(check_schema(&bytes), Err(Refused::Broken(_))));
    }

    #[test]
    fn pages_have_sane_sizes() {
        let page = |expanded: i32, compressed: i32, values: i32| {
            let mut bytes = vec![0x15, 4, 0x15];
            varint(&mut bytes, (expanded << 1 ^ expanded >> 31) as u32 as u64);
            bytes.push(0x15);
            varint(&mut bytes, (compressed << 1 ^ compressed >> 31) as u32 as u64);
            bytes.extend([0x4c, 0x15]);
            varint(&mut bytes, (values << 1 ^ values >> 31) as u32 as u64);
            bytes.extend([0x15, 0, 0, 0]);
            check_page(&bytes)
        };
        let size = PageSize {
            header: 16,
            compressed: 300,
            expanded: 800,
            packed: true,
            ..PageSize::default()
        };
        assert_eq!(page(800, 300, 100), Ok(PageSize { dictionary: true, ..size }));
        for (expanded, compressed, values) in
            [(i32::MAX, 70_000, 5), (-1, 5, 0), (5, -1, 0), (100, 100, i32::MAX), (9, 9, -1)]
        {
            assert!(matches!(page(expanded, compressed, values), Err(Refused::Broken(_))));
        }
        assert_eq!(check_page(&[0x15, 4]), Err(Refused::Short));
    }
}
