//! Ledgers of sessions, which record the sketches that each key has masked.
//!
//! The difference of two masked files of one party in one session is exactly the difference of
//! their sketches. The ledger of the public key therefore records a session before its masked
//! sketch is returned, and refuses any other sketch afterwards. The same sketch gives the same
//! bytes again, which is harmless.

use super::parties::PublicKey;
use crate::ledger::{Ledgers, Record};
use nysketch_core::error::Result;
use nysketch_core::error::masking::MaskingError;
use nysketch_core::numeric::digest::sha256;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// A line that records a masked sketch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Use {
    /// Id of the session.
    pub session: String,
    /// Fingerprint of the list of parties.
    pub parties: String,
    /// Fingerprint of the plan.
    pub plan: String,
    /// Digest of the sketch or, with noise, of the masked file.
    pub sketch: String,
}

impl Record for Use {
    const KIND: &'static str = "sessions";
}

/// Returns the path of the ledger of a key.
pub fn session_ledger(ledgers: &Ledgers, key: &PublicKey) -> PathBuf {
    ledgers.path::<Use>(&subject(key))
}

/// Creates the ledger of a key that has not masked anything yet. Refused if it exists.
pub fn new_session_ledger(ledgers: &Ledgers, key: &PublicKey) -> Result<()> {
    if ledgers.create::<Use>(&subject(key))? {
        Ok(())
    } else {
        Err(MaskingError::NotNew { path: session_ledger(ledgers, key) }.into())
    }
}

/// Returns the subject of the ledger of a key.
fn subject(key: &PublicKey) -> String {
    sha256(key.bytes())
}

/// Records a use of the key, unless the same use is recorded already. Refuses another use in the
/// same session.
pub(super) fn record(ledgers: &Ledgers, key: &PublicKey, new: Use) -> Result<()> {
    let there = ledgers.update(&subject(key), |uses: &[Use]| {
        match uses.iter().find(|known| known.session == new.session) {
            None => Ok(Some(new)),
            Some(known) if *known == new => Ok(None),
            Some(_) => Err(MaskingError::Replay { session: new.session }.into()),
        }
    })?;
    if there {
        Ok(())
    } else {
        Err(MaskingError::NoLedger { path: session_ledger(ledgers, key) }.into())
    }
}

#[cfg(test)]
mod tests {
    use super::super::keys::SecretKey;
    use super::*;
    use nysketch_core::error::Error;

    fn used(session: &str) -> Use {
        let [session, parties, plan, sketch] = [session, "list", "plan", "sums"].map(String::from);
        Use { session, parties, plan, sketch }
    }

    #[test]
    fn a_session_is_used_for_one_sketch() {
        let folder = tempfile::tempdir().unwrap();
        let ledgers = Ledgers::at(folder.path());
        let key = SecretKey::random("a").unwrap().party().public();
        let error = record(&ledgers, &key, used("first")).unwrap_err();
        assert!(matches!(error, Error::Masking(MaskingError::NoLedger { .. })), "{error}");
        new_session_ledger(&ledgers, &key).unwrap();
        let error = new_session_ledger(&ledgers, &key).unwrap_err();
        assert!(matches!(error, Error::Masking(MaskingError::NotNew { .. })), "{error}");
        record(&ledgers, &key, used("first")).unwrap();
        record(&ledgers, &key, used("first")).unwrap();
        let others = [
            Use { parties: "other".into(), ..used("first") },
            Use { plan: "other".into(), ..used("first") },
            Use { sketch: "other".into(), ..used("first") },
        ];
        for other in others {
            let error = record(&ledgers, &key, other).unwrap_err();
            assert!(matches!(error, Error::Masking(MaskingError::Replay { .. })), "{error}");
        }
        record(&ledgers, &key, used("next")).unwrap();
        let text = std::fs::read_to_string(session_ledger(&ledgers, &key)).unwrap();
        assert_eq!(text.lines().count(), 3);
        // Another key has another ledger.
        let other = SecretKey::random("a").unwrap().party().public();
        assert_ne!(session_ledger(&ledgers, &other), session_ledger(&ledgers, &key));
    }
}
