//! One sketch for each value of a column, from one pass.
//!
//! A thread keeps one accumulator and the sums of every group it has met; the rows of a block are
//! sorted by group, so that sums change hands once a group and block. Memory is groups × threads ×
//! [`Sums`], which is why their number has a limit.

use super::run::check_columns;
use super::{Accumulator, Sketch, SketchParams, Sums};
use crate::error::{Error, Result};
use crate::plan::Plan;
use crate::rows::{Block, Invalid, Progress, RowSource, pass};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex};

/// One sketch a group, all of the same plan.
#[derive(Debug, Clone)]
pub struct Groups {
    /// By the text of the group.
    pub sketches: BTreeMap<Arc<str>, Sketch>,
    /// Rows left out because the column of groups is missing in them.
    pub without_group: u64,
}

/// How to group.
#[derive(Debug, Clone, Copy)]
pub struct GroupParams<'a> {
    /// Name of the column that comes as the blocks' keys, for messages.
    pub column: &'a str,
    /// Most groups.
    pub limit: usize,
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
        check_columns(plan, source)?;
        let known = Mutex::new(HashSet::new());
        let init = || Thread {
            accumulator: Accumulator::new(plan.clone(), params.instructions),
            sums: HashMap::new(),
            without_group: 0,
        };
        let threads = pass(source, params.threads, progress, init, |thread, block| {
            thread.push(plan, block, group, params.invalid, &known)
        })?;
        let mut groups = Groups { sketches: BTreeMap::new(), without_group: 0 };
        for thread in threads {
            groups.without_group += thread.without_group;
            for (key, sums) in thread.sums {
                let sketch =
                    groups.sketches.entry(key).or_insert_with(|| Sketch::empty(plan.clone()));
                sketch.merge(&Sketch::from_parts(plan.clone(), sums))?;
            }
        }
        Ok(groups)
    }

    /// Bytes of memory that a group takes in each thread.
    pub fn bytes_each(plan: &Plan) -> usize {
        Sums::zero(plan).arrays().iter().map(|(_, a)| size_of_val(*a)).sum()
    }
}

struct Thread {
    accumulator: Accumulator,
    sums: HashMap<Arc<str>, Sums>,
    without_group: u64,
}

impl Thread {
    fn push(
        &mut self,
        plan: &Plan,
        block: &Block,
        group: GroupParams<'_>,
        invalid: Invalid,
        known: &Mutex<HashSet<Arc<str>>>,
    ) -> Result<()> {
        let mut rows: HashMap<&Arc<str>, Vec<usize>> = HashMap::new();
        for (i, key) in block.keys.iter().enumerate() {
            match key {
                Some(key) => rows.entry(key).or_default().push(i),
                None if invalid == Invalid::Skip => self.without_group += 1,
                None => {
                    let at = block.cell(block.first_row + i as u64, group.column);
                    return Err(Error::NoGroup { at });
                }
            }
        }
        for (key, rows) in rows {
            if !self.sums.contains_key(key) {
                let mut known = known.lock().unwrap_or_else(|e| e.into_inner());
                known.insert(key.clone());
                if known.len() > group.limit {
                    return Err(Error::TooManyGroups {
                        column: group.column.to_string(),
                        limit: group.limit,
                    });
                }
                self.sums.insert(key.clone(), Sums::zero(plan));
            }
            let Some(sums) = self.sums.get_mut(key) else { continue };
            self.accumulator.swap_sums(sums)?;
            self.accumulator.push_rows(block, rows.into_iter(), invalid)?;
            self.accumulator.swap_sums(sums)?;
        }
        Ok(())
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
