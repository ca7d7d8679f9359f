//! Random Fourier features, eq. (5) with the factors that it omits:
//!
//! ```text
//! Φ(x) = 1/√m′ [cos(Ωᵀx/σ), sin(Ωᵀx/σ)],   Ω_ij ~ N(0, 1) ,
//! ```
//!
//! so that ⟨Φ(x), Φ(y)⟩ → κ(x, y) as m′ grows. The plan contains Ω without 1/σ, so one draw serves
//! every bandwidth. The pass sums cos and sin in units of 2⁻²³; 1/√m′ is applied when decoding.

use crate::kernel::exp2::{COS, ROUND, SIN, cos_sin_quarters};
use crate::kernel::pack::{MAX_BLOCK, PackedRows, ROWS, VECTORS, Value, copy_for, pack_points};
use crate::kernel::scalar::ONE_BITS;
use crate::numeric::fixed::FEATURE_ONE;
use crate::numeric::points::Points;
use crate::numeric::simd::Instructions;
use pulp::{Simd, WithSimd};
use rand_distr::{Distribution, StandardNormal};

/// Angles beyond this many quarter turns have no fractional digits in single precision.
const LARGEST_ANGLE: f32 = 4_194_304.0;

/// The distribution of the frequencies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum FrequencyLaw {
    /// Standard normal, which gives the Gaussian kernel.
    #[default]
    Normal,
    /// Uniform directions, with lengths of density ∝ √(R² + R⁴/4) e^{−R²/2} (Keriven et al. 2017),
    /// where the characteristic function of a Gaussian changes most with its mean and variance.
    /// Lengths are multiplied by √(d/2.3), so that their mean square is that of normal frequencies
    /// and σ² has the same meaning.
    Adapted,
}

/// E R² of adapted radii: with u = R²/2 + 2 their density is √u e^{−u} for u ≥ 2, so that E R² = 2
/// E u − 4 with E u = 3/2 + 2√2 e⁻²/Γ(3/2, 2).
const ADAPTED_SQUARE: f64 = 2.303_916;

/// Draws Ω: `count` frequencies in `dims` dimensions.
pub fn draw_frequencies(
    law: FrequencyLaw,
    dims: usize,
    count: usize,
    rng: &mut impl rand::Rng,
) -> Points {
    let mut data = Vec::with_capacity(dims * count);
    for _ in 0..count {
        let normal: Vec<f64> = (0..dims).map(|_| StandardNormal.sample(rng)).collect();
        let factor = match law {
            FrequencyLaw::Normal => 1.0,
            FrequencyLaw::Adapted => {
                let length = normal.iter().map(|x| x * x).sum::<f64>().sqrt();
                adapted_radius(rng) * (dims as f64 / ADAPTED_SQUARE).sqrt() / length
            }
        };
        data.extend(normal.iter().map(|x| (factor * x) as f32));
    }
    Points::new(dims, data)
}

/// Draws an adapted radius: √u e^{−u} is the density of half the sum of three squared normal
/// variables.
fn adapted_radius(rng: &mut impl rand::Rng) -> f64 {
    loop {
        let squares = (0..3).map(|_| {
            let x: f64 = StandardNormal.sample(rng);
            x * x
        });
        let u = 0.5 * squares.sum::<f64>();
        if u >= 2.0 {
            return (2.0 * u - 4.0).sqrt();
        }
    }
}

/// Returns Φ(x) in double precision: the slow reference.
pub fn features(frequencies: &Points, sigma2: f64, x: &[f64]) -> Vec<f64> {
    let norm = 1.0 / (frequencies.len() as f64).sqrt();
    let angles: Vec<f64> = frequencies
        .rows()
        .map(|w| w.iter().zip(x).map(|(a, b)| f64::from(*a) * b).sum::<f64>() / sigma2.sqrt())
        .collect();
    let cos = angles.iter().map(|a| norm * a.cos());
    cos.chain(angles.iter().map(|a| norm * a.sin())).collect()
}

/// Returns `2/(πσ)`, which converts a phase to quarter turns.
pub fn quarter_turns(sigma2: f64) -> f32 {
    (std::f64::consts::FRAC_2_PI / sigma2.sqrt()) as f32
}

