//! The fold of the rows that equal a retained row.
//!
//! The coordinates of a retained row do not contain the key. A pass by keys therefore counts, for
//! each retained row, the rows with its content hash: their number c, Σ fold and Σ fold². These
//! sums are additive, and `c·Σfold² = (Σfold)²` if and only if all these rows are in one fold,
//! which is then `Σfold / c`.

use super::rule::content_hash;
use crate::plan::Plan;
use crate::sums::BrokenRule;
use std::collections::HashMap;

/// Number, Σ fold and Σ fold² of the rows that equal a retained row.
pub(crate) type Counts = [i64; 3];

/// Largest number of rows that equal one retained row, such that Σ fold² fits in 64 bits.
const MAX_ROWS: i64 = 1 << 50;

/// The counts of each retained row, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WitnessFolds(pub Vec<Counts>);

impl WitnessFolds {
    /// Counts without rows for `witnesses` retained rows.
    pub fn zero(witnesses: usize) -> Self {
        WitnessFolds(vec![[0; 3]; witnesses])
    }

    /// Counts a row of a fold that equals these retained rows.
    pub fn add(&mut self, witnesses: &[u32], fold: u32) {
        let fold = i64::from(fold);
        for witness in witnesses {
            let counts = &mut self.0[*witness as usize];
            counts.iter_mut().zip([1, fold, fold * fold]).for_each(|(sum, term)| *sum += term);
        }
    }

    /// Applies `op` entry by entry.
    pub fn combine(&mut self, other: &WitnessFolds, op: impl Fn(i128, i128) -> i128) {
        for (a, b) in self.0.iter_mut().flatten().zip(other.0.iter().flatten()) {
            *a = op(i128::from(*a), i128::from(*b)) as i64;
        }
    }

    /// The fold of each retained row, or `None` if its rows are not all in one fold.
    pub fn folds(&self) -> Vec<Option<u32>> {
        self.0.iter().map(only_fold).collect()
    }

    /// Checks that some rows in `folds` folds have these counts.
    pub fn check(&self, folds: u32) -> Result<(), BrokenRule> {
        match self.0.iter().position(|counts| !are_possible(counts, folds)) {
            None => Ok(()),
            Some(i) => Err(BrokenRule {
                sum: format!("the folds of witness {i}"),
                how: "not be those of any rows".into(),
            }),
        }
    }
}

/// The fold of rows with these counts, or `None` if they are not all in one fold.
fn only_fold(&[rows, sum, squares]: &Counts) -> Option<u32> {
    let (n, sum) = (i128::from(rows), i128::from(sum));
    (n > 0 && n * i128::from(squares) == sum * sum).then(|| (sum / n) as u32)
}

/// Whether some rows in `folds` folds have these counts.
fn are_possible(&[rows, sum, squares]: &Counts, folds: u32) -> bool {
    let last = i128::from(folds - 1);
    let [n, s, q] = [rows, sum, squares].map(i128::from);
    (0..MAX_ROWS).contains(&rows)
        && (0..=n * last).contains(&s)
        && s * s <= n * q
        && q <= s * last
        && (q - s) % 2 == 0
}

/// The content hash of each available retained row.
pub(super) fn hashes(plan: &Plan) -> Vec<u64> {
    let (Some(rows), Some(witnesses)) = (plan.witness_rows(), &plan.witnesses) else {
        return Vec::new();
    };
    let (c, levels) = (plan.categories().len(), witnesses.levels());
    let rows = rows.rows().enumerate();
    rows.map(|(i, z)| content_hash(z, &levels[i * c..(i + 1) * c])).collect()
}

/// The retained rows with each content hash.
pub(crate) fn by_hash(plan: &Plan) -> HashMap<u64, Vec<u32>> {
    let mut all: HashMap<u64, Vec<u32>> = HashMap::new();
    for (i, hash) in hashes(plan).into_iter().enumerate() {
        all.entry(hash).or_default().push(i as u32);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fold_of_a_witness_is_known_where_all_its_rows_share_it() {
        let mut counts = WitnessFolds::zero(4);
        for (witnesses, fold) in [(&[0, 2][..], 5), (&[0], 5), (&[1], 0), (&[2], 6)] {
            counts.add(witnesses, fold);
        }
        assert_eq!(counts.folds(), [Some(5), Some(0), None, None]);
        assert_eq!(counts.check(7), Ok(()));
        assert!(counts.check(6).is_err(), "there is no fold 6");
        let all = counts.clone();
        let mut one = WitnessFolds::zero(4);
        one.add(&[2], 6);
        counts.combine(&one, i128::wrapping_sub);
        assert_eq!(counts.folds(), [Some(5), Some(0), Some(5), None]);
        counts.combine(&all, i128::wrapping_sub);
        assert!(counts.check(7).is_err(), "negative");
    }
}
