//! An independent bound on the effect of one row on the sums. It uses only the bounds, the frame,
//! the radius and the landmarks of a plan, integers of any length, and no code of
//! [`sensitivity`](super::sensitivity).
//!
//! ```text
//! counts, rows   1
//! sums           S = ⌊R²·(1 + (d + 16)·2⁻⁵³)⌋
//! squares        S²
//! totals         Σ_j r_j² ,   r_j = the larger |q_j| of the two bounds, rounded as in the pass
//! products       Σ_{i≥j} (r_i·r_j)²
//! kernel         Σ_σ (2²³·√λ + √m·(60 + d/4))² ,   λ = max_i (K↑v)_i / v_i ,   K↑ ≥ K entrywise
//! ```
//!
//! [`check`] compares both whenever noise is drawn. A claim below this bound, or a variance that is
//! too small for it, is an error, so that a mistake in one computation is detected.
//!
//! # Proof
//! *Totals, products.* The pass computes fl(fl(x − c)·fl(1/s))·2^−e and rounds it to an integer.
//! [`Dyadic`] has the same roundings of exact numbers. Rounding never reverses an order, so a row
//! between the bounds has |q_j| ≤ r_j.
//!
//! *Sums.* Let s be the computed Σu², a sum of d rounded products of integers: s = Σu²·(1 + θ), |θ|
//! ≤ (d + 2)·2⁻⁵³. If s ≤ fl(R²), the row is unchanged. Otherwise each u_k is multiplied by
//! fl(R/fl(√s)) and truncated: six more roundings. In both cases Σu² ≤ R²·(1 + (d + 16)·2⁻⁵³), and
//! it is an integer. Squares: no u_k² is larger than their sum.
//!
//! *Kernel sums.* ‖k(x)‖² ≤ λ_max(K) ≤ max_i (Kv)_i/v_i for any v > 0 (Collatz, Wielandt), and
//! therefore for any K↑ ≥ K ≥ 0. v is the vector of the claim; the bound holds for every v, so it
//! need not be trusted. The distance is computed in doubles from singles and reduced by the factor
//! 1 − (d + 16)·2⁻⁵³, which exceeds its roundings. [`Exponential`] bounds e⁻ˣ from above: x is
//! rounded down to a multiple of 2⁻⁴⁰, and the factors e^−2^k of its bits are multiplied, each
//! rounded up. They are computed from Σ_n (−y)ⁿ/n! ≥ e^−y, truncated after an even n, and from
//! squares. Integers of the pass differ from 2²³κ by less than 60 + d/4: see
//! [`kernel`](super::kernel).
//!
//! *Frequencies.* [`LONGEST_WAVE`] is the largest value over all angles, every one of which was
//! computed.
//!
//! # Cost
//! A tenth of a second for 1,000 landmarks, 20 columns and 3 bandwidths, including the vectors, and
//! two seconds for the maximum number of landmarks. Everything else takes microseconds.

use super::dyadic::Dyadic;
use super::kernel::certificates;
use super::mechanism::Mechanism;
use super::terms::Terms;
use num_bigint::BigUint;
use nysketch_core::error::{Error, Result};
use nysketch_core::kernel::Kernel;
use nysketch_core::numeric::points::Points;
use nysketch_core::plan::private::Private;
use nysketch_core::plan::{Features, Plan};

/// The largest `cos² + sin²` of the integers of the pass, over all angles.
pub(super) const LONGEST_WAVE: u64 = (1 << 46) + 20_412_552;

/// Number of fractional bits of the entries of K↑.
const ENTRY_BITS: u32 = 32;

/// Checks that the claims of the terms, and their noise, are sufficient for the independent bound.
pub(super) fn check(terms: &Terms, plan: &Plan) -> Result<()> {
    let rows = BigUint::from(terms.person_rows.unwrap_or(1));
    for spending in &terms.spendings {
        let bound = of_row(spending.mechanism, plan)? * &rows * &rows;
        if spending.sensitivity < bound {
            return Err(contradiction(spending.mechanism, &spending.sensitivity, &bound));
        }
        // ρ·2σ² ≥ Δ², in units of 2⁻⁵⁶ and 2⁻¹⁶. With H honest shares, 1/64 is reserved for the
        // deviation of their sum from a discrete Gaussian.
        let (honest, all, left) = match terms.shared {
            None => (1, 1u32, 1u32),
            Some(shared) => (shared.honest, 4096, 3969),
        };
        let noise = spending.variance.units() * spending.rho.0 * honest * left;
        if noise < (bound << 71u32) * all {
            let noise = spending.variance.to_string();
            return Err(Error::TooLittleNoise { mechanism: spending.mechanism.name(), noise });
        }
    }
    Ok(())
}

