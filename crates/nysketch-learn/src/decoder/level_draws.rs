//! Draws of levels in proportion to counts.

use nysketch_core::numeric::random::unit;

/// The counts of the levels of a category, laid out for many draws.
#[derive(Debug)]
pub(super) struct LevelDraws {
    /// The number of rows up to and including each level.
    up_to: Vec<f64>,
    total: f64,
}

impl LevelDraws {
    /// Lays out the counts, which are not negative; `None` if all are zero.
    pub fn new(counts: &[i128]) -> Option<Self> {
        let mut total = 0.0;
        let mut up_to = Vec::with_capacity(counts.len());
        for count in counts {
            total += *count as f64;
            up_to.push(total);
        }
        (total > 0.0).then_some(LevelDraws { up_to, total })
    }

    /// Draws a level with probability proportional to its count. Sums of counts are exact up to
    /// 2⁵³ rows, so this is the level that [`draw`](nysketch_core::numeric::random::draw) returns
    /// for the same random number.
    pub fn draw(&self, rng: &mut impl rand::Rng) -> u32 {
        // The random number is below one, and so is its product with the total below the total.
        let at = unit(rng) * self.total;
        self.up_to.partition_point(|up_to| *up_to <= at) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nysketch_core::numeric::random::{below, draw};
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    /// Compares draws with a linear scan of the counts, for small and large counts, some of which
    /// are zero.
    #[test]
    fn draws_are_those_of_a_linear_scan() {
        let rng = &mut ChaCha8Rng::seed_from_u64(1);
        for largest in [1, 3, 1000, 1 << 48] {
            for levels in [1, 2, 7, 20] {
                let mut counts: Vec<i128> = (0..levels)
                    .map(|i| if i % 3 == 1 { 0 } else { below(largest + 1, rng) as i128 })
                    .collect();
                counts[0] += 1;
                let draws = LevelDraws::new(&counts).unwrap();
                let weights: Vec<f64> = counts.iter().map(|n| *n as f64).collect();
                for seed in 0..300 {
                    let [one, other] = &mut [0; 2].map(|_| ChaCha8Rng::seed_from_u64(seed));
                    assert_eq!(Some(draws.draw(one) as usize), draw(&weights, other), "{counts:?}");
                }
            }
        }
        assert!(LevelDraws::new(&[0, 0]).is_none());
    }
}
