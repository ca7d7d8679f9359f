//! Kernels: what they are, their gradients, and how they are evaluated fast and exactly reproducibly.
//!
//! * [`table`]: the kernels by name, and what each is made of;
//! * [`exact`]: a kernel in double precision, the slow and obvious version, with gradients;
//! * [`ladder`]: several bandwidths from one exponential;
//! * [`levels`]: what categories add to a distance;
//! * [`exp2`]: the polynomials, in the one order of operations that every processor follows;
//! * [`tile`]: the vectorised pass over rows laid out by [`pack`]; [`scalar`] is its oracle, bit for bit;
//! * [`search`]: the nearest of many landmarks, through [`panels`] of near ones with bounds that leave some ([`left`]).

pub mod exact;
pub mod exp2;
pub mod fourier;
pub mod ladder;
pub mod left;
pub mod levels;
#[cfg(feature = "planning")]
pub mod nystrom;
pub mod pack;
pub mod panels;
pub mod row;
pub mod scalar;
pub mod search;
pub mod table;
pub mod tile;

pub use exact::{ScaledKernel, squared_distance};
pub use table::Kernel;
