//! Ledgers: files that record each use of something that must be counted or must not happen twice.
//!
//! A ledger is a text file of JSON lines. The first line contains its kind and its subject; each
//! further line records one use.
//!
//! | kind | subject | one line for each |
//! |---|---|---|
//! | `sessions` | SHA-256 of a public key | masked sketch ([`masking`](crate::masking)) |
//! | `releases` | fingerprint of a plan | release of a sketch ([`privacy`](crate::dp)) |
//! | `subtractions` | fingerprint of a plan | [`subtraction`](crate::subtractions) |
//!
//! **A ledger is found by its subject.** Its name is `KIND-SUBJECT.ledger` in one folder per user,
//! so that a key or a sketch that is renamed, linked, copied or moved still has the same ledger. A
//! ledger next to the key would be left behind by the first `mv`, and a copied folder would contain
//! a key whose two ledgers differ. A ledger inside the key file would be copied with the key. The
//! one exception is a copy of the whole folder, or of a key, to another account or machine, which
//! no file can detect. A key without a ledger is therefore refused unless its user declares that it
//! is new.
//!
//! **A line is on the disk before the result is returned.** If a process is killed in between, a
//! use counts although no one has seen its result, which is the safe side. One process at a time
//! reads and appends, under a lock of the operating system that ends with the process. A line
//! without an end was cut by a crash before its result was returned, and is dropped. A new ledger
//! gets its name only when its first line is on the disk, so an empty ledger is a damaged one. No
//! clock is involved.
//!
//! **A ledger is a regular file.** Links, pipes and devices in its place are refused, because they
//! could give one ledger two names, or make a lock ineffective.

pub use nysketch_core::error::ledger::{FOLDER_VARIABLE, LedgerError};
use nysketch_core::error::{Error, Result};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fs::{File, Metadata, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Version of the format.
const VERSION: u32 = 1;
/// Pause between two attempts to acquire the lock, and their number: 30 seconds in total.
const PAUSE: Duration = Duration::from_millis(20);
const ATTEMPTS: u32 = 1500;

/// The content of a line of a ledger.
pub trait Record: Serialize + DeserializeOwned {
    /// The kind of ledger with such lines.
    const KIND: &'static str;
}

/// The first line of a ledger.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    nysketch_ledger: u32,
    kind: String,
    of: String,
}

/// The folder with the ledgers of a user.
///
/// ```
/// use nysketch::ledger::Ledgers;
/// let ledgers = Ledgers::at("/srv/ledgers");
/// assert_eq!(ledgers.folder(), std::path::Path::new("/srv/ledgers"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ledgers {
    folder: PathBuf,
}

impl Ledgers {
    /// Uses the ledgers in a folder, which is created with the first ledger.
    pub fn at(folder: impl Into<PathBuf>) -> Self {
        Ledgers { folder: folder.into() }
    }

    /// Uses the ledgers of this user: in `$NYSKETCH_LEDGERS`, otherwise in `nysketch/ledgers` below
    /// `$XDG_STATE_HOME` or `~/.local/state` (on Windows, below `%LOCALAPPDATA%`).
    pub fn of_user() -> Result<Self> {
        if let Some(folder) = variable(FOLDER_VARIABLE) {
            return if folder.is_absolute() {
                Ok(Ledgers { folder })
            } else {
                Err(LedgerError::RelativeFolder { folder }.into())
            };
        }
        let absolute = |name| variable(name).filter(|folder| folder.is_absolute());
        let state = if cfg!(windows) {
            absolute("LOCALAPPDATA")
        } else {
            absolute("XDG_STATE_HOME")
                .or_else(|| Some(std::env::home_dir()?.join(".local").join("state")))
        };
        let state = state.filter(|folder| folder.is_absolute()).ok_or(LedgerError::NoFolder)?;
        Ok(Ledgers { folder: state.join("nysketch").join("ledgers") })
    }

    /// Returns the folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the path of the ledger of a subject.
    pub fn path<R: Record>(&self, subject: &str) -> PathBuf {
        self.folder.join(format!("{}-{subject}.ledger", R::KIND))
    }

