//! Counts of two samples, with small ones pooled.

/// Expected number of rows in either sample below which a cell or a level is pooled with others.
pub const LEAST_EXPECTED: f64 = 5.0;

/// Counts in A and B of the groups with enough rows, and of all others together, if there are any.
pub struct Pooled {
    pub groups: Vec<[f64; 2]>,
    pub rest: Option<[f64; 2]>,
}

impl Pooled {
    /// Pools groups with fewer than [`LEAST_EXPECTED`] expected rows in either sample.
    pub fn new(counts: &[[f64; 2]], totals: [f64; 2]) -> Self {
        let (mut groups, mut rest) = (Vec::new(), [0.0; 2]);
        for [a, b] in counts {
            if is_small(a + b, totals[0] / (totals[0] + totals[1])) {
                rest = [rest[0] + a, rest[1] + b];
            } else {
                groups.push([*a, *b]);
            }
        }
        Pooled { groups, rest: (rest[0] + rest[1] > 0.0).then_some(rest) }
    }

    /// All groups, followed by the rest.
    pub fn all(&self) -> impl Iterator<Item = [f64; 2]> {
        self.groups.iter().copied().chain(self.rest)
    }
}

/// Whether `rows` rows of both samples together are too few, given the expected share of A.
pub fn is_small(rows: f64, share: f64) -> bool {
    rows * share.min(1.0 - share) < LEAST_EXPECTED
}
