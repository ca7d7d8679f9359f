//! Fixed point: converts real numbers to integers whose sums are exact.
//!
//! Integer addition is associative, commutative and invertible. A sum of fixed-point values
//! therefore does not depend on the order, the split or the number of threads, and a term can be
//! removed again. Two kinds of values are summed:
//!
//! * features in `[-1, 1]` (kernel values, cosines, sines), in units of 2⁻²³;
//! * coordinates, `q = round(y · 2⁻ᵉ)` with `|q| ≤ 2⁴⁴`. The plan holds a power-of-two unit `2ᵉ`
//!   for each column. Products of two coordinates are exact integers up to 2⁸⁸.
//!
//! With at most 2³⁸ rows (weights counted), every sum stays below 2¹²⁶ and fits in 128 bits.

/// Number of units in a feature of value 1: 2²³.
pub const FEATURE_ONE: u32 = 1 << 23;

/// Largest magnitude of a quantised coordinate: 2⁴⁴.
pub const COORDINATE_LIMIT: i64 = 1 << COORDINATE_BITS;

/// log₂ of [`COORDINATE_LIMIT`].
pub const COORDINATE_BITS: i32 = 44;

/// Largest number of rows of a sketch, weights counted: 2³⁸ ≈ 2.7·10¹¹.
pub const MAX_WEIGHT: i128 = 1 << 38;

/// Converts a sum of features in units of 2⁻²³ to its value.
pub fn feature_value(sum: i128) -> f64 {
    sum as f64 / f64::from(FEATURE_ONE)
}

/// 2ᵉ as a double, exact for every exponent that a plan may hold.
pub fn power_of_two(exponent: i32) -> f64 {
    debug_assert!((-1022..=1023).contains(&exponent));
    f64::from_bits(((exponent + 1023) as u64) << 52)
}

/// Converts a sum of quantised coordinates in units of `2^exponent` to its value.
pub fn coordinate_value(sum: i128, exponent: i32) -> f64 {
    sum as f64 * power_of_two(exponent)
}

/// `Σpq − Σp Σq / n`, computed in integers up to the last step, so that cancellation loses no
/// digits. Requires n > 0 and |Σp|, |Σq| ≤ n·2⁴⁴.
pub fn centred_sum(product: i128, p: i128, q: i128, n: i128) -> f64 {
    // p = an + b, q = cn + d: pq/n = aq + bc + bd/n, with |aq| ≤ 2¹²⁶, |bc| ≤ 2⁸² and |bd| ≤ 2⁷⁶.
    let (a, b) = (p / n, p % n);
    let (c, d) = (q / n, q % n);
    // The difference can exceed 2¹²⁷ only for sums that are not possible for any rows.
    let whole = product.saturating_sub(a * q + b * c + b * d / n);
    whole as f64 - (b * d % n) as f64 / n as f64
}

/// Whether rows of total weight n > 0 can have these sums: `n Σq² ≥ (Σq)²`, and Σq² and Σq are both
/// even or both odd, because q² and q are. Requires |Σq| ≤ n·2⁴⁴.
pub fn squares_possible(square: i128, sum: i128, n: i128) -> bool {
    // Σq = an + b: (Σq)²/n = a Σq + ab + b²/n, rounded up.
    let (a, b) = (sum / n, sum % n);
    let min_square = a * sum + a * b + (b * b + n - 1) / n;
    square >= min_square && (square ^ sum) & 1 == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn sums_at_their_bounds() {
        let (n, limit) = (MAX_WEIGHT, i128::from(COORDINATE_LIMIT));
        let far = centred_sum(n * limit * limit, n * limit, -n * limit, n);
        assert!(far > 1e38, "{far}");
        assert_eq!(centred_sum(n * limit * limit, n * limit, n * limit, n), 0.0);
        assert!(squares_possible(n * limit * limit, n * limit, n));
        assert!(squares_possible(n * limit * limit, -n * limit, n));
    }

    proptest! {
        /// Sums of rows are possible. Equal rows have the smallest sum of squares, so a smaller sum
        /// is impossible.
        #[test]
        fn squares_of_rows(
            rows in prop::collection::vec(
                (1i128..1000, -COORDINATE_LIMIT..=COORDINATE_LIMIT),
                1..20,
            ),
            bits in 0u32..44,
        ) {
            let rows: Vec<(i128, i128)> =
                rows.iter().map(|(w, q)| (*w, i128::from(q >> bits))).collect();
            let n: i128 = rows.iter().map(|(w, _)| w).sum();
            let sum: i128 = rows.iter().map(|(w, q)| w * q).sum();
            let square: i128 = rows.iter().map(|(w, q)| w * q * q).sum();
            prop_assert!(squares_possible(square, sum, n));
            prop_assert!(!squares_possible(square + 1, sum, n));
            let (w, q) = rows[0];
            prop_assert!(squares_possible(w * q * q, w * q, w));
            prop_assert!(!squares_possible(w * q * q - 2, w * q, w));
        }
    }
}
