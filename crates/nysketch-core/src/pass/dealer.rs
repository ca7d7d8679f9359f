//! The assignment of the rows of a block to folds.

use crate::error::Result;
use crate::plan::Plan;
use crate::rows::Block;
use crate::sketch::Sketch;
use crate::sketch::folds::{FoldRule, WitnessFolds, by_hash, content_hash, text_hash};
use std::collections::HashMap;
use std::sync::Arc;

/// Assigns rows to folds. Shared by all threads.
#[derive(Debug)]
pub(super) struct Dealer {
    pub rule: FoldRule,
    plan: Arc<Plan>,
    /// Indices of the retained rows with each content hash, if rows that equal a retained row are
    /// counted.
    witnesses: HashMap<u64, Vec<u32>>,
}

impl Dealer {
    /// A dealer for the rows of a sketch; `None` if it has no folds.
    pub fn new(sketch: &Sketch) -> Result<Option<Arc<Self>>> {
        let Some(folds) = sketch.folds() else { return Ok(None) };
        let (rule, plan) = (folds.rule().clone(), sketch.plan().clone());
        // The plan's retained rows may have been removed since the sketch was started.
        rule.check(&plan)?;
        let witnesses = match folds.witness_counts() {
            Some(_) => by_hash(&plan),
            None => HashMap::new(),
        };
        Ok(Some(Arc::new(Dealer { rule, plan, witnesses })))
    }

    /// Whether rows that equal a retained row are counted.
    pub fn counts_witnesses(&self) -> bool {
        !self.witnesses.is_empty()
    }

    /// Fold and index of the given rows of a block, sorted by fold. Counts rows that equal a
    /// retained row in `counts`.
    pub fn deal(
        &self,
        block: &Block,
        rows: impl Iterator<Item = usize>,
        counts: &mut WitnessFolds,
    ) -> Result<Vec<(u32, usize)>> {
        let key = self.rule.key();
        if key.is_some() {
            block.check_keys()?;
        }
        let mut z = Vec::with_capacity(self.plan.dims());
        let mut assigned = Vec::with_capacity(rows.size_hint().0);
        for i in rows {
            let text = key.and(block.keys.get(i)).and_then(Option::as_ref);
            let fold = self.rule.fold(match text {
                Some(text) => text_hash(text),
                None => self.content_hash(block, i, &mut z),
            });
            if self.counts_witnesses()
                && let Some(equal) = self.witnesses.get(&self.content_hash(block, i, &mut z))
            {
                counts.add(equal, fold);
            }
            assigned.push((fold, i));
        }
        // Rows of a fold keep their order.
        assigned.sort_unstable();
        Ok(assigned)
    }

    /// The hash of the content of row `i`. `z` is scratch memory.
    fn content_hash(&self, block: &Block, i: usize, z: &mut Vec<f32>) -> u64 {
        let (d, c) = (self.plan.dims(), self.plan.categories().len());
        z.clear();
        self.plan.frame.narrow(&block.values[i * d..(i + 1) * d], z);
        content_hash(z, &block.codes[i * c..(i + 1) * c])
    }
}
