//! Which sums a sketch keeps.

use crate::error::{Error, Result};

/// Which sums a sketch keeps.
///
/// ```
/// use nysketch_core::{Collect, PlanParams};
/// # fn main() -> nysketch_core::Result<()> {
/// // Only what k-means and mixtures by the cells decoder need.
/// let params = PlanParams::default().collect(Collect::from_names(["cells"])?);
/// assert_eq!(params.collect.map(Collect::names), Some(vec!["cells"]));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Collect {
    /// Kernel sums (or cosines and sines) and, with landmarks, coverage.
    pub kernel: bool,
    /// Count, Σx and Σx² of each cell.
    pub cells: bool,
    /// Σx and Σxxᵀ over all rows.
    pub moments: bool,
}

/// Columns up to which Σxxᵀ is kept by default: it costs d² per row.
pub(crate) const MOMENTS_DIMS: usize = 64;
/// Landmarks up to which kernel sums are kept by default where cells are: beyond, what looks at the kernel matrices of
/// three bandwidths takes more than the limit of work ([`crate::numeric::work`]).
pub(crate) const KERNEL_LANDMARKS: usize = 4000;

impl Collect {
    /// Something is kept, and cells only where there are landmarks.
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

    /// Everything that is cheap for so many columns and landmarks, `None` for Fourier features.
    pub fn default_for(dims: usize, landmarks: Option<usize>) -> Self {
        Collect {
            kernel: landmarks.is_none_or(|m| m <= KERNEL_LANDMARKS),
            cells: landmarks.is_some(),
            moments: dims <= MOMENTS_DIMS,
        }
    }

    /// The names of what is kept, in alphabetical order.
    pub fn names(self) -> Vec<&'static str> {
        [(self.cells, "cells"), (self.kernel, "kernel"), (self.moments, "moments")]
            .into_iter()
            .filter_map(|(on, name)| on.then_some(name))
            .collect()
    }

    /// From names in any order.
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
