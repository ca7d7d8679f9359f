//! The region and the moments of the data, estimated from a sketch.

use super::known::Axes;
use super::pca;
use crate::atom::Atom;
use nysketch_core::numeric::fixed::{COORDINATE_BITS, coordinate_value, power_of_two};
use nysketch_core::numeric::linalg::Matrix;
use nysketch_core::numeric::random::unit;
use nysketch_core::sketch::Sketch;
use nysketch_core::sums::Sum;

/// Bounds for means and variances, and the moments of the data.
#[derive(Debug, Clone)]
pub struct Space {
    /// Bounds of each coordinate.
    pub bounds: Vec<(f64, f64)>,
    /// Minimum and maximum variance of an atom in each column.
    pub variances: Vec<(f64, f64)>,
    mean: Vec<f64>,
    deviation: Vec<f64>,
}

impl Space {
    /// Estimates the region from moments if the sketch contains them, otherwise from landmarks,
    /// otherwise from the range of the plan; along the plan's coordinates or other axes.
    pub fn new(sketch: &Sketch, axes: Option<&Axes>) -> Self {
        let (plan, sums) = (sketch.plan(), sketch.sums());
        let (d, n) = (plan.dims(), sums.complete() as f64);
        let exponent = &plan.frame.exponent;
        let landmarks: Option<Vec<Vec<f64>>> = plan.landmarks().map(|landmarks| {
            landmarks
                .rows()
                .map(|z| {
                    let z: Vec<f64> = z.iter().map(|x| f64::from(*x)).collect();
                    axes.map_or(z.clone(), |axes| axes.turn(&z))
                })
                .collect()
        });
        let (mean, deviation): (Vec<f64>, Vec<f64>) = if plan.collect.moments {
            match axes {
                Some(axes) => {
                    let (mean, covariance) = pca::covariance(sketch);
                    let variances = axes.variances_of(&covariance);
                    let deviation = variances.iter().map(|v| v.max(0.0).sqrt()).collect();
                    (axes.turn(&mean), deviation)
                }
                None => (0..d)
                    .map(|k| {
                        let mean = coordinate_value(sums[Sum::Sum][k], exponent[k]) / n;
                        let square =
                            coordinate_value(sums[Sum::Outer][k * (k + 3) / 2], 2 * exponent[k])
                                / n;
                        (mean, (square - mean * mean).max(0.0).sqrt())
                    })
                    .unzip(),
            }
        } else if let Some(landmarks) = &landmarks {
            let m = landmarks.len() as f64;
            (0..d)
                .map(|k| {
                    let mean = landmarks.iter().map(|z| z[k]).sum::<f64>() / m;
                    let squares = landmarks.iter().map(|z| (z[k] - mean).powi(2));
                    (mean, (squares.sum::<f64>() / m).sqrt())
                })
                .unzip()
        } else {
            // Planning leaves 16 bits of headroom above the largest value, which is assumed to be
            // three deviations.
            let deviation: Vec<f64> =
                exponent.iter().map(|e| power_of_two(e + COORDINATE_BITS - 16) / 3.0).collect();
            (
                vec![0.0; d],
                axes.map_or(deviation.clone(), |axes| {
                    let variances = axes.variances_of(&Matrix::from_fn(d, d, |i, j| {
                        if i == j { deviation[i].powi(2) } else { 0.0 }
                    }));
                    variances.iter().map(|v| v.sqrt()).collect()
                }),
            )
        };
        let mut bounds: Vec<(f64, f64)> =
            mean.iter().zip(&deviation).map(|(m, s)| (m - 5.0 * s, m + 5.0 * s)).collect();
        for z in landmarks.iter().flatten() {
            for (b, x) in bounds.iter_mut().zip(z) {
                *b = (b.0.min(*x), b.1.max(*x));
            }
        }
        // Rows that are all equal get a positive maximum variance: a share of the bandwidth.
        let narrow = plan.bandwidths.last().copied().unwrap_or(1.0);
        let variances = deviation
            .iter()
            .map(|s| {
                let max = (4.0 * s * s).max(1e-6 * narrow);
                (1e-4 * max.min(narrow), max)
            })
            .collect();
        Space { bounds, variances, mean, deviation }
    }

    /// Clips a variance of column `k` to its bounds.
    pub fn clamp(&self, k: usize, variance: f64) -> f64 {
        variance.max(self.variances[k].0).min(self.variances[k].1)
    }

    /// Returns the initial variances of an atom: a tenth of the data's.
    pub fn first_variance(&self) -> Vec<f64> {
        self.deviation.iter().enumerate().map(|(k, s)| self.clamp(k, 0.1 * s * s)).collect()
    }

    /// Returns the difference between the mean and variances of a mixture and those of the data,
    /// relative to the variance of the data.
    pub fn mismatch(&self, atoms: &[Atom]) -> f64 {
        let (mut off, mut total) = (0.0, 0.0);
        for k in 0..self.mean.len() {
            let mean: f64 = atoms.iter().map(|a| a.weight * a.mean[k]).sum();
            let variance: f64 = atoms
                .iter()
                .map(|a| a.weight * ((a.mean[k] - self.mean[k]).powi(2) + a.covariance.get(k, k)))
                .sum();
            let data = self.deviation[k].powi(2);
            off += (variance - data).abs() + (mean - self.mean[k]).powi(2);
            total += data;
        }
        off / total.max(f64::MIN_POSITIVE)
    }

    /// Returns the range within this many deviations of the mean, for each coordinate.
    pub fn around(&self, deviations: f64) -> Vec<(f64, f64)> {
        let each = self.mean.iter().zip(&self.deviation);
        each.map(|(m, s)| (m - deviations * s, m + deviations * s)).collect()
    }

    /// Draws a point uniformly within 1.7 deviations of the mean, so that its variance is that of
    /// the data.
    pub fn draw(&self, rng: &mut impl rand::Rng) -> Vec<f64> {
        let around = self.mean.iter().zip(&self.deviation);
        around.map(|(m, s)| m + s * 12.0f64.sqrt() * (unit(rng) - 0.5)).collect()
    }
}
