//! What is released, and how far one row can move it.

use super::sensitivity;
use num_bigint::BigUint;
use nysketch_core::error::names::{Choice, Named, name_of};
use nysketch_core::error::{Error, Result};
use nysketch_core::numeric::fixed::{FEATURE_ONE, power_of_two};
use nysketch_core::plan::Plan;
use nysketch_core::sketch::Sketch;
use nysketch_core::sums::{Sum, Sums};

/// A vector of sums that gets noise of its own.
///
/// | name | what | length | how far a row moves it |
/// |---|---|---|---|
/// | `counts` | rows of each cell | m | 1 |
/// | `sums` | Σu of each cell, `u` being the whole coordinates from the landmark | m·d | the radius R |
/// | `squares` | Σu² of each cell | m·d | R² |
/// | `kernel` | kernel sums, or cosines and sines | L·m, L·2m | about √Σ λ_max(K), or √(Lm) |
/// | `rows` | the number of rows, where there are no cells | 1 | 1 |
/// | `totals` | Σq | d | the longest q within the bounds |
/// | `products` | Σqqᵀ | d(d+1)/2 | its square, or less |
///
/// ```
/// use nysketch::privacy::Mechanism;
/// use nysketch::Named;
/// assert_eq!(Mechanism::from_name("counts").unwrap(), Mechanism::Counts);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "each variant is a row of the table above")]
pub enum Mechanism {
    Counts,
    Sums,
    Squares,
    Kernel,
    Rows,
    Totals,
    Products,
}

impl Named for Mechanism {
    const PARAMETER: &'static str = "`spend`";
    const TABLE: &'static [Choice<Self>] = &[
        Choice::new(Mechanism::Counts, "counts", "Rows of each cell"),
        Choice::new(Mechanism::Sums, "sums", "Sums of each cell"),
        Choice::new(Mechanism::Squares, "squares", "Squares of each cell"),
        Choice::new(Mechanism::Kernel, "kernel", "Kernel sums, or cosines and sines"),
        Choice::new(Mechanism::Rows, "rows", "The number of rows, without cells"),
        Choice::new(Mechanism::Totals, "totals", "Sums of all rows"),
        Choice::new(Mechanism::Products, "products", "Products of all rows"),
    ];
}

impl Mechanism {
    /// Its name.
    pub fn name(self) -> &'static str {
        name_of(self)
    }

    /// The name of its tensor in files.
    pub(crate) fn tensor(self) -> String {
        format!("noisy.{}", self.name())
    }

    /// What is released of the sketches of a plan.
    pub fn of_plan(plan: &Plan) -> Vec<Mechanism> {
        let collect = plan.collect;
        let mut all = Vec::new();
        if collect.cells {
            all.extend([Mechanism::Counts, Mechanism::Sums, Mechanism::Squares]);
        }
        if collect.kernel {
            all.push(Mechanism::Kernel);
        }
        if !collect.cells {
            all.push(Mechanism::Rows);
        }
        if collect.moments {
            all.extend([Mechanism::Totals, Mechanism::Products]);
        }
        all
    }

    /// How much of the budget it gets beside the others where nothing is said.
    pub(super) fn default_share(self) -> f64 {
        match self {
            Mechanism::Counts => 4.0,
            Mechanism::Sums => 4.0,
            Mechanism::Squares => 2.0,
            Mechanism::Kernel => 9.0,
            Mechanism::Rows => 1.0,
            Mechanism::Totals => 2.0,
            Mechanism::Products => 8.0,
        }
    }

    /// How many numbers it has.
    pub fn len(self, plan: &Plan) -> usize {
        let (d, m) = (plan.dims(), plan.features.points().len());
        match self {
            Mechanism::Counts => m,
            Mechanism::Sums | Mechanism::Squares => m * d,
            Mechanism::Kernel => plan.bandwidths.len() * plan.features_per_bandwidth(),
            Mechanism::Rows => 1,
            Mechanism::Totals => d,
            Mechanism::Products => d * (d + 1) / 2,
        }
    }

    /// What one unit of its integers is: one row, a kernel value, or a coordinate of the plan or
    /// its square.
    pub fn unit(self, plan: &Plan) -> f64 {
        let unit = power_of_two(plan.frame.exponent[0]);
        match self {
            Mechanism::Counts | Mechanism::Rows => 1.0,
            Mechanism::Sums | Mechanism::Totals => unit,
            Mechanism::Squares | Mechanism::Products => unit * unit,
            Mechanism::Kernel => 1.0 / f64::from(FEATURE_ONE),
        }
    }

    /// The square of the Euclidean distance by which adding or removing one row can move it, in
    /// units of its integers,
    /// rounded up. Plans that are not private have no bound, and plans whose numbers break a rule
    /// of FORMAT.md none that holds:
    /// both are errors.
    pub fn sensitivity(self, plan: &Plan) -> Result<BigUint> {
        sensitivity::of_row(self, plan)
    }

    /// Its sums without noise. Those of cells are taken from the landmark, `u = q − a`: Σu = Σq −
    /// na and Σu² = Σq² − 2aΣq + na²,
    /// which is linear. Sums beyond 128 bits, which no sketch that was read has, are an error.
    pub fn exact(self, sketch: &Sketch) -> Result<Vec<i128>> {
        let (plan, sums): (_, &Sums) = (sketch.plan(), sketch.sums());
        let exact = match self {
            Mechanism::Counts => sums[Sum::CellRows].clone(),
            Mechanism::Sums | Mechanism::Squares => {
                let from_landmark = match self {
                    Mechanism::Sums => sum_from,
                    _ => square_from,
                };
                let d = plan.dims();
                let anchors = plan.anchors().into_iter().enumerate();
                let all: Option<Vec<i128>> = anchors
                    .map(|(at, anchor)| from_landmark(sums, at / d, at, anchor as i128))
                    .collect();
                let beyond = || Error::parameter("the sketch", "sums below 2^127", "larger ones");
                all.ok_or_else(beyond)?
            }
            Mechanism::Kernel => sums[Sum::Features].clone(),
            Mechanism::Rows => sums[Sum::Rows].clone(),
            Mechanism::Totals => sums[Sum::Sum].clone(),
            Mechanism::Products => sums[Sum::Outer].clone(),
        };
        Ok(exact)
    }
}

/// `Σq − na` of a cell, at a place of its sums; `None` beyond 128 bits.
fn sum_from(sums: &Sums, cell: usize, at: usize, anchor: i128) -> Option<i128> {
    sums[Sum::CellSum][at].checked_sub(sums[Sum::CellRows][cell].checked_mul(anchor)?)
}

/// `Σq² − 2aΣq + na²` of a cell, at a place of its sums; `None` beyond 128 bits.
fn square_from(sums: &Sums, cell: usize, at: usize, anchor: i128) -> Option<i128> {
    let mixed = sums[Sum::CellSum][at].checked_mul(anchor)?.checked_mul(2)?;
    let square = sums[Sum::CellRows][cell].checked_mul(anchor.checked_mul(anchor)?)?;
    sums[Sum::CellSquare][at].checked_sub(mixed)?.checked_add(square)
}
