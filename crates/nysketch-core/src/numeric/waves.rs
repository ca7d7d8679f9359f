//! Sines, cosines and exponentials of many numbers at once, in double precision.
//!
//! The library functions process one number at a time; these loops are plain arithmetic that the
//! compiler can vectorise. All instruction sets give the same bits, since no operations are fused.

use crate::numeric::simd::{Instructions, Work};

/// Adding and subtracting this number rounds to an integer.
const ROUND: f64 = 6_755_399_441_055_744.0;
/// π/2 in three parts; the first two have 33 bits, so that their products with a count below 2²⁰
/// are exact.
const QUARTER: [f64; 3] =
    [1.570_796_326_734_125_6, 6.077_100_506_303_966e-11, 2.022_266_248_795_950_6e-21];
/// Taylor coefficients, with errors below 2⁻⁵⁴ up to π/4.
const SIN: [f64; 7] = [
    -1.0 / 6.0,
    1.0 / 120.0,
    -1.0 / 5040.0,
    1.0 / 362_880.0,
    -1.0 / 39_916_800.0,
    1.0 / 6_227_020_800.0,
    -1.0 / 1_307_674_368_000.0,
];
const COS: [f64; 8] = [
    -0.5,
    1.0 / 24.0,
    -1.0 / 720.0,
    1.0 / 40_320.0,
    -1.0 / 3_628_800.0,
    1.0 / 479_001_600.0,
    -1.0 / 87_178_291_200.0,
    1.0 / 20_922_789_888_000.0,
];
/// ln 2 in two parts; the first has 32 bits.
const LN_2: [f64; 2] = [0.693_147_180_369_123_8, 1.908_214_929_270_587_7e-10];
/// Exponents are clipped to this minimum, so that the result is a normal number.
const MIN_EXPONENT: f64 = -700.0;

/// Converts phases of magnitude at most a million to `(size cos, size sin)`, with
/// `size = scale · exp(−½ damping)`; an empty `damping` means zero. Errors are a few units in the
/// last place of the size.
pub fn waves(phases: &[f64], damping: &[f64], scale: f64, cos: &mut [f64], sin: &mut [f64]) {
    Instructions::best().run(Waves { phases, damping, scale, cos, sin });
}

struct Waves<'a> {
    phases: &'a [f64],
    damping: &'a [f64],
    scale: f64,
    cos: &'a mut [f64],
    sin: &'a mut [f64],
}

impl Work for Waves<'_> {
    #[inline(always)]
    fn work(self) {
        for ((phase, cos), sin) in self.phases.iter().zip(&mut *self.cos).zip(&mut *self.sin) {
            let [c, s] = cos_sin(*phase);
            (*cos, *sin) = (self.scale * c, self.scale * s);
        }
        for ((damping, cos), sin) in self.damping.iter().zip(self.cos).zip(self.sin) {
            let size = exp(-0.5 * damping);
            (*cos, *sin) = (size * *cos, size * *sin);
        }
    }
}

#[inline(always)]
fn polynomial<const N: usize>(x: f64, coefficients: [f64; N]) -> f64 {
    coefficients.iter().rev().fold(0.0, |sum, c| sum * x + c)
}

#[inline(always)]
fn cos_sin(phase: f64) -> [f64; 2] {
    let rounded = phase * std::f64::consts::FRAC_2_PI + ROUND;
    let count = rounded - ROUND;
    let r = ((phase - count * QUARTER[0]) - count * QUARTER[1]) - count * QUARTER[2];
    let r2 = r * r;
    let sin = r + r * (r2 * polynomial(r2, SIN));
    let cos = 1.0 + r2 * polynomial(r2, COS);
    // The last bits of the rounded number count quarter turns.
    let quarter = rounded.to_bits();
    let swapped = quarter & 1 == 1;
    let (c, s) = if swapped { (sin, cos) } else { (cos, sin) };
    [with_sign(c, quarter.wrapping_add(1)), with_sign(s, quarter)]
}

/// Flips the sign of a number if the second bit of the quarter is set.
#[inline(always)]
fn with_sign(x: f64, quarter: u64) -> f64 {
    f64::from_bits(x.to_bits() ^ ((quarter & 2) << 62))
}

#[inline(always)]
fn exp(x: f64) -> f64 {
    let x = if x > MIN_EXPONENT { x } else { MIN_EXPONENT };
    let rounded = x * std::f64::consts::LOG2_E + ROUND;
    let count = rounded - ROUND;
    let r = (x - count * LN_2[0]) - count * LN_2[1];
    let mut sum = 1.0;
    for i in (1..14).rev() {
        sum = 1.0 + sum * r * (1.0 / f64::from(i));
    }
    sum * f64::from_bits((rounded.to_bits().wrapping_add(1023)) << 52)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Three or four roundings of numbers of magnitude one: 4e-16. The last part of π/2 leaves
        /// an error of 2⁻⁸⁵ per quarter turn.
        #[test]
        fn waves_are_those_of_the_library(
            phase in prop_oneof![-10.0..10.0f64, -1e6..1e6f64],
            damping in prop_oneof![0.0..4.0f64, 0.0..1000.0f64],
        ) {
            let (mut cos, mut sin) = ([0.0], [0.0]);
            waves(&[phase], &[damping], 0.5, &mut cos, &mut sin);
            let size = 0.5 * (-0.5 * damping).exp();
            let allowed = 1e-15 * size + 1e-300;
            let (c, s) = (size * phase.cos(), size * phase.sin());
            prop_assert!((cos[0] - c).abs() <= allowed, "{} {c}", cos[0]);
            prop_assert!((sin[0] - s).abs() <= allowed, "{} {s}", sin[0]);
        }
    }

    #[test]
    fn quarter_turns_and_far_tails() {
        let phases = [0.0, 1.0, 2.0, 3.0, -1.0].map(|n| n * std::f64::consts::FRAC_PI_2);
        let (mut cos, mut sin) = ([0.0; 5], [0.0; 5]);
        waves(&phases, &[], 1.0, &mut cos, &mut sin);
        assert_eq!(cos.map(f64::round), [1.0, 0.0, -1.0, 0.0, 0.0]);
        assert_eq!(sin.map(f64::round), [0.0, 1.0, 0.0, -1.0, -1.0]);
        let (mut cos, mut sin) = ([0.0], [0.0]);
        waves(&[0.0], &[1e9], 1.0, &mut cos, &mut sin);
        assert!(cos[0] < 1e-300 && cos[0] > 0.0 && sin[0] == 0.0);
    }
}