/// Returns `(cos, sin)` of a phase at one bandwidth in units of 2⁻²³: the definition for the pass.
#[inline(always)]
pub fn units(phase: f32, quarter_turns: f32) -> (i32, i32) {
    let angle = (phase * quarter_turns).clamp(-LARGEST_ANGLE, LARGEST_ANGLE);
    let (c, s) = cos_sin_quarters(angle);
    let one = FEATURE_ONE as f32;
    ((c * one).round_ties_even() as i32, (s * one).round_ties_even() as i32)
}

/// Returns the phase `Ω_jᵀ z`, by fused multiply-adds in the order of the columns.
pub fn phase(frequency: &[f32], z: &[f32]) -> f32 {
    frequency.iter().zip(z).fold(0.0, |sum, (w, x)| w.mul_add(*x, sum))
}

/// Frequencies laid out for the pass, with its scratch memory.
#[derive(Debug, Clone)]
pub struct FourierPass {
    instructions: Instructions,
    dims: usize,
    count: usize,
    /// Padded with zero frequencies.
    packed: Vec<f32>,
    factors: Vec<f32>,
    /// `[rung][cos then sin][frequency, padded]`, sums of the last block.
    sums: Vec<u32>,
    rows: PackedRows,
}

impl FourierPass {
    /// Prepares the pass for these bandwidths.
    pub fn new(frequencies: &Points, bandwidths: &[f64], instructions: Instructions) -> Self {
        let packed = pack_points(frequencies, instructions.lanes(), 0.0);
        FourierPass {
            instructions,
            dims: frequencies.dims(),
            count: frequencies.len(),
            sums: vec![0; 2 * bandwidths.len() * packed.len() / frequencies.dims()],
            packed,
            factors: bandwidths.iter().map(|s| quarter_turns(*s)).collect(),
            rows: PackedRows::new(frequencies.dims()),
        }
    }

    /// Runs the pass over at most [`MAX_BLOCK`] rows (`rows × dims`, row-major).
    ///
    /// Calls `add(place, units)` with the sums of the block, where places are
    /// `[rung][cos then sin][frequency]`.
    pub fn block(&mut self, rows: &[f32], mut add: impl FnMut(usize, i32)) {
        let n = rows.len() / self.dims;
        assert!(n <= MAX_BLOCK && rows.len() == n * self.dims, "a block has whole rows");
        self.rows.pack(rows);
        self.sums.fill(0);
        let instructions = self.instructions;
        instructions.dispatch(FourierBlock { fourier: self });
        let padded = self.packed.len() / self.dims;
        for half in 0..2 * self.factors.len() {
            for j in 0..self.count {
                let at = half * padded + j;
                add(half * self.count + j, self.sums[at] as i32);
            }
        }
    }
}

struct FourierBlock<'a> {
    fourier: &'a mut FourierPass,
}

impl WithSimd for FourierBlock<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let FourierPass { dims: d, packed, factors, sums, rows, .. } = self.fourier;
        let (packed, _) = S::as_simd_f32s(packed);
        let (sums, _) = S::as_mut_simd_u32s(sums);
        let vectors = packed.len() / *d;
        let (panels, last) = packed.split_at(vectors / VECTORS * VECTORS * *d);
        let mut pass = FourierTile::<S> { simd, factors, vectors, sums };
        for (p, panel) in panels.as_chunks::<VECTORS>().0.chunks_exact(*d).enumerate() {
            pass.panel(rows, panel, p * VECTORS);
        }
        if !last.is_empty() {
            pass.panel(rows, last.as_chunks::<1>().0, vectors - 1);
        }
    }
}

struct FourierTile<'a, S: Simd> {
    simd: S,
    factors: &'a [f32],
    /// Number of vectors of all frequencies.
    vectors: usize,
    sums: &'a mut [S::u32s],
}

