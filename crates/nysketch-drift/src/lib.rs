//! How two sketches of one plan differ: how much, whether by chance, and where.
//!
//! ```text
//! MMD = ‖A_m(π_A) − A_m(π_B)‖ = √(δᵀ K_m⁺ δ) ,   δ = k̄_A − k̄_B
//! ```
//!
//! Kernel means alone have no null distribution, so the test (`null.rs`) and the share of the rows that moved (`moved.rs`) look at
//! the cells. Rows must be independent of each other, and no row in both samples; where they come in clusters or have weights,
//! folds tell (`by_folds.rs`).
//!
//! Landmarks are rows of the sample that the plan was made from, which the test allows for (`cells.rs`).
//!
//! Shares of levels and of missing values have tests of their own (`shares.rs`). Where there are some, the p-value is
//! twice the least of theirs, corrected for their number, and of that of the cells.

mod comparison;
mod days;
mod differences;
mod significance;
mod statistics;

pub use comparison::compare::{Comparison, set_q_values_of_many};
pub use comparison::segments::{Attribution, Removed, Segment};
pub use days::baseline::{DayScore, Days, LEAST_ROWS, Reason, Unusual};
pub use days::watch::{Watched, WatchedDay};
pub use differences::found::{
    CellChange, ColumnChange, Discrepancy, Drift, Effect, LandmarkChange, TestBy,
};
pub use differences::params::DriftParams;
pub use differences::shares::{CategoryChange, LevelChange, MissingChange};
pub use statistics::discovery::q_values;
pub use statistics::moved::{Moved, Verdict};
