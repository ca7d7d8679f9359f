//! Recorded subtractions, so that a repeated job does not subtract the same rows twice.
//!
//! Sums cannot show whether rows were subtracted before: the result has the bytes of a sketch that
//! never contained them. A ledger ([`ledger`](crate::ledger)) therefore stores the digests of the
//! sketches in
//!
//! ```text
//! from − what = result
//! ```
//!
//! The *history* of a sketch is the set of all sketches that were subtracted to obtain it. A
//! subtraction is refused if its `what` is in the history of its `from`. The same `what` can still
//! be subtracted from sketches with another history, such as the totals of other days, and an
//! interrupted subtraction can be repeated from the same `from`.
//!
//! The record is incomplete: a sketch that was merged with others in between has no history, and
//! sketches of another account have none either. The ledger is also a trace: anyone with the ledger
//! and a sketch can see whether that sketch was subtracted.

use crate::ledger::{Ledgers, Record};
use nysketch_core::error::Result;
use nysketch_core::error::ledger::LedgerError;
use nysketch_core::sketch::Sketch;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;

/// A subtraction, identified by the digests of the sums ([`Sketch::rows_digest`]).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    from: String,
    what: String,
    result: String,
}

impl Record for Line {
    const KIND: &'static str = "subtractions";
}

/// Subtracts `what` from `from` and records the subtraction before this function returns. Refused
/// if `what` is in the history of `from`, unless `again` is set.
///
/// ```
/// use nysketch::ledger::Ledgers;
/// use nysketch::subtractions::subtract;
/// use nysketch::{PlanParams, Sketch, SketchParams, Table, plan_for};
/// use std::sync::Arc;
/// # fn main() -> nysketch::Result<()> {
/// # let folder = tempfile::tempdir().unwrap();
/// # let ledgers = Ledgers::at(folder.path());
/// let all = Table::unnamed(1, (0..500).map(|i| f64::from(i % 50)).collect())?;
/// let one = Table::unnamed(1, vec![7.0])?;
/// let plan = Arc::new(plan_for(&all, PlanParams::default().landmarks(20))?.plan);
/// let mut total = Sketch::of(&plan, &all, SketchParams::default(), &())?;
/// let user = Sketch::of(&plan, &one, SketchParams::default(), &())?;
/// subtract(&mut total, &user, false, &ledgers)?;
/// assert!(subtract(&mut total, &user, false, &ledgers).is_err(), "these rows are out");
/// assert_eq!(total.rows(), 499);
/// # Ok(())
/// # }
/// ```
pub fn subtract(from: &mut Sketch, what: &Sketch, again: bool, ledgers: &Ledgers) -> Result<()> {
    let mut result = from.clone();
    // Repeating the subtraction of an empty sketch is harmless.
    if what.rows() == 0 {
        return from.subtract(what);
    }
    let plan = from.plan().fingerprint();
    let digests = (from.rows_digest(), what.rows_digest());
    ledgers.update_or_create(&plan, |lines: &[Line]| {
        if !again && history(lines, &digests.0).contains(digests.1.as_str()) {
            let path = ledgers.path::<Line>(&plan);
            return Err(LedgerError::Subtracted { path }.into());
        }
        result.subtract(what)?;
        let (from, what) = digests;
        let new = Line { from, what, result: result.rows_digest() };
        Ok((!lines.contains(&new)).then_some(new))
    })?;
    *from = result;
    Ok(())
}

/// Returns the digests of all sketches that were subtracted to obtain a sketch.
fn history<'a>(lines: &'a [Line], sketch: &'a str) -> HashSet<&'a str> {
    let mut subtracted = HashSet::new();
    let mut seen = HashSet::from([sketch]);
    let mut open = vec![sketch];
    while let Some(result) = open.pop() {
        for line in lines.iter().filter(|line| line.result == result) {
            subtracted.insert(line.what.as_str());
            if seen.insert(&line.from) {
                open.push(&line.from);
            }
        }
    }
    subtracted
}

