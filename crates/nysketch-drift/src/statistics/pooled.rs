//! Counts of two samples, small ones taken together.

/// Rows expected in either sample below which a cell or a level is pooled with others like it.
pub const LEAST_EXPECTED: f64 = 5.0;

/// Counts in A and B of what has rows enough, and of all the rest together, where there is some.
pub struct Pooled {
    pub groups: Vec<[f64; 2]>,
    pub rest: Option<[f64; 2]>,
}

impl Pooled {
    /// Pools what has less than [`LEAST_EXPECTED`] rows expected in either sample.
    pub fn new(counts: &[[f64; 2]], totals: [f64; 2]) -> Self {
        let (mut groups, mut rest) = (Vec::new(), [0.0; 2]);
        for [a, b] in counts {
            match is_small(a + b, totals[0] / (totals[0] + totals[1])) {
                true => rest = [rest[0] + a, rest[1] + b],
                false => groups.push([*a, *b]),
            }
        }
        Pooled { groups, rest: (rest[0] + rest[1] > 0.0).then_some(rest) }
    }

    /// All groups, the rest being the last.
    pub fn all(&self) -> impl Iterator<Item = [f64; 2]> {
        self.groups.iter().copied().chain(self.rest)
    }
}

/// Whether so many rows of both samples together are too few, with this share of them expected in A.
pub fn is_small(rows: f64, share: f64) -> bool {
    rows * share.min(1.0 - share) < LEAST_EXPECTED
}
