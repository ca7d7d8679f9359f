//! The preprocessing of columns: numeric columns, and categories with their levels.

use super::step::Step;
use crate::error::{Error, Result};
use crate::rows::MAX_TEXT_BYTES;
use std::collections::HashSet;
use std::ops::Range;

/// The preprocessing that computes the columns of a plan or a model from those of a table.
///
/// A [`Step`] computes each numeric column from one column of the table. The levels of a category
/// are identified by their text. A level that is not in the list counts as *other*, and a missing
/// level as a level of its own.
///
/// ```
/// use nysketch_core::Recipe;
/// let recipe = Recipe::plain(["x", "y"]);
/// assert!(recipe.is_plain(&["x".into(), "y".into()]));
/// assert_eq!(recipe.inputs(), ["x", "y"]);
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct Recipe {
    /// The source of each numeric column.
    pub numbers: Vec<Number>,
    /// The categories, which follow the numeric columns.
    pub categories: Vec<Category>,
    /// Ranges of numeric columns that form a vector, which is scaled to length one in every row.
    pub units: Vec<Range<usize>>,
    /// If the plan allows missing values: the smallest number of values, including categories, that
    /// a row must have.
    pub least_present: Option<usize>,
}

/// The source of a numeric column.
#[derive(Debug, Clone, PartialEq)]
pub struct Number {
    /// The column of the table.
    pub input: String,
    /// The transformation of its values.
    pub step: Step,
}

/// A category of a plan or a model.
#[derive(Debug, Clone, PartialEq)]
pub struct Category {
    /// The column of the table.
    pub name: String,
    /// Texts of the levels, in the order of their codes. The next two codes are *other* and
    /// *missing*.
    pub levels: Vec<String>,
    /// Contribution of different levels to a squared distance.
    pub weight: f64,
}

/// Display name of the level *other*.
pub const OTHER_LEVEL: &str = "(other)";
/// Display name of the level *missing*.
pub const MISSING_LEVEL: &str = "(missing)";

/// The name of the vector to which a column belongs: `emb` for `emb[3]`.
pub(crate) fn vector_of(column: &str) -> Option<&str> {
    let (name, place) = column.strip_suffix(']')?.rsplit_once('[')?;
    (!place.is_empty() && place.bytes().all(|b| b.is_ascii_digit())).then_some(name)
}

impl Number {
    /// Whether values are taken unchanged from the table.
    fn is_plain(&self) -> bool {
        self.step == Step::AsIs
    }
}

impl Category {
    /// Checks every rule of FORMAT.md for a category of a recipe with these numeric columns.
    fn check(&self, numbers: &HashSet<&String>) -> Result<()> {
        let mut sorted: Vec<&String> = self.levels.iter().collect();
        sorted.sort();
        if numbers.contains(&self.name) || sorted.windows(2).any(|w| w[0] == w[1]) {
            let expected = "names and levels that are all different";
            return Err(Error::parameter("categories", expected, &self.name));
        }
        let longest = self.levels.iter().map(String::len).max().unwrap_or(0);
        if self.levels.len() > MAX_LEVELS || longest > MAX_TEXT_BYTES {
            let expected = "at most 1000 levels of at most 1024 bytes each";
            return Err(Error::parameter("categories", expected, &self.name));
        }
        if !(1e-6..=1e6).contains(&self.weight) {
            let expected = "between 1e-6 and 1e6";
            return Err(Error::parameter("the weight of a category", expected, self.weight));
        }
        Ok(())
    }

    /// Number of levels, including *other* and *missing*.
    pub fn len(&self) -> usize {
        self.levels.len() + 2
    }

    /// Always `false`, because every category has at least two levels.
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

    /// The code of a text: of its level, or of *other*.
    pub(crate) fn code_of(&self, text: &str) -> u32 {
        let level = self.levels.iter().position(|level| level == text);
        level.map_or(self.other(), |level| level as u32)
    }

