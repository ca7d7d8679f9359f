//! Folds: disjoint parts of the rows, each with its own sums.
//!
//! A hash assigns each row to one of F folds:
//!
//! ```text
//! fold = ⌊hash · F / 2⁶⁴⌋
//! ```
//!
//! The assignment never depends on a row's position, so sketches of parts add up fold by fold. The
//! hash is that of the text of a key column, which keeps all rows of a user in one fold, or else
//! that of the row's coordinates and levels, which keeps equal rows in one fold. Removing a fold is
//! one exact subtraction. Jackknife intervals and cross-validation are built from it.

mod rule;
mod witnesses;

pub use rule::{FoldBy, FoldRule};
pub(crate) use rule::{content_hash, text_hash};
pub(crate) use witnesses::{WitnessFolds, by_hash};

use crate::error::{Error, Result};
use crate::plan::Plan;
use crate::plan::table::MAX_SUMS;
use crate::sums::{BrokenRule, Sum, Sums};

/// The sums of each fold of a sketch. They add up to the sums of the sketch.
///
/// ```
/// use nysketch_core::{FoldRule, PlanParams, Sketch, SketchParams, Table, plan_for};
/// use std::sync::Arc;
/// # fn main() -> nysketch_core::Result<()> {
/// let table = Table::unnamed(1, (0..500).map(f64::from).collect())?;
/// let plan = Arc::new(plan_for(&table, PlanParams::default().landmarks(20))?.plan);
/// let rule = FoldRule::by_content(4)?;
/// let sketch = Sketch::of_folds(&plan, &rule, &table, SketchParams::default(), &())?;
///
/// let folds = sketch.folds().unwrap();
/// assert_eq!((0..folds.len()).map(|f| folds.rows(f)).sum::<u64>(), 500);
/// let mut rest = sketch.without_fold(0);
/// rest.merge(&sketch.fold(0))?;
/// assert_eq!(rest, sketch.without_folds());
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Folds {
    rule: FoldRule,
    sums: Vec<Sums>,
    /// Counts per retained row, if rows are assigned by a key and the plan has retained rows.
    witnesses: Option<WitnessFolds>,
}

impl Folds {
    /// Folds without rows. Fails if the rule does not suit the plan.
    pub(crate) fn zero(rule: FoldRule, plan: &Plan) -> Result<Self> {
        rule.check(plan)?;
        let sums = (0..rule.count()).map(|_| Sums::zero(plan)).collect();
        let witnesses = match (rule.key(), plan.witness_rows()) {
            (Some(_), Some(rows)) => Some(WitnessFolds::zero(rows.len())),
            _ => None,
        };
        Ok(Folds { rule, sums, witnesses })
    }

    /// Folds from sums computed elsewhere, which are not checked here; see [`check`](Self::check).
    pub(crate) fn from_parts(
        rule: FoldRule,
        sums: Vec<Sums>,
        witnesses: Option<WitnessFolds>,
    ) -> Self {
        Folds { rule, sums, witnesses }
    }

    /// The rule that assigns rows to folds.
    pub fn rule(&self) -> &FoldRule {
        &self.rule
    }

    /// Number of folds.
    #[allow(clippy::len_without_is_empty, reason = "there are always at least two")]
    pub fn len(&self) -> usize {
        self.sums.len()
    }

    /// The sums of each fold.
    pub fn sums(&self) -> &[Sums] {
        &self.sums
    }

    /// Number of rows in a fold, with weights counted in the plan's unit.
    pub fn rows(&self, fold: usize) -> u64 {
        self.sums[fold][Sum::Rows][0] as u64
    }

    /// Number of rows in the smallest and in the largest fold.
    pub fn extremes(&self) -> (u64, u64) {
        let rows: Vec<u64> = (0..self.len()).map(|fold| self.rows(fold)).collect();
        let (min, max) = (rows.iter().min(), rows.iter().max());
        (min.copied().unwrap_or(0), max.copied().unwrap_or(0))
    }

    /// Counts of each retained row by fold, if they are kept.
    pub(crate) fn witness_counts(&self) -> Option<&WitnessFolds> {
        self.witnesses.as_ref()
    }

    /// The fold of each available retained row, or `None` if its rows are in several folds or there
    /// are none. If rows are assigned by content, equal rows share a fold and the plan alone
    /// determines it.
    pub fn of_witnesses(&self, plan: &Plan) -> Vec<Option<u32>> {
        let Some(rows) = plan.witness_rows() else { return Vec::new() };
        match self.rule.by() {
            FoldBy::Key(_) => match &self.witnesses {
                Some(counts) => counts.folds(),
                None => vec![None; rows.len()],
            },
            FoldBy::Content => {
                let hashes = witnesses::hashes(plan).into_iter();
                hashes.map(|hash| Some(self.rule.fold(hash))).collect()
            }
        }
    }

