//! Noise: the discrete Gaussian, sampled exactly.
//!
//! ```text
//! P(X = x) ∝ exp(−x² / 2σ²) ,   x ∈ ℤ
//! ```
//!
//! Added independently to each number of a vector f(T) of integers, it gives ρ-zero-concentrated
//! differential privacy if
//!
//! ```text
//! Σ_k (f_k(T) − f_k(T'))² / σ_k²  ≤  2ρ    for all neighbours T, T'
//! ```
//!
//! (Canonne, Kamath and Steinke 2020, "The Discrete Gaussian for Differential Privacy", theorem 14,
//! the multivariate statement). All numbers of a mechanism have the same σ, so Δ²/σ² ≤ 2ρ is
//! sufficient.
//!
//! The algorithms are those of the same paper: every step compares uniform integers, and
//! probabilities are ratios of integers of any length. A [`Variance`] consists of integers, and
//! this file contains no floating-point number. The randomness comes from the operating system.

use num_bigint::{BigInt, BigUint, Sign};
use nysketch_core::error::{Error, Result};

/// Number of fractional bits of a variance.
pub const VARIANCE_BITS: u32 = 16;

/// A variance σ² > 0, in units of 2⁻¹⁶.
///
/// ```
/// use nysketch::privacy::Variance;
/// assert_eq!(Variance::new(3u32 << 16)?.to_string(), "196608/65536");
/// assert!(Variance::new(0u32).is_err());
/// # Ok::<(), nysketch::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Variance(BigUint);

impl Variance {
    /// Creates a variance from units of 2⁻¹⁶, at least one: without noise there is no privacy.
    pub fn new(units: impl Into<BigUint>) -> Result<Self> {
        let units = units.into();
        if units == BigUint::ZERO {
            return Err(Error::parameter("the variance of noise", "positive", 0));
        }
        Ok(Variance(units))
    }

    /// Returns the smallest variance with `numerator / denominator ≤ σ²`.
    pub(super) fn at_least(numerator: BigUint, denominator: &BigUint) -> Result<Self> {
        if *denominator == BigUint::ZERO {
            return Err(Error::parameter("the cost of noise", "positive", 0));
        }
        let units: BigUint = (numerator << VARIANCE_BITS) + denominator - 1u32;
        Variance::new(units / denominator)
    }

    /// Returns the variance in units of 2⁻¹⁶.
    pub fn units(&self) -> &BigUint {
        &self.0
    }
}

impl std::fmt::Display for Variance {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.0, 1u32 << VARIANCE_BITS)
    }
}

/// Number of random bytes requested from the operating system at once.
const BYTES: usize = 1 << 12;

/// The random number generator of the operating system. It cannot be seeded.
pub(super) struct Randomness {
    bytes: Box<[u8; BYTES]>,
    used: usize,
}

impl Randomness {
    pub fn of_the_system() -> Self {
        Randomness { bytes: Box::new([0; BYTES]), used: BYTES }
    }

    fn byte(&mut self) -> Result<u8> {
        if self.used == BYTES {
            getrandom::fill(&mut self.bytes[..]).map_err(|e| Error::Randomness(e.to_string()))?;
            self.used = 0;
        }
        // No byte is used twice or kept in memory.
        let byte = std::mem::take(&mut self.bytes[self.used]);
        self.used += 1;
        Ok(byte)
    }

    /// Returns a uniform integer from 0 to n − 1.
    fn below(&mut self, n: &BigUint) -> Result<BigUint> {
        let bits = (n - 1u32).bits();
        let spare = (8 - bits % 8) % 8;
        loop {
            let mut bytes = Vec::with_capacity(bits.div_ceil(8) as usize);
            for _ in 0..bits.div_ceil(8) {
                bytes.push(self.byte()?);
            }
            if let Some(last) = bytes.last_mut() {
                *last >>= spare;
            }
            let drawn = BigUint::from_bytes_le(&bytes);
            if drawn < *n {
                return Ok(drawn);
            }
        }
    }

    fn coin(&mut self) -> Result<bool> {
        Ok(self.byte()? & 1 == 1)
    }

    /// Returns true with probability p/q ≤ 1.
    fn happens(&mut self, p: &BigUint, q: &BigUint) -> Result<bool> {
        Ok(self.below(q)? < *p)
    }

    /// Returns true with probability exp(−p/q), p ≤ q: the first k at which an event of probability
    /// p/(qk) does not occur is odd.
    fn decays_once(&mut self, p: &BigUint, q: &BigUint) -> Result<bool> {
        let mut k = 1u32;
        while self.happens(p, &(q * k))? {
            k += 1;
        }
        Ok(k % 2 == 1)
    }

    /// Returns true with probability exp(−p/q), as a product of one factor e⁻¹ for each whole unit
    /// and a factor for the remainder.
    fn decays(&mut self, p: &BigUint, q: &BigUint) -> Result<bool> {
        let one = BigUint::from(1u32);
        let mut rest = p.clone();
        while rest >= *q {
            if !self.decays_once(&one, &one)? {
                return Ok(false);
            }
            rest -= q;
        }
        self.decays_once(&rest, q)
    }

