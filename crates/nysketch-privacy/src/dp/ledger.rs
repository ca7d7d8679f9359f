//! Ledgers of releases, which record the total cost of the releases of a sketch.
//!
//! Each plan has one ledger. Its lines contain the digest of the sums ([`Sketch::rows_digest`]), so
//! that a sketch is recognised after it has been renamed, copied or merged again. A file cannot
//! record everything: releases of the same rows under other plans, in merges, or from other
//! accounts are missing.

use super::budget::Rho;
use super::terms::Terms;
use crate::ledger::{Ledgers, Record};
use nysketch_core::error::Result;
use nysketch_core::sketch::Sketch;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// A line that records a release.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    /// Digest of the rows' sums.
    sketch: String,
    /// The requested ε and δ.
    epsilon: f64,
    delta: f64,
    /// The cost ρ in units of 2⁻⁵⁶.
    rho: u64,
    /// SHA-256 of the file; of the masked file if parties share noise.
    file: String,
}

impl Record for Line {
    const KIND: &'static str = "releases";
}

/// The releases in a ledger, including the latest one.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Releases {
    /// Number of releases of the sketch.
    pub count: usize,
    /// Their total cost, including the releases from which the plan was computed.
    pub rho: Rho,
    /// Number of releases of other sketches of the plan.
    pub others: usize,
    /// Path of the ledger.
    pub ledger: PathBuf,
}

impl Releases {
    /// Records a release before it is published. `file` is the SHA-256 of its file.
    pub(crate) fn note(
        sketch: &Sketch,
        terms: &Terms,
        file: String,
        ledgers: &Ledgers,
    ) -> Result<Self> {
        let (plan, digest) = (sketch.plan().fingerprint(), sketch.rows_digest());
        let ledger = ledgers.path::<Line>(&plan);
        let mut all = Releases { count: 1, rho: terms.total(sketch.plan()), others: 0, ledger };
        ledgers.update_or_create(&plan, |lines: &[Line]| {
            for line in lines {
                if line.sketch == digest {
                    all.count += 1;
                    all.rho = all.rho.and(Rho(line.rho));
                } else {
                    all.others += 1;
                }
            }
            let (epsilon, delta) = (terms.budget.epsilon, terms.budget.delta);
            Ok(Some(Line { sketch: digest, epsilon, delta, rho: terms.rho().0, file }))
        })?;
        Ok(all)
    }

    /// Returns a warning if the sketch has been released before.
    pub fn warning(&self, terms: &Terms) -> Option<String> {
        let delta = terms.budget.delta;
        let epsilon = terms.budget.epsilon_of(self.rho);
        (self.count > 1).then(|| {
            format!(
                "this sketch has now been released {} times, which reveals ε = {epsilon:.3} \
                 together at δ = {delta:e}, according to {}",
                self.count,
                self.ledger.display()
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Budget, Release};
    use super::*;
    use nysketch_core::pass::SketchParams;
    use nysketch_core::planning::{PlanParams, PrivateParams, plan_for};
    use nysketch_core::rows::Table;
    use std::sync::Arc;

    #[test]
    fn releases_of_the_same_rows_add_up_whatever_the_file_is_called() {
        let folder = tempfile::tempdir().unwrap();
        let ledgers = Ledgers::at(folder.path());
        let private = PrivateParams::new([("c0".into(), 0.0, 9.0)]);
        let params = PlanParams::default().landmarks(5).private(private.clone());
        let plan = Arc::new(plan_for(&private.anywhere(50, 0).unwrap(), params).unwrap().plan);
        let sketch = |shift: usize| {
            let rows = (0..40).map(|i| ((i + shift) % 9) as f64).collect();
            let table = Table::unnamed(1, rows).unwrap();
            Sketch::of(&plan, &table, SketchParams::default(), &()).unwrap()
        };
        let budget = Budget::new(1.0, 1e-6).unwrap();
        let noted = |sketch: &Sketch| Release::noted(sketch, budget, &[], &ledgers).unwrap().1;
        assert_eq!((noted(&sketch(0)).count, noted(&sketch(1)).count), (1, 1));
        // Read from a file, and merged with an empty sketch.
        let mut again = Sketch::from_bytes(&sketch(0).to_bytes()).unwrap();
        again.merge(&Sketch::empty(plan.clone())).unwrap();
        let all = noted(&again);
        assert_eq!((all.count, all.others), (2, 1));
        let one = Release::of(&again, budget, &[]).unwrap().rho();
        assert_eq!(all.rho, one.and(one));
        // A release that is not recorded does not count.
        assert_eq!(noted(&again).count, 3);
    }
}
