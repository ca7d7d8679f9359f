//! The vectorised pass of one thread.
//!
//! Rows are converted to the plan's coordinates and collected in a buffer. A full buffer runs
//! through the tiles ([`tile`](crate::kernel::tile)), and cells, coverage and moments are added.
//! Sums are integers, so the result does not depend on block sizes or on the arrival of rows.
//!
//! Weighted rows are collected by weight: a block of rows of one weight is processed like a block
//! without weights, and its sums are multiplied once. If a buffer holds too many different weights,
//! the weights are split into digits, and a row is processed once for each of its non-zero digits.

use super::cell_moments::CellMoments;
use super::gram::Gram;
use super::{Engine, check_weights, has_enough};
use crate::error::Result;
use crate::kernel::exp2::exp2_product;
use crate::kernel::fourier::FourierPass;
use crate::kernel::ladder::exponential;
use crate::kernel::pack::MAX_BLOCK;
use crate::kernel::row::{ABSENT, PRESENT, Rows};
use crate::kernel::scalar::units;
use crate::kernel::search::Search;
use crate::kernel::tile::{Nearest, Tiles};
use crate::numeric::simd::{Instructions, Work};
use crate::plan::frame::{FramedRows, PADDING};
use crate::plan::{Features, Plan};
use crate::sums::{Sum, Sums};
use std::ops::Range;
use std::sync::Arc;

/// Approximate number of values converted at once. If one value is invalid, the rows before it are
/// converted again.
const FRAMED_VALUES: usize = 1 << 10;
/// Approximate number of values of weighted rows collected before they are sorted by weight.
const WEIGHTED_VALUES: usize = 1 << 18;
/// Average number of rows per weight from which sorting by weight pays.
const ROWS_PER_WEIGHT: usize = 8;
/// Number of rows from which splitting weights into digits pays.
const DIGITS_PAY: usize = 1 << DIGIT_BITS;
/// Bits per digit of a weight.
const DIGIT_BITS: u32 = 8;

/// The vectorised engine.
#[derive(Debug)]
pub struct Cpu {
    /// Complete rows, and rows with missing values.
    complete: Queue,
    incomplete: Queue,
    pub(super) weighted_rows: usize,
    /// Rows of one weight, copied from a queue.
    picked: FramedRows,
    /// Rows whose missing values are replaced by the centre of their column, or rows clipped to the
    /// bounds of a private plan.
    filled: Vec<f64>,
    pass: BlockPass,
}

/// Rows that wait to be processed; at most `weighted_rows` rows if they have weights.
#[derive(Debug, Default)]
struct Queue {
    rows: FramedRows,
    weights: Vec<u32>,
}

/// The steps that process a block.
#[derive(Debug)]
struct BlockPass {
    plan: Arc<Plan>,
    instructions: Instructions,
    /// `tiles` if kernel values at all landmarks are needed, `search` if only the nearest landmark
    /// is.
    tiles: Option<Tiles>,
    search: Option<Search>,
    fourier: Option<FourierPass>,
    nearest: Nearest,
    /// Factor and limit of the exponential that gives κ² at the nearest landmark, for each
    /// bandwidth.
    coverage: Vec<(f32, f32)>,
    cells: Option<CellMoments>,
    /// The points around which the sums of cells are clipped in a private plan.
    anchors: Vec<f64>,
    /// Number of levels of all categories, and the index of the first level of each category.
    levels: usize,
    starts: Vec<usize>,
    gram: Option<Gram>,
}

impl Cpu {
    /// An engine without rows that uses the best instruction set of this CPU.
    pub fn new(plan: Arc<Plan>) -> Self {
        Self::with(plan, Instructions::best())
    }

    /// An engine without rows.
    pub(crate) fn with(plan: Arc<Plan>, instructions: Instructions) -> Self {
        Cpu {
            complete: Queue::default(),
            incomplete: Queue::default(),
            weighted_rows: MAX_BLOCK.max(WEIGHTED_VALUES / plan.dims()),
            picked: FramedRows::default(),
            filled: Vec::new(),
            pass: BlockPass::new(plan, instructions),
        }
    }

    /// Searches few landmarks with the method for many.
    #[cfg(test)]
    pub(super) fn search_as_of_many(&mut self) {
        if let Some(search) = &mut self.pass.search {
            use crate::kernel::panels::Panels;
            let (plan, instructions) = (&self.pass.plan, self.pass.instructions);
            let landmarks = plan.features.points();
            let panels = Some(Arc::new(Panels::new(landmarks, instructions)));
            let tables = plan.level_tables();
            *search = Search::new(landmarks, tables.as_ref(), panels, instructions);
        }
    }

