//! The use of each column of a table: numeric column, category, timestamp, or excluded.

use super::choices::DatePart;
use super::params::{CATEGORY_WEIGHT, PlanParams};
use super::remarks::is_surely_id;
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
const MIN_SHARE: f64 = 0.001;
/// Largest number of levels of all categories together.
const MAX_ALL_LEVELS: usize = 4096;
/// Share of the columns that must be present in a row, if the plan allows missing values.
const MIN_PRESENT: f64 = 0.25;

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
        for (ending, step) in steps_of(name, *time, params) {
            columns.push(format!("{name}{ending}"));
            recipe.numbers.push(Number { input: name.clone(), step });
        }
    }
    for name in &table.categories {
        let weight = params.weight_of(name).unwrap_or(CATEGORY_WEIGHT);
        recipe.categories.push(Category { name: name.clone(), levels: Vec::new(), weight });
    }
    check_names(table, params)?;
    recipe.units = units(&columns, &params.unit)?;
    Ok((columns, recipe))
}

/// Suffixes of the columns that a numeric column of the table gives, and the steps that compute
/// them. Each part of a timestamp counts once.
fn steps_of(name: &String, time: bool, params: &PlanParams) -> Vec<(&'static str, Step)> {
    if !time {
        let step = if params.log.contains(name) { Step::Log } else { Step::AsIs };
        return vec![("", step)];
    }
    let requested = params.dates.iter().find(|(column, _)| column == name);
    let mut parts: Vec<DatePart> = Vec::new();
    for part in requested.map_or(DatePart::DEFAULT, |(_, parts)| parts) {
        if !parts.contains(part) {
            parts.push(*part);
        }
    }
    parts.iter().flat_map(|part| part.steps()).copied().collect()
}

/// Checks that the columns named in the parameters exist, and that logarithms are of numbers.
fn check_names(table: &TableColumns, params: &PlanParams) -> Result<()> {
    let names: Vec<&str> = table
        .numbers
        .iter()
        .map(|(name, _)| name)
        .chain(&table.categories)
        .map(String::as_str)
        .collect();
    let weighted = params.column_weights.iter().map(|(name, _)| ("`weight_column`", name));
    let logs = params.log.iter().map(|name| ("`log`", name));
    for (parameter, name) in weighted.chain(logs) {
        if !names.iter().any(|n| n == name || vector_of(n) == Some(name)) {
            let expected = format!("columns of the table: {}", names.join(", "));
            return Err(Error::parameter(parameter, expected, name));
        }
    }
    for name in &params.log {
        if !table.numbers.contains(&(name.clone(), false)) {
            return Err(Error::parameter("`log`", "columns of numbers", name));
        }
    }
    Ok(())
}