fn contradiction(mechanism: Mechanism, claimed: &BigUint, bound: &BigUint) -> Error {
    let (claimed, bound) = (claimed.to_string(), bound.to_string());
    Error::SensitivityContradicted { mechanism: mechanism.name(), claimed, bound }
}

/// Returns an upper bound of Δ² for one row.
pub(super) fn of_row(mechanism: Mechanism, plan: &Plan) -> Result<BigUint> {
    let Some(private) = &plan.private else { return Err(Error::NotPrivate) };
    Ok(match mechanism {
        Mechanism::Counts | Mechanism::Rows => BigUint::from(1u32),
        Mechanism::Sums => near_landmark(private.radius, plan.columns.len()),
        Mechanism::Squares => near_landmark(private.radius, plan.columns.len()).pow(2),
        Mechanism::Totals => farthest_squares(private, plan).into_iter().sum(),
        Mechanism::Products => products(&farthest_squares(private, plan)),
        Mechanism::Kernel => match &plan.features {
            Features::Nystrom(landmarks, _) => {
                let vectors: Vec<Vec<u32>> =
                    certificates(plan, landmarks)?.into_iter().map(|c| c.vector).collect();
                kernel_sums(plan, landmarks, &vectors)?
            }
            Features::Fourier(frequencies, _) => {
                BigUint::from(LONGEST_WAVE) * frequencies.len() * plan.bandwidths.len()
            }
        },
    })
}

/// Returns `⌊R²·(1 + (d + 16)·2⁻⁵³)⌋`.
fn near_landmark(radius: u64, dims: usize) -> BigUint {
    let square = BigUint::from(radius) * radius;
    (&square * ((1u64 << 53) + dims as u64 + 16)) >> 53u32
}

/// Returns `r_j²`.
fn farthest_squares(private: &Private, plan: &Plan) -> Vec<BigUint> {
    let frame = &plan.frame;
    let farthest = |j: usize| {
        let away = |bound: f64| {
            let inverse = Dyadic::of(frame.scale[j]).inverse();
            let y = Dyadic::difference(bound, frame.centre[j]).rounded().times(&inverse).rounded();
            y.scaled(-i64::from(frame.exponent[j])).whole()
        };
        away(private.low[j]).max(away(private.high[j])).pow(2)
    };
    (0..plan.columns.len()).map(farthest).collect()
}

/// Returns `Σ_{i≥j} r_i²·r_j²`.
fn products(squares: &[BigUint]) -> BigUint {
    let (mut before, mut all) = (BigUint::ZERO, BigUint::ZERO);
    for square in squares {
        before += square;
        all += square * &before;
    }
    all
}

/// Bounds the kernel sums at landmarks, with a positive vector for each bandwidth.
fn kernel_sums(plan: &Plan, landmarks: &Points, vectors: &[Vec<u32>]) -> Result<BigUint> {
    let fits = |v: &Vec<u32>| v.len() == landmarks.len() && v.iter().all(|x| *x > 0);
    if vectors.len() != plan.bandwidths.len() || !vectors.iter().all(fits) {
        let expected = "a positive vector for each bandwidth";
        return Err(Error::parameter("the bound of kernel sums", expected, "others"));
    }
    let exponential = Exponential::new();
    let (m, d) = (landmarks.len() as u64, landmarks.dims() as u64);
    let of_bandwidth = |(sigma2, vector): (&f64, &Vec<u32>)| {
        let lambda = eigenvalue_bound(plan.kernel, landmarks, *sigma2, vector, &exponential);
        // (2²³√λ + √m·w/4)² with λ = l·2⁻³² and w = 240 + d: l·2¹⁴ + m·w²/16 + 2⁶·w·√(l·m), rounded
        // up.
        let quarters = 240 + d;
        let rounding = (BigUint::from(m) * quarters * quarters + 15u32) >> 4u32;
        let product: BigUint = (&lambda * m * quarters * quarters) << 12u32;
        (lambda << 14u32) + rounding + product.sqrt() + 1u32
    };
    Ok(plan.bandwidths.iter().zip(vectors).map(of_bandwidth).sum())
}