    /// The queue of rows with or without missing values.
    fn queue(&mut self, incomplete: bool) -> &mut Queue {
        if incomplete { &mut self.incomplete } else { &mut self.complete }
    }

    /// Processes the rows of a queue.
    fn flush(&mut self, incomplete: bool, sums: &mut Sums) {
        // The queue is taken out of `self`, so that rows can be copied from it while `self`
        // processes them.
        let mut queue = std::mem::take(self.queue(incomplete));
        if queue.weights.is_empty() {
            self.pass.block(&mut queue.rows, 1, sums);
            *self.queue(incomplete) = queue;
            return;
        }
        let mut by_weight: Vec<(u32, u32)> =
            queue.weights.iter().enumerate().map(|(i, w)| (*w, i as u32)).collect();
        by_weight.sort_unstable();
        let different = by_weight.chunk_by(|a, b| a.0 == b.0).count();
        let few = by_weight.len() < DIGITS_PAY;
        if different * ROWS_PER_WEIGHT <= by_weight.len() || few {
            self.by_weight(&queue.rows, &by_weight, 0, sums);
        } else {
            for shift in (0..u32::BITS).step_by(DIGIT_BITS as usize) {
                let mut digits: Vec<(u32, u32)> =
                    by_weight.iter().map(|(w, i)| (digit(*w, shift), *i)).collect();
                digits.sort_unstable();
                self.by_weight(&queue.rows, &digits, shift, sums);
            }
        }
        queue.rows.clear();
        queue.weights.clear();
        *self.queue(incomplete) = queue;
    }

    /// Processes rows sorted by weight. A weight counts units of 2^shift.
    fn by_weight(
        &mut self,
        waiting: &FramedRows,
        rows: &[(u32, u32)],
        shift: u32,
        sums: &mut Sums,
    ) {
        let (d, categories) = (self.pass.plan.dims(), self.pass.starts.len());
        for equal in rows.chunk_by(|a, b| a.0 == b.0) {
            let weight = i128::from(equal[0].0) << shift;
            if weight == 0 {
                continue;
            }
            for part in equal.chunks(self.pass.rows()) {
                for (_, i) in part {
                    self.picked.copy_row(waiting, *i as usize, d, categories);
                }
                self.pass.block(&mut self.picked, weight, sums);
            }
        }
    }
}

/// The digit of a weight that starts at this bit.
fn digit(weight: u32, shift: u32) -> u32 {
    (weight >> shift) & ((1 << DIGIT_BITS) - 1)
}

/// Rows to be added.
#[derive(Clone, Copy)]
struct Given<'a> {
    values: &'a [f64],
    codes: &'a [u32],
    weights: &'a [u32],
}

impl<'a> Given<'a> {
    /// A range of the rows.
    fn part(self, rows: Range<usize>, dims: usize, categories: usize) -> Given<'a> {
        Given {
            values: &self.values[rows.start * dims..rows.end * dims],
            codes: &self.codes[rows.start * categories..rows.end * categories],
            weights: self.weights.get(rows).unwrap_or(&[]),
        }
    }

    /// Whether a row has missing values.
    fn is_incomplete(self) -> bool {
        self.values.iter().any(|x| x.is_nan())
    }
}

impl Cpu {
    /// Adds rows that are all complete, or all have missing values, up to the first invalid row.
    /// Returns the number of rows added.
    fn add_alike(&mut self, given: Given<'_>, incomplete: bool, sums: &mut Sums) -> usize {
        let (d, categories) = (self.pass.plan.dims(), self.pass.starts.len());
        let rows = given.values.len() / d;
        let max_rows = if given.weights.is_empty() { self.pass.rows() } else { self.weighted_rows };
        // A queue holds either weighted or unweighted rows.
        if self.queue(incomplete).weights.is_empty() != given.weights.is_empty() {
            self.flush(incomplete, sums);
        }
        let mut at = 0;
        while at < rows {
            let room = max_rows - self.queue(incomplete).rows.rows(d);
            let end = rows.min(at + room.min((FRAMED_VALUES / d).max(1)));
            let values = &given.values[at * d..end * d];
            let queue = if incomplete { &mut self.incomplete } else { &mut self.complete };
            let taken = match &self.pass.plan.private {
                Some(private) => {
                    private.bound_rows(values, &mut self.filled);
                    self.pass.frame_complete(&self.filled, &mut queue.rows)
                }
                None if incomplete => {
                    self.pass.frame_incomplete(values, &mut self.filled, &mut queue.rows)
                }
                None => self.pass.frame_complete(values, &mut queue.rows),
            };
            let codes = &given.codes[at * categories..(at + taken) * categories];
            queue.rows.codes.extend_from_slice(codes);
            queue.weights.extend(given.weights.iter().skip(at).take(taken));
            let full = queue.rows.rows(d) == max_rows;
            at += taken;
            if full {
                self.flush(incomplete, sums);
            }
            if at < end {
                break;
            }
        }
        at
    }

