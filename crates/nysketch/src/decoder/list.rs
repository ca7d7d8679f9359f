//! The decoders by name.

use crate::names::{Choice, Named, name_of};

/// Which decoder to use; see the table of [`decoder`](super).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Decoder {
    /// Cells where the sketch has them, else kernel.
    #[default]
    Auto,
    /// Cell moments.
    Cells,
    /// Kernel sums, with starts and atoms better than the paper's.
    Kernel,
    /// The paper's.
    Clompr,
    /// The paper's without replacement.
    Clomp,
}

impl Named for Decoder {
    const PARAMETER: &'static str = "`decoder`";
    const TABLE: &'static [Choice<Self>] = &[
        Choice::new(Decoder::Auto, "auto", "Cells where the sketch has them, else kernel sums"),
        Choice::new(Decoder::Cells, "cells", "Count, mean and variance of the cells"),
        Choice::new(Decoder::Kernel, "kernel", "Kernel sums, matched by atoms of a learned width"),
        Choice::new(Decoder::Clompr, "clompr", "The paper's matching pursuit, with replacement"),
        Choice::new(Decoder::Clomp, "clomp", "The same without replacement"),
    ];
}

impl Decoder {
    /// Its name.
    pub fn name(self) -> &'static str {
        name_of(self)
    }
}