/// Column ranges of the vectors with these names. `*` means all numeric columns.
fn units(columns: &[String], names: &[String]) -> Result<Vec<std::ops::Range<usize>>> {
    let mut units = Vec::new();
    for name in names {
        if name == "*" {
            units.push(0..columns.len());
            continue;
        }
        let places = columns.iter().enumerate().filter(|(_, c)| vector_of(c) == Some(name));
        let places: Vec<usize> = places.map(|(place, _)| place).collect();
        match (places.first(), places.last()) {
            (Some(first), Some(last)) if last - first + 1 == places.len() => {
                units.push(*first..last + 1);
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
struct Remarks {
    notes: Vec<String>,
    table: Lines,
}

impl Remarks {
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
    let mut remarks = Remarks::default();
    let numbers = chosen_numbers(&columns, &recipe, &found, params, &mut remarks)?;
    let mut categories = Vec::new();
    let mut kept = Vec::new();
    let gaussian = landmarks && params.kernel == Kernel::Gaussian;
    for (c, category) in recipe.categories.iter().enumerate() {
        if !gaussian && !params.categorical.contains(&category.name) {
            let why =
                "categories need landmarks that are chosen from the rows and the Gaussian kernel";
            remarks.notes.push(format!("column '{}' is left out: {why}", category.name));
            remarks.table.columns.push(ColumnSummary::unused(&category.name, why));
            continue;
        }
        if let Some(levels) =
            chosen_levels(&category.name, &found.levels[c], &found, params, &mut remarks)?
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
    if all > MAX_ALL_LEVELS {
        let expected = format!("categories with at most {MAX_ALL_LEVELS} levels together");
        return Err(Error::parameter("`categorical`", expected, all));
    }
    if numbers.is_empty() {
        let got = if categories.is_empty() { "none" } else { "categories alone" };
        return Err(Error::parameter("columns", "at least one column of numbers", got));
    }
    let missing = numbers.iter().any(|j| found.columns[*j].missing > 0);
    let least = ((numbers.len() + kept.len()) as f64 * MIN_PRESENT).ceil() as usize;
    let partial = params.keeps_missing(missing);
    if missing && partial {
        remarks.notes.push(note_of_missing(&columns, &numbers, &found));
    }
    let units = (0..recipe.units.len()).filter_map(|unit| {
        let first = numbers.iter().position(|j| unit_of(&recipe, *j) == Some(unit))?;
        let last = numbers.iter().rposition(|j| unit_of(&recipe, *j) == Some(unit))?;
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
    Ok(Settled { columns, recipe, found, notes: remarks.notes, table: remarks.table.columns })
}

/// Index of the vector to which a column belongs, if any.
fn unit_of(recipe: &Recipe, j: usize) -> Option<usize> {
    recipe.units.iter().position(|unit| unit.contains(&j))
}

/// A note that names the columns with the most missing values.
fn note_of_missing(columns: &[String], numbers: &[usize], found: &Survey) -> String {
    let mut missing: Vec<(f64, &String)> = numbers
        .iter()
        .map(|j| (1.0 - found.columns[*j].present, &columns[*j]))
        .filter(|(share, _)| *share > 0.0)
        .collect();
    missing.sort_by(|a, b| b.0.total_cmp(&a.0));
    let named: Vec<String> =
        missing.iter().take(3).map(|(s, name)| format!("'{name}' {}", percent(*s))).collect();
    let more = if missing.len() > 3 { ", …" } else { "" };
    let plural = if missing.len() == 1 { " has" } else { "s have" };
    format!(
        "{} column{plural} missing values ({}{more}); rows contribute the values they have \
         (`missing=partial`)",
        missing.len(),
        named.join(", ")
    )
}

/// The reason for excluding a column without any values.
const NO_VALUE: &str = "no row has a value there";

/// The columns of the same point on a circle: its sine and its cosine.
fn on_circle<'a>(
    recipe: &'a Recipe,
    found: &'a Survey,
    j: usize,
) -> impl Iterator<Item = &'a Column> {
    let number = &recipe.numbers[j];
    let all = recipe.numbers.iter().zip(&found.columns);
    all.filter(move |(n, _)| {
        n.step.of_circle() && n.input == number.input && part_name(n.step) == part_name(number.step)
    })
    .map(|(_, c)| c)
}

/// Name of the part of a timestamp that a step measures, the same for its sine and its cosine.
fn part_name(step: Step) -> Option<&'static str> {
    step.name().split('_').next()
}

/// Indices of the numeric columns to measure.
fn chosen_numbers(
    columns: &[String],
    recipe: &Recipe,
    found: &Survey,
    params: &PlanParams,
    remarks: &mut Remarks,
) -> Result<Vec<usize>> {
    let mut chosen = Vec::new();
    let mut empty = Vec::new();
    for (j, column) in columns.iter().enumerate() {
        let Number { input, step } = &recipe.numbers[j];
        let requested = params.named.contains(input);
        let statistics = found.columns[j];
        let vector = vector_of(input).is_some();
        remarks.number(&recipe.numbers[j], &statistics);
        if statistics.present == 0.0 {
            if requested || params.log.contains(input) {
                return Err(Error::parameter(
                    "columns",
                    format!("a value in some row of '{column}'"),
                    "none",
                ));
            }
            empty.push(format!("'{column}'"));
            remarks.left_out(&recipe.numbers[j], NO_VALUE);
        } else if step.of_circle()
            && on_circle(recipe, found, j).all(|c| c.high - c.low < ONE_POINT)
        {
            // Dates without a time of day have a constant hour.
        } else if params.leave_out_ids && !requested && !vector && is_surely_id(found, j) {
            let why = format!(
                "every row has another whole number, as an id has; `numeric={column}` keeps it"
            );
            remarks.notes.push(format!("column '{column}' is left out: {why}"));
            remarks.left_out(&recipe.numbers[j], &why);
        } else {
            chosen.push(j);
        }
    }
    if !empty.is_empty() {
        let noun = if empty.len() == 1 { "column" } else { "columns" };
        remarks.notes.push(format!("{noun} {} left out: {NO_VALUE}", empty.join(", ")));
    }
    // If all columns are ids, they are measured nevertheless.
    if chosen.is_empty() && recipe.categories.is_empty() {
        for column in remarks.table.columns.iter_mut().filter(|c| c.missing < Some(1.0)) {
            (column.role, column.left_out) = (Use::Number, None);
        }
        remarks.notes.retain(|note| !note.ends_with("keeps it"));
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
    remarks: &mut Remarks,
) -> Result<Option<Vec<String>>> {
    let requested = params.categorical.contains(name);
    let seen = levels.texts.iter().filter(|(_, rows)| *rows > 0).count();
    let (too_many, why) = match levels.lost {
        Some(Lost::TooLong) => (true, "a text of more than 1,024 bytes".to_string()),
        Some(Lost::TooMany) => (true, "more than 65,536 different texts".to_string()),
        None => (!requested && seen > FEW_LEVELS, format!("{seen} different texts")),
    };
    if too_many && requested {
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
        remarks.notes.push(format!("column '{name}' is left out: {why}"));
        let missing = Some(share_of_rows(levels.missing, found));
        let unused = ColumnSummary::unused(name, why);
        remarks.table.columns.push(ColumnSummary { missing, ..unused });
        return Ok(None);
    }
    let min_rows = (MIN_SHARE * found.rows as f64).max(1.0);
    let mut kept: Vec<&(Arc<str>, u64)> =
        levels.texts.iter().filter(|(_, rows)| *rows as f64 >= min_rows).collect();
    kept.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    kept.truncate(MAX_LEVELS);
    let mut shares: Vec<LevelShare> = kept
        .iter()
        .map(|(text, rows)| LevelShare {
            level: text.to_string(),
            share: Some(share_of_rows(*rows, found)),
        })
        .collect();
    if kept.len() < seen {
        let rows: u64 = kept.iter().map(|(_, rows)| rows).sum();
        let rest = found.rows.saturating_sub(rows + levels.missing);
        let share = share_of_rows(rest, found);
        shares.push(LevelShare { level: OTHER_LEVEL.into(), share: Some(share) });
        remarks.notes.push(format!(
            "category '{name}': {} of {seen} levels are kept, the others ({}) count as one",
            kept.len(),
            percent(share)
        ));
    }
    remarks.table.columns.push(ColumnSummary {
        column: name.clone(),
        role: Use::Category,
        missing: Some(share_of_rows(levels.missing, found)),
        levels: shares,
        ..ColumnSummary::default()
    });
    Ok(Some(kept.into_iter().map(|(text, _)| text.to_string()).collect()))
}

/// The share of all rows that these are.
fn share_of_rows(rows: u64, found: &Survey) -> f64 {
    rows as f64 / found.rows.max(1) as f64
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
            let texts = found.levels[*from].texts.iter();
            texts.map(|(text, _)| category.code_of(text)).collect()
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
        let present = numbers.iter().filter(|j| !row[**j].is_nan()).count();
        let known =
            levels.iter().zip(&recipe.categories).filter(|(l, c)| **l != c.missing()).count();
        if recipe.least_present.is_none_or(|least| present + known >= least) {
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
