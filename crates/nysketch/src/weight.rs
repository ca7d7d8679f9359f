//! Row weights: integers, so that a row of weight 2 is the row twice, exactly.

use crate::error::{Error, Result};
use crate::rows::{Block, Invalid};

/// The column that holds the weights and the unit they are multiples of.
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