    /// Creates the ledger of a subject, without a use. Returns whether it is new.
    pub fn create<R: Record>(&self, subject: &str) -> Result<bool> {
        let path = self.path::<R>(subject);
        let line = line_of(&header::<R>(subject))?;
        create(&self.folder, &path, &line).map_err(|error| LedgerError::Io { path, error }.into())
    }

    /// Passes the recorded uses to `decide`, and appends the use that it returns, if any. Returns
    /// `false`, without calling `decide`, if there is no ledger.
    pub fn update<R: Record>(
        &self,
        subject: &str,
        decide: impl FnOnce(&[R]) -> Result<Option<R>>,
    ) -> Result<bool> {
        let path = self.path::<R>(subject);
        let failed = |error| Error::from(LedgerError::Io { path: path.clone(), error });
        let Some(mut file) = open(&path)? else { return Ok(false) };
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(failed)?;
        let whole = bytes.iter().rposition(|b| *b == b'\n').map_or(0, |end| end + 1);
        let uses = parse(&bytes[..whole], &header::<R>(subject), &path)?;
        if let Some(new) = decide(&uses)? {
            append(&mut file, whole as u64, &line_of(&new)?).map_err(failed)?;
        }
        Ok(true)
    }

    /// Works like [`update`](Self::update), with a new ledger if there is none.
    pub fn update_or_create<R: Record>(
        &self,
        subject: &str,
        decide: impl FnOnce(&[R]) -> Result<Option<R>>,
    ) -> Result<()> {
        self.create::<R>(subject)?;
        let path = self.path::<R>(subject);
        if self.update(subject, decide)? {
            Ok(())
        } else {
            Err(LedgerError::NotAFile { path }.into())
        }
    }
}

/// Returns the value of an environment variable that is not empty.
fn variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

fn header<R: Record>(subject: &str) -> Header {
    Header { nysketch_ledger: VERSION, kind: R::KIND.into(), of: subject.into() }
}

fn line_of(value: &impl Serialize) -> Result<Vec<u8>> {
    let mut line = serde_json::to_vec(value).map_err(Error::source)?;
    line.push(b'\n');
    Ok(line)
}

/// Parses the uses in a ledger, in which every line is complete.
fn parse<R: Record>(bytes: &[u8], expected: &Header, path: &Path) -> Result<Vec<R>> {
    let damaged = |line| LedgerError::Damaged { path: path.to_path_buf(), line };
    let mut lines = bytes.split_inclusive(|b| *b == b'\n');
    let first = lines.next().ok_or(damaged(1))?;
    let found: Header = serde_json::from_slice(first).map_err(|_| damaged(1))?;
    if found != *expected {
        return Err(LedgerError::Misplaced { path: path.to_path_buf() }.into());
    }
    let mut uses = Vec::new();
    for (at, line) in lines.enumerate() {
        uses.push(serde_json::from_slice(line).map_err(|_| damaged(at + 2))?);
    }
    Ok(uses)
}

/// Opens a ledger under its lock; returns `None` if there is none.
fn open(path: &Path) -> Result<Option<File>> {
    let failed = |error| Error::from(LedgerError::Io { path: path.to_path_buf(), error });
    let not_a_file = || Error::from(LedgerError::NotAFile { path: path.to_path_buf() });
    match path.symlink_metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
        // Check before opening, because opening a pipe waits for its other end.
        Ok(there) if !there.is_file() => return Err(not_a_file()),
        Ok(_) => {}
    }
    let file = OpenOptions::new().read(true).write(true).open(path).map_err(failed)?;
    lock(&file, path)?;
    // If the file was replaced since the check, another process may have locked the new ledger.
    let opened = file.metadata().map_err(failed)?;
    match path.symlink_metadata() {
        Ok(there) if there.is_file() && is_same(&there, &opened) => Ok(Some(file)),
        _ => Err(not_a_file()),
    }
}

