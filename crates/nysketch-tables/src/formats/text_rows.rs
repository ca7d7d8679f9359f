//! Collects rows of text fields into a batch, for both readers of CSV files.

use crate::batch::Batch;
use crate::places::{Places, SharedZone, Text, Value};
use crate::texts::{Texts, encode, fill};
use arrow_array::StringArray;
use nysketch_core::Block;
use nysketch_core::rows::MISSING;
use std::collections::HashMap;
use std::sync::Arc;

/// The way in which a number of each record is read.
pub enum Cell<'a> {
    Number { column: usize, name: &'a str, truths: bool },
    Time { column: usize, name: &'a str, zone: &'a SharedZone },
    Constant(f64),
}

/// Returns the cells of a record in the order of the columns of numbers.
fn cells(columns: &Places) -> Vec<Cell<'_>> {
    let mut cells = Vec::with_capacity(columns.values.len());
    for (j, value) in columns.values.iter().enumerate() {
        let name = &columns.names.values[j];
        cells.push(match (value, columns.names.times.get(&j)) {
            (Value::Column(column), Some(zone)) => Cell::Time { column: *column, name, zone },
            (value, _) => number(value, name, columns.truths.values[j]),
        });
    }
    cells
}

fn number<'a>(value: &Value, name: &'a str, truths: bool) -> Cell<'a> {
    match value {
        Value::Column(column) => Cell::Number { column: *column, name, truths },
        Value::Constant(x) => Cell::Constant(*x),
        Value::Vector => Cell::Constant(f64::NAN),
    }
}

/// The rows that have been read.
pub struct TextRows<'a> {
    columns: &'a Places,
    cells: Vec<Cell<'a>>,
    weight: Option<Cell<'a>>,
    pub block: Block,
    categories: Vec<Texts>,
    kept: Vec<Vec<Option<String>>>,
    keys: HashMap<String, Arc<str>>,
}

impl<'a> TextRows<'a> {
    /// Creates an empty batch and reserves memory for this number of rows.
    pub fn new(columns: &'a Places, rows: usize) -> Self {
        let d = columns.values.len();
        let mut block = Block { columns: d, ..Block::default() };
        block.values.reserve(rows * d);
        let weight = columns.weight.as_ref().zip(columns.names.weight.as_deref());
        TextRows {
            columns,
            cells: cells(columns),
            weight: weight.map(|(value, name)| number(value, name, columns.truths.weight)),
            block,
            categories: columns.categories.iter().map(|_| Texts::default()).collect(),
            kept: vec![Vec::new(); columns.kept.len()],
            keys: HashMap::new(),
        }
    }

    /// Adds a record. `number` reads a cell, and `text` reads a column by its number and name.
    pub fn add<'f, E>(
        &mut self,
        number: impl Fn(&Cell<'_>) -> Result<f64, E>,
        text: impl Fn(usize, &str) -> Result<&'f str, E>,
    ) -> Result<(), E> {
        let read = |cell: &Cell<'_>| match cell {
            Cell::Constant(x) => Ok(*x),
            cell => number(cell),
        };
        for cell in &self.cells {
            self.block.values.push(read(cell)?);
        }
        if let Some(cell) = &self.weight {
            self.block.weights.push(read(cell)?);
        }
        let Places { names, categories, key, kept, .. } = self.columns;
        let levels = self.categories.iter_mut().zip(categories).zip(&names.categories);
        for ((texts, source), category) in levels {
            if let Text::Column(column) = source {
                texts.push(text(*column, &category.name)?);
            }
        }
        if let (Some(source), Some(name)) = (key, &names.key) {
            let key = match source {
                Text::Constant(text) => text.clone(),
                Text::Column(column) => self.shared(text(*column, name)?),
            };
            self.block.keys.push(key);
        }
        for ((out, source), name) in self.kept.iter_mut().zip(kept).zip(&names.kept) {
            let text = match source {
                Text::Constant(text) => text.as_deref().unwrap_or_default(),
                Text::Column(column) => text(*column, name)?,
            };
            out.push(Some(text).filter(|t| !t.is_empty()).map(String::from));
        }
        Ok(())
    }

    /// Returns the text of a key; all rows with the same text share its memory.
    fn shared(&mut self, text: &str) -> Option<Arc<str>> {
        if text.is_empty() {
            return None;
        }
        if let Some(known) = self.keys.get(text) {
            return Some(known.clone());
        }
        let key: Arc<str> = Arc::from(text);
        self.keys.insert(text.into(), key.clone());
        Some(key)
    }

    /// Returns the batch of these rows.
    pub fn finish(self, rows: usize) -> Batch {
        let TextRows { columns, mut block, categories, kept, .. } = self;
        let wide = categories.len();
        block.codes = vec![MISSING; rows * wide];
        let levels = categories.iter().zip(&columns.categories).zip(&columns.names.categories);
        for (k, ((texts, source), category)) in levels.enumerate() {
            let vocabulary = &category.vocabulary;
            match source {
                Text::Column(_) => encode(vocabulary, texts.iter(), &mut block.codes, k, wide),
                Text::Constant(text) => {
                    fill(vocabulary, text.as_deref(), &mut block.codes, k, wide);
                }
            }
        }
        let kept = kept.into_iter().map(|k| Arc::new(StringArray::from(k)) as _).collect();
        Batch::new(block, kept)
    }
}
