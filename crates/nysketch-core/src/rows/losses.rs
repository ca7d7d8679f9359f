//! Counts of skipped rows and of the columns that caused the skips.

use serde::{Deserialize, Serialize};

/// Number of rows skipped as invalid, in total and per column. A row with several invalid values
/// counts for each of their columns.
///
/// ```
/// use nysketch_core::rows::Losses;
/// let mut losses = Losses::default();
/// losses.skip([2, 0]);
/// losses.skip([2]);
/// let names = ["a", "b", "c"].map(String::from);
/// assert_eq!(losses.skipped(), 2);
/// assert_eq!(losses.by_column(&names), [("c", 2), ("a", 1)]);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Losses {
    skipped: u64,
    columns: Vec<u64>,
}

impl Losses {
    /// Counts a row that is invalid in these columns. The index after the last column is the
    /// weight.
    pub fn skip(&mut self, columns: impl IntoIterator<Item = usize>) {
        self.skipped += 1;
        for column in columns {
            self.columns.resize(self.columns.len().max(column + 1), 0);
            self.columns[column] += 1;
        }
    }

    /// Adds the losses of other rows.
    pub fn merge(&mut self, other: &Losses) {
        self.skipped += other.skipped;
        self.columns.resize(self.columns.len().max(other.columns.len()), 0);
        self.columns.iter_mut().zip(&other.columns).for_each(|(a, b)| *a += b);
    }

    /// Number of skipped rows.
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// The columns with invalid values, most affected first, with the number of rows each.
    pub fn by_column<'a>(&self, names: &'a [String]) -> Vec<(&'a str, u64)> {
        let named = names.iter().map(String::as_str).zip(self.columns.iter().copied());
        let mut costly: Vec<(&str, u64)> = named.filter(|(_, rows)| *rows > 0).collect();
        costly.sort_by_key(|(_, rows)| std::cmp::Reverse(*rows));
        costly
    }

    /// The losses of the given columns out of `all`, followed by those of the weight.
    pub(crate) fn select(&self, columns: &[usize], all: usize) -> Self {
        let columns = columns.iter().chain([&all]);
        let columns = columns.map(|j| self.columns.get(*j).copied().unwrap_or(0)).collect();
        Losses { skipped: self.skipped, columns }
    }

    /// The counts, for sending to another machine; see [`Losses::from_counts`].
    pub(crate) fn counts(&self) -> (u64, &[u64]) {
        (self.skipped, &self.columns)
    }

    /// Losses from counts received from another machine.
    pub(crate) fn from_counts(skipped: u64, columns: Vec<u64>) -> Self {
        Losses { skipped, columns }
    }
}
