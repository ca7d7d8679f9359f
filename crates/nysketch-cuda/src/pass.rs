//! The pass of one thread on a GPU: adds rows to sums.

use crate::args::Args;
use crate::device::Kernel;
use crate::error::{DeviceError, Result};
use crate::grid::{COVERED, MULTIPLIED, PER_LANE, SPAN, THREADS, TILE, WEIGHTED_EDGE};
use crate::memory::{Event, Memory, Pinned, Stream, WORKING};
use crate::rows::{DeviceRows, Element};
use crate::spec::{MOST_RUNGS, Rung, Section};
use crate::tables::{Step, Tables};
use std::sync::Arc;

/// Approximate number of values copied to the GPU at once: 4 MiB. Each thread has two buffers;
/// pinning larger ones would take more time than it saves.
const STAGED_VALUES: usize = 1 << 19;
/// Largest number of rows in GPU memory that are processed at once.
const MOST_ROWS: u64 = 1 << 24;

/// Rows on their way to the GPU, in pinned memory.
#[derive(Debug)]
struct Staged {
    rows: usize,
    weighted: bool,
    values: Pinned<f64>,
    codes: Pinned<u32>,
    weights: Pinned<u32>,
    complete: Pinned<u32>,
    /// Completes when the rows have been copied.
    copied: Event,
}

/// The rows in the memory of the GPU.
#[derive(Debug)]
struct Landed {
    values: Memory,
    codes: Memory,
    weights: Memory,
    complete: Memory,
}

/// Scratch memory per row.
#[derive(Debug)]
struct Scratch {
    rows: u64,
    keys: Memory,
    order: Memory,
    shorten: Memory,
    bins: Memory,
}

/// Treatment of invalid rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Invalid {
    /// Stop at the first one.
    Refuse,
    /// Skip them and count them.
    Skip,
}

/// Numbers of rows added and skipped.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Weight of the rows added.
    pub weight: u64,
    /// Number of rows skipped.
    pub skipped: u64,
    /// Number of rows skipped because this column is invalid, or missing in a row with too few
    /// values.
    pub by_column: Vec<u64>,
    /// The first row with an invalid number, if such rows are refused. The sums are then unusable.
    pub refused: Option<u64>,
}

/// Rows of one thread and their sums.
#[derive(Debug)]
pub struct Pass {
    tables: Arc<Tables>,
    stream: Stream,
    /// 128-bit integers.
    sums: Memory,
    /// Non-zero if the GPU found an invalid row among rows that were validated on the CPU, which is
    /// an error.
    stop: Memory,
    scratch: Option<Scratch>,
    /// Two buffers: one is filled while the other is copied.
    staged: Vec<Staged>,
    landed: Option<Landed>,
    filling: usize,
    /// Whether there are sums to read.
    added: bool,
}

impl Pass {
    /// A pass without rows.
    pub fn new(tables: Arc<Tables>) -> Result<Self> {
        let device = tables.device();
        let stream = Stream::new(device)?;
        let sums = Memory::new(device, tables.layout.len() * size_of::<i128>(), "sums")?;
        sums.fill(0, tables.layout.len() * size_of::<i128>(), 0, &stream)?;
        let stop = Memory::of(device, &[0u32], &stream, "a flag")?;
        Ok(Pass {
            stream,
            sums,
            stop,
            scratch: None,
            staged: Vec::new(),
            landed: None,
            filling: 0,
            added: false,
            tables,
        })
    }

    /// The description of the sums.
    pub fn tables(&self) -> &Arc<Tables> {
        &self.tables
    }

