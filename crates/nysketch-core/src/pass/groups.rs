//! One sketch for each value of a column, in one pass.
//!
//! The rows of a block are sorted by group, and a thread owns the sums of a group only while it
//! adds the rows of one block. If another thread owns them, the thread starts new sums, and the two
//! are added later. Memory is therefore groups × folds × [`Sums`], for any number of threads.

use super::accumulator::{Accumulator, FirstError, Tally};
use super::dealer::Dealer;
use super::run::SketchParams;
use crate::error::{Error, Result};
use crate::plan::Plan;
use crate::recipe::View;
use crate::rows::weight::Rounding;
use crate::rows::{Block, Invalid, Losses, Progress, RowSource, pass};
use crate::sketch::Sketch;
use crate::sketch::folds::FoldRule;
use crate::sums::Sums;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};

/// One sketch per group, all with the same plan.
///
/// ```
/// use nysketch_core::{GroupParams, Groups, PlanParams, SketchParams, Table, plan_for};
/// use std::sync::Arc;
/// # fn main() -> nysketch_core::Result<()> {
/// let countries = [Some("AT"), Some("AT"), Some("DE")];
/// let sales = Table::new(vec!["amount".into()], vec![20.0, 25.0, 400.0])?.with_keys(countries)?;
/// let plan = Arc::new(plan_for(&sales, PlanParams::default())?.plan);
/// let by = GroupParams::new("country");
/// let groups = Groups::of(&plan, &sales, by, SketchParams::default(), &())?;
/// assert_eq!(groups.sketches["AT"].rows(), 2);
/// assert_eq!(groups.sketches["DE"].rows(), 1);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Groups {
    /// Sketches by the text of the group.
    pub sketches: BTreeMap<Arc<str>, Sketch>,
    /// Number of rows skipped because their group is missing.
    pub without_group: u64,
    /// Number of rows read, including skipped rows.
    pub read: u64,
    /// Numbers of rows skipped as invalid, in total and per column. The weight follows the last
    /// column.
    pub losses: Losses,
    /// Effect of rounding the weights of all rows.
    pub rounding: Rounding,
}

/// Default limit on the number of groups.
pub const DEFAULT_GROUPS: usize = 1000;

/// Parameters of grouping.
///
/// ```
/// let by = nysketch_core::GroupParams::new("country").limit(300);
/// assert_eq!((by.column, by.limit), ("country", 300));
/// ```
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct GroupParams<'a> {
    /// Name of the column in the blocks' keys, for messages.
    pub column: &'a str,
    /// Largest allowed number of groups.
    pub limit: usize,
    /// Number of folds of each group, assigned by the content of rows; `None` for no folds.
    pub folds: Option<u32>,
}

impl<'a> GroupParams<'a> {
    /// Groups by this column, with at most [`DEFAULT_GROUPS`] groups.
    pub fn new(column: &'a str) -> Self {
        GroupParams { column, limit: DEFAULT_GROUPS, folds: None }
    }

    /// Sets the largest allowed number of groups.
    #[must_use]
    pub fn limit(mut self, limit: usize) -> Self {
        self.limit = limit;
        self
    }

    /// Sets the number of folds of each group, assigned by the content of rows.
    #[must_use]
    pub fn folds(mut self, folds: impl Into<Option<u32>>) -> Self {
        self.folds = folds.into();
        self
    }
}

impl Groups {
    /// Reads the source once. The keys of its blocks are the groups of the rows.
    pub fn of(
        plan: &Arc<Plan>,
        source: &dyn RowSource,
        group: GroupParams<'_>,
        params: SketchParams,
        progress: &dyn Progress,
    ) -> Result<Self> {
        if plan.private.is_some() {
            let expected =
                "left out where the plan is private: which groups there are would be seen";
            return Err(Error::parameter("`by`", expected, group.column));
        }
        let source = &View::new(&plan.recipe, &plan.columns, source)?;
        let empty = match group.folds {
            None => Sketch::empty(plan.clone()),
            Some(folds) => Sketch::empty_folds(plan.clone(), FoldRule::by_content(folds)?)?,
        };
        let dealer = Dealer::new(&empty)?;
        let shared = Shared {
            plan,
            dealer: dealer.as_deref(),
            group,
            invalid: params.invalid,
            tallies: Mutex::default(),
        };
        let threads = pass(
            source,
            params.threads,
            progress,
            || Worker::new(Accumulator::with(plan.clone(), params.engine, dealer.clone())),
            |worker, block| worker.push(&shared, block),
        )?;
        let mut sketches = BTreeMap::new();
        for (key, tally) in shared.tallies.into_inner().unwrap_or_else(|e| e.into_inner()) {
            let mut sketch = empty.clone();
            if let Some(tally) = tally {
                sketch.merge(&tally.into_sketch(plan.clone(), dealer.as_deref()))?;
            }
            sketches.insert(key, sketch);
        }
        let (mut losses, mut rounding) = (Losses::default(), Rounding::default());
        let (mut without_group, mut read) = (0, 0);
        for worker in &threads {
            losses.merge(worker.accumulator.losses());
            rounding.merge(worker.accumulator.rounding());
            without_group += worker.without_group;
            read += worker.read;
        }
        Ok(Groups { sketches, without_group, read, losses, rounding })
    }

    /// Memory per group, in bytes.
    pub fn bytes_each(plan: &Plan, group: GroupParams<'_>) -> usize {
        Sums::bytes(plan) * group.folds.unwrap_or(1) as usize
    }
}

