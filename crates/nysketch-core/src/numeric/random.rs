//! Draws from a generator that the caller seeds.

use rand_distr::{Distribution, StandardNormal};

/// Draws an index with probability proportional to `weights`; `None` if all are zero.
pub fn draw(weights: &[f64], rng: &mut impl rand::Rng) -> Option<usize> {
    let total: f64 = weights.iter().sum();
    if !(total > 0.0) {
        return None;
    }
    let mut left = unit(rng) * total;
    let mut last = None;
    for (i, w) in weights.iter().enumerate() {
        if *w > 0.0 {
            last = Some(i);
            left -= w;
            if left < 0.0 {
                break;
            }
        }
    }
    last
}

/// Draws `count` indices with replacement, with probability proportional to `weights`; none if all
/// are zero.
pub fn draw_many(weights: &[f64], count: usize, rng: &mut impl rand::Rng) -> Vec<usize> {
    let mut total = 0.0;
    let sums: Vec<f64> = weights
        .iter()
        .map(|w| {
            total += w;
            total
        })
        .collect();
    let Some(last) = weights.iter().rposition(|w| *w > 0.0).filter(|_| total > 0.0) else {
        return Vec::new();
    };
    // The first index whose cumulative sum exceeds a random number below the total, up to rounding.
    (0..count)
        .map(|_| {
            let at = unit(rng) * total;
            sums.partition_point(|sum| *sum <= at).min(last)
        })
        .collect()
}

/// Returns a number in [0, 1) with 53 random bits.
pub fn unit(rng: &mut impl rand::Rng) -> f64 {
    (rng.next_u64() >> 11) as f64 * 2.0f64.powi(-53)
}

/// Returns an integer in `0 .. n`.
pub fn below(n: usize, rng: &mut impl rand::Rng) -> usize {
    // The bias of a 64-bit multiply is below n/2⁶⁴.
    ((u128::from(rng.next_u64()) * n as u128) >> 64) as usize
}

/// Returns a standard normal number.
pub fn normal(rng: &mut impl rand::Rng) -> f64 {
    StandardNormal.sample(rng)
}

/// A chain of hashes: the pseudo-random numbers of tests.
#[cfg(test)]
#[derive(Debug)]
pub struct Hashes(pub u64);

#[cfg(test)]
impl Hashes {
    /// Returns the next 64 bits.
    pub fn draw(&mut self) -> u64 {
        self.0 = crate::rows::sample::mix(self.0);
        self.0
    }
}
