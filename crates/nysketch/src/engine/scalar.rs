//! The oracle: FORMAT.md as plain code, one row and one landmark at a time, in 128-bit integers.

use super::{Engine, check_weights};
use crate::error::Result;
use crate::feature_map::fourier;
use crate::fixed::COORDINATE_LIMIT;
use crate::kernel::scalar::{kernel_units, nearest};
use crate::plan::{Features, Plan};
use crate::sums::{Sum, Sums};
use std::sync::Arc;

/// Adds rows one by one.
#[derive(Debug)]
pub struct Scalar {
    plan: Arc<Plan>,
}

impl Scalar {
    /// No rows yet.
    pub fn new(plan: Arc<Plan>) -> Self {
        Scalar { plan }
    }

    /// `z` and `q` of a row, or `None` where it is invalid.
    fn frame(&self, row: &[f64]) -> Option<(Vec<f32>, Vec<i128>)> {
        let frame = &self.plan.frame;
        let y = frame.coordinates(row);
        let q = y.iter().zip(&frame.exponent).map(|(y, e)| (y * 2.0f64.powi(-e)).round_ties_even());
        let q: Vec<f64> = q.collect();
        let valid = q.iter().all(|q| q.abs() <= COORDINATE_LIMIT as f64);
        valid.then(|| {
            (y.iter().map(|y| *y as f32).collect(), q.iter().map(|q| *q as i128).collect())
        })
    }

    fn add_row(&self, z: &[f32], q: &[i128], weight: i128, sums: &mut Sums) {
        let plan = &*self.plan;
        let (d, m) = (plan.dims(), plan.features.points().len());
        match &plan.features {
            Features::Fourier(frequencies) if plan.collect.kernel => {
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
                let (cell, least) = nearest(plan.kernel, z, landmarks);
                if plan.collect.kernel {
                    let ladder = plan.kernel.ladder(&plan.bandwidths);
                    for (j, landmark) in landmarks.rows().enumerate() {
                        let distance = plan.kernel.distance(z, landmark);
                        for (rung, units) in kernel_units(distance, &ladder).iter().enumerate() {
                            sums[Sum::Features][rung * m + j] += i128::from(*units) * weight;
                        }
                    }
                    for (rung, sigma2) in plan.bandwidths.iter().enumerate() {
                        let squared = plan.kernel.ladder(&[plan.kernel.squared(*sigma2)]);
                        let units = kernel_units(least, &squared)[0];
                        sums[Sum::Coverage][rung] += i128::from(units) * weight;
                    }
                }
                if plan.collect.cells {
                    let cell = cell as usize;
                    sums[Sum::CellRows][cell] += weight;
                    for (k, q) in q.iter().enumerate() {
                        sums[Sum::CellSum][cell * d + k] += q * weight;
                        sums[Sum::CellSquare][cell * d + k] += q * q * weight;
                    }
                }
            }
            _ => {}
        }
        if plan.collect.moments {
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
    fn add(&mut self, values: &[f64], weights: &[u32], sums: &mut Sums) -> Result<usize> {
        let d = self.plan.dims();
        check_weights(values.len() / d, weights)?;
        for (i, row) in values.chunks_exact(d).enumerate() {
            let Some((z, q)) = self.frame(row) else { return Ok(i) };
            self.add_row(&z, &q, weights.get(i).map_or(1, |w| i128::from(*w)), sums);
        }
        Ok(values.len() / d)
    }

    fn finish(&mut self, _sums: &mut Sums) -> Result<()> {
        Ok(())
    }
}