    /// Adds valid rows, in the table's units, clipped to the bounds if the plan is private.
    /// `weights` has one weight per row, or is empty.
    pub fn push(&mut self, values: &[f64], codes: &[u32], weights: &[u32]) -> Result<()> {
        let (d, c) = (self.tables.spec.dims, self.tables.spec.categories.len());
        let partial = self.tables.spec.least_present.is_some();
        let weighted = partial || !weights.is_empty();
        let levels = self.tables.spec.categories.iter().cycle();
        assert!(codes.iter().zip(levels).all(|(a, b)| a < b), "kernels find levels by their codes");
        self.make_staged()?;
        let (mut at, rows, most) = (0, values.len() / d, self.staged_rows());
        while at < rows {
            // A buffer holds either weighted or unweighted rows.
            let waiting = &self.staged[self.filling];
            if waiting.rows == most || (waiting.rows > 0 && waiting.weighted != weighted) {
                self.flush()?;
            }
            let staged = &mut self.staged[self.filling];
            if staged.rows == 0 {
                staged.copied.wait()?;
                staged.weighted = weighted;
            }
            let (from, end) = (staged.rows, rows.min(at + most - staged.rows));
            let to = from + end - at;
            let some = &values[at * d..end * d];
            staged.values.get()[from * d..to * d].copy_from_slice(some);
            staged.codes.get()[from * c..to * c].copy_from_slice(&codes[at * c..end * c]);
            if weighted {
                let places = staged.weights.get()[from..to]
                    .iter_mut()
                    .zip(staged.complete.get()[from..to].iter_mut());
                for (i, (weight, complete)) in places.enumerate() {
                    *weight = weights.get(at + i).copied().unwrap_or(1);
                    let row = &some[i * d..(i + 1) * d];
                    let is_complete = !partial || row.iter().all(|x| !x.is_nan());
                    *complete = if is_complete { *weight } else { 0 };
                }
            }
            staged.rows = to;
            at = end;
        }
        Ok(())
    }

    /// Number of rows copied at once.
    fn staged_rows(&self) -> usize {
        (STAGED_VALUES / self.tables.spec.dims).clamp(TILE as usize, STAGED_VALUES / 8)
    }

    fn make_staged(&mut self) -> Result<()> {
        if self.landed.is_some() {
            return Ok(());
        }
        let (device, spec) = (self.tables.device(), &self.tables.spec);
        let rows = self.staged_rows();
        let (values, codes) = (rows * spec.dims, rows * spec.categories.len());
        for _ in 0..2 {
            self.staged.push(Staged {
                rows: 0,
                weighted: false,
                values: Pinned::new(device, values)?,
                codes: Pinned::new(device, codes)?,
                weights: Pinned::new(device, rows)?,
                complete: Pinned::new(device, rows)?,
                copied: Event::new(device)?,
            });
        }
        self.landed = Some(Landed {
            values: Memory::new(device, values * 8, "a buffer for rows")?,
            codes: Memory::new(device, codes * 4, "a buffer for rows")?,
            weights: Memory::new(device, rows * 4, "a buffer for rows")?,
            complete: Memory::new(device, rows * 4, "a buffer for rows")?,
        });
        Ok(())
    }

    /// Starts to process the waiting rows and switches to the other buffer.
    fn flush(&mut self) -> Result<()> {
        let (d, c) = (self.tables.spec.dims, self.tables.spec.categories.len());
        let Some(staged) = self.staged.get_mut(self.filling).filter(|s| s.rows > 0) else {
            return Ok(());
        };
        let landed = self.landed.as_ref().expect("made together with the staged rows");
        let (rows, weighted) = (staged.rows, staged.weighted);
        let stream = &self.stream;
        landed.values.write(0, &staged.values.get()[..rows * d], stream)?;
        landed.codes.write(0, &staged.codes.get()[..rows * c], stream)?;
        if weighted {
            landed.weights.write(0, &staged.weights.get()[..rows], stream)?;
            landed.complete.write(0, &staged.complete.get()[..rows], stream)?;
        }
        staged.copied.record(stream)?;
        staged.rows = 0;
        self.filling = 1 - self.filling;
        let mut args = self.args(rows as u64)?;
        let landed = self.landed.as_ref().expect("made together with the staged rows");
        (args.values, args.codes) = (landed.values.address(), landed.codes.address());
        (args.weights, args.complete) = (landed.weights.address(), landed.complete.address());
        self.add(args, Element::F64, weighted)
    }

    /// Adds rows in the memory of this GPU and waits until they are added. `weights` holds the
    /// weight of each row in whole units, or is empty if every row counts once.
    pub fn add_on_device(
        &mut self,
        rows: &DeviceRows,
        weights: &[u32],
        invalid: Invalid,
    ) -> Result<Outcome> {
        let outcome = self.start_on_device(rows, weights, invalid);
        // If a later step fails, kernels of an earlier one may still read the rows.
        let done = self.stream.wait(WORKING);
        outcome.and_then(|outcome| done.map(|()| outcome))
    }

