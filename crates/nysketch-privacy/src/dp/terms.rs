//! The terms of a release: its guarantee, the cost of each mechanism, and the required noise.

use super::bound;
use super::budget::{Budget, Rho};
use super::mechanism::Mechanism;
use super::noise::{Randomness, VARIANCE_BITS, Variance};
use num_bigint::BigUint;
use nysketch_core::error::{Error, Result};
use nysketch_core::plan::Plan;
use nysketch_core::sketch::Sketch;

/// Noise of which each of several parties adds a share.
///
/// A sum of discrete Gaussians is almost a discrete Gaussian (Kairouz, Liu and Steinke 2021,
/// proposition 14). H shares of variance v on D numbers cost
///
/// ```text
/// ρ = ½ (Δ/√(Hv) + τ√D)² ,   τ = 10 Σ_{k=1}^{H−1} exp(−2π²v·k/(k+1)) ≤ 10 (H−1) exp(−π²v) ,   v ≥ ½
/// ```
///
/// v is chosen such that the second term is at most 1/64 of √2ρ, and the first term is the rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Shared {
    /// Number of parties that add noise, N.
    pub parties: u64,
    /// Minimum number of parties that keep their noise secret, H.
    pub honest: u64,
}

impl Shared {
    /// Accepts H from 1 to N − 1: the observer may be a party, which knows its own noise.
    pub fn new(parties: u64, honest: u64) -> Result<Self> {
        if parties >= 2 && (1..parties).contains(&honest) {
            Ok(Shared { parties, honest })
        } else {
            let expected = format!(
                "between 1 and {}, one less than the parties: a reader may be one of the \
                 parties and knows its own noise",
                parties.saturating_sub(1)
            );
            Err(Error::parameter("`honest`", expected, honest))
        }
    }

    /// Returns the variance of each share.
    fn variance(self, sensitivity: &BigUint, rho: Rho, numbers: usize) -> Result<Variance> {
        // Δ²/Hv ≤ (63/64)²·2ρ, ρ = units·2⁻⁵⁶.
        let denominator = BigUint::from(rho.0) * self.honest * 3969u32;
        let central = Variance::at_least((sensitivity << 55) * 4096u32, &denominator)?;
        let others = self.honest.saturating_sub(1) as f64;
        // 10 (H−1) exp(−π²v) √D ≤ √2ρ/64; one part in a million is added for rounding.
        let most = (2.0 * rho.value()).sqrt() / 64.0;
        let mut least = 0.5;
        if others > 0.0 {
            let pi2 = std::f64::consts::PI.powi(2);
            let log = libm::log(10.0 * others * (numbers as f64).sqrt() / most);
            least = (log / pi2).max(0.5) * (1.0 + 1e-6);
        }
        let units = (least * f64::from(1u32 << VARIANCE_BITS)).ceil();
        // Far above any required value; the negated comparison also fails for NaN.
        if !(units < 2f64.powi(53)) {
            return Err(Error::parameter("the variance of a share", "a number", least));
        }
        Ok(central.max(Variance::new(units as u64)?))
    }
}

/// The cost of one mechanism and the noise for that cost.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Spending {
    /// The mechanism.
    pub mechanism: Mechanism,
    /// The privacy cost.
    pub rho: Rho,
    /// Square of the maximum effect of a row, or of all rows of a person.
    pub sensitivity: BigUint,
    /// Variance of the noise on each number, in units of its integers; the variance of each share
    /// if parties share the noise.
    pub variance: Variance,
    /// Number of draws that are added.
    pub draws: u64,
}

