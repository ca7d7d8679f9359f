//! Bandwidth ladders: kernel values at several bandwidths from one exponential.
//!
//! If σ² falls by the factor at which a kernel is squared, the next value is the square of the last
//! one. For the Gaussian kernel, a factor of 2 is one squaring and a factor of 4 is two. Any other
//! ratio starts with a new exponential. Squaring doubles the relative error, so after four
//! squarings (error × 16, about 3e-6) the next bandwidth also starts with a new exponential.

use crate::error::{Error, Result};

/// Kernel values below this are negligible in fixed point. Clamping keeps their powers out of the
/// denormal range, where some processors are slow.
pub const FLOOR: f32 = 1.0 / (1u32 << 30) as f32;

const MAX_SQUARINGS: u8 = 4;

/// The computation of one bandwidth.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Step {
    /// κ = 2^(min(s, limit) · factor).
    Exp {
        /// log₂κ per unit of distance.
        factor: f32,
        /// Distance beyond which κ < 2⁻³⁰.
        limit: f32,
    },
    /// κ is the value of the previous bandwidth, squared `times` times.
    Square {
        /// 1 or 2.
        times: u8,
    },
}

impl Step {
    /// A new exponential `2^(rate · s)`.
    pub fn exponential(rate: f64) -> Self {
        let (factor, limit) = exponential(rate);
        Step::Exp { factor, limit }
    }
}

/// The factor of a distance, and the distance beyond which the value is below 2⁻³⁰.
pub fn exponential(rate: f64) -> (f32, f32) {
    (rate as f32, (-30.0 / rate) as f32)
}

/// The steps for bandwidths σ² in strictly decreasing order.
#[derive(Debug, Clone, PartialEq)]
pub struct Ladder {
    steps: Vec<Step>,
}

impl Ladder {
    /// Chooses the steps for checked bandwidths. `squarings` returns the number of squarings from
    /// one bandwidth to the next, 1 or 2, or 0 if there is none.
    pub fn new(
        bandwidths: &[f64],
        exponential: impl Fn(f64) -> Step,
        squarings: impl Fn(f64, f64) -> u8,
    ) -> Self {
        let mut steps = Vec::with_capacity(bandwidths.len());
        let mut since_exponential = 0;
        for (i, &sigma2) in bandwidths.iter().enumerate() {
            let times = i.checked_sub(1).map_or(0, |p| squarings(bandwidths[p], sigma2));
            if times == 0 || since_exponential + times > MAX_SQUARINGS {
                since_exponential = 0;
                steps.push(exponential(sigma2));
            } else {
                since_exponential += times;
                steps.push(Step::Square { times });
            }
        }
        Ladder { steps }
    }

    /// One step per bandwidth.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }
}

/// Largest number of bandwidths of a plan.
pub const MAX_BANDWIDTHS: usize = 1024;

/// Checks that bandwidths are positive, strictly decreasing, and between 2⁻¹⁰⁰ and 2¹¹⁰.
pub fn check_bandwidths(bandwidths: &[f64]) -> Result<()> {
    if bandwidths.len() > MAX_BANDWIDTHS {
        let expected = format!("at most {MAX_BANDWIDTHS} values of σ²");
        return Err(Error::parameter("`bandwidth`", expected, bandwidths.len()));
    }
    let usable = 2.0f64.powi(-100)..=2.0f64.powi(110);
    let falling = bandwidths.windows(2).all(|w| w[0] > w[1]);
    if bandwidths.is_empty() || !falling || !bandwidths.iter().all(|s| usable.contains(s)) {
        return Err(Error::parameter(
            "`bandwidth`",
            "different values of σ² between 2^-100 and 2^110",
            format!("{bandwidths:?}"),
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Kernel;

    #[test]
    fn factor_four_is_two_squarings_until_the_error_has_grown() {
        let ladder = Kernel::Gaussian.ladder(&[64.0, 16.0, 4.0, 1.0, 0.3, 0.15]);
        let kinds: Vec<u8> = ladder
            .steps()
            .iter()
            .map(|s| if let Step::Square { times } = s { *times } else { 0 })
            .collect();
        assert_eq!(kinds, [0, 2, 2, 0, 0, 1]);
        // κ = exp(−s/σ) is squared at σ/2, where σ² is a quarter.
        let laplace = Kernel::Laplace.ladder(&[64.0, 16.0, 8.0, 0.5]);
        let fresh: Vec<bool> =
            laplace.steps().iter().map(|s| matches!(s, Step::Exp { .. })).collect();
        assert_eq!(fresh, [true, false, true, false]);
    }

    #[test]
    fn bad_bandwidths_are_refused() {
        for bad in
            [&[][..], &[0.0], &[-1.0], &[f64::NAN], &[1.0, 1.0], &[1.0, 2.0], &[f64::INFINITY]]
        {
            assert!(check_bandwidths(bad).is_err(), "{bad:?}");
        }
    }
}
