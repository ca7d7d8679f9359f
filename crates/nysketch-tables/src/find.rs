//! From paths to files: globs, folders, formats.

use crate::error::{Error, Result, cannot_read};
use crate::options::Format;
use crate::store::{Kind, Store};
use nysketch::format::{START, may_be_file};
use std::io::{Chain, Cursor, Read};
use std::path::{Path, PathBuf};

/// How an Arrow file starts.
pub(crate) const ARROW_FILE: &[u8] = b"ARROW1";
/// How an Arrow stream starts: a continuation marker.
const ARROW_STREAM: &[u8] = b"\xff\xff\xff\xff";

/// The format that the extension stands for; `.gz` and `.zst` are compressed csv.
pub(crate) fn by_extension(path: &Path) -> Option<Format> {
    let name = path.file_name()?.to_str()?.to_ascii_lowercase();
    let name = name.strip_suffix(".gz").or_else(|| name.strip_suffix(".zst")).unwrap_or(&name);
    match Path::new(name).extension()?.to_str()? {
        "csv" | "txt" => Some(Format::Csv),
        "tsv" => Some(Format::Tsv),
        "npy" => Some(Format::Npy),
        "parquet" | "parq" | "pq" => Some(Format::Parquet),
        "arrow" | "arrows" | "feather" | "ipc" => Some(Format::Arrow),
        _ => None,
    }
}

/// The format by the first bytes, unless they may be text.
pub(crate) fn by_content(start: &[u8]) -> Option<Format> {
    if start.starts_with(b"\x93NUMPY") {
        Some(Format::Npy)
    } else if start.starts_with(b"PAR1") {
        Some(Format::Parquet)
    } else if start.starts_with(ARROW_FILE) || start.starts_with(ARROW_STREAM) {
        Some(Format::Arrow)
    } else {
        None
    }
}

/// The format of a file: as forced, by content, by extension, or csv.
pub(crate) fn format_of(store: &dyn Store, path: &Path, forced: Option<Format>) -> Result<Format> {
    let name = path.display();
    let start = first_bytes(store, path)?;
    if start.is_empty() {
        return Err(Error::Empty { name: name.to_string() });
    }
    if let Some(forced) = forced {
        return Ok(forced);
    }
    let unreadable = match &start[..] {
        [b'P', b'K', 3, 4, ..] => Some("a zip archive (.xlsx, .npz)"),
        [b'F', b'E', b'A', b'1', ..] => Some("a Feather file of version 1"),
        [b'B', b'Z', b'h', ..] => Some("compressed with bzip2"),
        [0xfd, b'7', b'z', b'X', b'Z', ..] => Some("compressed with xz"),
        start if may_be_file(start) => Some("a nysketch file, not a table"),
        _ => None,
    };
    if let Some(what) = unreadable {
        let how =
            format!("is {what}; tables are csv (also .gz, .zst), Parquet, Arrow or npy files");
        return Err(Error::not_a_table(name, how));
    }
    Ok(by_content(&start).or_else(|| by_extension(path)).unwrap_or(Format::Csv))
}

/// A source whose first bytes have been read.
type Peeked<R> = Chain<Cursor<Vec<u8>>, R>;

/// The first bytes of a source, up to eight, and the whole source.
pub(crate) fn peek<R: Read>(mut source: R) -> std::io::Result<(Vec<u8>, Peeked<R>)> {
    let mut start = Vec::new();
    source.by_ref().take(8).read_to_end(&mut start)?;
    Ok((start.clone(), Cursor::new(start).chain(source)))
}

fn first_bytes(store: &dyn Store, path: &Path) -> Result<Vec<u8>> {
    let mut start = Vec::new();
    let file = store.open(path).map_err(cannot_read(path))?;
    file.take(START as u64).read_to_end(&mut start).map_err(cannot_read(path))?;
    Ok(start)
}

/// Whether a path stands for stdin.
pub(crate) fn is_stdin(path: &Path) -> bool {
    path == Path::new("-")
}

/// The tables found, and the files skipped.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Found {
    /// The tables, in the order in which they are read.
    pub files: Vec<PathBuf>,
    /// Files in folders that do not look like tables.
    pub ignored: Vec<PathBuf>,
}

