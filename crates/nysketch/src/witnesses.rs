//! Witness rows: rows of the planning sample that lend their shape to the cells they lie in.

use crate::digest::sha256;
use crate::points::Points;
use crate::sample::{Reservoir, mix};

/// Rows of the planning sample that a plan keeps, drawn uniformly (by weight, where rows are weighted), in the
/// order of the input.
///
/// Cells know exact counts, means and variances, but not the shape inside; witness rows know shapes. They belong to
/// the plan, so sums stay exact. A sketch need not carry them: it always has their [`digest`](Self::digest), and the
/// rows can be put back with [`Sketch::with_witnesses_of`](crate::Sketch::with_witnesses_of). Witnesses are equal if
/// their digests are, whether or not the rows are at hand.
///
/// ```
/// use nysketch::{PlanParams, Sketch, Table, plan_for};
/// use std::sync::Arc;
/// # fn main() -> nysketch::Result<()> {
/// let table = Table::unnamed(1, (0..500).map(f64::from).collect())?;
/// let plan = Arc::new(plan_for(&table, PlanParams::default().landmarks(20).witnesses(50))?.0);
/// let witnesses = plan.witnesses.as_ref().unwrap();
/// assert_eq!(witnesses.rows().map(|rows| rows.len()), Some(50));
///
/// let whole = Sketch::empty(plan.clone());
/// let light = whole.clone().without_witnesses();
/// assert!(light.to_bytes().len() < whole.to_bytes().len());
/// assert_eq!(light, whole);
/// assert_eq!(light.with_witnesses_of(&plan)?.to_bytes(), whole.to_bytes());
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Witnesses {
    /// SHA-256 of the bytes of the rows.
    digest: String,
    /// In the frame's coordinates; `None` where the rows are kept elsewhere.
    rows: Option<Points>,
}

impl PartialEq for Witnesses {
    fn eq(&self, other: &Self) -> bool {
        self.digest == other.digest
    }
}

impl Witnesses {
    /// These rows, in the coordinates of the plan's frame.
    #[doc(hidden)]
    pub fn new(rows: Points) -> Self {
        let bytes: Vec<u8> = rows.data().iter().flat_map(|x| x.to_le_bytes()).collect();
        Witnesses { digest: sha256(&bytes), rows: Some(rows) }
    }

    /// Rows that are kept elsewhere.
    pub(crate) fn elsewhere(digest: String) -> Self {
        Witnesses { digest, rows: None }
    }

    /// SHA-256 of the bytes of the rows in a file, in lower-case hexadecimal.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// The rows in the coordinates of the plan's frame, where they are at hand.
    pub fn rows(&self) -> Option<&Points> {
        self.rows.as_ref()
    }
}

/// At most `count` places of a sample, drawn without replacement in proportion to `weights`, in increasing order.
/// Their chance is their own: nothing else that is drawn with the plan's seed changes with `count`.
pub(crate) fn draw_places(weights: &[f64], count: usize, seed: u64) -> Vec<usize> {
    let reservoir = Reservoir::new(count, 1, mix(seed ^ 0x317));
    for (place, weight) in weights.iter().enumerate() {
        reservoir.offer(place as u64, *weight, &[], place as f64);
    }
    reservoir.into_rows().into_iter().map(|place| place as usize).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of places with weights 3 and 1, each draw of one takes the first with probability 3/4: over 4,000 seeds 3,000
    /// times with a standard deviation of 27.4, of which six make a false alarm rarer than 1e-8.
    #[test]
    fn places_are_drawn_by_weight_and_in_order() {
        let first = (0..4000).filter(|seed| draw_places(&[3.0, 1.0], 1, *seed) == [0]).count();
        assert!((2836..=3164).contains(&first), "{first}");
        assert_eq!(draw_places(&[1.0, 0.0, 2.0], 9, 7), [0, 2], "nothing of weight zero");
        let many = draw_places(&[1.0; 1000], 100, 3);
        assert!(many.len() == 100 && many.is_sorted());
        assert_ne!(many, draw_places(&[1.0; 1000], 100, 4));
    }

    #[test]
    fn equal_witnesses_have_equal_digests() {
        let witnesses = Witnesses::new(Points::new(1, vec![1.0, 2.0]));
        assert_eq!(witnesses, Witnesses::elsewhere(witnesses.digest().to_string()));
        assert_ne!(witnesses, Witnesses::new(Points::new(1, vec![2.0, 1.0])));
    }
}
