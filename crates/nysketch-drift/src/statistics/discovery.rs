//! Multiple tests: the false-discovery rate of Benjamini and Hochberg (1995).

/// Computes q-values: the smallest false-discovery rate at which each test is a discovery, `q_(i) =
/// min_{j ≥ i} p_(j)·n/j` for p-values in ascending order.
///
/// ```
/// let q = nysketch::drift::q_values(&[0.01, 0.9, 0.02]);
/// assert_eq!(q, [0.03, 0.9, 0.03]);
/// ```
pub fn q_values(p_values: &[f64]) -> Vec<f64> {
    let count = p_values.len();
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by(|i, j| p_values[*j].total_cmp(&p_values[*i]));
    let (mut q, mut least) = (vec![1.0; count], 1.0f64);
    for (above, &at) in order.iter().enumerate() {
        least = least.min(p_values[at] * count as f64 / (count - above) as f64);
        q[at] = least;
    }
    q
}

#[cfg(test)]
mod tests {
    use super::*;
    use nysketch_core::numeric::random::unit;
    use proptest::prelude::*;
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    /// The procedure as published: finds the largest i with p_(i) ≤ i/n · rate, and reports all
    /// tests up to it.
    fn discoveries(p: &[f64], rate: f64) -> Vec<bool> {
        let mut sorted = p.to_vec();
        sorted.sort_by(f64::total_cmp);
        let n = p.len() as f64;
        let last = (0..p.len()).rev().find(|i| sorted[*i] <= (*i + 1) as f64 / n * rate);
        p.iter().map(|p| last.is_some_and(|last| *p <= sorted[last])).collect()
    }

    proptest! {
        #[test]
        fn discoveries_are_those_of_the_procedure(seed in any::<u64>(), count in 1usize..40) {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            let p: Vec<f64> = (0..count).map(|_| unit(&mut rng).powi(3)).collect();
            let q = q_values(&p);
            for rate in [0.01, 0.05, 0.2] {
                let called: Vec<bool> = q.iter().map(|q| *q <= rate).collect();
                prop_assert_eq!(&called, &discoveries(&p, rate));
            }
        }
    }
}
