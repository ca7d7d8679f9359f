//! Skipped rows: their number, the columns that caused the losses, and the limit on their share.

use crate::args::{Common, InputArgs};
use crate::output::{count, note, percent, thousands, warn};
use anyhow::{Result, bail};
use nysketch::rows::Losses;
use nysketch::{Plan, Recipe};
use serde_json::{Value, json};

/// Minimum share of skipped rows that causes a warning.
const WARNING: f64 = 0.05;
/// Maximum number of columns in a message.
const MOST_COLUMNS: usize = 8;

/// The skipped rows of a command.
pub struct Lost<'a> {
    losses: &'a Losses,
    /// Names of all columns, followed by the column of weights.
    names: Vec<String>,
    /// Number of rows read, including skipped ones.
    total: u64,
    /// If rows may have missing values: the number of columns that each row needs, and the number
    /// of all columns.
    least: Option<(usize, usize)>,
}

impl<'a> Lost<'a> {
    /// Collects the rows that were lost because of the columns of a recipe.
    pub fn new(losses: &'a Losses, columns: &[String], recipe: &Recipe, total: u64) -> Self {
        let all = columns.len() + recipe.categories.len();
        let least = recipe.least_present.map(|least| (least, all));
        Lost { losses, names: columns.to_vec(), total, least }
    }

    /// Collects the rows that were lost because of the columns of a plan or of their weights.
    pub fn of_plan(losses: &'a Losses, plan: &Plan, total: u64) -> Self {
        let mut lost = Self::new(losses, &plan.columns, &plan.recipe, total);
        lost.names.extend(plan.weighting.iter().map(|w| w.column.clone()));
        lost
    }

    /// Returns an error if more rows were lost than the options allow.
    pub fn check(&self, input: &InputArgs) -> Result<()> {
        if self.share() > input.max_skipped {
            bail!(
                "{}; make a plan without the columns that cost most, or allow it with \
                 --max-skipped {}",
                self.text("are invalid"),
                (self.share() * 100.0).ceil().min(100.0) / 100.0
            );
        }
        Ok(())
    }

    /// Prints the losses; `then` describes the use of the rows.
    pub fn tell(&self, common: &Common, then: &str) {
        if self.losses.skipped() == 0 {
            return;
        }
        let lacking = self.least.map_or(String::new(), |(least, all)| {
            format!(" or for having fewer than {least} of {all} values")
        });
        let text = format!("{}{then}", self.text(&format!("skipped as invalid{lacking}")));
        if self.share() > WARNING { warn(&text) } else { note(common, &text) }
    }

    /// Returns the number of lost rows.
    pub fn skipped(&self) -> u64 {
        self.losses.skipped()
    }

    /// Returns the number of lost rows by column.
    pub fn json(&self) -> Value {
        self.losses.by_column(&self.names).into_iter().map(|(name, n)| (name, json!(n))).collect()
    }

    fn share(&self) -> f64 {
        self.losses.skipped() as f64 / self.total.max(1) as f64
    }

    fn text(&self, what: &str) -> String {
        let by_column = self.losses.by_column(&self.names);
        let named = by_column.iter().take(MOST_COLUMNS);
        let named: Vec<String> =
            named.map(|(name, n)| format!("{name} {}", thousands(*n))).collect();
        let more = by_column.len().saturating_sub(MOST_COLUMNS);
        let more = if more > 0 {
            format!(" and {}", count(more as u64, "more column"))
        } else {
            String::new()
        };
        let by_column = if named.is_empty() {
            String::new()
        } else {
            format!(", by column: {}{more}", named.join(", "))
        };
        format!(
            "{} of {} {what} ({}){by_column}",
            thousands(self.losses.skipped()),
            count(self.total, "row"),
            percent(self.share()),
        )
    }
}