impl Spending {
    /// Returns the smallest noise for a cost.
    fn new(mechanism: Mechanism, rho: Rho, plan: &Plan, terms: &Terms) -> Result<Self> {
        let sensitivity = mechanism.sensitivity(plan)?;
        if rho.0 == 0 {
            let expected =
                format!("more for {}: so little takes more noise than there is", mechanism.name());
            return Err(Error::parameter("`spend`", expected, 0));
        }
        // All rows of a person may have the same effect.
        let sensitivity = sensitivity * BigUint::from(terms.person_rows.unwrap_or(1)).pow(2);
        let (variance, draws) = match terms.shared {
            // σ² ≥ Δ²/2ρ, ρ = units·2⁻⁵⁶.
            None => (Variance::at_least(&sensitivity << 55, &BigUint::from(rho.0))?, 1),
            Some(shared) => {
                (shared.variance(&sensitivity, rho, mechanism.len(plan))?, shared.parties)
            }
        };
        Ok(Spending { mechanism, rho, sensitivity, variance, draws })
    }

    /// Returns the standard deviation of the total noise on a number, in units of the integers.
    pub fn deviation(&self) -> f64 {
        let units: f64 = self.variance.units().to_string().parse().unwrap_or(f64::INFINITY);
        (self.draws as f64 * units / f64::from(1u32 << VARIANCE_BITS)).sqrt()
    }
}

/// The parameters of a release, without its numbers.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Terms {
    /// The privacy budget.
    pub budget: Budget,
    /// Maximum number of rows per person; `None` protects single rows.
    pub person_rows: Option<u64>,
    /// The parties that share the noise, if any.
    pub shared: Option<Shared>,
    /// The cost of each mechanism.
    pub spendings: Vec<Spending>,
}

impl Terms {
    /// Splits a budget over the mechanisms of a plan. `shares` lists shares in any unit, each
    /// mechanism at most once; it may be empty. The cost of the plan itself is subtracted first.
    pub fn new(
        plan: &Plan,
        budget: Budget,
        shares: &[(Mechanism, f64)],
        person_rows: Option<u64>,
        shared: Option<Shared>,
    ) -> Result<Self> {
        let Some(private) = &plan.private else { return Err(Error::NotPrivate) };
        let (all, spent) = (budget.rho(), Rho(private.spent));
        let left = all.0.saturating_sub(spent.0);
        // A remainder in the range of rounding errors counts as zero.
        if left <= all.0 >> 20 {
            let least = budget.epsilon_of(spent);
            let expected =
                format!("more than {least:.4}, which the plan, made from a release, has cost");
            return Err(Error::parameter("`epsilon`", expected, budget.epsilon));
        }
        Terms::of_costs(plan, budget, &split(plan, Rho(left), shares)?, person_rows, shared)
    }

    /// Creates the terms from the cost of each mechanism.
    pub(crate) fn of_costs(
        plan: &Plan,
        budget: Budget,
        costs: &[(Mechanism, Rho)],
        person_rows: Option<u64>,
        shared: Option<Shared>,
    ) -> Result<Self> {
        let wanted = Mechanism::of_plan(plan);
        if !costs.iter().map(|(m, _)| *m).eq(wanted.iter().copied()) {
            return Err(Error::parameter("the release", "the mechanisms of its plan", "others"));
        }
        let least = plan.people().map(|people| people.rows);
        if person_rows.is_some() != least.is_some() || person_rows < least {
            let expected = "at least those of its plan";
            return Err(Error::parameter("the rows of a person in a release", expected, "others"));
        }
        if let Some(Shared { parties, honest }) = shared {
            Shared::new(parties, honest)?;
        }
        let mut terms = Terms { budget, person_rows, shared, spendings: Vec::new() };
        for (mechanism, rho) in costs {
            terms.spendings.push(Spending::new(*mechanism, *rho, plan, &terms)?);
        }
        if terms.total(plan) <= budget.rho() {
            Ok(terms)
        } else {
            Err(Error::parameter("the release", "within its ε and δ", "beyond"))
        }
    }

    /// Returns the cost of the release.
    pub fn rho(&self) -> Rho {
        self.spendings.iter().fold(Rho(0), |all, s| all.and(s.rho))
    }

