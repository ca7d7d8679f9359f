//! The sketching pass on NVIDIA GPUs.
//!
//! A sketch is a sum of integers, each of which results from a fixed sequence of IEEE operations on
//! one row (FORMAT.md of nysketch). A GPU that performs the same operations gives the same
//! integers, for any order in which its threads add them. This crate contains the kernels
//! ([`KERNELS`]), compiles them for the available GPU, and keeps rows and sums in its memory. Its
//! input is plain numbers ([`Spec`]), independent of plans and tables. The engine `cuda` of the
//! crate `nysketch` connects the two.
//!
//! Building the crate does not require CUDA. The driver and its compiler (NVRTC) are loaded when a
//! [`Device`] is opened. If one of them is missing, the result is a [`DeviceError`] that explains
//! it.
//!
//! * [`Device`]: a GPU, its memory and its programs;
//! * [`Spec`]: a description of the sums, in numbers; [`Tables`]: the same in the memory of a GPU;
//! * [`Pass`]: adds rows to sums;
//! * [`Ranking`]: finds the two nearest points of rows;
//! * [`DeviceRows`]: rows that are already in the memory of a GPU.

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

/// The kernels, in CUDA C++, as one text.
pub const KERNELS: &str = concat!(
    include_str!("kernels/arguments.cu"),
    include_str!("kernels/arithmetic.cu"),
    include_str!("kernels/validity.cu"),
    include_str!("kernels/pass.cu"),
    include_str!("kernels/cells.cu"),
    include_str!("kernels/moments.cu"),
);