    fn start_on_device(
        &mut self,
        rows: &DeviceRows,
        weights: &[u32],
        invalid: Invalid,
    ) -> Result<Outcome> {
        let spec = &self.tables.spec;
        let d = spec.dims;
        if rows.columns != d || !spec.categories.is_empty() {
            return refuse(
                format!("of {d} columns, all of numbers"),
                format!("{} columns", rows.columns),
            );
        }
        if !weights.is_empty() && weights.len() as u64 != rows.rows {
            return refuse(format!("with {} weights", rows.rows), weights.len().to_string());
        }
        let mut outcome = Outcome { by_column: vec![0; d], ..Outcome::default() };
        if rows.rows == 0 {
            return Ok(outcome);
        }
        let device = self.tables.device().clone();
        if !rows.address.is_multiple_of(rows.element.bytes() as u64) {
            let expected =
                format!("at a multiple of the {} bytes of a value", rows.element.bytes());
            return refuse(expected, format!("address {:#x}", rows.address));
        }
        device.current()?;
        if crate::Device::of_address(rows.address)? != Some(device.ordinal()) {
            return refuse(format!("in the memory of GPU {}", device.ordinal()), "others".into());
        }
        if let Some(other) = rows.stream {
            self.stream.wait_for(other)?;
        }
        // Rows with a very large stride are processed one by one.
        let most = if rows.row_bytes().is_some() { MOST_ROWS } else { 1 };
        let chunks: Vec<DeviceRows> = (0..rows.rows.div_ceil(most))
            .map(|i| rows.part(i * most, most.min(rows.rows - i * most)))
            .collect();
        let stops = Memory::of(&device, &vec![0u32; chunks.len()], &self.stream, "flags")?;
        let mut weighed: Vec<usize> = (0..chunks.len()).collect();
        if spec.least_present.is_none() && weights.is_empty() {
            for (i, chunk) in chunks.iter().enumerate() {
                self.add_unweighted(chunk, stops.address() + 4 * i as u64, 1)?;
            }
            let mut stopped = vec![0u32; chunks.len()];
            stops.read(0, &mut stopped, &self.stream)?;
            weighed.retain(|i| stopped[*i] != 0);
            // If a row is invalid, the kernel that found it has added the sums of its rows, and all
            // later kernels have added nothing. Running that kernel again with the opposite sign
            // undoes this exactly.
            for i in &weighed {
                self.add_unweighted(&chunks[*i], stops.address() + 4 * *i as u64, -1)?;
            }
            let added = (0..chunks.len()).filter(|i| stopped[*i] == 0);
            outcome.weight = added.map(|i| chunks[i].rows).sum();
        }
        let largest = weighed.iter().map(|i| chunks[*i].rows).max().unwrap_or(0) as usize;
        let given = if weights.is_empty() { 0 } else { largest };
        let given = Memory::new(&device, given * 4, "weights")?;
        let of_rows = Memory::new(&device, largest * 4, "weights")?;
        let of_complete = Memory::new(&device, largest * 4, "weights")?;
        let found = Memory::new(&device, (2 + d) * 8, "the error")?;
        for i in weighed {
            let (chunk, from) = (&chunks[i], i * most as usize);
            let these = weights.get(from..from + chunk.rows as usize).unwrap_or(&[]);
            given.write(0, these, &self.stream)?;
            let mut nothing = vec![0u64; 2 + d];
            nothing[0] = u64::MAX;
            found.write(0, &nothing, &self.stream)?;
            let mut args = self.args_of(chunk)?;
            (args.given, args.found) = (given.address(), found.address());
            (args.weights, args.complete) = (of_rows.address(), of_complete.address());
            self.weigh(&args, chunk.element)?;
            let mut wrong = vec![0u64; 2 + d];
            found.read(0, &mut wrong, &self.stream)?;
            if invalid == Invalid::Refuse && wrong[0] != u64::MAX {
                outcome.refused = Some(from as u64 + wrong[0]);
                return Ok(outcome);
            }
            outcome.skipped += wrong[1];
            outcome.by_column.iter_mut().zip(&wrong[2..]).for_each(|(all, more)| *all += more);
            outcome.weight += match (these.is_empty(), wrong[1]) {
                (true, skipped) => chunk.rows - skipped,
                (false, 0) => these.iter().map(|w| u64::from(*w)).sum(),
                (false, _) => {
                    let mut left = vec![0u32; these.len()];
                    of_rows.read(0, &mut left, &self.stream)?;
                    left.iter().map(|w| u64::from(*w)).sum()
                }
            };
            self.add(args, chunk.element, true)?;
        }
        Ok(outcome)
    }

