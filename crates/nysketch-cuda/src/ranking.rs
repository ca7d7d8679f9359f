//! Ranking on a GPU: finds the two nearest points of each row.
//!
//! With `s = Σ (z − p)²`, each step rounded as in the pass, the ranks of a row are its smallest s,
//! the first point that has it, and the smallest s of all other points.

use crate::args::Args;
use crate::device::{Device, Kernel};
use crate::error::Result;
use crate::grid::{THREADS, TILE};
use crate::memory::{Memory, Pinned, Stream, WORKING};
use crate::rows::Element;
use crate::spec::{Metric, Spec, Variant};
use crate::tables::{Step, Tables};
use std::sync::{Arc, Mutex};

/// Approximate number of values of rows copied to the GPU at once: 8 MiB.
const STAGED_VALUES: usize = 1 << 21;
/// Approximate number of pairs of a row and a panel of points stored at once: 12 MiB.
const KEPT_PAIRS: usize = 1 << 20;

/// The two nearest points of a row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ranked {
    /// Index of the nearest point; the first one in case of ties.
    pub index: u32,
    /// Squared distance of the nearest point.
    pub distance: f32,
    /// Smallest squared distance of the other points, infinite if there are none.
    pub second: f32,
}

/// Points in the memory of a GPU with which any number of threads compare rows.
#[derive(Debug)]
pub struct Ranking {
    device: Arc<Device>,
    dims: usize,
    count: usize,
    step: Step,
    /// A stop flag that is always zero, because every row counts.
    never: Memory,
    /// Lanes that no thread is using.
    lanes: Mutex<Vec<Lane>>,
}

/// Rows on their way through the GPU, with their memory.
#[derive(Debug)]
struct Lane {
    stream: Stream,
    rows: usize,
    staged: Pinned<f32>,
    values: Memory,
    /// `[panel][row]`.
    keys: Memory,
    seconds: Memory,
    /// Three words per row.
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

    /// Number of rows copied at once, while the GPU processes the previous ones.
    pub fn rows(&self) -> usize {
        let most = (STAGED_VALUES / self.dims).min(KEPT_PAIRS / self.step.panels as usize);
        most.max(TILE as usize)
    }

    /// Compares whole rows with all points and passes the results to `found`, in order. The result
    /// of a row with a NaN coordinate is meaningless.
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

    /// An idle lane, or a new one.
    fn lane(&self) -> Result<Lane> {
        let used = self.lanes.lock().unwrap_or_else(|e| e.into_inner()).pop();
        used.map_or_else(|| Lane::new(self), Ok)
    }

    /// Starts to process some rows.
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
        // SAFETY: `Args` is what kernels expect. These two kernels use only the addresses above, of
        // memory with room for this number of rows, panels and points, which lives until the lane's
        // stream is waited for.
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

    /// Waits for the rows and passes on their results.
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
        // The GPU may still use the memory that is released now.
        let _ = self.stream.wait(WORKING);
    }
}

/// A spec with points and no sums. Rows are given as coordinates, so the frame is the identity.
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
