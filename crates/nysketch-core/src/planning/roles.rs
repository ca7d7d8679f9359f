//! The use of each column of a table: numeric column, category, timestamp, or excluded.

use super::params::{CATEGORY_WEIGHT, DatePart, PlanParams};
use super::remarks;
use crate::error::{Error, Result};
use crate::kernel::Kernel;
use crate::planning::survey::{Column, Levels, Survey};
use crate::recipe::words::percent;
use crate::recipe::{
    Category, MAX_CATEGORIES, MAX_LEVELS, Number, OTHER_LEVEL, Recipe, Step, vector_of,
};
use crate::rows::{Lost, MISSING, RowSource};
use crate::sketch::columns::{ColumnSummary, LevelShare, Lines, Use};
use std::sync::Arc;

/// Largest number of levels for which a text column is a category by default.
pub const FEW_LEVELS: usize = 50;
/// Smallest share of the rows for which a level is kept as a separate level.
const LEAST_SHARE: f64 = 0.001;
/// Largest number of levels of all categories together.
const MOST_LEVELS: usize = 4096;
/// Share of the columns that must be present in a row, if the plan allows missing values.
const LEAST_PRESENT: f64 = 0.25;

/// Range below which a sine or cosine is constant up to rounding.
pub(super) const ONE_POINT: f64 = 1e-9;

/// The columns of a table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TableColumns {
    /// Numeric columns, each with a flag for timestamps.
    pub numbers: Vec<(String, bool)>,
    /// Categorical columns.
    pub categories: Vec<String>,
}

impl TableColumns {
    /// The columns of a source.
    pub fn of(source: &dyn RowSource) -> Self {
        let numbers = source.columns().iter().enumerate();
        TableColumns {
            numbers: numbers.map(|(j, name)| (name.clone(), source.is_time(j))).collect(),
            categories: source.categories().iter().map(|c| c.name.clone()).collect(),
        }
    }

    /// The columns of a table without categories and timestamps.
    pub fn plain<S: Into<String>>(columns: impl IntoIterator<Item = S>) -> Self {
        let numbers = columns.into_iter().map(|name| (name.into(), false)).collect();
        TableColumns { numbers, categories: Vec::new() }
    }
}

/// All columns that may be measured, before any row is read: the names of the numeric columns, and
/// the recipe, whose categories have no levels yet.
pub fn preliminary(table: &TableColumns, params: &PlanParams) -> Result<(Vec<String>, Recipe)> {
    let (mut columns, mut recipe) = (Vec::new(), Recipe::default());
    for (name, time) in &table.numbers {
        let mut add = |column: String, step: Step| {
            columns.push(column);
            recipe.numbers.push(Number { input: name.clone(), step });
        };
        match time {
            false if params.log.contains(name) => add(name.clone(), Step::Log),
            false => add(name.clone(), Step::AsIs),
            true => {
                let asked = params.dates.iter().find(|(column, _)| column == name);
                let parts = asked.map_or(DatePart::DEFAULT, |(_, parts)| parts);
                let again = |(i, part): &(usize, &DatePart)| parts[..*i].contains(part);
                for (_, part) in parts.iter().enumerate().filter(|pair| !again(pair)) {
                    part.steps()
                        .iter()
                        .for_each(|(ending, step)| add(format!("{name}{ending}"), *step));
                }
            }
        }
    }
    for name in &table.categories {
        let weight = params.weight_of(name).unwrap_or(CATEGORY_WEIGHT);
        recipe.categories.push(Category { name: name.clone(), levels: Vec::new(), weight });
    }
    let names = || table.numbers.iter().map(|(name, _)| name).chain(&table.categories);
    let known = |name: &String| names().any(|n| n == name || vector_of(n) == Some(name));
    let weighted = params.column_weights.iter().map(|(name, _)| ("`weight_column`", name));
    let logs = params.log.iter().map(|name| ("`log`", name));
    if let Some((parameter, name)) = weighted.chain(logs).find(|(_, name)| !known(name)) {
        let all: Vec<&str> = names().map(String::as_str).collect();
        let expected = format!("columns of the table: {}", all.join(", "));
        return Err(Error::parameter(parameter, expected, name));
    }
    let plain = |name: &String| table.numbers.contains(&(name.clone(), false));
    if let Some(name) = params.log.iter().find(|name| !plain(name)) {
        return Err(Error::parameter("`log`", "columns of numbers", name));
    }
    recipe.units = units(&columns, &params.unit)?;
    Ok((columns, recipe))
}

