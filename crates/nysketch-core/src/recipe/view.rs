//! A source with the columns of a plan or a model.

use super::columns::{Category, Recipe};
use super::step::Step;
use crate::error::{Error, Result};
use crate::rows::{
    Block, CategoryColumn, MAX_TEXTS, MISSING, OTHER, RowPart, RowSet, RowSource, RowStream,
};
use std::collections::HashMap;

/// A source with the columns of a recipe: selected by name, transformed, and with the recipe's
/// codes of levels.
pub struct View<'a> {
    source: &'a dyn RowSource,
    columns: &'a [String],
    recipe: &'a Recipe,
    /// Index of the source column for each numeric column.
    numbers: Vec<usize>,
    categories: Vec<Recode>,
    /// Categories that keep the codes of the source.
    raw: Vec<CategoryColumn>,
    /// Whether blocks of the source are used unchanged.
    same: bool,
}

/// A category of the source, and the recipe's code for each source code.
struct Recode {
    from: usize,
    /// `None` keeps the codes of the source.
    codes: Option<Codes>,
}

struct Codes {
    table: Vec<u32>,
    other: u32,
    missing: u32,
}

impl Codes {
    fn new(category: &Category, column: &CategoryColumn) -> Result<Self> {
        let mut table = Vec::new();
        for (level, text) in category.levels.iter().enumerate() {
            let code = match column.vocabulary.code(text) {
                // Whether rows of this level count as *other* would depend on the rows before them.
                OTHER => {
                    let expected =
                        format!("at most {MAX_TEXTS} different texts in '{}'", category.name);
                    return Err(Error::parameter("columns", expected, "more"));
                }
                code => code as usize,
            };
            table.resize(table.len().max(code + 1), category.other());
            table[code] = level as u32;
        }
        Ok(Codes { table, other: category.other(), missing: category.missing() })
    }

    fn of(&self, code: u32) -> u32 {
        match code {
            MISSING => self.missing,
            code => self.table.get(code as usize).copied().unwrap_or(self.other),
        }
    }
}

impl<'a> View<'a> {
    /// A source with the columns of a recipe. Fails if the source does not have the columns it
    /// needs.
    pub fn new(
        recipe: &'a Recipe,
        columns: &'a [String],
        source: &'a dyn RowSource,
    ) -> Result<Self> {
        Self::with(recipe, columns, source, |category, column| {
            Codes::new(category, column).map(Some)
        })
    }

    /// A source with the columns of a recipe and the source's own codes, for planning before levels
    /// are chosen.
    pub(crate) fn of_codes(
        recipe: &'a Recipe,
        columns: &'a [String],
        source: &'a dyn RowSource,
    ) -> Result<Self> {
        Self::with(recipe, columns, source, |_, _| Ok(None))
    }

    fn with(
        recipe: &'a Recipe,
        columns: &'a [String],
        source: &'a dyn RowSource,
        codes: impl Fn(&Category, &CategoryColumn) -> Result<Option<Codes>>,
    ) -> Result<Self> {
        let places = source.columns().iter().enumerate().map(|(j, name)| (name, j));
        // If several columns have the same name, the first one is read.
        let places: HashMap<&String, usize> = places.rev().collect();
        let mut numbers = Vec::new();
        for number in &recipe.numbers {
            let at = places.get(&number.input).copied();
            let at = at.ok_or_else(|| missing_column(source, &number.input))?;
            if number.step.of_time() && !source.is_time(at) {
                let expected = format!("points in time in the column '{}'", number.input);
                return Err(Error::parameter("columns", expected, "numbers"));
            }
            numbers.push(at);
        }
        let (mut categories, mut raw) = (Vec::new(), Vec::new());
        for category in &recipe.categories {
            let from = source.categories().iter().position(|c| c.name == category.name);
            let from = from.ok_or_else(|| missing_column(source, &category.name))?;
            let column = &source.categories()[from];
            let codes = codes(category, column)?;
            raw.extend(codes.is_none().then(|| column.clone()));
            categories.push(Recode { from, codes });
        }
        let same_numbers = numbers.len() == source.columns().len()
            && numbers.iter().enumerate().all(|(j, from)| j == *from)
            && recipe.numbers.iter().all(|n| matches!(n.step, Step::AsIs | Step::Time))
            && recipe.units.is_empty();
        let same_codes = categories.len() == source.categories().len()
            && categories.iter().enumerate().all(|(j, r)| j == r.from && r.codes.is_none());
        let same = same_numbers && same_codes;
        Ok(View { source, columns, recipe, numbers, categories, raw, same })
    }

