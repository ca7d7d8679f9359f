//! Landmarks: the points x̃₁ … x̃_m at which the data is measured (section 3.2 of the paper).
//!
//! | sampling | rule |
//! |---|---|
//! | `uniform` | every subset of m distinct rows is as likely |
//! | `leverage` | in proportion to approximate leverage scores (BLESS) |
//! | `cholesky` greedy | the row farthest, in feature space, from the span of those chosen |
//! | `cholesky` rpcholesky | a row drawn in proportion to that squared distance |
//! | `dsquared` | a row drawn in proportion to its squared distance from those chosen |
//!
//! Planning brings all of them to exactly `m` different points, or to every different point where
//! there are fewer. Rules that need a bandwidth use the middle rung of the ladder.

pub mod cholesky;
pub mod count;
pub(crate) mod dsquared;
pub mod leverage;
pub(crate) mod uniform;
