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

use crate::error::{Error, Place, Result};
use crate::fixed::{COORDINATE_BITS, COORDINATE_LIMIT, power_of_two};
use crate::simd::Instructions;
use pulp::{Simd, WithSimd};

/// Largest |y|, as a power of two, that keeps squared distances finite in f32 for up to 2¹⁶ columns.
pub const MAX_RANGE_BITS: i32 = 54;
/// Least spread of the widest column that keeps squared distances out of the denormal range.
pub const MIN_SPREAD_BITS: i32 = -40;
/// What a column may be divided by.
pub const SCALES: std::ops::RangeInclusive<f64> = 1e-50..=1e100;
/// The largest magnitude of a centre. With [`SCALES`] and [`MAX_RANGE_BITS`], values, variances and their sums over all
/// rows are finite in the units of the table.
pub const MAX_CENTRE: f64 = 1e150;
/// Exponents that keep every coordinate and its square well inside double precision.
pub const EXPONENTS: std::ops::RangeInclusive<i32> =
    LEAST_RANGE_BITS - COORDINATE_BITS..=MAX_RANGE_BITS - COORDINATE_BITS;
const LEAST_RANGE_BITS: i32 = -200;
/// How far beyond the largest value seen while planning a later row may lie: 2¹⁶ times.
const HEADROOM_BITS: i32 = 16;

/// 1.5 · 2⁵²: adding it rounds |x| < 2⁵¹ to the nearest whole number, ties to even, and leaves that
/// number in the low bits.
pub const WHOLE: f64 = 6_755_399_441_055_744.0;

/// Centre, scale and fixed-point unit of every column: how a plan turns a row into coordinates.
///
/// ```
/// use nysketch::{PlanParams, Scale, Table, plan_for};
/// # fn main() -> nysketch::Result<()> {
/// let table = Table::unnamed(1, vec![10.0, 20.0, 30.0])?;
/// let (plan, _) = plan_for(&table, PlanParams::default().scale(Scale::Standard))?;
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
    /// `s_j`, in the table's units; 1 where columns are not scaled.
    pub scale: Vec<f64>,
    /// `e_j`: a quantised coordinate counts units of `2^e_j`.
    pub exponent: Vec<i32>,
    /// What a value is worked on with, for each column in turn and then the first ones again, so that
    /// rows can be taken as one long line of values, up to [`PADDING`] at a time.
    cycle: Cycle,
}

#[derive(Debug, Clone, PartialEq)]
struct Cycle {
    /// `c_j`.
    centre: Vec<f64>,
    /// `1/s_j`, so that a value costs no division.
    inverse: Vec<f64>,
    /// `2^−e_j`.
    per_unit: Vec<f64>,
}

/// Most values that are worked on together: whole vectors of any processor. Loops over the columns of
/// a row read that many beyond its end; what is computed there is never looked at.
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
    /// Which numbers are there, where some are not: see [`Rows`](crate::kernel::row::Rows).
    pub present: Vec<f32>,
    /// `y` of the rows framed last.
    y: Vec<f64>,
}

impl FramedRows {
    /// Number of rows.
    pub fn rows(&self, dims: usize) -> usize {
        self.z.len() / dims
    }

    /// Forgets all rows.
    pub fn clear(&mut self) {
        self.z.clear();
        self.q.clear();
        self.codes.clear();
        self.present.clear();
    }

    /// Appends row `i` of another.
    pub fn copy_row(&mut self, other: &FramedRows, i: usize, dims: usize, categories: usize) {
        self.z.extend_from_slice(&other.z[i * dims..(i + 1) * dims]);
        self.q.extend_from_slice(&other.q[i * dims..(i + 1) * dims]);
        self.codes.extend_from_slice(&other.codes[i * categories..(i + 1) * categories]);
        if !other.present.is_empty() {
            self.present.extend_from_slice(&other.present[i * dims..(i + 1) * dims]);
        }
    }
}

/// Rows as one long line of values.
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
            // Lanes without a value hold the centre of their column, which is valid.
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

/// Whether all values of rows as one long line are valid.
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
        let around = |value: &dyn Fn(usize) -> f64| {
            let columns = (0..centre.len()).cycle();
            columns.take(centre.len() + PADDING).map(value).collect()
        };
        Cycle {
            centre: around(&|j| centre[j]),
            inverse: around(&|j| 1.0 / scale[j]),
            per_unit: around(&|j| power_of_two(-exponent[j])),
        }
    }
    /// `y` and `q` of the values of a vector, the first of which is of this column; lanes of `invalid`
    /// become 1 where a value is.
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
        // The factor is a power of two, so the product is exact and is rounded once.
        let q = simd.mul_add_f64s(y, vector_at::<S>(&self.per_unit, column), whole);
        let q = simd.sub_f64s(q, whole);
        // Written so that NaN fails.
        let limit = simd.splat_f64s(COORDINATE_LIMIT as f64);
        let valid = simd.less_than_or_equal_f64s(simd.abs_f64s(q), limit);
        *invalid = simd.select_f64s(valid, *invalid, simd.splat_f64s(1.0));
        (y, q)
    }
}

