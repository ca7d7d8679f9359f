//! Row weights: integers, so that a row of weight 2 counts exactly as the row twice.

use crate::error::{Error, Result};
use crate::rows::{Block, Invalid};

/// The column of row weights, and the unit that weights are rounded to.
///
/// ```
/// use nysketch_core::{PlanParams, Sketch, SketchParams, Table, plan_for};
/// # fn main() -> nysketch_core::Result<()> {
/// let table = Table::unnamed(1, vec![1.0, 2.0, 5.0])?.with_weights(vec![0.5, 2.0, 1.5])?;
/// let plan = plan_for(&table, PlanParams::default().weights("w", 0.5))?.plan;
/// let sketch = Sketch::of(&plan.into(), &table, SketchParams::default(), &())?;
/// // 1 + 4 + 3 units.
/// assert_eq!(sketch.rows(), 8);
/// assert_eq!(sketch.weight(), 4.0);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Weighting {
    /// Column name.
    pub column: String,
    /// The weight that counts as one row.
    pub unit: f64,
}

impl Weighting {
    /// Checks that the unit is a positive number.
    pub(crate) fn check(&self) -> Result<()> {
        check_unit(self.unit)
    }

    /// The weight in whole units, 0 … 2³²−1, rounded to nearest, ties to even, independently of
    /// other rows. A missing or infinite weight makes the row invalid (`None` if such rows are
    /// skipped). A weight that is negative or too large is an error.
    pub(crate) fn units(
        &self,
        weight: f64,
        invalid: Invalid,
        block: &Block,
        row: u64,
    ) -> Result<Option<u32>> {
        if !is_usable(weight, &self.column, invalid, block, row)? {
            return Ok(None);
        }
        let units = (weight / self.unit).round_ties_even();
        if !(0.0..=f64::from(u32::MAX)).contains(&units) || weight < 0.0 {
            let at = block.place(row, &self.column);
            return Err(Error::BadWeight { at, value: weight, unit: self.unit });
        }
        Ok(Some(units as u32))
    }
}

/// Units with which total weights, times any variance, are finite.
const UNITS: std::ops::RangeInclusive<f64> = 1e-50..=1e50;

fn check_unit(unit: f64) -> Result<()> {
    if !UNITS.contains(&unit) {
        return Err(Error::parameter("`weight_unit`", "between 1e-50 and 1e50", unit));
    }
    Ok(())
}

/// Whether a weight is finite. If it is not, the row is skipped or refused.
fn is_usable(weight: f64, column: &str, invalid: Invalid, block: &Block, row: u64) -> Result<bool> {
    match invalid {
        _ if weight.is_finite() => Ok(true),
        Invalid::Skip => Ok(false),
        Invalid::Refuse => Err(Error::NonFinite { at: block.place(row, column), value: weight }),
    }
}

/// Parameters of row weights. The unit may be chosen from the weights.
#[derive(Debug, Clone, PartialEq)]
pub struct WeightParams {
    /// Column name.
    pub column: String,
    /// The weight that counts as one row. `None` chooses it from the weights.
    pub unit: Option<f64>,
}

/// Range of the total number of units when the unit is chosen, and the number of units per row. A
/// sketch holds 2³⁸ units, so a plan from a small table leaves room for a thousand times as many
/// rows, and one from a large table for sixteen times as many.
const MIN_UNITS: f64 = (1u64 << 28) as f64;
const MAX_UNITS: f64 = (1u64 << 34) as f64;
const UNITS_PER_ROW: f64 = (1u64 << 10) as f64;
/// Whole weights keep the unit 1 up to this total. A row counts fewer than 2³² units and a sketch
/// at most 2³⁸.
const WHOLE_TOTAL: f64 = (1u64 << 37) as f64;

impl WeightParams {
    pub(crate) fn check(&self) -> Result<()> {
        self.unit.map_or(Ok(()), check_unit)
    }

    /// The weight of a row while planning: in whole units if the unit is known, otherwise as it is
    /// in the table.
    pub(crate) fn count(
        &self,
        weight: f64,
        invalid: Invalid,
        block: &Block,
        row: u64,
    ) -> Result<Option<f64>> {
        if let Some(unit) = self.unit {
            let weighting = Weighting { column: self.column.clone(), unit };
            return Ok(weighting.units(weight, invalid, block, row)?.map(f64::from));
        }
        if !is_usable(weight, &self.column, invalid, block, row)? {
            return Ok(None);
        }
        if weight >= 0.0 {
            Ok(Some(weight))
        } else {
            Err(Error::NegativeWeight { at: block.place(row, &self.column), value: weight })
        }
    }

    /// The weighting of a plan for this number of rows with these weights. A chosen unit is 1 if
    /// all weights are whole numbers. Otherwise it is a power of two small enough that rounding is
    /// negligible.
    pub(crate) fn weighting(&self, rows: u64, total: f64, range: WeightRange) -> Weighting {
        let whole = range.whole && range.largest <= f64::from(u32::MAX) && total < WHOLE_TOTAL;
        let unit = match self.unit {
            Some(unit) => unit,
            None if whole => 1.0,
            None => {
                let units = (rows as f64 * UNITS_PER_ROW).clamp(MIN_UNITS, MAX_UNITS);
                let unit = (total / units).max(range.largest / f64::from(1u32 << 31));
                unit.log2().ceil().exp2()
            }
        };
        Weighting { column: self.column.clone(), unit }
    }
}

/// Range of the weights seen. Ranges of parts merge in any order.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct WeightRange {
    /// The largest weight.
    pub largest: f64,
    /// Whether all weights are whole numbers.
    pub whole: bool,
}

