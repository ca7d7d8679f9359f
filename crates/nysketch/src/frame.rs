//! The frame: from a row in the table's units to the coordinates everything is measured in.
//!
//! ```text
//! y_j = (x_j − c_j) · (1/s_j)         in f64, both operations rounded to nearest
//! z_j = f32(y_j)                      what distances and phases are computed from
//! q_j = round(y_j · 2^−e_j)           what the moments are summed from (ties to even)
//! ```
//!
//! The centre is subtracted in double precision before narrowing, so data far from the origin
//! loses nothing; what remains is a relative 2⁻²⁴ of the distance from the centre.

use crate::error::{Cell, Error, Result};
use crate::fixed::{COORDINATE_BITS, COORDINATE_LIMIT, power_of_two};
use crate::kernel::tile::{Instructions, Work};
use crate::rows::{Block, Invalid};

/// Largest |y|, as a power of two, that keeps squared distances finite in f32 for up to 2¹⁶ columns.
pub const MAX_RANGE_BITS: i32 = 54;
/// Least spread of the widest column that keeps squared distances out of the denormal range.
pub const MIN_SPREAD_BITS: i32 = -40;
/// Exponents that keep every coordinate and its square well inside double precision.
pub const EXPONENTS: std::ops::RangeInclusive<i32> =
    LEAST_RANGE_BITS - COORDINATE_BITS..=MAX_RANGE_BITS - COORDINATE_BITS;
const LEAST_RANGE_BITS: i32 = -200;
/// How far beyond the largest value seen while planning a later row may lie: 2¹⁶ times.
const HEADROOM_BITS: i32 = 16;

/// 1.5 · 2⁵²: adding it rounds |x| < 2⁵¹ to the nearest integer, ties to even, and leaves that
/// integer in the low bits.
const ROUND: f64 = 6_755_399_441_055_744.0;

/// Centre, scale and fixed-point unit of every column.
#[derive(Debug, Clone, PartialEq)]
pub struct Frame {
    /// `c_j`, in the table's units.
    pub centre: Vec<f64>,
    /// `s_j`, in the table's units; 1 where columns are not scaled.
    pub scale: Vec<f64>,
    /// `e_j`: a quantised coordinate counts units of `2^e_j`.
    pub exponent: Vec<i32>,
    /// `1/s_j`, so that a row costs no division.
    inverse: Vec<f64>,
    /// `2^−e_j`.
    per_unit: Vec<f64>,
}

/// One row in the coordinates of a frame.
#[derive(Debug, Default, Clone)]
pub struct FramedRow {
    /// `z`: narrowed coordinates.
    pub z: Vec<f32>,
    /// `q`: quantised coordinates.
    pub q: Vec<i64>,
}

impl FramedRow {
    /// Takes the last row out again.
    pub fn pop(&mut self, dims: usize) {
        self.z.truncate(self.z.len() - dims);
        self.q.truncate(self.q.len() - dims);
    }
}

/// Plain arithmetic without calls or branches, so that it vectorises on any processor.
struct FrameRow<'a> {
    frame: &'a Frame,
    row: &'a [f64],
    z: &'a mut [f32],
    q: &'a mut [i64],
    valid: &'a mut bool,
}

impl Work for FrameRow<'_> {
    #[inline(always)]
    fn work(self) {
        let Frame { centre, inverse, per_unit, .. } = self.frame;
        let d = self.row.len();
        let (centre, inverse, per_unit) = (&centre[..d], &inverse[..d], &per_unit[..d]);
        let (z, q) = (&mut self.z[..d], &mut self.q[..d]);
        let mut invalid = 0;
        for j in 0..d {
            let y = (self.row[j] - centre[j]) * inverse[j];
            z[j] = y as f32;
            let rounded = y * per_unit[j] + ROUND;
            // Written so that NaN fails.
            invalid |= u64::from(!((rounded - ROUND).abs() <= COORDINATE_LIMIT as f64));
            q[j] = rounded.to_bits().wrapping_sub(ROUND.to_bits()) as i64;
        }
        *self.valid = invalid == 0;
    }
}

impl Frame {
    /// Number of columns.
    pub fn dims(&self) -> usize {
        self.centre.len()
    }

    /// Chooses the unit of each column from the largest |y| seen, with room for larger ones.
    pub fn new(
        columns: &[String],
        centre: Vec<f64>,
        scale: Vec<f64>,
        low: &[f64],
        high: &[f64],
    ) -> Result<Self> {
        let mut exponent = Vec::with_capacity(centre.len());
        let mut widest = (0.0f64, 0);
        for j in 0..centre.len() {
            let inverse = 1.0 / scale[j];
            let spread = (high[j] - centre[j]).max(centre[j] - low[j]) * inverse;
            if !(spread <= power_of_two(MAX_RANGE_BITS)) {
                return Err(bad_spread(&columns[j], spread));
            }
            if spread >= widest.0 {
                widest = (spread, j);
            }
            // A constant column has no spread; its own size is the best guess of what may come.
            let size = [spread, (centre[j] * inverse).abs(), 1.0]
                .into_iter()
                .find(|s| *s > 0.0 && s.is_finite())
                .unwrap_or(1.0);
            let bits =
                (size.log2().ceil() as i32 + HEADROOM_BITS).clamp(LEAST_RANGE_BITS, MAX_RANGE_BITS);
            exponent.push(bits - COORDINATE_BITS);
        }
        if widest.0 > 0.0 && widest.0 < power_of_two(MIN_SPREAD_BITS) {
            return Err(bad_spread(&columns[widest.1], widest.0));
        }
        Ok(Self::from_parts(centre, scale, exponent))
    }

