//! The decoders by name.

use crate::error::{Error, Result};

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

impl Decoder {
    /// Every decoder with its name on the command line, in reports and in Python.
    pub const NAMES: [(Decoder, &'static str); 5] = [
        (Decoder::Auto, "auto"),
        (Decoder::Cells, "cells"),
        (Decoder::Kernel, "kernel"),
        (Decoder::Clompr, "clompr"),
        (Decoder::Clomp, "clomp"),
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize].1
    }
}

impl std::str::FromStr for Decoder {
    type Err = Error;
    fn from_str(name: &str) -> Result<Self> {
        let known = Self::NAMES.iter().find(|(_, n)| *n == name);
        known.map(|(decoder, _)| *decoder).ok_or_else(|| {
            let names: Vec<&str> = Self::NAMES.iter().map(|(_, n)| *n).collect();
            Error::parameter("`decoder`", names.join(", "), name)
        })
    }
}