    /// Draws discrete Laplace noise, P(x) ∝ exp(−|x|/t).
    fn laplace(&mut self, t: &BigUint) -> Result<BigInt> {
        let one = BigUint::from(1u32);
        loop {
            let part = self.below(t)?;
            if !self.decays(&part, t)? {
                continue;
            }
            let mut wholes = BigUint::ZERO;
            while self.decays_once(&one, &one)? {
                wholes += 1u32;
            }
            let (size, negative) = (part + t * wholes, self.coin()?);
            // Otherwise zero would be twice as likely.
            if !(negative && size == BigUint::ZERO) {
                let sign = if negative { Sign::Minus } else { Sign::Plus };
                return Ok(BigInt::from_biguint(sign, size));
            }
        }
    }

    /// Draws discrete Gaussian noise.
    pub fn gaussian(&mut self, variance: &Variance) -> Result<BigInt> {
        // σ² = a/b and t = ⌊σ⌋ + 1: Laplace noise y is kept with probability
        // exp(−(|y| − σ²/t)² / 2σ²) = exp(−(|y|bt − a)² / 2abt²).
        let (a, b) = (variance.units(), BigUint::from(1u32 << VARIANCE_BITS));
        let t = (a / &b).sqrt() + 1u32;
        let (bt, ratio) = (&b * &t, 2u32 * a * &b * &t * &t);
        loop {
            let y = self.laplace(&t)?;
            let at = y.magnitude() * &bt;
            let away = if at > *a { at - a } else { a - at };
            if self.decays(&(&away * &away), &ratio)? {
                return Ok(y);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draw(variance: &Variance, count: usize) -> Vec<i64> {
        let mut random = Randomness::of_the_system();
        let draw = |_| i64::try_from(random.gaussian(variance).unwrap()).unwrap();
        (0..count).map(draw).collect()
    }

    /// Chi-square test against the exact probabilities; a correct sampler fails once in 10⁷ runs
    /// for each variance.
    #[test]
    fn small_variances_have_the_exact_probabilities() {
        for units in [1u32, 6_554, 32_768, 65_536, 150_000, 9 << 16, 100 << 16] {
            let sigma2 = f64::from(units) / 65_536.0;
            let drawn = draw(&Variance::new(units).unwrap(), 20_000);
            let weight = |x: i64| (-(x * x) as f64 / (2.0 * sigma2)).exp();
            let total: f64 = (-200..=200).map(weight).sum();
            // Each bin has at least 10 expected draws; the tails are two bins.
            let most = (0..200).rev().find(|x| 20_000.0 * weight(*x) / total >= 10.0).unwrap();
            let expected: Vec<f64> = (-most..=most).map(|x| 20_000.0 * weight(x) / total).collect();
            let mut seen = vec![0.0; expected.len()];
            let mut outside = 0.0;
            for x in drawn {
                match usize::try_from(x + most).ok().and_then(|at| seen.get_mut(at)) {
                    Some(bin) => *bin += 1.0,
                    None => outside += 1.0,
                }
            }
            let far = 20_000.0 - expected.iter().sum::<f64>();
            let square = |(seen, expected): (&f64, &f64)| (seen - expected).powi(2) / expected;
            let statistic: f64 = seen.iter().zip(&expected).map(square).sum();
            let degrees = (expected.len().max(2) - 1) as f64;
            // Wilson and Hilferty; 5.2 standard deviations.
            let limit = degrees
                * (1.0 - 2.0 / (9.0 * degrees) + 5.2 * (2.0 / (9.0 * degrees)).sqrt()).powi(3);
            assert!(statistic < limit, "{units}: {statistic} of {degrees}");
            assert!(outside < far + 5.2 * far.sqrt() + 12.0, "{units}: {outside}, not {far}");
        }
    }

    /// Mean, variance and fourth moment agree within six standard errors.
    #[test]
    fn large_variances_have_the_moments_of_a_gaussian() {
        for bits in [20u32, 41, 63] {
            let variance = Variance::new(BigUint::from(3u32) << (2 * bits + 16)).unwrap();
            let sigma = 3f64.sqrt() * 2f64.powi(bits as i32);
            let mut random = Randomness::of_the_system();
            let n = 4000;
            let drawn: Vec<f64> = (0..n)
                .map(|_| {
                    i128::try_from(random.gaussian(&variance).unwrap()).unwrap() as f64 / sigma
                })
                .collect();
            let mean = |power: i32| drawn.iter().map(|x| x.powi(power)).sum::<f64>() / f64::from(n);
            let error = |variance: f64| 6.0 * (variance / f64::from(n)).sqrt();
            assert!(mean(1).abs() < error(1.0), "{bits}");
            assert!((mean(2) - 1.0).abs() < error(2.0), "{bits}");
            assert!((mean(4) - 3.0).abs() < error(96.0), "{bits}");
        }
    }

    #[test]
    fn uniform_integers_are_uniform() {
        let mut random = Randomness::of_the_system();
        for n in [1u32, 2, 3, 256, 257] {
            let mut seen = vec![0u32; n as usize];
            for _ in 0..20_000 {
                seen[usize::try_from(random.below(&n.into()).unwrap()).unwrap()] += 1;
            }
            let expected = 20_000.0 / f64::from(n);
            let off = seen.iter().map(|s| (f64::from(*s) - expected).abs()).fold(0.0, f64::max);
            assert!(off <= 6.5 * expected.sqrt(), "{n}: {off}");
        }
    }
}
