//! Rows in, the two nearest points of each out.
//!
//! With `s = Σ (z − p)²`, each step rounded as in the pass, a row's ranks are its least s, the first point that has it, and
//! the least s of all other points.

use crate::args::Args;
use crate::device::{Device, Kernel};
use crate::error::Result;
use crate::grid::{THREADS, TILE};
use crate::memory::{Memory, Pinned, Stream, WORKING};
use crate::rows::Element;
use crate::spec::{Metric, Spec, Variant};
use crate::tables::{Step, Tables};
use std::sync::{Arc, Mutex};

/// Values of rows that are copied to the GPU at once, about: 8 MiB.
const STAGED_VALUES: usize = 1 << 21;
/// Pairs of a row and a panel of points that are kept at once, about: 12 MiB.
const KEPT_PAIRS: usize = 1 << 20;

/// What is found of a row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ranked {
    /// The nearest point, the first of several.
    pub index: u32,
    /// Its squared distance.
    pub distance: f32,
    /// The least squared distance of the other points, infinite where there are none.
    pub second: f32,
}

/// Points in the memory of a GPU that rows are compared with, by any number of threads.
#[derive(Debug)]
pub struct Ranking {
    device: Arc<Device>,
    dims: usize,
    count: usize,
    step: Step,
    /// Zero: every row counts.
    never: Memory,
    /// Those that no thread uses now.
    lanes: Mutex<Vec<Lane>>,
}

/// Rows on their way through the GPU, and where they are on it.
#[derive(Debug)]
struct Lane {
    stream: Stream,
    rows: usize,
    staged: Pinned<f32>,
    values: Memory,
    /// `[panel][row]`.
    keys: Memory,
    seconds: Memory,
    /// Three for each row.
    ranks: Memory,
    found: Pinned<u32>,
}

impl Ranking {
    /// Copies points, row-major, to a GPU.
    pub fn new(device: Arc<Device>, points: &[f32], dims: usize) -> Result<Self> {
        let tables = Tables::new(device.clone(), spec(points, dims))?;
        let step = tables.step(Variant {
            rungs: 0..0,
            nearest: true,
            second: true,
            weighted: false,
            element: Element::F32,
        })?;
        let never = Memory::of(&device, &[0u32], &Stream::new(&device)?, "a flag")?;
        let (count, lanes) = (tables.spec.count(), Mutex::default());
        Ok(Ranking { device, dims, count, step, never, lanes })
    }

    /// The GPU.
    pub fn device(&self) -> &Arc<Device> {
        &self.device
    }

    /// Rows that are copied at once; while they are, the GPU works on those before.
    pub fn rows(&self) -> usize {
        let most = (STAGED_VALUES / self.dims).min(KEPT_PAIRS / self.step.panels as usize);
        most.max(TILE as usize)
    }

    /// Compares whole rows with all points and hands over what is found, row after row. Of a row with a coordinate that is
    /// NaN it means nothing.
    pub fn nearest(&self, z: &[f32], mut found: impl FnMut(Ranked)) -> Result<()> {
        let (mut busy, mut idle): (Option<Lane>, Option<Lane>) = (None, None);
        for rows in z.chunks(self.rows() * self.dims) {
            let mut lane = idle.take().map_or_else(|| self.lane(), Ok)?;
            self.start(&mut lane, rows)?;
            if let Some(mut before) = busy.replace(lane) {
                before.finish(&mut found)?;
                idle = Some(before);
            }
        }
        if let Some(last) = &mut busy {
            last.finish(&mut found)?;
        }
        let mut lanes = self.lanes.lock().unwrap_or_else(|e| e.into_inner());
        lanes.extend(busy.into_iter().chain(idle));
        Ok(())
    }

    /// A lane that was used before, or a new one.
    fn lane(&self) -> Result<Lane> {
        let used = self.lanes.lock().unwrap_or_else(|e| e.into_inner()).pop();
        used.map_or_else(|| Lane::new(self), Ok)
    }

    /// Starts the work on some rows.
    fn start(&self, lane: &mut Lane, z: &[f32]) -> Result<()> {
        lane.rows = z.len() / self.dims;
        let staged = &mut lane.staged.get()[..z.len()];
        staged.copy_from_slice(z);
        lane.values.write(0, staged, &lane.stream)?;
        let args = self.args(lane);
        let blocks = args.rows.div_ceil(u64::from(THREADS)) as u32;
        self.launch(Kernel::Pass, self.step.grid(args.rows), &args, lane)?;
        self.launch(Kernel::Rank, (blocks, 1), &args, lane)
    }

    fn args(&self, lane: &Lane) -> Args {
        Args {
            values: lane.values.address(),
            points: self.step.packed.points.address(),
            keys: lane.keys.address(),
            seconds: lane.seconds.address(),
            ranks: lane.ranks.address(),
            stop: self.never.address(),
            rows: lane.rows as u64,
            row_bytes: (self.dims * Element::F32.bytes()) as i32,
            column_stride: 1,
            dims: self.dims as u32,
            count: self.count as u32,
            filled: self.step.filled,
            ..Args::default()
        }
    }

    fn launch(&self, kernel: Kernel, grid: (u32, u32), args: &Args, lane: &Lane) -> Result<()> {
        // SAFETY: `Args` is what kernels take. Of its addresses these two kernels use those above, which are of memory for so
        // many rows, panels and points, and live until the lane's stream is waited for.
        unsafe { self.device.launch(&self.step.program, kernel, grid, args, lane.stream.handle) }
    }
}

impl Lane {
    fn new(ranking: &Ranking) -> Result<Self> {
        let (device, rows) = (&ranking.device, ranking.rows());
        let (values, pairs) = (rows * ranking.dims, rows * ranking.step.panels as usize);
        Ok(Lane {
            stream: Stream::new(device)?,
            rows: 0,
            staged: Pinned::new(device, values)?,
            values: Memory::new(device, values * 4, "a buffer for rows")?,
            keys: Memory::new(device, pairs * 8, "nearest points")?,
            seconds: Memory::new(device, pairs * 4, "nearest points")?,
            ranks: Memory::new(device, rows * 12, "nearest points")?,
            found: Pinned::new(device, rows * 3)?,
        })
    }

    /// Waits for the rows and hands over what was found.
    fn finish(&mut self, say: &mut impl FnMut(Ranked)) -> Result<()> {
        let n = self.rows;
        let found = &mut self.found.get()[..3 * n];
        self.ranks.read(0, found, &self.stream)?;
        let (distances, others) = found.split_at(n);
        let (indices, seconds) = others.split_at(n);
        for ((distance, index), second) in distances.iter().zip(indices).zip(seconds) {
            let [distance, second] = [*distance, *second].map(f32::from_bits);
            say(Ranked { index: *index, distance, second });
        }
        Ok(())
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        // The GPU may still read and write what is given back now.
        let _ = self.stream.wait(WORKING);
    }
}

/// Points and nothing to sum. Rows come as coordinates, which are not framed.
fn spec(points: &[f32], dims: usize) -> Spec {
    Spec {
        dims,
        points: points.to_vec(),
        metric: Metric::Squared,
        rungs: Vec::new(),
        coverage: Vec::new(),
        cells: false,
        moments: false,
        least_present: None,
        centre: vec![0.0; dims],
        inverse: vec![1.0; dims],
        per_unit: vec![1.0; dims],
        categories: Vec::new(),
        levels: Vec::new(),
        private: None,
    }
}
