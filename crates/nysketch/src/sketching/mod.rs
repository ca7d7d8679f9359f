//! Making sketches: rows in, sums out.
//!
//! * [`Accumulator`]: the sums of one thread in the making;
//! * [`Run`]: one pass over a source, which can be interrupted and taken up again;
//! * [`Groups`]: one sketch for each value of a column, from one pass.

mod accumulator;
mod groups;
mod run;

pub use accumulator::Accumulator;
pub use groups::{DEFAULT_GROUPS, GroupParams, Groups};
pub use run::{Run, SketchParams};
