//! The frame: converts a row from the table's units to the coordinates that everything is measured
//! in.
//!
//! ```text
//! y_j = (x_j − c_j) · (1/s_j)         in f64, both operations rounded to nearest
//! z_j = f32(y_j)                      input of distances and phases
//! q_j = round(y_j · 2^−e_j)           input of the moments (ties to even)
//! ```
//!
//! The centre is subtracted in double precision before narrowing, so data far from the origin loses
//! no precision. The remaining error is a relative 2⁻²⁴ of the distance from the centre.

use crate::error::{Error, Place, Result};
use crate::numeric::fixed::{COORDINATE_BITS, COORDINATE_LIMIT, power_of_two};
use crate::numeric::simd::Instructions;
use pulp::{Simd, WithSimd};

/// Largest |y|, as a power of two, that keeps squared distances finite in f32 for up to 2¹⁶
/// columns.
pub const MAX_RANGE_BITS: i32 = 54;
/// Smallest spread of the widest column, as a power of two, that keeps squared distances out of the
/// denormal range.
pub const MIN_SPREAD_BITS: i32 = -40;
/// Allowed scales of a column.
pub const SCALES: std::ops::RangeInclusive<f64> = 1e-50..=1e100;
/// Largest magnitude of a centre. With [`SCALES`] and [`MAX_RANGE_BITS`], values, variances and
/// their
/// sums over all rows are finite in the units of the table.
pub const MAX_CENTRE: f64 = 1e150;
/// Allowed exponents. They keep every coordinate and its square well inside the range of double
/// precision.
pub const EXPONENTS: std::ops::RangeInclusive<i32> =
    MIN_RANGE_BITS - COORDINATE_BITS..=MAX_RANGE_BITS - COORDINATE_BITS;
const MIN_RANGE_BITS: i32 = -200;
/// A later row may lie 2¹⁶ times as far from the centre as the farthest value seen while planning.
const HEADROOM_BITS: i32 = 16;

/// 1.5 · 2⁵². Adding it rounds |x| < 2⁵¹ to the nearest whole number, ties to even, and leaves that
/// number in the low bits.
pub const WHOLE: f64 = 6_755_399_441_055_744.0;

/// Centre, scale and fixed-point unit of every column: the conversion of a row to coordinates.
///
/// ```
/// use nysketch_core::{PlanParams, Scale, Table, plan_for};
/// # fn main() -> nysketch_core::Result<()> {
/// let table = Table::unnamed(1, vec![10.0, 20.0, 30.0])?;
/// let plan = plan_for(&table, PlanParams::default().scale(Scale::Standard))?.plan;
/// let coordinates = plan.frame.coordinates(&[30.0]);
/// let back = plan.frame.widen_coordinates(&coordinates);
/// assert!((back[0] - 30.0).abs() < 1e-12);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Frame {
    /// `c_j`, in the table's units.
    pub centre: Vec<f64>,
    /// `s_j`, in the table's units; 1 if columns are not scaled.
    pub scale: Vec<f64>,
    /// `e_j`: a quantised coordinate counts units of `2^e_j`.
    pub exponent: Vec<i32>,
    /// The constants of each column in turn, followed by those of the first [`PADDING`] columns
    /// again. Rows can then be processed as one long sequence of values, up to [`PADDING`] at a
    /// time.
    cycle: Cycle,
}

#[derive(Debug, Clone, PartialEq)]
struct Cycle {
    /// `c_j`.
    centre: Vec<f64>,
    /// `1/s_j`, so that converting a value needs no division.
    inverse: Vec<f64>,
    /// `2^−e_j`.
    per_unit: Vec<f64>,
}

/// Largest number of values processed together: the widest vector of any processor. Loops over the
/// columns of a row read up to this many values beyond its end and ignore the results.
pub const PADDING: usize = 8;

/// Rows in the coordinates of a frame.
#[derive(Debug, Default, Clone)]
pub struct FramedRows {
    /// `z`: narrowed coordinates.
    pub z: Vec<f32>,
    /// `q`: quantised coordinates, whole numbers.
    pub q: Vec<f64>,
    /// Levels of the categories.
    pub codes: Vec<u32>,
    /// Flags of the values that are present, if some are missing; see
    /// [`Rows`](crate::kernel::row::Rows).
    pub present: Vec<f32>,
    /// `y` of the rows converted last.
    y: Vec<f64>,
}

