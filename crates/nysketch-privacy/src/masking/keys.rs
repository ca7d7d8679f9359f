//! The secret key of a party, and its file.

use super::ledger::new_session_ledger;
use super::parties::{Party, PublicKey, check_id};
use crate::ledger::Ledgers;
use nysketch_core::error::masking::MaskingError;
use nysketch_core::error::{Error, Result};
use nysketch_core::numeric::digest::unhex;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::Path;
use x25519_dalek::StaticSecret;
use zeroize::Zeroizing;

/// The first line of the file of a key.
const FIRST_LINE: &str = "nysketch secret key 1";
/// Maximum number of bytes that are read from a file.
const LONGEST: usize = 4096;

/// The secret key of a party, overwritten in memory after use. Anyone who has it can remove the
/// masks of the party.
///
/// ```
/// use nysketch::ledger::Ledgers;
/// use nysketch::masking::SecretKey;
/// # fn main() -> nysketch::Result<()> {
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("clinic-a.key");
/// # let ledgers = Ledgers::at(folder.path().join("ledgers"));
/// let key = SecretKey::random("clinic-a")?;
/// key.write_new(&path, &ledgers)?;
/// assert_eq!(SecretKey::read(&path)?.party(), key.party());
/// assert!(key.write_new(&path, &ledgers).is_err(), "a key is never replaced");
/// # Ok(())
/// # }
/// ```
pub struct SecretKey {
    id: String,
    secret: StaticSecret,
}

impl std::fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SecretKey").field("id", &self.id).finish_non_exhaustive()
    }
}

impl SecretKey {
    /// Creates a key from 256 random bits of the operating system.
    pub fn random(id: &str) -> Result<Self> {
        let mut bytes = Zeroizing::new([0; 32]);
        getrandom::fill(&mut *bytes).map_err(Error::source)?;
        SecretKey::from_bytes(id, &bytes)
    }

    /// Creates the key with these bytes.
    pub(super) fn from_bytes(id: &str, bytes: &[u8; 32]) -> Result<Self> {
        check_id(id)?;
        Ok(SecretKey { id: id.to_string(), secret: StaticSecret::from(*bytes) })
    }

    /// Returns the id of its party.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the public information: the id and the public key.
    pub fn party(&self) -> Party {
        let public = x25519_dalek::PublicKey::from(&self.secret).to_bytes();
        let public = PublicKey::new(public).expect("X25519 gives the canonical form");
        Party::new(&self.id, public).expect("a checked id")
    }

    /// Returns the secret shared with another party; refused if it is zero, which anyone can guess.
    pub(super) fn shared(&self, other: &Party) -> Result<Zeroizing<[u8; 32]>> {
        let public = x25519_dalek::PublicKey::from(*other.public().bytes());
        let shared = self.secret.diffie_hellman(&public);
        if shared.was_contributory() {
            Ok(Zeroizing::new(shared.to_bytes()))
        } else {
            Err(MaskingError::WeakKey { id: other.id().to_string() }.into())
        }
    }

    /// Writes an unused key to a file that must not exist yet, and creates its ledger of sessions.
    /// On Unix, only the owner can read the file.
    pub fn write_new(&self, path: &Path, ledgers: &Ledgers) -> Result<()> {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        {
            use std::os::unix::fs::OpenOptionsExt;
            options.mode(0o600);
        }
        let mut text = Zeroizing::new(String::with_capacity(256));
        text.push_str(&format!("{FIRST_LINE}\nid {}\nsecret ", self.id));
        for byte in self.secret.as_bytes() {
            for digit in [byte >> 4, byte & 15] {
                text.push(char::from_digit(digit.into(), 16).expect("below 16"));
            }
        }
        text.push('\n');
        let mut file = options.open(path).map_err(Error::source)?;
        let written = new_session_ledger(ledgers, &self.party().public()).and_then(|()| {
            let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
            written.map_err(Error::source)
        });
        if written.is_err() {
            let _ = std::fs::remove_file(path);
        }
        written
    }

    /// Reads a key from its file. Links are allowed; pipes and devices are not.
    pub fn read(path: &Path) -> Result<Self> {
        // Check before opening, because opening a pipe waits for its other end.
        let is_file = path.metadata().map_err(Error::source)?.is_file();
        if !is_file {
            return Err(MaskingError::SecretKeyFile.into());
        }
        // No key is longer.
        let mut bytes = Zeroizing::new(Vec::with_capacity(LONGEST));
        let file = File::open(path).map_err(Error::source)?;
        file.take(LONGEST as u64).read_to_end(&mut bytes).map_err(Error::source)?;
        let key = std::str::from_utf8(&bytes).ok().and_then(parse);
        let (id, secret) = key.ok_or(MaskingError::SecretKey)?;
        SecretKey::from_bytes(id, &secret)
    }
}

/// Parses the id and the secret in the file of a key.
fn parse(text: &str) -> Option<(&str, Zeroizing<[u8; 32]>)> {
    let mut lines = text.lines();
    let first = lines.next() == Some(FIRST_LINE);
    let id = lines.next()?.strip_prefix("id ")?;
    let secret = Zeroizing::new(unhex(lines.next()?.strip_prefix("secret ")?)?);
    (first && lines.next().is_none()).then_some((id, secret))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(unix)]
    fn only_the_owner_can_read_a_key() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.key");
        let ledgers = Ledgers::at(folder.path().join("ledgers"));
        SecretKey::random("a").unwrap().write_new(&path, &ledgers).unwrap();
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    }

    /// A key from a pipe could come from any other process.
    #[test]
    #[cfg(unix)]
    fn pipes_and_devices_are_no_keys() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe.key");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
        assert!(made.success());
        for path in [pipe.as_path(), Path::new("/dev/zero"), folder.path()] {
            let error = SecretKey::read(path).unwrap_err();
            assert!(matches!(error, Error::Masking(MaskingError::SecretKeyFile)), "{error}");
        }
    }

    #[test]
    fn keys_are_random_and_are_not_shown() {
        let [a, b] = [SecretKey::random("a").unwrap(), SecretKey::random("a").unwrap()];
        assert_ne!(a.party(), b.party());
        assert_eq!(format!("{a:?}"), "SecretKey { id: \"a\", .. }");
    }

    #[test]
    fn other_files_are_no_keys() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.key");
        let secret = "0".repeat(64);
        for text in [
            String::new(),
            format!("{FIRST_LINE}\nid a\nsecret {secret}\nmore\n"),
            format!("{FIRST_LINE}\nid a\nsecret {}\n", &secret[2..]),
            format!("nysketch secret key 2\nid a\nsecret {secret}\n"),
            format!("{FIRST_LINE}\nid a b\nsecret {secret}\n"),
        ] {
            std::fs::write(&path, text).unwrap();
            assert!(matches!(SecretKey::read(&path), Err(Error::Masking(_))));
        }
    }
}
