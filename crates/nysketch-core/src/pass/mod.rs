//! Sketching: adds rows to sums.
//!
//! * [`Accumulator`]: the sums of one thread;
//! * [`Run`]: one pass over a source, which can be interrupted and resumed;
//! * [`Groups`]: one sketch for each value of a column, in one pass.
//!
//! If a sketch has folds, the rows of each block are assigned to them before they are added. If a
//! plan protects people, a first reading selects at most a fixed number of rows per person.

mod accumulator;
mod dealer;
pub mod engine;
pub mod gpus;
mod groups;
mod quota;
mod run;

pub use accumulator::Accumulator;
pub use groups::{DEFAULT_GROUPS, GroupParams, Groups};
pub use run::{Run, SketchParams};
