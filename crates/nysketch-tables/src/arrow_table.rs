//! Arrow tables in memory: selects their columns and converts their batches to rows.

use crate::columns::{ColumnRole, roles};
use crate::error::Result;
use crate::formats::{batch, first_length, lists_of, schema_of};
use crate::options::ReadOptions;
use crate::places::{Names, Places};
use crate::schema::Schema;
use crate::selection::{by_default, chosen, left_out, matching, names};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::SchemaRef;
use nysketch_core::Block;
use nysketch_core::rows::CategoryColumn;
use std::collections::HashMap;
use std::sync::Arc;

/// The columns of an Arrow table in memory. They are read in the same way as files: equal rows give
/// equal numbers and categories.
///
/// ```
/// use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray};
/// use nysketch_tables::{ArrowTable, ReadOptions};
/// use std::sync::Arc;
///
/// let x: ArrayRef = Arc::new(Float64Array::from(vec![0.5, 2.0]));
/// let colour: ArrayRef = Arc::new(StringArray::from(vec!["red", "blue"]));
/// let batch = RecordBatch::try_from_iter([("colour", colour), ("x", x)])?;
/// let table = ArrowTable::new("X", &batch.schema(), None, &ReadOptions::default())?;
/// let block = table.block(&batch, 1)?;
/// assert_eq!((block.values, block.codes), (vec![0.5, 2.0], vec![0, 1]));
/// assert_eq!(table.categories()[0].name, "colour");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct ArrowTable {
    name: Arc<str>,
    schema: Schema,
    names: Arc<Names>,
    places: Places,
    roles: Vec<ColumnRole>,
    notes: Vec<String>,
}

impl ArrowTable {
    /// Selects the columns that the options ask for. Messages call the table `name`. The rows in
    /// `first` give the lengths of the vectors in list columns: see [`ArrowTable::has_lists`].
    pub fn new(
        name: &str,
        schema: &SchemaRef,
        first: Option<&RecordBatch>,
        options: &ReadOptions,
    ) -> Result<Self> {
        let found = |batch: &RecordBatch| -> HashMap<usize, usize> {
            let length = |i: usize| Some((i, first_length(batch.column(i))?));
            lists_of(schema).into_iter().filter_map(length).collect()
        };
        let first = first.filter(|_| !options.rowwise);
        let lengths = first.map_or_else(HashMap::new, found);
        let schema = schema_of(name, schema, None, &lengths)?;
        let chosen = chosen(name, &schema, options)?;
        let by_default = by_default(options);
        let roles = roles(&schema, &chosen, &options.extras.taken(), by_default);
        let notes = if by_default { left_out(&schema, &roles) } else { Vec::new() };
        let names = Arc::new(names(name, &[&schema], chosen, options)?);
        let places = Places::find(name, &schema, &names, &[])?;
        Ok(ArrowTable { name: Arc::from(name), schema, names, places, roles, notes })
    }

    /// Returns whether a table has list columns, whose lengths must be found from its first rows.
    pub fn has_lists(schema: &SchemaRef) -> bool {
        !lists_of(schema).is_empty()
    }

    /// Returns the names of the numeric columns.
    pub fn columns(&self) -> &[String] {
        &self.names.values
    }

    /// Returns whether a numeric column contains points in time.
    pub fn is_time(&self, column: usize) -> bool {
        self.names.times.contains_key(&column)
    }

    /// Returns the categorical columns.
    pub fn categories(&self) -> &[CategoryColumn] {
        &self.names.categories
    }

    /// Lists how each column is used.
    pub fn roles(&self) -> &[ColumnRole] {
        &self.roles
    }

    /// Returns the columns that match names, ranges or patterns, each once, whether or not they are
    /// read.
    pub fn matching<S: AsRef<str>>(
        &self,
        patterns: impl IntoIterator<Item = S>,
    ) -> Result<Vec<String>> {
        matching(&self.name, &self.schema, patterns)
    }

    /// Notes for the user about columns that are left out, one sentence each.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Returns the indexes of the table's columns that are read, in table order.
    pub fn places(&self) -> &[usize] {
        &self.places.projection
    }

    /// Converts rows of the table. Messages give the first row the number `first_row`.
    pub fn block(&self, rows: &RecordBatch, first_row: u64) -> Result<Block> {
        let arrays = self.places.projection.iter().map(|i| rows.column(*i).clone());
        let arrays: Vec<ArrayRef> = arrays.collect();
        let block = batch(&self.name, first_row, rows.num_rows(), &arrays, &self.places)?.block;
        Ok(Block { file: self.name.clone(), first_row, ..block })
    }
}
