//! Atomic files: written under a temporary name, synced and renamed, so that a file is either
//! complete or absent.

use std::ffi::OsString;
use std::fs::{File, Metadata};
use std::io::{self, Seek, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Prefix of temporary names.
const PREFIX: &str = ".nysketch-";
/// Age from which a temporary file is considered left behind by a killed program.
const LEFT_BEHIND: Duration = Duration::from_secs(24 * 60 * 60);

/// The writer that fills a file.
pub trait Out: Write + Seek + Send {}
impl<T: Write + Seek + Send> Out for T {}

/// Returns the folder of a path, `.` for a bare file name.
fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Fails early if a file cannot be created at `path`. Folders, devices and pipes are never
/// replaced.
pub fn check_writable(path: &Path) -> io::Result<()> {
    if let Ok(metadata) = path.metadata() {
        let (kind, message) = if metadata.is_dir() {
            (io::ErrorKind::IsADirectory, "it is a folder")
        } else if !metadata.is_file() {
            (io::ErrorKind::InvalidInput, "it is not a regular file")
        } else if metadata.permissions().readonly() {
            // Refused for the superuser too, whose writes succeed regardless of permissions.
            (io::ErrorKind::PermissionDenied, "it is read-only")
        } else {
            return check_folder(path);
        };
        return Err(io::Error::new(kind, message));
    }
    check_folder(path)
}

/// Fails if a file cannot be created in the folder of `path`.
fn check_folder(path: &Path) -> io::Result<()> {
    let folder = folder(path);
    if !folder.is_dir() {
        let message = format!("the folder {} does not exist", folder.display());
        return Err(io::Error::new(io::ErrorKind::NotFound, message));
    }
    // Only the kind of the error: its message would contain the temporary name.
    tempfile::NamedTempFile::new_in(folder).map(drop).map_err(|e| e.kind().into())
}

/// Whether two paths lead to the same file through any links, or to the same place if no file
/// exists there.
pub fn same(a: &Path, b: &Path) -> bool {
    if place(a).is_some_and(|a| place(b) == Some(a)) {
        return true;
    }
    identity(a).is_some_and(|a| identity(b) == Some(a))
}

/// The folder and the name of a path. A link to a file that does not exist yet leads to the place
/// of its target.
fn place(path: &Path) -> Option<(PathBuf, OsString)> {
    let path = &path.read_link().map_or(path.to_path_buf(), |target| folder(path).join(target));
    Some((folder(path).canonicalize().ok()?, path.file_name()?.to_owned()))
}

/// Device and number of a file.
#[cfg(unix)]
fn identity(path: &Path) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    path.metadata().map(|m| (m.dev(), m.ino())).ok()
}

/// Absolute path of a file, without links.
#[cfg(not(unix))]
fn identity(path: &Path) -> Option<PathBuf> {
    path.canonicalize().ok()
}

/// Writes a file with `fill` and moves it into place only if everything succeeded. A replaced file
/// keeps its mode. Files that killed programs left in the folder more than a day ago are removed.
///
/// ```
/// use nysketch_core::format::file;
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("sketch.nys");
/// file::write(&path, |out| out.write_all(b"first"))?;
/// // If an error occurs, the old file is unchanged.
/// let failed = file::write(&path, |out| {
///     out.write_all(b"second")?;
///     Err(std::io::Error::other("the disk is on fire"))
/// });
/// assert!(failed.is_err());
/// assert_eq!(std::fs::read(&path)?, b"first");
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn write<E: From<io::Error>>(
    path: &Path,
    fill: impl FnOnce(&mut dyn Out) -> Result<(), E>,
) -> Result<(), E> {
    // Replaces the target of a link, not the link.
    let target = path.canonicalize();
    let path = target.as_deref().unwrap_or(path);
    check_writable(path)?;
    let mut builder = tempfile::Builder::new();
    builder.prefix(PREFIX);
    #[cfg(unix)]
    {
        // The mode of an ordinary new file: readable by others if the user's umask allows it.
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(std::fs::Permissions::from_mode(0o666));
    }
    let file = builder.tempfile_in(folder(path))?;
    // The lock is held while the file is being written. Some file systems have no locks; there,
    // only the age protects the file.
    let _ = file.as_file().try_lock();
    remove_leftovers(folder(path), file.as_file());
    if let Ok(there) = path.metadata() {
        file.as_file().set_permissions(there.permissions())?;
    }
    // Writes through the plain file, because errors of the named one contain the temporary name.
    let mut out = io::BufWriter::with_capacity(1 << 20, file.as_file());
    fill(&mut out)?;
    out.into_inner().map_err(|e| e.into_error())?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|e| e.error)?;
    Ok(())
}

