//! Retained rows: rows of the planning sample that describe the shape of the data within cells.

use crate::numeric::digest::sha256;
use crate::numeric::points::Points;

/// Rows of the planning sample that a plan keeps, drawn uniformly (by weight if rows are weighted),
/// in the order of the input.
///
/// A cell has an exact count, mean and variance, but no shape. Retained rows supply the shape. They
/// belong to the plan, so sums stay exact. A sketch always has their [`digest`](Self::digest), but
/// need not contain the rows themselves;
/// [`Sketch::with_witnesses_of`](crate::Sketch::with_witnesses_of) restores them. Two sets of
/// retained rows are equal if their digests are equal, whether or not the rows are available.
///
/// ```
/// use nysketch_core::{PlanParams, Sketch, Table, plan_for};
/// use std::sync::Arc;
/// # fn main() -> nysketch_core::Result<()> {
/// let table = Table::unnamed(1, (0..500).map(f64::from).collect())?;
/// let plan = Arc::new(plan_for(&table, PlanParams::default().landmarks(20).witnesses(50))?.plan);
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
    /// SHA-256 of the section.
    digest: String,
    /// `None` if the rows are in another file.
    kept: Option<Kept>,
}

#[derive(Debug, Clone)]
struct Kept {
    /// Rows in the frame's coordinates.
    rows: Points,
    /// Level of each row in each category.
    levels: Vec<u32>,
    /// Weight of each row; empty if all weights are equal.
    weights: Vec<f32>,
}

impl PartialEq for Witnesses {
    fn eq(&self, other: &Self) -> bool {
        self.digest == other.digest
    }
}

impl Witnesses {
    /// Retained rows in the coordinates of the plan's frame, with their levels and weights.
    /// `weights` is empty if all weights are equal.
    #[doc(hidden)]
    pub fn new(rows: Points, levels: Vec<u32>, weights: Vec<f32>) -> Self {
        debug_assert!(weights.is_empty() || weights.len() == rows.len());
        // Hashes names and shapes too, as the format lists them, so that different tensors never
        // give the same bytes.
        let mut bytes = Vec::new();
        if !levels.is_empty() {
            let categories = levels.len() / rows.len();
            bytes
                .extend(format!("witnesses.levels I32 {} {categories}\n", rows.len()).into_bytes());
            bytes.extend(levels.iter().flat_map(|x| x.to_le_bytes()));
        }
        bytes.extend(format!("witnesses.rows F32 {} {}\n", rows.len(), rows.dims()).into_bytes());
        bytes.extend(rows.data().iter().flat_map(|x| x.to_le_bytes()));
        if !weights.is_empty() {
            bytes.extend(format!("witnesses.weights F32 {} 1\n", weights.len()).into_bytes());
            bytes.extend(weights.iter().flat_map(|x| x.to_le_bytes()));
        }
        Witnesses { digest: sha256(&bytes), kept: Some(Kept { rows, levels, weights }) }
    }

    /// Retained rows that are in another file.
    pub(crate) fn elsewhere(digest: String) -> Self {
        Witnesses { digest, kept: None }
    }

    /// A subset of the rows. `None` if it is empty or the rows are not available.
    pub fn select(&self, places: Vec<usize>) -> Option<Self> {
        let kept = self.kept.as_ref().filter(|_| !places.is_empty())?;
        let c = kept.levels.len() / kept.rows.len();
        let levels = places.iter().flat_map(|i| &kept.levels[i * c..(i + 1) * c]).copied();
        let weights = places.iter().filter_map(|i| kept.weights.get(*i)).copied();
        Some(Self::new(kept.rows.select(&places), levels.collect(), weights.collect()))
    }

    /// SHA-256 of the section in a file, in lower-case hexadecimal.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// The rows in the coordinates of the plan's frame, if they are available.
    pub fn rows(&self) -> Option<&Points> {
        self.kept.as_ref().map(|kept| &kept.rows)
    }

    /// The level of each row in each category, `rows × categories`. Empty without categories or if
    /// the rows are not available.
    pub fn levels(&self) -> &[u32] {
        self.kept.as_ref().map_or(&[], |kept| &kept.levels)
    }

    /// The relative weight of each row, at most 1. Empty if all weights are equal or the rows are
    /// not available.
    pub fn weights(&self) -> &[f32] {
        self.kept.as_ref().map_or(&[], |kept| &kept.weights)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn new(rows: Vec<f32>, levels: Vec<u32>) -> Witnesses {
        Witnesses::new(Points::new(1, rows), levels, Vec::new())
    }

    #[test]
    fn equal_witnesses_have_equal_digests() {
        let witnesses = new(vec![1.0, 2.0], Vec::new());
        assert_eq!(witnesses, Witnesses::elsewhere(witnesses.digest().to_string()));
        assert_ne!(witnesses, new(vec![2.0, 1.0], Vec::new()));
        assert_ne!(new(vec![1.0, 2.0], vec![0, 1]), new(vec![1.0, 2.0], vec![1, 1]));
    }
}
