//! The names of the decoders.

use nysketch_core::error::names::{Choice, Named, name_of};

/// Selects a decoder; the table in [`decoder`](super) compares them.
///
/// ```
/// use nysketch::{Decoder, FitParams, Task, fit};
/// # fn main() -> nysketch::Result<()> {
/// # use nysketch::{Mixture, PlanParams, Sketch, SketchParams, Table, plan_for};
/// # let rows = Mixture::new(2, 3, 4.0, 7)?.rows(0, 900).values;
/// # let table = Table::unnamed(2, rows.clone())?;
/// # let plan = std::sync::Arc::new(plan_for(&table, PlanParams::default().landmarks(60))?.plan);
/// # let sketch = Sketch::of(&plan, &table, SketchParams::default(), &())?;
/// let params = FitParams::new(Task::Kmeans, 3);
/// // Once from the moments of the cells, and once from the kernel sums as in the paper.
/// let cells = fit(&sketch, &params.clone().decoder(Decoder::Cells))?;
/// let paper = fit(&sketch, &params.decoder(Decoder::Clompr))?;
/// assert_eq!((cells.report.decoder.as_str(), paper.report.decoder.as_str()), ("cells", "clompr"));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Decoder {
    /// `cells` if the sketch contains cells, otherwise `kernel`; `clompr` for kernels other than
    /// the Gaussian.
    #[default]
    Auto,
    /// Decodes the cell moments.
    Cells,
    /// Decodes the kernel sums, with better starts and atoms than the paper's decoder.
    Kernel,
    /// Decodes the kernel sums by the paper's matching pursuit with replacement.
    Clompr,
    /// Decodes the kernel sums by the paper's matching pursuit without replacement.
    Clomp,
}

impl Named for Decoder {
    const PARAMETER: &'static str = "`decoder`";
    const TABLE: &'static [Choice<Self>] = &[
        Choice::new(
            Decoder::Auto,
            "auto",
            "Cells where the sketch has them, else kernel sums (clompr for the Laplace kernel)",
        ),
        Choice::new(Decoder::Cells, "cells", "Count, mean and variance of the cells"),
        Choice::new(Decoder::Kernel, "kernel", "Kernel sums, matched by atoms of a learned width"),
        Choice::new(Decoder::Clompr, "clompr", "The paper's matching pursuit, with replacement"),
        Choice::new(Decoder::Clomp, "clomp", "The same without replacement"),
    ];
}

impl Decoder {
    /// Returns the name of the decoder.
    pub fn name(self) -> &'static str {
        name_of(self)
    }
}