    /// Adds rows without weights, or subtracts them with sign −1. `stop` is the address of a flag
    /// that is set if a row is invalid.
    fn add_unweighted(&mut self, rows: &DeviceRows, stop: u64, sign: i32) -> Result<()> {
        let args = Args { stop, sign, ..self.args_of(rows)? };
        self.add(args, rows.element, false)
    }

    /// Reads a row of the GPU's memory, in the table's units.
    pub fn row(&self, rows: &DeviceRows, row: u64) -> Result<Vec<f64>> {
        let (bytes, address) = (rows.element.bytes(), rows.part(row, 1).address);
        let mut values = vec![0u8; rows.columns * bytes];
        // Contiguous values are read at once.
        let together = if rows.column_stride == 1 { values.len() } else { bytes };
        for (i, some) in values.chunks_mut(together).enumerate() {
            let offset = i as i64 * rows.column_stride * bytes as i64;
            // SAFETY: the creator of the rows guaranteed that all their values are in the memory of
            // a GPU.
            unsafe { self.stream.read_at(address.wrapping_add_signed(offset), some)? };
        }
        let numbers = values.chunks_exact(bytes).map(|value| match (rows.element, value) {
            (Element::Bf16, value) => f64::from(f32::from_le_bytes([0, 0, value[0], value[1]])),
            (Element::F16, value) => half(u16::from_le_bytes([value[0], value[1]])),
            (_, &[a, b, c, d]) => f64::from(f32::from_le_bytes([a, b, c, d])),
            (_, value) => f64::from_le_bytes(value.try_into().expect("eight bytes of a double")),
        });
        Ok(numbers.collect())
    }

    /// Waits for all rows, passes the values of each non-empty section to `add`, and resets the
    /// sums to zero.
    pub fn take(&mut self, mut add: impl FnMut(Section, &[i128])) -> Result<()> {
        self.flush()?;
        if !self.added {
            return Ok(());
        }
        let mut stopped = [0u32];
        self.stop.read(0, &mut stopped, &self.stream)?;
        if stopped != [0] {
            let name = self.tables.device().name().to_string();
            let code = "a row is valid on this machine and not there".into();
            return Err(DeviceError::Failed { name, what: "checking rows", code });
        }
        let mut sums = vec![0i128; self.tables.layout.len()];
        self.sums.read(0, &mut sums, &self.stream)?;
        self.sums.fill(0, size_of_val(&sums[..]), 0, &self.stream)?;
        self.added = false;
        self.tables.layout.sections().for_each(|(section, place)| add(section, &sums[place]));
        Ok(())
    }

