//! The oracle: a direct implementation of FORMAT.md, one row and one landmark at a time, in 128-bit
//! integers.

use super::{Engine, check_weights, has_enough};
use crate::error::Result;
use crate::kernel::fourier;
use crate::kernel::levels::LevelTables;
use crate::kernel::row::{ABSENT, PRESENT, Rows};
use crate::kernel::scalar::{distance, kernel_units, nearest};
use crate::numeric::fixed::COORDINATE_LIMIT;
use crate::plan::{Features, Plan};
use crate::sums::{Sum, Sums};
use std::sync::Arc;

/// Adds rows one by one.
#[derive(Debug)]
pub struct Scalar {
    plan: Arc<Plan>,
    tables: Option<LevelTables>,
    /// The points around which the sums of cells are clipped in a private plan.
    anchors: Vec<f64>,
}

/// A row in the plan's coordinates.
struct Row<'a> {
    z: Vec<f32>,
    q: Vec<i128>,
    codes: &'a [u32],
    /// Whether each value is present.
    present: Vec<bool>,
}

impl Scalar {
    /// An engine without rows.
    pub fn new(plan: Arc<Plan>) -> Self {
        Scalar { tables: plan.level_tables(), anchors: plan.anchors(), plan }
    }

    /// Converts a row to the plan's coordinates; `None` if it is invalid. A missing value becomes
    /// zero, which adds nothing to sums.
    fn frame<'a>(&self, row: &[f64], codes: &'a [u32]) -> Option<Row<'a>> {
        let frame = &self.plan.frame;
        let bounded: Vec<f64> = match &self.plan.private {
            Some(private) => row.iter().enumerate().map(|(j, x)| private.bounded(j, *x)).collect(),
            None => row.to_vec(),
        };
        let row = &bounded[..];
        let present: Vec<bool> =
            row.iter().map(|x| !(self.plan.is_partial() && x.is_nan())).collect();
        let y = frame.coordinates(row);
        let q = y.iter().zip(&frame.exponent).map(|(y, e)| (y * 2.0f64.powi(-e)).round_ties_even());
        let q: Vec<f64> = q.collect();
        let valid = q.iter().zip(&present).all(|(q, p)| !p || q.abs() <= COORDINATE_LIMIT as f64);
        (valid && has_enough(&self.plan, row, codes)).then(|| Row {
            z: y.iter().zip(&present).map(|(y, p)| if *p { *y as f32 } else { 0.0 }).collect(),
            q: q.iter().zip(&present).map(|(q, p)| if *p { *q as i128 } else { 0 }).collect(),
            codes,
            present,
        })
    }

    /// The quantised coordinates of a row as added to the sums of a cell: clipped if the plan is
    /// private.
    fn in_cell(&self, cell: usize, q: &[i128]) -> Vec<i128> {
        let Some(private) = &self.plan.private else { return q.to_vec() };
        let d = q.len();
        let mut clipped: Vec<f64> = q.iter().map(|q| *q as f64).collect();
        private.within_radius(&self.anchors[cell * d..(cell + 1) * d], &mut clipped);
        clipped.iter().map(|q| *q as i128).collect()
    }

    fn add_row(&self, row: &Row<'_>, weight: i128, sums: &mut Sums) {
        let Row { z, q, codes, present } = row;
        let complete = present.iter().all(|p| *p);
        let flags: Vec<f32> = present.iter().map(|p| if *p { PRESENT } else { ABSENT }).collect();
        let rows = Rows { z, codes, present: if complete { &[] } else { &flags } };
        let tables = self.tables.as_ref();
        let plan = &*self.plan;
        let (d, m) = (plan.dims(), plan.features.points().len());
        match &plan.features {
            Features::Fourier(frequencies, _) if plan.collect.kernel && complete => {
                for (rung, sigma2) in plan.bandwidths.iter().enumerate() {
                    for (j, frequency) in frequencies.rows().enumerate() {
                        let phase = fourier::phase(frequency, z);
                        let (cos, sin) = fourier::units(phase, fourier::quarter_turns(*sigma2));
                        let at = rung * 2 * m + j;
                        sums[Sum::Features][at] += i128::from(cos) * weight;
                        sums[Sum::Features][at + m] += i128::from(sin) * weight;
                    }
                }
            }
            Features::Nystrom(landmarks, _) if plan.needs_nearest() => {
                let (cell, min_distance) = nearest(plan.kernel, rows, landmarks, tables);
                if plan.collect.kernel && complete {
                    let ladder = plan.kernel.ladder(&plan.bandwidths);
                    for j in 0..m {
                        let distance = distance(plan.kernel, rows, landmarks, tables, j);
                        for (rung, units) in kernel_units(distance, &ladder).iter().enumerate() {
                            sums[Sum::Features][rung * m + j] += i128::from(*units) * weight;
                        }
                    }
                    for (rung, sigma2) in plan.bandwidths.iter().enumerate() {
                        let squared = plan.kernel.ladder(&[plan.kernel.squared(*sigma2)]);
                        let units = kernel_units(min_distance, &squared)[0];
                        sums[Sum::Coverage][rung] += i128::from(units) * weight;
                    }
                }
                if plan.collect.cells {
                    let cell = cell as usize;
                    sums[Sum::CellRows][cell] += weight;
                    for (k, q) in self.in_cell(cell, q).iter().enumerate() {
                        sums[Sum::CellSum][cell * d + k] += q * weight;
                        sums[Sum::CellSquare][cell * d + k] += q * q * weight;
                    }
                    for k in (0..d).filter(|k| !present[*k]) {
                        sums[Sum::CellAbsent][cell * d + k] += weight;
                    }
                    for (start, code) in plan.recipe.level_offsets().iter().zip(*codes) {
                        let level = start + *code as usize;
                        sums[Sum::CellLevels][cell * plan.recipe.levels() + level] += weight;
                    }
                }
            }
            _ => {}
        }
        if complete && plan.is_partial() {
            sums[Sum::Complete][0] += weight;
        }
        if plan.collect.moments && complete {
            let mut at = 0;
            for i in 0..d {
                sums[Sum::Sum][i] += q[i] * weight;
                for j in 0..=i {
                    sums[Sum::Outer][at] += q[i] * q[j] * weight;
                    at += 1;
                }
            }
        }
    }
}

impl Engine for Scalar {
    fn add(
        &mut self,
        values: &[f64],
        codes: &[u32],
        weights: &[u32],
        sums: &mut Sums,
    ) -> Result<usize> {
        let (d, categories) = (self.plan.dims(), self.plan.categories().len());
        check_weights(values.len() / d, weights)?;
        for (i, row) in values.chunks_exact(d).enumerate() {
            let codes = &codes[i * categories..(i + 1) * categories];
            let Some(row) = self.frame(row, codes) else { return Ok(i) };
            self.add_row(&row, weights.get(i).map_or(1, |w| i128::from(*w)), sums);
        }
        Ok(values.len() / d)
    }

    fn finish(&mut self, _sums: &mut Sums) -> Result<()> {
        Ok(())
    }
}
