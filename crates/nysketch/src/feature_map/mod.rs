//! Feature maps: what is averaged over the rows, eq. (3), and what the average means.
//!
//! The pass collects plain kernel sums (or cosines and sines); the maps here turn them into the
//! paper's sketches when decoding.

pub mod fourier;
pub mod nystrom;