/// Column ranges of the vectors with these names. `*` means all numeric columns.
fn units(columns: &[String], names: &[String]) -> Result<Vec<std::ops::Range<usize>>> {
    let mut units = Vec::new();
    for name in names {
        if name == "*" {
            units.push(0..columns.len());
            continue;
        }
        let of_it = |c: &String| vector_of(c) == Some(name);
        match (columns.iter().position(of_it), columns.iter().rposition(of_it)) {
            (Some(first), Some(last)) if columns[first..=last].iter().all(of_it) => {
                units.push(first..last + 1);
            }
            _ => return Err(Error::parameter("`unit`", "names of vectors", name)),
        }
    }
    units.sort_by_key(|u| u.start);
    Ok(units)
}

/// The measured columns and their survey.
pub struct Settled {
    pub columns: Vec<String>,
    pub recipe: Recipe,
    pub found: Survey,
    pub notes: Vec<String>,
    /// The columns of the table, with a summary of each.
    pub table: Vec<ColumnSummary>,
}

/// Notes and column summaries collected while columns are chosen.
#[derive(Default)]
struct Said {
    notes: Vec<String>,
    table: Lines,
}

impl Said {
    /// Records the survey of a numeric column.
    fn number(&mut self, number: &Number, found: &Column) {
        let at = self.table.place(number);
        let column = &mut self.table.columns[at];
        let missing = 1.0 - found.present;
        column.missing = Some(column.missing.unwrap_or(0.0).max(missing));
        if found.present > 0.0 && matches!(number.step, Step::AsIs | Step::Log | Step::Time) {
            let [low, high] = [found.low, found.high].map(|x| number.step.undo(x));
            column.low = Some(column.low.map_or(low, |known| known.min(low)));
            column.high = Some(column.high.map_or(high, |known| known.max(high)));
        }
    }

    /// Records the reason why a numeric column is excluded.
    fn left_out(&mut self, number: &Number, why: &str) {
        let at = self.table.place(number);
        let column = &mut self.table.columns[at];
        // Other coordinates of the same vector may be measured.
        if column.role != Use::Vector {
            column.role = Use::LeftOut;
            column.left_out = Some(why.to_string());
        }
    }
}

/// Chooses the columns to measure from the survey: the levels of categories, the excluded columns,
/// and whether the plan allows missing values. Categories can be measured only if `landmarks` are
/// chosen from the rows.
pub fn settle(
    columns: Vec<String>,
    recipe: Recipe,
    found: Survey,
    params: &PlanParams,
    landmarks: bool,
) -> Result<Settled> {
    let mut said = Said::default();
    let numbers = chosen_numbers(&columns, &recipe, &found, params, &mut said)?;
    let mut categories = Vec::new();
    let mut kept = Vec::new();
    let gaussian = landmarks && params.kernel == Kernel::Gaussian;
    for (c, category) in recipe.categories.iter().enumerate() {
        if !gaussian && !params.categorical.contains(&category.name) {
            let why =
                "categories need landmarks that are chosen from the rows and the Gaussian kernel";
            said.notes.push(format!("column '{}' is left out: {why}", category.name));
            said.table.columns.push(ColumnSummary::unused(&category.name, why));
            continue;
        }
        if let Some(levels) =
            chosen_levels(&category.name, &found.levels[c], &found, params, &mut said)?
        {
            categories.push(Category { levels, ..category.clone() });
            kept.push(c);
        }
    }
    if categories.len() > MAX_CATEGORIES {
        let expected = format!("at most {MAX_CATEGORIES} categories");
        return Err(Error::parameter("`categorical`", expected, categories.len()));
    }
    let all: usize = categories.iter().map(Category::len).sum();
    if all > MOST_LEVELS {
        let expected = format!("categories with at most {MOST_LEVELS} levels together");
        return Err(Error::parameter("`categorical`", expected, all));
    }
    if numbers.is_empty() {
        let got = if categories.is_empty() { "none" } else { "categories alone" };
        return Err(Error::parameter("columns", "at least one column of numbers", got));
    }
    let holes = numbers.iter().any(|j| found.columns[*j].lacking > 0);
    let least = ((numbers.len() + kept.len()) as f64 * LEAST_PRESENT).ceil() as usize;
    let partial = params.keeps_partial(holes);
    if holes && partial {
        let share = |j: &usize| (1.0 - found.columns[*j].present, &columns[*j]);
        let mut lacking: Vec<(f64, &String)> =
            numbers.iter().map(share).filter(|(s, _)| *s > 0.0).collect();
        lacking.sort_by(|a, b| b.0.total_cmp(&a.0));
        let named: Vec<String> =
            lacking.iter().take(3).map(|(s, name)| format!("'{name}' {}", percent(*s))).collect();
        let more = if lacking.len() > 3 { ", …" } else { "" };
        let plural = if lacking.len() == 1 { " has" } else { "s have" };
        said.notes.push(format!(
            "{} column{plural} missing values ({}{more}); rows contribute the values they have (`missing=partial`)",
            lacking.len(),
            named.join(", ")
        ));
    }
    let unit_of = |j: usize| recipe.units.iter().position(|u| u.contains(&j));
    let units = (0..recipe.units.len()).filter_map(|u| {
        let first = numbers.iter().position(|j| unit_of(*j) == Some(u))?;
        let last = numbers.iter().rposition(|j| unit_of(*j) == Some(u))?;
        Some(first..last + 1)
    });
    let recipe = Recipe {
        numbers: numbers.iter().map(|j| recipe.numbers[*j].clone()).collect(),
        units: units.collect(),
        least_present: partial.then_some(least.max(1)),
        categories,
    };
    let found = restricted(found, &numbers, &kept, &recipe);
    let columns = numbers.iter().map(|j| columns[*j].clone()).collect();
    Ok(Settled { columns, recipe, found, notes: said.notes, table: said.table.columns })
}

