//! k-means and k-medians on weighted points: cell means with their counts, witness rows, or landmarks with calibrated
//! weights stand for the rows.
//!
//! Centres start by greedy k-means++ (`seed`), move by Lloyd's iterations (`lloyd`, with the bounds of `assignment`), and are exchanged for points far
//! from all of them where that pays (`swap`). Distances are taken in single precision through the tiles of the pass
//! (`narrow`); means and risks in double.

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
