//! k-means and k-medians on weighted points: centres θ that minimise `Σ_i w_i min_j ‖x_i − θ_j‖²`,
//! or the same sum of distances. The points represent the rows: cell means with their counts,
//! retained rows, or landmarks with calibrated weights.
//!
//! Centres start by greedy k-means++ (`seed`), move by Lloyd's iterations (`lloyd`, with the bounds
//! of `assignment`), and are exchanged for distant points if that lowers the risk (`swap`).
//! Distances are computed in single precision through the tiles of the pass (`narrow`); means and
//! risks in double precision.

mod assignment;
mod effort;
mod lloyd;
mod narrow;
mod points;
mod search;
mod seed;
mod swap;

pub use effort::Effort;
pub use narrow::{Narrowed, medians};
pub use points::members;
pub use points::{Loss, WeightedPoints, nearest};
