//! A cache of compiled kernels.
//!
//! The cache is a folder that only its user can write to, because its files are executed. Each file
//! starts with its own checksum, 32 bytes of SHA-256, followed by the program. If there is no such
//! folder, or it belongs to another user, kernels are compiled in every run.

use sha2::{Digest, Sha256};
use std::io::Write;
use std::path::{Path, PathBuf};

const DIGEST: usize = 32;

/// The program compiled from these parts, if it is in the cache.
pub fn read(parts: &[&str]) -> Option<Vec<u8>> {
    let bytes = std::fs::read(folder()?.join(name(parts))).ok()?;
    let (digest, program) = bytes.split_at_checked(DIGEST)?;
    (Sha256::digest(program)[..] == *digest).then(|| program.to_vec())
}

/// Stores a program. Failure to store it is not an error.
pub fn write(parts: &[&str], program: &[u8]) {
    if let Some(folder) = folder() {
        let _ = store(&folder, parts, program);
    }
}

fn store(folder: &Path, parts: &[&str], program: &[u8]) -> std::io::Result<()> {
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(&Sha256::digest(program))?;
    file.write_all(program)?;
    file.persist(folder.join(name(parts)))?;
    Ok(())
}

fn name(parts: &[&str]) -> String {
    let mut digest = Sha256::new();
    for part in parts {
        digest.update((part.len() as u64).to_le_bytes());
        digest.update(part);
    }
    digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The folder in an environment variable, if it is set.
fn variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from)
}

/// The folder of the cache, which is created if it is missing.
fn folder() -> Option<PathBuf> {
    let root = if cfg!(windows) {
        variable("LOCALAPPDATA")
    } else {
        variable("XDG_CACHE_HOME").or_else(|| Some(variable("HOME")?.join(".cache")))
    };
    let folder = root.filter(|root| root.is_absolute())?.join("nysketch").join("kernels");
    if !folder.is_dir() {
        make(&folder).ok()?;
    }
    // A user who can write to the parent folder can replace the cache folder.
    (folder.parent().is_some_and(is_private) && is_private(&folder)).then_some(folder)
}

#[cfg(unix)]
fn make(folder: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

#[cfg(not(unix))]
fn make(folder: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)
}

/// Whether only the current user can write to the folder: it belongs to the owner of a new file in
/// it, and its mode excludes others.
#[cfg(unix)]
fn is_private(folder: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let Ok(metadata) = std::fs::symlink_metadata(folder) else { return false };
    let file = tempfile::tempfile_in(folder).and_then(|file| file.metadata());
    metadata.is_dir()
        && metadata.mode() & 0o022 == 0
        && file.is_ok_and(|file| file.uid() == metadata.uid())
}

#[cfg(not(unix))]
fn is_private(folder: &Path) -> bool {
    folder.is_dir()
}