impl<S: Simd> FourierTile<'_, S> {
    /// Processes all rows with the panel that starts at this vector.
    #[inline(always)]
    fn panel<const V: usize>(&mut self, rows: &PackedRows, panel: &[[S::f32s; V]], vector: usize) {
        for tile in rows.tiles() {
            self.add(&phases::<S, ROWS, V>(self.simd, tile, panel), vector);
        }
        for row in rows.singles() {
            self.add(&phases::<S, 1, V>(self.simd, row, panel), vector);
        }
    }

    /// Computes cosines and sines of a tile at every bandwidth, in fixed point, summed over its
    /// rows.
    #[inline(always)]
    fn add<const R: usize, const V: usize>(&mut self, phases: &[[S::f32s; V]; R], vector: usize) {
        let simd = self.simd;
        for (rung, &factor) in self.factors.iter().enumerate() {
            let at = [2 * rung, 2 * rung + 1].map(|half| half * self.vectors + vector);
            for v in 0..V {
                let mut totals = at.map(|at| self.sums[at + v]);
                for r in 0..R {
                    let units = cos_sin_units(simd, phases[r][v], factor);
                    totals =
                        [simd.add_u32s(totals[0], units[0]), simd.add_u32s(totals[1], units[1])];
                }
                for (at, total) in at.into_iter().zip(totals) {
                    self.sums[at + v] = total;
                }
            }
        }
    }
}

/// Computes `Ω_jᵀ z` of R rows with V vectors of frequencies; see [`phase`].
#[inline(always)]
fn phases<S: Simd, const R: usize, const V: usize>(
    simd: S,
    rows: &[[Value; R]],
    panel: &[[S::f32s; V]],
) -> [[S::f32s; V]; R] {
    let mut sum = [[simd.splat_f32s(0.0); V]; R];
    for (x, w) in rows.iter().zip(panel) {
        for r in 0..R {
            for v in 0..V {
                let x = simd.splat_f32s(x[r][copy_for(v, S::F32_LANES)]);
                sum[r][v] = simd.mul_add_f32s(w[v], x, sum[r][v]);
            }
        }
    }
    sum
}

/// Vectorised version of [`units`] and [`cos_sin_quarters`].
#[inline(always)]
fn cos_sin_units<S: Simd>(simd: S, phase: S::f32s, quarter_turns: f32) -> [S::u32s; 2] {
    let largest = simd.splat_f32s(LARGEST_ANGLE);
    let angle = simd.mul_f32s(phase, simd.splat_f32s(quarter_turns));
    let angle = simd.min_f32s(simd.max_f32s(angle, simd.neg_f32s(largest)), largest);
    let round = simd.splat_f32s(ROUND);
    let rounded = simd.add_f32s(angle, round);
    let r = simd.sub_f32s(angle, simd.sub_f32s(rounded, round));
    let r2 = simd.mul_f32s(r, r);
    let sin = SIN.map(|c| simd.splat_f32s(c));
    let cos = COS.map(|c| simd.splat_f32s(c));
    let mut s = simd.mul_add_f32s(sin[3], r2, sin[2]);
    s = simd.mul_add_f32s(s, r2, sin[1]);
    s = simd.mul_f32s(simd.mul_add_f32s(s, r2, sin[0]), r);
    let mut c = simd.mul_add_f32s(cos[3], r2, cos[2]);
    c = simd.mul_add_f32s(c, r2, cos[1]);
    c = simd.mul_add_f32s(c, r2, cos[0]);
    c = simd.mul_add_f32s(c, r2, simd.splat_f32s(1.0));
    let quarter = simd.transmute_u32s_f32s(rounded);
    let one = simd.splat_u32s(1);
    let swapped = simd.equal_u32s(simd.and_u32s(quarter, one), one);
    let (c, s) = (simd.select_f32s(swapped, s, c), simd.select_f32s(swapped, c, s));
    [signed_units(simd, c, simd.add_u32s(quarter, one)), signed_units(simd, s, quarter)]
}

