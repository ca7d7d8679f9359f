//! Random choices.

use nysketch_core::rows::sample::mix;

/// A random number generator with a seed.
pub struct Rng(u64);

impl Rng {
    pub fn new(seed: u64) -> Self {
        Rng(mix(seed))
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(1);
        mix(self.0)
    }

    /// A number below `n`.
    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    /// Returns `true` once in `n` times on average.
    pub fn once_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    /// A number from 0 to 1.
    pub fn share(&mut self) -> f64 {
        self.next() as f64 / 2f64.powi(64)
    }

    pub fn pick<T: Clone>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())].clone()
    }

    /// Puts a slice into a random order.
    pub fn shuffle<T>(&mut self, all: &mut [T]) {
        for i in (1..all.len()).rev() {
            all.swap(i, self.below(i + 1));
        }
    }

    /// A number of rows: few, some, or about the number that a guessing reader looks at.
    pub fn rows(&mut self) -> usize {
        match self.below(4) {
            0 => self.below(4),
            1 => 190 + self.below(25),
            _ => self.below(60),
        }
    }

    /// A number between bounds, at one of them, or beyond.
    pub fn number(&mut self, (low, high): (f64, f64)) -> f64 {
        match self.below(12) {
            0 => low,
            1 => high,
            2 => self.pick(&[1e300, -1e300, f64::MAX, f64::MIN_POSITIVE, -0.0, 9.007e15]),
            _ => low + self.share() * (high - low),
        }
    }
}