/// Waits for the lock for a limited time, because its holder may be stopped. A file system without
/// locks is an error, because two processes could pass at once.
fn lock(file: &File, path: &Path) -> Result<()> {
    for _ in 0..ATTEMPTS {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::WouldBlock) => std::thread::sleep(PAUSE),
            Err(TryLockError::Error(error)) => {
                return Err(LedgerError::Io { path: path.to_path_buf(), error }.into());
            }
        }
    }
    Err(LedgerError::Busy { path: path.to_path_buf() }.into())
}

#[cfg(unix)]
fn is_same(a: &Metadata, b: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    (a.dev(), a.ino()) == (b.dev(), b.ino())
}

#[cfg(not(unix))]
fn is_same(_: &Metadata, _: &Metadata) -> bool {
    true
}

/// Writes a line at `end` and syncs it.
fn append(file: &mut File, end: u64, line: &[u8]) -> io::Result<()> {
    file.set_len(end)?;
    file.seek(SeekFrom::Start(end))?;
    file.write_all(line)?;
    file.sync_all()
}

/// Creates a file with one complete line, or no file. Returns false if the name exists.
fn create(folder: &Path, path: &Path, line: &[u8]) -> io::Result<bool> {
    if path.symlink_metadata().is_ok() {
        return Ok(false);
    }
    make_folder(folder)?;
    // The message of the error would contain the temporary name. Only the user can read the file.
    let file = tempfile::Builder::new().prefix(".nysketch-").tempfile_in(folder);
    let file = file.map_err(|error| io::Error::from(error.kind()))?;
    file.as_file().write_all(line)?;
    file.as_file().sync_all()?;
    match file.persist_noclobber(path) {
        Ok(_) => {}
        Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => return Ok(false),
        Err(error) => return Err(error.error),
    }
    sync_folder(folder)?;
    Ok(true)
}

/// Creates a folder and its parents, which only the user can enter.
fn make_folder(folder: &Path) -> io::Result<()> {
    let missing = folder.ancestors().take_while(|f| !f.as_os_str().is_empty() && !f.exists());
    let missing: Vec<&Path> = missing.collect();
    let mut builder = std::fs::DirBuilder::new();
    #[cfg(unix)]
    {
        use std::os::unix::fs::DirBuilderExt;
        builder.mode(0o700);
    }
    for new in missing.into_iter().rev() {
        match builder.create(new) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => sync_folder(new.parent().unwrap_or(new))?,
        }
    }
    Ok(())
}

