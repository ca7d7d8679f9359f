//! The sensitivity of a mechanism: the maximum effect of one row on its sums, from which the noise
//! is computed.
//!
//! ```text
//! Δ = max ‖f(T with x) − f(T)‖₂    over all tables T and rows x, in units of the integers
//!
//! counts, rows   Δ² = 1
//! sums           Δ² = P = R² + ⌊R²/2³¹⌋
//! squares        Δ² = P²
//! kernel         at landmarks: see `kernel`;   of frequencies: Lm·(2⁴⁶ + 2³³)
//! totals         Δ² = Q = Σ_j r_j²
//! products       Δ² = (Q² + Σ_j r_j⁴) / 2
//! ```
//!
//! # Proof
//! *Bounds.* Every x_j is clipped to [low_j, high_j]. q_j(x) is a chain of correctly rounded
//! operations that are monotone in x, so |q_j| is largest at one of the bounds, where it is r_j
//! ([`reach`]). `totals` moves by q, and Σq_j² ≤ Q. `products` contains each pair of columns once,
//! and Σ_{i≥j} (q_i q_j)² = ((Σq_j²)² + Σq_j⁴)/2, which increases with each |q_j|. A row at the
//! bounds attains both.
//!
//! *Cells.* A row is in one cell. It changes one count by one, d sums by u = q − a, and d squares
//! by u_k². Coordinates are integers below 2³¹, so u is exact. The computed s = Σu_k² has a
//! relative error below (d + 1)·2⁻⁵³. If s ≤ R², the true sum is at most R²(1 + 2⁻³³), because d is
//! at most 2¹⁶. Otherwise u becomes trunc(u·f), f = R/√s: the roundings of s, f and the products
//! are below 2⁻³⁴ together, and truncation only shortens, so Σu_k² ≤ R²(1 + 2⁻³³) again. It is an
//! integer, so it is at most P. Squares: Σu_k⁴ ≤ (Σu_k²)² ≤ P².
//!
//! *Frequencies.* Each frequency adds (cos, sin), whose squared length exceeds one by at most 2⁻¹³;
//! a test checks every single.
//!
//! *People.* A person adds at most K rows, so Δ is at most K times that of a row, by the triangle
//! inequality.
//!
//! [`reach`]: nysketch_core::plan::private::Private::reach
//!
//! [`bound`](super::bound) computes the same limits independently; a release compares the two.

use super::kernel;
use super::mechanism::Mechanism;
use num_bigint::BigUint;
use nysketch_core::error::{Error, Result};
use nysketch_core::plan::{Features, Plan};

/// Bound on the relative excess over the squared radius of cells: one part in 2³¹.
const ROUNDING_BITS: u32 = 31;

/// Returns Δ² of a mechanism for one row.
pub(super) fn of_row(mechanism: Mechanism, plan: &Plan) -> Result<BigUint> {
    let Some(private) = &plan.private else { return Err(Error::NotPrivate) };
    // A plan may have been changed since it was read, and every step of the proofs depends on the
    // rules of plans.
    plan.check()?;
    let square = match mechanism {
        Mechanism::Counts | Mechanism::Rows => BigUint::from(1u32),
        Mechanism::Sums => within_radius(private.radius),
        Mechanism::Squares => within_radius(private.radius).pow(2),
        Mechanism::Kernel => match &plan.features {
            Features::Nystrom(landmarks, _) => kernel::sensitivity(plan, landmarks)?,
            Features::Fourier(frequencies, _) => {
                let pairs = BigUint::from(frequencies.len()) * plan.bandwidths.len();
                (&pairs << 46) + (pairs << 33)
            }
        },
        Mechanism::Totals | Mechanism::Products => {
            let reach = private.reach(&plan.frame, &plan.columns)?;
            let power = |p: u32| reach.iter().map(|r| BigUint::from(*r).pow(p)).sum::<BigUint>();
            match mechanism {
                Mechanism::Totals => power(2),
                _ => (power(2).pow(2) + power(4)) >> 1,
            }
        }
    };
    if square == BigUint::ZERO {
        let expected = format!("wide enough that a row can move {}", mechanism.name());
        return Err(Error::parameter("`bounds`", expected, "narrower"));
    }
    Ok(square)
}

/// Returns P, the maximum of `Σu²` for a row relative to its landmark.
fn within_radius(radius: u64) -> BigUint {
    let square = BigUint::from(radius).pow(2);
    &square + (&square >> ROUNDING_BITS)
}

#[cfg(test)]
mod tests {
    use nysketch_core::kernel::fourier;

    #[test]
    fn cosines_and_sines_are_barely_longer_than_one() {
        for i in 0..200_000u32 {
            let (cos, sin) = fourier::units(i as f32 * 1e-4 - 10.0, 1.0);
            let square = i64::from(cos).pow(2) + i64::from(sin).pow(2);
            assert!(square <= super::super::bound::LONGEST_WAVE as i64, "{i}: {square}");
        }
    }

    /// Cosine and sine depend only on the angle from the nearest quarter. Takes about ten seconds.
    #[test]
    #[ignore = "looks at a thousand million singles"]
    fn every_angle_is_barely_longer_than_one() {
        let square = |bits: u32| {
            let (cos, sin) = fourier::units(f32::from_bits(bits), 1.0);
            i64::from(cos).pow(2) + i64::from(sin).pow(2)
        };
        let longest = (0..=0x3f00_0000).map(square).max();
        assert_eq!(longest, Some(super::super::bound::LONGEST_WAVE as i64));
    }
}
