//! Rows in the coordinates of a frame, as input of distances.

use std::ops::Range;

/// Rows, row-major.
#[derive(Debug, Clone, Copy, Default)]
pub struct Rows<'a> {
    /// Coordinates; zero if a value is missing.
    pub z: &'a [f32],
    /// Levels of the categories.
    pub codes: &'a [u32],
    /// [`PRESENT`] or [`ABSENT`] for each value; empty if no value is missing.
    pub present: &'a [f32],
}

/// Flag of a value that is present. All bits are set, so a bitwise AND keeps a difference.
pub const PRESENT: f32 = f32::from_bits(u32::MAX);
/// Flag of a missing value. No bit is set, so a bitwise AND makes a difference zero.
pub const ABSENT: f32 = 0.0;

/// Appends the flag of each value to `present`, and replaces NaN with zero.
pub fn take_holes(z: &mut [f32], present: &mut Vec<f32>) {
    present.extend(z.iter().map(|z| if z.is_nan() { ABSENT } else { PRESENT }));
    z.iter_mut().filter(|z| z.is_nan()).for_each(|z| *z = 0.0);
}

impl<'a> From<&'a [f32]> for Rows<'a> {
    fn from(z: &'a [f32]) -> Self {
        Rows { z, ..Rows::default() }
    }
}

impl<'a> From<&'a Vec<f32>> for Rows<'a> {
    fn from(z: &'a Vec<f32>) -> Self {
        Rows::from(&z[..])
    }
}

impl<'a> Rows<'a> {
    /// Row `i`, with `dims` coordinates and `categories` levels.
    pub fn row(&self, i: usize, dims: usize, categories: usize) -> Rows<'a> {
        self.part(i..i + 1, dims, categories)
    }

    /// A range of the rows.
    pub fn part(&self, rows: Range<usize>, dims: usize, categories: usize) -> Rows<'a> {
        let span = rows.start * dims..rows.end * dims;
        Rows {
            z: &self.z[span.clone()],
            codes: &self.codes[rows.start * categories..rows.end * categories],
            present: self.present.get(span).unwrap_or(&[]),
        }
    }
}
