//! The pass, one pair at a time: the definition that the vectorised pass must match bit for bit, as
//! described in FORMAT.md.

use super::exp2::exp2_product;
use super::ladder::{FLOOR, Ladder, Step};
use super::levels::LevelTables;
use super::row::Rows;
use super::table::Kernel;
use crate::numeric::points::Points;

/// The kernel value of each bandwidth, in units of 2⁻²³.
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

/// `round(κ · 2²³)`, ties to even, for κ in [0, 1]. Adding 1 leaves exactly 23 bits of fraction.
#[inline(always)]
pub fn units(kappa: f32) -> u32 {
    (kappa + 1.0).to_bits().wrapping_sub(ONE_BITS)
}

/// The bits of 1.0.
pub const ONE_BITS: u32 = 0x3f80_0000;

/// The distance of a row from a landmark: the sum over the values that are present, in the order of
/// the columns, plus the contributions of the levels.
pub fn distance(
    kernel: Kernel,
    row: Rows<'_>,
    landmarks: &Points,
    tables: Option<&LevelTables>,
    j: usize,
) -> f32 {
    let landmark = landmarks.row(j);
    let numbers = match row.present {
        [] => kernel.distance(row.z, landmark),
        present => kernel.distance(&only_present(row.z, present), &only_present(landmark, present)),
    };
    tables.map_or(numbers, |tables| tables.add(numbers, row.codes, j))
}

/// The values that a row has, by its flags.
fn only_present(values: &[f32], present: &[f32]) -> Vec<f32> {
    let all = values.iter().zip(present);
    all.filter(|(_, flag)| flag.to_bits() != 0).map(|(x, _)| *x).collect()
}

/// Index and distance of the nearest landmark; the first one in case of ties.
pub fn nearest(
    kernel: Kernel,
    row: Rows<'_>,
    landmarks: &Points,
    tables: Option<&LevelTables>,
) -> (u32, f32) {
    let mut best = (0, f32::INFINITY);
    for j in 0..landmarks.len() {
        let distance = distance(kernel, row, landmarks, tables, j);
        if distance < best.1 {
            best = (j as u32, distance);
        }
    }
    best
}
