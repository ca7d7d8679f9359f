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
    /// let rows = |day: u64, shift: f64| -> nysketch::Result<Table> {
    ///     let values = Mixture::new(2, 3, 3.0, 7)?.rows(day, 1500).values;
    ///     Table::unnamed(2, values.iter().map(|x| x + shift).collect())
    /// };
    /// let params = PlanParams::default().landmarks(50);
    /// let plan = std::sync::Arc::new(plan_for(&rows(0, 0.0)?, params)?.plan);
    /// let sketch = |day, shift| Sketch::of(&plan, &rows(day, shift)?, SketchParams::default(), &());
    /// // Only the rows of FR changed.
    /// let segments = [
    ///     Segment { name: "AT".into(), before: sketch(1, 0.0)?, after: sketch(2, 0.0)? },
    ///     Segment { name: "FR".into(), before: sketch(3, 0.0)?, after: sketch(4, 0.5)? },
    ///     Segment { name: "DE".into(), before: sketch(5, 0.0)?, after: sketch(6, 0.0)? },
    /// ];
    /// let found = Comparison::new(&plan)?.attribute(&segments, 10, &DriftParams::default().draws(199))?;
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
        let sum = |side: fn(&Segment) -> &Sketch| -> Result<Sketch> {
            let mut sum = Sketch::empty(self.plan().clone());
            segments.iter().try_for_each(|s| sum.merge(side(s)))?;
            Ok(sum)
        };
        let mut rest = [sum(|s| &s.before)?, sum(|s| &s.after)?];
        let totals = [rest[0].weight(), rest[1].weight()];
        let whole = self.of(&rest[0], &rest[1], params)?;
        let mut left_over = whole.drift.filter(|drift| *drift);
        let mut left: Vec<&Segment> = segments.iter().collect();
        let mut removed = Vec::new();
        while left_over == Some(true) && removed.len() < most && left.len() > 1 {
            let without = |s: &Segment| moved_without(&rest, s);
            let least = |a: &(usize, f64), b: &(usize, f64)| a.1.total_cmp(&b.1);
            let moved = left.iter().map(|s| without(s)).enumerate().min_by(least);
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
    let cells = |whole: &Sketch, part: &Sketch| -> Vec<f64> {
        let rows = whole.sums()[Sum::CellRows].iter().zip(&part.sums()[Sum::CellRows]);
        rows.map(|(all, part)| (all - part) as f64).collect()
    };
    beyond_noise(&cells(&rest[0], &segment.before), &cells(&rest[1], &segment.after))
}
