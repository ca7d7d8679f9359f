//! The only interface between readers and storage.
//!
//! Readers get bytes from a [`Store`] and never open a file themselves. Another kind of storage
//! therefore needs only another implementation of the trait.

use std::fmt::Debug;
use std::fs::{self, File};
use std::io::{self, Read, Seek};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Bytes with random access.
pub trait Bytes: Read + Seek + Send {}

impl<T: Read + Seek + Send> Bytes for T {}

/// The type of an object in a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A file, which can be read any number of times.
    File,
    /// A folder.
    Folder,
    /// A pipe, a device or similar.
    Other,
}

/// Metadata of a path, known without reading it. A file counts as unchanged if all fields are
/// equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Metadata {
    /// The type of the object.
    pub kind: Kind,
    /// Size of a file in bytes.
    pub bytes: u64,
    /// Time of the last change, if known.
    pub modified: Option<SystemTime>,
    /// Two numbers that identify a file or folder of the store whatever its path, such as device
    /// and inode; `None` if only its path identifies it.
    pub id: Option<[u64; 2]>,
}

/// A place that contains files by name.
///
/// [`Local`] is the file system. Any other store, such as an object store or files in memory, is
/// set with [`ReadOptions::store`](crate::ReadOptions::store):
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
    /// Returns the metadata of a path. Links are followed.
    fn metadata(&self, path: &Path) -> io::Result<Metadata>;
    /// Lists a folder, in any order.
    fn list(&self, folder: &Path) -> io::Result<Vec<PathBuf>>;
    /// Returns whether a path is a link.
    fn is_link(&self, path: &Path) -> io::Result<bool> {
        let _ = path;
        Ok(false)
    }
    /// Opens a file for reading.
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