/// The vector that starts at a place.
#[inline(always)]
fn vector_at<S: Simd>(values: &[f64], at: usize) -> S::f64s {
    S::as_simd_f64s(&values[at..][..S::F64_LANES]).0[0]
}

impl Frame {
    /// Number of columns.
    pub fn dims(&self) -> usize {
        self.centre.len()
    }

    /// Chooses the unit of each column from the largest |y| seen, with room for larger ones.
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
            // What a model can hold, too.
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
    pub(crate) fn from_parts(centre: Vec<f64>, scale: Vec<f64>, exponent: Vec<i32>) -> Self {
        let cycle = Cycle::new(&centre, &scale, &exponent);
        Frame { centre, scale, exponent, cycle }
    }

    /// Checks every rule that FORMAT.md has for a frame.
    pub(crate) fn check(&self, dims: usize) -> Result<()> {
        let lengths = [self.centre.len(), self.scale.len(), self.exponent.len()];
        let odd = |values: &[f64], usable: &dyn Fn(&f64) -> bool| {
            values.iter().find(|x| !usable(x)).map(f64::to_string)
        };
        let exponent = self.exponent.iter().find(|e| !EXPONENTS.contains(e));
        let (expected, got) = if lengths != [dims; 3] {
            ("one centre, scale and exponent per column", format!("{lengths:?}"))
        } else if let Some(got) = odd(&self.centre, &|c| c.abs() <= MAX_CENTRE) {
            ("centres between -1e150 and 1e150", got)
        } else if let Some(got) = odd(&self.scale, &|s| SCALES.contains(s)) {
            ("scales between 1e-50 and 1e100", got)
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

    /// Narrowed coordinates of a row that is known to be finite.
    #[doc(hidden)]
    pub fn narrow(&self, row: &[f64], z: &mut Vec<f32>) {
        z.extend(row.iter().enumerate().map(|(j, &x)| self.coordinate(j, x) as f32));
    }

    /// Coordinates of a row in double precision.
    pub fn coordinates(&self, row: &[f64]) -> Vec<f64> {
        row.iter().enumerate().map(|(j, &x)| self.coordinate(j, x)).collect()
    }

    /// The point in the table's units that has these narrowed coordinates.
    pub fn widen(&self, z: &[f32]) -> Vec<f64> {
        self.widen_coordinates(&z.iter().map(|z| f64::from(*z)).collect::<Vec<f64>>())
    }

    /// `Σ_j log s_j`: what a log density in coordinates has more than that in the table's units.
    pub(crate) fn log_scale(&self) -> f64 {
        self.scale.iter().map(|s| s.ln()).sum()
    }

    /// The point in the table's units that has these coordinates.
    pub fn widen_coordinates(&self, y: &[f64]) -> Vec<f64> {
        y.iter().enumerate().map(|(j, y)| self.centre[j] + self.scale[j] * y).collect()
    }

    /// Appends the coordinates of whole rows. `Err` is where the first invalid value is, counted
    /// through all rows; then nothing is appended.
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

    /// `1/s_j` and `2^−e_j`, as rows are brought into coordinates.
    pub(crate) fn factors(&self) -> (Vec<f64>, Vec<f64>) {
        let d = self.dims();
        (self.cycle.inverse[..d].to_vec(), self.cycle.per_unit[..d].to_vec())
    }

    /// Where the first invalid value of whole rows is, counted through all of them.
    pub(crate) fn first_invalid(&self, values: &[f64]) -> Option<usize> {
        self.all_invalid(values).next()
    }

    /// Where the invalid values of whole rows are, counted through all of them.
    pub(crate) fn all_invalid(&self, values: &[f64]) -> impl Iterator<Item = usize> {
        let limit = COORDINATE_LIMIT as f64;
        (0..values.len()).filter(move |&at| {
            let j = at % self.dims();
            let y = self.coordinate(j, values[at]) * self.cycle.per_unit[j];
            !(y.round_ties_even().abs() <= limit)
        })
    }

    /// Why the value of column j is invalid.
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
