//! Random choices.

use nysketch_core::rows::sample::mix;

/// A source of random numbers that a seed decides.
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

    /// Whether something happens that happens once in `n` times.
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

    /// The same things in another order.
    pub fn shuffle<T>(&mut self, all: &mut [T]) {
        for i in (1..all.len()).rev() {
            all.swap(i, self.below(i + 1));
        }
    }

    /// A number of rows: few, some, or about as many as a reader may look at before it decides on a type.
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