impl FramedRows {
    /// Number of rows.
    pub fn rows(&self, dims: usize) -> usize {
        self.z.len() / dims
    }

    /// Removes all rows.
    pub fn clear(&mut self) {
        self.z.clear();
        self.q.clear();
        self.codes.clear();
        self.present.clear();
    }

    /// Appends row `i` of `other`.
    pub fn copy_row(&mut self, other: &FramedRows, i: usize, dims: usize, categories: usize) {
        self.z.extend_from_slice(&other.z[i * dims..(i + 1) * dims]);
        self.q.extend_from_slice(&other.q[i * dims..(i + 1) * dims]);
        self.codes.extend_from_slice(&other.codes[i * categories..(i + 1) * categories]);
        if !other.present.is_empty() {
            self.present.extend_from_slice(&other.present[i * dims..(i + 1) * dims]);
        }
    }
}

/// Converts rows, seen as one long sequence of values.
struct FrameValues<'a> {
    cycle: &'a Cycle,
    dims: usize,
    values: &'a [f64],
    out: &'a mut FramedRows,
}

impl WithSimd for FrameValues<'_> {
    /// Whether all values are valid.
    type Output = bool;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> bool {
        let FramedRows { z, q, y, .. } = self.out;
        let start = q.len();
        q.resize(start + self.values.len(), 0.0);
        y.resize(self.values.len(), 0.0);
        let (values, values_rest) = S::as_simd_f64s(self.values);
        let (q, q_rest) = S::as_mut_simd_f64s(&mut q[start..]);
        let (whole_y, y_rest) = S::as_mut_simd_f64s(y);
        let mut invalid = simd.splat_f64s(0.0);
        let mut column = 0;
        for ((value, q), y) in values.iter().zip(q).zip(whole_y) {
            (*y, *q) = self.cycle.frame(simd, column, *value, &mut invalid);
            column += S::F64_LANES;
            while column >= self.dims {
                column -= self.dims;
            }
        }
        if !values_rest.is_empty() {
            // Lanes without a value are filled with the centre of their column, which is valid.
            let centre = &self.cycle.centre[column..][..S::F64_LANES];
            let mut value = [0.0; PADDING];
            value[..S::F64_LANES].copy_from_slice(centre);
            value[..values_rest.len()].copy_from_slice(values_rest);
            let value = S::as_simd_f64s(&value).0[0];
            let (y, q) = self.cycle.frame(simd, column, value, &mut invalid);
            simd.partial_store_f64s(y_rest, y);
            simd.partial_store_f64s(q_rest, q);
        }
        z.extend(y.iter().map(|y| *y as f32));
        simd.reduce_max_f64s(invalid) == 0.0
    }
}

/// Checks whether all values of rows, seen as one long sequence, are valid.
struct AreValid<'a> {
    cycle: &'a Cycle,
    dims: usize,
    values: &'a [f64],
}

impl WithSimd for AreValid<'_> {
    type Output = bool;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> bool {
        let (values, rest) = S::as_simd_f64s(self.values);
        let mut invalid = simd.splat_f64s(0.0);
        let mut column = 0;
        for value in values {
            self.cycle.frame(simd, column, *value, &mut invalid);
            column += S::F64_LANES;
            while column >= self.dims {
                column -= self.dims;
            }
        }
        let mut last = [0.0; PADDING];
        last[..S::F64_LANES].copy_from_slice(&self.cycle.centre[column..][..S::F64_LANES]);
        last[..rest.len()].copy_from_slice(rest);
        self.cycle.frame(simd, column, S::as_simd_f64s(&last).0[0], &mut invalid);
        simd.reduce_max_f64s(invalid) == 0.0
    }
}

impl Cycle {
    fn new(centre: &[f64], scale: &[f64], exponent: &[i32]) -> Self {
        Cycle {
            centre: padded(centre.iter().copied()),
            inverse: padded(scale.iter().map(|s| 1.0 / s)),
            per_unit: padded(exponent.iter().map(|e| power_of_two(-e))),
        }
    }

