//! From blocks of rows to exact sums, on one thread.
//!
//! The accumulator handles invalid rows and converts weights to whole units; an [`Engine`] adds the
//! rows to the sums. The sums can be read only after the accumulator is frozen into a [`Sketch`].

use super::dealer::Dealer;
use crate::error::{Error, Result};
use crate::pass::engine::{Engine, EngineKind, has_enough};
use crate::plan::Plan;
use crate::recipe::Recipe;
use crate::rows::weight::{Rounding, Weighting};
use crate::rows::{Block, Invalid, Losses};
use crate::sketch::Sketch;
use crate::sketch::folds::{Folds, WitnessFolds};
use crate::sums::{Sum, Sums};
use nysketch_cuda::DeviceRows;
use std::ops::Range;
use std::sync::Arc;

/// The incomplete sums of one thread.
///
/// ```
/// use nysketch_core::{Accumulator, Block, EngineKind, Invalid, PlanParams, Table, plan_for};
/// # fn main() -> nysketch_core::Result<()> {
/// let plan = plan_for(&Table::unnamed(2, vec![0.0, 1.0, 2.0, 3.0])?, PlanParams::default())?.plan;
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
    dealer: Option<Arc<Dealer>>,
    tally: Tally,
    /// The fold of the rows in the engine.
    fold: usize,
    /// Weights of the current rows, in whole units.
    weights: Vec<u32>,
    losses: Losses,
    rounding: Rounding,
    /// Number of rows that were clipped to the bounds of a private plan.
    clipped: u64,
}

/// The sums: of each fold, or of all rows if there are no folds.
#[derive(Debug)]
pub(super) struct Tally {
    folds: Vec<Sums>,
    witnesses: WitnessFolds,
}

impl Tally {
    /// Sums of no rows.
    pub fn zero(plan: &Plan, dealer: Option<&Dealer>) -> Self {
        let folds = dealer.map_or(1, |d| d.rule.count());
        let counted = dealer.filter(|d| d.counts_witnesses()).and(plan.witness_rows());
        Tally {
            folds: (0..folds).map(|_| Sums::zero(plan)).collect(),
            witnesses: WitnessFolds::zero(counted.map_or(0, |rows| rows.len())),
        }
    }

    /// Adds sums from elsewhere.
    pub fn merge(&mut self, other: &Tally) {
        for (sums, others) in self.folds.iter_mut().zip(&other.folds) {
            sums.combine(others, i128::wrapping_add);
        }
        self.witnesses.combine(&other.witnesses, i128::wrapping_add);
    }

    /// The sketch with these sums.
    pub fn into_sketch(mut self, plan: Arc<Plan>, dealer: Option<&Dealer>) -> Sketch {
        match dealer {
            None => Sketch::from_parts(plan, self.folds.remove(0)),
            Some(dealer) => {
                let witnesses = dealer.counts_witnesses().then_some(self.witnesses);
                let folds = Folds::from_parts(dealer.rule.clone(), self.folds, witnesses);
                Sketch::from_folds(plan, folds)
            }
        }
    }
}

impl Accumulator {
    /// An empty accumulator.
    pub fn new(plan: Arc<Plan>, engine: EngineKind) -> Self {
        Accumulator::with(plan, engine, None)
    }

    /// An empty accumulator for rows of a sketch, which assigns them to its folds if it has any. If
    /// rows are assigned by a key, the plan's retained rows must be available.
    pub fn of(sketch: &Sketch, engine: EngineKind) -> Result<Self> {
        Ok(Accumulator::with(sketch.plan().clone(), engine, Dealer::new(sketch)?))
    }

    /// An empty accumulator that assigns rows to folds with `dealer`.
    pub(super) fn with(plan: Arc<Plan>, engine: EngineKind, dealer: Option<Arc<Dealer>>) -> Self {
        Accumulator {
            engine: engine.start(&plan),
            tally: Tally::zero(&plan, dealer.as_deref()),
            dealer,
            fold: 0,
            plan,
            weights: Vec::new(),
            losses: Losses::default(),
            rounding: Rounding::default(),
            clipped: 0,
        }
    }

