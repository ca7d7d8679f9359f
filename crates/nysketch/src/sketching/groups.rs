//! One sketch for each value of a column, from one pass.
//!
//! The rows of a block are sorted by group, and the sums of a group change hands once per block: a
//! thread takes them, adds its rows, and puts them back. Where another thread has them it starts
//! anew and the two are added up. So memory is groups × [`Sums`], whatever the number of threads.

use super::accumulator::Accumulator;
use super::run::SketchParams;
use crate::error::{Error, Result};
use crate::plan::Plan;
use crate::recipe::View;
use crate::rows::{Block, Invalid, Losses, Progress, RowSource, pass};
use crate::sketch::Sketch;
use crate::sums::Sums;
use crate::weight::Rounding;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};

/// One sketch per group, all of the same plan.
///
/// ```
/// use nysketch::{Block, GroupParams, Groups, PlanParams, Result, SketchParams, Table, plan_for};
/// use nysketch::{RowPart, RowSet, RowSource, RowStream};
/// # use std::sync::{Arc, LazyLock};
/// # static COLUMNS: LazyLock<Vec<String>> = LazyLock::new(|| vec!["amount".into()]);
/// /// Three sales, with the country of each as the key.
/// struct Sales;
/// # struct Once(bool);
/// # struct All;
/// # impl RowSource for Sales {
/// #     fn columns(&self) -> &[String] { &COLUMNS }
/// #     fn open(&self, _: &RowSet) -> Result<Box<dyn RowStream<'_> + '_>> { Ok(Box::new(Once(false))) }
/// # }
/// # impl<'a> RowStream<'a> for Once {
/// #     fn next_part(&mut self) -> Option<Box<dyn RowPart + 'a>> {
/// #         (!std::mem::replace(&mut self.0, true)).then(|| Box::new(All) as Box<dyn RowPart>)
/// #     }
/// # }
/// impl RowPart for All {
/// #   fn position(&self) -> u64 { 0 }
///     // (Everything else of a source is in the example of `RowSource`.)
///     fn decode(self: Box<Self>) -> Result<Option<Block>> {
///         let country = |name: &str| Some(Arc::from(name));
///         Ok(Some(Block {
///             values: vec![20.0, 25.0, 400.0],
///             keys: vec![country("AT"), country("AT"), country("DE")],
///             columns: 1,
///             ..Block::default()
///         }))
///     }
/// }
/// # fn main() -> Result<()> {
/// let plan = Arc::new(plan_for(&Sales, PlanParams::default())?.0);
/// let by = GroupParams::new("country");
/// let groups = Groups::of(&plan, &Sales, by, SketchParams::default(), &())?;
/// assert_eq!(groups.sketches["AT"].rows(), 2);
/// assert_eq!(groups.sketches["DE"].rows(), 1);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Groups {
    /// By the text of the group.
    pub sketches: BTreeMap<Arc<str>, Sketch>,
    /// Rows left out because the column of groups is missing in them.
    pub without_group: u64,
    /// Rows read, with those that were left out.
    pub read: u64,
    /// Rows skipped as invalid, and the columns that cost them; the weight comes after the last column.
    pub losses: Losses,
    /// What rounding the weights of all rows has changed.
    pub rounding: Rounding,
}

/// Groups that [`GroupParams::new`] allows.
pub const DEFAULT_GROUPS: usize = 1000;

/// How to group.
///
/// ```
/// let by = nysketch::GroupParams::new("country").limit(300);
/// assert_eq!((by.column, by.limit), ("country", 300));
/// ```
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct GroupParams<'a> {
    /// Name of the column that comes as the blocks' keys, for messages.
    pub column: &'a str,
    /// Most groups.
    pub limit: usize,
}

impl<'a> GroupParams<'a> {
    /// By this column, with at most [`DEFAULT_GROUPS`] groups.
    pub fn new(column: &'a str) -> Self {
        GroupParams { column, limit: DEFAULT_GROUPS }
    }

