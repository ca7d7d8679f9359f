//! Rows far from some landmarks: the second reading of D² sampling.

use crate::error::Result;
use crate::kernel::Kernel;
use crate::kernel::pack::MAX_BLOCK;
use crate::kernel::tile::{Nearest, Tiles};
use crate::plan::Plan;
use crate::rows::{Block, Progress, RowSource, pass};
use crate::sample::{Reservoir, mix};
use crate::simd::Instructions;

/// `count` rows drawn in proportion to weight · D², where D is the distance to the nearest landmark of
/// `plan`, each with its weight.
pub fn distant_rows(
    plan: &Plan,
    count: usize,
    source: &dyn RowSource,
    threads: usize,
    progress: &dyn Progress,
) -> Result<Reservoir> {
    // Each row is followed by its weight.
    let reservoir = Reservoir::new(count, plan.dims() + 1, mix(plan.seed ^ 0xd2));
    let init = || Scratch {
        tiles: Tiles::new(plan.features.points(), Kernel::Gaussian, None, Instructions::best()),
        nearest: Nearest::default(),
        z: Vec::new(),
    };
    pass(source, threads, progress, init, |scratch, block| {
        offer(plan, scratch, block, &reservoir);
        Ok(())
    })?;
    Ok(reservoir)
}

/// Scratch memory of one thread.
struct Scratch {
    tiles: Tiles,
    nearest: Nearest,
    z: Vec<f32>,
}

fn offer(plan: &Plan, scratch: &mut Scratch, block: &Block, reservoir: &Reservoir) {
    let d = plan.dims();
    for (chunk, rows) in block.values.chunks(MAX_BLOCK * d).enumerate() {
        scratch.z.clear();
        for row in rows.chunks_exact(d) {
            plan.frame.narrow(row, &mut scratch.z);
        }
        scratch.tiles.block(&scratch.z, Some(&mut scratch.nearest), |_, _, _| {});
        for (i, row) in rows.chunks_exact(d).enumerate() {
            let at = chunk * MAX_BLOCK + i;
            let weight = match plan.weighting {
                Some(_) => block.weights.get(at).copied().unwrap_or(f64::NAN),
                None => 1.0,
            };
            let steer = weight * f64::from(scratch.nearest.distance[i]);
            // The survey has refused or counted invalid rows; here they are passed over.
            if steer > 0.0 && steer.is_finite() && row.iter().all(|x| x.is_finite()) {
                reservoir.offer(block.position + at as u64, steer, row, weight);
            }
        }
    }
}
