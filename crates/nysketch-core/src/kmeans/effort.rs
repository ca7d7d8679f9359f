//! The effort of a search for centres.

/// The effort of a search for centres.
#[derive(Debug, Clone, Copy)]
pub struct Effort {
    /// Number of starts.
    pub restarts: usize,
    /// Maximum number of Lloyd's iterations per start.
    pub iterations: usize,
    /// Maximum number of rounds of exchanges per start; each round tries about k points.
    pub exchanges: usize,
    /// Iterations end when the cost decreases by less than this share.
    pub tolerance: f64,
    /// Number of threads; the result does not depend on it.
    pub threads: usize,
}

impl Effort {
    /// Creates an effort of this many starts and iterations to convergence, without exchanges.
    pub const fn new(restarts: usize, iterations: usize) -> Self {
        Effort { restarts, iterations, exchanges: 0, tolerance: 0.0, threads: 1 }
    }
}
