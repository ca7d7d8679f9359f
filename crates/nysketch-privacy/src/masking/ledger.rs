//! What a key was used for: a line per session, in a file beside the key.
//!
//! The difference of two masked files of one party in one session is the difference of the sketches, exactly. So a session is
//! written down, and on the disk, before its masked sketch is seen by anybody, and another sketch is refused from then on.

use crate::ledger::{beside, update};
use nysketch_core::error::masking::MaskingError;
use nysketch_core::error::{Error, Result};
use std::io;
use std::path::{Path, PathBuf};

/// The ledger of the key in a file: `clinic-a.key.sessions` beside `clinic-a.key`.
pub fn ledger_beside(key: &Path) -> PathBuf {
    beside(key, "sessions")
}

/// Session, fingerprints of the list of parties and of the plan, digest of the sketch.
type Used<'a> = [&'a str; 4];

/// Writes down a use of the key, unless it was used like this before; refuses another use in the same session.
pub(super) fn record(path: &Path, used: Used<'_>) -> Result<()> {
    let failed =
        |e: io::Error| Error::source(format!("cannot keep the session in {}: {e}", path.display()));
    update(path, failed, |lines| {
        for (line, known) in lines.iter().enumerate() {
            let known: Vec<&str> = known.split(' ').collect();
            match <Used<'_>>::try_from(known) {
                Err(_) => return Err(MaskingError::Ledger { line: line + 1 }.into()),
                Ok(known) if known == used => return Ok(None),
                Ok(known) if known[0] == used[0] => {
                    return Err(MaskingError::Replay { session: used[0].into() }.into());
                }
                Ok(_) => {}
            }
        }
        Ok(Some(used.join(" ")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const USE: Used<'static> = ["session", "parties", "plan", "sketch"];

    fn in_folder() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = ledger_beside(&folder.path().join("a.key"));
        (folder, path)
    }

    #[test]
    fn a_session_is_used_for_one_sketch() {
        let (_folder, path) = in_folder();
        assert!(path.ends_with("a.key.sessions"));
        record(&path, USE).unwrap();
        record(&path, USE).unwrap();
        for place in 1..4 {
            let mut other = USE;
            other[place] = "other";
            let error = record(&path, other).unwrap_err();
            assert!(matches!(error, Error::Masking(MaskingError::Replay { .. })), "{error}");
        }
        record(&path, ["next", "parties", "plan", "other"]).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text, "session parties plan sketch\nnext parties plan other\n");
    }

    #[test]
    fn a_line_cut_by_a_crash_was_not_used_and_a_damaged_one_stops() {
        let (_folder, path) = in_folder();
        std::fs::write(&path, "session parties plan sketch\nnext part").unwrap();
        record(&path, ["next", "parties", "plan", "other"]).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text, "session parties plan sketch\nnext parties plan other\n");
        std::fs::write(&path, "session parties plan sketch\nnext\n").unwrap();
        let error = record(&path, ["third", "parties", "plan", "other"]).unwrap_err();
        assert!(matches!(error, Error::Masking(MaskingError::Ledger { line: 2 })));
    }

    #[test]
    fn of_many_at_once_one_passes() {
        let (_folder, path) = in_folder();
        let passed: usize = std::thread::scope(|scope| {
            let one = |i: usize| {
                let path = &path;
                move || record(path, ["session", "parties", "plan", &i.to_string()]).is_ok()
            };
            let all: Vec<_> = (0..16).map(|i| scope.spawn(one(i))).collect();
            all.into_iter().map(|thread| usize::from(thread.join().unwrap())).sum()
        });
        assert_eq!(passed, 1);
    }
}