    /// Adds rows that may have missing values, up to the first invalid row. Returns the number of
    /// rows added.
    fn add_partial(&mut self, given: Given<'_>, sums: &mut Sums) -> usize {
        let plan = self.pass.plan.clone();
        let (d, categories) = (plan.dims(), plan.categories().len());
        let rows = given.values.len() / d;
        let mut at = 0;
        while at < rows {
            let first = given.part(at..at + 1, d, categories);
            if !has_enough(&plan, first.values, first.codes) {
                break;
            }
            let incomplete = first.is_incomplete();
            let mut end = at + 1;
            while end < rows {
                let row = given.part(end..end + 1, d, categories);
                let alike = row.is_incomplete() == incomplete;
                if !(alike && has_enough(&plan, row.values, row.codes)) {
                    break;
                }
                end += 1;
            }
            at += self.add_alike(given.part(at..end, d, categories), incomplete, sums);
            if at < end {
                break;
            }
        }
        at
    }
}

impl Engine for Cpu {
    fn add(
        &mut self,
        values: &[f64],
        codes: &[u32],
        weights: &[u32],
        sums: &mut Sums,
    ) -> Result<usize> {
        check_weights(values.len() / self.pass.plan.dims(), weights)?;
        let given = Given { values, codes, weights };
        if self.pass.plan.is_partial() {
            Ok(self.add_partial(given, sums))
        } else {
            Ok(self.add_alike(given, false, sums))
        }
    }

    fn finish(&mut self, sums: &mut Sums) -> Result<()> {
        self.flush(false, sums);
        self.flush(true, sums);
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
            .filter(|_| plan.collect.kernel)
            .map(|landmarks| Tiles::new(landmarks, kernel, ladder.as_ref(), instructions))
            .map(|tiles| tiles.with_levels(plan.level_tables().as_ref()));
        let search = (plan.needs_nearest() && tiles.is_none()).then(|| plan.search(instructions));
        let fourier = match &plan.features {
            Features::Fourier(f, _) if plan.collect.kernel => {
                Some(FourierPass::new(f, bandwidths, instructions))
            }
            _ => None,
        };
        let covered = plan.collect.kernel && plan.landmarks().is_some();
        let mut coverage = Vec::new();
        if covered {
            coverage
                .extend(bandwidths.iter().map(|s| exponential(kernel.rate(kernel.squared(*s)))));
        }
        let cells = plan
            .collect
            .cells
            .then(|| CellMoments::new(plan.features.points().len(), plan.dims(), instructions));
        let anchors = plan.anchors();
        let gram = plan.collect.moments.then(|| Gram::new(plan.dims(), instructions));
        BlockPass {
            levels: plan.recipe.levels(),
            starts: plan.recipe.level_offsets(),
            plan,
            instructions,
            tiles,
            search,
            fourier,
            nearest: Nearest::default(),
            coverage,
            cells,
            anchors,
            gram,
        }
    }

    /// Number of rows per block. It exceeds [`MAX_BLOCK`] only if nothing but cells is collected.
    fn rows(&self) -> usize {
        match &self.search {
            Some(search) if self.gram.is_none() => search.rows(),
            _ => MAX_BLOCK,
        }
    }

    /// Appends the coordinates of whole rows up to the first invalid row. Returns their number.
    fn frame_complete(&self, values: &[f64], out: &mut FramedRows) -> usize {
        let d = self.plan.dims();
        match self.frame(values, out) {
            Ok(()) => values.len() / d,
            Err(bad) => {
                // The rows before the first invalid one are valid.
                let valid = bad / d;
                let pushed = self.frame(&values[..valid * d], out);
                debug_assert!(pushed.is_ok(), "rows before the first invalid one are valid");
                valid
            }
        }
    }

