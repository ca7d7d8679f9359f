//! How unusual a day is among others.
//!
//! Days differ, so a test of two days for equality says little. What can be asked is whether today differs from the
//! other days more than they differ from each other. Every day, today included, is compared with all others taken together, in
//! three ways:
//!
//! * the share of its rows that would have to move to another cell, less what noise moves;
//! * the squared discrepancy of its kernel means at the middle bandwidth, likewise;
//! * its most unusual mean of a column or share of a level or of missing values, in deviations of the days.
//!
//! Each is put into units of its own spread over the days, and the largest of the three is the day's *score*. If the days
//! are exchangeable, every rank of today's score is equally likely, whatever the score is, so that
//!
//! ```text
//! p = (days with a score of at least today's, itself counted) / (N + 1)
//! ```
//!
//! is a p-value without any further assumption (conformal prediction, Vovk et al. 2005). It cannot be below 1/(N + 1).

use crate::comparison::compare::Comparison;
use crate::statistics::moved::beyond_noise;
use nysketch_core::error::{Error, Result};
use nysketch_core::sketch::{Sketch, check_same_plan};
use nysketch_core::sums::Sum;
use serde::Serialize;

/// A deviation, from the median of the magnitudes of normal numbers.
const FROM_MEDIAN: f64 = 1.4826;
/// The deviation of a column without any, in the plan's scale.
const CONSTANT: f64 = 1e-6;
/// Rows without which a day is all noise.
pub const LEAST_ROWS: f64 = 10.0;
/// Days without which nothing can be said of one.
const LEAST_DAYS: usize = 2;

/// Days to compare others with, in their order.
///
/// ```
/// use nysketch::drift::{Comparison, Days};
/// use nysketch::{Mixture, PlanParams, Sketch, SketchParams, Table, plan_for};
/// # fn main() -> nysketch::Result<()> {
/// let mixture = Mixture::new(2, 3, 3.0, 7)?;
/// let table = |day: u64, shift: f64| {
///     Table::unnamed(2, mixture.rows(day, 500).values.iter().map(|x| x + shift).collect())
/// };
/// let plan = std::sync::Arc::new(plan_for(&table(0, 0.0)?, PlanParams::default().landmarks(50))?.0);
/// let sketch = |day: u64, shift| Sketch::of(&plan, &table(day, shift)?, SketchParams::default(), &());
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

/// What is compared of a day.
#[derive(Debug, Clone)]
pub(super) struct Day {
    pub name: String,
    /// Rows, by weight, and those that lack no number.
    pub rows: f64,
    complete: f64,
    /// Rows in each cell, where cells are kept.
    pub cells: Vec<f64>,
    /// Mean features at the middle bandwidth, where kernel sums are kept.
    embedding: Vec<f64>,
    /// Means of columns, shares of levels and of missing values, each with its standard error.
    facts: Vec<(f64, f64)>,
}

/// How unusual today is.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Unusual {
    /// Days that today is compared with.
    pub days: usize,
    /// Rows of today, by weight.
    pub rows: u64,
    /// p-values up to this are called unusual.
    pub level: f64,
    /// The share of days, itself counted, that are at least as unusual.
    pub p_value: f64,
    /// The least p-value that so many days can show.
    pub least_p_value: f64,
    /// Whether the p-value is at most the level.
    pub unusual: bool,
    /// The share of today's rows that would have to move to make it like the other days; none without cells.
    pub moved: Option<f64>,
    /// The same for each of the others: the middle one, and the most.
    pub others_moved: Option<[f64; 2]>,
    /// What is unusual about today, the most unusual first.
    pub reasons: Vec<Reason>,
    /// Every day, today being the last.
    pub each: Vec<DayScore>,
}

/// A mean or a share that is unusual today.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Reason {
    /// The column, or the level of a category, or whose missing values.
    pub what: String,
    /// Whether it is a share of the rows rather than a mean.
    pub share: bool,
    /// Its value today.
    pub value: f64,
    /// Its median over the other days.
    pub median: f64,
    /// How far the other days are from it typically.
    pub deviation: f64,
    /// How far today is from it, in such deviations.
    pub deviations: f64,
}

/// A day among others.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct DayScore {
    /// Its name.
    pub name: String,
    /// Its rows, by weight.
    pub rows: u64,
    /// The share of its rows that would have to move to make it like the others; none without cells.
    pub moved: Option<f64>,
    /// How unusual it is.
    pub score: f64,
}

impl<'a> Days<'a> {
    /// No days yet, of the plan of this comparison.
    pub fn new(comparison: &'a Comparison) -> Self {
        Days { comparison, days: Vec::new() }
    }

    /// Adds the next day.
    pub fn push(&mut self, name: impl Into<String>, sketch: &Sketch) -> Result<()> {
        sketch.check_exact("compare")?;
        self.days.push(self.day(name.into(), sketch)?);
        Ok(())
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.days.len()
    }

