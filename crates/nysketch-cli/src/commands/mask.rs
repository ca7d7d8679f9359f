//! `nysketch mask`: a sketch that only counts in the sum of all parties.

use super::files::read_sketch;
use super::parties::{in_groups, read_parties};
use crate::args::{Common, Mask};
use crate::kind::Kind;
use crate::output::{name, result, size, warn};
use crate::writing::{check_output, write_bytes};
use anyhow::{Context, Result};
use nysketch::masking::{SecretKey, Session, ledger_beside, mask};
use serde_json::json;
use std::path::Path;

pub fn run(args: &Mask, common: &Common) -> Result<()> {
    let session = Session::new(&args.session)?;
    let ledger = ledger_beside(&args.key);
    let inputs = [&args.sketch, &args.parties, &args.key, &ledger];
    check_output(common, &args.output, Kind::Masked, inputs.map(|path| path.as_path()))?;
    let parties = read_parties(&args.parties)?;
    let key = SecretKey::read(&args.key).with_context(|| args.key.display().to_string())?;
    warn_if_open(&args.key);
    let sketch = read_sketch(&args.sketch)?;
    let masked = mask(&sketch, &key, &parties, &session, &ledger)
        .with_context(|| format!("cannot mask {}", args.sketch.display()))?;
    let bytes = masked.to_bytes();
    write_bytes(&args.output, &bytes)?;
    let label = masked.label();
    let json = json!({
        "file": name(&args.output), "party": key.id(), "parties": label.parties,
        "parties_fingerprint": label.parties_fingerprint, "session": session.as_str(),
        "fingerprint": sketch.plan().fingerprint(), "bytes": bytes.len(),
    });
    let text = format!(
        "{}: masked sketch of {}, one of {} in session {session}, {}\nparties {}",
        args.output.display(),
        key.id(),
        label.parties,
        size(bytes.len()),
        in_groups(&label.parties_fingerprint)
    );
    result(common, &json, &text)
}

/// Warns where others than the owner can read a secret key.
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
