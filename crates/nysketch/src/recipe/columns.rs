//! How columns come from those of a table: numbers, and categories with their levels.

use super::step::Step;
use crate::error::{Error, Result};
use crate::rows::MAX_TEXT_BYTES;
use std::collections::HashSet;
use std::ops::Range;

/// How a plan or a model gets its columns from those of a table.
///
/// Every column of numbers comes from one column of the table by a [`Step`]. A category has levels, which
/// are known by their text; a level that is not among them counts as *other*, and a missing one as a
/// level of its own.
///
/// ```
/// use nysketch::Recipe;
/// let recipe = Recipe::plain(["x", "y"]);
/// assert!(recipe.is_plain(&["x".into(), "y".into()]));
/// assert_eq!(recipe.inputs(), ["x", "y"]);
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct Recipe {
    /// Where each column of numbers comes from.
    pub numbers: Vec<Number>,
    /// The categories, which come after the numbers.
    pub categories: Vec<Category>,
    /// Columns of numbers that are scaled to length one together, row by row.
    pub units: Vec<Range<usize>>,
    /// Where rows may lack values: how many columns, categories included, a row must have at least.
    pub least_present: Option<usize>,
}

/// Where a column of numbers comes from.
#[derive(Debug, Clone, PartialEq)]
pub struct Number {
    /// The column of the table.
    pub input: String,
    /// What is done to it.
    pub step: Step,
}

/// A category of a plan or a model.
#[derive(Debug, Clone, PartialEq)]
pub struct Category {
    /// The column of the table.
    pub name: String,
    /// Its levels by their texts, in the order of their codes. The code after the last is *other*, the one after
    /// that *missing*.
    pub levels: Vec<String>,
    /// What a different level adds to a squared distance.
    pub weight: f64,
}

/// What people call a level that has no text of its own.
pub const OTHER_LEVEL: &str = "(other)";
/// What people call the level of rows that have none.
pub const MISSING_LEVEL: &str = "(missing)";

/// The name of the vector that a column is a coordinate of: `emb` of `emb[3]`.
pub(crate) fn vector_of(column: &str) -> Option<&str> {
    let (name, place) = column.strip_suffix(']')?.rsplit_once('[')?;
    (!place.is_empty() && place.bytes().all(|b| b.is_ascii_digit())).then_some(name)
}

impl Category {
    /// Number of levels, *other* and *missing* included.
    pub fn len(&self) -> usize {
        self.levels.len() + 2
    }

    /// Whether it has no levels; it always has two.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// The code of *other*.
    pub fn other(&self) -> u32 {
        self.levels.len() as u32
    }

    /// The code of *missing*.
    pub fn missing(&self) -> u32 {
        self.levels.len() as u32 + 1
    }

    /// What people call a level.
    pub fn level(&self, code: usize) -> &str {
        match code.checked_sub(self.levels.len()) {
            None => &self.levels[code],
            Some(0) => OTHER_LEVEL,
            Some(_) => MISSING_LEVEL,
        }
    }
}

impl Recipe {
    /// Numbers as they are in the table.
    pub fn plain<S: Into<String>>(columns: impl IntoIterator<Item = S>) -> Self {
        let number = |name: S| Number { input: name.into(), step: Step::AsIs };
        Recipe { numbers: columns.into_iter().map(number).collect(), ..Recipe::default() }
    }

    /// Whether these columns are taken from the table as they are, and nothing else is.
    pub fn is_plain(&self, columns: &[String]) -> bool {
        let same = |n: &Number, c: &String| n.step == Step::AsIs && n.input == *c;
        self.numbers.len() == columns.len()
            && self.numbers.iter().zip(columns).all(|(n, c)| same(n, c))
            && self.categories.is_empty()
            && self.units.is_empty()
            && self.least_present.is_none()
    }

    /// Columns of the table that numbers come from, each once.
    pub fn inputs(&self) -> Vec<String> {
        let mut seen = HashSet::new();
        let inputs = self.numbers.iter().map(|number| &number.input);
        inputs.filter(|input| seen.insert(*input)).cloned().collect()
    }

    /// Columns of the table that are points in time.
    pub fn times(&self) -> Vec<String> {
        let mut seen = HashSet::new();
        let times = self.numbers.iter().filter(|n| n.step.of_time()).map(|n| &n.input);
        times.filter(|input| seen.insert(*input)).cloned().collect()
    }

    /// Levels of all categories together.
    pub fn levels(&self) -> usize {
        self.categories.iter().map(Category::len).sum()
    }

    /// Where the levels of each category start among all of them.
    pub fn level_offsets(&self) -> Vec<usize> {
        let mut at = 0;
        let start = |c: &Category| {
            at += c.len();
            at - c.len()
        };
        self.categories.iter().map(start).collect()
    }

    /// Checks every rule that FORMAT.md has for a recipe of so many columns of numbers.
    pub(crate) fn check(&self, columns: &[String]) -> Result<()> {
        let refuse = |what: &'static str, expected: &str, got: String| {
            Err(Error::parameter(what, expected, got))
        };
        if self.numbers.len() != columns.len() {
            return refuse(
                "the recipe",
                "one step for each column",
                self.numbers.len().to_string(),
            );
        }
        let renamed = |(n, c): (&Number, &String)| n.step == Step::AsIs && n.input != *c;
        if let Some((number, _)) = self.numbers.iter().zip(columns).find(|pair| renamed(*pair)) {
            let expected = "columns that are called what they are in the table";
            return refuse("the recipe", expected, number.input.clone());
        }
        if self.categories.len() > MAX_CATEGORIES {
            let expected = "at most 1024 categories";
            return refuse("categories", expected, self.categories.len().to_string());
        }
        let numbers: HashSet<&String> = match self.categories.is_empty() {
            true => HashSet::new(),
            false => columns.iter().collect(),
        };
        for category in &self.categories {
            let mut sorted: Vec<&String> = category.levels.iter().collect();
            sorted.sort();
            if numbers.contains(&category.name) || sorted.windows(2).any(|w| w[0] == w[1]) {
                return refuse(
                    "categories",
                    "names and levels that are all different",
                    category.name.clone(),
                );
            }
            let longest = category.levels.iter().map(String::len).max().unwrap_or(0);
            if category.levels.len() > MAX_LEVELS || longest > MAX_TEXT_BYTES {
                let expected = "at most 1000 levels of at most 1024 bytes each";
                return refuse("categories", expected, category.name.clone());
            }
            if !(1e-6..=1e6).contains(&category.weight) {
                return refuse(
                    "the weight of a category",
                    "between 1e-6 and 1e6",
                    category.weight.to_string(),
                );
            }
        }
        let mut names: Vec<&String> = self.categories.iter().map(|c| &c.name).collect();
        names.sort();
        if names.windows(2).any(|w| w[0] == w[1]) {
            return refuse("categories", "different names", "one twice".into());
        }
        let mut end = 0;
        for unit in &self.units {
            if unit.start < end || unit.is_empty() || unit.end > columns.len() {
                return refuse(
                    "vectors of length one",
                    "columns that follow one another",
                    format!("{unit:?}"),
                );
            }
            end = unit.end;
        }
        let all = columns.len() + self.categories.len();
        match self.least_present {
            Some(least) if least == 0 || least > all => refuse(
                "the least number of columns present",
                "between 1 and all",
                least.to_string(),
            ),
            _ => Ok(()),
        }
    }
}

/// Most categories of a plan or a model.
pub const MAX_CATEGORIES: usize = 1024;

/// Most levels of a category, but for *other* and *missing*.
pub const MAX_LEVELS: usize = 1000;