/// The reason for excluding a column without any values.
const NO_VALUE: &str = "no row has a value there";

/// The columns of the same point on a circle: its sine and its cosine.
fn on_circle<'a>(
    recipe: &'a Recipe,
    found: &'a Survey,
    j: usize,
) -> impl Iterator<Item = &'a Column> {
    let part = |step: Step| step.name().split('_').next();
    let same = move |n: &Number| {
        n.input == recipe.numbers[j].input && part(n.step) == part(recipe.numbers[j].step)
    };
    let all = recipe.numbers.iter().zip(&found.columns);
    all.filter(move |(n, _)| n.step.of_circle() && same(n)).map(|(_, c)| c)
}

/// Indices of the numeric columns to measure.
fn chosen_numbers(
    columns: &[String],
    recipe: &Recipe,
    found: &Survey,
    params: &PlanParams,
    said: &mut Said,
) -> Result<Vec<usize>> {
    let mut chosen = Vec::new();
    let mut empty = Vec::new();
    for (j, column) in columns.iter().enumerate() {
        let Number { input, step } = &recipe.numbers[j];
        let asked = params.named.contains(input);
        let statistics = found.columns[j];
        let vector = vector_of(input).is_some();
        said.number(&recipe.numbers[j], &statistics);
        if statistics.present == 0.0 {
            if asked || params.log.contains(input) {
                return Err(Error::parameter(
                    "columns",
                    format!("a value in some row of '{column}'"),
                    "none",
                ));
            }
            empty.push(format!("'{column}'"));
            said.left_out(&recipe.numbers[j], NO_VALUE);
        } else if step.of_circle()
            && on_circle(recipe, found, j).all(|c| c.high - c.low < ONE_POINT)
        {
            // Dates without a time of day have a constant hour.
        } else if params.leave_out_ids && !asked && !vector && remarks::is_surely_id(found, j) {
            let why = format!(
                "every row has another whole number, as an id has; `numeric={column}` keeps it"
            );
            said.notes.push(format!("column '{column}' is left out: {why}"));
            said.left_out(&recipe.numbers[j], &why);
        } else {
            chosen.push(j);
        }
    }
    if !empty.is_empty() {
        let noun = if empty.len() == 1 { "column" } else { "columns" };
        said.notes.push(format!("{noun} {} left out: {NO_VALUE}", empty.join(", ")));
    }
    // If all columns are ids, they are measured nevertheless.
    if chosen.is_empty() && recipe.categories.is_empty() {
        for column in said.table.columns.iter_mut().filter(|c| c.missing < Some(1.0)) {
            (column.role, column.left_out) = (Use::Number, None);
        }
        said.notes.retain(|note| !note.ends_with("keeps it"));
        chosen = (0..columns.len()).filter(|j| found.columns[*j].present > 0.0).collect();
    }
    Ok(chosen)
}

