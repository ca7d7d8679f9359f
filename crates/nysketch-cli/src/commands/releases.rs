//! Warnings about releases, which every command prints.

use crate::output::{short, thousands, warn};
use nysketch::privacy::Release;

/// Minimum signal-to-noise ratio without a warning: the total number of rows divided by the
/// standard deviation of its noise.
const FEW: f64 = 10.0;

/// Warns if a release is mostly noise.
pub fn tell_noise(release: &Release) {
    if release.signal() < FEW {
        warn(&format!(
            "almost only noise: {} rows, in noise of {}; use more rows, fewer landmarks or a \
             larger ε",
            thousands(release.rows()),
            short(release.rows() as f64 / release.signal().max(f64::MIN_POSITIVE)),
        ));
    }
}
