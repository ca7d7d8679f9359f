//! How unusual a day is, compared with other days.
//!
//! Days always differ, so a test of two days for equality says little. The question is whether
//! today differs from the other days more than they differ from each other. Every day, including
//! today, is compared with all other days taken together, in three ways:
//!
//! * the share of its rows that would have to move to another cell, minus the expected effect of
//!   noise;
//! * the squared discrepancy of its kernel means at the middle bandwidth, minus the expected effect
//!   of noise;
//! * its most unusual mean of a column or share of a level or of missing values, in standard
//!   deviations between days.
//!
//! Each is divided by its own spread over the days. The largest of the three is the *score* of the
//! day. If the days are exchangeable, every rank of today's score is equally likely, for any score,
//! so that
//!
//! ```text
//! p = (days with a score of at least today's, today included) / (N + 1)
//! ```
//!
//! is a p-value without any further assumption (conformal prediction, Vovk et al. 2005). It cannot
//! be below 1/(N + 1).

use crate::comparison::compare::Comparison;
use crate::statistics::moved::beyond_noise;
use nysketch_core::error::{Error, Result};
use nysketch_core::sketch::{Sketch, check_same_plan};
use nysketch_core::sums::Sum;
use serde::Serialize;

/// Ratio of the standard deviation to the median absolute deviation of a normal distribution.
const FROM_MEDIAN: f64 = 1.4826;
/// Assumed standard deviation of a constant column, in the plan's scale.
const CONSTANT: f64 = 1e-6;
/// Smallest number of rows of a day. With fewer rows, noise dominates.
pub const LEAST_ROWS: f64 = 10.0;
/// Smallest number of days to compare with.
const LEAST_DAYS: usize = 2;

/// A sequence of days to compare another day with.
///
/// ```
/// use nysketch::drift::{Comparison, Days};
/// use nysketch::{Mixture, PlanParams, Sketch, SketchParams, Table, plan_for};
/// # fn main() -> nysketch::Result<()> {
/// let mixture = Mixture::new(2, 3, 3.0, 7)?;
/// let first = Table::unnamed(2, mixture.rows(0, 500).values)?;
/// let plan = std::sync::Arc::new(plan_for(&first, PlanParams::default().landmarks(50))?.0);
/// let sketch = |day: u64, shift: f64| -> nysketch::Result<Sketch> {
///     let values = mixture.rows(day, 500).values.iter().map(|x| x + shift).collect();
///     Sketch::of(&plan, &Table::unnamed(2, values)?, SketchParams::default(), &())
/// };
///
/// let comparison = Comparison::new(&plan)?;
/// let mut days = Days::new(&comparison);
/// for day in 0..30 {
///     // Days differ a little.
///     days.push(format!("day {day}"), &sketch(day, 0.1 * (day as f64).sin())?)?;
/// }
/// assert!(!days.compare("today", &sketch(30, 0.05)?, 0.05)?.unusual);
/// assert!(days.compare("today", &sketch(31, 0.5)?, 0.05)?.unusual);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Days<'a> {
    comparison: &'a Comparison,
    pub(super) days: Vec<Day>,
}

/// Summary of a day for comparisons.
#[derive(Debug, Clone)]
pub(super) struct Day {
    pub name: String,
    /// Number of rows, by weight, and number of complete rows.
    pub rows: f64,
    complete: f64,
    /// Numbers of rows in each cell, if cells are kept.
    pub cells: Vec<f64>,
    /// Mean features at the middle bandwidth, if kernel sums are kept.
    embedding: Vec<f64>,
    /// Means of columns and shares of levels and of missing values.
    facts: Vec<Fact>,
}

/// A mean or a share.
#[derive(Debug, Clone, Copy)]
struct Fact {
    value: f64,
    /// Its standard error.
    error: f64,
}

impl Fact {
    /// A share of `rows` rows. Its error is smoothed with one row more with and one row more
    /// without the property, so that a share of 0 or 1 has a positive error.
    fn share(share: f64, rows: f64) -> Fact {
        let smooth = (rows * share + 1.0) / (rows + 2.0);
        Fact { value: share, error: (smooth * (1.0 - smooth) / rows).sqrt() }
    }
}

/// The comparison of a day with others.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Unusual {
    /// Number of days that today is compared with.
    pub days: usize,
    /// Number of rows of today, by weight.
    pub rows: u64,
    /// Level at or below which a p-value is called unusual.
    pub level: f64,
    /// Share of all days, today included, that are at least as unusual as today.
    pub p_value: f64,
    /// The smallest p-value possible with this number of days.
    pub least_p_value: f64,
    /// Whether the p-value is at most the level.
    pub unusual: bool,
    /// Share of today's rows that would have to move to make it like the other days; `None` without
    /// cells.
    pub moved: Option<f64>,
    /// The same share for the other days: their median and maximum.
    pub others_moved: Option<[f64; 2]>,
    /// The facts of today, most unusual first.
    pub reasons: Vec<Reason>,
    /// Scores of all days; the last is today.
    pub each: Vec<DayScore>,
}