/// State of one thread.
struct Worker {
    accumulator: Accumulator,
    without_group: u64,
    read: u64,
}

impl Worker {
    fn new(accumulator: Accumulator) -> Self {
        Worker { accumulator, without_group: 0, read: 0 }
    }

    fn push(&mut self, shared: &Shared<'_>, block: &Block) -> Result<()> {
        self.without_group += shared.push(&mut self.accumulator, block)?;
        self.read += block.len() as u64;
        Ok(())
    }
}

/// State shared by all threads.
struct Shared<'a> {
    plan: &'a Plan,
    dealer: Option<&'a Dealer>,
    group: GroupParams<'a>,
    invalid: Invalid,
    /// `None` while a thread owns the sums.
    tallies: Mutex<HashMap<Arc<str>, Option<Tally>>>,
}

impl Shared<'_> {
    /// Adds the rows of a block and returns the number of rows without a group. Reports the error
    /// of the first invalid row, in any group.
    fn push(&self, accumulator: &mut Accumulator, block: &Block) -> Result<u64> {
        block.check_keys()?;
        let mut rows: BTreeMap<&Arc<str>, Vec<usize>> = BTreeMap::new();
        let mut without = 0;
        let mut first = FirstError::default();
        for (i, key) in block.keys.iter().enumerate() {
            match key {
                Some(key) => rows.entry(key).or_default().push(i),
                None if self.invalid == Invalid::Skip => without += 1,
                None => {
                    let at = block.place(block.first_row + i as u64, self.group.column);
                    first.keep(Err(Error::NoGroup { at }));
                }
            }
        }
        for (key, rows) in rows {
            let mut tally = self.take(key)?;
            accumulator.swap_tally(&mut tally)?;
            let rows = rows.into_iter().map(|i| i..i + 1);
            first.keep(accumulator.push_rows(block, rows, self.invalid));
            accumulator.swap_tally(&mut tally)?;
            self.put_back(key, tally);
        }
        first.into_result().map(|()| without)
    }

    fn take(&self, key: &Arc<str>) -> Result<Tally> {
        let mut all = self.tallies.lock().unwrap_or_else(|e| e.into_inner());
        if !all.contains_key(key) && all.len() == self.group.limit {
            return Err(Error::TooManyGroups {
                column: self.group.column.to_string(),
                limit: self.group.limit,
            });
        }
        let tally = all.entry(key.clone()).or_default().take();
        drop(all);
        Ok(tally.unwrap_or_else(|| Tally::zero(self.plan, self.dealer)))
    }

    fn put_back(&self, key: &Arc<str>, mut tally: Tally) {
        loop {
            let mut all = self.tallies.lock().unwrap_or_else(|e| e.into_inner());
            let slot = all.entry(key.clone()).or_default();
            match slot.take() {
                None => {
                    *slot = Some(tally);
                    return;
                }
                Some(other) => {
                    drop(all);
                    tally.merge(&other);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::planning::{PlanParams, make_plan};
    use crate::rows::Table;

    /// Row i belongs to group i·i mod 7, and has no group if that is 4.
    fn key(i: u64) -> Option<Arc<str>> {
        (i * i % 7 != 4).then(|| Arc::from((i * i % 7).to_string()))
    }

    fn row(i: u64) -> [f64; 2] {
        [(i as f64 * 0.3).sin(), i as f64 / 1e3]
    }

    #[test]
    fn each_group_has_the_bytes_of_its_rows_alone() {
        let n = 2000u64;
        let table = Table::unnamed(2, (0..n).flat_map(row).collect()).unwrap().with_part_rows(321);
        let params = PlanParams::default().check().unwrap();
        let plan = Arc::new(make_plan(&table, &params, &()).unwrap().plan);
        let grouped = table.with_keys((0..n).map(key)).unwrap();
        let skip = SketchParams { threads: 3, invalid: Invalid::Skip, ..SketchParams::default() };
        let by = GroupParams::new("g").limit(3);
        let groups = Groups::of(&plan, &grouped, by, skip, &()).unwrap();
        assert_eq!(groups.sketches.len(), 3);
        assert_eq!(groups.without_group, (0..n).filter(|i| key(*i).is_none()).count() as u64);
        for (name, sketch) in &groups.sketches {
            let of_group = (0..n).filter(|i| key(*i).as_ref() == Some(name));
            let alone = Table::unnamed(2, of_group.flat_map(row).collect()).unwrap();
            let alone = Sketch::of(&plan, &alone, skip, &()).unwrap();
            assert_eq!(sketch.to_bytes(), alone.to_bytes());
        }
        let folded = Groups::of(&plan, &grouped, by.folds(4), skip, &()).unwrap();
        for (name, sketch) in &folded.sketches {
            assert_eq!(sketch.folds().map(|f| f.len()), Some(4));
            assert_eq!(sketch.without_folds(), groups.sketches[name]);
        }
        let few = GroupParams::new("g").limit(2);
        let error = Groups::of(&plan, &grouped, few, skip, &()).unwrap_err();
        assert!(matches!(error, Error::TooManyGroups { limit: 2, .. }));
        let refuse = SketchParams { invalid: Invalid::Refuse, ..skip };
        let error = Groups::of(&plan, &grouped, by, refuse, &()).unwrap_err().to_string();
        assert!(error.contains("row 3, column 'g'"), "{error}");
    }
}
