//! The kernels by name, with their definitions. A kernel is `κ = 2^(rate · s)` for a distance `s`:
//!
//! | kernel | κ(x, y) | distance s | rate |
//! |---|---|---|---|
//! | `gaussian` | exp(−‖x − y‖²/2σ²) | Σ_k (x_k − y_k)² | −log₂e / 2σ² |
//! | `laplace` | exp(−‖x − y‖₁/σ) | Σ_k \|x_k − y_k\| | −log₂e / σ |
//!
//! The rest follows from this table: the ladder of bandwidths, the vectorised pass, the version in
//! double precision and the gradient.

use super::ladder::{Ladder, Step};
use crate::error::names::{Choice, Named, name_of};

/// The kernel of the measurement.
///
/// ```
/// use nysketch_core::{Kernel, Named, PlanParams, Table, plan_for};
/// # fn main() -> nysketch_core::Result<()> {
/// assert_eq!(Kernel::from_name("laplace")?, Kernel::Laplace);
/// let table = Table::unnamed(1, (0..100).map(f64::from).collect())?;
/// let plan = plan_for(&table, PlanParams::default().kernel(Kernel::Laplace))?.plan;
/// assert!(!plan.collect.cells, "cells need squared distances");
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Kernel {
    /// `exp(−‖x − y‖²/2σ²)`.
    #[default]
    Gaussian,
    /// `exp(−‖x − y‖₁/σ)`.
    Laplace,
}

/// The contribution of a coordinate to a distance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Metric {
    /// (x − y)².
    Squared,
    /// |x − y|.
    Absolute,
}

impl Named for Kernel {
    const PARAMETER: &'static str = "`kernel`";
    const TABLE: &'static [Choice<Self>] = &[
        Choice::new(Kernel::Gaussian, "gaussian", "exp(−‖x − y‖²/2σ²)"),
        Choice::new(
            Kernel::Laplace,
            "laplace",
            "exp(−‖x − y‖₁/σ), for k-means by clompr and drift",
        ),
    ];
}

impl Kernel {
    /// Name of the option value.
    pub fn name(self) -> &'static str {
        name_of(self)
    }

    /// The distance of which the kernel is a function.
    pub(crate) fn metric(self) -> Metric {
        match self {
            Kernel::Gaussian => Metric::Squared,
            Kernel::Laplace => Metric::Absolute,
        }
    }

    /// `log₂κ` per unit of distance.
    pub fn rate(self, sigma2: f64) -> f64 {
        match self {
            Kernel::Gaussian => -std::f64::consts::LOG2_E / (2.0 * sigma2),
            Kernel::Laplace => -std::f64::consts::LOG2_E / sigma2.sqrt(),
        }
    }

    /// The σ² for which κ equals κ² at `sigma2`.
    pub fn squared(self, sigma2: f64) -> f64 {
        match self {
            Kernel::Gaussian => sigma2 / 2.0,
            Kernel::Laplace => sigma2 / 4.0,
        }
    }

    /// The σ² at which this kernel decays about as fast as the Gaussian kernel at `sigma2`, in
    /// `dims` columns: both are 1/e at ‖x − y‖² = 2σ². For differences without a preferred
    /// direction, ‖x − y‖₁ is about √(2d/π) ‖x − y‖.
    pub fn as_wide_as_gaussian(self, sigma2: f64, dims: usize) -> f64 {
        match self {
            Kernel::Gaussian => sigma2,
            Kernel::Laplace => sigma2 * 4.0 * dims as f64 / std::f64::consts::PI,
        }
    }

    /// The steps that compute the values of checked bandwidths, widest first. If σ² falls by the
    /// factor at which the kernel is squared, or by that factor twice, the step is one or two
    /// squarings.
    #[doc(hidden)]
    pub fn ladder(self, bandwidths: &[f64]) -> Ladder {
        let factor = 1.0 / self.squared(1.0);
        Ladder::new(
            bandwidths,
            |sigma2| Step::exponential(self.rate(sigma2)),
            |wide, narrow| squarings(wide / narrow, factor),
        )
    }

    /// The distance in single precision, summed in the order of the columns: the definition of the
    /// pass.
    pub(crate) fn distance(self, x: &[f32], z: &[f32]) -> f32 {
        let differences = x.iter().zip(z).map(|(x, z)| x - z);
        match self.metric() {
            Metric::Squared => differences.fold(0.0, |sum, t| t.mul_add(t, sum)),
            Metric::Absolute => differences.fold(0.0, |sum, t| sum + t.abs()),
        }
    }
}

/// The number of squarings from one bandwidth to the next, 1 or 2, or 0 if there is none. `ratio`
/// is the ratio of their σ², and `factor` its value for one squaring.
fn squarings(ratio: f64, factor: f64) -> u8 {
    if ratio == factor {
        1
    } else if ratio == factor * factor {
        2
    } else {
        0
    }
}
