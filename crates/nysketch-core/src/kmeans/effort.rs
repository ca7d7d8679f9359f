//! How hard centres are looked for.

/// How hard to try.
#[derive(Debug, Clone, Copy)]
pub struct Effort {
    /// Starts.
    pub restarts: usize,
    /// Lloyd's iterations of each.
    pub iterations: usize,
    /// Rounds of exchanges of each at most, k points in each round.
    pub exchanges: usize,
    /// Iterations end where the cost falls by less than this share of it.
    pub tolerance: f64,
    /// Threads; they do not show in the result.
    pub threads: usize,
}

impl Effort {
    /// So many starts and iterations of Lloyd's until nothing moves, and no exchanges.
    pub const fn new(restarts: usize, iterations: usize) -> Self {
        Effort { restarts, iterations, exchanges: 0, tolerance: 0.0, threads: 1 }
    }
}
