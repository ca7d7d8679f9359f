//! Row weights: integers, so that a row of weight 2 is the row twice, exactly.

use crate::error::{Error, Result};
use crate::rows::Block;

/// The column that holds the weights and the unit they are multiples of.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Weighting {
    /// Column name.
    pub column: String,
    /// One row of this weight counts as one.
    pub unit: f64,
}

impl Weighting {
    /// The unit is a positive number.
    pub fn check(&self) -> Result<()> {
        if !(self.unit > 0.0 && self.unit.is_finite()) {
            return Err(Error::parameter(
                "--weight-unit",
                "a positive number",
                self.unit,
            ));
        }
        Ok(())
    }

    /// The weight in whole units; an error unless it is one of 0 … 2³²−1 to a relative 1e-9.
    pub fn units(&self, weight: f64, block: &Block, row: u64) -> Result<u32> {
        let ratio = weight / self.unit;
        let units = ratio.round();
        let whole = (ratio - units).abs() <= 1e-9 * ratio.abs().max(1.0);
        if !(whole && (0.0..=f64::from(u32::MAX)).contains(&units)) {
            return Err(Error::BadWeight {
                at: block.cell(row, &self.column),
                value: weight,
                unit: self.unit,
            });
        }
        Ok(units as u32)
    }
}
