//! A release: noisy sums and the account of their cost.

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
    /// Number of released numbers.
    pub numbers: usize,
    /// The privacy cost.
    pub rho: f64,
    /// Square of the maximum effect of a row, an integer.
    pub sensitivity_squared: String,
    /// Standard deviation of the noise, in units of its integers.
    pub deviation: f64,
}

/// Noisy sums that can be published. No number in a release that depends on rows is exact,
/// including the number of rows.
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
/// // Models are learned from the reconstruction of the release.
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
    /// Adds noise to the sums of a sketch. `shares` splits the budget in any unit, each mechanism
    /// at most once; it may be empty. There is no seed: the randomness comes from the operating
    /// system, and no two releases are equal.
    ///
    /// If the plan was computed from another release, the budget covers both, and the cost of the
    /// earlier release is subtracted.
    pub fn of(sketch: &Sketch, budget: Budget, shares: &[(Mechanism, f64)]) -> Result<Self> {
        sketch.check_exact("release")?;
        let plan = sketch.plan().clone();
        // An empty sketch has 0 rows per person; the limit of the plan applies nevertheless.
        let least = plan.people().map(|people| people.rows);
        let terms = Terms::new(&plan, budget, shares, sketch.person_rows().max(least), None)?;
        let noisy = terms.noisy(sketch)?;
        Ok(Release { plan, terms, noisy })
    }

    /// Creates a release as [`of`](Self::of) does, and records it in the ledger of the sketch
    /// before this function returns.
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

    /// Creates a release from the content of its file, or from the total of all parties.
    pub(crate) fn from_parts(plan: Arc<Plan>, terms: Terms, noisy: Vec<Vec<i128>>) -> Result<Self> {
        let fits = |(s, sums): (&Spending, &Vec<i128>)| {
            sums.len() == s.mechanism.len(&plan) && sums.iter().all(|x| within(*x))
        };
        if terms.spendings.len() == noisy.len() && terms.spendings.iter().zip(&noisy).all(fits) {
            Ok(Release { plan, terms, noisy })
        } else {
            Err(Error::parameter("the release", "the sums of its plan", "others"))
        }
    }

    /// Returns the plan.
    pub fn plan(&self) -> &Arc<Plan> {
        &self.plan
    }

    /// Returns the guarantee and the costs.
    pub fn terms(&self) -> &Terms {
        &self.terms
    }

    /// Returns the privacy budget of this release together with those from which its plan was
    /// computed.
    pub fn budget(&self) -> Budget {
        self.terms.budget
    }

    /// Returns the cost of each mechanism.
    pub fn spendings(&self) -> &[Spending] {
        &self.terms.spendings
    }

    /// Returns the cost of each mechanism with the names of `--json`.
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

    /// Returns the cost of this release.
    pub fn rho(&self) -> Rho {
        self.terms.rho()
    }

    /// Returns the cost together with the releases from which the plan was computed.
    pub fn total(&self) -> Rho {
        self.terms.total(&self.plan)
    }

    /// Returns the noisy sums, in the order of [`spendings`](Self::spendings).
    pub fn noisy(&self) -> &[Vec<i128>] {
        &self.noisy
    }

    /// Returns the noisy sums of a mechanism and the standard deviation of their noise.
    pub(super) fn of_mechanism(&self, mechanism: Mechanism) -> Option<(&[i128], f64)> {
        let at = self.spendings().iter().position(|s| s.mechanism == mechanism)?;
        Some((&self.noisy[at], self.spendings()[at].deviation()))
    }

    /// Returns the approximate number of rows: the sum of the noisy counts.
    pub fn rows(&self) -> u64 {
        let counts = self.of_mechanism(Mechanism::Counts).or(self.of_mechanism(Mechanism::Rows));
        let sum = |all: i128, n: &i128| all.saturating_add(*n);
        let rows = counts.map_or(0, |(counts, _)| counts.iter().fold(0, sum));
        rows.clamp(0, MAX_WEIGHT) as u64
    }

    /// Returns the guarantee as a sentence.
    pub fn promise(&self) -> String {
        self.terms.promise(&self.plan)
    }
}
