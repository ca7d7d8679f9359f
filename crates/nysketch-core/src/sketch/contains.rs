//! Whether rows are stored verbatim in a plan or a sketch: as landmarks, as retained rows, or alone
//! in a cell.
//!
//! Subtracting a row removes it from the sums, but not from the plan.

use crate::error::Result;
use crate::numeric::fixed::power_of_two;
use crate::plan::Plan;
use crate::recipe::View;
use crate::rows::{Block, Progress, RowSource, pass};
use crate::sketch::Sketch;
use crate::sums::Sum;
use serde::Serialize;
use std::collections::HashSet;

/// Number of given rows that a file contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[non_exhaustive]
pub struct Contained {
    /// Number of rows compared.
    pub rows: u64,
    /// Rows that the file contains in any form.
    pub found: u64,
    /// Rows equal to a landmark.
    pub landmarks: u64,
    /// Rows equal to a retained row.
    pub witnesses: u64,
    /// Rows whose value fills a cell, or one fold of a cell, alone. The sums of the cell reveal the
    /// row.
    pub alone: u64,
    /// Rows that could not be compared, because they have missing or invalid values.
    pub not_compared: u64,
    /// Whether the retained rows are in another file, so that no row could be compared with them.
    pub witnesses_elsewhere: bool,
}

impl Contained {
    /// Searches the file for every row of a source, at the precision that a plan stores rows with.
    ///
    /// ```
    /// use nysketch_core::{Contained, PlanParams, Sketch, SketchParams, Table, plan_for};
    /// # fn main() -> nysketch_core::Result<()> {
    /// let table = Table::unnamed(1, (0..100).map(f64::from).collect())?;
    /// let plan = plan_for(&table, PlanParams::default().landmarks(10).witnesses(30))?.plan;
    /// let sketch = Sketch::of(&plan.into(), &table, SketchParams::default(), &())?;
    /// let all = Contained::of(sketch.plan(), Some(&sketch), &table, 1, &())?;
    /// assert_eq!((all.rows, all.landmarks, all.witnesses), (100, 10, 30));
    /// let others = Table::unnamed(1, vec![0.5, 1.5])?;
    /// assert_eq!(Contained::of(sketch.plan(), Some(&sketch), &others, 1, &())?.found, 0);
    /// # Ok(())
    /// # }
    /// ```
    pub fn of(
        plan: &Plan,
        sketch: Option<&Sketch>,
        source: &dyn RowSource,
        threads: usize,
        progress: &dyn Progress,
    ) -> Result<Self> {
        let kept = Kept::of(plan, sketch);
        let view = View::new(&plan.recipe, &plan.columns, source)?;
        let counts = pass(&view, threads, progress, Contained::default, |counts, block| {
            kept.look_for(plan, block, counts);
            Ok(())
        })?;
        let mut all =
            Contained { witnesses_elsewhere: plan.lacks_witnesses(), ..Default::default() };
        for counts in counts {
            all.rows += counts.rows;
            all.found += counts.found;
            all.landmarks += counts.landmarks;
            all.witnesses += counts.witnesses;
            all.alone += counts.alone;
            all.not_compared += counts.not_compared;
        }
        Ok(all)
    }
}

/// A row: the bits of its coordinates, and its levels.
type Key = (Vec<u32>, Vec<u32>);
/// A row: its quantised coordinates, and its levels.
type QuantisedKey = (Vec<i128>, Vec<u32>);

/// The rows that a file contains.
struct Kept {
    landmarks: HashSet<Key>,
    witnesses: HashSet<Key>,
    /// Rows that fill a cell alone.
    alone: HashSet<QuantisedKey>,
}

impl Kept {
    fn of(plan: &Plan, sketch: Option<&Sketch>) -> Self {
        let points = plan.landmarks().map_or(&[][..], |points| points.data());
        let witnesses = plan.witnesses.as_ref();
        let rows = plan.witness_rows().map_or(&[][..], |rows| rows.data());
        let levels = witnesses.map_or(&[][..], |w| w.levels());
        Kept {
            landmarks: keys(plan, points, &plan.landmark_levels),
            witnesses: keys(plan, rows, levels),
            alone: sketch.map_or(HashSet::new(), alone),
        }
    }

    /// Searches for the rows of a block and adds the results to the counts.
    fn look_for(&self, plan: &Plan, block: &Block, counts: &mut Contained) {
        let (frame, d, c) = (&plan.frame, plan.dims(), plan.categories().len());
        let mut bounded = Vec::new();
        for i in 0..block.len() {
            let mut row = &block.values[i * d..(i + 1) * d];
            if let Some(private) = &plan.private {
                private.bound_rows(row, &mut bounded);
                row = &bounded;
            }
            counts.rows += 1;
            if frame.first_invalid(row).is_some() {
                counts.not_compared += 1;
                continue;
            }
            let y = frame.coordinates(row);
            let z: Vec<f32> = y.iter().map(|y| *y as f32).collect();
            let units = y.iter().zip(&frame.exponent);
            let q = units.map(|(y, e)| (y * power_of_two(-e)).round_ties_even() as i128);
            let key = (bits(&z), block.codes[i * c..(i + 1) * c].to_vec());
            let landmark = self.landmarks.contains(&key);
            let witness = self.witnesses.contains(&key);
            let alone = self.alone.contains(&(q.collect(), key.1.clone()));
            counts.landmarks += u64::from(landmark);
            counts.witnesses += u64::from(witness);
            counts.alone += u64::from(alone);
            counts.found += u64::from(landmark || witness || alone);
        }
    }
}

/// Returns the keys of rows of a plan; `levels` is empty if it has no categories.
fn keys(plan: &Plan, rows: &[f32], levels: &[u32]) -> HashSet<Key> {
    let c = plan.categories().len();
    let mut keys = HashSet::new();
    for (i, row) in rows.chunks_exact(plan.dims()).enumerate() {
        let levels = levels.get(i * c..(i + 1) * c).unwrap_or(&[]);
        keys.insert((bits(row), levels.to_vec()));
    }
    keys
}

/// Returns the complete rows that fill a cell, or one fold of a cell, alone.
fn alone(sketch: &Sketch) -> HashSet<QuantisedKey> {
    let folds = sketch.folds().map_or(&[][..], |folds| folds.sums());
    let mut alone = HashSet::new();
    for sums in [sketch.sums()].into_iter().chain(folds) {
        for cell in 0..sums[Sum::CellRows].len() {
            let Some((row, levels)) = sums.only_row(sketch.plan(), cell) else { continue };
            if let Some(row) = row.into_iter().collect() {
                alone.insert((row, levels));
            }
        }
    }
    alone
}

/// Returns the bits of numbers, with the same bits for both zeros.
fn bits(z: &[f32]) -> Vec<u32> {
    z.iter().map(|z| (z + 0.0).to_bits()).collect()
}
