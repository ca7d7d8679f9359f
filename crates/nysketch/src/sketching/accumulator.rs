//! What happens to a row: from a block of doubles to exact sums.
//!
//! The accumulator decides what becomes of invalid rows and turns weights into whole units; an
//! [`Engine`] adds the rest to the sums. It is frozen into a [`Sketch`] before anything can read it.

use crate::engine::{Engine, EngineKind, has_enough};
use crate::error::{Error, Result};
use crate::plan::Plan;
use crate::rows::{Block, Invalid, Losses};
use crate::sketch::Sketch;
use crate::sums::{Sum, Sums};
use crate::weight::{Rounding, Weighting};
use std::ops::Range;
use std::sync::Arc;

/// Sums in the making, of one thread.
///
/// ```
/// use nysketch::{Accumulator, Block, EngineKind, Invalid, PlanParams, Table, plan_for};
/// # fn main() -> nysketch::Result<()> {
/// let plan = plan_for(&Table::unnamed(2, vec![0.0, 1.0, 2.0, 3.0])?, PlanParams::default())?.0;
/// let mut sums = Accumulator::new(std::sync::Arc::new(plan), EngineKind::Cpu);
/// let block = Block { values: vec![0.5, 0.5, 1.5, 2.5], columns: 2, ..Block::default() };
/// sums.push(&block, Invalid::Refuse)?;
/// assert_eq!(sums.freeze()?.rows(), 2);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Accumulator {
    plan: Arc<Plan>,
    engine: Box<dyn Engine>,
    sums: Sums,
    /// Weights of the rows at hand in whole units.
    weights: Vec<u32>,
    losses: Losses,
    rounding: Rounding,
}

impl Accumulator {
    /// An empty accumulator.
    pub fn new(plan: Arc<Plan>, engine: EngineKind) -> Self {
        Accumulator {
            engine: engine.start(&plan),
            sums: Sums::zero(&plan),
            plan,
            weights: Vec::new(),
            losses: Losses::default(),
            rounding: Rounding::default(),
        }
    }

    /// What rounding the weights of the rows so far has changed.
    pub fn rounding(&self) -> Rounding {
        self.rounding
    }

    /// Adds the rows of a block. On an error the accumulator must not be used further.
    pub fn push(&mut self, block: &Block, invalid: Invalid) -> Result<()> {
        self.push_rows(block, std::iter::once(0..block.len()), invalid)
    }

    /// Adds some rows of a block, counted from 0.
    pub(super) fn push_rows(
        &mut self,
        block: &Block,
        rows: impl Iterator<Item = Range<usize>>,
        invalid: Invalid,
    ) -> Result<()> {
        if self.plan.weighting.is_some() && block.weights.len() != block.len() {
            let expected = "one weight per row, as the plan asks for";
            return Err(Error::parameter("weights", expected, block.weights.len()));
        }
        self.check_codes(block)?;
        let plan = self.plan.clone();
        for rows in rows {
            match &plan.weighting {
                None => self.push_run(block, rows, invalid)?,
                Some(weighting) => self.push_weighted(weighting, block, rows, invalid)?,
            }
        }
        Ok(())
    }

    /// Refuses levels that the plan does not have.
    fn check_codes(&self, block: &Block) -> Result<()> {
        let categories = self.plan.categories();
        let c = categories.len();
        let known = |(i, code): (usize, &u32)| (*code as usize) < categories[i % c].len();
        if block.codes.len() == block.len() * c
            && (c == 0 || block.codes.iter().enumerate().all(known))
        {
            return Ok(());
        }
        Err(Error::parameter("codes", "levels of the plan's categories", "others"))
    }

    /// Adds rows between those whose weight is invalid.
    fn push_weighted(
        &mut self,
        weighting: &Weighting,
        block: &Block,
        rows: Range<usize>,
        invalid: Invalid,
    ) -> Result<()> {
        let mut start = rows.start;
        self.weights.clear();
        for i in rows.clone() {
            let number = block.first_row + i as u64;
            match weighting.units(block.weights[i], invalid, block, number) {
                Ok(Some(units)) => {
                    self.rounding.add(block.weights[i], f64::from(units) * weighting.unit);
                    self.weights.push(units);
                }
                refused => {
                    // An invalid row before this one is the error to report, and an invalid value of
                    // this one before its weight.
                    self.push_run(block, start..i, invalid)?;
                    if self.is_valid(block, i) {
                        refused?;
                    } else if invalid == Invalid::Refuse && !self.lacks_too_much(block, i) {
                        return Err(self.why_invalid(block, i));
                    }
                    self.skip(block, i);
                    self.weights.clear();
                    start = i + 1;
                }
            }
        }
        self.push_run(block, start..rows.end, invalid)
    }