    /// Number of rows clipped to the bounds of a private plan so far.
    pub(super) fn clipped(&self) -> u64 {
        self.clipped
    }

    /// Effect of rounding the weights of the rows so far.
    pub fn rounding(&self) -> Rounding {
        self.rounding
    }

    /// Adds the rows of a block. After an error, the accumulator must not be used any more.
    ///
    /// Fails if the plan protects people: a plan limits the rows per person, which is possible only
    /// when all rows are read.
    pub fn push(&mut self, block: &Block, invalid: Invalid) -> Result<()> {
        if let Some(people) = self.plan.people() {
            let expected = format!("sketched whole, since the plan protects {people}");
            return Err(Error::parameter("rows", expected, "a block of them"));
        }
        self.push_rows(block, std::iter::once(0..block.len()), invalid)
    }

    /// Adds some rows of a block, counted from 0.
    pub(super) fn push_rows(
        &mut self,
        block: &Block,
        rows: impl Iterator<Item = Range<usize>>,
        invalid: Invalid,
    ) -> Result<()> {
        self.check(block)?;
        // An error would reveal that such a row exists.
        let invalid = if self.plan.private.is_some() { Invalid::Skip } else { invalid };
        let Some(dealer) = self.dealer.clone() else {
            return rows.into_iter().try_for_each(|rows| self.push_valid(block, rows, invalid));
        };
        let by_fold = dealer.deal(block, rows.flatten(), &mut self.tally.witnesses)?;
        // Sorts the rows by fold, so that rows of a fold go through the engine together.
        let sorted = block.select(by_fold.iter().map(|(_, i)| *i));
        let (mut first, mut start) = (FirstError::default(), 0);
        for fold in by_fold.chunk_by(|a, b| a.0 == b.0) {
            let rows = start..start + fold.len();
            start = rows.end;
            self.turn_to(fold[0].0 as usize)?;
            let added = self.push_valid(&sorted, rows, invalid);
            first.keep(added.map_err(|error| {
                error.renumbered(|row| {
                    let (_, i) = by_fold[(row - block.first_row) as usize];
                    block.first_row + i as u64
                })
            }));
        }
        first.into_result()
    }

    /// Switches to the sums of another fold.
    fn turn_to(&mut self, fold: usize) -> Result<()> {
        if fold != self.fold {
            self.engine.finish(&mut self.tally.folds[self.fold])?;
            self.fold = fold;
        }
        Ok(())
    }

    /// The sums of the current fold.
    fn sums(&mut self) -> &mut Sums {
        &mut self.tally.folds[self.fold]
    }

