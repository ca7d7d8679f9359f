//! The maximum effect of one row on kernel sums.
//!
//! ```text
//! Δ² = max_x Σ_j round(2²³κ̂(x, x̃_j))²  ≤  (√A + √B)² ,   A = 2²³·λ̄ ,   B = m·E²
//! λ̄ = max_i ⌈(K⁺v)_i / v_i⌉ ,   K⁺_ij = K̂_ij + min(E, 2 + ⌊K̂_ij·E / 2¹⁷⌋) ,   v > 0
//! E = 64 + ⌈d/4⌉
//! ```
//!
//! for each bandwidth; squares add up over bandwidths. K̂ contains the integers of the pass for
//! pairs of landmarks; κ̂ is the kernel as the pass computes it.
//!
//! # Proof
//! *Exact kernel.* Let φ be the feature map of κ, and K the kernel matrix of the landmarks. A row
//! adds k(x) = (κ(x, x̃_1), …, κ(x, x̃_m)) = Φᵀφ(x), so ‖k(x)‖² ≤ λ_max(K)·κ(x, x) = λ_max(K).
//!
//! *Error of the pass.* Let u = 2⁻²⁴ and x = −ln κ. A computed distance has a relative error below
//! 1.01·(d + 4)·u: one rounding of each difference, one of each sum, and that of the rate. It
//! changes κ by a factor e^±y with y = 1.01·(d + 4)·u·x. This holds at every rung, because squaring
//! doubles x and y. For x ≥ 20.8, κ is held at 2⁻³⁰, and its integer is zero. The relative error of
//! the polynomial is below 3 units of 2⁻²³. A rung has at most four squarings, which increase that
//! to 48 units and add 15 roundings of u. Therefore
//!
//! ```text
//! |κ̂ − κ| ≤ κ·η(x) ,   2²³·η(x) ≤ 0.54·(d + 4)·x + 56 ,   and rounding to an integer adds ½
//! ```
//!
//! Because x·e⁻ˣ < 0.37, the error of an integer of the pass is below 0.2·(d + 4) + 57 < E, so that
//! ‖k̂(x)‖ ≤ 2²³·‖k(x)‖ + √m·E. Tests compare the errors with exact kernels, and the polynomial
//! with 2ᶠ at every single.
//!
//! *K⁺ covers the errors.* 2²³K_ij ≤ K⁺_ij, because 2²³K_ij − K̂_ij is below E, and also below
//! ½ + (K̂_ij + ½)·η/(1 − η) ≤ 2 + ⌊K̂_ij·E/2¹⁷⌋: for x ≤ 20.8 and d ≤ 2¹⁶, 2²³·η/(1 − η) is at
//! most 12.4·(d + 4) + 62 < 64·E. No entry of K is negative, so λ_max(2²³K) ≤ λ_max(K⁺).
//!
//! *Certificate* (Collatz 1942, Wielandt 1950). A matrix without negative entries has λ_max ≤ max_i
//! (K⁺v)_i/v_i for any v > 0: these are the row sums of V⁻¹K⁺V, V = diag(v), which has the same
//! eigenvalues. The bound holds for every v, and a v near the first eigenvector makes it small. v
//! is the result of [`MULTIPLICATIONS`] multiplications of a power iteration in integers. The first
//! bound, with v = 1, is the largest row sum, so the result is never above that. Every number is an
//! integer, so the result is the same on all machines.
//!
//! # Cost
//! m²·d/2 operations for the distances, and 30·m²/2 for each bandwidth: 0.05 s for 1,000 landmarks,
//! 20 columns and 3 bandwidths.

use num_bigint::BigUint;
use nysketch_core::error::Result;
use nysketch_core::kernel::row::Rows;
use nysketch_core::kernel::scalar::{distance, kernel_units};
use nysketch_core::numeric::points::Points;
use nysketch_core::plan::Plan;
use nysketch_core::plan::private::check_work;

/// Number of multiplications of a matrix and a vector for each bandwidth.
const MULTIPLICATIONS: usize = 30;

/// Number of bits of the entries of a vector.
const VECTOR_BITS: u32 = 27;

/// Returns E: the integers of the pass differ from 2²³κ by less than E.
pub(super) fn pass_error(dims: usize) -> u64 {
    64 + (dims as u64).div_ceil(4)
}

/// A positive vector, and the bound that it proves for the largest eigenvalue of a matrix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Certificate {
    /// v.
    pub vector: Vec<u32>,
    /// `max_i ⌈(K⁺v)_i / v_i⌉`, in units of 2⁻²³.
    pub bound: u64,
}

