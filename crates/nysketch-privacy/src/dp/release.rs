//! A release: sums with noise, and the account of what they cost.

use super::budget::{Budget, Rho};
use super::ledger::Releases;
use super::mechanism::Mechanism;
use super::terms::{Spending, Terms, within};
use crate::ledger::Ledgers;
use nysketch_core::error::{Error, Result};
use nysketch_core::numeric::fixed::MAX_WEIGHT;
use nysketch_core::plan::Plan;
use nysketch_core::sketch::Sketch;
use serde::Serialize;
use std::sync::Arc;

/// One line of [`Release::summary`].
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct SpendingSummary {
    /// Name of the mechanism.
    pub name: &'static str,
    /// How many numbers it has.
    pub numbers: usize,
    /// What it costs.
    pub rho: f64,
    /// Square of how far a row can move it, an integer.
    pub sensitivity_squared: String,
    /// Standard deviation of the noise, in units of its integers.
    pub deviation: f64,
}

/// Sums with noise: what may be given away. No number in it that depends on rows is exact, the
/// number of rows included.
///
/// ```
/// use nysketch::privacy::{Budget, Release};
/// use nysketch::{FitParams, PlanParams, PrivateParams, Sketch, SketchParams, Table, Task, fit, plan_for};
/// # fn main() -> nysketch::Result<()> {
/// let private = PrivateParams::new([("x".into(), 0.0, 100.0)]);
/// let anywhere = private.anywhere(1000, 0)?;
/// let plan = plan_for(&anywhere, PlanParams::default().landmarks(20).private(private))?.plan;
/// let rows = (0..50_000).map(|i| if i % 3 == 0 { 20.0 } else { 70.0 }).collect();
/// let table = Table::new(vec!["x".into()], rows)?;
/// let sketch = Sketch::of(&plan.into(), &table, SketchParams::default(), &())?;
///
/// let release = Release::of(&sketch, Budget::new(1.0, 1e-6)?, &[])?;
/// assert!(release.rows().abs_diff(50_000) < 1000);
/// // Models are learned from what the release says about the sums.
/// let model = fit(&release.estimate()?, &FitParams::new(Task::Kmeans, 2))?;
/// assert_eq!(model.k(), 2);
/// assert_eq!(Release::from_bytes(&release.to_bytes())?, release);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Release {
    plan: Arc<Plan>,
    terms: Terms,
    noisy: Vec<Vec<i128>>,
}

impl Release {
    /// Adds noise to the sums of a sketch. `shares` says how the budget is split, each mechanism
    /// named once, in any unit; it may
    /// be empty. Takes no seed: the randomness is the operating system's, and no two releases are
    /// the same.
    ///
    /// Where the plan was made from another release, the budget is for both together: what that one
    /// cost is not spent again.
    pub fn of(sketch: &Sketch, budget: Budget, shares: &[(Mechanism, f64)]) -> Result<Self> {
        sketch.check_exact("release")?;
        let plan = sketch.plan().clone();
        // A sketch of no rows is one of people, too.
        let least = plan.people().map(|people| people.rows);
        let terms = Terms::new(&plan, budget, shares, sketch.person_rows().max(least), None)?;
        let noisy = terms.noisy(sketch)?;
        Ok(Release { plan, terms, noisy })
    }

    /// Makes a release as [`of`](Self::of) does, and records it in the ledger of the sketch before
    /// this function returns.
    pub fn noted(
        sketch: &Sketch,
        budget: Budget,
        shares: &[(Mechanism, f64)],
        ledgers: &Ledgers,
    ) -> Result<(Self, Releases)> {
        let release = Release::of(sketch, budget, shares)?;
        let releases = Releases::note(sketch, release.terms(), release.digest(), ledgers)?;
        Ok((release, releases))
    }

    /// A release from what its file holds, or from what parties have added up.
    pub(crate) fn from_parts(plan: Arc<Plan>, terms: Terms, noisy: Vec<Vec<i128>>) -> Result<Self> {
        let fits = |(s, sums): (&Spending, &Vec<i128>)| {
            sums.len() == s.mechanism.len(&plan) && sums.iter().all(|x| within(*x))
        };
        match terms.spendings.len() == noisy.len() && terms.spendings.iter().zip(&noisy).all(fits) {
            true => Ok(Release { plan, terms, noisy }),
            false => Err(Error::parameter("the release", "the sums of its plan", "others")),
        }
    }

    /// What was measured.
    pub fn plan(&self) -> &Arc<Plan> {
        &self.plan
    }

    /// What it promises and costs.
    pub fn terms(&self) -> &Terms {
        &self.terms
    }

    /// What this release may reveal, together with those that its plan was made from.
    pub fn budget(&self) -> Budget {
        self.terms.budget
    }

    /// What each of its mechanisms costs.
    pub fn spendings(&self) -> &[Spending] {
        &self.terms.spendings
    }

    /// The same with the names of `--json`.
    pub fn summary(&self) -> Vec<SpendingSummary> {
        let line = |(s, numbers): (&Spending, &Vec<i128>)| SpendingSummary {
            name: s.mechanism.name(),
            numbers: numbers.len(),
            rho: s.rho.value(),
            sensitivity_squared: s.sensitivity.to_string(),
            deviation: s.deviation(),
        };
        self.spendings().iter().zip(&self.noisy).map(line).collect()
    }

    /// What this release costs.
    pub fn rho(&self) -> Rho {
        self.terms.rho()
    }

    /// What it costs together with the releases that its plan was made from.
    pub fn total(&self) -> Rho {
        self.terms.total(&self.plan)
    }

    /// Its noisy sums, in the order of [`spendings`](Self::spendings).
    pub fn noisy(&self) -> &[Vec<i128>] {
        &self.noisy
    }

    /// The noisy sums of a mechanism and the standard deviation of their noise.
    pub(super) fn of_mechanism(&self, mechanism: Mechanism) -> Option<(&[i128], f64)> {
        let at = self.spendings().iter().position(|s| s.mechanism == mechanism)?;
        Some((&self.noisy[at], self.spendings()[at].deviation()))
    }

    /// About how many rows: the sum of the noisy counts.
    pub fn rows(&self) -> u64 {
        let counts = self.of_mechanism(Mechanism::Counts).or(self.of_mechanism(Mechanism::Rows));
        let sum = |all: i128, n: &i128| all.saturating_add(*n);
        let rows = counts.map_or(0, |(counts, _)| counts.iter().fold(0, sum));
        rows.clamp(0, MAX_WEIGHT) as u64
    }

    /// What it promises, in words.
    pub fn promise(&self) -> String {
        self.terms.promise(&self.plan)
    }
}
