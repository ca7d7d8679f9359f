//! Polynomials for 2ᶠ, sine and cosine.
//!
//! Each is a fixed sequence of IEEE-754 single-precision operations (fused multiply-adds in Horner
//! order), so every processor gives the same bits.

/// 1.5 · 2²³. Adding it rounds a small f32 to the nearest integer, ties to even.
pub const ROUND: f32 = 12_582_912.0;

/// Coefficients of f¹ … f⁵ in 2ᶠ ≈ 1 + c₁f + … + c₅f⁵ on [−½, ½].
///
/// Minimax for the relative error with the constant term fixed at 1 (so that κ(x, x) = 1 exactly).
/// The largest relative error in f32 is 1.8e-7, the mean 1.5e-8.
pub const EXP2: [f32; 5] = [
    f32::from_bits(0x3f31_7214),
    f32::from_bits(0x3e75_fcdf),
    f32::from_bits(0x3d63_5baa),
    f32::from_bits(0x3c1e_7545),
    f32::from_bits(0x3aad_dd0a),
];

/// `2^(a·b)` for `−126 < a·b ≤ 0`. The product is not rounded separately.
#[inline(always)]
pub fn exp2_product(a: f32, b: f32) -> f32 {
    let rounded = a.mul_add(b, ROUND);
    let fraction = a.mul_add(b, -(rounded - ROUND));
    let mut p = EXP2[4];
    for k in [3, 2, 1, 0] {
        p = p.mul_add(fraction, EXP2[k]);
    }
    p = p.mul_add(fraction, 1.0);
    f32::from_bits(p.to_bits().wrapping_add(rounded.to_bits() << 23))
}

/// Coefficients of r, r³, r⁵, r⁷ in sin(πr/2) on [−½, ½].
#[allow(clippy::approx_constant, reason = "a fitted coefficient that comes out near π/2")]
pub const SIN: [f32; 4] = [1.570_796_3, -0.645_962_94, 0.079_675_9, -0.004_592_29];
/// Coefficients of r², r⁴, r⁶, r⁸ in cos(πr/2) − 1 on [−½, ½].
pub const COS: [f32; 4] = [-1.233_700_5, 0.253_669_24, -0.020_860_288, 0.000_904_021_64];

/// `(cos, sin)` of an angle in quarter turns, |angle| < 2²².
#[inline(always)]
pub fn cos_sin_quarters(angle: f32) -> (f32, f32) {
    let rounded = angle + ROUND;
    let r = angle - (rounded - ROUND);
    let r2 = r * r;
    let s = SIN[3].mul_add(r2, SIN[2]).mul_add(r2, SIN[1]).mul_add(r2, SIN[0]) * r;
    let c = COS[3].mul_add(r2, COS[2]).mul_add(r2, COS[1]).mul_add(r2, COS[0]).mul_add(r2, 1.0);
    let quarter = rounded.to_bits() & 3;
    let (c, s) = if quarter & 1 == 0 { (c, s) } else { (s, c) };
    // cos is negative in quarters 1 and 2, sin in 2 and 3.
    let flip_c = ((quarter + 1) & 2) << 30;
    let flip_s = (quarter & 2) << 30;
    (f32::from_bits(c.to_bits() ^ flip_c), f32::from_bits(s.to_bits() ^ flip_s))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exp2_is_accurate_unbiased_and_exact_at_zero() {
        assert_eq!(exp2_product(0.0, -1.0), 1.0);
        let (mut worst, mut sum, n) = (0.0f64, 0.0, 200_000);
        for i in 0..n {
            let t = -30.0 * (i as f32 + 0.5) / n as f32;
            let exact = f64::from(t).exp2();
            let error = f64::from(exp2_product(t, 1.0)) / exact - 1.0;
            worst = worst.max(error.abs());
            sum += error;
        }
        // Three half-ulps of rounding, and the polynomial's 0.9e-7.
        assert!(worst < 2.0e-7, "{worst}");
        assert!((sum / f64::from(n)).abs() < 3e-8, "{}", sum / f64::from(n));
    }

    #[test]
    fn cosine_and_sine_are_accurate_in_every_quarter() {
        for i in -40_000..40_000 {
            let q = i as f32 / 4_000.0;
            let (c, s) = cos_sin_quarters(q);
            let angle = f64::from(q) * std::f64::consts::FRAC_PI_2;
            // Two roundings near 1.
            assert!((f64::from(c) - angle.cos()).abs() < 1.3e-7, "cos {q}");
            assert!((f64::from(s) - angle.sin()).abs() < 1.3e-7, "sin {q}");
            assert!(c.abs() <= 1.0 && s.abs() <= 1.0, "{q} {c} {s}");
        }
    }
}
