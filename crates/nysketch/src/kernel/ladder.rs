//! The ladder: kernel values at several bandwidths from one exponential.
//!
//! With σ² falling by a factor 4 from rung to rung, `κ_{i+1} = κ_i⁴`: two squarings. A factor 2 is
//! one squaring. Any other ratio starts from a fresh exponential. Squaring doubles the relative
//! error, so after four squarings (error ×16, about 3e-6) the next rung starts afresh too.

use crate::error::{Error, Result};

/// Kernel values below this are worth nothing in fixed point; clamping keeps powers of them out of
/// the denormal range, where some processors are slow.
pub const FLOOR: f32 = 1.0 / (1u32 << 30) as f32;

const MAX_SQUARINGS: u8 = 4;

/// How one rung is computed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Step {
    /// κ = 2^(min(d², limit) · factor), factor = −log₂e / 2σ².
    Exp {
        /// Times d².
        factor: f32,
        /// d² beyond which κ < 2⁻³⁰.
        limit: f32,
    },
    /// κ is the previous rung's, squared that many times.
    Square {
        /// 1 or 2.
        times: u8,
    },
}

/// The steps for bandwidths σ² in strictly falling order.
#[derive(Debug, Clone, PartialEq)]
pub struct Ladder {
    steps: Vec<Step>,
}

impl Ladder {
    /// Lays out the steps for bandwidths that have been checked.
    pub fn new(bandwidths: &[f64]) -> Self {
        let mut steps = Vec::with_capacity(bandwidths.len());
        let mut squarings = 0;
        for (i, &sigma2) in bandwidths.iter().enumerate() {
            let times = match i.checked_sub(1).map(|p| bandwidths[p] / sigma2) {
                Some(2.0) => 1,
                Some(4.0) => 2,
                _ => 0,
            };
            if times == 0 || squarings + times > MAX_SQUARINGS {
                squarings = 0;
                steps.push(exp_step(sigma2));
            } else {
                squarings += times;
                steps.push(Step::Square { times });
            }
        }
        Ladder { steps }
    }

    /// One step a bandwidth.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }
}

/// A fresh exponential for one bandwidth.
pub fn exp_step(sigma2: f64) -> Step {
    let factor = -std::f64::consts::LOG2_E / (2.0 * sigma2);
    Step::Exp { factor: factor as f32, limit: (-30.0 / factor) as f32 }
}

/// Bandwidths are finite, positive, strictly falling, and between 2⁻¹⁰⁰ and 2¹¹⁰.
pub fn check_bandwidths(bandwidths: &[f64]) -> Result<()> {
    let usable = |s: f64| (2.0f64.powi(-100)..=2.0f64.powi(110)).contains(&s);
    let falling = bandwidths.windows(2).all(|w| w[0] > w[1]);
    if bandwidths.is_empty() || !falling || !bandwidths.iter().all(|s| usable(*s)) {
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

    #[test]
    fn factor_four_is_two_squarings_until_the_error_has_grown() {
        let ladder = Ladder::new(&[64.0, 16.0, 4.0, 1.0, 0.3, 0.15]);
        let kinds: Vec<u8> = ladder
            .steps()
            .iter()
            .map(|s| if let Step::Square { times } = s { *times } else { 0 })
            .collect();
        assert_eq!(kinds, [0, 2, 2, 0, 0, 1]);
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
