//! Notes about releases, and the ledger of releases next to a sketch. The ledger is best effort,
//! because a sketch can be copied and its rows can be sketched again.

use crate::output::{short, thousands, warn};
use anyhow::{Result, anyhow};
use nysketch::Sketch;
use nysketch::privacy::{Release, Rho, Terms};
use nysketch_privacy::ledger::{beside, update};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// One release.
#[derive(Debug, Serialize, Deserialize)]
struct Line {
    sketch: String,
    epsilon: f64,
    delta: f64,
    rho: u64,
}

/// All releases of a sketch so far.
pub struct Releases {
    /// Their number.
    pub count: usize,
    /// Their total privacy cost.
    pub rho: Rho,
}

/// Records a release in the ledger before the file is written: recording a release that is never
/// published is safer than the reverse.
pub fn note_release(path: &Path, sketch: &Sketch, terms: &Terms) -> Result<Releases> {
    let (ledger, digest) = (beside(path, "ledger"), sketch.digest());
    let place = ledger.display().to_string();
    let mut all = Releases { count: 1, rho: terms.total(sketch.plan()) };
    let failed = |e: std::io::Error| anyhow!("cannot keep the release in {place}: {e}");
    update(&ledger, failed, |lines| {
        for (number, line) in lines.iter().enumerate() {
            let line: Line = serde_json::from_str(line).map_err(|_| {
                let number = number + 1;
                anyhow!("{place}, line {number}: damaged; restore it, or what was released before is not counted")
            })?;
            if line.sketch == digest {
                all.count += 1;
                all.rho = all.rho.and(Rho(line.rho));
            }
        }
        let line = Line {
            sketch: digest,
            epsilon: terms.budget.epsilon,
            delta: terms.budget.delta,
            rho: terms.rho().0,
        };
        Ok(Some(serde_json::to_string(&line)?))
    })?;
    if all.count > 1 {
        warn(&format!(
            "this sketch has now been released {} times, which reveals ε = {} together at δ = {:e}, as far as {place} knows",
            all.count,
            short(terms.budget.epsilon_of(all.rho)),
            terms.budget.delta,
        ));
    }
    Ok(all)
}

/// Smallest signal-to-noise ratio without a warning: the total number of rows over the standard
/// deviation of its noise.
const FEW: f64 = 10.0;

/// Warns if a release is mostly noise.
pub fn tell_noise(release: &Release) {
    if release.signal() < FEW {
        warn(&format!(
            "hardly more than noise: {} rows, in noise of {}; use more rows, fewer landmarks or a larger ε",
            thousands(release.rows()),
            short(release.rows() as f64 / release.signal().max(f64::MIN_POSITIVE)),
        ));
    }
}