    /// Whether there are none.
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
        // As if one row more had it and one had not: what all rows share is not known without error.
        let share = |share: f64| {
            let smooth = (rows * share + 1.0) / (rows + 2.0);
            (share, (smooth * (1.0 - smooth) / rows).sqrt())
        };
        let missing = sketch.missing_shares();
        let means = sketch.column_moments().unwrap_or_default().into_iter().zip(&missing);
        let mean = |(k, ((mean, variance), missing)): (usize, ((f64, f64), &f64))| {
            // A constant column may have another value on another day; one that all rows lack has none.
            let least = (CONSTANT * plan.frame.scale[k]).powi(2);
            let error = ((variance + least) / (rows * (1.0 - missing)).max(1.0)).sqrt();
            (mean, if *missing < 1.0 { error } else { f64::INFINITY })
        };
        let levels = sketch.level_rows().into_iter().flatten();
        let mut facts: Vec<(f64, f64)> = means.enumerate().map(mean).collect();
        facts.extend(levels.map(|n| share(n as f64 * unit / rows)));
        if plan.is_partial() {
            facts.extend(missing.iter().map(|s| share(*s)));
        }
        let embedding = self.comparison.embedding(sketch);
        if facts.is_empty() && embedding.is_empty() {
            let expected = "sketches with cells, kernel sums or moments";
            return Err(Error::parameter("days", expected, "neither"));
        }
        let complete = sketch.complete_rows() as f64 * unit;
        Ok(Day { name, rows, complete, cells, embedding, facts })
    }

    /// What the facts of a day are called, and whether they are shares.
    fn fact_names(&self) -> Vec<(String, bool)> {
        let plan = self.comparison.plan();
        let means = plan.columns.iter().map(|c| (c.clone(), false));
        let levels = plan.categories().iter().flat_map(|category| {
            (0..category.len()).map(|l| (format!("{}: {}", category.name, category.level(l)), true))
        });
        let missing = plan.columns.iter().map(|c| (format!("{c} missing"), true));
        means.chain(levels).chain(missing).collect()
    }

    /// Compares a day with these.
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
        for (at, &(value, error)) in today.facts.iter().enumerate() {
            let others: Vec<f64> = self.days.iter().map(|d| d.facts[at].0).collect();
            let median = median(&others);
            let deviation = spread(&others).max(error);
            if deviation > 0.0 {
                let deviations = (value - median) / deviation;
                let (what, share) = names[at].clone();
                reasons.push(Reason { what, share, value, median, deviation, deviations });
            }
        }
        reasons.sort_by(|a, b| b.deviations.abs().total_cmp(&a.deviations.abs()));
        let each = |(i, day): (usize, &&Day)| DayScore {
            name: day.name.clone(),
            rows: day.rows.round() as u64,
            moved: scores.moved.get(i).map(|m| m.max(0.0)),
            score: scores.score[i],
        };
        let each: Vec<DayScore> = all.iter().enumerate().map(each).collect();
        let others: Vec<f64> = each[..last].iter().filter_map(|d| d.moved).collect();
        let most = others.iter().fold(0.0f64, |m, s| m.max(*s));
        Ok(Unusual {
            days: self.days.len(),
            rows: today.rows.round() as u64,
            level,
            p_value,
            least_p_value: 1.0 / all.len() as f64,
            unusual: p_value <= level,
            moved: each[last].moved,
            others_moved: (!others.is_empty()).then(|| [median(&others), most]),
            reasons,
            each,
        })
    }
}

/// How far each of some days is from all the others.
pub(super) struct Scores {
    /// The share of its rows that would have to move, less what noise moves; empty without cells.
    pub moved: Vec<f64>,
    pub score: Vec<f64>,
}

impl Scores {
    /// Of two days at least.
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

    /// The share of days with a larger score, and `ties` of those that share its own, itself among them.
    pub fn p_value(&self, day: usize, ties: f64) -> f64 {
        let own = self.score[day];
        let larger = self.score.iter().filter(|s| **s > own).count() as f64;
        let equal = self.score.iter().filter(|s| **s == own).count() as f64;
        (larger + ties * equal) / self.score.len() as f64
    }
}

/// Total variation of each day's cells from those of all others, less what it is where only noise moves rows.
fn moved(days: &[&Day]) -> Vec<f64> {
    let cells = days[0].cells.len();
    if cells == 0 {
        return Vec::new();
    }
    let mut total = vec![0.0; cells];
    days.iter().for_each(|day| add(&mut total, &day.cells, 1.0));
    let one = |day: &&Day| {
        let others: Vec<f64> = total.iter().zip(&day.cells).map(|(all, own)| all - own).collect();
        beyond_noise(&day.cells, &others)
    };
    days.iter().map(one).collect()
}

/// Squared distance of each day's embedding from that of all others, less its expectation where only noise differs.
fn discrepancies(days: &[&Day]) -> Vec<f64> {
    if days.iter().any(|day| day.embedding.is_empty()) {
        return Vec::new();
    }
    let mut total = vec![0.0; days[0].embedding.len()];
    days.iter().for_each(|day| add(&mut total, &day.embedding, day.complete));
    let rows: f64 = days.iter().map(|d| d.complete).sum();
    let norm: f64 = total.iter().map(|t| (t / rows).powi(2)).sum();
    let one = |day: &&Day| {
        let others = rows - day.complete;
        let change = day.embedding.iter().zip(&total);
        let squared: f64 =
            change.map(|(own, all)| (own - (all - own * day.complete) / others).powi(2)).sum();
        squared - (1.0 / day.complete + 1.0 / others) * (1.0 - norm).max(0.0)
    };
    days.iter().map(one).collect()
}

/// How far the most unusual fact of each day is from the median of all days, in deviations of the days.
fn unusual_facts(days: &[&Day]) -> Vec<f64> {
    let mut most = vec![0.0f64; days.len()];
    if days[0].facts.is_empty() {
        return Vec::new();
    }
    for at in 0..days[0].facts.len() {
        let values: Vec<f64> = days.iter().map(|d| d.facts[at].0).collect();
        let (median, spread) = (median(&values), spread(&values));
        for (most, day) in most.iter_mut().zip(days) {
            let (value, error) = day.facts[at];
            let deviation = spread.max(error);
            if deviation > 0.0 {
                *most = most.max((value - median).abs() / deviation);
            }
        }
    }
    most
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

/// A deviation that a few far values do not change.
fn spread(values: &[f64]) -> f64 {
    let middle = median(values);
    FROM_MEDIAN * median(&values.iter().map(|v| (v - middle).abs()).collect::<Vec<f64>>())
}
