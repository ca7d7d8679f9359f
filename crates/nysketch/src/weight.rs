//! Row weights: integers, so that a row of weight 2 is the row twice, exactly.

use crate::error::{Error, Result};
use crate::rows::{Block, Invalid};

/// The column that holds the weights and the unit they are multiples of.
///
/// ```
/// use nysketch::{PlanParams, Sketch, SketchParams, Table, plan_for};
/// # fn main() -> nysketch::Result<()> {
/// let table = Table::unnamed(1, vec![1.0, 2.0, 5.0])?.with_weights(vec![0.5, 2.0, 1.5])?;
/// let (plan, _) = plan_for(&table, PlanParams::default().weights("w", 0.5))?;
/// let sketch = Sketch::of(&plan.into(), &table, SketchParams::default(), &())?;
/// // 1 + 4 + 3 units.
/// assert_eq!(sketch.rows(), 8);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Weighting {
    /// Column name.
    pub column: String,
    /// One row of this weight counts as one.
    pub unit: f64,
}

impl Weighting {
    /// The unit is a positive number.
    pub(crate) fn check(&self) -> Result<()> {
        if !(self.unit > 0.0 && self.unit.is_finite()) {
            return Err(Error::parameter("`weight_unit`", "a positive number", self.unit));
        }
        Ok(())
    }

    /// The weight in whole units, 0 … 2³²−1, where it is within 1e-6 of them. A missing or infinite
    /// weight makes the row invalid (`None` where such rows are skipped); any other weight that is
    /// not a whole number of units is an error.
    pub(crate) fn units(
        &self,
        weight: f64,
        invalid: Invalid,
        block: &Block,
        row: u64,
    ) -> Result<Option<u32>> {
        let at = || block.place(row, &self.column);
        if !weight.is_finite() {
            return match invalid {
                Invalid::Skip => Ok(None),
                Invalid::Refuse => Err(Error::NonFinite { at: at(), value: weight }),
            };
        }
        let ratio = weight / self.unit;
        let units = ratio.round();
        let whole = (ratio - units).abs() <= 1e-6;
        if !(whole && (0.0..=f64::from(u32::MAX)).contains(&units)) {
            return Err(Error::BadWeight { at: at(), value: weight, unit: self.unit });
        }
        Ok(Some(units as u32))
    }
}