    /// The sum over all folds.
    pub(crate) fn total(&self) -> Sums {
        let mut total = self.sums[0].clone();
        self.sums[1..].iter().for_each(|sums| total.combine(sums, i128::wrapping_add));
        total
    }

    /// Applies `op` fold by fold.
    pub(crate) fn combine(&mut self, other: &Folds, op: impl Fn(i128, i128) -> i128) {
        for (sums, others) in self.sums.iter_mut().zip(&other.sums) {
            sums.combine(others, &op);
        }
        if let (Some(witnesses), Some(others)) = (&mut self.witnesses, &other.witnesses) {
            witnesses.combine(others, &op);
        }
    }

    /// Checks that the sums of each fold are the sums of some rows, and that the counts of retained
    /// rows are possible.
    pub(crate) fn check(&self, plan: &Plan) -> std::result::Result<(), BrokenRule> {
        for (fold, sums) in self.sums.iter().enumerate() {
            sums.check(plan).map_err(|rule| BrokenRule {
                sum: format!("in fold {fold}, {}", rule.sum),
                how: rule.how,
            })?;
        }
        self.witnesses.as_ref().map_or(Ok(()), |w| w.check(self.rule.count()))
    }
}

impl FoldRule {
    /// Refuses a plan whose rows this rule cannot assign.
    pub(crate) fn check(&self, plan: &Plan) -> Result<()> {
        let sums = plan.measured().sums() * f64::from(self.count());
        if sums > MAX_SUMS {
            let expected = format!("so few that all folds have at most {MAX_SUMS:.0} sums");
            return Err(Error::parameter("`folds`", expected, self.count()));
        }
        let Some(key) = self.key() else { return Ok(()) };
        let numbers = plan.recipe.numbers.iter().map(|n| &n.input);
        if numbers.chain(plan.categories().iter().map(|c| &c.name)).any(|input| input == key) {
            let expected = "a column that the plan does not measure; plan without it";
            return Err(Error::parameter("`fold_by`", expected, format!("'{key}'")));
        }
        if plan.weighting.as_ref().is_some_and(|w| w.column == key) {
            let expected = "another column than the weights";
            return Err(Error::parameter("`fold_by`", expected, format!("'{key}'")));
        }
        if plan.lacks_witnesses() {
            let expected = "left out, because the plan's retained rows are not available; give the \
                plan's own file";
            return Err(Error::parameter("`fold_by`", expected, format!("'{key}'")));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pass::SketchParams;
    use crate::planning::{PlanParams, plan_for};
    use crate::rows::Table;
    use crate::sketch::Sketch;
    use std::sync::Arc;

    /// The key of row i.
    fn key(i: usize) -> String {
        (i % 37).to_string()
    }

    /// Every retained row is a row of the table, so its fold is the fold of a sketch of this row
    /// alone. A retained row whose rows are in several folds has no fold.
    #[test]
    fn witnesses_are_in_the_folds_of_their_rows() {
        let values: Vec<f64> = (0..600).map(|i| f64::from(i % 300) * 0.31 - 40.0).collect();
        let table = Table::unnamed(2, values.clone()).unwrap();
        let table = table.with_keys((0..300).map(|i| Some(key(i)))).unwrap();
        let params = PlanParams::default().landmarks(10).witnesses(120);
        let plan = Arc::new(plan_for(&table, params).unwrap().plan);
        let mut rows: Vec<Vec<f32>> = vec![Vec::new(); 300];
        for (z, values) in rows.iter_mut().zip(values.chunks(2)) {
            plan.frame.narrow(values, z);
        }
        let (mut known, mut unknown) = (0, 0);
        for rule in [FoldRule::by_content(5), FoldRule::by_key(5, "user")] {
            let rule = rule.unwrap();
            let mut fold_of = Vec::new();
            for (i, z) in rows.iter().enumerate() {
                fold_of.push(rule.fold(match rule.by() {
                    FoldBy::Key(_) => text_hash(&key(i)),
                    FoldBy::Content => content_hash(z, &[]),
                }));
            }
            let params = SketchParams::default();
            let sketch = Sketch::of_folds(&plan, &rule, &table, params, &()).unwrap();
            let read = Sketch::from_bytes(&sketch.to_bytes()).unwrap();
            let folds = read.folds().unwrap().of_witnesses(&plan);
            for (z, found) in plan.witness_rows().unwrap().rows().zip(folds) {
                // Row i and row i + 150 are equal.
                let equal: Vec<usize> = (0..300).filter(|i| rows[*i] == z).collect();
                assert_eq!(equal.len(), 2);
                let same = fold_of[equal[0]] == fold_of[equal[1]];
                assert_eq!(found, same.then(|| fold_of[equal[0]]));
                if same { known += 1 } else { unknown += 1 }
            }
        }
        assert!(known > 120 && unknown > 50, "{known} {unknown}");
    }
}
