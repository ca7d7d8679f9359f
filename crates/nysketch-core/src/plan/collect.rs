//! The sums that a sketch keeps.

use crate::error::{Error, Result};

/// The sums that a sketch keeps.
///
/// ```
/// use nysketch_core::{Collect, PlanParams};
/// # fn main() -> nysketch_core::Result<()> {
/// // Keep only the sums that the cells decoder needs for k-means and mixtures.
/// let params = PlanParams::default().collect(Collect::from_names(["cells"])?);
/// assert_eq!(params.collect.map(Collect::names), Some(vec!["cells"]));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Collect {
    /// Kernel sums (or cosines and sines) and, for plans with landmarks, coverage.
    pub kernel: bool,
    /// Count, Σx and Σx² of each cell.
    pub cells: bool,
    /// Σx and Σxxᵀ over all rows.
    pub moments: bool,
}

/// Largest number of columns for which Σxxᵀ is kept by default: it costs d² per row.
pub(crate) const MOMENTS_DIMS: usize = 64;
/// Largest number of landmarks for which kernel sums are kept by default, if cells are kept too.
/// With more landmarks, operations on the kernel matrices of three bandwidths exceed the work limit
/// ([`work`](crate::numeric::work)).
pub(crate) const KERNEL_LANDMARKS: usize = 4000;

impl Collect {
    /// Checks that some sums are kept, and that cells are kept only with landmarks.
    pub(crate) fn check(self, landmarks: bool) -> Result<()> {
        let (expected, got) = if !(self.kernel || self.cells || self.moments) {
            ("at least one of kernel, cells, moments", "none")
        } else if self.cells && !landmarks {
            ("without cells for Fourier features, which have no landmarks", "cells")
        } else {
            return Ok(());
        };
        Err(Error::parameter("`collect`", expected, got))
    }

    /// The default: all sums that are cheap for this number of columns and landmarks. `None` means
    /// Fourier features.
    pub fn default_for(dims: usize, landmarks: Option<usize>) -> Self {
        Collect {
            kernel: landmarks.is_none_or(|m| m <= KERNEL_LANDMARKS),
            cells: landmarks.is_some(),
            moments: dims <= MOMENTS_DIMS,
        }
    }

    /// Names of the kept sums, in alphabetical order.
    pub fn names(self) -> Vec<&'static str> {
        [(self.cells, "cells"), (self.kernel, "kernel"), (self.moments, "moments")]
            .into_iter()
            .filter_map(|(on, name)| on.then_some(name))
            .collect()
    }

    /// Parses names in any order.
    pub fn from_names<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<Self> {
        let mut collect = Collect { kernel: false, cells: false, moments: false };
        for name in names {
            match name {
                "kernel" => collect.kernel = true,
                "cells" => collect.cells = true,
                "moments" => collect.moments = true,
                other => {
                    return Err(Error::parameter(
                        "`collect`",
                        "some of kernel, cells, moments",
                        other,
                    ));
                }
            }
        }
        Ok(collect)
    }
}
