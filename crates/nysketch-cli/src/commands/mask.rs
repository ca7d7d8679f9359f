//! `nysketch mask`: creates a masked sketch, which counts only in the sum of all parties.

use super::files::read_sketch;
use super::parties::{in_groups, read_parties};
use super::privatize::shares;
use crate::args::{Common, Mask};
use crate::kind::Kind;
use crate::output::{extended, name, result, size, warn};
use crate::writing::{check_output, go_on, keep_bytes};
use anyhow::{Context, Result};
use nysketch::ledger::Ledgers;
use nysketch::masking::{
    NoiseParams, SecretKey, Session, mask, mask_noisy, new_session_ledger, session_ledger,
};
use nysketch::privacy::Budget;
use serde_json::json;
use std::path::Path;

pub fn run(args: &Mask, common: &Common) -> Result<()> {
    let session = Session::new(&args.session)?;
    let inputs = [&args.sketch, &args.parties, &args.key];
    check_output(common, &args.output, Kind::Masked, inputs.map(|path| path.as_path()))?;
    let parties = read_parties(&args.parties)?;
    let key = SecretKey::read(&args.key).with_context(|| args.key.display().to_string())?;
    warn_if_open(&args.key);
    let ledgers = Ledgers::of_user()?;
    let public = key.party().public();
    let sketch = read_sketch(&args.sketch)?;
    let noise = noise(args)?;
    // A session in the ledger is used, whether or not the masked sketch is written.
    go_on()?;
    if args.new_key {
        new_session_ledger(&ledgers, &public)?;
    }
    let failed = || format!("cannot mask {}", args.sketch.display());
    let masked = match noise {
        None => mask(&sketch, &key, &parties, &session, &ledgers).with_context(failed)?,
        Some(noise) => {
            let noisy = mask_noisy(&sketch, &key, &parties, &session, &ledgers, &noise);
            let (masked, releases) = noisy.with_context(failed)?;
            masked.terms().and_then(|terms| releases.warning(terms)).iter().for_each(|w| warn(w));
            masked
        }
    };
    let bytes = masked.to_bytes();
    keep_bytes(&args.output, &bytes)?;
    let label = masked.label();
    let mut json = json!({
        "file": name(&args.output), "party": key.id(), "parties": label.parties,
        "parties_fingerprint": label.parties_fingerprint, "session": session.as_str(),
        "fingerprint": sketch.plan().fingerprint(), "bytes": bytes.len(),
        "ledger": name(&session_ledger(&ledgers, &public)),
    });
    let mut promise = String::new();
    if let Some(terms) = masked.terms() {
        let more = json!({
            "epsilon": terms.budget.epsilon, "delta": terms.budget.delta, "honest": args.honest,
            "rho": terms.rho().value(), "person_rows": terms.person_rows,
        });
        extended(&mut json, more);
        promise = format!("\nwith a share of the noise for {}", terms.promise(sketch.plan()));
    }
    let text = format!(
        "{}: masked sketch of {}, one of {} in session {session}, {}\nparties {}{promise}",
        args.output.display(),
        key.id(),
        label.parties,
        size(bytes.len()),
        in_groups(&label.parties_fingerprint)
    );
    result(common, &json, &text)
}

/// Returns the noise that the options request.
fn noise(args: &Mask) -> Result<Option<NoiseParams>> {
    let (Some(epsilon), Some(delta), Some(honest)) = (args.epsilon, args.delta, args.honest) else {
        return Ok(None);
    };
    let budget = Budget::new(epsilon, delta)?;
    let spend = shares(&args.spend)?;
    Ok(Some(NoiseParams { budget, spend, honest, other_people: args.disjoint_people }))
}

/// Warns if other users can read a secret key.
fn warn_if_open(key: &Path) {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        if key.metadata().is_ok_and(|m| m.permissions().mode() & 0o077 != 0) {
            let name = key.display();
            warn(&format!("other users can read the secret key {name}: chmod 600 {name}"));
        }
    }
    #[cfg(not(unix))]
    let _ = (key, warn);
}
