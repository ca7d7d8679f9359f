//! Limits on work: the cost of operations that grow with the square or the cube of a plan is
//! estimated before they start, and too expensive ones are refused. No small file can keep a
//! machine busy for hours or use up its memory.

use crate::error::{Error, Result};
use std::sync::atomic::{AtomicU64, Ordering};

/// Maximum number of floating-point operations: some minutes on one core.
pub const OPERATIONS: f64 = 2e12;
/// Maximum number of bytes of memory.
pub const BYTES: f64 = 2e9;

/// Number of operations of an eigendecomposition divided by the cube of its size, measured.
const EIGEN: f64 = 10.0;

/// Factor of the limits, as the bits of a double. It applies to the whole process, as memory does.
static FACTOR: AtomicU64 = AtomicU64::new(1.0f64.to_bits());

/// Allows this multiple of [`OPERATIONS`] and [`BYTES`] from now on, in this process.
///
/// ```
/// nysketch_core::numeric::work::allow(10.0);
/// ```
pub fn allow(factor: f64) {
    FACTOR.store(factor.to_bits(), Ordering::Relaxed);
}

/// The cost of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Work {
    /// Floating-point operations.
    pub operations: f64,
    /// Bytes of memory.
    pub bytes: f64,
}

impl Work {
    /// Returns the cost of several eigendecompositions of this size, one after the other.
    pub fn eigen(size: usize, times: usize) -> Self {
        let n = size as f64;
        Work { operations: EIGEN * n * n * n * times as f64, bytes: 3.0 * 8.0 * n * n }
    }

    /// Returns the cost of several triangular factors of this size and their inverses, which are
    /// kept.
    pub fn cholesky(size: usize, times: usize) -> Self {
        let (n, times) = (size as f64, times as f64);
        Work { operations: 4.0 / 3.0 * n * n * n * times, bytes: 4.0 * n * n * times }
    }

    /// Adds operations and memory.
    pub fn and(self, operations: f64, bytes: f64) -> Self {
        Work { operations: self.operations + operations, bytes: self.bytes + bytes }
    }

    /// Returns the cost as a multiple of the limits.
    fn share(self) -> f64 {
        (self.operations / OPERATIONS).max(self.bytes / BYTES)
    }

    /// An eigendecomposition of this size for each of some bandwidths, with three matrices kept for
    /// each.
    pub fn bandwidths(size: usize, count: usize) -> Self {
        let n = size as f64;
        Self::eigen(size, count).and(0.0, 3.0 * 8.0 * n * n * count as f64)
    }

    /// Returns whether the work takes a few seconds and little memory, so that it is part of every
    /// look at a file.
    pub fn is_quick(self) -> bool {
        self.share() < 0.125
    }

    /// Returns whether the work takes at most seconds, so that it may be done without being
    /// requested.
    pub fn is_small(self) -> bool {
        self.share() < 0.2
    }

    /// Returns an error if the work exceeds the limit.
    pub fn check(self, what: &'static str) -> Result<()> {
        self.check_beside(what, None)
    }

    /// Returns an error that suggests an alternative if the work exceeds the limit.
    pub fn check_beside(
        self,
        what: &'static str,
        instead: impl Into<Option<&'static str>>,
    ) -> Result<()> {
        if self.share() <= f64::from_bits(FACTOR.load(Ordering::Relaxed)) {
            return Ok(());
        }
        Err(Error::TooMuchWork {
            what,
            operations: self.operations,
            gigabytes: self.bytes / 1e9,
            factor: self.share().ceil(),
            instead: instead.into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::collect::KERNEL_LANDMARKS;

    #[test]
    fn large_plans_are_refused_with_the_figures() {
        assert!(Work::eigen(4000, 3).check("learning").is_ok());
        let error = Work::eigen(40_000, 1).check("learning").unwrap_err().to_string();
        assert!(error.contains("learning") && error.contains("38.4 GB"), "{error}");
        assert!(error.contains("`max_work=320`"), "{error}");
        assert!(Work::eigen(2000, 30_000).check("looking").is_err());
        assert!(Work::eigen(KERNEL_LANDMARKS, 3).check("learning").is_ok());
        assert!(Work::eigen(KERNEL_LANDMARKS + 100, 3).check("learning").is_err());
        assert!(!Work::eigen(2000, 30_000).is_small() && Work::eigen(2000, 3).is_small());
        // A small file may have many bandwidths, whose matrices are large.
        assert!(Work::bandwidths(1500, 3).is_quick() && !Work::bandwidths(300, 1024).is_quick());
    }
}
