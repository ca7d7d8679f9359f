//! The choice of the retained rows from the sample.

use crate::rows::sample::{Reservoir, mix};

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
