//! Differential privacy and secure aggregation of sketches.
//!
//! | folder | contents |
//! |---|---|
//! | [`dp`] | releases: exact sums with discrete Gaussian noise, and what they promise |
//! | [`masking`] | masked sketches: only the sum of all parties can be read |
//! | [`ledger`] | what was given out, counted on disk before it is |
//! | [`subtractions`] | subtractions that are recorded, so that none is repeated by mistake |
//!
//! The clipping of rows to the bounds of a private plan is part of the pass and lives in
//! `nysketch-core` (`plan/private.rs`, `pass/quota.rs`). Users depend on the crate `nysketch`,
//! which re-exports what is stable here.

pub mod dp;
pub mod ledger;
pub mod masking;
pub mod subtractions;
