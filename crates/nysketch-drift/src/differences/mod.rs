//! What differs between two sketches: columns, cells, shares of levels and of missing values.

pub mod cells;
pub mod columns;
pub mod correlation;
pub mod found;
pub mod params;
pub mod shares;
