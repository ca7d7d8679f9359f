//! The released sums and the maximum effect of one row on them.

use super::sensitivity;
use num_bigint::BigUint;
use nysketch_core::error::names::{Choice, Named, name_of};
use nysketch_core::error::{Error, Result};
use nysketch_core::numeric::fixed::{FEATURE_ONE, power_of_two};
use nysketch_core::plan::Plan;
use nysketch_core::sketch::Sketch;
use nysketch_core::sums::{Sum, Sums};

/// A vector of sums with its own noise.
///
/// | name | sums | length | maximum effect of a row |
/// |---|---|---|---|
/// | `counts` | rows of each cell | m | 1 |
/// | `sums` | Σu of each cell; `u` = integer coordinates − landmark | m·d | the radius R |
/// | `squares` | Σu² of each cell | m·d | R² |
/// | `kernel` | kernel sums, or cosines and sines | L·m, L·2m | about √Σ λ_max(K), or √(Lm) |
/// | `rows` | the number of rows, in plans without cells | 1 | 1 |
/// | `totals` | Σq | d | the longest q within the bounds |
/// | `products` | Σqqᵀ | d(d+1)/2 | at most its square |
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
    /// Returns the name of the mechanism.
    pub fn name(self) -> &'static str {
        name_of(self)
    }

    /// Returns the name of its tensor in files.
    pub(crate) fn tensor(self) -> String {
        format!("noisy.{}", self.name())
    }

    /// Returns the mechanisms of a plan.
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

    /// Returns the default share of the budget, relative to the other mechanisms.
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

    /// Returns the number of released numbers.
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

    /// Returns the value of one unit of its integers: one row, a kernel value, or a coordinate of
    /// the plan or its square.
    pub fn unit(self, plan: &Plan) -> f64 {
        let unit = power_of_two(plan.frame.exponent[0]);
        match self {
            Mechanism::Counts | Mechanism::Rows => 1.0,
            Mechanism::Sums | Mechanism::Totals => unit,
            Mechanism::Squares | Mechanism::Products => unit * unit,
            Mechanism::Kernel => 1.0 / f64::from(FEATURE_ONE),
        }
    }

    /// Returns the square of the maximum Euclidean distance by which adding or removing one row
    /// moves the sums, in units of their integers, rounded up. Returns an error for a plan that is
    /// not private, or whose numbers break a rule of FORMAT.md.
    pub fn sensitivity(self, plan: &Plan) -> Result<BigUint> {
        sensitivity::of_row(self, plan)
    }

    /// Returns the sums without noise. The sums of cells are relative to the landmark, `u = q − a`:
    /// Σu = Σq − na and Σu² = Σq² − 2aΣq + na², which is linear. Sums beyond 128 bits, which cannot
    /// occur in a sketch from a file, are an error.
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

/// Returns `Σq − na` at an index of a cell's sums; `None` beyond 128 bits.
fn sum_from(sums: &Sums, cell: usize, at: usize, anchor: i128) -> Option<i128> {
    sums[Sum::CellSum][at].checked_sub(sums[Sum::CellRows][cell].checked_mul(anchor)?)
}

/// Returns `Σq² − 2aΣq + na²` at an index of a cell's sums; `None` beyond 128 bits.
fn square_from(sums: &Sums, cell: usize, at: usize, anchor: i128) -> Option<i128> {
    let mixed = sums[Sum::CellSum][at].checked_mul(anchor)?.checked_mul(2)?;
    let square = sums[Sum::CellRows][cell].checked_mul(anchor.checked_mul(anchor)?)?;
    sums[Sum::CellSquare][at].checked_sub(mixed)?.checked_add(square)
}