/// Converts a value within ±1 to units of 2⁻²³, with its sign flipped if the second bit of the
/// quarter is set.
#[inline(always)]
fn signed_units<S: Simd>(simd: S, value: S::f32s, quarter: S::u32s) -> S::u32s {
    let size = simd.add_f32s(simd.abs_f32s(value), simd.splat_f32s(1.0));
    let units = simd.sub_u32s(simd.transmute_u32s_f32s(size), simd.splat_u32s(ONE_BITS));
    let turn = simd.wrapping_dyn_shl_u32s(quarter, simd.splat_u32s(30));
    let sign = simd.xor_u32s(simd.transmute_u32s_f32s(value), turn);
    let negative = simd.greater_than_or_equal_u32s(sign, simd.splat_u32s(1 << 31));
    simd.select_u32s(negative, simd.sub_u32s(simd.splat_u32s(0), units), units)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Kernel;
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    #[test]
    fn inner_products_approach_the_kernel() {
        let mut rng = ChaCha8Rng::seed_from_u64(5);
        let frequencies = draw_frequencies(FrequencyLaw::Normal, 3, 20_000, &mut rng);
        let (x, y) = ([0.1, -0.4, 1.0], [0.9, 0.3, 0.2]);
        let sigma2 = 1.7;
        let (a, b) = (features(&frequencies, sigma2, &x), features(&frequencies, sigma2, &y));
        let dot: f64 = a.iter().zip(&b).map(|(p, q)| p * q).sum();
        // Standard error of a mean of 20,000 cosines: at most 0.7/√20000 = 0.005.
        assert!((dot - Kernel::Gaussian.at(sigma2).value(&x, &y)).abs() < 0.02);
    }

    /// The density of adapted lengths, up to a factor.
    fn density(r: f64) -> f64 {
        (r * r + 0.25 * r.powi(4)).sqrt() * (-0.5 * r * r).exp()
    }

    /// `E rⁿ` for that density, by the midpoint rule.
    fn moment(n: i32) -> f64 {
        let (mut sum, mut total) = (0.0, 0.0);
        for i in 0..200_000 {
            let r = (f64::from(i) + 0.5) * 5e-5;
            sum += r.powi(n) * density(r);
            total += density(r);
        }
        sum / total
    }

    fn squared_length(w: &[f32]) -> f64 {
        w.iter().map(|x| f64::from(*x).powi(2)).sum()
    }

    /// Compares moments by quadrature of the density with those of the draws. Squared lengths with
    /// mean 7 have a standard deviation of 5, so means of 50,000 are within 0.1, and their
    /// deviations about as close; normal frequencies would have a deviation of 3.7.
    #[test]
    fn adapted_lengths_have_their_density() {
        assert!((moment(2) - ADAPTED_SQUARE).abs() < 1e-5, "{}", moment(2));
        let mut rng = ChaCha8Rng::seed_from_u64(8);
        let drawn = draw_frequencies(FrequencyLaw::Adapted, 7, 50_000, &mut rng);
        let squares: Vec<f64> = drawn.rows().map(squared_length).collect();
        let mean = squares.iter().sum::<f64>() / 50_000.0;
        let variance = squares.iter().map(|s| (s - mean).powi(2)).sum::<f64>() / 50_000.0;
        let expected = 7.0 / ADAPTED_SQUARE * (moment(4) - moment(2).powi(2)).sqrt();
        assert!((mean - 7.0).abs() < 0.1, "{mean}");
        assert!((variance.sqrt() - expected).abs() < 0.2, "{} {expected}", variance.sqrt());
    }

    #[test]
    fn every_instruction_set_gives_the_bits_of_the_definition() {
        let mut rng = ChaCha8Rng::seed_from_u64(6);
        let (d, count, bandwidths) = (7, 53, [9.0, 2.25, 0.1]);
        let frequencies = draw_frequencies(FrequencyLaw::Normal, d, count, &mut rng);
        let rows = draw_frequencies(FrequencyLaw::Normal, d, 30, &mut rng);
        let mut expected = vec![0i32; 3 * 2 * count];
        for z in rows.rows() {
            for (l, s) in bandwidths.iter().enumerate() {
                for (j, w) in frequencies.rows().enumerate() {
                    let (c, s) = units(phase(w, z), quarter_turns(*s));
                    expected[(2 * l) * count + j] += c;
                    expected[(2 * l + 1) * count + j] += s;
                }
            }
        }
        for set in Instructions::all() {
            let mut pass = FourierPass::new(&frequencies, &bandwidths, set);
            let mut sums = vec![0; expected.len()];
            pass.block(rows.data(), |at, units| sums[at] = units);
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