    /// `y` and `q` of a vector of values, the first of which belongs to `column`. Sets the lanes of
    /// `invalid` to 1 where a value is invalid.
    #[inline(always)]
    fn frame<S: Simd>(
        &self,
        simd: S,
        column: usize,
        value: S::f64s,
        invalid: &mut S::f64s,
    ) -> (S::f64s, S::f64s) {
        let whole = simd.splat_f64s(WHOLE);
        let centre = vector_at::<S>(&self.centre, column);
        let y = simd.mul_f64s(simd.sub_f64s(value, centre), vector_at::<S>(&self.inverse, column));
        // The factor is a power of two, so the product is exact and rounding happens once.
        let q = simd.mul_add_f64s(y, vector_at::<S>(&self.per_unit, column), whole);
        let q = simd.sub_f64s(q, whole);
        // The comparison is false for NaN.
        let limit = simd.splat_f64s(COORDINATE_LIMIT as f64);
        let valid = simd.less_than_or_equal_f64s(simd.abs_f64s(q), limit);
        *invalid = simd.select_f64s(valid, *invalid, simd.splat_f64s(1.0));
        (y, q)
    }
}

/// The values of all columns, followed by those of the first [`PADDING`] columns again.
fn padded(columns: impl ExactSizeIterator<Item = f64> + Clone) -> Vec<f64> {
    let length = columns.len() + PADDING;
    columns.cycle().take(length).collect()
}

/// Loads the vector that starts at index `at`.
#[inline(always)]
fn vector_at<S: Simd>(values: &[f64], at: usize) -> S::f64s {
    S::as_simd_f64s(&values[at..][..S::F64_LANES]).0[0]
}

impl Frame {
    /// Number of columns.
    pub fn dims(&self) -> usize {
        self.centre.len()
    }

    /// Chooses the unit of each column from the largest |y| in the data, with headroom for larger
    /// values.
    pub(crate) fn new(
        columns: &[String],
        centre: Vec<f64>,
        scale: Vec<f64>,
        low: &[f64],
        high: &[f64],
    ) -> Result<Self> {
        let mut exponent = Vec::with_capacity(centre.len());
        let mut widest = (0.0f64, 0);
        for j in 0..centre.len() {
            // The same limits apply to models.
            if !SCALES.contains(&scale[j]) {
                return Err(Error::BadSpread {
                    column: columns[j].clone(),
                    spread: scale[j],
                    low: *SCALES.start(),
                    high: *SCALES.end(),
                });
            }
            let inverse = 1.0 / scale[j];
            let spread = (high[j] - centre[j]).max(centre[j] - low[j]) * inverse;
            if !(spread <= power_of_two(MAX_RANGE_BITS)) {
                return Err(bad_spread(&columns[j], spread));
            }
            if spread >= widest.0 {
                widest = (spread, j);
            }
            // A constant column has no spread. The size of its value is the best guess for the size
            // of later values.
            let size = [spread, (centre[j] * inverse).abs(), 1.0]
                .into_iter()
                .find(|s| *s > 0.0 && s.is_finite())
                .unwrap_or(1.0);
            let bits =
                (size.log2().ceil() as i32 + HEADROOM_BITS).clamp(MIN_RANGE_BITS, MAX_RANGE_BITS);
            exponent.push(bits - COORDINATE_BITS);
        }
        if widest.0 > 0.0 && widest.0 < power_of_two(MIN_SPREAD_BITS) {
            return Err(bad_spread(&columns[widest.1], widest.0));
        }
        Ok(Self::from_parts(centre, scale, exponent))
    }

    /// A frame with given units.
    pub fn from_parts(centre: Vec<f64>, scale: Vec<f64>, exponent: Vec<i32>) -> Self {
        let cycle = Cycle::new(&centre, &scale, &exponent);
        Frame { centre, scale, exponent, cycle }
    }