    /// Appends the coordinates of rows, or returns the index of the first invalid value.
    fn frame(&self, values: &[f64], out: &mut FramedRows) -> std::result::Result<(), usize> {
        self.plan.frame.push(self.instructions, values, out)
    }

    /// As [`frame_complete`](Self::frame_complete), for rows with missing values. They are replaced
    /// by the centre of the column, whose coordinate is zero and adds nothing to sums.
    fn frame_incomplete(
        &self,
        values: &[f64],
        filled: &mut Vec<f64>,
        out: &mut FramedRows,
    ) -> usize {
        let d = self.plan.dims();
        let centres = self.plan.frame.centre.iter().cycle();
        filled.clear();
        filled.extend(values.iter().zip(centres).map(|(x, c)| if x.is_nan() { *c } else { *x }));
        let taken = self.frame_complete(filled, out);
        let values = values[..taken * d].iter();
        out.present.extend(values.map(|x| if x.is_nan() { ABSENT } else { PRESENT }));
        taken
    }

    /// Adds at most [`rows`](Self::rows) rows of one weight and clears them.
    fn block(&mut self, rows: &mut FramedRows, weight: i128, sums: &mut Sums) {
        let d = self.plan.dims();
        let n = rows.rows(d);
        if n == 0 {
            return;
        }
        rows.q.resize(n * d + PADDING, 0.0);
        let input = Rows { z: &rows.z, codes: &rows.codes, present: &rows.present };
        if let Some(search) = &mut self.search {
            search.block(input, &mut self.nearest);
        }
        if let Some(tiles) = &mut self.tiles {
            let features = &mut sums[Sum::Features];
            let m = self.plan.features.points().len();
            tiles.block(input, Some(&mut self.nearest), |rung, j, units| {
                features[rung * m + j] += i128::from(units) * weight;
            });
        }
        let complete = rows.present.is_empty();
        if self.tiles.is_some() && complete {
            self.instructions.run(AddCoverage {
                steps: &self.coverage,
                distances: &self.nearest.distance,
                weight,
                totals: &mut sums[Sum::Coverage],
            });
        }
        if let Some(fourier) = self.fourier.as_mut().filter(|_| complete) {
            let features = &mut sums[Sum::Features];
            fourier.block(&rows.z, |at, units| features[at] += i128::from(units) * weight);
        }
        if let Some(gram) = self.gram.as_mut().filter(|_| complete) {
            let [sum, outer] = sums.each_mut([Sum::Sum, Sum::Outer]);
            gram.add(&rows.q, n, weight, sum, outer);
        }
        if let Some(cells) = &mut self.cells {
            // The global moments are complete. From here on, coordinates are clipped for the cells.
            if let Some(private) = &self.plan.private {
                for (q, cell) in rows.q.chunks_exact_mut(d).zip(&self.nearest.index) {
                    private.within_radius(&self.anchors[*cell as usize * d..][..d], q);
                }
            }
            cells.add(&rows.q, &self.nearest.index, weight, sums);
            self.add_levels(rows, weight, sums);
        }
        if complete && self.plan.is_partial() {
            sums[Sum::Complete][0] += n as i128 * weight;
        }
        rows.clear();
    }
}

impl BlockPass {
    /// Counts the levels and the missing values of rows in their cells.
    fn add_levels(&self, rows: &FramedRows, weight: i128, sums: &mut Sums) {
        let (d, categories) = (self.plan.dims(), self.starts.len());
        if categories > 0 {
            let counts = &mut sums[Sum::CellLevels];
            for (codes, cell) in rows.codes.chunks_exact(categories).zip(&self.nearest.index) {
                let counts = &mut counts[*cell as usize * self.levels..][..self.levels];
                for (start, code) in self.starts.iter().zip(codes) {
                    counts[start + *code as usize] += weight;
                }
            }
        }
        for (present, cell) in rows.present.chunks_exact(d).zip(&self.nearest.index) {
            let absent = &mut sums[Sum::CellAbsent][*cell as usize * d..][..d];
            for (count, present) in absent.iter_mut().zip(present) {
                if present.to_bits() == ABSENT.to_bits() {
                    *count += weight;
                }
            }
        }
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
            let distances = self.distances.iter().map(|s| s.min(limit));
            let units = distances.map(|s| u64::from(units(exp2_product(s, factor))));
            *total += i128::from(units.sum::<u64>()) * self.weight;
        }
    }
}
