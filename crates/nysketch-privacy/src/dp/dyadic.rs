//! Exact numbers `n·2^e` of any length, and the rounding of doubles: slow and obviously correct
//! arithmetic.
//!
//! Only magnitudes are needed, because rounding to nearest is symmetric in the sign.

use num_bigint::BigUint;

/// Number of significant bits of a double.
const DIGITS: i64 = 53;

/// Exponent of the smallest positive double.
const LEAST: i64 = -1074;

/// A number `n·2^e ≥ 0`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Dyadic {
    digits: BigUint,
    exponent: i64,
}

impl Dyadic {
    /// Returns the magnitude of a finite double.
    pub fn of(x: f64) -> Self {
        let bits = x.abs().to_bits();
        let (exponent, fraction) = ((bits >> 52) as i64, bits & ((1 << 52) - 1));
        if exponent == 0 {
            return Dyadic { digits: fraction.into(), exponent: LEAST };
        }
        Dyadic { digits: (fraction | (1 << 52)).into(), exponent: exponent - 1075 }
    }

    /// Returns `|x − y|` for finite doubles.
    pub fn difference(x: f64, y: f64) -> Self {
        let (a, b) = (Dyadic::of(x), Dyadic::of(y));
        let exponent = a.exponent.min(b.exponent);
        let (a, b) = (a.digits_at(exponent), b.digits_at(exponent));
        let digits = if x.is_sign_negative() != y.is_sign_negative() {
            a + b
        } else if a > b {
            a - b
        } else {
            b - a
        };
        Dyadic { digits, exponent }
    }

    /// Rounds to the nearest double, with an unbounded exponent.
    pub fn rounded(self) -> Self {
        let excess = (self.digits.bits() as i64 - DIGITS).max(LEAST - self.exponent);
        if excess <= 0 {
            return self;
        }
        Dyadic { digits: half_even(&self.digits, excess), exponent: self.exponent + excess }
    }

    /// Returns the double nearest to `1/x`, x > 0.
    pub fn inverse(&self) -> Self {
        // Twice as many bits as a double, and a last bit that is set if bits are lost.
        let places = self.digits.bits() + 2 * DIGITS as u64;
        let one = BigUint::from(1u32) << places;
        let (whole, rest) = (&one / &self.digits, &one % &self.digits);
        let more = u32::from(rest != BigUint::ZERO);
        let exponent = -self.exponent - places as i64 - 1;
        Dyadic { digits: (whole << 1u32) + more, exponent }.rounded()
    }

    /// Returns the exact product.
    pub fn times(&self, other: &Dyadic) -> Self {
        let exponent = self.exponent + other.exponent;
        Dyadic { digits: &self.digits * &other.digits, exponent }
    }

    /// Returns the exact product with a power of two.
    pub fn scaled(self, exponent: i64) -> Self {
        Dyadic { exponent: self.exponent + exponent, ..self }
    }

    /// Returns the nearest integer.
    pub fn whole(&self) -> BigUint {
        if self.exponent >= 0 {
            return &self.digits << self.exponent;
        }
        half_even(&self.digits, -self.exponent)
    }

    /// Returns n of `n·2^exponent`, for exponents up to its own.
    fn digits_at(&self, exponent: i64) -> BigUint {
        &self.digits << (self.exponent - exponent)
    }
}

/// Returns `n / 2^bits` rounded to the nearest integer, ties to even.
fn half_even(n: &BigUint, bits: i64) -> BigUint {
    let whole = n >> bits;
    let rest = n - (&whole << bits);
    let half = BigUint::from(1u32) << (bits - 1);
    let up = rest > half || rest == half && whole.bit(0);
    whole + u32::from(up)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Any finite double.
    fn double() -> impl Strategy<Value = f64> {
        any::<u64>().prop_map(f64::from_bits).prop_filter("finite", |x| x.is_finite())
    }

    /// Converts a number that is exactly a double.
    fn value(x: &Dyadic) -> f64 {
        let digits: u64 = (&x.digits).try_into().unwrap();
        // In two steps, because 2^e of the smallest doubles cannot be represented.
        let half = (x.exponent / 2) as i32;
        digits as f64 * 2f64.powi(half) * 2f64.powi(x.exponent as i32 - half)
    }

    proptest! {
        /// Rounded results equal those of the processor.
        #[test]
        fn arithmetic_is_that_of_doubles(x in double(), y in double(), shift in -60i32..60) {
            prop_assert_eq!(value(&Dyadic::of(x)), x.abs());
            let near = x * (1.0 + 2f64.powi(shift));
            for (x, y) in [(x, y), (x, near)] {
                let exact = (x - y).abs();
                if exact.is_finite() {
                    prop_assert_eq!(value(&Dyadic::difference(x, y).rounded()), exact);
                }
                let exact = (x * y).abs();
                if exact.is_finite() {
                    prop_assert_eq!(value(&Dyadic::of(x).times(&Dyadic::of(y)).rounded()), exact);
                }
            }
            let inverse = (1.0 / x).abs();
            if x != 0.0 && inverse.is_finite() {
                prop_assert_eq!(value(&Dyadic::of(x).inverse()), inverse);
            }
        }

        #[test]
        fn whole_numbers_are_the_nearest(halves in any::<u32>(), zeros in 0i64..9) {
            let x = Dyadic { digits: BigUint::from(halves) << zeros, exponent: -1 - zeros };
            let expected = (f64::from(halves) / 2.0).round_ties_even() as u64;
            prop_assert_eq!(x.whole(), BigUint::from(expected));
        }
    }
}
