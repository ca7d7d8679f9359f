//! Numbers: fixed point, points, hashes, random numbers, vectors and matrices.

pub mod digest;
pub mod fixed;
#[cfg(feature = "planning")]
pub mod linalg;
pub mod parallel;
pub mod points;
pub mod random;
pub mod simd;
pub mod student;
pub mod waves;
pub mod work;
