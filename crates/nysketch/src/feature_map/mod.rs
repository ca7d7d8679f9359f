//! Feature maps: the functions whose mean over the rows is the sketch, eq. (3).
//!
//! The pass collects plain kernel sums (or cosines and sines); the maps convert them to the paper's
//! sketches when decoding.

pub mod fourier;
pub mod nystrom;
