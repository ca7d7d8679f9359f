//! Making sketches: rows in, sums out.
//!
//! * [`Accumulator`]: the sums of one thread in the making;
//! * [`Run`]: one pass over a source, which can be interrupted and taken up again;
//! * [`Groups`]: one sketch for each value of a column, from one pass.
//!
//! Where a sketch keeps folds, the rows of each block are dealt to them before they are added. Where a plan protects people, a
//! first reading finds which of their rows count.

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