#[cfg(test)]
mod tests {
    use super::*;
    use nysketch_core::error::Error;
    use nysketch_core::pass::SketchParams;
    use nysketch_core::planning::{PlanParams, plan_for};
    use nysketch_core::rows::Table;
    use std::sync::Arc;

    struct Days {
        _folder: tempfile::TempDir,
        ledgers: Ledgers,
        total: Sketch,
        users: Vec<Sketch>,
    }

    /// Creates a total in which each of three users has more than twice the rows of its sketch.
    fn days() -> Days {
        let folder = tempfile::tempdir().unwrap();
        let rows: Vec<f64> = (0..600).map(|i| f64::from(i % 60)).collect();
        let table = Table::unnamed(1, rows).unwrap();
        let plan = Arc::new(plan_for(&table, PlanParams::default().landmarks(10)).unwrap().plan);
        let of = |rows: Vec<f64>| {
            let table = Table::unnamed(1, rows).unwrap();
            Sketch::of(&plan, &table, SketchParams::default(), &()).unwrap()
        };
        let users = [3.0, 30.0, 50.0].map(|x| of(vec![x, x + 1.0])).into();
        let total = Sketch::of(&plan, &table, SketchParams::default(), &()).unwrap();
        Days { ledgers: Ledgers::at(folder.path()), _folder: folder, total, users }
    }

    fn is_refused(result: Result<()>) -> bool {
        match result {
            Ok(()) => false,
            Err(Error::Ledger(LedgerError::Subtracted { .. })) => true,
            Err(other) => panic!("{other}"),
        }
    }

    #[test]
    fn the_same_rows_are_subtracted_once_also_through_others() {
        let Days { ledgers, total, users, .. } = &days();
        let take =
            |from: &mut Sketch, who: usize, again| subtract(from, &users[who], again, ledgers);
        let mut rest = total.clone();
        (0..3).for_each(|who| take(&mut rest, who, false).unwrap());
        let before = rest.to_bytes();
        assert!((0..3).all(|who| is_refused(take(&mut rest, who, false))));
        assert_eq!(rest.to_bytes(), before);
        // Another order gives the same sketch and the same history.
        let mut other = total.clone();
        [2, 0, 1].into_iter().for_each(|who| take(&mut other, who, false).unwrap());
        assert_eq!(other.to_bytes(), before);
        take(&mut rest, 1, true).unwrap();
        assert_eq!(rest.rows(), 600 - 4 * 2);
        assert!(is_refused(take(&mut rest, 2, false)));
    }

    #[test]
    fn other_totals_and_repeated_steps_are_not_concerned() {
        let Days { ledgers, total, users, .. } = &days();
        let take = |from: &mut Sketch, what: &Sketch| subtract(from, what, false, ledgers);
        // An interrupted job starts from the same total and has one line.
        for _ in 0..3 {
            take(&mut total.clone(), &users[0]).unwrap();
        }
        let path = ledgers.path::<Line>(&total.plan().fingerprint());
        assert_eq!(std::fs::read_to_string(path).unwrap().lines().count(), 2);
        // The total of another day.
        let mut other = total.clone();
        other.merge(total).unwrap();
        take(&mut other, &users[0]).unwrap();
        assert!(is_refused(take(&mut other, &users[0])));
        // The rows are added again and subtracted again.
        let mut rest = total.clone();
        take(&mut rest, &users[0]).unwrap();
        rest.merge(&users[0]).unwrap();
        take(&mut rest, &users[0]).unwrap();
        // An empty sketch can be subtracted any number of times.
        let nothing = Sketch::empty(total.plan().clone());
        take(&mut rest, &nothing).unwrap();
        take(&mut rest, &nothing).unwrap();
    }

    #[test]
    fn a_loop_in_a_ledger_ends() {
        let line = |from: &str, what: &str, result: &str| Line {
            from: from.into(),
            what: what.into(),
            result: result.into(),
        };
        let lines = [line("a", "x", "b"), line("b", "y", "a"), line("b", "z", "b")];
        assert_eq!(history(&lines, "a"), HashSet::from(["x", "y", "z"]));
    }
}
