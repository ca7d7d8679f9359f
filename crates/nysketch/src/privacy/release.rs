//! A release: sums with noise, and the account of what they cost.

use super::budget::{Budget, Rho};
use super::mechanism::Mechanism;
use super::noise::{Randomness, Variance};
use crate::error::{Error, Result};
use crate::plan::Plan;
use crate::sketch::Sketch;
use num_bigint::BigUint;
use serde::Serialize;
use std::sync::Arc;

/// What one mechanism costs, and the noise it has for it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Spending {
    /// Which.
    pub mechanism: Mechanism,
    /// What it costs.
    pub rho: Rho,
    /// Square of how far a row can move it.
    pub sensitivity: BigUint,
    /// Variance of the noise on each of its numbers, in units of its integers: at least Δ²/2ρ.
    pub variance: Variance,
}

impl Spending {
    /// The least noise for what it may cost.
    fn new(mechanism: Mechanism, rho: Rho, plan: &Plan) -> Result<Self> {
        let Some(sensitivity) = mechanism.sensitivity(plan) else { return Err(not_private()) };
        if rho.0 == 0 {
            let expected =
                format!("more for {}: so little takes more noise than there is", mechanism.name());
            return Err(Error::parameter("`spend`", expected, 0));
        }
        // σ² ≥ Δ²/2ρ, ρ = units·2⁻⁵⁶.
        let variance = Variance::at_least(&sensitivity << 55, &BigUint::from(rho.0));
        Ok(Spending { mechanism, rho, sensitivity, variance })
    }

    /// Standard deviation of the noise, in units of the integers.
    pub fn deviation(&self) -> f64 {
        let units: f64 = self.variance.units().to_string().parse().unwrap_or(f64::INFINITY);
        (units / 65_536.0).sqrt()
    }
}

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

/// Sums with noise: what may leave the house. No number in it that depends on rows is exact, the number of rows included.
///
/// ```
/// use nysketch::privacy::{Budget, Release};
/// use nysketch::{FitParams, PlanParams, PrivateParams, Sketch, SketchParams, Table, Task, fit, plan_for};
/// # fn main() -> nysketch::Result<()> {
/// let private = PrivateParams::new([("x".into(), 0.0, 100.0)]);
/// let anywhere = private.anywhere(1000, 0)?;
/// let plan = plan_for(&anywhere, PlanParams::default().landmarks(20).private(private))?.0;
/// let rows = (0..50_000).map(|i| if i % 3 == 0 { 20.0 } else { 70.0 }).collect();
/// let table = Table::new(vec!["x".into()], rows)?;
/// let sketch = Sketch::of(&plan.into(), &table, SketchParams::default(), &())?;
///
/// let release = Release::of(&sketch, Budget::new(1.0, 1e-6)?, &[])?;
/// assert!(release.rows().abs_diff(50_000) < 1000);
/// // Models are learned from what the release says about the sums.
/// let model = fit(&release.estimate()?, &FitParams::new(Task::Kmeans, 2))?;
/// assert!(model.weights().iter().all(|share| *share > 0.25));
/// assert_eq!(Release::from_bytes(&release.to_bytes())?, release);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Release {
    plan: Arc<Plan>,
    budget: Budget,
    spendings: Vec<Spending>,
    noisy: Vec<Vec<i128>>,
}

impl Release {
    /// Adds noise to the sums of a sketch. `shares` says how the budget is split, each mechanism named once, in any unit; it may
    /// be empty. Takes no seed: the randomness is the operating system's, and no two releases are the same.
    ///
    /// Where the plan was made from another release, the budget is for both together: what that one cost is not spent again.
    pub fn of(sketch: &Sketch, budget: Budget, shares: &[(Mechanism, f64)]) -> Result<Self> {
        let plan = sketch.plan().clone();
        if plan.private.is_none() {
            return Err(not_private());
        }
        let spent = Rho(plan.private.as_ref().map_or(0, |p| p.spent));
        let left = budget.rho().0.saturating_sub(spent.0);
        // What is left of rounding is nothing, either.
        if left <= budget.rho().0 >> 20 {
            let least = budget.epsilon_of(spent);
            let expected =
                format!("more than {least:.4}, which the plan, made from a release, has cost");
            return Err(Error::parameter("`epsilon`", expected, budget.epsilon));
        }
        let spendings = split(&plan, Rho(left), shares)?;
        let mut random = Randomness::of_the_system();
        let mut noisy = Vec::new();
        for spending in &spendings {
            let mut sums = spending.mechanism.exact(sketch);
            for sum in &mut sums {
                let noise = i128::try_from(random.gaussian(&spending.variance)?);
                let noise = noise.map_err(|_| too_noisy(spending))?;
                *sum = sum.checked_add(noise).filter(|s| within(*s)).ok_or(too_noisy(spending))?;
            }
            noisy.push(sums);
        }
        Ok(Release { plan, budget, spendings, noisy })
    }