    /// Converts a block of the source to the columns of the view.
    pub fn apply(&self, block: Block) -> Block {
        if self.same {
            return block;
        }
        let rows = block.len();
        let (d, wide) = (self.numbers.len(), self.source.categories().len());
        let mut values = Vec::with_capacity(rows * d);
        for row in block.values.chunks_exact(block.columns.max(1)) {
            let steps = self.numbers.iter().zip(&self.recipe.numbers);
            values.extend(steps.map(|(from, number)| number.step.apply(row[*from])));
        }
        for unit in &self.recipe.units {
            for row in values.chunks_exact_mut(d) {
                to_length_one(&mut row[unit.clone()]);
            }
        }
        let mut codes = Vec::with_capacity(rows * self.categories.len());
        if !self.categories.is_empty() {
            for row in block.codes.chunks_exact(wide) {
                codes.extend(self.categories.iter().map(|recode| match &recode.codes {
                    None => row[recode.from],
                    Some(codes) => codes.of(row[recode.from]),
                }));
            }
        }
        Block { values, codes, columns: d, ..block }
    }
}

/// The error for a source without a column of the recipe.
fn missing_column(source: &dyn RowSource, name: &str) -> Error {
    let expected = format!("a table with the column '{name}'");
    let categories = source.categories().iter().map(|c| &c.name);
    let columns: Vec<&str> =
        source.columns().iter().chain(categories).map(String::as_str).collect();
    Error::parameter("columns", expected, columns.join(", "))
}

/// Divides a vector by its length: the sum of squares in the order of the coordinates, its square
/// root, and one division per coordinate. A vector of length zero has no direction, and one whose
/// squares overflow has no usable length; their coordinates become infinite, which is invalid. If
/// one coordinate is missing, all become missing.
fn to_length_one(vector: &mut [f64]) {
    let length = vector.iter().fold(0.0, |sum, x| sum + x * x).sqrt();
    let lost = length == 0.0 || length.is_infinite();
    for x in vector {
        *x = if lost { f64::INFINITY } else { *x / length };
    }
}

impl RowSource for View<'_> {
    fn columns(&self) -> &[String] {
        self.columns
    }

    fn categories(&self) -> &[CategoryColumn] {
        &self.raw
    }

    fn open(&self, done: &RowSet) -> Result<Box<dyn RowStream<'_> + '_>> {
        let stream = self.source.open(done)?;
        if self.same {
            return Ok(stream);
        }
        Ok(Box::new(ViewStream { view: self, stream }))
    }
}

struct ViewStream<'a> {
    view: &'a View<'a>,
    stream: Box<dyn RowStream<'a> + 'a>,
}

impl<'a> RowStream<'a> for ViewStream<'a> {
    fn next_part(&mut self) -> Option<Box<dyn RowPart + 'a>> {
        let part = self.stream.next_part()?;
        Some(Box::new(ViewPart { view: self.view, part }))
    }

    fn in_order(&self) -> bool {
        self.stream.in_order()
    }
}

struct ViewPart<'a> {
    view: &'a View<'a>,
    part: Box<dyn RowPart + 'a>,
}

impl RowPart for ViewPart<'_> {
    fn position(&self) -> u64 {
        self.part.position()
    }

    fn decode(self: Box<Self>) -> Result<Option<Block>> {
        Ok(self.part.decode()?.map(|block| self.view.apply(block)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unit(mut vector: Vec<f64>) -> Vec<f64> {
        to_length_one(&mut vector);
        vector
    }

    #[test]
    fn vectors_without_a_direction_are_invalid_and_incomplete_ones_are_missing() {
        assert_eq!(unit(vec![3.0, -4.0]), [0.6, -0.8]);
        // A vector without a direction, or whose squares overflow or vanish, gives neither zeros
        // nor missing values.
        let (inf, lost) = (f64::INFINITY, [f64::INFINITY; 2]);
        for vector in [[0.0, 0.0], [1e200, 1.0], [1e-200, 0.0], [inf, 1.0], [-inf, inf]] {
            assert_eq!(unit(vector.to_vec()), lost, "{vector:?}");
        }
        assert!(unit(vec![f64::NAN, 2.0]).iter().all(|x| x.is_nan()));
    }
}
