//! The rule that assigns rows to folds.

use crate::error::{Error, Result};
use crate::rows::sample::mix;

/// Allowed numbers of folds.
const FOLD_COUNTS: std::ops::RangeInclusive<u32> = 2..=64;

/// The property of a row that determines its fold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FoldBy {
    /// Coordinates and levels: equal rows share a fold.
    Content,
    /// The text of this column: rows with the same key share a fold. A row whose key is missing is
    /// assigned by content.
    Key(String),
}

/// The rule that assigns rows to folds.
///
/// ```
/// use nysketch_core::{FoldBy, FoldRule};
/// let rule = FoldRule::by_key(16, "user_id").unwrap();
/// assert_eq!((rule.count(), rule.to_string().as_str()), (16, "16 folds by 'user_id'"));
/// assert_eq!(FoldRule::by_content(8).unwrap().by(), &FoldBy::Content);
/// assert!(FoldRule::by_content(1).is_err());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoldRule {
    count: u32,
    by: FoldBy,
}

impl FoldRule {
    /// A rule with `count` folds, assigned by `by`.
    pub fn new(count: u32, by: FoldBy) -> Result<Self> {
        if !FOLD_COUNTS.contains(&count) {
            let expected = format!("between {} and {}", FOLD_COUNTS.start(), FOLD_COUNTS.end());
            return Err(Error::parameter("`folds`", expected, count));
        }
        Ok(FoldRule { count, by })
    }

    /// A rule with `count` folds, assigned by the content of rows.
    pub fn by_content(count: u32) -> Result<Self> {
        FoldRule::new(count, FoldBy::Content)
    }

    /// A rule with `count` folds, assigned by the text of a column.
    pub fn by_key(count: u32, column: impl Into<String>) -> Result<Self> {
        FoldRule::new(count, FoldBy::Key(column.into()))
    }

    /// Number of folds.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// The property of a row that determines its fold.
    pub fn by(&self) -> &FoldBy {
        &self.by
    }

    /// The column that determines the fold, if there is one.
    pub fn key(&self) -> Option<&str> {
        match &self.by {
            FoldBy::Content => None,
            FoldBy::Key(column) => Some(column),
        }
    }

    /// The fold of a hash.
    pub(crate) fn fold(&self, hash: u64) -> u32 {
        ((u128::from(hash) * u128::from(self.count)) >> 64) as u32
    }

    /// The rule as written in files: `16 content`, or `16 key user_id`.
    pub(crate) fn to_text(&self) -> String {
        match &self.by {
            FoldBy::Content => format!("{} content", self.count),
            FoldBy::Key(column) => format!("{} key {column}", self.count),
        }
    }

    /// Parses a rule as written in files.
    pub(crate) fn from_text(text: &str) -> Option<Self> {
        let (count, by) = text.split_once(' ')?;
        let by = match by.split_once(' ') {
            None if by == "content" => FoldBy::Content,
            Some(("key", column)) => FoldBy::Key(column.to_string()),
            _ => return None,
        };
        FoldRule::new(count.parse().ok()?, by).ok()
    }
}

impl std::fmt::Display for FoldRule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.by {
            FoldBy::Content => write!(f, "{} folds by content", self.count),
            FoldBy::Key(column) => write!(f, "{} folds by '{column}'", self.count),
        }
    }
}

/// Hashes words and the number of bytes that they hold.
fn hash(words: impl Iterator<Item = u64>, bytes: usize) -> u64 {
    mix(words.fold(0, |state, word| mix(state ^ word)) ^ bytes as u64)
}

/// Hashes the bytes of a text, eight at a time.
pub(crate) fn text_hash(text: &str) -> u64 {
    hash(text.as_bytes().chunks(8).map(word), text.len())
}

/// Up to eight bytes as a little-endian integer.
fn word(chunk: &[u8]) -> u64 {
    let mut bytes = [0; 8];
    bytes[..chunk.len()].copy_from_slice(chunk);
    u64::from_le_bytes(bytes)
}

/// Hashes the narrowed coordinates of a row, then its levels, four bytes each.
pub(crate) fn content_hash(z: &[f32], levels: &[u32]) -> u64 {
    let mut halves = z.iter().map(|z| bits(*z)).chain(levels.iter().copied());
    let words = std::iter::from_fn(|| {
        let low = halves.next()?;
        Some(u64::from(low) | u64::from(halves.next().unwrap_or(0)) << 32)
    });
    hash(words, 4 * (z.len() + levels.len()))
}

/// The bits of a number; the same for equal numbers (0 and −0) and for all NaNs.
fn bits(z: f32) -> u32 {
    if z.is_nan() { f32::NAN.to_bits() } else { (z + 0.0).to_bits() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_rows_have_equal_hashes_and_others_have_not() {
        let row = content_hash(&[0.0, 1.5, f32::NAN], &[2]);
        let other_nan = f32::from_bits(0x7fc0_0001);
        assert_eq!(row, content_hash(&[-0.0, 1.5, other_nan], &[2]));
        for (z, levels) in [
            (&[0.0, 1.5, 0.0][..], &[2][..]),
            (&[1.5, 0.0, f32::NAN], &[2]),
            (&[0.0, 1.5, f32::NAN], &[3]),
            (&[0.0, 1.5, f32::NAN], &[]),
            (&[0.0, 1.5, f32::NAN], &[2, 0]),
        ] {
            assert_ne!(row, content_hash(z, levels), "{z:?} {levels:?}");
        }
        assert_ne!(text_hash("a"), text_hash("a\0"));
        assert_ne!(text_hash(""), text_hash("\0"));
    }

    /// FORMAT.md lists these values so that other readers can be tested.
    #[test]
    fn hashes_are_those_of_the_format() {
        assert_eq!(text_hash(""), 0xe220_a839_7b1d_cdaf);
        assert_eq!(text_hash("user_17"), 0xcebc_d6c9_2462_a5f1);
        assert_eq!(content_hash(&[1.0, -2.5, 0.0], &[]), 0x7e88_d8e0_f3c2_4600);
    }

    fn assert_even(hashes: impl Iterator<Item = u64>) {
        let rule = FoldRule::by_content(16).unwrap();
        let mut rows = [0i32; 16];
        hashes.for_each(|hash| rows[rule.fold(hash) as usize] += 1);
        assert!(rows.iter().all(|n| (n - 4000).abs() < 366), "{rows:?}");
    }

    /// With 64,000 rows in 16 folds, each fold has 4,000 rows with a standard deviation of 61. Six
    /// standard deviations make a false alarm rarer than 1e-7. Consecutive numbers, such as those
    /// of a counter column, must be spread evenly too.
    #[test]
    fn folds_are_even_whatever_the_rows_look_like() {
        let rows = 0..64_000u32;
        assert_even(rows.clone().map(|i| content_hash(&[i as f32], &[])));
        assert_even(rows.clone().map(|i| content_hash(&[1.0, (i % 253) as f32], &[i / 253])));
        assert_even(rows.clone().map(|i| text_hash(&i.to_string())));
        assert_even(rows.map(|i| text_hash(&format!("a long name of user {i:08}"))));
    }

    #[test]
    fn rules_come_back_from_their_text() {
        for rule in [FoldRule::by_content(2), FoldRule::by_key(64, "a b"), FoldRule::by_key(9, "")]
        {
            let rule = rule.unwrap();
            assert_eq!(FoldRule::from_text(&rule.to_text()), Some(rule));
        }
        for text in ["", "16", "1 content", "65 content", "16 content ", "16 keys a", "x content"] {
            assert_eq!(FoldRule::from_text(text), None, "{text}");
        }
    }
}
