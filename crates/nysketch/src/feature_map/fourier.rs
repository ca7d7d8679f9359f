//! Random Fourier features, eq. (5) with the factors it leaves out:
//!
//! ```text
//! Φ(x) = 1/√m′ [cos(Ωᵀx/σ), sin(Ωᵀx/σ)],   Ω_ij ~ N(0, 1) ,
//! ```
//!
//! so that ⟨Φ(x), Φ(y)⟩ → κ(x, y) as m′ grows. The plan holds Ω without 1/σ: one draw serves every
//! bandwidth. The pass sums cos and sin in units of 2⁻²³; 1/√m′ is applied when decoding.

use crate::fixed::FEATURE_ONE;
use crate::kernel::exp2::cos_sin_quarters;
use crate::kernel::tile::{Instructions, Work};
use crate::points::Points;
use rand_distr::{Distribution, StandardNormal};

/// Angles beyond this many quarter turns have no digits left in f32.
const LARGEST_ANGLE: f32 = 4_194_304.0;

/// Draws Ω: `count` frequencies in `dims` dimensions.
pub fn draw_frequencies(dims: usize, count: usize, rng: &mut impl rand::Rng) -> Points {
    let data = (0..dims * count)
        .map(|_| {
            let x: f64 = StandardNormal.sample(rng);
            x as f32
        })
        .collect();
    Points::new(dims, data)
}

/// Φ(x) in double precision: the slow and obvious version.
pub fn features(frequencies: &Points, sigma2: f64, x: &[f64]) -> Vec<f64> {
    let norm = 1.0 / (frequencies.len() as f64).sqrt();
    let angles: Vec<f64> = frequencies
        .rows()
        .map(|w| w.iter().zip(x).map(|(a, b)| f64::from(*a) * b).sum::<f64>() / sigma2.sqrt())
        .collect();
    let cos = angles.iter().map(|a| norm * a.cos());
    cos.chain(angles.iter().map(|a| norm * a.sin())).collect()
}

/// `2/(πσ)`: from a phase to quarter turns.
pub fn quarter_turns(sigma2: f64) -> f32 {
    (std::f64::consts::FRAC_2_PI / sigma2.sqrt()) as f32
}

/// `(cos, sin)` of a phase at one bandwidth in units of 2⁻²³: the definition of the pass.
#[inline(always)]
pub fn units(phase: f32, quarter_turns: f32) -> (i32, i32) {
    let angle = (phase * quarter_turns).clamp(-LARGEST_ANGLE, LARGEST_ANGLE);
    let (c, s) = cos_sin_quarters(angle);
    let one = FEATURE_ONE as f32;
    ((c * one).round_ties_even() as i32, (s * one).round_ties_even() as i32)
}

/// The phase `Ω_jᵀ z` by fused multiply-adds in the order of the columns.
pub fn phase(frequency: &[f32], z: &[f32]) -> f32 {
    frequency.iter().zip(z).fold(0.0, |sum, (w, x)| w.mul_add(*x, sum))
}

/// Frequencies laid out for the pass.
#[derive(Debug, Clone)]
pub struct FourierPass {
    instructions: Instructions,
    count: usize,
    /// `[column][frequency]`.
    transposed: Vec<f32>,
    factors: Vec<f32>,
    phases: Vec<f32>,
}

impl FourierPass {
    /// Prepares the pass for these bandwidths.
    pub fn new(frequencies: &Points, bandwidths: &[f64], instructions: Instructions) -> Self {
        let (count, d) = (frequencies.len(), frequencies.dims());
        let transposed = (0..d * count).map(|i| frequencies.row(i % count)[i / count]).collect();
        FourierPass {
            instructions,
            count,
            transposed,
            factors: bandwidths.iter().map(|s| quarter_turns(*s)).collect(),
            phases: vec![0.0; count],
        }
    }

    /// Adds a row to `sums`, laid out `[rung][cos then sin][frequency]`.
    pub fn add(&mut self, z: &[f32], weight: u32, sums: &mut [i64]) {
        self.instructions.run(AddRow { pass: self, z, weight, sums });
    }
}

struct AddRow<'a> {
    pass: &'a mut FourierPass,
    z: &'a [f32],
    weight: u32,
    sums: &'a mut [i64],
}

impl Work for AddRow<'_> {
    #[inline(always)]
    fn work(self) {
        let FourierPass { count, transposed, factors, phases, .. } = self.pass;
        let (count, weight) = (*count, i64::from(self.weight));
        phases.fill(0.0);
        for (x, column) in self.z.iter().zip(transposed.chunks_exact(count)) {
            for (p, w) in phases.iter_mut().zip(column) {
                *p = w.mul_add(*x, *p);
            }
        }
        for (factor, rung) in factors.iter().zip(self.sums.chunks_exact_mut(2 * count)) {
            let (cos, sin) = rung.split_at_mut(count);
            for ((p, c), s) in phases.iter().zip(cos).zip(sin) {
                let (cu, su) = units(*p, *factor);
                *c += i64::from(cu) * weight;
                *s += i64::from(su) * weight;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Gaussian;
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    #[test]
    fn inner_products_approach_the_kernel() {
        let mut rng = ChaCha8Rng::seed_from_u64(5);
        let frequencies = draw_frequencies(3, 20_000, &mut rng);
        let (x, y) = ([0.1, -0.4, 1.0], [0.9, 0.3, 0.2]);
        let sigma2 = 1.7;
        let (a, b) = (features(&frequencies, sigma2, &x), features(&frequencies, sigma2, &y));
        let dot: f64 = a.iter().zip(&b).map(|(p, q)| p * q).sum();
        // Standard error of a mean of 20,000 cosines: at most 0.7/√20000 = 0.005.
        assert!((dot - Gaussian { sigma2 }.value(&x, &y)).abs() < 0.02);
    }

    #[test]
    fn every_instruction_set_gives_the_bits_of_the_definition() {
        let mut rng = ChaCha8Rng::seed_from_u64(6);
        let (d, count, bandwidths) = (7, 53, [9.0, 2.25, 0.1]);
        let frequencies = draw_frequencies(d, count, &mut rng);
        let rows = draw_frequencies(d, 30, &mut rng);
        let mut expected = vec![0i64; 3 * 2 * count];
        for (i, z) in rows.rows().enumerate() {
            for (l, s) in bandwidths.iter().enumerate() {
                for (j, w) in frequencies.rows().enumerate() {
                    let (c, s) = units(phase(w, z), quarter_turns(*s));
                    expected[(2 * l) * count + j] += i64::from(c) * (i as i64 % 3);
                    expected[(2 * l + 1) * count + j] += i64::from(s) * (i as i64 % 3);
                }
            }
        }
        for set in Instructions::all() {
            let mut pass = FourierPass::new(&frequencies, &bandwidths, set);
            let mut sums = vec![0i64; expected.len()];
            for (i, z) in rows.rows().enumerate() {
                pass.add(z, i as u32 % 3, &mut sums);
            }
            assert_eq!(sums, expected, "{set:?}");
        }
    }

    #[test]
    fn units_are_accurate_and_bounded_even_for_huge_phases() {
        for phase in [0.0f32, 1.0, -77.7, 1e30, -1e38, f32::MAX] {
            let (c, s) = units(phase, 3.0);
            assert!(c.unsigned_abs() <= FEATURE_ONE && s.unsigned_abs() <= FEATURE_ONE);
        }
    }
}
