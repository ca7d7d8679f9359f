//! Rows in the coordinates of a frame, as distances are taken of them.

use std::ops::Range;

/// Some rows, row-major.
#[derive(Debug, Clone, Copy, Default)]
pub struct Rows<'a> {
    /// Numbers; zero where one is absent.
    pub z: &'a [f32],
    /// Levels of the categories.
    pub codes: &'a [u32],
    /// For each number [`PRESENT`] or [`ABSENT`]; empty where all are there.
    pub present: &'a [f32],
}

/// A number that is there: all bits are set, so that *and* leaves a difference as it is.
pub const PRESENT: f32 = f32::from_bits(u32::MAX);
/// A number that is absent: no bit is set, so that *and* makes a difference zero.
pub const ABSENT: f32 = 0.0;

/// Says of each number whether it is there, and makes those that are NaN zero.
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
    /// One row of `dims` numbers and so many categories.
    pub fn row(&self, i: usize, dims: usize, categories: usize) -> Rows<'a> {
        self.part(i..i + 1, dims, categories)
    }

    /// Some of the rows.
    pub fn part(&self, rows: Range<usize>, dims: usize, categories: usize) -> Rows<'a> {
        let span = rows.start * dims..rows.end * dims;
        Rows {
            z: &self.z[span.clone()],
            codes: &self.codes[rows.start * categories..rows.end * categories],
            present: self.present.get(span).unwrap_or(&[]),
        }
    }
}