/// A mean or a share of today, compared with the other days.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Reason {
    /// The column, the level of a category, or the column with missing values.
    pub what: String,
    /// Whether the fact is a share of the rows rather than a mean.
    pub share: bool,
    /// Its value today.
    pub value: f64,
    /// Its median over the other days.
    pub median: f64,
    /// The typical deviation of the other days from the median.
    pub deviation: f64,
    /// The deviation of today from the median, in units of the typical deviation.
    pub deviations: f64,
}

/// The score of a day.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct DayScore {
    /// Name of the day.
    pub name: String,
    /// Number of rows of the day, by weight.
    pub rows: u64,
    /// Share of the day's rows that would have to move to make it like the other days; `None`
    /// without cells.
    pub moved: Option<f64>,
    /// The score: larger is more unusual.
    pub score: f64,
}

impl<'a> Days<'a> {
    /// An empty sequence of days, for the plan of this comparison.
    pub fn new(comparison: &'a Comparison) -> Self {
        Days { comparison, days: Vec::new() }
    }

    /// Adds the next day.
    pub fn push(&mut self, name: impl Into<String>, sketch: &Sketch) -> Result<()> {
        sketch.check_exact("compare")?;
        self.days.push(self.day(name.into(), sketch)?);
        Ok(())
    }

    /// Number of days.
    pub fn len(&self) -> usize {
        self.days.len()
    }

    /// Whether there are no days.
    pub fn is_empty(&self) -> bool {
        self.days.is_empty()
    }

    fn day(&self, name: String, sketch: &Sketch) -> Result<Day> {
        let plan = self.comparison.plan();
        check_same_plan(plan, sketch.plan())?;
        if sketch.rows() == 0 {
            return Err(Error::NoRows { skipped: sketch.skipped() });
        }
        if sketch.weight() < LEAST_ROWS {
            let expected = format!("at least {LEAST_ROWS} rows each");
            return Err(Error::parameter("days", expected, sketch.weight()));
        }
        let unit = plan.weighting.as_ref().map_or(1.0, |w| w.unit);
        let rows = sketch.weight();
        let cells = sketch.sums()[Sum::CellRows].iter().map(|n| *n as f64 * unit).collect();
        let missing = sketch.missing_shares();
        let means = sketch.column_moments().unwrap_or_default().into_iter().zip(&missing);
        let mut facts = Vec::new();
        for (k, ((value, variance), missing)) in means.enumerate() {
            // A constant column may have another value on another day. A column without values has
            // no error.
            let min_variance = (CONSTANT * plan.frame.scale[k]).powi(2);
            let error = ((variance + min_variance) / (rows * (1.0 - missing)).max(1.0)).sqrt();
            facts.push(Fact { value, error: if *missing < 1.0 { error } else { f64::INFINITY } });
        }
        let levels = sketch.level_rows().into_iter().flatten();
        facts.extend(levels.map(|n| Fact::share(n as f64 * unit / rows, rows)));
        if plan.is_partial() {
            facts.extend(missing.iter().map(|s| Fact::share(*s, rows)));
        }
        let embedding = self.comparison.embedding(sketch);
        if facts.is_empty() && embedding.is_empty() {
            let expected = "sketches with cells, kernel sums or moments";
            return Err(Error::parameter("days", expected, "neither"));
        }
        let complete = sketch.complete_rows() as f64 * unit;
        Ok(Day { name, rows, complete, cells, embedding, facts })
    }

    /// Names of the facts of a day, and whether they are shares.
    fn fact_names(&self) -> Vec<(String, bool)> {
        let plan = self.comparison.plan();
        let means = plan.columns.iter().map(|c| (c.clone(), false));
        let levels = plan.categories().iter().flat_map(|category| {
            (0..category.len()).map(|l| (format!("{}: {}", category.name, category.level(l)), true))
        });
        let missing = plan.columns.iter().map(|c| (format!("{c} missing"), true));
        means.chain(levels).chain(missing).collect()
    }

    /// Compares a day with these days.
    pub fn compare(&self, name: &str, today: &Sketch, level: f64) -> Result<Unusual> {
        if !(level > 0.0 && level < 1.0) {
            return Err(Error::parameter("`level`", "between 0 and 1", level));
        }
        if self.days.len() < LEAST_DAYS {
            return Err(Error::parameter("days", "at least two to compare with", self.days.len()));
        }
        let today = self.day(name.to_string(), today)?;
        let all: Vec<&Day> = self.days.iter().chain([&today]).collect();
        let scores = Scores::of(&all);
        let last = all.len() - 1;
        let p_value = scores.p_value(last, 1.0);
        let names = self.fact_names();
        let mut reasons: Vec<Reason> = Vec::new();
        for (at, &Fact { value, error }) in today.facts.iter().enumerate() {
            let others: Vec<f64> = self.days.iter().map(|d| d.facts[at].value).collect();
            let median = median(&others);
            let deviation = spread(&others).max(error);
            if deviation > 0.0 {
                let deviations = (value - median) / deviation;
                let (what, share) = names[at].clone();
                reasons.push(Reason { what, share, value, median, deviation, deviations });
            }
        }
        reasons.sort_by(|a, b| b.deviations.abs().total_cmp(&a.deviations.abs()));
        let each = all.iter().enumerate().map(|(i, day)| DayScore {
            name: day.name.clone(),
            rows: day.rows.round() as u64,
            moved: scores.moved.get(i).map(|m| m.max(0.0)),
            score: scores.score[i],
        });
        let each: Vec<DayScore> = each.collect();
        let others: Vec<f64> = each[..last].iter().filter_map(|d| d.moved).collect();
        let max_moved = others.iter().fold(0.0f64, |m, s| m.max(*s));
        Ok(Unusual {
            days: self.days.len(),
            rows: today.rows.round() as u64,
            level,
            p_value,
            least_p_value: 1.0 / all.len() as f64,
            unusual: p_value <= level,
            moved: each[last].moved,
            others_moved: (!others.is_empty()).then(|| [median(&others), max_moved]),
            reasons,
            each,
        })
    }
}

