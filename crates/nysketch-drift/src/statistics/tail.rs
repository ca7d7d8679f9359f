//! Tail probabilities of the normal and the χ² distribution.

use std::f64::consts::FRAC_1_SQRT_2;

/// The probability that a χ² variable with `freedom` degrees of freedom exceeds `statistic`: `Q(a +
/// 1, x) = Q(a, x) + xᵃ e⁻ˣ/Γ(a + 1)`, starting from `Q(½, x) = erfc √x` or `Q(1, x) = e⁻ˣ`.
pub fn chi_squared_beyond(statistic: f64, freedom: usize) -> f64 {
    let x = 0.5 * statistic;
    if !(x > 0.0) {
        return 1.0;
    }
    let (mut a, mut q) =
        if freedom % 2 == 1 { (0.5, libm::erfc(x.sqrt())) } else { (1.0, (-x).exp()) };
    while a < 0.5 * freedom as f64 {
        q += (a * x.ln() - x - libm::lgamma(a + 1.0)).exp();
        a += 1.0;
    }
    q.clamp(0.0, 1.0)
}

/// The probability that a standard normal variable exceeds `z`.
pub fn normal_beyond(z: f64) -> f64 {
    0.5 * libm::erfc(z * FRAC_1_SQRT_2)
}

/// The value that a standard normal variable exceeds with this probability.
pub fn normal_quantile(beyond: f64) -> f64 {
    // Tails beyond 39 are 0 in double precision.
    let (mut low, mut high) = (-40.0, 40.0);
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if normal_beyond(middle) > beyond {
            low = middle;
        } else {
            high = middle;
        }
    }
    0.5 * (low + high)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tails_are_those_of_tables() {
        // 95 % quantiles of χ², from tables.
        for (freedom, quantile) in [(1, 3.841), (2, 5.991), (3, 7.815), (10, 18.307), (25, 37.652)]
        {
            let p = chi_squared_beyond(quantile, freedom);
            assert!((p - 0.05).abs() < 1e-4, "{freedom}: {p}");
        }
        assert_eq!(chi_squared_beyond(0.0, 3), 1.0);
        // Quantiles of the normal distribution, to six digits.
        for (beyond, quantile) in [(0.5, 0.0), (0.025, 1.959964), (0.001, 3.090232)] {
            assert!((normal_quantile(beyond) - quantile).abs() < 1e-6);
            assert!((normal_beyond(quantile) - beyond).abs() < 1e-7);
        }
    }
}
