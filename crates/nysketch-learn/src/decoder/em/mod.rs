//! EM for Gaussian mixtures on weighted points.
//!
//! A step passes over the points once. It computes the responsibilities under the current atoms and
//! sums the weights, means and covariances of the next atoms. `diagonal` does so for diagonal
//! covariances, `matrix` for full matrices, and `tied` for one shared matrix. If there are many
//! atoms, only those `near` some point of a block are evaluated. `steps` then applies the kind of
//! covariance and the minimum variance, `floor`.

mod diagonal;
mod floor;
mod levels;
mod matrix;
mod near;
mod passed;
mod steps;
mod tied;

pub(super) use floor::Floor;
pub(super) use levels::Levels;
pub(super) use passed::Densities;
pub(super) use steps::{Em, Ended, Shaped, TOLERANCE, Until, densities};

#[cfg(test)]
mod tests;