    /// Checks every rule of FORMAT.md for a frame.
    pub(crate) fn check(&self, dims: usize) -> Result<()> {
        let lengths = [self.centre.len(), self.scale.len(), self.exponent.len()];
        let centre = self.centre.iter().find(|c| !(c.abs() <= MAX_CENTRE));
        let scale = self.scale.iter().find(|s| !SCALES.contains(*s));
        let exponent = self.exponent.iter().find(|e| !EXPONENTS.contains(e));
        let (expected, got) = if lengths != [dims; 3] {
            ("one centre, scale and exponent per column", format!("{lengths:?}"))
        } else if let Some(got) = centre {
            ("centres between -1e150 and 1e150", got.to_string())
        } else if let Some(got) = scale {
            ("scales between 1e-50 and 1e100", got.to_string())
        } else if let Some(got) = exponent {
            ("exponents between -244 and 10", got.to_string())
        } else {
            return Ok(());
        };
        Err(Error::parameter("the frame", expected, got))
    }

    /// `y_j` of one value.
    #[inline]
    fn coordinate(&self, j: usize, value: f64) -> f64 {
        (value - self.centre[j]) * self.cycle.inverse[j]
    }

    /// Appends the narrowed coordinates of a finite row to `z`.
    #[doc(hidden)]
    pub fn narrow(&self, row: &[f64], z: &mut Vec<f32>) {
        z.extend(row.iter().enumerate().map(|(j, &x)| self.coordinate(j, x) as f32));
    }

    /// Coordinates of a row in double precision.
    pub fn coordinates(&self, row: &[f64]) -> Vec<f64> {
        row.iter().enumerate().map(|(j, &x)| self.coordinate(j, x)).collect()
    }

    /// The point in the table's units with these narrowed coordinates.
    pub fn widen(&self, z: &[f32]) -> Vec<f64> {
        self.widen_coordinates(&z.iter().map(|z| f64::from(*z)).collect::<Vec<f64>>())
    }

    /// `Σ_j log s_j`: the log density in coordinates minus the log density in the table's units.
    pub fn log_scale(&self) -> f64 {
        self.scale.iter().map(|s| s.ln()).sum()
    }

    /// The point in the table's units with these coordinates.
    pub fn widen_coordinates(&self, y: &[f64]) -> Vec<f64> {
        y.iter().enumerate().map(|(j, y)| self.centre[j] + self.scale[j] * y).collect()
    }

    /// Appends the coordinates of whole rows. `Err` holds the index of the first invalid value,
    /// counted through all rows; in that case nothing is appended.
    pub(crate) fn push(
        &self,
        instructions: Instructions,
        values: &[f64],
        out: &mut FramedRows,
    ) -> std::result::Result<(), usize> {
        let start = out.z.len();
        let rows = FrameValues { cycle: &self.cycle, dims: self.dims(), values, out };
        if instructions.dispatch(rows) {
            return Ok(());
        }
        out.z.truncate(start);
        out.q.truncate(start);
        Err(self.first_invalid(values).unwrap_or(0))
    }

    /// Whether all values of whole rows are valid.
    pub(crate) fn are_valid(&self, instructions: Instructions, values: &[f64]) -> bool {
        instructions.dispatch(AreValid { cycle: &self.cycle, dims: self.dims(), values })
    }

    /// `1/s_j` and `2^−e_j`, as used in the conversion of rows.
    pub(crate) fn factors(&self) -> (Vec<f64>, Vec<f64>) {
        let d = self.dims();
        (self.cycle.inverse[..d].to_vec(), self.cycle.per_unit[..d].to_vec())
    }

    /// Index of the first invalid value of whole rows, counted through all rows.
    pub(crate) fn first_invalid(&self, values: &[f64]) -> Option<usize> {
        self.all_invalid(values).next()
    }

    /// Indices of the invalid values of whole rows, counted through all rows.
    pub(crate) fn all_invalid(&self, values: &[f64]) -> impl Iterator<Item = usize> {
        let limit = COORDINATE_LIMIT as f64;
        (0..values.len()).filter(move |&at| {
            let j = at % self.dims();
            let y = self.coordinate(j, values[at]) * self.cycle.per_unit[j];
            !(y.round_ties_even().abs() <= limit)
        })
    }

    /// The error for the invalid value of column `j`.
    pub(crate) fn invalid(&self, at: Place, j: usize, value: f64) -> Error {
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
        let mut out = FramedRows::default();
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
