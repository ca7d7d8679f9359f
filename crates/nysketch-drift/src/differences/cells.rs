//! The paired cells of two samples.

use crate::differences::found::CellChange;
use crate::differences::shares::difference;
use nysketch_core::plan::Plan;
use nysketch_core::sketch::Sketch;
use nysketch_core::sums::{Sum, Sums};

/// The cells of two sketches of one plan.
pub struct PairedCells<'a> {
    pub a: &'a Sums,
    pub b: &'a Sums,
    /// The sums of A and B together.
    pub both: Sums,
    /// Numbers of rows of A and B in each cell.
    pub counts: Vec<[f64; 2]>,
    pub totals: [f64; 2],
}

impl<'a> PairedCells<'a> {
    pub fn new(a: &'a Sketch, b: &'a Sketch) -> Self {
        let (a, b) = (a.sums(), b.sums());
        let mut both = a.clone();
        both.combine(b, i128::wrapping_add);
        let rows = a[Sum::CellRows].iter().zip(&b[Sum::CellRows]);
        let counts: Vec<[f64; 2]> = rows.map(|(a, b)| [*a as f64, *b as f64]).collect();
        let totals = [0, 1].map(|side| counts.iter().map(|c| c[side]).sum());
        PairedCells { a, b, both, counts, totals }
    }

    /// Number of rows of both samples in a cell.
    pub fn rows(&self, cell: usize) -> f64 {
        self.counts[cell][0] + self.counts[cell][1]
    }

    /// Numbers of rows of A and B in each cell, under each possible origin of the landmarks.
    ///
    /// Landmarks are rows of the sample from which the plan was made. If that sample is A, each of
    /// its cells contains at least one row of A, the landmark itself. In small and distant cells
    /// this is almost the only row, and B seems to have too few rows there. Unlike rows of B, the
    /// landmark is always in its own cell. If it were an ordinary row, it would be in the cell of
    /// the nearest other landmark, so it is counted there. The sums do not show whether the
    /// landmarks are from A, from B or from neither; they can only be from a sample that has rows
    /// in every cell.
    pub fn dealings(&self, neighbours: &[usize]) -> Vec<Vec<[f64; 2]>> {
        let mut all = vec![self.counts.clone()];
        for side in 0..2 {
            if !neighbours.is_empty() && self.counts.iter().all(|c| c[side] >= 1.0) {
                let mut dealt = self.counts.clone();
                for (cell, neighbour) in neighbours.iter().enumerate() {
                    dealt[cell][side] -= 1.0;
                    dealt[*neighbour][side] += 1.0;
                }
                all.push(dealt);
            }
        }
        all
    }

    /// Shares of A and B in each cell, largest change first.
    pub fn changes(&self, plan: &Plan) -> Vec<CellChange> {
        let levels = plan.recipe.levels();
        let mut changes = Vec::new();
        for landmark in (0..self.counts.len()).filter(|cell| self.rows(*cell) > 0.0) {
            let (shares, z) = difference(self.counts[landmark], self.totals);
            let counts = &self.both[Sum::CellLevels][landmark * levels..][..levels];
            let levels = counts.iter().map(|n| *n as f64 / self.rows(landmark)).collect();
            let mean = self.both.cell_mean(landmark, &plan.frame.exponent);
            let mean = plan.frame.widen_coordinates(&mean);
            changes.push(CellChange { landmark, shares, z, mean, levels });
        }
        changes.sort_by(|p, q| q.z.abs().total_cmp(&p.z.abs()));
        changes
    }
}
