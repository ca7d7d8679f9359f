//! What happens to a row: from a block of doubles to exact sums.
//!
//! Rows are brought into the plan's frame and gathered in a buffer; when it is full it runs through
//! the vectorised pass. The sums are integers, so neither the buffer's size nor the way rows arrive
//! shows in the result. An accumulator is frozen into a [`Sketch`] before anything can read it.

use super::cells::{CHUNK, CellMoments};
use super::gram::Gram;
use super::{Sketch, Sums};
use crate::error::{Error, Result};
use crate::feature_map::fourier::FourierPass;
use crate::frame::FramedRows;
use crate::kernel::exp2::exp2_product;
use crate::kernel::ladder::{Ladder, Step, exp_step};
use crate::kernel::pack::MAX_BLOCK;
use crate::kernel::scalar::units;
use crate::kernel::tile::{Instructions, Nearest, Tiles, Work};
use crate::plan::{Features, Plan};
use crate::rows::{Block, Invalid};
use std::ops::Range;
use std::sync::Arc;

/// Sums in the making, of one thread.
#[derive(Debug, Clone)]
pub struct Accumulator {
    plan: Arc<Plan>,
    instructions: Instructions,
    sums: Sums,
    buffer: FramedRows,
    /// One weight a buffered row; empty where the plan has no weights.
    weights: Vec<u32>,
    tiles: Option<Tiles>,
    fourier: Option<FourierPass>,
    nearest: Nearest,
    /// One step a bandwidth for κ², whose σ² is half.
    coverage: Vec<Step>,
    cells: Option<CellMoments>,
    gram: Option<Gram>,
}

impl Accumulator {
    /// An empty accumulator.
    pub fn new(plan: Arc<Plan>, instructions: Instructions) -> Self {
        let ladder = plan.collect.kernel.then(|| Ladder::new(&plan.bandwidths));
        let tiles = plan
            .landmarks()
            .filter(|_| plan.needs_nearest())
            .map(|landmarks| Tiles::new(landmarks, ladder.as_ref(), instructions));
        let fourier = match &plan.features {
            Features::Fourier(f) if plan.collect.kernel => {
                Some(FourierPass::new(f, &plan.bandwidths, instructions))
            }
            _ => None,
        };
        let covered = plan.collect.kernel && plan.landmarks().is_some();
        let coverage =
            plan.bandwidths.iter().filter(|_| covered).map(|s| exp_step(s / 2.0)).collect();
        let cells = plan
            .collect
            .cells
            .then(|| CellMoments::new(plan.features.points().len(), plan.dims(), instructions));
        let gram = plan.collect.moments.then(|| Gram::new(plan.dims(), instructions));
        Accumulator {
            sums: Sums::zero(&plan),
            instructions,
            plan,
            buffer: FramedRows::default(),
            weights: Vec::new(),
            tiles,
            fourier,
            nearest: Nearest::default(),
            coverage,
            cells,
            gram,
        }
    }

    /// Adds the rows of a block. On an error the accumulator must not be used further.
    pub fn push(&mut self, block: &Block, invalid: Invalid) -> Result<()> {
        self.push_rows(block, std::iter::once(0..block.len()), invalid)
    }

    /// Adds some rows of a block, counted from 0.
    pub(super) fn push_rows(
        &mut self,
        block: &Block,
        rows: impl Iterator<Item = Range<usize>>,
        invalid: Invalid,
    ) -> Result<()> {
        let plan = self.plan.clone();
        let d = plan.dims();
        if plan.weighting.is_some() && block.weights.len() != block.len() {
            return Err(Error::parameter(
                "weights",
                "one weight a row, as the plan asks for",
                "none",
            ));
        }
        for mut rows in rows {
            while !rows.is_empty() {
                let room = MAX_BLOCK - self.buffer.z.len() / d;
                let some = rows.start..rows.end.min(rows.start + room);
                rows.start = some.end;
                let values = &block.values[some.start * d..some.end * d];
                let good = plan.weighting.is_none()
                    && plan.frame.push(self.instructions, values, &mut self.buffer).is_ok();
                if !good {
                    some.into_iter().try_for_each(|i| self.push_row(block, i, invalid))?;
                }
                if self.buffer.z.len() == MAX_BLOCK * d {
                    self.flush()?;
                }
            }
        }
        Ok(())
    }

    /// Adds one row, which may be invalid.
    fn push_row(&mut self, block: &Block, i: usize, invalid: Invalid) -> Result<()> {
        let Plan { frame, columns, weighting, .. } = &*self.plan;
        let d = frame.dims();
        let (number, row) = (block.first_row + i as u64, &block.values[i * d..(i + 1) * d]);
        let before = self.buffer.z.len() / d;
        if let Err(j) = frame.push(self.instructions, row, &mut self.buffer) {
            frame.refuse(invalid, columns, block, number, row, j)?;
            self.sums.skipped[0] += 1;
        } else if let Some(weighting) = weighting {
            match weighting.units(block.weights[i], invalid, block, number) {
                Ok(Some(units)) => self.weights.push(units),
                refused => {
                    self.buffer.truncate(before, d);
                    refused?;
                    self.sums.skipped[0] += 1;
                }
            }
        }
        Ok(())
    }

