//! The bounds of a private plan. Every row is clipped to them, so that the maximum effect of a row
//! on the sums is known before any row is read.
//!
//! Clipping to the bounds and to the radius are part of the pass, row by row, in every engine.
//! FORMAT.md defines both steps, and docs/PRIVACY.md derives the maximum effect of one row on the
//! sums.

use crate::error::{Error, Result};
use crate::numeric::fixed::power_of_two;
use crate::numeric::points::Points;
use crate::plan::frame::Frame;

/// Number of bits of the largest coordinate of a row within the bounds. The columns of a private
/// plan share one unit: 2^(bits − 28) if the coordinates are at most 2^bits.
pub(crate) const BOUNDED_BITS: i32 = 28;

/// Maximum radius in units: twice the diagonal of a box of 2¹⁶ columns.
pub const MAX_RADIUS: u64 = 1 << (BOUNDED_BITS + 10);

/// Maximum coordinate of a row within the bounds, in units.
pub(crate) const MAX_REACH: u64 = 1 << (BOUNDED_BITS + 1);

/// Maximum coordinate of a landmark, in units.
pub(crate) const MAX_ANCHOR: f64 = (1u64 << (BOUNDED_BITS + 2)) as f64;

/// The expected form of the bounds, for messages.
const PAIRS: &str = "two numbers for each column, the lower one first";

/// Maximum number of rows per person: its square times that of a radius is far below the largest
/// integers.
const MOST_ROWS_PER_PERSON: u64 = 1 << 20;

/// The people whom a private plan protects, instead of single rows: a person is all rows with the
/// same text in a column. At most a given number of rows of each person count, chosen by the
/// smallest hash.
///
/// ```
/// let people = nysketch_core::People::new("user_id", 10).unwrap();
/// assert_eq!(people.to_string(), "all rows of a 'user_id', of which 10 count");
/// assert!(nysketch_core::People::new("user_id", 0).is_err());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct People {
    /// The column that identifies the person of a row.
    pub column: String,
    /// Maximum number of rows per person in one sketch.
    pub rows: u64,
}

impl People {
    /// Protects all rows with the same text in `column`, of which at most `rows` count.
    pub fn new(column: impl Into<String>, rows: u64) -> Result<Self> {
        let column = column.into();
        if column.is_empty() {
            return Err(Error::parameter("`max_rows_per`", "a column with a name", "none"));
        }
        if !(1..=MOST_ROWS_PER_PERSON).contains(&rows) {
            let expected = format!("between 1 and {MOST_ROWS_PER_PERSON} rows");
            return Err(Error::parameter("`max_rows_per`", expected, rows));
        }
        Ok(People { column, rows })
    }
}

impl std::fmt::Display for People {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let count = if self.rows == 1 { "counts" } else { "count" };
        write!(f, "all rows of a '{}', of which {} {count}", self.column, self.rows)
    }
}

/// The bounds of a private plan, to which rows are clipped.
#[derive(Debug, Clone, PartialEq)]
pub struct Private {
    /// Minimum of each column after its step; smaller values are raised to it.
    pub low: Vec<f64>,
    /// Maximum of each column after its step; larger values are lowered to it.
    pub high: Vec<f64>,
    /// Maximum distance from the landmark of its cell at which a row counts unchanged in the sums
    /// of the cell, in units of the coordinates; 0 if cells are not kept.
    pub radius: u64,
    /// The privacy cost of the plan itself, ρ in units of 2⁻⁵⁶: the cost of the releases from which
    /// it was computed.
    pub spent: u64,
    /// The people whom the plan protects; `None` protects single rows.
    pub people: Option<People>,
}

impl Private {
    /// Returns a finite `x` clipped to the bounds of column j. A value that is not finite is
    /// unchanged and makes its row invalid.
    #[inline]
    pub(crate) fn bounded(&self, j: usize, x: f64) -> f64 {
        if !x.is_finite() {
            x
        } else if x < self.low[j] {
            self.low[j]
        } else if x > self.high[j] {
            self.high[j]
        } else {
            x
        }
    }

    /// Whether a row has a number beyond the bounds.
    pub(crate) fn is_beyond(&self, row: &[f64]) -> bool {
        row.iter().enumerate().any(|(j, x)| *x < self.low[j] || *x > self.high[j])
    }

    /// Clips complete rows to the bounds.
    pub(crate) fn bound_rows(&self, values: &[f64], out: &mut Vec<f64>) {
        out.clear();
        for row in values.chunks_exact(self.low.len()) {
            out.extend(row.iter().enumerate().map(|(j, x)| self.bounded(j, *x)));
        }
    }

    /// Clips the integer coordinates `q` of a row to the radius around the anchor of its cell:
    /// `u = q − anchor` becomes `trunc(u · R/√s)` if `s = Σu²`, summed in order, is larger than R².
    /// Coordinates have at most 31 bits, so the differences are exact.
    #[inline]
    pub(crate) fn within_radius(&self, anchor: &[f64], q: &mut [f64]) {
        let radius = self.radius as f64;
        let square: f64 = q.iter().zip(anchor).fold(0.0, |s, (q, a)| s + (q - a) * (q - a));
        if square > radius * radius {
            let factor = radius / square.sqrt();
            for (q, a) in q.iter_mut().zip(anchor) {
                *q = a + ((*q - a) * factor).trunc();
            }
        }
    }