/// Returns the certificate of each bandwidth.
pub(super) fn certificates(plan: &Plan, landmarks: &Points) -> Result<Vec<Certificate>> {
    check_work(landmarks.len(), landmarks.dims(), plan.bandwidths.len())?;
    Ok(matrices(plan, landmarks).iter().map(|matrix| certify(matrix, landmarks.len())).collect())
}

/// Returns Δ² of the kernel sums at landmarks.
pub(super) fn sensitivity(plan: &Plan, landmarks: &Points) -> Result<BigUint> {
    let error = BigUint::from(pass_error(landmarks.dims()));
    let rounding = error.pow(2) * landmarks.len();
    let of_bandwidth = |certificate: Certificate| {
        let exact = BigUint::from(certificate.bound) << 23;
        let product: BigUint = &exact * &rounding;
        let mixed = product.sqrt() + 1u32;
        exact + &rounding + 2u32 * mixed
    };
    Ok(certificates(plan, landmarks)?.into_iter().map(of_bandwidth).sum())
}

/// Returns the lower triangle of K⁺ for each bandwidth, row after row.
fn matrices(plan: &Plan, landmarks: &Points) -> Vec<Vec<u32>> {
    let ladder = plan.kernel.ladder(&plan.bandwidths);
    let error = pass_error(landmarks.dims());
    let m = landmarks.len();
    let mut matrices = vec![Vec::with_capacity(m * (m + 1) / 2); plan.bandwidths.len()];
    for (i, row) in landmarks.rows().enumerate() {
        for j in 0..=i {
            let s = distance(plan.kernel, Rows::from(row), landmarks, None, j);
            for (matrix, units) in matrices.iter_mut().zip(kernel_units(s, &ladder)) {
                matrix.push(units + error_of(units, error));
            }
        }
    }
    matrices
}

/// Returns the maximum excess of 2²³κ over this integer of the pass.
fn error_of(units: u32, error: u64) -> u32 {
    // At most E, which is below 2¹⁵.
    (2 + ((u64::from(units) * error) >> 17)).min(error) as u32
}

/// Returns the best certificate of a power iteration.
fn certify(triangle: &[u32], m: usize) -> Certificate {
    let mut vector = vec![1u32; m];
    let mut best = Certificate { vector: vector.clone(), bound: u64::MAX };
    for _ in 0..MULTIPLICATIONS {
        let product = multiply(triangle, &vector);
        let ratios = product.iter().zip(&vector).map(|(p, v)| p.div_ceil(u64::from(*v)));
        let bound = ratios.max().unwrap_or(0);
        if bound < best.bound {
            best = Certificate { vector: vector.clone(), bound };
        }
        let most = product.iter().copied().max().unwrap_or(0);
        let shift = (u64::BITS - most.leading_zeros()).saturating_sub(VECTOR_BITS);
        vector = product.iter().map(|p| (p >> shift) as u32 + 1).collect();
    }
    best
}

/// Multiplies a symmetric matrix, given by its lower triangle, by a vector.
fn multiply(triangle: &[u32], vector: &[u32]) -> Vec<u64> {
    let mut product = vec![0u64; vector.len()];
    let mut rest = triangle;
    for (i, own) in vector.iter().enumerate() {
        let (row, after) = rest.split_at(i + 1);
        rest = after;
        let own = u64::from(*own);
        let mut sum = u64::from(row[i]) * own;
        for ((k, v), p) in row[..i].iter().zip(vector).zip(&mut product) {
            sum += u64::from(*k) * u64::from(*v);
            *p += u64::from(*k) * own;
        }
        product[i] += sum;
    }
    product
}

#[cfg(test)]
mod tests {
    use super::*;
    use nysketch_core::kernel::Kernel;
    use nysketch_core::kernel::exp2::exp2_product;
    use nysketch_core::plan::private::MOST_LANDMARKS;
    use proptest::prelude::*;

    /// Returns `2²³κ` from the distance in double precision.
    fn exact_units(kernel: Kernel, points: &Points, sigma2: f64) -> f64 {
        let pairs = points.row(0).iter().zip(points.row(1));
        let apart = pairs.map(|(a, b)| f64::from(*a) - f64::from(*b));
        let s: f64 = match kernel {
            Kernel::Laplace => apart.map(f64::abs).sum(),
            _ => apart.map(|t| t * t).sum(),
        };
        2f64.powf(s * kernel.rate(sigma2)) * 2f64.powi(23)
    }

