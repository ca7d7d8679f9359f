//! EM for Gaussian mixtures on weighted points.
//!
//! A step goes over the points once: from the responsibilities under the atoms come masses, means and covariances
//! of the next atoms. `diagonal` does that for covariances along the columns, `matrix` for matrices, `tied` for one matrix;
//! where there are many atoms, only those `near` some points are looked at. `steps` makes of it what the kind of covariance
//! and the least variance, `floor`, ask for.

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
pub(super) use passed::Told;
pub(super) use steps::{Em, Ended, Shaped, TOLERANCE, Until, told};

#[cfg(test)]
mod tests;