/// Whether a name is a temporary name of this module: the prefix, followed by six letters or
/// digits.
fn is_temporary(name: &str) -> bool {
    let rest = name.strip_prefix(PREFIX);
    rest.is_some_and(|r| r.len() == 6 && r.bytes().all(|b| b.is_ascii_alphanumeric()))
}

/// Removes temporary files of this user that are old and not locked. Files that cannot be removed
/// are left; they do no harm.
fn remove_leftovers(folder: &Path, ours: &File) {
    let Ok(entries) = folder.read_dir() else { return };
    for entry in entries.flatten() {
        if !is_temporary(&entry.file_name().to_string_lossy()) {
            continue;
        }
        let Ok(metadata) = entry.metadata() else { continue };
        let age = metadata.modified().ok().and_then(|then| then.elapsed().ok());
        if age.is_none_or(|age| age <= LEFT_BEHIND) || !same_owner(&metadata, ours) {
            continue;
        }
        if metadata.is_dir() {
            remove_sketches(&entry.path());
        } else if metadata.is_file()
            && File::open(entry.path()).is_ok_and(|file| file.try_lock().is_ok())
        {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// Removes a folder if it holds only sketches.
fn remove_sketches(folder: &Path) {
    let Ok(entries) = folder.read_dir() else { return };
    let files: Vec<_> = entries.flatten().map(|e| e.path()).collect();
    if files.iter().all(|f| f.extension().is_some_and(|e| e == "nys") && f.is_file()) {
        files.iter().for_each(|f| drop(std::fs::remove_file(f)));
        let _ = std::fs::remove_dir(folder);
    }
}

#[cfg(unix)]
fn same_owner(metadata: &Metadata, ours: &File) -> bool {
    use std::os::unix::fs::MetadataExt;
    ours.metadata().is_ok_and(|ours| ours.uid() == metadata.uid())
}

#[cfg(not(unix))]
fn same_owner(_: &Metadata, _: &File) -> bool {
    true
}

/// An atomic folder: filled under a temporary name, then renamed, so that it is either complete or
/// absent.
///
/// ```
/// use nysketch_core::format::file::Folder;
/// # let parent = tempfile::tempdir()?;
/// # let path = parent.path().join("days");
/// let folder = Folder::new(&path)?;
/// folder.write("monday.nys", b"...")?;
/// assert!(!path.exists());
/// folder.persist()?;
/// assert!(path.join("monday.nys").exists());
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct Folder {
    temporary: tempfile::TempDir,
    path: std::path::PathBuf,
}

impl Folder {
    /// Starts a folder for `path`, which must not exist or must be an empty folder.
    pub fn new(path: &Path) -> io::Result<Self> {
        let path: std::path::PathBuf = path.components().collect();
        let mut builder = tempfile::Builder::new();
        builder.prefix(PREFIX);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            builder.permissions(std::fs::Permissions::from_mode(0o777));
        }
        Ok(Folder { temporary: builder.tempdir_in(folder(&path))?, path })
    }

    /// Writes a file into the folder.
    pub fn write(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let mut file = std::fs::File::create_new(self.temporary.path().join(name))?;
        file.write_all(bytes)?;
        file.sync_all()
    }

    /// Moves the folder into place.
    pub fn persist(self) -> io::Result<()> {
        // Renaming replaces an empty folder of that name and fails for a non-empty one.
        std::fs::rename(self.temporary.path(), &self.path)?;
        let _ = self.temporary.keep();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::SystemTime;

    #[test]
    #[cfg(unix)]
    fn modes_stay_and_read_only_files_too() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.nys");
        write(&path, |out| out.write_all(b"one")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        write(&path, |out| out.write_all(b"two")).unwrap();
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o444)).unwrap();
        let error = write(&path, |out| out.write_all(b"three")).unwrap_err();
        assert!(error.to_string().contains("read-only"));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "two");
    }

    /// Creates a file with this time of modification.
    fn make(path: &Path, time: SystemTime) -> File {
        let file = File::create(path).unwrap();
        file.set_modified(time).unwrap();
        file
    }

    #[test]
    fn leftovers_of_killed_programs_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        let old = SystemTime::now() - 2 * LEFT_BEHIND;
        make(&path.join(".nysketch-k1LLed"), old);
        make(&path.join(".nysketch-cache-of-mine"), old);
        make(&path.join(".nysketch-y0ungs"), SystemTime::now());
        make(&path.join("other"), old);
        let held = make(&path.join(".nysketch-h3ldss"), old);
        held.lock().unwrap();
        write(&path.join("s.nys"), |out| out.write_all(b"sums")).unwrap();
        assert!(!path.join(".nysketch-k1LLed").exists());
        for name in
            [".nysketch-cache-of-mine", ".nysketch-y0ungs", "other", ".nysketch-h3ldss", "s.nys"]
        {
            assert!(path.join(name).exists(), "{name}");
        }
    }
}
