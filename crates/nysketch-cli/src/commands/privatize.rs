//! `nysketch privatize`: add noise to a sketch, so that it may leave the house.

use super::files::read_sketch;
use crate::args::{Common, Privatize};
use crate::kind::Kind;
use crate::output::{name, note, result, short, size, thousands, warn};
use crate::writing::{check_output, write_bytes};
use anyhow::{Context, Result};
use nysketch::Named;
use nysketch::privacy::{Budget, Mechanism, Release, Rho, Spending};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};

pub fn run(args: &Privatize, common: &Common) -> Result<()> {
    let budget = Budget::new(args.epsilon, args.delta)?;
    check_output(common, &args.output, Kind::Release, [args.sketch.as_path()])?;
    let shares = shares(&args.spend)?;
    let sketch = read_sketch(&args.sketch)?;
    let release =
        Release::of(&sketch, budget, &shares).with_context(|| args.sketch.display().to_string())?;
    let bytes = release.to_bytes();
    // Before the release is written: what was noted and never left is better than the other way round.
    let ledger = Ledger::beside(&args.sketch);
    let earlier = ledger.add(&sketch.digest(), &release)?;
    write_bytes(&args.output, &bytes)?;
    let all = earlier.iter().fold(release.total(), |sum, line| sum.and(Rho(line.rho)));
    let json = json!({
        "file": name(&args.output), "epsilon": args.epsilon, "delta": args.delta,
        "rho": release.rho().value(), "rows": release.rows(), "mechanisms": release.summary(),
        "total_rho": release.total().value(), "person_rows": release.terms().person_rows,
        "releases": earlier.len() + 1,
        "all_releases": {"epsilon": budget.epsilon_of(all), "rho": all.value()},
        "fingerprint": release.plan().fingerprint(), "bytes": bytes.len(),
    });
    if !earlier.is_empty() {
        let times = earlier.len() + 1;
        warn(&format!(
            "this sketch has now been released {times} times, which reveals ε = {} together at δ = {:e}, as far as {} knows",
            short(budget.epsilon_of(all)),
            args.delta,
            ledger.path.display()
        ));
    }
    if release.rows() == 0 {
        note(common, "no rows show above the noise");
    }
    let mut text = format!(
        "{}: a release of about {} rows, {}\n{}\n",
        args.output.display(),
        thousands(release.rows()),
        size(bytes.len()),
        release.promise()
    );
    text.push_str(&noise(&release));
    result(common, &json, text.trim_end())
}

/// How a budget is split, by the names of mechanisms.
pub fn shares(said: &[(String, f64)]) -> nysketch::Result<Vec<(Mechanism, f64)>> {
    said.iter().map(|(name, share)| Ok((Mechanism::from_name(name)?, *share))).collect()
}

/// What each mechanism costs and how much noise it has.
pub fn noise(release: &Release) -> String {
    let line = |s: &Spending| {
        format!(
            "  {:9} {:>3.0} % of the budget, noise of standard deviation {}\n",
            s.mechanism.name(),
            100.0 * s.rho.value() / release.rho().value(),
            noise_text(s.mechanism, s.deviation(), release)
        )
    };
    release.spendings().iter().map(line).collect()
}

/// The noise of one number in a unit that people can read.
fn noise_text(mechanism: Mechanism, deviation: f64, release: &Release) -> String {
    let unit = 2f64.powi(release.plan().frame.exponent[0]);
    match mechanism {
        Mechanism::Counts | Mechanism::Rows => format!("{} rows", short(deviation)),
        Mechanism::Sums | Mechanism::Totals => short(deviation * unit),
        Mechanism::Squares | Mechanism::Products => short(deviation * unit * unit),
        Mechanism::Kernel => short(deviation / 2f64.powi(23)),
    }
}

/// Releases of the sketches at a path, one line each: best effort, since a sketch can be copied.
struct Ledger {
    path: PathBuf,
}

#[derive(Debug, Serialize, Deserialize)]
struct Line {
    sketch: String,
    epsilon: f64,
    delta: f64,
    rho: u64,
}

impl Ledger {
    fn beside(sketch: &Path) -> Self {
        let mut path = sketch.as_os_str().to_owned();
        path.push(".ledger");
        Ledger { path: path.into() }
    }

    /// Notes a release, and says which there were of the same sums before.
    fn add(&self, digest: &str, release: &Release) -> Result<Vec<Line>> {
        let place = || format!("the ledger {}", self.path.display());
        let mut earlier = Vec::new();
        if self.path.exists() {
            for line in std::fs::read_to_string(&self.path).with_context(place)?.lines() {
                let line: Line = serde_json::from_str(line).with_context(place)?;
                if line.sketch == digest {
                    earlier.push(line);
                }
            }
        }
        let budget = release.budget();
        let line = Line {
            sketch: digest.to_string(),
            epsilon: budget.epsilon,
            delta: budget.delta,
            rho: release.rho().0,
        };
        let mut file =
            OpenOptions::new().create(true).append(true).open(&self.path).with_context(place)?;
        writeln!(file, "{}", serde_json::to_string(&line)?).with_context(place)?;
        file.sync_all().with_context(place)?;
        Ok(earlier)
    }
}