/// Expands patterns and folders of a store; the files of each are in the order of their names.
///
/// `-` stands for stdin. Files and folders whose names start with `_` or `.`, such as Spark's `_SUCCESS`, are
/// skipped.
///
/// ```
/// use nysketch_tables::{find, store::Local};
///
/// let folder = tempfile::tempdir()?;
/// for name in ["b.csv", "a.csv", "README"] {
///     std::fs::write(folder.path().join(name), "x\n1\n")?;
/// }
/// let found = find(&Local, [folder.path()])?;
/// assert_eq!(found.files, [folder.path().join("a.csv"), folder.path().join("b.csv")]);
/// assert_eq!(found.ignored, [folder.path().join("README")]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn find<P: AsRef<Path>>(
    store: &dyn Store,
    paths: impl IntoIterator<Item = P>,
) -> Result<Found> {
    let mut found = Found::default();
    for path in paths {
        let path = path.as_ref();
        let text = path.to_string_lossy();
        if is_stdin(path) {
            if found.files.iter().any(|f| is_stdin(f)) {
                return Err(Error::Usage("stdin ('-') can be named only once".into()));
            }
            found.files.push(path.to_path_buf());
        } else if text.contains(['*', '?', '[']) && store.metadata(path).is_err() {
            add_matches(store, &text, &mut found)?;
        } else {
            add(store, path, &mut found)?;
        }
    }
    Ok(found)
}

/// The files that a pattern means, each once, without hidden files that it does not name.
fn add_matches(store: &dyn Store, pattern: &str, found: &mut Found) -> Result<()> {
    let matches = store.matching(pattern).map_err(|error| match error.kind() {
        std::io::ErrorKind::InvalidInput => {
            Error::NoTables(format!("{pattern} is not a valid pattern: {error}"))
        }
        _ => Error::read(pattern, error),
    })?;
    let names_notes = pattern.rsplit('/').next().is_some_and(|last| last.starts_with('_'));
    let mut matched = Found::default();
    for path in matches {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with('_') && !names_notes {
            continue;
        }
        // `**` gives folders and then what is in them.
        let folder = || store.metadata(&path).is_ok_and(|m| m.kind == Kind::Folder);
        if pattern.contains("**") && folder() {
            continue;
        }
        add(store, &path, &mut matched)?;
    }
    if matched.files.is_empty() {
        return Err(Error::NoTables(format!("no table matches {pattern}")));
    }
    found.files.append(&mut matched.files);
    found.ignored.append(&mut matched.ignored);
    Ok(())
}

/// A file, or all tables of a folder.
fn add(store: &dyn Store, path: &Path, found: &mut Found) -> Result<()> {
    let name = path.display();
    match store.metadata(path).map_err(cannot_read(path))?.kind {
        Kind::File => found.files.push(path.to_path_buf()),
        Kind::Other => {
            let how = "is not a regular file, and files are read several times; \
                       pipe it into '-' with `plan`";
            return Err(Error::not_a_table(name, how));
        }
        Kind::Folder => {
            let before = found.files.len();
            add_folder(store, path, found)?;
            if found.files.len() == before {
                let message =
                    format!("the folder {name} holds no tables (csv, tsv, npy, parquet, arrow)");
                return Err(Error::NoTables(message));
            }
        }
    }
    Ok(())
}

fn add_folder(store: &dyn Store, folder: &Path, found: &mut Found) -> Result<()> {
    let cannot = |error| Error::read(format!("the folder {}", folder.display()), error);
    let mut entries = store.list(folder).map_err(cannot)?;
    entries.sort();
    for path in entries {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name.starts_with(['_', '.']) {
            continue;
        }
        let kind = store.metadata(&path).map_err(cannot_read(&path))?.kind;
        let is_table = || -> Result<bool> {
            Ok(by_extension(&path).is_some() || by_content(&first_bytes(store, &path)?).is_some())
        };
        match kind {
            Kind::Folder => add_folder(store, &path, found)?,
            Kind::File if is_table()? => found.files.push(path),
            _ => found.ignored.push(path),
        }
    }
    Ok(())
}
