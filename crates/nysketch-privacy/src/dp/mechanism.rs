//! What is released, and how far one row can move it.

use num_bigint::BigUint;
use nysketch_core::error::names::{Choice, Named, name_of};
use nysketch_core::kernel::row::Rows;
use nysketch_core::kernel::scalar::{distance, kernel_units};
use nysketch_core::numeric::points::Points;
use nysketch_core::plan::{Features, Plan};
use nysketch_core::sketch::Sketch;
use nysketch_core::sums::{Sum, Sums};

/// A vector of sums that gets noise of its own.
///
/// | name | what | length | how far a row moves it |
/// |---|---|---|---|
/// | `counts` | rows of each cell | m | 1 |
/// | `sums` | Σu of each cell, `u` being the whole coordinates from the landmark | m·d | the radius R |
/// | `squares` | Σu² of each cell | m·d | R² |
/// | `kernel` | kernel sums, or cosines and sines | L·m, L·2m | √Σ λ_max(K), or √(Lm) |
/// | `rows` | the number of rows, where there are no cells | 1 | 1 |
/// | `totals` | Σq | d | the longest q within the bounds |
/// | `products` | Σqqᵀ | d(d+1)/2 | its square |
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

/// What the radius of cells is exceeded by at most, squared: one part in 2³¹. Rounding exceeds it by (d + 5)·2⁻⁵¹ of it.
const ROUNDING_BITS: u32 = 31;

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

    /// The square of the Euclidean distance by which adding or removing one row can move it, in units of its integers,
    /// rounded up. `None` where the plan is not private, so that there is no bound.
    pub fn sensitivity(self, plan: &Plan) -> Option<BigUint> {
        let private = plan.private.as_ref()?;
        let radius = BigUint::from(private.radius).pow(2);
        let radius = &radius + (&radius >> ROUNDING_BITS) + 1u32;
        let reach = private.reach(&plan.frame).into_iter();
        let reach: BigUint = reach.map(|r| BigUint::from(r).pow(2)).sum();
        Some(match self {
            Mechanism::Counts | Mechanism::Rows => BigUint::from(1u32),
            Mechanism::Sums => radius,
            // Σu⁴ ≤ (Σu²)².
            Mechanism::Squares => radius.pow(2),
            Mechanism::Kernel => match &plan.features {
                Features::Nystrom(landmarks, _) => kernel_sensitivity(plan, landmarks),
                Features::Fourier(..) => fourier_sensitivity(plan),
            },
            Mechanism::Totals => reach,
            Mechanism::Products => reach.pow(2),
        })
    }

    /// Its sums without noise. Those of cells are taken from the landmark, `u = q − Q`: Σu = Σq − nQ and Σu² = Σq² − 2QΣq + nQ²,
    /// which is linear.
    pub fn exact(self, sketch: &Sketch) -> Vec<i128> {
        let (plan, sums): (_, &Sums) = (sketch.plan(), sketch.sums());
        let d = plan.dims();
        let anchor = || {
            let entry = move |(at, q): (usize, f64)| (q as i128, sums[Sum::CellRows][at / d], at);
            plan.anchors().into_iter().enumerate().map(entry)
        };
        match self {
            Mechanism::Counts => sums[Sum::CellRows].clone(),
            Mechanism::Sums => anchor().map(|(q, n, at)| sums[Sum::CellSum][at] - n * q).collect(),
            Mechanism::Squares => anchor()
                .map(|(q, n, at)| {
                    sums[Sum::CellSquare][at] - 2 * q * sums[Sum::CellSum][at] + n * q * q
                })
                .collect(),
            Mechanism::Kernel => sums[Sum::Features].clone(),
            Mechanism::Rows => sums[Sum::Rows].clone(),
            Mechanism::Totals => sums[Sum::Sum].clone(),
            Mechanism::Products => sums[Sum::Outer].clone(),
        }
    }
}

/// How far the integer of a kernel value is from 2²³ times the value of the kernel at most. Distances in single precision
/// are off by (d + 3)·2⁻²⁴ of themselves, and x·e⁻ˣ < 0.37; the polynomial and rounding add less than 5 units, and each
/// of at most four squarings doubles what there was.
pub(super) fn kernel_error(dims: usize) -> u64 {
    16 * (dims as u64 + 17)
}

