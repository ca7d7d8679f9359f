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

mod by_folds;
mod cells;
mod columns;
mod comparison;
mod correlation;
mod days;
mod discovery;
mod found;
mod moved;
mod null;
mod params;
mod pooled;
mod segments;
mod shares;
mod shift;
mod tail;
mod watch;

pub use comparison::{Comparison, set_q_values_of_many};
pub use days::{DayScore, Days, LEAST_ROWS, Reason, Unusual};
pub use discovery::q_values;
pub use found::{CellChange, ColumnChange, Discrepancy, Drift, Effect, LandmarkChange, TestBy};
pub use moved::{Moved, Verdict};
pub use params::DriftParams;
pub use segments::{Attribution, Removed, Segment};
pub use shares::{CategoryChange, LevelChange, MissingChange};
pub use watch::{Watched, WatchedDay};