    /// A release from what its file holds.
    pub(crate) fn from_parts(
        plan: Arc<Plan>,
        budget: Budget,
        rhos: &[(Mechanism, Rho)],
        noisy: Vec<Vec<i128>>,
    ) -> Result<Self> {
        let wanted = Mechanism::of_plan(&plan);
        if !rhos.iter().map(|(m, _)| *m).eq(wanted.iter().copied()) {
            return Err(Error::parameter("the release", "the mechanisms of its plan", "others"));
        }
        let spendings: Result<Vec<_>> =
            rhos.iter().map(|(m, rho)| Spending::new(*m, *rho, &plan)).collect();
        let spendings = spendings?;
        let fits = |(m, sums): (&Mechanism, &Vec<i128>)| {
            sums.len() == m.len(&plan) && sums.iter().all(|s| within(*s))
        };
        if !wanted.iter().zip(&noisy).all(fits) || wanted.len() != noisy.len() {
            return Err(Error::parameter("the release", "the sums of its plan", "others"));
        }
        let release = Release { plan, budget, spendings, noisy };
        match release.total() <= budget.rho() {
            true => Ok(release),
            false => Err(Error::parameter("the release", "within its ε and δ", "beyond")),
        }
    }

    /// What was measured.
    pub fn plan(&self) -> &Arc<Plan> {
        &self.plan
    }

    /// What this release may reveal, together with those that its plan was made from.
    pub fn budget(&self) -> Budget {
        self.budget
    }

    /// What each of its mechanisms costs.
    pub fn spendings(&self) -> &[Spending] {
        &self.spendings
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
        self.spendings.iter().zip(&self.noisy).map(line).collect()
    }

    /// What this release costs.
    pub fn rho(&self) -> Rho {
        self.spendings.iter().fold(Rho(0), |all, s| all.and(s.rho))
    }

    /// What it costs together with the releases that its plan was made from.
    pub fn total(&self) -> Rho {
        self.rho().and(Rho(self.plan.private.as_ref().map_or(0, |p| p.spent)))
    }

    /// Its noisy sums, in the order of [`spendings`](Self::spendings).
    pub fn noisy(&self) -> &[Vec<i128>] {
        &self.noisy
    }

    /// The noisy sums of a mechanism and the standard deviation of their noise.
    pub(super) fn of_mechanism(&self, mechanism: Mechanism) -> Option<(&[i128], f64)> {
        let at = self.spendings.iter().position(|s| s.mechanism == mechanism)?;
        Some((&self.noisy[at], self.spendings[at].deviation()))
    }

    /// About how many rows: the sum of the noisy counts.
    pub fn rows(&self) -> u64 {
        let counts = self.of_mechanism(Mechanism::Counts).or(self.of_mechanism(Mechanism::Rows));
        counts.map_or(0, |(counts, _)| counts.iter().sum::<i128>().max(0) as u64)
    }

    /// What it promises, in words.
    pub fn promise(&self) -> String {
        format!(
            "ε = {}, δ = {:e} for one row: no outcome is more than {:.3} times as likely with any one row as without it, but for \
             outcomes of probability {:e}",
            self.budget.epsilon,
            self.budget.delta,
            self.budget.epsilon.exp(),
            self.budget.delta
        )
    }
}

/// Noisy sums have at most 126 bits, so that a few of them can be added.
fn within(sum: i128) -> bool {
    sum.unsigned_abs() < 1 << 120
}

fn too_noisy(spending: &Spending) -> Error {
    let expected = format!("more for {}: the noise is beyond 120 bits", spending.mechanism.name());
    Error::parameter("`epsilon`", expected, "less")
}

fn not_private() -> Error {
    Error::NotPrivate
}

/// Splits a budget over the mechanisms of a plan.
fn split(plan: &Plan, rho: Rho, shares: &[(Mechanism, f64)]) -> Result<Vec<Spending>> {
    let mechanisms = Mechanism::of_plan(plan);
    let names = || mechanisms.iter().map(|m| m.name()).collect::<Vec<_>>().join(", ");
    let share_of = |m: &Mechanism| match shares {
        [] => Some(m.default_share()),
        said => said.iter().find(|(named, _)| named == m).map(|(_, share)| *share),
    };
    let all: Option<Vec<f64>> = mechanisms.iter().map(share_of).collect();
    let Some(all) = all.filter(|_| shares.is_empty() || shares.len() == mechanisms.len()) else {
        let said: Vec<&str> = shares.iter().map(|(m, _)| m.name()).collect();
        let expected = format!("a share for each of {}, once", names());
        return Err(Error::parameter("`spend`", expected, said.join(", ")));
    };
    let sum: f64 = all.iter().sum();
    if all.iter().any(|s| !(*s > 0.0 && *s / sum >= 1e-6)) || !sum.is_finite() {
        return Err(Error::parameter("`spend`", "positive shares", "others"));
    }
    let mut left = rho.0;
    let mut spendings = Vec::new();
    for (mechanism, share) in mechanisms.iter().zip(all) {
        // Rounded down, and never more than what is left.
        let part = ((rho.0 as f64 * (share / sum)) as u64).min(left);
        left -= part;
        spendings.push(Spending::new(*mechanism, Rho(part), plan)?);
    }
    Ok(spendings)
}