    /// Returns the largest `|q_j|` of a row within the bounds, for each column:
    ///
    /// ```text
    /// r_j = max(|q_j(low_j)|, |q_j(high_j)|) ,   q_j(x) = round((x − c_j)·(1/s_j)·2^−e)
    /// ```
    ///
    /// Each step of `q_j` is a correctly rounded operation that is monotone in x, so no x between
    /// the bounds has a larger value. Bounds beyond `MAX_REACH` units are an error; the
    /// comparison uses doubles, before the conversion to integers.
    pub fn reach(&self, frame: &Frame, columns: &[String]) -> Result<Vec<u64>> {
        let d = frame.dims();
        if [self.low.len(), self.high.len(), columns.len(), frame.exponent.len()] != [d; 4] {
            return Err(Error::parameter("`bounds`", PAIRS, "others"));
        }
        (0..d).map(|j| self.reach_of(frame, columns, j)).collect()
    }

    fn reach_of(&self, frame: &Frame, columns: &[String], j: usize) -> Result<u64> {
        let (centre, scale, exponent) = (frame.centre[j], frame.scale[j], frame.exponent[j]);
        let mut reach = 0;
        for (name, bound) in [("low", self.low[j]), ("high", self.high[j])] {
            let y = (bound - centre) * (1.0 / scale);
            let q = (y * power_of_two(-exponent)).round_ties_even().abs();
            // The negated comparison also fails for NaN.
            if !(q <= MAX_REACH as f64) {
                let farthest = MAX_REACH as f64 * power_of_two(exponent) * scale;
                let expected = format!(
                    "at most {farthest:.3e} away from {centre} for '{}', whose scale is {scale}; \
                     give the column a wider scale, or narrower bounds",
                    columns[j],
                );
                return Err(Error::parameter("`bounds`", expected, format!("{name} = {bound}")));
            }
            // An integer of at most 2²⁹.
            reach = reach.max(q as u64);
        }
        Ok(reach)
    }

    /// Returns the radius in the coordinates of the frame.
    pub fn radius_in(&self, frame: &Frame) -> f64 {
        self.radius as f64 * power_of_two(frame.exponent[0])
    }

    /// Checks every rule of FORMAT.md for the bounds of a private plan.
    pub(crate) fn check(&self, frame: &Frame, columns: &[String], cells: bool) -> Result<()> {
        let d = frame.dims();
        let ordered = |(low, high): (&f64, &f64)| low.is_finite() && high.is_finite() && low < high;
        if self.low.len() != d
            || self.high.len() != d
            || !self.low.iter().zip(&self.high).all(ordered)
        {
            return Err(Error::parameter("`bounds`", PAIRS, "others"));
        }
        if frame.exponent.iter().any(|e| *e != frame.exponent[0]) {
            return Err(Error::parameter("the frame", "one unit for all columns", "several"));
        }
        if self.reach(frame, columns)?.iter().all(|reach| *reach == 0) {
            let expected = "at least one unit of the frame from the centre of a column";
            return Err(Error::parameter("`bounds`", expected, "all nearer"));
        }
        if let Some(people) = &self.people {
            People::new(&people.column, people.rows)?;
        }
        if (self.radius > 0) != cells || self.radius > MAX_RADIUS {
            let expected = format!("between 1 and {MAX_RADIUS} units, where cells are kept");
            return Err(Error::parameter("`radius`", expected, self.radius));
        }
        Ok(())
    }
}

/// Returns the landmarks in integer units of the coordinates; a release centres the sums of cells
/// at these points.
pub(crate) fn anchors(landmarks: &Points, frame: &Frame) -> Vec<f64> {
    let whole = |(at, z): (usize, &f32)| {
        let e = frame.exponent[at % frame.dims()];
        (f64::from(*z) * power_of_two(-e)).round_ties_even()
    };
    landmarks.data().iter().enumerate().map(whole).collect()
}

/// Maximum number of landmarks: entries of K⁺ are below 2²⁴ and entries of a vector at most 2²⁷, so
/// that sums of 2¹³ products are below 2⁶⁴.
pub const MOST_LANDMARKS: usize = 1 << 13;

/// Maximum number of pairs of landmarks times columns: every pair is compared whenever a release is
/// read.
pub const MOST_COMPARED: u128 = 1 << 33;

/// Maximum number of pairs of landmarks times bandwidths: the matrices need half as many words of
/// four bytes.
pub const MOST_VALUES: u128 = 1 << 26;

/// Refuses plans whose sensitivity would need too much time or memory.
pub fn check_work(landmarks: usize, columns: usize, bandwidths: usize) -> Result<()> {
    let pairs = (landmarks as u128).pow(2);
    let most =
        (MOST_COMPARED / columns.max(1) as u128).min(MOST_VALUES / bandwidths.max(1) as u128);
    if pairs <= most && landmarks <= MOST_LANDMARKS {
        return Ok(());
    }
    let expected = format!(
        "at most {} with kernel sums of {columns} columns and {bandwidths} bandwidths, where \
         private",
        most.isqrt().min(MOST_LANDMARKS as u128)
    );
    Err(Error::parameter("`landmarks`", expected, landmarks))
}
