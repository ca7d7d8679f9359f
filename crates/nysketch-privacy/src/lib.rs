//! Differential privacy and secure aggregation of sketches.
//!
//! | folder | contents |
//! |---|---|
//! | [`dp`] | releases: exact sums with discrete Gaussian noise, and their guarantees |
//! | [`masking`] | masked sketches: only the sum of all parties can be read |
//! | [`ledger`] | records of each use of a key or a budget, on disk before its result exists |
//! | [`subtractions`] | recorded subtractions, so that none is repeated by mistake |
//!
//! The clipping of rows to the bounds of a private plan is part of the pass, in `nysketch-core`
//! (`plan/private.rs`, `pass/quota.rs`). Users depend on the crate `nysketch`, which re-exports the
//! stable items of this crate.

pub mod dp;
pub mod ledger;
pub mod masking;
pub mod subtractions;