    /// Returns two points of d columns at a distance of about `scale`, and six bandwidths of this
    /// size.
    fn two_points(d: usize, scale: i32, seed: u64, kernel: Kernel) -> (Points, Vec<f64>) {
        let coordinate = |i: usize| {
            let x = nysketch_core::rows::sample::mix(seed ^ i as u64) as f64 / 2f64.powi(64) - 0.5;
            (x * 2f64.powi(scale)) as f32
        };
        let points = Points::new(d, (0..2 * d).map(coordinate).collect());
        let typical = match kernel {
            Kernel::Laplace => d as f64 * 2f64.powi(scale),
            _ => (d as f64).sqrt() * 2f64.powi(scale),
        };
        let widest = typical * typical * 2f64.powi((seed % 9) as i32 - 4);
        let step = kernel.squared(widest) / widest;
        (points, (0..6).map(|i| widest * step.powi(i)).collect())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]
        /// The integers of the pass are within the claimed error of the kernel, and K⁺ is above it.
        #[test]
        fn kernel_values_are_within_their_error(
            d in 1usize..2000, scale in -20i32..20, seed in any::<u64>(), laplace in any::<bool>(),
        ) {
            let kernel = if laplace { Kernel::Laplace } else { Kernel::Gaussian };
            let (points, bandwidths) = two_points(d, scale, seed, kernel);
            let s = distance(kernel, Rows::from(points.row(0)), &points, None, 1);
            let units = kernel_units(s, &kernel.ladder(&bandwidths));
            for (units, sigma2) in units.into_iter().zip(&bandwidths) {
                let (value, error) = (exact_units(kernel, &points, *sigma2), pass_error(d));
                let off = (f64::from(units) - value).abs();
                prop_assert!(off <= 0.75 * error as f64, "{off} for {d} columns");
                let above = f64::from(units + error_of(units, error));
                prop_assert!(value <= above, "{value} above {above} for {d} columns");
            }
        }

        /// For any matrix, the certificate is between the largest eigenvalue, from a long power
        /// iteration in doubles, and the largest row sum.
        #[test]
        fn certificates_bound_the_largest_eigenvalue(
            m in 1usize..30, bits in 0u32..24, seed in any::<u64>(),
        ) {
            let random = |at: usize| nysketch_core::rows::sample::mix(seed ^ at as u64);
            let entry = |at: usize| (random(at) >> (40 + bits)) as u32 + 2;
            let triangle: Vec<u32> = (0..m * (m + 1) / 2).map(entry).collect();
            let at = |i: usize, j: usize| {
                let (row, column) = (i.max(j), i.min(j));
                f64::from(triangle[row * (row + 1) / 2 + column])
            };
            let mut v = vec![1.0; m];
            let mut largest = 0.0;
            for _ in 0..300 {
                let w: Vec<f64> = (0..m).map(|i| (0..m).map(|j| at(i, j) * v[j]).sum()).collect();
                let dot = |a: &[f64], b: &[f64]| -> f64 { a.iter().zip(b).map(|(a, b)| a * b).sum() };
                largest = dot(&w, &v) / dot(&v, &v);
                let most = w.iter().copied().fold(0.0, f64::max);
                v = w.iter().map(|x| x / most).collect();
            }
            let certificate = certify(&triangle, m);
            let rows = (0..m).map(|i| (0..m).map(|j| at(i, j)).sum::<f64>()).fold(0.0, f64::max);
            // The iteration in doubles rounds 300 times.
            prop_assert!(certificate.bound as f64 >= largest * (1.0 - 1e-9));
            prop_assert!(certificate.bound as f64 <= rows);
        }
    }

    #[test]
    fn sums_of_products_fit_64_bits() {
        let (m, d) = (MOST_LANDMARKS as u128, 1 << 16);
        let entry = u128::from((1u32 << 23) + error_of(1 << 23, pass_error(d)));
        assert!(m * entry * (1 << VECTOR_BITS) <= u128::from(u64::MAX));
        assert!(check_work(MOST_LANDMARKS, 1, 1).is_ok());
        for (m, d, l) in
            [(MOST_LANDMARKS + 1, 1, 1), (5000, 1, 3), (1000, 10_000, 1), (usize::MAX, 1, 1)]
        {
            assert!(check_work(m, d, l).is_err(), "{m} {d} {l}");
        }
    }

    /// The relative error of the polynomial is below 3 units at every single from −½ to ½. Takes
    /// about ten seconds.
    #[test]
    #[ignore = "looks at 436 million singles"]
    fn every_fraction_is_within_three_units() {
        let mut worst = 0.0f64;
        // Below 2⁻²⁷, the polynomial is 1 or the adjacent single.
        for bits in 0x3200_0000..=0x3f00_0000u32 {
            for f in [f32::from_bits(bits), -f32::from_bits(bits)] {
                worst =
                    worst.max((f64::from(exp2_product(f, 1.0)) / f64::from(f).exp2() - 1.0).abs());
            }
        }
        assert!(worst * 2f64.powi(23) < 2.0, "{worst}");
    }
}
