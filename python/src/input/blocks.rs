//! Rows that Python produces in blocks on demand: sparse matrices, of which only one block at a
//! time is dense.

use numpy::PyReadonlyArray2;
use nysketch::rows::part_rows;
use nysketch::{Block, Error, Result, RowPart, RowSet, RowSource, RowStream};
use pyo3::prelude::*;
use std::ops::Range;
use std::sync::Arc;

/// An object of `nysketch/_input.py` whose `block(start, stop)` returns rows as doubles.
pub struct BlockSource {
    blocks: Py<PyAny>,
    rows: usize,
    columns: Vec<String>,
    weights: Option<Vec<f64>>,
}

impl BlockSource {
    pub fn new(
        blocks: &Bound<'_, PyAny>,
        rows: usize,
        columns: Vec<String>,
        weights: Option<Vec<f64>>,
    ) -> Self {
        BlockSource { blocks: blocks.clone().unbind(), rows, columns, weights }
    }

    fn values(&self, rows: Range<usize>) -> PyResult<Vec<f64>> {
        Python::attach(|py| {
            let block = self.blocks.bind(py).call_method1("block", (rows.start, rows.end))?;
            let block: PyReadonlyArray2<'_, f64> = block.extract()?;
            Ok(block.as_array().iter().copied().collect())
        })
    }
}

impl RowSource for BlockSource {
    fn columns(&self) -> &[String] {
        &self.columns
    }

    fn open(&self, done: &RowSet) -> Result<Box<dyn RowStream<'_> + '_>> {
        Ok(Box::new(BlockStream { source: self, next: 0, done: done.clone() }))
    }
}

struct BlockStream<'a> {
    source: &'a BlockSource,
    next: usize,
    done: RowSet,
}

impl<'a> RowStream<'a> for BlockStream<'a> {
    fn next_part(&mut self) -> Option<Box<dyn RowPart + 'a>> {
        let from = self.done.first_missing(self.next as u64) as usize;
        if from >= self.source.rows {
            return None;
        }
        let to = (from + part_rows(self.source.columns.len())).min(self.source.rows);
        self.next = to;
        Some(Box::new(BlockPart { source: self.source, rows: from..to }))
    }

    fn in_order(&self) -> bool {
        true
    }
}

struct BlockPart<'a> {
    source: &'a BlockSource,
    rows: Range<usize>,
}

impl RowPart for BlockPart<'_> {
    fn position(&self) -> u64 {
        self.rows.start as u64
    }

    fn decode(self: Box<Self>) -> Result<Option<Block>> {
        let BlockPart { source, rows } = *self;
        let weights = source.weights.as_ref().map_or(Vec::new(), |w| w[rows.clone()].to_vec());
        Ok(Some(Block {
            values: source.values(rows.clone()).map_err(Error::source)?,
            weights,
            columns: source.columns.len(),
            file: Arc::from("X"),
            // Python counts from 0.
            first_row: rows.start as u64,
            position: rows.start as u64,
            ..Block::default()
        }))
    }
}
