//! Rows that were skipped: how many, which columns cost them, and when that is too many.

use crate::args::{Common, InputArgs};
use crate::output::{count, note, thousands, warn};
use anyhow::{Result, bail};
use nysketch::rows::Losses;
use serde_json::{Value, json};

/// From this share on skipped rows are worth a warning.
const WARNING: f64 = 0.05;
/// Columns that are named.
const MOST_COLUMNS: usize = 8;

/// The skipped rows of a command.
pub struct Lost<'a> {
    losses: &'a Losses,
    /// All columns, and then that of the weights.
    names: Vec<String>,
    /// Rows read, with the skipped ones.
    total: u64,
}

impl<'a> Lost<'a> {
    pub fn new(losses: &'a Losses, columns: &[String], weight: Option<&str>, total: u64) -> Self {
        let names = columns.iter().cloned().chain(weight.map(String::from)).collect();
        Lost { losses, names, total }
    }

    /// Refuses a result that more rows than allowed are missing from.
    pub fn check(&self, input: &InputArgs) -> Result<()> {
        if self.share() > input.max_skipped {
            bail!(
                "{}; make a plan without the columns that cost most, or allow it with --max-skipped {}",
                self.text("are invalid"),
                (self.share() * 100.0).ceil().min(100.0) / 100.0
            );
        }
        Ok(())
    }

    /// Says what was skipped; `then` is what became of the rows.
    pub fn tell(&self, common: &Common, then: &str) {
        if self.losses.skipped() == 0 {
            return;
        }
        let text = format!("{}{then}", self.text("skipped as invalid"));
        if self.share() > WARNING { warn(&text) } else { note(common, &text) }
    }

    /// Rows by column.
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
        format!(
            "{} of {} {what} ({}), by column: {}{more}",
            thousands(self.losses.skipped()),
            count(self.total, "row"),
            percent(self.share()),
            named.join(", ")
        )
    }
}

fn percent(share: f64) -> String {
    let digits = if share < 0.01 { 2 } else { 1 };
    format!("{:.digits$} %", 100.0 * share)
}
