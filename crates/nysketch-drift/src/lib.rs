//! Drift: the difference between two sketches of one plan. Estimates its size, tests it against
//! chance, and locates it.
//!
//! ```text
//! MMD = ‖A_m(π_A) − A_m(π_B)‖ = √(δᵀ K_m⁺ δ) ,   δ = k̄_A − k̄_B
//! ```
//!
//! Kernel means alone have no null distribution, so the test (`null.rs`) and the share of moved
//! rows (`moved.rs`) use the cells. Both require that rows are independent and that no row is in
//! both samples. If rows are dependent within a key, or weighted, the folds are used instead
//! (`by_folds.rs`).
//!
//! Landmarks are rows of the sample from which the plan was made. The test corrects for this
//! (`cells.rs`).
//!
//! Shares of levels and of missing values have their own tests (`shares.rs`). If there are any, the
//! p-value is twice the smaller of two: the p-value of the cells, and the smallest of these tests
//! after Bonferroni correction.

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
