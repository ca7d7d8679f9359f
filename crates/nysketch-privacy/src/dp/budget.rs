//! Privacy budgets: (ε, δ), and ρ of zero-concentrated differential privacy, in which costs add up.

use nysketch_core::error::{Error, Result};

/// Number of fractional bits of [`Rho`].
const RHO_BITS: i32 = 56;

/// The privacy cost of a mechanism: ρ of zero-concentrated differential privacy (Bun and Steinke
/// 2016), in units of 2⁻⁵⁶. Noise of variance σ² on a sum that a row moves by at most Δ costs
/// Δ²/2σ², and the costs of several mechanisms add up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Rho(pub u64);

impl Rho {
    /// Returns ρ as a number.
    pub fn value(self) -> f64 {
        self.0 as f64 * 2f64.powi(-RHO_BITS)
    }

    /// Returns the sum of two costs.
    pub fn and(self, other: Rho) -> Rho {
        Rho(self.0.saturating_add(other.0))
    }
}

/// A privacy budget: every outcome is at most e^ε times as likely with any one row as without it,
/// plus δ, and the reverse.
///
/// ```
/// use nysketch::privacy::Budget;
/// # fn main() -> nysketch::Result<()> {
/// let budget = Budget::new(1.0, 1e-6)?;
/// let rho = budget.rho();
/// assert!(rho.value() > 0.018 && rho.value() < 0.03);
/// assert!(budget.epsilon_of(rho) <= 1.0 + 1e-6);
/// assert!(Budget::new(0.0, 1e-6).is_err());
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Budget {
    /// ε.
    pub epsilon: f64,
    /// δ.
    pub delta: f64,
}

/// Margin subtracted from the logarithm of δ for rounding errors: the computation below has a dozen
/// operations on numbers below 10⁵, each with a relative error below 10⁻¹⁵.
const MARGIN: f64 = 1e-8;

impl Budget {
    /// Accepts ε from 0.0001 to 20 and δ from 10⁻³⁰ to 0.01.
    pub fn new(epsilon: f64, delta: f64) -> Result<Self> {
        if !(1e-4..=20.0).contains(&epsilon) {
            let expected = "between 0.0001 and 20; 20 lets outcomes be half a billion times as \
                likely with a row as without it";
            return Err(Error::parameter("`epsilon`", expected, epsilon));
        }
        if !(1e-30..=0.01).contains(&delta) {
            let expected =
                "between 1e-30 and 0.01: well below one over the number of people, such as 1e-6";
            return Err(Error::parameter("`delta`", expected, delta));
        }
        Ok(Budget { epsilon, delta })
    }

    /// Returns the largest ρ within the budget, rounded down.
    pub fn rho(&self) -> Rho {
        let limit = libm::log(self.delta) - MARGIN;
        let within = |rho: f64| log_delta(rho, self.epsilon) <= limit;
        // A ρ above ε always exceeds the budget; ρ far below (ε²/4) / ln(1/δ) is always within it.
        let (mut low, mut high) = (0u64, units_below(self.epsilon));
        while low < high {
            let middle = low + (high - low).div_ceil(2);
            if within(Rho(middle).value()) { low = middle } else { high = middle - 1 }
        }
        Rho(low)
    }

    /// Returns the ε, at the same δ, for replacing a row: one row is removed and one is added. By
    /// the triangle inequality, the sums move by at most 2Δ, and therefore
    ///
    /// ```text
    /// ρ' = (2Δ)²/2σ² = 4ρ
    /// ```
    ///
    /// ```
    /// let budget = nysketch::privacy::Budget::new(1.0, 1e-6)?;
    /// assert!((budget.epsilon_of_replacing() - 2.11).abs() < 0.01);
    /// # Ok::<(), nysketch::Error>(())
    /// ```
    pub fn epsilon_of_replacing(&self) -> f64 {
        self.epsilon_of(Rho(self.rho().0.saturating_mul(4)))
    }

    /// Returns the ε at which a cost ρ has the δ of this budget, rounded up.
    pub fn epsilon_of(&self, rho: Rho) -> f64 {
        let limit = libm::log(self.delta) - MARGIN;
        let (mut low, mut high) = (0.0, rho.value() + 2.0 * (rho.value() * -limit).sqrt());
        for _ in 0..60 {
            let middle = 0.5 * (low + high);
            if log_delta(rho.value(), middle) <= limit { high = middle } else { low = middle }
        }
        high
    }
}

fn units_below(rho: f64) -> u64 {
    (rho * 2f64.powi(RHO_BITS)) as u64
}

/// Returns the smallest logarithm of δ found over orders α > 1 for a cost ρ at ε (Canonne, Kamath
/// and Steinke 2020, proposition 12):
///
/// ```text
/// δ = exp((α − 1)(αρ − ε)) / (α − 1) · (1 − 1/α)^α
/// ```
///
/// The formula holds for every α, so the search need not find the best one. The functions come from
/// `libm`, so that all machines compute the same result.
fn log_delta(rho: f64, epsilon: f64) -> f64 {
    let at = |log: f64| {
        let over = libm::exp(log);
        let order = 1.0 + over;
        over * (order * rho - epsilon) - log + order * -libm::log1p(1.0 / over)
    };
    // Golden sections over ln(α − 1).
    let ratio = 0.5 * (5f64.sqrt() - 1.0);
    let (mut low, mut high) = (-7.0, 17.0);
    let mut best = f64::INFINITY;
    for _ in 0..70 {
        let left = high - ratio * (high - low);
        let right = low + ratio * (high - low);
        let (a, b) = (at(left), at(right));
        best = best.min(a).min(b);
        if a < b { high = right } else { low = left }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn better_than_the_simple_bound_and_monotone() {
        for epsilon in [0.01, 0.5, 1.0, 3.0, 10.0] {
            for delta in [1e-3f64, 1e-6, 1e-12] {
                let log = -delta.ln();
                let simple = ((epsilon + log).sqrt() - log.sqrt()).powi(2);
                let budget = Budget::new(epsilon, delta).unwrap();
                let rho = budget.rho();
                assert!(rho.value() > simple, "{epsilon} {delta}");
                let back = budget.epsilon_of(rho);
                assert!(back <= epsilon * (1.0 + 1e-6) && back > epsilon * 0.999, "{back}");
            }
        }
    }

    /// The δ of Gaussian noise at ε is known. Discrete noise costs at least as much, so the bound
    /// must not be smaller.
    #[test]
    fn never_below_what_gaussian_noise_costs() {
        for (rho, epsilon) in [(0.02f64, 1.0f64), (0.1, 1.0), (0.5, 3.0), (2.0, 8.0)] {
            let mu = (2.0 * rho).sqrt();
            let tail = |x: f64| 0.5 * libm::erfc(x / std::f64::consts::SQRT_2);
            let exact =
                tail(epsilon / mu - mu / 2.0) - epsilon.exp() * tail(epsilon / mu + mu / 2.0);
            let bound = log_delta(rho, epsilon).exp();
            assert!(bound >= exact && bound < 10.0 * exact, "{rho}: {bound} and {exact}");
        }
    }

    #[test]
    fn nonsense_is_refused() {
        for (epsilon, delta) in [
            (0.0, 1e-6),
            (-1.0, 1e-6),
            (f64::NAN, 1e-6),
            (1e9, 1e-6),
            (1.0, 0.0),
            (1.0, 1.0),
            (1.0, f64::NAN),
        ] {
            assert!(Budget::new(epsilon, delta).is_err(), "{epsilon} {delta}");
        }
    }
}
