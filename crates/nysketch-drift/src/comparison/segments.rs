//! Which segments explain a change: by taking them out, one after the other, exactly.
//!
//! Sketches of segments add up to the whole, so the rows without a segment are a subtraction. Of the segments that are left, the
//! one without which the least rows would have to move is taken out of both samples next, until what is left does not
//! differ any more.

use crate::comparison::compare::Comparison;
use crate::differences::found::Drift;
use crate::differences::params::DriftParams;
use crate::statistics::moved::{Moved, beyond_noise};
use nysketch_core::error::{Error, Result};
use nysketch_core::sketch::Sketch;
use nysketch_core::sums::Sum;
use serde::Serialize;

/// A segment in A and B.
#[derive(Debug, Clone)]
pub struct Segment {
    /// Its name.
    pub name: String,
    /// Its rows in A.
    pub before: Sketch,
    /// Its rows in B.
    pub after: Sketch,
}

/// A segment that was taken out.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Removed {
    /// Its name.
    pub segment: String,
    /// Its share of the rows of A and of B.
    pub shares: [f64; 2],
    /// How much moves among the rows that are left.
    pub moved: Option<Moved>,
    /// The p-value of the rows that are left; none where too few are.
    pub p_value: Option<f64>,
}

/// How segments explain a change.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Attribution {
    /// All rows of A and B.
    pub whole: Drift,
    /// The segments that were taken out, in order.
    pub removed: Vec<Removed>,
    /// Whether no drift is left without them; none where there was none, or too few rows are left to tell.
    pub explained: Option<bool>,
}

impl Comparison {
    /// Which segments explain the drift between A and B, taking out `most` of them at most.
    ///
    /// ```
    /// use nysketch::drift::{Comparison, DriftParams, Segment};
    /// use nysketch::{Mixture, PlanParams, Sketch, SketchParams, Table, plan_for};
    /// # fn main() -> nysketch::Result<()> {
    /// let rows = |day: u64, shift: f64| -> nysketch::Result<Table> {
    ///     let values = Mixture::new(2, 3, 3.0, 7)?.rows(day, 1500).values;
    ///     Table::unnamed(2, values.iter().map(|x| x + shift).collect())
    /// };
    /// let plan = std::sync::Arc::new(plan_for(&rows(0, 0.0)?, PlanParams::default().landmarks(50))?.0);
    /// let sketch = |day, shift| Sketch::of(&plan, &rows(day, shift)?, SketchParams::default(), &());
    /// // Only the rows of FR moved.
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

/// The share of the rows that moves without a segment.
fn moved_without(rest: &[Sketch; 2], segment: &Segment) -> f64 {
    let cells = |whole: &Sketch, part: &Sketch| -> Vec<f64> {
        let rows = whole.sums()[Sum::CellRows].iter().zip(&part.sums()[Sum::CellRows]);
        rows.map(|(all, part)| (all - part) as f64).collect()
    };
    beyond_noise(&cells(&rest[0], &segment.before), &cells(&rest[1], &segment.after))
}
