//! The number of retained rows, and their choice from the sample.

use super::params::SAMPLE_VALUES;
use crate::rows::sample::{Reservoir, mix};

/// Default number of retained rows.
pub const DEFAULT_WITNESSES: usize = 20_000;

/// Number of retained rows for each of the first clusters and for each further cluster, if the
/// number of clusters is given. The risk of k-means on s rows exceeds that on all rows by a share
/// of about k/s, and by twice that if clusters overlap. With many clusters, fewer rows per cluster
/// keep the excess within half a percent and learning within the time of the pass.
const WITNESSES_PER_CLUSTER: [usize; 2] = [800, 300];
const FIRST_CLUSTERS: usize = 200;
/// Largest number of values in the retained rows for each hundred clusters, about 4 MB, and never
/// more than in the sample. At least 20 rows per cluster and 2,000 rows are kept in any case.
const WITNESS_VALUES: usize = 1_000_000;
const MIN_PER_CLUSTER: usize = 20;
const MIN_WITNESSES: usize = 2_000;

/// Default number of retained rows for this number of columns.
pub fn default_witnesses(columns: usize, clusters: Option<usize>) -> usize {
    let k = clusters.unwrap_or(0);
    let (first, others) = (k.min(FIRST_CLUSTERS), k.saturating_sub(FIRST_CLUSTERS));
    let [each, later] = WITNESSES_PER_CLUSTER;
    let wanted = DEFAULT_WITNESSES.max((first * each).saturating_add(others.saturating_mul(later)));
    let values = WITNESS_VALUES.saturating_mul((k / 100).max(1)).min(SAMPLE_VALUES);
    let min = MIN_WITNESSES.max(k.saturating_mul(MIN_PER_CLUSTER));
    wanted.min((values / columns.max(1)).max(min))
}

/// Draws at most `count` indices of a sample without replacement, with probability proportional to
/// `weights`, in increasing order. The random stream is separate, so `count` does not affect other
/// random choices of the plan.
pub fn draw_places(weights: &[f64], count: usize, seed: u64) -> Vec<usize> {
    let reservoir = Reservoir::new(count, 1, mix(seed ^ 0x317));
    for (place, weight) in weights.iter().enumerate() {
        reservoir.offer(place as u64, *weight, &[], place as f64);
    }
    let mut places = Vec::new();
    reservoir.each_row(|row| places.push(row[0] as usize));
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn witnesses_grow_with_the_clusters() {
        assert_eq!(default_witnesses(9, None), 20_000);
        assert_eq!(default_witnesses(9, Some(10)), 20_000);
        assert_eq!(default_witnesses(2, Some(200)), 160_000);
        assert_eq!(default_witnesses(2, Some(201)), 160_300);
        assert_eq!(default_witnesses(9, Some(1000)), 400_000);
        // At most 10⁶ values for each hundred clusters, and at least 20 rows for each cluster.
        assert_eq!(default_witnesses(100, Some(100)), 10_000);
        assert_eq!(default_witnesses(10_000, Some(1000)), 20_000);
    }

    /// With weights 3 and 1, each draw of one index gives the first with probability 3/4: 3,000 of
    /// 4,000 seeds, with a standard deviation of 27.4. Six standard deviations make a false alarm
    /// rarer than 1e-8.
    #[test]
    fn places_are_drawn_by_weight_and_in_order() {
        let first = (0..4000).filter(|seed| draw_places(&[3.0, 1.0], 1, *seed) == [0]).count();
        assert!((2836..=3164).contains(&first), "{first}");
        assert_eq!(draw_places(&[1.0, 0.0, 2.0], 9, 7), [0, 2], "nothing of weight zero");
        let many = draw_places(&[1.0; 1000], 100, 3);
        assert!(many.len() == 100 && many.is_sorted());
        assert_ne!(many, draw_places(&[1.0; 1000], 100, 4));
    }
}