    /// Returns the cost together with the releases from which the plan was computed.
    pub fn total(&self, plan: &Plan) -> Rho {
        self.rho().and(Rho(plan.private.as_ref().map_or(0, |p| p.spent)))
    }

    /// Returns the sums of a sketch, each with one draw of noise. Draws no noise if an [independent
    /// bound](super::bound) on the effect of a row contradicts the terms.
    pub(crate) fn noisy(&self, sketch: &Sketch) -> Result<Vec<Vec<i128>>> {
        bound::check(self, sketch.plan())?;
        let mut random = Randomness::of_the_system();
        let noisy = |spending: &Spending| {
            let mut sums = spending.mechanism.exact(sketch)?;
            for sum in &mut sums {
                let noise = i128::try_from(random.gaussian(&spending.variance)?);
                let noise = noise.map_err(|_| too_noisy(spending))?;
                *sum = sum.checked_add(noise).filter(|s| within(*s)).ok_or(too_noisy(spending))?;
            }
            Ok(sums)
        };
        self.spendings.iter().map(noisy).collect()
    }

    /// Returns the terms as lines defined in FORMAT.md. Parties that share noise must agree on
    /// every
    /// line.
    pub(crate) fn text(&self) -> String {
        let Budget { epsilon, delta } = self.budget;
        let (parties, honest) = self.shared.map_or((1, 1), |s| (s.parties, s.honest));
        let rows = self.person_rows.unwrap_or(0);
        let mut text =
            format!("nysketch terms 1\n{epsilon}\n{delta}\n{parties}\n{honest}\n{rows}\n");
        for spending in &self.spendings {
            text.push_str(&format!("{} {}\n", spending.mechanism.name(), spending.rho.0));
        }
        text
    }

    /// Summarises the terms, to distinguish them from others in a message.
    pub(crate) fn brief(&self) -> String {
        let Budget { epsilon, delta } = self.budget;
        let honest = self.shared.map_or(String::new(), |s| format!(", {} honest", s.honest));
        let rows = self.person_rows.map_or(String::new(), |n| format!(", {n} rows per person"));
        let (all, mut split) = (self.rho().value(), String::new());
        for s in &self.spendings {
            let share = 100.0 * s.rho.value() / all;
            split.push_str(&format!(", {} {share:.1} %", s.mechanism.name()));
        }
        format!("ε = {epsilon}, δ = {delta:e}{honest}{rows}{split}")
    }

    /// Returns the guarantee as a sentence.
    pub fn promise(&self, plan: &Plan) -> String {
        let Budget { epsilon, delta } = self.budget;
        let (whom, with) = match (plan.people(), self.person_rows) {
            (Some(people), Some(rows)) => (
                format!("all rows of one '{}', of which {rows} count at most", people.column),
                "the rows of any one of the people".to_string(),
            ),
            _ => ("one row".into(), "any one row".into()),
        };
        let shared = self.shared.map_or(String::new(), |s| {
            let keep = if s.honest == 1 { "keeps its" } else { "keep their" };
            format!(", as long as {} of {} parties {keep} noise secret", s.honest, s.parties)
        });
        format!(
            "ε = {epsilon}, δ = {delta:e} for {whom}: every outcome is at most {:.3} times as likely with {with} as without, plus \
             {delta:e}, and the other way round{shared}",
            epsilon.exp(),
        )
    }
}

/// Whether a noisy sum has at most 120 bits, so that the sums of many parties can be added.
pub(super) fn within(sum: i128) -> bool {
    sum.unsigned_abs() < 1 << 120
}

fn too_noisy(spending: &Spending) -> Error {
    let expected = format!("more for {}: the noise is beyond 120 bits", spending.mechanism.name());
    Error::parameter("`epsilon`", expected, "less")
}