    /// Adds rows in the memory of a GPU and waits until they are added. The engine must run on that
    /// GPU. If the plan has weights, `weights` holds one per row. `first_row` is the number of the
    /// first row, for messages. After an error, the accumulator must not be used any more.
    ///
    /// Fails if the plan transforms columns, has categories or protects people, or if the sketch
    /// has folds.
    pub fn push_on_device(
        &mut self,
        rows: &DeviceRows,
        weights: &[f64],
        first_row: u64,
        invalid: Invalid,
    ) -> Result<()> {
        let plan = self.plan.clone();
        let block = Block { file: "rows in GPU memory".into(), first_row, ..Block::default() };
        let complete = Recipe { least_present: None, ..plan.recipe.clone() };
        let reasons = [
            (!plan.categories().is_empty(), "the plan has categories"),
            (
                !complete.is_plain(&plan.columns),
                "columns are logarithms, dates or vectors of length one",
            ),
            (plan.people().is_some(), "the plan protects people"),
            (self.dealer.is_some(), "rows are assigned to folds"),
        ];
        if let Some((_, reason)) = reasons.into_iter().find(|(applies, _)| *applies) {
            return Err(Error::NotOnDevice { reason });
        }
        let invalid = if plan.private.is_some() { Invalid::Skip } else { invalid };
        self.weights.clear();
        let mut without_weight = Vec::new();
        if let Some(weighting) = &plan.weighting {
            if weights.len() as u64 != rows.len() {
                let expected = "one weight per row, as the plan asks for";
                return Err(Error::parameter("weights", expected, weights.len()));
            }
            for (row, weight) in weights.iter().enumerate() {
                match weighting.units(*weight, invalid, &block, first_row + row as u64)? {
                    Some(units) => {
                        self.rounding.add(*weight, f64::from(units) * weighting.unit);
                        self.weights.push(units);
                    }
                    None => {
                        without_weight.push(row as u64);
                        self.weights.push(0);
                    }
                }
            }
        }
        let room = match plan.weighting {
            Some(_) => self.weights.iter().map(|w| i128::from(*w)).sum(),
            None => i128::from(rows.len()),
        };
        self.sums().check_room(room)?;
        let outcome = self.engine.add_on_device(rows, &self.weights, invalid)?;
        if let Some(row) = outcome.refused {
            let values = self.engine.row_on_device(rows, row)?;
            let j = first_invalid(&plan, &values).unwrap_or(0);
            let at = block.place(first_row + row, &plan.columns[j]);
            return Err(plan.frame.invalid(at, j, values[j]));
        }
        self.losses.merge(&Losses::from_counts(outcome.skipped, outcome.by_column));
        let mut skipped = outcome.skipped;
        for row in without_weight {
            // A row with invalid values has been counted already.
            let values = self.engine.row_on_device(rows, row)?;
            let alone = Block { values, columns: plan.dims(), ..block.clone() };
            if self.is_valid(&alone, 0) {
                self.losses.skip([plan.dims()]);
                skipped += 1;
            }
        }
        self.sums()[Sum::Rows][0] += i128::from(outcome.weight);
        self.count_skipped(skipped);
        Ok(())
    }

    /// Refuses a block that does not match the plan.
    fn check(&self, block: &Block) -> Result<()> {
        if self.plan.weighting.is_some() && block.weights.len() != block.len() {
            let expected = "one weight per row, as the plan asks for";
            return Err(Error::parameter("weights", expected, block.weights.len()));
        }
        self.check_codes(block)
    }

    /// Adds consecutive rows of a checked block.
    fn push_valid(&mut self, block: &Block, rows: Range<usize>, invalid: Invalid) -> Result<()> {
        if let Some(private) = &self.plan.private {
            let d = self.plan.dims();
            let values = block.values[rows.start * d..rows.end * d].chunks_exact(d);
            self.clipped += values.filter(|row| private.is_beyond(row)).count() as u64;
        }
        match self.plan.clone().weighting.as_ref() {
            None => self.push_run(block, rows, invalid),
            Some(weighting) => self.push_weighted(weighting, block, rows, invalid),
        }
    }

    /// Refuses codes that are not levels of the plan.
    fn check_codes(&self, block: &Block) -> Result<()> {
        let categories = self.plan.categories();
        let c = categories.len();
        let mut valid = block.codes.len() == block.len() * c;
        if valid && c > 0 {
            let mut codes = block.codes.iter().enumerate();
            valid = codes.all(|(i, code)| (*code as usize) < categories[i % c].len());
        }
        if valid {
            return Ok(());
        }
        Err(Error::parameter("codes", "levels of the plan's categories", "others"))
    }

    /// Adds weighted rows in runs between rows with invalid weights.
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
                    // An invalid row before this one is reported first, and an invalid value of
                    // this row before its weight.
                    self.push_run(block, start..i, invalid)?;
                    if self.is_valid(block, i) {
                        refused?;
                    } else if invalid == Invalid::Refuse && !self.has_too_few_values(block, i) {
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
        // Checked before any row is added, because the sums of more rows might overflow.
        let weights = weighted.then_some(&self.weights[..]);
        let weight = total_weight(weights, rows.len());
        self.sums().check_room(weight)?;
        let mut at = rows.start;
        while at < rows.end {
            let weights = weighted.then(|| &self.weights[at - rows.start..]);
            let values = &block.values[at * d..rows.end * d];
            let c = self.plan.categories().len();
            let codes = &block.codes[at * c..rows.end * c];
            let sums = &mut self.tally.folds[self.fold];
            let added = self.engine.add(values, codes, weights.unwrap_or(&[]), sums)?;
            sums[Sum::Rows][0] += total_weight(weights, added);
            at += added;
            if at < rows.end {
                if invalid == Invalid::Refuse && !self.has_too_few_values(block, at) {
                    return Err(self.why_invalid(block, at));
                }
                self.skip(block, at);
                at += 1;
            }
        }
        Ok(())
    }

