//! The vectorised pass of one thread.
//!
//! Rows are brought into the plan's frame and gathered in a buffer; a full buffer runs through the tiles
//! ([`tile`](crate::kernel::tile)), and cells, coverage and moments are added. Sums are integers, so
//! neither the size of a block nor the way rows arrive shows in the result.
//!
//! Rows with weights are gathered by weight: a block of rows of one weight is a block without weights
//! whose sums are multiplied once. Where a buffer holds too many different weights for that, they are
//! taken apart into digits, and a row goes through once for each of its digits that is not zero.

use super::cell_moments::CellMoments;
use super::gram::Gram;
use super::{Engine, check_weights};
use crate::error::Result;
use crate::feature_map::fourier::FourierPass;
use crate::frame::{FramedRows, PADDING};
use crate::kernel::exp2::exp2_product;
use crate::kernel::ladder::exponential;
use crate::kernel::pack::MAX_BLOCK;
use crate::kernel::scalar::units;
use crate::kernel::tile::{Nearest, Tiles};
use crate::plan::{Features, Plan};
use crate::simd::{Instructions, Work};
use crate::sums::{Sum, Sums};
use std::sync::Arc;

/// Values that are framed at once, about: where one is invalid, they are framed again without it.
const FRAMED_VALUES: usize = 1 << 10;
/// Values of rows with weights that are gathered before they are sorted by weight, about.
const WEIGHTED_VALUES: usize = 1 << 18;
/// Rows of one weight, on average, from which on sorting by weight pays.
const ROWS_PER_WEIGHT: usize = 8;
/// Rows from which on digits pay: fewer are as well taken one by one.
const DIGITS_PAY: usize = 1 << DIGIT_BITS;
/// Bits of a digit of a weight.
const DIGIT_BITS: u32 = 8;

/// The vectorised engine.
#[derive(Debug)]
pub struct Cpu {
    /// Rows that wait; with weights, up to `weighted_rows` of them.
    waiting: FramedRows,
    weights: Vec<u32>,
    pub(super) weighted_rows: usize,
    /// Rows of one weight, picked from those that wait.
    picked: FramedRows,
    pass: BlockPass,
}

/// What a block goes through.
#[derive(Debug)]
struct BlockPass {
    plan: Arc<Plan>,
    instructions: Instructions,
    tiles: Option<Tiles>,
    fourier: Option<FourierPass>,
    nearest: Nearest,
    /// Factor and limit of the exponential for κ² of the nearest landmark, for each bandwidth.
    coverage: Vec<(f32, f32)>,
    cells: Option<CellMoments>,
    gram: Option<Gram>,
}

impl Cpu {
    /// No rows yet, on the best instructions of this processor.
    pub fn new(plan: Arc<Plan>) -> Self {
        Self::with(plan, Instructions::best())
    }

    /// No rows yet.
    pub(crate) fn with(plan: Arc<Plan>, instructions: Instructions) -> Self {
        Cpu {
            waiting: FramedRows::default(),
            weights: Vec::new(),
            weighted_rows: MAX_BLOCK.max(WEIGHTED_VALUES / plan.dims()),
            picked: FramedRows::default(),
            pass: BlockPass::new(plan, instructions),
        }
    }

    /// Runs the rows that wait through the pass.
    fn flush(&mut self, sums: &mut Sums) {
        if self.weights.is_empty() {
            self.pass.block(&mut self.waiting, 1, sums);
            return;
        }
        let mut by_weight: Vec<(u32, u32)> =
            self.weights.iter().enumerate().map(|(i, w)| (*w, i as u32)).collect();
        by_weight.sort_unstable();
        let different = by_weight.chunk_by(|a, b| a.0 == b.0).count();
        let few = by_weight.len() < DIGITS_PAY;
        if different * ROWS_PER_WEIGHT <= by_weight.len() || few {
            self.by_weight(&by_weight, 0, sums);
        } else {
            for shift in (0..u32::BITS).step_by(DIGIT_BITS as usize) {
                let digit = |w: u32| (w >> shift) & ((1 << DIGIT_BITS) - 1);
                let mut digits: Vec<(u32, u32)> =
                    by_weight.iter().map(|(w, i)| (digit(*w), *i)).collect();
                digits.sort_unstable();
                self.by_weight(&digits, shift, sums);
            }
        }
        self.waiting.clear();
        self.weights.clear();
    }

    /// Runs rows, sorted by weight, through the pass; weights count 2^shift units.
    fn by_weight(&mut self, rows: &[(u32, u32)], shift: u32, sums: &mut Sums) {
        let d = self.pass.plan.dims();
        for equal in rows.chunk_by(|a, b| a.0 == b.0) {
            let weight = i128::from(equal[0].0) << shift;
            if weight == 0 {
                continue;
            }
            for some in equal.chunks(MAX_BLOCK) {
                for (_, i) in some {
                    self.picked.copy_row(&self.waiting, *i as usize, d);
                }
                self.pass.block(&mut self.picked, weight, sums);
            }
        }
    }
}

