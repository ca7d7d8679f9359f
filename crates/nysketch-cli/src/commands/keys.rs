//! `nysketch keys`: secret keys, lists of parties and sessions.

use super::parties::{in_groups, read_parties};
use crate::args::{Common, Keys, KeysCommand};
use crate::kind::Kind;
use crate::output::{count, name, note, result};
use crate::writing::check_output;
use anyhow::{Context, Result, bail};
use nysketch::ledger::Ledgers;
use nysketch::masking::{Party, SecretKey, Session, session_ledger};
use serde_json::json;
use std::path::Path;

pub fn run(args: &Keys, common: &Common) -> Result<()> {
    match &args.what {
        KeysCommand::New { id, output } => new(id, output, common),
        KeysCommand::Show { parties } => show(parties, common),
        KeysCommand::Session => {
            let session = Session::random()?;
            result(common, &json!({ "session": session.as_str() }), session.as_str())
        }
    }
}

fn new(id: &str, output: &Path, common: &Common) -> Result<()> {
    let key = SecretKey::random(id)?;
    if output.exists() {
        bail!("{} exists; a secret key replaces nothing, not even with --force", output.display());
    }
    check_output(common, output, Kind::Key, [])?;
    let ledgers = Ledgers::of_user()?;
    key.write_new(output, &ledgers)
        .with_context(|| format!("cannot write {}", output.display()))?;
    let party = key.party();
    let ledger = session_ledger(&ledgers, &party.public());
    note(
        common,
        &format!(
            "{} is secret: keep it on this machine. Its sessions are recorded in {}: keep that, \
             too. Add the lines printed to the list of all parties",
            output.display(),
            ledger.display()
        ),
    );
    let public = party.public().to_string();
    let text = format!("[[party]]\nid = \"{id}\"\npublic = \"{public}\"");
    result(
        common,
        &json!({ "file": name(output), "id": id, "public": public, "ledger": name(&ledger) }),
        &text,
    )
}

fn show(file: &Path, common: &Common) -> Result<()> {
    let parties = read_parties(file)?;
    let (list, fingerprint) = (parties.list(), parties.fingerprint());
    let party = |p: &Party| json!({ "id": p.id(), "public": p.public().to_string() });
    let json = json!({
        "file": name(file), "parties": list.iter().map(party).collect::<Vec<_>>(),
        "parties_fingerprint": fingerprint,
    });
    let mut text = format!("{}: {}\n", file.display(), count(list.len() as u64, "party"));
    let width = list.iter().map(|party| party.id().len()).max().unwrap_or(0);
    for party in list {
        text.push_str(&format!("  {:width$}  {}\n", party.id(), party.public()));
    }
    text.push_str(&format!("fingerprint {}\n", in_groups(&fingerprint)));
    text.push_str(
        "Read it to every other party, by telephone or in person: all must have the same.",
    );
    result(common, &json, &text)
}