    /// Adds rows whose weights, if there are any, are known.
    fn push_run(&mut self, block: &Block, rows: Range<usize>, invalid: Invalid) -> Result<()> {
        let d = self.plan.dims();
        let weighted = self.plan.weighting.is_some();
        let weight_of = |weights: &[u32], rows: usize| match weighted {
            true => weights[..rows].iter().map(|w| i128::from(*w)).sum(),
            false => rows as i128,
        };
        // Before any of them is added: sums of more rows might overflow.
        self.sums.check_room(weight_of(&self.weights, rows.len()))?;
        let mut at = rows.start;
        while at < rows.end {
            let weights = if weighted { &self.weights[at - rows.start..] } else { &[][..] };
            let values = &block.values[at * d..rows.end * d];
            let c = self.plan.categories().len();
            let codes = &block.codes[at * c..rows.end * c];
            let added = self.engine.add(values, codes, weights, &mut self.sums)?;
            self.sums[Sum::Rows][0] += weight_of(weights, added);
            at += added;
            if at < rows.end {
                if invalid == Invalid::Refuse && !self.lacks_too_much(block, at) {
                    return Err(self.why_invalid(block, at));
                }
                self.skip(block, at);
                at += 1;
            }
        }
        Ok(())
    }

    /// Counts a row that is left out: for its invalid values, or else for its weight.
    fn skip(&mut self, block: &Block, row: usize) {
        let d = self.plan.dims();
        let values = &block.values[row * d..(row + 1) * d];
        let mut invalid: Vec<usize> = self.plan.frame.all_invalid(values).collect();
        // Where numbers may be missing, they are to blame only if nothing else is.
        if self.plan.is_partial() && invalid.iter().any(|j| !values[*j].is_nan()) {
            invalid.retain(|j| !values[*j].is_nan());
        }
        let weight = invalid.is_empty().then_some(d);
        self.losses.skip(invalid.into_iter().chain(weight));
        self.sums[Sum::Skipped][0] += 1;
    }

    fn is_valid(&self, block: &Block, row: usize) -> bool {
        self.first_invalid(block, row).is_none() && !self.lacks_too_much(block, row)
    }

    /// The first column whose value is not valid; a missing one is where the plan allows for it.
    fn first_invalid(&self, block: &Block, row: usize) -> Option<usize> {
        let d = self.plan.dims();
        let values = &block.values[row * d..(row + 1) * d];
        let missing = |j: &usize| self.plan.is_partial() && values[*j].is_nan();
        self.plan.frame.all_invalid(values).find(|j| !missing(j))
    }

    /// Whether a row of a plan that allows for missing values has too few: such rows are skipped and counted.
    fn lacks_too_much(&self, block: &Block, row: usize) -> bool {
        self.plan.is_partial() && self.first_invalid(block, row).is_none() && {
            let (d, c) = (self.plan.dims(), self.plan.categories().len());
            let values = &block.values[row * d..(row + 1) * d];
            !has_enough(&self.plan, values, &block.codes[row * c..(row + 1) * c])
        }
    }

    /// The error for an invalid row.
    fn why_invalid(&self, block: &Block, row: usize) -> Error {
        let Plan { frame, columns, .. } = &*self.plan;
        let values = &block.values[row * frame.dims()..(row + 1) * frame.dims()];
        let j = self.first_invalid(block, row).unwrap_or(0);
        let at = block.place(block.first_row + row as u64, &columns[j]);
        frame.invalid(at, j, values[j])
    }

    /// Puts other sums in the place of those so far.
    pub(super) fn swap_sums(&mut self, sums: &mut Sums) -> Result<()> {
        self.engine.finish(&mut self.sums)?;
        std::mem::swap(&mut self.sums, sums);
        Ok(())
    }

    /// The rows skipped so far, and the columns that cost them; the weight comes after the last column.
    pub fn losses(&self) -> &Losses {
        &self.losses
    }

    /// The sketch of the rows pushed.
    pub fn freeze(mut self) -> Result<Sketch> {
        self.engine.finish(&mut self.sums)?;
        Ok(Sketch::from_parts(self.plan, self.sums))
    }
}
