//! Student's t distribution.

use std::f64::consts::FRAC_2_PI;

/// Returns `P(|T| ≤ t)` for an integer number of degrees of freedom: the finite sums of Abramowitz
/// and Stegun, 26.7.3 and 26.7.4.
pub fn within(t: f64, degrees: usize) -> f64 {
    let nu = degrees as f64;
    let theta = (t / nu.sqrt()).atan();
    let (sin, cos) = theta.sin_cos();
    // 1 + 1/2 cos² + (1·3)/(2·4) cos⁴ + …, or cos + 2/3 cos³ + (2·4)/(3·5) cos⁵ + …
    let odd = degrees % 2;
    let (mut term, mut sum) = (if odd == 1 { cos } else { 1.0 }, 0.0);
    for k in (odd..degrees.saturating_sub(1)).step_by(2) {
        sum += term;
        term *= cos * cos * (k + 1) as f64 / (k + 2) as f64;
    }
    if odd == 1 { FRAC_2_PI * (theta + sin * sum) } else { sin * sum }
}

/// Returns the t with `P(|T| ≤ t) = confidence`.
pub fn quantile(confidence: f64, degrees: usize) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    while within(high, degrees) < confidence && high < 1e300 {
        (low, high) = (high, 2.0 * high);
    }
    // Bisect to the precision of doubles.
    for _ in 0..200 {
        let middle = 0.5 * (low + high);
        if within(middle, degrees) < confidence {
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

    /// Values from published tables.
    #[test]
    fn quantiles_are_those_of_the_tables() {
        for (confidence, degrees, t) in [
            (0.95, 1, 12.7062),
            (0.95, 2, 4.30265),
            (0.95, 3, 3.18245),
            (0.95, 15, 2.13145),
            (0.99, 15, 2.94671),
            (0.95, 31, 2.03951),
            (0.90, 63, 1.66940),
        ] {
            let found = quantile(confidence, degrees);
            assert!((found - t).abs() < 6e-6 * t, "{degrees}: {found}");
            assert!((within(found, degrees) - confidence).abs() < 1e-12);
        }
    }
}
