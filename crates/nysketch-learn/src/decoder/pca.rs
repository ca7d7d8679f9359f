//! Principal components from Σx and Σxxᵀ (example 3). They are exact because they depend on the
//! covariance only.

use crate::model::Shape;
use nysketch_core::error::Result;
use nysketch_core::numeric::fixed::{centred_sum, coordinate_value, power_of_two};
use nysketch_core::numeric::linalg::{Matrix, symmetric_eigen};
use nysketch_core::numeric::work::Work;
use nysketch_core::plan::frame::Frame;
use nysketch_core::sketch::Sketch;
use nysketch_core::sums::Sum;

/// Principal components in the plan's coordinates.
#[derive(Debug, Clone)]
pub struct Components {
    /// Mean.
    pub mean: Vec<f64>,
    /// Unit vectors, in order of decreasing variance.
    pub directions: Vec<Vec<f64>>,
    /// Variance along each direction.
    pub variances: Vec<f64>,
    /// Sum of the variances of all columns.
    pub total_variance: f64,
}

impl Components {
    /// Converts the components to the parameters of a model, with the mean in the table's units.
    pub fn into_shape(self, frame: &Frame) -> Shape {
        let total = self.total_variance.max(f64::MIN_POSITIVE);
        Shape::Components {
            mean: frame.widen_coordinates(&self.mean),
            components: self.directions,
            explained_variance_ratio: self.variances.iter().map(|v| v / total).collect(),
            explained_variance: self.variances,
        }
    }
}

/// Returns the mean and the covariance matrix `E(y − Ey)(y − Ey)ᵀ` of a sketch that contains
/// moments and rows.
pub fn covariance(sketch: &Sketch) -> (Vec<f64>, Matrix) {
    let (plan, sums) = (sketch.plan(), sketch.sums());
    let (d, n, e) = (plan.dims(), sums.complete() as f64, &plan.frame.exponent);
    let mean: Vec<f64> = (0..d).map(|k| coordinate_value(sums[Sum::Sum][k], e[k]) / n).collect();
    let matrix = Matrix::from_fn(d, d, |i, j| {
        let (i, j) = if i >= j { (i, j) } else { (j, i) };
        let product = sums[Sum::Outer][i * (i + 1) / 2 + j];
        let centred = centred_sum(product, sums[Sum::Sum][i], sums[Sum::Sum][j], sums.complete());
        centred * power_of_two(e[i]) * power_of_two(e[j]) / n
    });
    (mean, matrix)
}

/// Returns the `k` leading components.
pub fn components(sketch: &Sketch, k: usize) -> Result<Components> {
    let d = sketch.plan().dims();
    Work::eigen(d, 1).check("principal components")?;
    let (mean, matrix) = covariance(sketch);
    let eigen = symmetric_eigen(&matrix)?;
    let directions = (0..k.min(d))
        .map(|l| {
            let v: Vec<f64> = (0..d).map(|i| eigen.vectors.get(i, l)).collect();
            // The sign is arbitrary: the largest entry is made positive.
            let largest = v.iter().fold(0.0f64, |m, x| if x.abs() > m.abs() { *x } else { m });
            v.into_iter().map(|x| x * largest.signum()).collect()
        })
        .collect();
    Ok(Components {
        mean,
        directions,
        variances: eigen.values.iter().take(k).map(|v| v.max(0.0)).collect(),
        total_variance: (0..d).map(|i| matrix.get(i, i)).sum(),
    })
}
