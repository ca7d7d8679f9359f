//! Files that are there whole or not at all: written under a temporary name, synced, renamed.

use std::io::{self, Seek, Write};
use std::path::Path;

/// What a file is written through.
pub trait Out: Write + Seek + Send {}
impl<T: Write + Seek + Send> Out for T {}

/// The folder of a path, `.` for a bare file name.
fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Fails now if a file could not be created at `path` later. Folders, devices and pipes are never
/// replaced.
pub fn check_writable(path: &Path) -> io::Result<()> {
    let refuse = |kind, message: &str| Err(io::Error::new(kind, message));
    match path.metadata() {
        Ok(m) if m.is_dir() => return refuse(io::ErrorKind::IsADirectory, "it is a folder"),
        Ok(m) if !m.is_file() => {
            return refuse(io::ErrorKind::InvalidInput, "it is not a regular file");
        }
        _ => {}
    }
    let folder = folder(path);
    if !folder.is_dir() {
        let message = format!("the folder {} does not exist", folder.display());
        return Err(io::Error::new(io::ErrorKind::NotFound, message));
    }
    // Without the temporary name that the message would carry.
    tempfile::NamedTempFile::new_in(folder).map(drop).map_err(|e| e.kind().into())
}

/// Writes a file by `fill` and puts it in place only if all of it succeeded.
///
/// ```
/// use nysketch::file;
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("sketch.nys");
/// file::write(&path, |out| out.write_all(b"first"))?;
/// // An error on the way leaves the old file as it was.
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
    // What a link points to is replaced, not the link.
    let target = path.canonicalize();
    let path = target.as_deref().unwrap_or(path);
    check_writable(path)?;
    let mut builder = tempfile::Builder::new();
    builder.prefix(".nysketch-");
    #[cfg(unix)]
    {
        // As an ordinary new file: readable for others where the user's mask allows it.
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(std::fs::Permissions::from_mode(0o666));
    }
    let file = builder.tempfile_in(folder(path))?;
    // By the plain file, whose errors do not name the temporary one.
    let mut out = io::BufWriter::with_capacity(1 << 20, file.as_file());
    fill(&mut out)?;
    out.into_inner().map_err(|e| e.into_error())?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|e| e.error)?;
    Ok(())
}

/// A folder that is there whole or not at all: filled under a temporary name, then renamed.
///
/// ```
/// use nysketch::file::Folder;
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
    /// `path` must not exist, or be an empty folder.
    pub fn new(path: &Path) -> io::Result<Self> {
        let path: std::path::PathBuf = path.components().collect();
        let mut builder = tempfile::Builder::new();
        builder.prefix(".nysketch-");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            builder.permissions(std::fs::Permissions::from_mode(0o777));
        }
        Ok(Folder { temporary: builder.tempdir_in(folder(&path))?, path })
    }

    /// Writes a file into it.
    pub fn write(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let mut file = std::fs::File::create_new(self.temporary.path().join(name))?;
        file.write_all(bytes)?;
        file.sync_all()
    }

    /// Puts it in place.
    pub fn persist(self) -> io::Result<()> {
        // An empty folder of that name gives way, a full one does not.
        std::fs::rename(self.temporary.path(), &self.path)?;
        let _ = self.temporary.keep();
        Ok(())
    }
}