/// Levels of a category, most frequent first; `None` if the column is excluded.
fn chosen_levels(
    name: &String,
    levels: &Levels,
    found: &Survey,
    params: &PlanParams,
    said: &mut Said,
) -> Result<Option<Vec<String>>> {
    let asked = params.categorical.contains(name);
    let seen = levels.texts.iter().filter(|(_, rows)| *rows > 0).count();
    let (too_many, why) = match levels.lost {
        Some(Lost::TooLong) => (true, "a text of more than 1,024 bytes".to_string()),
        Some(Lost::TooMany) => (true, "more than 65,536 different texts".to_string()),
        None => (!asked && seen > FEW_LEVELS, format!("{seen} different texts")),
    };
    if too_many && asked {
        let expected = format!("columns with few levels; '{name}' has {why}");
        return Err(Error::parameter("`categorical`", expected, name));
    }
    if too_many || seen == 0 {
        let hint = match levels.lost {
            None if seen > 0 && seen as u64 == found.rows => ", as an id has".to_string(),
            None if seen > 0 => format!("; `categorical={name}` keeps the most frequent"),
            _ => String::new(),
        };
        let why = if seen == 0 { NO_VALUE.into() } else { format!("it has {why}{hint}") };
        said.notes.push(format!("column '{name}' is left out: {why}"));
        let missing = levels.missing as f64 / found.rows.max(1) as f64;
        let unused = ColumnSummary::unused(name, why);
        said.table.columns.push(ColumnSummary { missing: Some(missing), ..unused });
        return Ok(None);
    }
    let least = (LEAST_SHARE * found.rows as f64).max(1.0);
    let mut kept: Vec<&(Arc<str>, u64)> =
        levels.texts.iter().filter(|(_, rows)| *rows as f64 >= least).collect();
    kept.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    kept.truncate(MAX_LEVELS);
    let share = |rows: u64| rows as f64 / found.rows.max(1) as f64;
    let level = |text: &str, rows| LevelShare { level: text.into(), share: Some(share(rows)) };
    let mut shares: Vec<LevelShare> = kept.iter().map(|(text, rows)| level(text, *rows)).collect();
    if kept.len() < seen {
        let rows: u64 = kept.iter().map(|(_, rows)| rows).sum();
        let rest = found.rows.saturating_sub(rows + levels.missing);
        shares.push(level(OTHER_LEVEL, rest));
        said.notes.push(format!(
            "category '{name}': {} of {seen} levels are kept, the others ({}) count as one",
            kept.len(),
            percent(share(rest))
        ));
    }
    said.table.columns.push(ColumnSummary {
        column: name.clone(),
        role: Use::Category,
        missing: Some(share(levels.missing)),
        levels: shares,
        ..ColumnSummary::default()
    });
    Ok(Some(kept.into_iter().map(|(text, _)| text.to_string()).collect()))
}

/// Restricts a survey to the measured columns, with codes of the recipe's levels, and without
/// sampled rows that have too few values.
fn restricted(
    mut found: Survey,
    numbers: &[usize],
    categories: &[usize],
    recipe: &Recipe,
) -> Survey {
    let (d, c) = (found.columns.len(), found.levels.len());
    let recode: Vec<Vec<u32>> = categories
        .iter()
        .zip(&recipe.categories)
        .map(|(from, category)| {
            let place = |text: &Arc<str>| category.levels.iter().position(|l| **l == **text);
            let code =
                |(text, _): &(Arc<str>, u64)| place(text).map_or(category.other(), |p| p as u32);
            found.levels[*from].texts.iter().map(code).collect()
        })
        .collect();
    // Compacts the sample in place, because it may be large.
    let (mut sample, mut end) = (std::mem::take(&mut found.sample), 0);
    let (mut kept, mut codes, mut weights) = (Vec::new(), Vec::new(), Vec::new());
    for (i, weight) in found.sample_weights.iter().enumerate() {
        let row = &sample[i * d..(i + 1) * d];
        let levels = categories.iter().zip(&recode).zip(&recipe.categories);
        let levels: Vec<u32> = levels
            .map(|((from, recode), category)| match found.codes[i * c + from] {
                MISSING => category.missing(),
                code => recode.get(code as usize).copied().unwrap_or(category.other()),
            })
            .collect();
        let there = numbers.iter().filter(|j| !row[**j].is_nan()).count();
        let known =
            levels.iter().zip(&recipe.categories).filter(|(l, c)| **l != c.missing()).count();
        if recipe.least_present.is_none_or(|least| there + known >= least) {
            kept.clear();
            kept.extend(numbers.iter().map(|j| row[*j]));
            sample[end..end + kept.len()].copy_from_slice(&kept);
            end += kept.len();
            codes.extend(levels);
            weights.push(*weight);
        }
    }
    sample.truncate(end);
    Survey {
        columns: numbers.iter().map(|j| found.columns[*j]).collect(),
        levels: categories.iter().map(|c| found.levels[*c].clone()).collect(),
        losses: found.losses.select(numbers, d),
        sample,
        codes,
        sample_weights: weights,
        ..found
    }
}
