//! Where the bytes of tables are: the one door between readers and storage.
//!
//! Readers ask a [`Store`] for bytes and never open a file themselves, so another kind of storage is
//! one more implementation.

use std::fmt::Debug;
use std::fs::{self, File};
use std::io::{self, Read, Seek};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Bytes that can be read from any place.
pub trait Bytes: Read + Seek + Send {}

impl<T: Read + Seek + Send> Bytes for T {}

/// What a path names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Bytes that can be read any number of times.
    File,
    /// A folder.
    Folder,
    /// A pipe, a device or similar.
    Other,
}

/// What is known of a path without reading it. If all of it is the same, a file counts as unchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Metadata {
    /// What it names.
    pub kind: Kind,
    /// Size of a file.
    pub bytes: u64,
    /// When it was last changed, where that is known.
    pub modified: Option<SystemTime>,
    /// Two numbers that no other file or folder of the store has, such as device and inode, whatever it is called;
    /// `None` where a path is all that is known.
    pub id: Option<[u64; 2]>,
}

/// A place that holds files by name.
///
/// [`Local`] is the file system. Any other, such as an object store or files in memory, goes into
/// [`ReadOptions::store`](crate::ReadOptions::store):
///
/// ```
/// use nysketch_core::rows::read_in_order;
/// use nysketch_tables::{Dataset, ReadOptions, store::{Bytes, Kind, Metadata, Store}};
/// use std::io::{self, Cursor, ErrorKind};
/// use std::path::{Path, PathBuf};
///
/// /// One file.
/// #[derive(Debug)]
/// struct One(&'static str);
///
/// impl Store for One {
///     fn metadata(&self, _: &Path) -> io::Result<Metadata> {
///         Ok(Metadata { kind: Kind::File, bytes: self.0.len() as u64, modified: None, id: None })
///     }
///     fn list(&self, _: &Path) -> io::Result<Vec<PathBuf>> {
///         Err(ErrorKind::NotADirectory.into())
///     }
///     fn open(&self, _: &Path) -> io::Result<Box<dyn Bytes>> {
///         Ok(Box::new(Cursor::new(self.0)))
///     }
/// }
///
/// let options = ReadOptions::default().store(One("a,b\n1,2\n3,4\n"));
/// let table = Dataset::open(["x.csv"], &options)?;
/// let mut values = Vec::new();
/// read_in_order(&table, &(), |block| Ok(values.extend_from_slice(&block.values)))?;
/// assert_eq!(values, [1.0, 2.0, 3.0, 4.0]);
/// # Ok::<(), nysketch_tables::Error>(())
/// ```
pub trait Store: Debug + Send + Sync {
    /// What a path names, links followed.
    fn metadata(&self, path: &Path) -> io::Result<Metadata>;
    /// What is in a folder, in any order.
    fn list(&self, folder: &Path) -> io::Result<Vec<PathBuf>>;
    /// Whether a path is a link to another one.
    fn is_link(&self, path: &Path) -> io::Result<bool> {
        let _ = path;
        Ok(false)
    }
    /// Starts reading a file.
    fn open(&self, path: &Path) -> io::Result<Box<dyn Bytes>>;
}

/// The file system of this machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct Local;

impl Store for Local {
    fn metadata(&self, path: &Path) -> io::Result<Metadata> {
        let metadata = fs::metadata(path)?;
        let kind = match metadata.is_dir() {
            true => Kind::Folder,
            false if metadata.is_file() => Kind::File,
            false => Kind::Other,
        };
        let (bytes, modified) = (metadata.len(), metadata.modified().ok());
        Ok(Metadata { kind, bytes, modified, id: id(&metadata) })
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<PathBuf>> {
        fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect()
    }

    fn is_link(&self, path: &Path) -> io::Result<bool> {
        Ok(fs::symlink_metadata(path)?.is_symlink())
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn Bytes>> {
        Ok(Box::new(File::open(path)?))
    }
}

#[cfg(unix)]
fn id(metadata: &fs::Metadata) -> Option<[u64; 2]> {
    use std::os::unix::fs::MetadataExt;
    Some([metadata.dev(), metadata.ino()])
}

#[cfg(not(unix))]
fn id(_: &fs::Metadata) -> Option<[u64; 2]> {
    None
}
