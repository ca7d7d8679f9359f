//! Readable summaries of the columns of a table: their role, their statistics and their
//! transformation.
//!
//! Field names are those of `nysketch inspect --json`.

use crate::plan::Plan;
use crate::recipe::words::cycle;
use crate::recipe::words::short;
use crate::recipe::{Number, Step, vector_of};
use crate::sketch::Sketch;
use serde::Serialize;
use std::collections::HashMap;

/// The use of a column of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Use {
    /// A number.
    #[default]
    Number,
    /// A category.
    Category,
    /// A point in time.
    Time,
    /// A vector of numbers.
    Vector,
    /// Not used.
    LeftOut,
}

impl Use {
    /// Returns the readable name.
    pub fn name(self) -> &'static str {
        match self {
            Use::Number => "number",
            Use::Category => "category",
            Use::Time => "time",
            Use::Vector => "vector",
            Use::LeftOut => "left out",
        }
    }
}

/// A level of a category, with its share.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LevelShare {
    /// Text of the level.
    pub level: String,
    /// Share of the rows that have the level, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
}

/// A column of a table, and how it is used.
///
/// ```
/// use nysketch_core::sketch::columns::{ColumnSummary, Use};
/// use nysketch_core::{PlanParams, Planned, Table, plan_for};
/// # fn main() -> nysketch_core::Result<()> {
/// let table = Table::unnamed(1, (0..50).map(f64::from).collect())?;
/// let Planned { plan, report } = plan_for(&table, PlanParams::default().log(["c0"]))?;
/// // In the units of the table.
/// assert!((report.columns[0].high.unwrap() - 49.0).abs() < 1e-9);
/// let of_plan = &ColumnSummary::of_plan(&plan)[0];
/// assert_eq!((of_plan.role, of_plan.transformation[0].as_str()), (Use::Number, "log"));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[non_exhaustive]
pub struct ColumnSummary {
    /// Name of the column in the table; for a vector, the name without the index of the coordinate.
    pub column: String,
    /// Type of the column in the table, if known.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub holds: Option<String>,
    /// Use of the column.
    pub role: Use,
    /// Number of numeric columns that are measured from it.
    pub numbers: usize,
    /// Share of the rows in which the column is missing, if known; for a vector, the largest share
    /// among its coordinates.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missing: Option<f64>,
    /// Smallest value seen while planning, in the table's units.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    /// Largest value seen while planning, in the table's units.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
    /// Mean in a sketch, in the table's units; only for a column measured as one number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean: Option<f64>,
    /// Standard deviation in a sketch, of the measured number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deviation: Option<f64>,
    /// Levels of a category, in order of decreasing frequency, followed by *other* and *missing* if
    /// any rows have them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub levels: Vec<LevelShare>,
    /// Transformations of the column, as text.
    pub transformation: Vec<String>,
    /// The reason why the column is not used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left_out: Option<String>,
}

impl ColumnSummary {
    /// Creates the summary of a column that is not used.
    pub fn unused(column: impl Into<String>, why: impl Into<String>) -> Self {
        let left_out = Some(why.into());
        ColumnSummary { column: column.into(), role: Use::LeftOut, left_out, ..Self::default() }
    }

