//! Warnings that every command prints about a release.

use crate::output::{short, thousands, warn};
use nysketch::privacy::Release;

/// Standard deviations of the noise that all rows together are, below which they are hardly seen.
const FEW: f64 = 10.0;

/// Warns where there is hardly more than noise.
pub fn tell_noise(release: &Release) {
    if release.signal() < FEW {
        warn(&format!(
            "hardly more than noise: {} rows, in noise of {}; use more rows, fewer landmarks or a larger ε",
            thousands(release.rows()),
            short(release.rows() as f64 / release.signal().max(f64::MIN_POSITIVE)),
        ));
    }
}