impl Default for WeightRange {
    fn default() -> Self {
        WeightRange { largest: 0.0, whole: true }
    }
}

impl WeightRange {
    pub fn add(&mut self, weight: f64) {
        self.merge(WeightRange { largest: weight, whole: weight == weight.floor() });
    }

    pub fn merge(&mut self, other: WeightRange) {
        self.largest = self.largest.max(other.largest);
        self.whole &= other.whole;
    }
}

/// Effect of rounding row weights to whole units.
///
/// A weight of many units changes by little, and up as often as down. A weight that changes by more
/// than a tenth is misrepresented. The lost share is the sum of these changes, relative to the
/// total of all weights.
///
/// ```
/// use nysketch_core::{PlanParams, Run, SketchParams, Table, plan_for};
/// # fn main() -> nysketch_core::Result<()> {
/// let table = Table::unnamed(1, vec![1.0, 2.0, 5.0])?.with_weights(vec![0.25, 2.0, 1.75])?;
/// for (unit, lost) in [(Some(1.0), 0.125), (None, 0.0)] {
///     let plan = plan_for(&table, PlanParams::default().weights("w", unit))?.plan;
///     let mut run = Run::new(plan.into());
///     run.finish(&table, SketchParams::default(), &())?;
///     assert_eq!(run.rounding().lost_share(), lost);
///     assert_eq!(run.rounding_note().is_some(), lost > 0.0);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Rounding {
    total: f64,
    lost: f64,
}

/// Relative change of a weight above which it counts as lost.
const COARSE: f64 = 0.1;
/// Lost share above which a note is printed.
const LITTLE: f64 = 1e-4;

impl Rounding {
    pub(crate) fn add(&mut self, weight: f64, rounded: f64) {
        let change = (weight - rounded).abs();
        self.total += weight;
        self.lost += if change > COARSE * weight { change } else { 0.0 };
    }

    /// Adds the effect of rounding other weights.
    pub(crate) fn merge(&mut self, other: Rounding) {
        self.total += other.total;
        self.lost += other.lost;
    }

    /// Sum of the changes of all weights that rounding changes by more than a tenth, relative to
    /// the total of all weights. Its last digits may depend on the order of the rows.
    pub fn lost_share(&self) -> f64 {
        if self.lost > 0.0 { self.lost / self.total } else { 0.0 }
    }

    /// A note for the user if the share is large enough to matter.
    pub fn note(&self, weighting: &Weighting) -> Option<String> {
        let share = self.lost_share();
        (share > LITTLE).then(|| {
            format!(
                "weights of column '{}' are rounded to multiples of {}, which changes the small ones \
                 by {:.2} % of the total weight; make the plan with a smaller `weight_unit`, or \
                 from all the weights without one",
                weighting.column,
                weighting.unit,
                100.0 * share
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(weights: &[f64]) -> f64 {
        let mut range = WeightRange::default();
        weights.iter().for_each(|w| range.add(*w));
        let params = WeightParams { column: "w".into(), unit: None };
        params.weighting(weights.len() as u64, weights.iter().sum(), range).unit
    }

    #[test]
    fn whole_weights_keep_the_unit_one_and_others_get_a_small_one() {
        assert_eq!(chosen(&[1.0, 0.0, 7.0]), 1.0);
        assert_eq!(chosen(&[1e12, 1.0]), 2f64.powi(12), "too large for units of 1");
        let few = chosen(&[0.5, 1.5]);
        assert_eq!(few, 2f64.powi(-27), "2²⁸ units in all");
        // 1,024 units per row, each of weight 1/2.
        assert_eq!(chosen(&vec![0.5; 1 << 20]), 2f64.powi(-11));
    }

    /// The rounding of ordinary weights is negligible for any number of rows.
    #[test]
    fn ordinary_weights_are_not_lost() {
        for rows in [10, 1000, 100_000, 3_000_000] {
            // Evenly spread over 0 … 1; the smallest is far below one unit.
            let weights = (0..rows).map(|i| (f64::from(i) + 0.01) / f64::from(rows));
            let unit = chosen(&weights.clone().collect::<Vec<_>>());
            let mut rounding = Rounding::default();
            weights.for_each(|w| rounding.add(w, (w / unit).round_ties_even() * unit));
            let weighting = Weighting { column: "w".into(), unit };
            assert_eq!(rounding.note(&weighting), None, "{rows}: {}", rounding.lost_share());
        }
    }

    /// Units of a weight in units of one half.
    fn units(weight: f64, invalid: Invalid) -> Result<Option<u32>> {
        let weighting = Weighting { column: "w".into(), unit: 0.5 };
        weighting.units(weight, invalid, &Block::default(), 1)
    }

    #[test]
    fn ties_go_to_even_and_negative_weights_are_refused() {
        for (weight, expected) in [(0.0, 0), (0.25, 0), (0.26, 1), (0.75, 2), (1.25, 2), (3.5, 7)] {
            assert_eq!(units(weight, Invalid::Refuse).unwrap(), Some(expected), "{weight}");
        }
        for weight in [-0.5, -1e-9, 2147483648.0] {
            assert!(
                matches!(units(weight, Invalid::Refuse), Err(Error::BadWeight { .. })),
                "{weight}"
            );
        }
        assert!(matches!(units(f64::NAN, Invalid::Refuse), Err(Error::NonFinite { .. })));
        assert_eq!(units(f64::NAN, Invalid::Skip).unwrap(), None);
    }
}