    /// Arguments of kernels for this number of rows.
    fn args(&mut self, rows: u64) -> Result<Args> {
        self.make_scratch(rows)?;
        let (tables, spec, layout) = (&self.tables, &self.tables.spec, &self.tables.layout);
        let [keys, order, shorten, bins] = match &self.scratch {
            Some(s) => [&s.keys, &s.order, &s.shorten, &s.bins].map(Memory::address),
            None => [0; 4],
        };
        Ok(Args {
            values: 0,
            codes: 0,
            given: 0,
            weights: 0,
            complete: 0,
            centre: tables.centre.address(),
            units: tables.units.address(),
            frame: tables.frame.address(),
            points: 0,
            levels: 0,
            starts: tables.starts.address(),
            anchors: tables.anchors.address(),
            low: tables.low.address(),
            high: tables.high.address(),
            cover: tables.cover.address(),
            keys,
            seconds: 0,
            ranks: 0,
            bins,
            order,
            shorten,
            stop: self.stop.address(),
            found: 0,
            sums: self.sums.address(),
            features: layout.start(Section::Features),
            coverage: layout.start(Section::Coverage),
            cell_rows: layout.start(Section::CellRows),
            cell_sum: layout.start(Section::CellSum),
            cell_square: layout.start(Section::CellSquare),
            cell_absent: layout.start(Section::CellAbsent),
            cell_levels: layout.start(Section::CellLevels),
            whole: layout.start(Section::Complete),
            sum: layout.start(Section::Sum),
            outer: layout.start(Section::Outer),
            rows,
            column_stride: 1,
            dims: spec.dims as u32,
            count: spec.count() as u32,
            filled: 0,
            categories: spec.categories.len() as u32,
            all_levels: spec.all_levels() as u32,
            cover_rungs: spec.coverage.len() as u32,
            least_present: spec.least_present.unwrap_or(0),
            window: spec.window(),
            row_bytes: (spec.dims * Element::F64.bytes()) as i32,
            sign: 1,
            radius: spec.private.as_ref().map_or(0.0, |p| p.radius),
            factor: [0.0; MOST_RUNGS],
            limit: [0.0; MOST_RUNGS],
        })
    }

    /// Arguments of kernels for rows in the memory of the GPU.
    fn args_of(&mut self, rows: &DeviceRows) -> Result<Args> {
        let args = self.args(rows.rows)?;
        let (row_bytes, column_stride) = (rows.row_bytes().unwrap_or(0), rows.column_stride);
        Ok(Args { values: rows.address, row_bytes, column_stride, ..args })
    }

    fn make_scratch(&mut self, rows: u64) -> Result<()> {
        let spec = &self.tables.spec;
        let has = self.scratch.as_ref().map_or(0, |scratch| scratch.rows);
        if !spec.nearest() || rows <= has {
            return Ok(());
        }
        // Kernels on the stream may still read the old scratch memory.
        self.stream.wait(WORKING)?;
        self.scratch = None;
        let device = self.tables.device();
        let sorted = if spec.cells { rows as usize } else { 0 };
        let shortened = if spec.private.is_some() { sorted } else { 0 };
        let bins = if spec.cells { spec.bins(rows) } else { 0 };
        self.scratch = Some(Scratch {
            rows,
            keys: Memory::new(device, rows as usize * 8, "cells of rows")?,
            order: Memory::new(device, sorted * 4, "cells of rows")?,
            shorten: Memory::new(device, shortened * 8, "cells of rows")?,
            bins: Memory::new(device, bins * 4, "cells")?,
        });
        Ok(())
    }

    /// Sets the weights of rows according to their validity.
    fn weigh(&self, args: &Args, element: Element) -> Result<()> {
        let step = self.step(element, true)?;
        self.launch(
            &step,
            Kernel::Weigh,
            (blocks(args.rows, 1, step.program.slots(Kernel::Weigh)), 1),
            args,
        )
    }

    /// The first program of the pass.
    fn step(&self, element: Element, weighted: bool) -> Result<Step> {
        let first = self.tables.spec.variants(element, weighted).swap_remove(0);
        self.tables.step(first)
    }

    /// Adds rows to all sums.
    fn add(&mut self, mut args: Args, element: Element, weighted: bool) -> Result<()> {
        self.added = true;
        let tables = self.tables.clone();
        let spec = &tables.spec;
        for variant in spec.variants(element, weighted) {
            let step = tables.step(variant)?;
            if step.variant.nearest || !step.variant.rungs.is_empty() {
                self.features(&step, &mut args)?;
            }
            if step.variant.rungs.start == 0 {
                self.moments(&step, &args)?;
            }
        }
        Ok(())
    }