impl Engine for Cpu {
    fn add(&mut self, values: &[f64], weights: &[u32], sums: &mut Sums) -> Result<usize> {
        let d = self.pass.plan.dims();
        let rows = values.len() / d;
        check_weights(rows, weights)?;
        // Rows with weights and rows without do not wait together.
        if self.weights.is_empty() != weights.is_empty() {
            self.flush(sums);
        }
        let most = if weights.is_empty() { MAX_BLOCK } else { self.weighted_rows };
        let mut at = 0;
        while at < rows {
            let room = most - self.waiting.rows(d);
            let end = rows.min(at + room.min((FRAMED_VALUES / d).max(1)));
            let some = &values[at * d..end * d];
            let taken = match self.pass.frame(some, &mut self.waiting) {
                Ok(()) => end - at,
                Err(bad) => {
                    // The rows before the first invalid one are valid.
                    let valid = bad / d;
                    let some = &some[..valid * d];
                    let pushed = self.pass.frame(some, &mut self.waiting);
                    debug_assert!(pushed.is_ok(), "rows before the first invalid one are valid");
                    valid
                }
            };
            self.weights.extend(weights.iter().skip(at).take(taken));
            at += taken;
            if self.waiting.rows(d) == most {
                self.flush(sums);
            }
            if at < end {
                break;
            }
        }
        Ok(at)
    }

    fn finish(&mut self, sums: &mut Sums) -> Result<()> {
        self.flush(sums);
        if let Some(cells) = &mut self.pass.cells {
            cells.fold(sums);
        }
        Ok(())
    }
}

impl BlockPass {
    fn new(plan: Arc<Plan>, instructions: Instructions) -> Self {
        let (kernel, bandwidths) = (plan.kernel, &plan.bandwidths);
        let ladder = plan.collect.kernel.then(|| kernel.ladder(bandwidths));
        let tiles = plan
            .landmarks()
            .filter(|_| plan.needs_nearest())
            .map(|landmarks| Tiles::new(landmarks, kernel, ladder.as_ref(), instructions));
        let fourier = match &plan.features {
            Features::Fourier(f) if plan.collect.kernel => {
                Some(FourierPass::new(f, bandwidths, instructions))
            }
            _ => None,
        };
        let covered = plan.collect.kernel && plan.landmarks().is_some();
        let squared = |s: &f64| exponential(kernel.rate(kernel.squared(*s)));
        let coverage = bandwidths.iter().filter(|_| covered).map(squared).collect();
        let cells = plan
            .collect
            .cells
            .then(|| CellMoments::new(plan.features.points().len(), plan.dims(), instructions));
        let gram = plan.collect.moments.then(|| Gram::new(plan.dims(), instructions));
        BlockPass {
            plan,
            instructions,
            tiles,
            fourier,
            nearest: Nearest::default(),
            coverage,
            cells,
            gram,
        }
    }

    /// Appends the coordinates of whole rows; where a value is invalid, says which and appends nothing.
    fn frame(&self, values: &[f64], out: &mut FramedRows) -> std::result::Result<(), usize> {
        self.plan.frame.push(self.instructions, values, out)
    }

    /// Adds at most [`MAX_BLOCK`] rows of one weight and clears them.
    fn block(&mut self, rows: &mut FramedRows, weight: i128, sums: &mut Sums) {
        let d = self.plan.dims();
        let n = rows.rows(d);
        if n == 0 {
            return;
        }
        rows.q.resize(n * d + PADDING, 0.0);
        if let Some(tiles) = &mut self.tiles {
            let features = &mut sums[Sum::Features];
            let m = self.plan.features.points().len();
            tiles.block(&rows.z, Some(&mut self.nearest), |rung, j, units| {
                features[rung * m + j] += i128::from(units) * weight;
            });
            self.instructions.run(AddCoverage {
                steps: &self.coverage,
                distances: &self.nearest.distance,
                weight,
                totals: &mut sums[Sum::Coverage],
            });
        }
        if let Some(fourier) = &mut self.fourier {
            let features = &mut sums[Sum::Features];
            fourier.block(&rows.z, |at, units| features[at] += i128::from(units) * weight);
        }
        if let Some(gram) = &mut self.gram {
            let [sum, outer] = sums.each_mut([Sum::Sum, Sum::Outer]);
            gram.add(&rows.q, n, weight, sum, outer);
        }
        if let Some(cells) = &mut self.cells {
            cells.add(&rows.q, &self.nearest.index, weight, sums);
        }
        rows.clear();
    }
}

struct AddCoverage<'a> {
    steps: &'a [(f32, f32)],
    distances: &'a [f32],
    weight: i128,
    totals: &'a mut [i128],
}

impl Work for AddCoverage<'_> {
    #[inline(always)]
    fn work(self) {
        for (&(factor, limit), total) in self.steps.iter().zip(self.totals) {
            let value = |s: &f32| u64::from(units(exp2_product(s.min(limit), factor)));
            *total += i128::from(self.distances.iter().map(value).sum::<u64>()) * self.weight;
        }
    }
}
