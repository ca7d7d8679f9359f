//! Tables in memory.

use super::set::RowSet;
use super::vocabulary::{CategoryColumn, Vocabulary};
use super::{Block, RowPart, RowSource, RowStream};
use crate::error::{Error, Result};
use std::ops::Range;
use std::sync::Arc;

/// A table in memory.
///
/// ```
/// use nysketch_core::{RowSource, Table};
/// # fn main() -> nysketch_core::Result<()> {
/// let columns = vec!["height".into(), "weight".into()];
/// let table = Table::new(columns, vec![1.8, 75.0, 1.6, 60.0])?;
/// assert_eq!((table.len(), table.columns()[1].as_str()), (2, "weight"));
/// // The weight makes the second row count three times.
/// let table = table.with_weights(vec![1.0, 3.0])?;
/// assert!(Table::unnamed(2, vec![1.0, 2.0, 3.0]).is_err());
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Table {
    columns: Vec<String>,
    values: Vec<f64>,
    weights: Vec<f64>,
    keys: Vec<Option<Arc<str>>>,
    categories: Vec<CategoryColumn>,
    codes: Vec<Vec<u32>>,
    part_rows: usize,
}

impl Table {
    /// A table of row-major `values` with the given column names.
    pub fn new(columns: Vec<String>, values: Vec<f64>) -> Result<Self> {
        if columns.is_empty() || !values.len().is_multiple_of(columns.len()) {
            return Err(Error::parameter(
                "values",
                format!("a multiple of {} columns", columns.len()),
                values.len(),
            ));
        }
        let part_rows = part_rows(columns.len());
        Ok(Table {
            columns,
            values,
            weights: Vec::new(),
            keys: Vec::new(),
            categories: Vec::new(),
            codes: Vec::new(),
            part_rows,
        })
    }

    /// A table with columns named `c0`, `c1`, …
    pub fn unnamed(columns: usize, values: Vec<f64>) -> Result<Self> {
        Self::new(default_names(columns), values)
    }

    /// Adds one weight per row.
    pub fn with_weights(mut self, weights: Vec<f64>) -> Result<Self> {
        if weights.len() != self.len() {
            return Err(Error::parameter(
                "weights",
                format!("{} values", self.len()),
                weights.len(),
            ));
        }
        self.weights = weights;
        Ok(self)
    }

    /// Adds one key per row, which groups rows or assigns them to folds. `None` is a missing key.
    pub fn with_keys<T: AsRef<str>>(
        mut self,
        keys: impl IntoIterator<Item = Option<T>>,
    ) -> Result<Self> {
        self.keys = keys.into_iter().map(|key| key.map(|key| Arc::from(key.as_ref()))).collect();
        if self.keys.len() != self.len() {
            return Err(Error::parameter("keys", format!("{} texts", self.len()), self.keys.len()));
        }
        Ok(self)
    }

    /// Adds a categorical column with one text per row. `None` is a missing value.
    ///
    /// ```
    /// use nysketch_core::{RowSource, Table};
    /// # fn main() -> nysketch_core::Result<()> {
    /// let table = Table::unnamed(1, vec![1.0, 2.0])?;
    /// let table = table.with_category("carrier", &[Some("UA"), None])?;
    /// assert_eq!(table.categories()[0].name, "carrier");
    /// # Ok(())
    /// # }
    /// ```
    pub fn with_category(mut self, name: &str, texts: &[Option<&str>]) -> Result<Self> {
        if texts.len() != self.len() {
            let expected = format!("{} texts in '{name}'", self.len());
            return Err(Error::parameter("categories", expected, texts.len()));
        }
        let vocabulary: Arc<Vocabulary> = Arc::default();
        let mut codes = Vec::with_capacity(texts.len());
        vocabulary.encode(texts.iter().copied(), |code| codes.push(code));
        self.categories.push(CategoryColumn { name: name.into(), vocabulary });
        self.codes.push(codes);
        Ok(self)
    }

    /// Sets the number of rows per part.
    pub fn with_part_rows(mut self, rows: usize) -> Self {
        self.part_rows = rows.max(1);
        self
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.values.len() / self.columns.len()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// The values, row-major.
    pub fn values(&self) -> &[f64] {
        &self.values
    }
}

/// Values per part: about 1 MB of doubles.
const PART_VALUES: usize = 1 << 17;

/// Number of rows in a part of about 1 MB, for a table with `columns` columns. A good part size for
/// any source.
pub fn part_rows(columns: usize) -> usize {
    (PART_VALUES / columns.max(1)).clamp(1, 1 << 14)
}

/// Default names of unnamed columns: `c0`, `c1`, …
pub fn default_names(columns: usize) -> Vec<String> {
    (0..columns).map(|j| format!("c{j}")).collect()
}

impl RowSource for Table {
    fn columns(&self) -> &[String] {
        &self.columns
    }

    fn categories(&self) -> &[CategoryColumn] {
        &self.categories
    }

    fn open(&self, done: &RowSet) -> Result<Box<dyn RowStream<'_> + '_>> {
        Ok(Box::new(TableStream { table: self, next: 0, done: done.clone() }))
    }
}

struct TableStream<'a> {
    table: &'a Table,
    next: usize,
    done: RowSet,
}

impl<'a> RowStream<'a> for TableStream<'a> {
    fn next_part(&mut self) -> Option<Box<dyn RowPart + 'a>> {
        let from = self.done.first_missing(self.next as u64) as usize;
        if from >= self.table.len() {
            return None;
        }
        let to = (from + self.table.part_rows).min(self.table.len());
        self.next = to;
        Some(Box::new(TablePart { table: self.table, rows: from..to }))
    }

    fn in_order(&self) -> bool {
        true
    }
}

struct TablePart<'a> {
    table: &'a Table,
    rows: Range<usize>,
}

impl RowPart for TablePart<'_> {
    fn position(&self) -> u64 {
        self.rows.start as u64
    }

    fn decode(self: Box<Self>) -> Result<Option<Block>> {
        let d = self.table.columns.len();
        let Range { start, end } = self.rows;
        Ok(Some(Block {
            values: self.table.values[start * d..end * d].to_vec(),
            weights: self.table.weights.get(start..end).unwrap_or(&[]).to_vec(),
            keys: self.table.keys.get(start..end).unwrap_or(&[]).to_vec(),
            codes: (start..end).flat_map(|i| self.table.codes.iter().map(move |c| c[i])).collect(),
            columns: d,
            file: Arc::from("table"),
            first_row: start as u64 + 1,
            position: start as u64,
        }))
    }
}