    /// With at most so many groups.
    #[must_use]
    pub fn limit(mut self, limit: usize) -> Self {
        self.limit = limit;
        self
    }
}

impl Groups {
    /// Reads the source once; its blocks carry the group of each row as keys.
    pub fn of(
        plan: &Arc<Plan>,
        source: &dyn RowSource,
        group: GroupParams<'_>,
        params: SketchParams,
        progress: &dyn Progress,
    ) -> Result<Self> {
        let source = &View::new(&plan.recipe, &plan.columns, source)?;
        let shared = Shared { plan, group, invalid: params.invalid, sums: Mutex::default() };
        let init = || (Accumulator::new(plan.clone(), params.engine), 0u64, 0u64);
        let visit = |(accumulator, without, read): &mut (Accumulator, u64, u64), block: &Block| {
            *without += shared.push(accumulator, block)?;
            *read += block.len() as u64;
            Ok(())
        };
        let threads = pass(source, params.threads, progress, init, visit)?;
        let mut sketches = BTreeMap::new();
        for (key, sums) in shared.sums.into_inner().unwrap_or_else(|e| e.into_inner()) {
            let mut sketch = Sketch::empty(plan.clone());
            if let Some(sums) = sums {
                sketch.merge(&Sketch::from_parts(plan.clone(), sums))?;
            }
            sketches.insert(key, sketch);
        }
        let (mut losses, mut rounding) = (Losses::default(), Rounding::default());
        for (accumulator, ..) in &threads {
            losses.merge(accumulator.losses());
            rounding.merge(accumulator.rounding());
        }
        let without_group = threads.iter().map(|t| t.1).sum();
        let read = threads.iter().map(|t| t.2).sum();
        Ok(Groups { sketches, without_group, read, losses, rounding })
    }

    /// Bytes of memory that a group takes.
    pub fn bytes_each(plan: &Plan) -> usize {
        Sums::bytes(plan)
    }
}

/// What all threads share.
struct Shared<'a> {
    plan: &'a Plan,
    group: GroupParams<'a>,
    invalid: Invalid,
    /// `None` while a thread has the sums.
    sums: Mutex<HashMap<Arc<str>, Option<Sums>>>,
}