    /// Sums features, and finds the nearest landmark of each row.
    fn features(&self, step: &Step, args: &mut Args) -> Result<()> {
        let spec = &self.tables.spec;
        for (i, rung) in spec.rungs[step.variant.rungs.clone()].iter().enumerate() {
            (args.factor[i], args.limit[i]) = match *rung {
                Rung::Exp { factor, limit } => (factor, limit),
                Rung::Turns { factor } => (factor, 0.0),
                Rung::Square { .. } => (0.0, 0.0),
            };
        }
        (args.points, args.levels) = (step.packed.points.address(), step.packed.levels.address());
        args.filled = step.filled;
        let m = u64::from(args.count);
        let kinds = if spec.metric == crate::Metric::Phase { 2 } else { 1 };
        let features = self.tables.layout.start(Section::Features);
        let here =
            Args { features: features + step.variant.rungs.start as u64 * kinds * m, ..*args };
        if step.variant.nearest && step.panels > 1 {
            let scratch = self.scratch.as_ref().expect("`args` has made it");
            scratch.keys.fill(0, args.rows as usize * 8, u8::MAX, &self.stream)?;
        }
        self.launch(step, Kernel::Pass, step.grid(args.rows), &here)
    }

    /// Sums coverage, cells and moments.
    fn moments(&self, step: &Step, args: &Args) -> Result<()> {
        let (spec, rows, program) = (&self.tables.spec, args.rows, &step.program);
        if !spec.coverage.is_empty() || spec.least_present.is_some() {
            let min_blocks = rows.div_ceil(COVERED * u64::from(THREADS)) as u32;
            let blocks = blocks(rows, 8, program.slots(Kernel::Coverage)).max(min_blocks);
            self.launch(step, Kernel::Coverage, (blocks, 1), args)?;
        }
        if spec.cells {
            let scratch = self.scratch.as_ref().expect("`args` has made it");
            scratch.bins.fill(0, spec.bins(rows) * 4, 0, &self.stream)?;
            let spans = rows.div_ceil(SPAN).min(u64::from(program.slots(Kernel::Count))) as u32;
            self.launch(step, Kernel::Count, (spans, 1), args)?;
            self.launch(step, Kernel::Scan, (1, 1), args)?;
            self.launch(step, Kernel::Scatter, (spans, 1), args)?;
            let lanes = THREADS / args.dims.min(THREADS);
            let blocks = rows.div_ceil(PER_LANE * u64::from(lanes)) as u32;
            self.launch(step, Kernel::Cells, (blocks, 1), args)?;
        }
        if spec.moments {
            let (kernel, edge) = if step.variant.weighted {
                (Kernel::Gram, WEIGHTED_EDGE)
            } else {
                (Kernel::Digits, spec.edge())
            };
            let edges = (spec.dims + 1).div_ceil(edge) as u32;
            let tiles = edges * (edges + 1) / 2;
            let slots = program.slots(kernel);
            let max_blocks = rows.div_ceil(u64::from(MULTIPLIED)).min(u64::from(slots)) as u32;
            let blocks = (slots / tiles).clamp(1, max_blocks);
            self.launch(step, kernel, (tiles, blocks), args)?;
        }
        Ok(())
    }

    fn launch(&self, step: &Step, kernel: Kernel, grid: (u32, u32), args: &Args) -> Result<()> {
        // SAFETY: `Args` is what kernels expect. Its addresses refer to memory that lives until the
        // stream is waited for and has room for the given numbers of rows, columns and points. For
        // rows of others, their creator guarantees this.
        unsafe { self.tables.device.launch(&step.program, kernel, grid, args, self.stream.handle) }
    }
}

fn refuse<T>(expected: String, got: String) -> Result<T> {
    Err(DeviceError::Rows { expected, got })
}

/// Number of blocks for `items` items, with at least `each` items per thread, and at most as many
/// blocks as the GPU runs at a time.
fn blocks(items: u64, each: u64, slots: u32) -> u32 {
    items.div_ceil(each * u64::from(THREADS)).clamp(1, u64::from(slots)) as u32
}

/// Converts a half-precision number.
fn half(bits: u16) -> f64 {
    let (exponent, fraction) = (i32::from(bits >> 10 & 31), f64::from(bits & 1023));
    let size = match exponent {
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        0 => fraction * 2.0f64.powi(-24),
        _ => (1024.0 + fraction) * 2.0f64.powi(exponent - 25),
    };
    if bits >> 15 == 1 { -size } else { size }
}

impl Drop for Pass {
    fn drop(&mut self) {
        // Kernels may still use the memory that is released now.
        let _ = self.stream.wait(WORKING);
    }
}
