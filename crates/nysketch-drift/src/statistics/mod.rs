//! Statistics that know nothing of sketches: tails, pooling of small counts, false-discovery rates,
//! and intervals for the share of rows that moved.

pub mod discovery;
pub mod moved;
pub mod pooled;
pub mod tail;
