//! The cells of rows: the landmark nearest to each row, found as a pass over rows finds it.

use nysketch_core::kernel::row::{Rows, take_holes};
use nysketch_core::kernel::search::{PanelsOnce, Search};
use nysketch_core::kernel::tile::Nearest;
use nysketch_core::numeric::points::Points;
use nysketch_core::numeric::simd::Instructions;
use nysketch_core::plan::Plan;

/// Returns the landmark nearest to each row, in the plan's coordinates, as the pass finds it.
pub(super) fn nearest_landmarks(landmarks: &Points, rows: &[f32]) -> Vec<usize> {
    let instructions = Instructions::best();
    let panels = PanelsOnce::default().of(landmarks, instructions);
    let search = Search::new(landmarks, None, panels, instructions);
    nearest(search, landmarks.dims(), 0, Rows { z: rows, ..Rows::default() })
}

/// Returns the cell of each row, given the levels of its categories. Rows may have missing values.
pub(super) fn nearest_cells(plan: &Plan, rows: &[f32], codes: &[u32]) -> Vec<usize> {
    let search = plan.search(Instructions::best());
    let (d, c) = (plan.dims(), plan.categories().len());
    if rows.iter().all(|x| !x.is_nan()) {
        return nearest(search, d, c, Rows { z: rows, codes, present: &[] });
    }
    let (mut z, mut present) = (rows.to_vec(), Vec::new());
    take_holes(&mut z, &mut present);
    nearest(search, d, c, Rows { z: &z, codes, present: &present })
}

fn nearest(mut search: Search, d: usize, c: usize, rows: Rows<'_>) -> Vec<usize> {
    let (mut nearest, mut found) = (Nearest::default(), Vec::new());
    let n = rows.z.len() / d;
    for start in (0..n).step_by(search.rows()) {
        let end = n.min(start + search.rows());
        search.block(rows.part(start..end, d, c), &mut nearest);
        found.extend(nearest.index.iter().map(|landmark| *landmark as usize));
    }
    found
}