    /// A frame with units already chosen.
    pub fn from_parts(centre: Vec<f64>, scale: Vec<f64>, exponent: Vec<i32>) -> Self {
        Frame {
            inverse: scale.iter().map(|s| 1.0 / s).collect(),
            per_unit: exponent.iter().map(|e| power_of_two(-e)).collect(),
            centre,
            scale,
            exponent,
        }
    }

    /// Checks every rule that FORMAT.md has for a frame.
    pub fn check(&self, dims: usize) -> Result<()> {
        let lengths = [self.centre.len(), self.scale.len(), self.exponent.len()];
        let usable_scale = |s: &f64| *s > 0.0 && s.is_normal() && (1.0 / s).is_normal();
        let broken = if lengths != [dims; 3] {
            "one centre, scale and exponent a column"
        } else if !self.centre.iter().all(|c| c.is_finite()) {
            "a finite centre"
        } else if !self.scale.iter().all(usable_scale) {
            "a scale that is a positive number"
        } else if !self.exponent.iter().all(|e| EXPONENTS.contains(e)) {
            "an exponent between -244 and 10"
        } else {
            return Ok(());
        };
        Err(Error::parameter("the frame", broken, "another"))
    }

    /// `y_j` of one value.
    #[inline]
    fn coordinate(&self, j: usize, value: f64) -> f64 {
        (value - self.centre[j]) * self.inverse[j]
    }

    /// Narrowed coordinates of a row that is known to be finite.
    pub fn narrow(&self, row: &[f64], z: &mut Vec<f32>) {
        z.extend(row.iter().enumerate().map(|(j, &x)| self.coordinate(j, x) as f32));
    }

    /// Coordinates of a row in double precision.
    pub fn coordinates(&self, row: &[f64]) -> Vec<f64> {
        row.iter().enumerate().map(|(j, &x)| self.coordinate(j, x)).collect()
    }

    /// The point in the table's units that has these coordinates.
    pub fn widen(&self, z: &[f32]) -> Vec<f64> {
        z.iter().enumerate().map(|(j, &y)| self.centre[j] + self.scale[j] * f64::from(y)).collect()
    }

    /// Appends the coordinates of a row. `Err` is the column of the first invalid value.
    pub fn push(
        &self,
        instructions: Instructions,
        row: &[f64],
        out: &mut FramedRow,
    ) -> std::result::Result<(), usize> {
        let start = out.z.len();
        out.z.resize(start + row.len(), 0.0);
        out.q.resize(start + row.len(), 0);
        let mut valid = true;
        instructions.run(FrameRow {
            frame: self,
            row,
            z: &mut out.z[start..],
            q: &mut out.q[start..],
            valid: &mut valid,
        });
        if valid {
            return Ok(());
        }
        out.z.truncate(start);
        out.q.truncate(start);
        let limit = COORDINATE_LIMIT as f64;
        let bad = |j: &usize| {
            !((self.coordinate(*j, row[*j]) * self.per_unit[*j]).round_ties_even().abs() <= limit)
        };
        Err((0..row.len()).find(bad).unwrap_or(0))
    }

    /// The error for an invalid value, or `Ok` where the policy is to skip the row.
    pub fn refuse(
        &self,
        invalid: Invalid,
        columns: &[String],
        block: &Block,
        row_number: u64,
        row: &[f64],
        j: usize,
    ) -> Result<()> {
        if invalid == Invalid::Skip {
            return Ok(());
        }
        Err(self.invalid(block.cell(row_number, &columns[j]), j, row[j]))
    }

    /// Why the value of column j is invalid.
    pub fn invalid(&self, at: Cell, j: usize, value: f64) -> Error {
        if !value.is_finite() {
            return Error::NonFinite { at, value };
        }
        let limit = power_of_two(self.exponent[j] + COORDINATE_BITS) * self.scale[j];
        Error::OutOfRange { at, value, centre: self.centre[j], limit }
    }
}

fn bad_spread(column: &str, spread: f64) -> Error {
    Error::BadSpread {
        column: column.to_string(),
        spread,
        low: power_of_two(MIN_SPREAD_BITS),
        high: power_of_two(MAX_RANGE_BITS),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(low: f64, high: f64, centre: f64) -> Result<Frame> {
        Frame::new(&["a".into()], vec![centre], vec![1.0], &[low], &[high])
    }

    #[test]
    fn range_has_headroom_and_an_end() {
        let f = frame(-3.0, 4.0, 0.0).unwrap();
        let mut out = FramedRow::default();
        assert_eq!(f.push(Instructions::best(), &[4.0 * 65536.0], &mut out), Ok(()));
        assert_eq!(f.push(Instructions::best(), &[4.0 * 65536.0 * 1.01], &mut out), Err(0));
        assert_eq!(f.push(Instructions::best(), &[f64::NAN], &mut out), Err(0));
        assert_eq!(f.push(Instructions::best(), &[f64::NEG_INFINITY], &mut out), Err(0));
        assert_eq!((out.z.len(), out.q.len()), (1, 1));
    }

    #[test]
    fn spreads_that_f32_cannot_square_are_refused() {
        assert!(matches!(frame(-1e30, 1e30, 0.0), Err(Error::BadSpread { .. })));
        assert!(matches!(frame(-1e-30, 1e-30, 0.0), Err(Error::BadSpread { .. })));
        assert!(frame(7.0, 7.0, 7.0).is_ok(), "a constant column is fine");
        assert!(frame(0.0, 0.0, 0.0).is_ok());
    }
}
