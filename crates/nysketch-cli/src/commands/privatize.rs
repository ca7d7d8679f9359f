//! `nysketch privatize`: adds noise to a sketch, so that it can be published.

use super::files::read_sketch;
use super::releases::tell_noise;
use super::statement::{self, Statement};
use crate::args::{Common, Privatize};
use crate::kind::Kind;
use crate::output::{name, result, short, size, thousands, warn};
use crate::writing::{check_output, go_on, keep_bytes};
use anyhow::{Context, Result};
use nysketch::Named;
use nysketch::ledger::Ledgers;
use nysketch::privacy::{Budget, Mechanism, Release, Spending};
use serde_json::json;

pub fn run(args: &Privatize, common: &Common) -> Result<()> {
    let budget = Budget::new(args.epsilon, args.delta)?;
    check_output(common, &args.output, Kind::Release, [args.sketch.as_path()])?;
    if let Some(page) = &args.statement {
        let others = [args.sketch.as_path(), args.output.as_path()];
        check_output(common, page, Kind::Statement, others)?;
    }
    let shares = shares(&args.spend)?;
    let sketch = read_sketch(&args.sketch)?;
    let ledgers = Ledgers::of_user()?;
    // A release in the ledger counts, whether or not its file is written.
    go_on()?;
    let (release, all) = Release::noted(&sketch, budget, &shares, &ledgers)
        .with_context(|| args.sketch.display().to_string())?;
    let bytes = release.to_bytes();
    all.warning(release.terms()).iter().for_each(|warning| warn(warning));
    keep_bytes(&args.output, &bytes)?;
    if let Some(page) = &args.statement {
        let text =
            statement::text(&Statement { file: &args.output, release: &release, releases: &all });
        keep_bytes(page, text.as_bytes())?;
    }
    let mut json = json!({
        "file": name(&args.output), "epsilon": args.epsilon, "delta": args.delta,
        "epsilon_replacing": budget.epsilon_of_replacing(), "rho": release.rho().value(), "rows": release.rows(), "mechanisms": release.summary(),
        "total_rho": release.total().value(), "person_rows": release.terms().person_rows,
        "releases": all.count,
        "all_releases": {"epsilon": budget.epsilon_of(all.rho), "rho": all.rho.value()},
        "fingerprint": release.plan().fingerprint(), "bytes": bytes.len(),
        "ledger": name(&all.ledger),
    });
    if let Some(page) = &args.statement {
        json["statement"] = name(page);
    }
    tell_noise(&release);
    let mut text = format!(
        "{}: a release of about {} rows, {}\n{}\nreplacing a row is two steps: ε = {} at the same \
         δ\n",
        args.output.display(),
        thousands(release.rows()),
        size(bytes.len()),
        release.promise(),
        short(budget.epsilon_of_replacing()),
    );
    text.push_str(&noise(&release));
    result(common, &json, text.trim_end())
}

/// Converts the shares of a budget from the names of mechanisms.
pub fn shares(said: &[(String, f64)]) -> nysketch::Result<Vec<(Mechanism, f64)>> {
    said.iter().map(|(name, share)| Ok((Mechanism::from_name(name)?, *share))).collect()
}

/// Formats the cost and the noise of each mechanism.
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

/// Formats the noise of one number in a readable unit.
pub fn noise_text(mechanism: Mechanism, deviation: f64, release: &Release) -> String {
    let noise = short(deviation * mechanism.unit(release.plan()));
    match mechanism {
        Mechanism::Counts | Mechanism::Rows => format!("{noise} rows"),
        _ => noise,
    }
}