/// Syncs the names in a folder to the disk.
fn sync_folder(folder: &Path) -> io::Result<()> {
    #[cfg(unix)]
    {
        let here = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        File::open(here)?.sync_all()
    }
    #[cfg(not(unix))]
    {
        let _ = folder;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Number {
        number: u64,
    }

    impl Record for Number {
        const KIND: &'static str = "numbers";
    }

    fn ledgers() -> (tempfile::TempDir, Ledgers) {
        let folder = tempfile::tempdir().unwrap();
        let ledgers = Ledgers::at(folder.path().join("state").join("ledgers"));
        (folder, ledgers)
    }

    /// Adds a number that is not recorded yet; returns the previous ones.
    fn add(ledgers: &Ledgers, number: u64) -> Result<Vec<u64>> {
        let mut found = Vec::new();
        ledgers.update_or_create::<Number>("s", |uses| {
            found = uses.iter().map(|u| u.number).collect();
            Ok((!found.contains(&number)).then_some(Number { number }))
        })?;
        Ok(found)
    }

    fn refusal(ledgers: &Ledgers) -> LedgerError {
        match add(ledgers, 99).unwrap_err() {
            Error::Ledger(error) => error,
            other => panic!("{other}"),
        }
    }

    #[test]
    fn uses_are_kept_and_a_line_cut_by_a_crash_was_none() {
        let (_folder, ledgers) = ledgers();
        assert!(!ledgers.update::<Number>("s", |_| panic!("there is no ledger")).unwrap());
        assert!(add(&ledgers, 1).unwrap().is_empty());
        assert_eq!(add(&ledgers, 2).unwrap(), [1]);
        assert_eq!(add(&ledgers, 2).unwrap(), [1, 2]);
        let path = ledgers.path::<Number>("s");
        let text = std::fs::read_to_string(&path).unwrap();
        let lines = ["{\"nysketch_ledger\":1,\"kind\":\"numbers\",\"of\":\"s\"}", "{\"number\":1}"];
        assert_eq!(text.lines().take(2).collect::<Vec<_>>(), lines);
        assert!(text.as_bytes().starts_with(nysketch_core::format::file::LEDGER_START));
        // All lengths at which a crash can cut the last line.
        let whole = text.len();
        let cut = text[..whole - 1].rfind('\n').unwrap() + 1;
        for end in cut..whole {
            std::fs::write(&path, &text[..end]).unwrap();
            assert_eq!(add(&ledgers, 3).unwrap(), [1], "{end}");
            assert_eq!(add(&ledgers, 3).unwrap(), [1, 3], "{end}");
        }
    }

    #[test]
    fn damage_and_other_ledgers_are_refused() {
        let (_folder, ledgers) = ledgers();
        add(&ledgers, 1).unwrap();
        let path = ledgers.path::<Number>("s");
        let text = std::fs::read_to_string(&path).unwrap();
        let damaged = [
            (String::new(), 1),
            ("{\"nysketch_ledger\":1".to_string(), 1),
            (text.replace("1,\"kind", "1,\"more\":2,\"kind"), 1),
            (format!("{text}\n"), 3),
            (format!("{text}{{\"number\":2,\"more\":1}}\n"), 3),
            (format!("{text}\0\0\0\n"), 3),
        ];
        for (content, expected) in damaged {
            std::fs::write(&path, &content).unwrap();
            let error = refusal(&ledgers);
            assert!(
                matches!(error, LedgerError::Damaged { line, .. } if line == expected),
                "{content}: {error}"
            );
            assert_eq!(std::fs::read_to_string(&path).unwrap(), content);
        }
        std::fs::write(&path, text.replace("\"s\"", "\"t\"")).unwrap();
        assert!(matches!(refusal(&ledgers), LedgerError::Misplaced { .. }));
        std::fs::write(&path, text.replace("ledger\":1", "ledger\":2")).unwrap();
        assert!(matches!(refusal(&ledgers), LedgerError::Misplaced { .. }));
    }

    #[test]
    #[cfg(unix)]
    fn only_regular_files_of_the_user_are_ledgers() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let (_folder, ledgers) = ledgers();
        add(&ledgers, 1).unwrap();
        let path = ledgers.path::<Number>("s");
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&path), mode(ledgers.folder())), (0o600, 0o700));
        let moved = path.with_extension("moved");
        std::fs::rename(&path, &moved).unwrap();
        for target in [moved.clone(), path.with_extension("nowhere")] {
            symlink(&target, &path).unwrap();
            assert!(matches!(refusal(&ledgers), LedgerError::NotAFile { .. }));
            std::fs::remove_file(&path).unwrap();
        }
        let made = std::process::Command::new("mkfifo").arg(&path).status().unwrap();
        assert!(made.success());
        assert!(matches!(refusal(&ledgers), LedgerError::NotAFile { .. }));
        std::fs::remove_file(&path).unwrap();
        // Another name of the same file is harmless: it is the same ledger.
        std::fs::hard_link(&moved, &path).unwrap();
        assert_eq!(add(&ledgers, 2).unwrap(), [1]);
        assert_eq!(std::fs::read(&moved).unwrap(), std::fs::read(&path).unwrap());
    }

    #[test]
    fn of_many_at_once_one_passes() {
        let (_folder, ledgers) = ledgers();
        let first: usize = std::thread::scope(|scope| {
            let one = |i: u64| {
                let ledgers = &ledgers;
                move || add(ledgers, i).unwrap().is_empty()
            };
            let all: Vec<_> = (0..16).map(|i| scope.spawn(one(i))).collect();
            all.into_iter().map(|thread| usize::from(thread.join().unwrap())).sum()
        });
        assert_eq!(first, 1);
        let mut all = add(&ledgers, 0).unwrap();
        all.sort_unstable();
        assert_eq!(all, (0..16).collect::<Vec<_>>());
    }
}