/// Distance of each day from all others.
pub(super) struct Scores {
    /// Share of the rows that would have to move, minus the expected effect of noise; empty without
    /// cells.
    pub moved: Vec<f64>,
    pub score: Vec<f64>,
}

impl Scores {
    /// Scores at least two days.
    pub fn of(days: &[&Day]) -> Self {
        let moved = moved(days);
        let mut ways = vec![discrepancies(days), unusual_facts(days)];
        ways.push(moved.clone());
        let mut score = vec![f64::NEG_INFINITY; days.len()];
        for way in ways.iter().filter(|way| !way.is_empty()) {
            let (median, spread) = (median(way), spread(way).max(1e-12));
            score.iter_mut().zip(way).for_each(|(s, w)| *s = s.max((w - median) / spread));
        }
        Scores { moved, score }
    }

    /// The share of days with a larger score, plus `ties` times the share of days with an equal
    /// score, this day included.
    pub fn p_value(&self, day: usize, ties: f64) -> f64 {
        let score = self.score[day];
        let larger = self.score.iter().filter(|s| **s > score).count() as f64;
        let equal = self.score.iter().filter(|s| **s == score).count() as f64;
        (larger + ties * equal) / self.score.len() as f64
    }
}

/// Total variation between the cells of each day and of all others, minus its expectation under
/// noise alone.
fn moved(days: &[&Day]) -> Vec<f64> {
    let cells = days[0].cells.len();
    if cells == 0 {
        return Vec::new();
    }
    let mut total = vec![0.0; cells];
    days.iter().for_each(|day| add(&mut total, &day.cells, 1.0));
    let mut moved = Vec::new();
    for day in days {
        let others: Vec<f64> = total.iter().zip(&day.cells).map(|(all, rows)| all - rows).collect();
        moved.push(beyond_noise(&day.cells, &others));
    }
    moved
}

/// Squared distance between the embedding of each day and that of all others, minus its expectation
/// under noise alone.
fn discrepancies(days: &[&Day]) -> Vec<f64> {
    if days.iter().any(|day| day.embedding.is_empty()) {
        return Vec::new();
    }
    let mut total = vec![0.0; days[0].embedding.len()];
    days.iter().for_each(|day| add(&mut total, &day.embedding, day.complete));
    let rows: f64 = days.iter().map(|d| d.complete).sum();
    let norm: f64 = total.iter().map(|t| (t / rows).powi(2)).sum();
    let mut discrepancies = Vec::new();
    for day in days {
        let others = rows - day.complete;
        let change = day.embedding.iter().zip(&total);
        let squared: f64 =
            change.map(|(mean, all)| (mean - (all - mean * day.complete) / others).powi(2)).sum();
        let noise = (1.0 / day.complete + 1.0 / others) * (1.0 - norm).max(0.0);
        discrepancies.push(squared - noise);
    }
    discrepancies
}

/// Deviation of the most unusual fact of each day from the median of all days, in standard
/// deviations between days.
fn unusual_facts(days: &[&Day]) -> Vec<f64> {
    let mut largest = vec![0.0f64; days.len()];
    if days[0].facts.is_empty() {
        return Vec::new();
    }
    for at in 0..days[0].facts.len() {
        let values: Vec<f64> = days.iter().map(|d| d.facts[at].value).collect();
        let (median, spread) = (median(&values), spread(&values));
        for (largest, day) in largest.iter_mut().zip(days) {
            let Fact { value, error } = day.facts[at];
            let deviation = spread.max(error);
            if deviation > 0.0 {
                *largest = largest.max((value - median).abs() / deviation);
            }
        }
    }
    largest
}

fn add(total: &mut [f64], values: &[f64], factor: f64) {
    total.iter_mut().zip(values).for_each(|(t, v)| *t += factor * v);
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let half = sorted.len() / 2;
    if sorted.len() % 2 == 1 { sorted[half] } else { 0.5 * (sorted[half - 1] + sorted[half]) }
}

/// A standard deviation that is robust to a few distant values.
fn spread(values: &[f64]) -> f64 {
    let middle = median(values);
    FROM_MEDIAN * median(&values.iter().map(|v| (v - middle).abs()).collect::<Vec<f64>>())
}