/// Returns `max_i ⌈(K↑v)_i / v_i⌉` in units of 2⁻³².
fn eigenvalue_bound(
    kernel: Kernel,
    landmarks: &Points,
    sigma2: f64,
    vector: &[u32],
    exponential: &Exponential,
) -> BigUint {
    let lower = 1.0 - (landmarks.dims() + 16) as f64 * 2f64.powi(-53);
    let per_distance = match kernel {
        Kernel::Gaussian => lower / (2.0 * sigma2),
        Kernel::Laplace => lower / sigma2.sqrt(),
    };
    let mut product = vec![0u128; vector.len()];
    for (i, x) in landmarks.rows().enumerate() {
        for (j, z) in landmarks.rows().take(i + 1).enumerate() {
            let apart = x.iter().zip(z).map(|(x, z)| f64::from(*x) - f64::from(*z));
            let s: f64 = match kernel {
                Kernel::Gaussian => apart.map(|t| t * t).sum(),
                Kernel::Laplace => apart.map(f64::abs).sum(),
            };
            let entry = u128::from(exponential.above(s * per_distance));
            product[i] += entry * u128::from(vector[j]);
            if i != j {
                product[j] += entry * u128::from(vector[i]);
            }
        }
    }
    let ratios = product.iter().zip(vector).map(|(p, v)| p.div_ceil(u128::from(*v)));
    BigUint::from(ratios.max().unwrap_or(0))
}

/// Number of fractional bits of the arguments of exponentials.
const ARGUMENT_BITS: i32 = 40;

/// Number of integer bits of the arguments: arguments of 2⁵ or more are replaced by the largest one
/// below 2⁵.
const WHOLE_BITS: i32 = 5;

/// Number of fractional bits of the factors.
const FACTOR_BITS: u32 = 63;

/// A table for upper bounds of e⁻ˣ.
struct Exponential {
    /// `⌈2⁶³·e^(−2^k)⌉` or one more, for k from −40 to 4.
    factors: Vec<u64>,
}

impl Exponential {
    fn new() -> Self {
        let mut factors: Vec<u64> =
            (0..=ARGUMENT_BITS).map(|at| exponential_series(ARGUMENT_BITS - at)).collect();
        for _ in 1..WHOLE_BITS {
            let last = factors[factors.len() - 1];
            factors.push(times_up(last, last));
        }
        Exponential { factors }
    }

    /// Returns an upper bound of e⁻ˣ for x ≥ 0, in units of 2⁻³².
    fn above(&self, x: f64) -> u64 {
        let most = (1u64 << (ARGUMENT_BITS + WHOLE_BITS)) - 1;
        // Rounded down; a larger or infinite x becomes the largest argument.
        let mut bits = ((x * (1u64 << ARGUMENT_BITS) as f64) as u64).min(most);
        let mut product = 1u64 << FACTOR_BITS;
        while bits != 0 {
            product = times_up(product, self.factors[bits.trailing_zeros() as usize]);
            bits &= bits - 1;
        }
        product.div_ceil(1 << (FACTOR_BITS - ENTRY_BITS))
    }
}

/// Returns a product of factors, rounded up.
fn times_up(a: u64, b: u64) -> u64 {
    (u128::from(a) * u128::from(b)).div_ceil(1 << FACTOR_BITS) as u64
}

/// Returns `2⁶³·e^−y` for `y = 2^−k`, k ≥ 0, rounded up. The terms decrease and alternate in sign,
/// so a sum that ends with a positive term is an upper bound.
fn exponential_series(k: i32) -> u64 {
    /// Number of fractional bits of a term.
    const BITS: u32 = 128;
    let one = BigUint::from(1u32) << BITS;
    let (mut positive, mut negative) = (one.clone(), BigUint::ZERO);
    let mut factorial = BigUint::from(1u32);
    for n in 1..=40u32 {
        factorial *= n;
        let denominator = &factorial << (n * k as u32);
        if n % 2 == 0 {
            positive += (&one + &denominator - 1u32) / &denominator;
        } else {
            negative += &one / &denominator;
        }
    }
    let units = (positive - negative + ((BigUint::from(1u32) << (BITS - FACTOR_BITS)) - 1u32))
        >> (BITS - FACTOR_BITS);
    // Below 2⁶³, because e^−y is below one by more than 2⁻⁴¹.
    u64::try_from(units).unwrap_or(1 << FACTOR_BITS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// The bounds exceed the exponentials by at most two units of 2⁻³², and 2⁻⁴⁰ of the value
        /// for the rounding of the argument.
        #[test]
        fn exponentials_are_bounded_from_above(x in 0.0f64..31.0, bits in 0i32..50) {
            let exponential = Exponential::new();
            let x = x * 2f64.powi(-bits);
            let (above, exact) = (exponential.above(x) as f64, (-x).exp() * 2f64.powi(32));
            prop_assert!(above >= exact * (1.0 - 1e-15) && above <= exact + 2.0, "{above} {exact}");
        }
    }

    #[test]
    fn exponentials_of_all_arguments_are_bounded() {
        let exponential = Exponential::new();
        assert_eq!(exponential.above(0.0), 1 << ENTRY_BITS);
        for x in [40.0, 1e300, f64::INFINITY] {
            assert_eq!(exponential.above(x), 1);
        }
    }
}