    /// Counts a skipped row: under its invalid values, or otherwise under its weight.
    fn skip(&mut self, block: &Block, row: usize) {
        let d = self.plan.dims();
        let values = &block.values[row * d..(row + 1) * d];
        let mut invalid: Vec<usize> = self.plan.frame.all_invalid(values).collect();
        // If the plan allows missing values, they count only if the row has no other invalid
        // values.
        if self.plan.is_partial() && invalid.iter().any(|j| !values[*j].is_nan()) {
            invalid.retain(|j| !values[*j].is_nan());
        }
        let weight = invalid.is_empty().then_some(d);
        self.losses.skip(invalid.into_iter().chain(weight));
        self.count_skipped(1);
    }

    /// Counts skipped rows in the sums, unless the plan is private: then they leave no trace.
    fn count_skipped(&mut self, rows: u64) {
        if self.plan.private.is_none() {
            self.sums()[Sum::Skipped][0] += i128::from(rows);
        }
    }

    fn is_valid(&self, block: &Block, row: usize) -> bool {
        self.first_invalid(block, row).is_none() && !self.has_too_few_values(block, row)
    }

    /// The first column of a row of a block with an invalid value.
    fn first_invalid(&self, block: &Block, row: usize) -> Option<usize> {
        let d = self.plan.dims();
        first_invalid(&self.plan, &block.values[row * d..(row + 1) * d])
    }

    /// Whether a row has too few values, in a plan that allows missing values. Such rows are always
    /// skipped and counted.
    fn has_too_few_values(&self, block: &Block, row: usize) -> bool {
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

    /// Exchanges the sums with others.
    pub(super) fn swap_tally(&mut self, tally: &mut Tally) -> Result<()> {
        self.engine.finish(&mut self.tally.folds[self.fold])?;
        std::mem::swap(&mut self.tally, tally);
        Ok(())
    }

    /// Numbers of rows skipped so far, in total and per column. The weight follows the last column.
    pub fn losses(&self) -> &Losses {
        &self.losses
    }

    /// The sketch of all rows added.
    pub fn freeze(mut self) -> Result<Sketch> {
        self.engine.finish(&mut self.tally.folds[self.fold])?;
        Ok(self.tally.into_sketch(self.plan, self.dealer.as_deref()))
    }
}

/// The first column with an invalid value. A missing value is valid if the plan allows it.
fn first_invalid(plan: &Plan, values: &[f64]) -> Option<usize> {
    let mut invalid = plan.frame.all_invalid(values);
    invalid.find(|j| !(plan.is_partial() && values[*j].is_nan()))
}

/// The total weight of the first rows, each of weight 1 if there are no weights.
fn total_weight(weights: Option<&[u32]>, rows: usize) -> i128 {
    match weights {
        Some(weights) => weights[..rows].iter().map(|w| i128::from(*w)).sum(),
        None => rows as i128,
    }
}

/// The error of the first invalid row, for rows that are added out of order.
#[derive(Debug, Default)]
pub(super) struct FirstError(Option<Error>);

impl FirstError {
    /// Keeps an error if its row comes before that of the kept error.
    pub fn keep(&mut self, result: Result<()>) {
        if let Err(error) = result
            && self.0.as_ref().is_none_or(|first| Self::row(&error) < Self::row(first))
        {
            self.0 = Some(error);
        }
    }

    /// The row of an error; errors without a row come last.
    fn row(error: &Error) -> u64 {
        error.row().unwrap_or(u64::MAX)
    }

    /// Returns the kept error.
    pub fn into_result(self) -> Result<()> {
        self.0.map_or(Ok(()), Err)
    }
}