impl Shared<'_> {
    /// Adds the rows of a block and returns how many have no group. The error of the first bad row
    /// is reported, whatever its group.
    fn push(&self, accumulator: &mut Accumulator, block: &Block) -> Result<u64> {
        if block.keys.len() != block.len() {
            let expected = format!("one key for each of the {} rows", block.len());
            return Err(Error::parameter("the keys of a block", expected, block.keys.len()));
        }
        let mut rows: BTreeMap<&Arc<str>, Vec<usize>> = BTreeMap::new();
        let mut without = 0;
        let mut first: Option<Error> = None;
        for (i, key) in block.keys.iter().enumerate() {
            match key {
                Some(key) => rows.entry(key).or_default().push(i),
                None if self.invalid == Invalid::Skip => without += 1,
                None => {
                    let at = block.place(block.first_row + i as u64, self.group.column);
                    first.get_or_insert(Error::NoGroup { at });
                }
            }
        }
        for (key, rows) in rows {
            let mut sums = self.take(key)?;
            accumulator.swap_sums(&mut sums)?;
            if let Err(error) =
                accumulator.push_rows(block, rows.into_iter().map(|i| i..i + 1), self.invalid)
                && first
                    .as_ref()
                    .is_none_or(|f| error.row().unwrap_or(u64::MAX) < f.row().unwrap_or(u64::MAX))
            {
                first = Some(error);
            }
            accumulator.swap_sums(&mut sums)?;
            self.put_back(key, sums);
        }
        first.map_or(Ok(without), Err)
    }

    fn take(&self, key: &Arc<str>) -> Result<Sums> {
        let mut all = self.sums.lock().unwrap_or_else(|e| e.into_inner());
        if !all.contains_key(key) && all.len() == self.group.limit {
            return Err(Error::TooManyGroups {
                column: self.group.column.to_string(),
                limit: self.group.limit,
            });
        }
        let sums = all.entry(key.clone()).or_default().take();
        drop(all);
        Ok(sums.unwrap_or_else(|| Sums::zero(self.plan)))
    }

    fn put_back(&self, key: &Arc<str>, mut sums: Sums) {
        loop {
            let mut all = self.sums.lock().unwrap_or_else(|e| e.into_inner());
            let slot = all.entry(key.clone()).or_default();
            match slot.take() {
                None => {
                    *slot = Some(sums);
                    return;
                }
                Some(other) => {
                    drop(all);
                    sums.combine(&other, i128::wrapping_add);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::{RowPart, RowSet, RowStream, Table};
    use crate::{PlanParams, make_plan};

    /// A table whose row i belongs to group i·i mod 7, and to none where that is 4.
    struct Grouped(Table);
    struct Stream<'a>(Box<dyn RowStream<'a> + 'a>);
    struct Part<'a>(Box<dyn RowPart + 'a>);

    fn key(i: u64) -> Option<Arc<str>> {
        (i * i % 7 != 4).then(|| Arc::from((i * i % 7).to_string()))
    }

    impl RowSource for Grouped {
        fn columns(&self) -> &[String] {
            self.0.columns()
        }
        fn open(&self, done: &RowSet) -> Result<Box<dyn RowStream<'_> + '_>> {
            Ok(Box::new(Stream(self.0.open(done)?)))
        }
    }
    impl<'a> RowStream<'a> for Stream<'a> {
        fn next_part(&mut self) -> Option<Box<dyn RowPart + 'a>> {
            Some(Box::new(Part(self.0.next_part()?)))
        }
    }
    impl RowPart for Part<'_> {
        fn position(&self) -> u64 {
            self.0.position()
        }
        fn decode(self: Box<Self>) -> Result<Option<Block>> {
            let mut block = self.0.decode()?;
            if let Some(b) = &mut block {
                b.keys = (b.position..).take(b.len()).map(key).collect();
            }
            Ok(block)
        }
    }

    #[test]
    fn each_group_has_the_bytes_of_its_rows_alone() {
        let n = 2000u64;
        let row = |i: u64| [(i as f64 * 0.3).sin(), i as f64 / 1e3];
        let table = Table::unnamed(2, (0..n).flat_map(row).collect()).unwrap().with_part_rows(321);
        let params = PlanParams::default().check().unwrap();
        let plan = Arc::new(make_plan(&table, &params, &()).unwrap().0);
        let grouped = Grouped(table);
        let skip = SketchParams { threads: 3, invalid: Invalid::Skip, ..SketchParams::default() };
        let by = GroupParams { column: "g", limit: 3 };
        let groups = Groups::of(&plan, &grouped, by, skip, &()).unwrap();
        assert_eq!(groups.sketches.len(), 3);
        assert_eq!(groups.without_group, (0..n).filter(|i| key(*i).is_none()).count() as u64);
        for (name, sketch) in &groups.sketches {
            let of_group = (0..n).filter(|i| key(*i).as_ref() == Some(name));
            let alone = Table::unnamed(2, of_group.flat_map(row).collect()).unwrap();
            let alone = Sketch::of(&plan, &alone, skip, &()).unwrap();
            assert_eq!(sketch.to_bytes(), alone.to_bytes());
        }
        let few = GroupParams { column: "g", limit: 2 };
        let error = Groups::of(&plan, &grouped, few, skip, &()).unwrap_err();
        assert!(matches!(error, Error::TooManyGroups { limit: 2, .. }));
        let refuse = SketchParams { invalid: Invalid::Refuse, ..skip };
        let error = Groups::of(&plan, &grouped, by, refuse, &()).unwrap_err().to_string();
        assert!(error.contains("row 3, column 'g'"), "{error}");
    }
}
