//! Attribution: finds the segments that explain a change, by exact removal of one segment after the
//! other.
//!
//! Sketches of segments add up to the whole, so the rows without a segment are obtained by
//! subtraction. In each step, the segment whose removal leaves the smallest share of moved rows is
//! removed from both samples, until the remaining rows no longer differ.

use crate::comparison::compare::Comparison;
use crate::differences::found::Drift;
use crate::differences::params::DriftParams;
use crate::statistics::moved::{Moved, beyond_noise};
use nysketch_core::error::{Error, Result};
use nysketch_core::sketch::Sketch;
use nysketch_core::sums::Sum;
use serde::Serialize;

/// A segment of A and B.
#[derive(Debug, Clone)]
pub struct Segment {
    /// Name of the segment.
    pub name: String,
    /// Its rows in A.
    pub before: Sketch,
    /// Its rows in B.
    pub after: Sketch,
}

/// A removed segment.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Removed {
    /// Name of the segment.
    pub segment: String,
    /// Its shares of the rows of A and of B.
    pub shares: [f64; 2],
    /// Share of moved rows among the remaining rows.
    pub moved: Option<Moved>,
    /// p-value of the remaining rows; `None` if there are too few.
    pub p_value: Option<f64>,
}

/// The segments that explain a change.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Attribution {
    /// The comparison of all rows of A and B.
    pub whole: Drift,
    /// The removed segments, in order.
    pub removed: Vec<Removed>,
    /// Whether no drift remains without them; `None` if there was no drift, or too few rows remain
    /// for a test.
    pub explained: Option<bool>,
}

impl Comparison {
    /// Finds the segments that explain the drift between A and B, removing at most `most` segments.
    ///
    /// ```
    /// use nysketch::drift::{Comparison, DriftParams, Segment};
    /// use nysketch::{Mixture, PlanParams, Sketch, SketchParams, Table, plan_for};
    /// # fn main() -> nysketch::Result<()> {
    /// fn rows(day: u64, shift: f64) -> nysketch::Result<Table> {
    ///     let values = Mixture::new(2, 3, 3.0, 7)?.rows(day, 1500).values;
    ///     Table::unnamed(2, values.iter().map(|x| x + shift).collect())
    /// }
    /// let params = PlanParams::default().landmarks(50);
    /// let plan = std::sync::Arc::new(plan_for(&rows(0, 0.0)?, params)?.0);
    /// let mut segments = Vec::new();
    /// // Only the rows of FR changed.
    /// for (day, name, shift) in [(1, "AT", 0.0), (3, "FR", 0.5), (5, "DE", 0.0)] {
    ///     let [before, after] = [rows(day, 0.0)?, rows(day + 1, shift)?]
    ///         .map(|table| Sketch::of(&plan, &table, SketchParams::default(), &()));
    ///     segments.push(Segment { name: name.into(), before: before?, after: after? });
    /// }
    /// let params = DriftParams::default().draws(199);
    /// let found = Comparison::new(&plan)?.attribute(&segments, 10, &params)?;
    /// assert_eq!(found.explained, Some(true));
    /// assert_eq!(found.removed.len(), 1);
    /// assert_eq!(found.removed[0].segment, "FR");
    /// # Ok(())
    /// # }
    /// ```
    pub fn attribute(
        &self,
        segments: &[Segment],
        most: usize,
        params: &DriftParams,
    ) -> Result<Attribution> {
        if !self.plan().collect.cells {
            let why = "sketches with cells (`collect=cells`)";
            return Err(Error::parameter("segments", why, "none"));
        }
        let mut rest = [Sketch::empty(self.plan().clone()), Sketch::empty(self.plan().clone())];
        for segment in segments {
            rest[0].merge(&segment.before)?;
            rest[1].merge(&segment.after)?;
        }
        let totals = [rest[0].weight(), rest[1].weight()];
        let whole = self.of(&rest[0], &rest[1], params)?;
        let mut left_over = whole.drift.filter(|drift| *drift);
        let mut left: Vec<&Segment> = segments.iter().collect();
        let mut removed = Vec::new();
        while left_over == Some(true) && removed.len() < most && left.len() > 1 {
            let moved = left.iter().map(|segment| moved_without(&rest, segment)).enumerate();
            let moved = moved.min_by(|a, b| a.1.total_cmp(&b.1));
            let segment = left.remove(moved.map_or(0, |(at, _)| at));
            rest[0].subtract(&segment.before)?;
            rest[1].subtract(&segment.after)?;
            let some = rest.iter().all(|side| side.rows() > 0);
            let drift = if some { Some(self.of(&rest[0], &rest[1], params)?) } else { None };
            removed.push(Removed {
                segment: segment.name.clone(),
                shares: [segment.before.weight() / totals[0], segment.after.weight() / totals[1]],
                moved: drift.as_ref().and_then(|d| d.moved),
                p_value: drift.as_ref().and_then(|d| d.p_value),
            });
            left_over = drift.and_then(|d| d.drift);
        }
        Ok(Attribution { whole, removed, explained: left_over.map(|left| !left) })
    }
}

/// The share of moved rows without a segment.
fn moved_without(rest: &[Sketch; 2], segment: &Segment) -> f64 {
    let before = cells_without(&rest[0], &segment.before);
    beyond_noise(&before, &cells_without(&rest[1], &segment.after))
}

/// The rows of each cell of `whole` that are not in `part`.
fn cells_without(whole: &Sketch, part: &Sketch) -> Vec<f64> {
    let rows = whole.sums()[Sum::CellRows].iter().zip(&part.sums()[Sum::CellRows]);
    rows.map(|(all, part)| (all - part) as f64).collect()
}