    /// Puts other sums in the place of those so far.
    pub(super) fn swap_sums(&mut self, sums: &mut Sums) -> Result<()> {
        self.finish()?;
        std::mem::swap(&mut self.sums, sums);
        Ok(())
    }

    /// The sketch of the rows pushed.
    pub fn freeze(mut self) -> Result<Sketch> {
        self.finish()?;
        Ok(Sketch::from_parts(self.plan, self.sums))
    }

    /// Brings all rows pushed so far into the sums.
    fn finish(&mut self) -> Result<()> {
        self.flush()?;
        if let Some(cells) = &mut self.cells {
            cells.fold(&mut self.sums);
        }
        Ok(())
    }

    /// Runs the buffered rows through the pass.
    fn flush(&mut self) -> Result<()> {
        let d = self.plan.dims();
        let n = self.buffer.z.len() / d;
        if n == 0 {
            return Ok(());
        }
        self.sums.rows[0] += match self.weights.is_empty() {
            true => n as i128,
            false => self.weights.iter().map(|w| i128::from(*w)).sum(),
        };
        self.sums.check_rows()?;
        self.buffer.q.resize(n * d + CHUNK, 0.0);
        self.add_kernel();
        self.add_fourier();
        if self.plan.needs_nearest() {
            self.add_coverage();
        }
        self.add_moments(d);
        self.add_cells(d);
        self.buffer.z.clear();
        self.buffer.q.clear();
        self.weights.clear();
        Ok(())
    }

    fn add_kernel(&mut self) {
        if let Some(tiles) = &mut self.tiles {
            let features = &mut self.sums.features;
            let m = self.plan.features.points().len();
            tiles.block(
                &self.buffer.z,
                &self.weights,
                Some(&mut self.nearest),
                |rung, j, units| {
                    features[rung * m + j] += i128::from(units);
                },
            );
        }
    }

    fn add_fourier(&mut self) {
        if let Some(fourier) = &mut self.fourier {
            let features = &mut self.sums.features;
            fourier.block(&self.buffer.z, &self.weights, |at, units| {
                features[at] += i128::from(units);
            });
        }
    }

    fn add_coverage(&mut self) {
        self.instructions.run(AddCoverage {
            steps: &self.coverage,
            d2: &self.nearest.d2,
            weights: &self.weights,
            totals: &mut self.sums.coverage,
        });
    }

    fn add_cells(&mut self, d: usize) {
        let Some(cells) = &mut self.cells else { return };
        if self.weights.is_empty() {
            cells.add(&self.buffer.q, &self.nearest.index, &mut self.sums);
            return;
        }
        let Sums { cell_rows, cell_sum, cell_square, .. } = &mut self.sums;
        for (i, q) in self.buffer.q.chunks_exact(d).take(self.weights.len()).enumerate() {
            let cell = self.nearest.index[i] as usize;
            let weight = i128::from(self.weights[i]);
            cell_rows[cell] += weight;
            let span = cell * d..(cell + 1) * d;
            let sums = cell_sum[span.clone()].iter_mut().zip(&mut cell_square[span]);
            for ((sum, square), &q) in sums.zip(q) {
                let q = q as i128;
                *sum += q * weight;
                *square += q * q * weight;
            }
        }
    }

    fn add_moments(&mut self, d: usize) {
        let Some(gram) = &mut self.gram else { return };
        let Sums { sum, outer, .. } = &mut self.sums;
        if self.weights.is_empty() {
            gram.add(&self.buffer.q, self.buffer.z.len() / d, sum, outer);
            return;
        }
        for (q, &weight) in self.buffer.q.chunks_exact(d).zip(&self.weights) {
            let mut at = 0;
            for i in 0..d {
                let weighted = q[i] as i128 * i128::from(weight);
                sum[i] += weighted;
                for &other in &q[..=i] {
                    outer[at] += weighted * other as i128;
                    at += 1;
                }
            }
        }
    }
}

struct AddCoverage<'a> {
    steps: &'a [Step],
    d2: &'a [f32],
    weights: &'a [u32],
    totals: &'a mut [i128],
}

impl Work for AddCoverage<'_> {
    #[inline(always)]
    fn work(self) {
        for (step, total) in self.steps.iter().zip(self.totals) {
            let Step::Exp { factor, limit } = *step else {
                continue;
            };
            let units =
                self.d2.iter().map(|d2| u64::from(units(exp2_product(d2.min(limit), factor))));
            // A block of 256 units of at most 2²³, times weights below 2³², stays below 2⁶³.
            *total += i128::from(match self.weights {
                [] => units.sum::<u64>(),
                weights => units.zip(weights).map(|(u, w)| u * u64::from(*w)).sum(),
            });
        }
    }
}
