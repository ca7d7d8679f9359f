//! The sketching pass on NVIDIA GPUs.
//!
//! A sketch is a sum of integers, and each of them comes from a fixed sequence of IEEE operations on one row (FORMAT.md of
//! nysketch). A GPU that performs the same operations gives the same integers, in whatever order its threads add them. This
//! crate holds the kernels that do so ([`KERNELS`]), compiles them for the GPU that is there, and keeps rows and sums in its
//! memory. It is given plain numbers ([`Spec`]) and knows nothing of plans and tables; the engine `cuda` of the crate
//! `nysketch` stands between the two.
//!
//! Nothing of CUDA is needed to build it. The driver and its compiler (NVRTC) are looked up when a [`Device`] is opened, and
//! where one of them is missing, [`DeviceError`] says so in words.
//!
//! * [`Device`]: a GPU, its memory and its programs;
//! * [`Spec`]: what is summed, in numbers; [`Tables`]: the same in the memory of a GPU;
//! * [`Pass`]: rows in, sums out;
//! * [`Ranking`]: rows in, the two nearest points out;
//! * [`DeviceRows`]: rows that are in the memory of a GPU already.

mod args;
mod cache;
mod compile;
mod device;
mod error;
mod grid;
mod library;
mod memory;
mod pass;
mod ranking;
mod rows;
mod spec;
mod tables;

pub use device::Device;
pub use error::{DeviceError, Result};
pub use library::look_in;
pub use pass::{Invalid, Outcome, Pass};
pub use ranking::{Ranked, Ranking};
pub use rows::{DeviceRows, Element, OwnedRows};
pub use spec::{Layout, Metric, Private, Rung, Section, Spec};
pub use tables::Tables;

/// The kernels, in CUDA C++: one text.
pub const KERNELS: &str = concat!(
    include_str!("kernels/arguments.cu"),
    include_str!("kernels/arithmetic.cu"),
    include_str!("kernels/validity.cu"),
    include_str!("kernels/pass.cu"),
    include_str!("kernels/cells.cu"),
    include_str!("kernels/moments.cu"),
);
