//! Kernels: their definitions and gradients, and their fast, exactly reproducible evaluation.
//!
//! * [`table`]: the kernels by name, with their definitions;
//! * [`exact`]: kernels in double precision, a slow, direct implementation with gradients;
//! * [`ladder`]: several bandwidths from one exponential;
//! * [`levels`]: contributions of categories to distances;
//! * [`exp2`]: the polynomials, in the fixed order of operations of every processor;
//! * [`tile`]: the vectorised pass over rows laid out by [`pack`]; [`scalar`] is its oracle, bit
//!   for bit;
//! * [`search`]: the nearest of many landmarks, in [`panels`] of nearby ones with bounds that
//!   exclude most landmarks ([`left`]).

pub mod exact;
pub mod exp2;
pub mod fourier;
pub mod ladder;
pub mod left;
pub mod levels;
#[cfg(feature = "planning")]
pub mod nystrom;
pub mod pack;
mod panel_search;
pub mod panels;
pub mod row;
pub mod scalar;
pub mod search;
pub mod table;
pub mod tile;
mod tile_pass;

pub use exact::{ScaledKernel, squared_distance};
pub use table::Kernel;