/// A row x moves the kernel sums of one bandwidth by k(x) = (κ(x, x̃_1), …, κ(x, x̃_m)), and ‖k(x)‖² ≤ λ_max(K) since
/// κ(x, x) = 1. The largest row sum of K bounds λ_max, and the integers of the pass are `kernel_error` off.
fn kernel_sensitivity(plan: &Plan, landmarks: &Points) -> BigUint {
    let m = landmarks.len();
    let ladder = plan.kernel.ladder(&plan.bandwidths);
    let mut largest = vec![0u64; plan.bandwidths.len()];
    for row in landmarks.rows() {
        let mut sums = vec![0u64; largest.len()];
        for j in 0..m {
            let s = distance(plan.kernel, Rows::from(row), landmarks, None, j);
            let units = kernel_units(s, &ladder);
            sums.iter_mut().zip(units).for_each(|(sum, units)| *sum += u64::from(units));
        }
        largest.iter_mut().zip(sums).for_each(|(most, sum)| *most = sum.max(*most));
    }
    let error = kernel_error(plan.dims());
    let most = |sum: u64| {
        // (√λ·2²³ + √m·E)², with λ·2²³ ≤ sum + mE.
        let lambda = (BigUint::from(sum) + m as u64 * error) << 23;
        let rounding = BigUint::from(error).pow(2) * m as u64;
        let product: BigUint = &lambda * &rounding;
        let mixed = product.sqrt() + 1u32;
        lambda + rounding + 2u32 * mixed
    };
    largest.into_iter().map(most).sum()
}

/// cos² + sin² is 1 for each frequency; computed, it is less than one part in 2¹³ larger.
fn fourier_sensitivity(plan: &Plan) -> BigUint {
    let ones = BigUint::from((plan.features.points().len() * plan.bandwidths.len()) as u64);
    (&ones << 46) + (ones << 33)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nysketch_core::kernel::Kernel;
    use nysketch_core::kernel::fourier;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]
        /// The integers of the pass are as near to the kernel as is claimed, by a margin.
        #[test]
        fn kernel_values_are_off_by_less(
            d in 1usize..200, scale in -20i32..20, seed in any::<u64>(), laplace in any::<bool>(),
        ) {
            let next = |i: usize| {
                let x = nysketch_core::rows::sample::mix(seed ^ i as u64) as f64 / 2f64.powi(64) - 0.5;
                (x * 2f64.powi(scale)) as f32
            };
            let kernel = if laplace { Kernel::Laplace } else { Kernel::Gaussian };
            let points = Points::new(d, (0..2 * d).map(next).collect());
            let typical = if laplace { d as f64 * 2f64.powi(scale) } else { (d as f64).sqrt() * 2f64.powi(scale) };
            let widest = typical * typical * 2f64.powi((seed % 9) as i32 - 4);
            let step = kernel.squared(widest) / widest;
            let bandwidths: Vec<f64> = (0..6).map(|i| widest * step.powi(i)).collect();
            let s = distance(kernel, Rows::from(points.row(0)), &points, None, 1);
            let pairs = || points.row(0).iter().zip(points.row(1)).map(|(a, b)| f64::from(*a) - f64::from(*b));
            let exact = match laplace {
                true => pairs().map(f64::abs).sum::<f64>(),
                false => pairs().map(|t| t * t).sum::<f64>(),
            };
            for (units, sigma2) in kernel_units(s, &kernel.ladder(&bandwidths)).iter().zip(&bandwidths) {
                let value = 2f64.powf(exact * kernel.rate(*sigma2)) * 2f64.powi(23);
                let off = (f64::from(*units) - value).abs();
                prop_assert!(off <= 0.5 * kernel_error(d) as f64, "{off} for {d} columns");
            }
        }
    }

    #[test]
    fn cosines_and_sines_are_hardly_longer_than_one() {
        for i in 0..200_000u32 {
            let (cos, sin) = fourier::units(i as f32 * 1e-4 - 10.0, 1.0);
            let square = i64::from(cos).pow(2) + i64::from(sin).pow(2);
            assert!(square <= (1 << 46) + (1 << 32), "{i}: {square}");
        }
    }
}
