//! The pass written one pair at a time: the definition that the vectorised pass must match bit for
//! bit, and what FORMAT.md describes.

use super::exp2::exp2_product;
use super::ladder::{FLOOR, Ladder, Step};
use super::table::Kernel;
use crate::points::Points;

/// The kernel value of each rung, in units of 2⁻²³.
pub fn kernel_units(distance: f32, ladder: &Ladder) -> Vec<u32> {
    let mut kappa = 0.0f32;
    ladder
        .steps()
        .iter()
        .map(|step| {
            match *step {
                Step::Exp { factor, limit } => kappa = exp2_product(distance.min(limit), factor),
                Step::Square { times } => {
                    for _ in 0..times {
                        kappa *= kappa;
                    }
                    kappa = kappa.max(FLOOR);
                }
            }
            units(kappa)
        })
        .collect()
}

/// `round(κ · 2²³)`, ties to even, for κ in [0, 1]: adding 1 leaves exactly 23 bits of fraction.
#[inline(always)]
pub fn units(kappa: f32) -> u32 {
    (kappa + 1.0).to_bits().wrapping_sub(ONE_BITS)
}

/// The bits of 1.0.
pub const ONE_BITS: u32 = 0x3f80_0000;

/// Index and distance of the nearest landmark; the first one where several are as near.
pub fn nearest(kernel: Kernel, x: &[f32], landmarks: &Points) -> (u32, f32) {
    let mut best = (0, f32::INFINITY);
    for (j, z) in landmarks.rows().enumerate() {
        let distance = kernel.distance(x, z);
        if distance < best.1 {
            best = (j as u32, distance);
        }
    }
    best
}