/// Splits a cost over the mechanisms of a plan.
fn split(plan: &Plan, rho: Rho, shares: &[(Mechanism, f64)]) -> Result<Vec<(Mechanism, Rho)>> {
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
    let mut costs = Vec::new();
    for (mechanism, share) in mechanisms.iter().zip(all) {
        // Rounded down, and at most the remainder.
        let part = ((rho.0 as f64 * (share / sum)) as u64).min(left);
        left -= part;
        costs.push((*mechanism, Rho(part)));
    }
    Ok(costs)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the probabilities of a discrete Gaussian of this variance, from −60 to 60.
    fn gaussian(variance: f64) -> Vec<f64> {
        let weight = |x: i32| (-f64::from(x * x) / (2.0 * variance)).exp();
        let total: f64 = (-200..=200).map(weight).sum();
        (-60..=60).map(|x| weight(x) / total).collect()
    }

    /// Returns the probabilities of a sum, without values beyond ±60.
    fn sum(a: &[f64], b: &[f64]) -> Vec<f64> {
        let at = |s: usize| {
            let terms = (0..=120).filter_map(|i| b.get((s + 60).checked_sub(i)?).map(|b| a[i] * b));
            terms.sum()
        };
        (0..=120).map(at).collect()
    }

    /// The Rényi divergence of sums of discrete Gaussians, computed from their probabilities, is
    /// within the bound, even for shares so small that their sum is far from a discrete Gaussian.
    #[test]
    fn sums_of_shares_cost_no_more_than_is_claimed() {
        for share in [0.5f64, 0.6, 0.8, 1.0, 2.0, 4.0] {
            let one = gaussian(share);
            let mut all = one.clone();
            for honest in 2..=6u32 {
                all = sum(&all, &one);
                let variance = share * f64::from(honest);
                let tau: f64 = (1..honest)
                    .map(|k| f64::from(k) / f64::from(k + 1))
                    .map(|part| 10.0 * (-2.0 * std::f64::consts::PI.powi(2) * share * part).exp())
                    .sum();
                for moved in [1usize, 2, 3] {
                    let bound = moved as f64 / variance.sqrt() + tau;
                    for order in [1.01f64, 1.5, 2.0, 4.0, 16.0] {
                        // Only values at which both are far above the rounding of the sums.
                        let ratio = |x: usize| {
                            let (p, q) = (all[x], all[x - moved]);
                            if p > 1e-14 && q > 1e-14 {
                                (order * p.ln() + (1.0 - order) * q.ln()).exp()
                            } else {
                                0.0
                            }
                        };
                        let divergence = (moved..=120).map(ratio).sum::<f64>().ln() / (order - 1.0);
                        let claimed = 0.5 * order * bound * bound;
                        assert!(
                            divergence <= claimed + 1e-9,
                            "{honest} shares of {share}, {moved}, {order}: {divergence} of \
                             {claimed}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn shares_add_up_to_hardly_more_than_central_noise() {
        let (sensitivity, rho) = (BigUint::from(1u32) << 40, Rho(1 << 50));
        for honest in [1u64, 4, 49] {
            let shared = Shared::new(50, honest).unwrap();
            let share = shared.variance(&sensitivity, rho, 8000).unwrap();
            let units = |v: &Variance| v.units().to_string().parse::<f64>().unwrap();
            let central = Variance::at_least(&sensitivity << 55, &BigUint::from(rho.0)).unwrap();
            let ratio = honest as f64 * units(&share) / units(&central);
            assert!((1.0..1.04).contains(&ratio), "{ratio}");
        }
        // A small total noise requires larger shares than its variance divided by their number.
        let shared = Shared::new(50, 49).unwrap();
        let share = shared.variance(&BigUint::from(1u32), Rho(1 << 56), 400).unwrap();
        let v: f64 = share.units().to_string().parse::<f64>().unwrap() / 65_536.0;
        let tau = 10.0 * 48.0 * (-std::f64::consts::PI.powi(2) * v).exp();
        assert!(v > 1.0 && tau * 20.0 <= 2f64.sqrt() / 64.0, "{v} {tau}");
        assert!(Shared::new(3, 3).is_err() && Shared::new(3, 0).is_err());
    }
}
