//! Whether a difference is chance: null distributions from cells or from folds.

pub mod by_folds;
pub mod null;
pub mod shift;