    /// Display name of a level.
    pub fn level(&self, code: usize) -> &str {
        match code.checked_sub(self.levels.len()) {
            None => &self.levels[code],
            Some(0) => OTHER_LEVEL,
            Some(_) => MISSING_LEVEL,
        }
    }
}

impl Recipe {
    /// A recipe that takes all columns unchanged from the table.
    pub fn plain<S: Into<String>>(columns: impl IntoIterator<Item = S>) -> Self {
        let numbers = columns.into_iter();
        let numbers = numbers.map(|name| Number { input: name.into(), step: Step::AsIs }).collect();
        Recipe { numbers, ..Recipe::default() }
    }

    /// Whether the recipe takes exactly these columns unchanged from the table.
    pub fn is_plain(&self, columns: &[String]) -> bool {
        self.numbers.len() == columns.len()
            && self.numbers.iter().zip(columns).all(|(n, c)| n.is_plain() && n.input == *c)
            && self.categories.is_empty()
            && self.units.is_empty()
            && self.least_present.is_none()
    }

    /// Columns of the table that numeric columns are computed from, without duplicates.
    pub fn inputs(&self) -> Vec<String> {
        let mut seen = HashSet::new();
        let inputs = self.numbers.iter().map(|number| &number.input);
        inputs.filter(|input| seen.insert(*input)).cloned().collect()
    }

    /// Columns of the table that hold timestamps.
    pub fn times(&self) -> Vec<String> {
        let mut seen = HashSet::new();
        let times = self.numbers.iter().filter(|n| n.step.of_time()).map(|n| &n.input);
        times.filter(|input| seen.insert(*input)).cloned().collect()
    }

    /// Number of levels of all categories together.
    pub fn levels(&self) -> usize {
        self.categories.iter().map(Category::len).sum()
    }

    /// Index of the first level of each category among all levels.
    pub fn level_offsets(&self) -> Vec<usize> {
        let mut at = 0;
        let mut offsets = Vec::with_capacity(self.categories.len());
        for category in &self.categories {
            offsets.push(at);
            at += category.len();
        }
        offsets
    }

    /// Checks every rule of FORMAT.md for a recipe with these numeric columns.
    pub fn check(&self, columns: &[String]) -> Result<()> {
        if self.numbers.len() != columns.len() {
            let expected = "one step for each column";
            return Err(Error::parameter("the recipe", expected, self.numbers.len()));
        }
        let mut numbers = self.numbers.iter().zip(columns);
        if let Some((number, _)) = numbers.find(|(n, c)| n.is_plain() && n.input != **c) {
            let expected = "columns that have their names in the table";
            return Err(Error::parameter("the recipe", expected, &number.input));
        }
        if self.categories.len() > MAX_CATEGORIES {
            let expected = "at most 1024 categories";
            return Err(Error::parameter("categories", expected, self.categories.len()));
        }
        // A table of numbers alone needs no set of their names.
        let numbers: HashSet<&String> =
            if self.categories.is_empty() { HashSet::new() } else { columns.iter().collect() };
        for category in &self.categories {
            category.check(&numbers)?;
        }
        let mut names: Vec<&String> = self.categories.iter().map(|c| &c.name).collect();
        names.sort();
        if names.windows(2).any(|w| w[0] == w[1]) {
            return Err(Error::parameter("categories", "different names", "one twice"));
        }
        let mut end = 0;
        for unit in &self.units {
            if unit.start < end || unit.is_empty() || unit.end > columns.len() {
                let expected = "columns that follow one another";
                return Err(Error::parameter(
                    "vectors of length one",
                    expected,
                    format!("{unit:?}"),
                ));
            }
            end = unit.end;
        }
        let all = columns.len() + self.categories.len();
        match self.least_present {
            Some(least) if least == 0 || least > all => {
                let what = "the least number of columns present";
                Err(Error::parameter(what, "between 1 and all", least))
            }
            _ => Ok(()),
        }
    }
}

/// Largest number of categories of a plan or a model.
pub const MAX_CATEGORIES: usize = 1024;

/// Largest number of levels of a category, not counting *other* and *missing*.
pub const MAX_LEVELS: usize = 1000;