    /// Returns the columns that a plan measures, with their transformations.
    pub fn of_plan(plan: &Plan) -> Vec<Self> {
        let (mut columns, places) = Self::of_numbers(&plan.recipe.numbers);
        let mut units = plan.recipe.units.iter().peekable();
        for (j, (number, at)) in plan.recipe.numbers.iter().zip(places).enumerate() {
            columns[at].numbers += 1;
            // Units follow one another.
            while units.next_if(|unit| unit.end <= j).is_some() {}
            let words = &mut columns[at].transformation;
            let mut say = |word: String| {
                if !words.contains(&word) {
                    words.push(word);
                }
            };
            part_of(number.step).into_iter().for_each(|part| say(part.to_string()));
            if units.peek().is_some_and(|unit| unit.contains(&j)) {
                say("length one".into());
            }
            // The individual scales of the coordinates of a vector and the parts of a time are not
            // informative.
            let scale = plan.frame.scale[j];
            if scale != 1.0 && columns[at].role == Use::Number {
                columns[at].transformation.push(format!("÷ {}", short(scale)));
            }
        }
        for category in plan.categories() {
            let level = |level: &String| LevelShare { level: level.clone(), share: None };
            columns.push(ColumnSummary {
                column: category.name.clone(),
                role: Use::Category,
                levels: category.levels.iter().map(level).collect(),
                transformation: vec![format!("weight {}", category.weight)],
                ..Self::default()
            });
        }
        columns
    }

    /// Returns the columns that a sketch measures, with the exact shares of levels and of missing
    /// values.
    pub fn of_sketch(sketch: &Sketch) -> Vec<Self> {
        let plan = sketch.plan();
        let mut columns = Self::of_plan(plan);
        let rows = sketch.rows() as f64;
        if rows == 0.0 {
            return columns;
        }
        let places = Self::of_numbers(&plan.recipe.numbers).1;
        for (&at, share) in places.iter().zip(sketch.missing_shares()) {
            let known = columns[at].missing.unwrap_or(0.0);
            columns[at].missing = Some(share.max(known));
        }
        let moments = sketch.column_moments().unwrap_or_default();
        for ((number, &at), (mean, variance)) in
            plan.recipe.numbers.iter().zip(&places).zip(moments)
        {
            if columns[at].role != Use::Vector && cycle(number.step).is_none() {
                columns[at].mean = Some(number.step.undo(mean));
                columns[at].deviation = Some(variance.sqrt());
            }
        }
        // Categories come after the numbers, in their order.
        let first = columns.len() - plan.categories().len();
        let categories = plan.categories().iter().zip(&mut columns[first..]);
        for ((category, column), counts) in categories.zip(sketch.level_rows()) {
            column.missing = Some(counts[category.missing() as usize] as f64 / rows);
            let known = |code: &usize| *code < category.levels.len() || counts[*code] > 0;
            let share = |code: usize| LevelShare {
                level: category.level(code).to_string(),
                share: Some(counts[code] as f64 / rows),
            };
            column.levels = (0..category.len()).filter(known).map(share).collect();
        }
        columns
    }

    /// Returns a line for each column that these numbers come from, in their order, and the index
    /// of
    /// each number's line.
    pub(crate) fn of_numbers(numbers: &[Number]) -> (Vec<Self>, Vec<usize>) {
        let (mut lines, mut places) = (Lines::default(), Vec::with_capacity(numbers.len()));
        for number in numbers {
            places.push(lines.place(number));
        }
        (lines.columns, places)
    }
}

/// One line for each column of a table.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    pub columns: Vec<ColumnSummary>,
    /// The index of each column that a number comes from.
    places: HashMap<String, usize>,
}

impl Lines {
    /// Returns the index of the line of the column that a number comes from, adding it if needed.
    pub fn place(&mut self, number: &Number) -> usize {
        let vector = vector_of(&number.input);
        let name = vector.unwrap_or(&number.input);
        if let Some(place) = self.places.get(name) {
            return *place;
        }
        let role = match vector {
            Some(_) => Use::Vector,
            None if number.step.of_time() => Use::Time,
            None => Use::Number,
        };
        let place = self.columns.len();
        self.places.insert(name.to_string(), place);
        self.columns.push(ColumnSummary { column: name.into(), role, ..Default::default() });
        place
    }
}

/// Returns a one-word name of the quantity that a step measures; `None` for an unchanged column.
fn part_of(step: Step) -> Option<&'static str> {
    match step {
        Step::AsIs => None,
        Step::Log => Some("log"),
        Step::Time => Some("time"),
        step => cycle(step).map(|(name, _)| name),
    }
}
