//! The two nearest points of every row, found by GPUs.
//!
//! A GPU gives the same bits as the [tiles](crate::kernel::tile), and is tested against them before
//! it is used. If a GPU fails later, the CPU can therefore take over without changing the result.

use crate::error::{Error, Result};
use crate::kernel::Kernel;
use crate::kernel::tile::{Nearest, Tiles};
use crate::numeric::points::Points;
use crate::numeric::simd::Instructions;
use crate::plan::devices::on_each;
use crate::rows::sample::mix;
use nysketch_cuda::{Device, DeviceError, Ranking};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Approximate number of operations and of rows in the test of a GPU.
const TRIED: usize = 1 << 24;
const TRIED_ROWS: usize = 300;
/// Number of batches submitted together, so that copying one overlaps with processing another.
const BATCHES: usize = 4;

/// GPUs that hold a set of points.
#[derive(Debug)]
pub struct Gpus {
    rankings: Vec<Ranking>,
    /// Number of row blocks so far. GPUs take turns.
    turn: AtomicUsize,
    /// The error of the first GPU that failed.
    failed: OnceLock<DeviceError>,
}

impl Gpus {
    /// Copies points to the GPU with this number, or to all GPUs, and tests it.
    pub fn new(points: &Points, ordinal: Option<usize>) -> Result<Self> {
        let rankings = on_each(ordinal, |ordinal| {
            let ranking = Ranking::new(Device::open(ordinal)?, points.data(), points.dims())?;
            if ranks_as_defined(points, &ranking)? {
                Ok(ranking)
            } else {
                Err(Error::WrongDevice { name: ranking.device().name().to_string() })
            }
        })?;
        Ok(Gpus { rankings, turn: AtomicUsize::new(0), failed: OnceLock::new() })
    }

    /// Best number of rows to submit together.
    pub fn rows(&self) -> usize {
        BATCHES * self.rankings[0].rows()
    }

    /// Finds the two nearest points of every row. Once a GPU has failed, no GPU is used any more.
    pub fn nearest(&self, z: &[f32], nearest: &mut Nearest) -> Result<()> {
        if let Some(error) = self.failed.get() {
            return Err(error.clone().into());
        }
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        rank(&self.rankings[turn % self.rankings.len()], z, nearest).map_err(|error| {
            // Another GPU may have failed in the meantime.
            self.failed.get_or_init(|| error.clone());
            error.into()
        })
    }

    /// A note for the user, once a GPU has failed.
    pub fn remark(&self) -> Option<String> {
        let failed = self.failed.get();
        failed
            .map(|error| format!("{error}; the processors of this machine have finished the work"))
    }
}

fn rank(ranking: &Ranking, z: &[f32], nearest: &mut Nearest) -> nysketch_cuda::Result<()> {
    nearest.clear();
    ranking.nearest(z, |row| {
        nearest.index.push(row.index);
        nearest.distance.push(row.distance);
        nearest.second.push(row.second);
    })
}

/// Whether a GPU gives the bits of the tiles, for rows near points, between them, and beyond them.
fn ranks_as_defined(points: &Points, ranking: &Ranking) -> Result<bool> {
    let (d, m) = (points.dims(), points.len());
    let rows = (TRIED / (d * m)).clamp(2, TRIED_ROWS);
    let mut z = Vec::with_capacity(rows * d);
    for i in 0..rows as u64 {
        let [from, to, share] = [0, 1, 2].map(|salt| mix(3 * i + salt) as usize);
        let (from, to) = (points.row(from % m), points.row(to % m));
        let share = (share % (1 << 10)) as f32 / 512.0 - 0.5;
        z.extend(from.iter().zip(to).map(|(a, b)| a + share * (b - a)));
    }
    let (mut expected, mut got) = (Nearest::default(), Nearest::default());
    Tiles::new(points, Kernel::Gaussian, None, Instructions::best())
        .nearest_two(&z[..], &mut expected);
    rank(ranking, &z, &mut got)?;
    Ok(got == expected)
}
