//! Finds the files of paths, patterns and folders, and their formats.

use crate::error::{Error, Result, cannot_read};
use crate::folders::keys_of;
use crate::natural::natural_path_order;
use crate::options::{Format, ReadOptions};
use crate::pattern::Pattern;
use crate::store::{Kind, Metadata, Store};
use nysketch_core::format::may_be_file;
use std::collections::HashSet;
use std::io::{Chain, Cursor, Read};
use std::path::{Component, Path, PathBuf};

/// First bytes of an Arrow file.
pub(crate) const ARROW_FILE: &[u8] = b"ARROW1";
/// First bytes of an Arrow stream: a continuation marker.
pub(crate) const ARROW_STREAM: [u8; 4] = [0xff; 4];

/// Returns the format of a file extension; `.gz` and `.zst` are compressed csv.
pub(crate) fn by_extension(path: &Path) -> Option<Format> {
    let name = path.file_name()?.to_str()?.to_ascii_lowercase();
    let name = name.strip_suffix(".gz").or_else(|| name.strip_suffix(".zst")).unwrap_or(&name);
    match Path::new(name).extension()?.to_str()? {
        "csv" => Some(Format::Csv),
        "tsv" => Some(Format::Tsv),
        "npy" => Some(Format::Npy),
        "parquet" | "parq" | "pq" => Some(Format::Parquet),
        "arrow" | "arrows" | "feather" | "ipc" => Some(Format::Arrow),
        _ => None,
    }
}

/// Recognises a format by its first bytes; `None` means that they may be text.
pub(crate) fn by_content(start: &[u8]) -> Option<Format> {
    if start.starts_with(b"\x93NUMPY") {
        Some(Format::Npy)
    } else if start.starts_with(b"PAR1") {
        Some(Format::Parquet)
    } else if start.starts_with(ARROW_FILE) || start.starts_with(&ARROW_STREAM) {
        Some(Format::Arrow)
    } else {
        None
    }
}

/// Returns the format of a file: the forced one, otherwise by content, then by extension, then csv.
pub(crate) fn format_of(path: &Path, options: &ReadOptions) -> Result<Format> {
    if options.first_line_is_row() {
        // The first bytes may belong to a row, and a file without rows is valid.
        return Ok(options.format.or_else(|| by_extension(path)).unwrap_or(Format::Csv));
    }
    let name = path.display();
    let start = first_bytes(&*options.store, path)?;
    if start.is_empty() {
        return Err(Error::Empty { name: name.to_string() });
    }
    if let Some(forced) = options.format {
        return Ok(forced);
    }
    let start = if options.rowwise { first_line(&start) } else { &start };
    check_readable(&name.to_string(), start)?;
    Ok(by_content(start).or_else(|| by_extension(path)).unwrap_or(Format::Csv))
}

/// Returns the bytes before the first line break. In a csv file with a header they do not depend on
/// rows.
pub(crate) fn first_line(start: &[u8]) -> &[u8] {
    let end = start.iter().position(|b| matches!(b, b'\n' | b'\r'));
    &start[..end.unwrap_or(start.len())]
}

/// Refuses files whose first bytes show that they are not tables, and names their type.
pub(crate) fn check_readable(name: &str, start: &[u8]) -> Result<()> {
    let json = start.strip_prefix(b"{").map(|rest| rest.trim_ascii_start());
    let what = match start {
        start if may_be_file(start) => {
            "a nysketch plan or sketch, not a table; fit and inspect read it"
        }
        _ if json.is_some_and(|rest| rest.starts_with(b"\"schema\"")) => {
            "a nysketch model, not a table; predict and evaluate apply it to one"
        }
        _ if json.is_some_and(|rest| rest.starts_with(b"\"")) => "JSON",
        [b'P', b'K', 3, 4, ..] => "a zip archive (.xlsx, .npz)",
        [b'F', b'E', b'A', b'1', ..] => "a Feather file of version 1",
        [b'B', b'Z', b'h', ..] => "compressed with bzip2",
        [0xfd, b'7', b'z', b'X', b'Z', ..] => "compressed with xz",
        _ => return Ok(()),
    };
    let how = format!("is {what}; tables are csv (also .gz, .zst), Parquet, Arrow or npy files");
    Err(Error::not_a_table(name, how))
}

/// A source whose first bytes have been read.
type Peeked<R> = Chain<Cursor<Vec<u8>>, R>;

/// Number of first bytes that identify a file.
const START: u64 = 64;

/// Returns the first bytes of a source, and the whole source.
pub(crate) fn peek<R: Read>(mut source: R) -> std::io::Result<(Vec<u8>, Peeked<R>)> {
    let mut start = Vec::new();
    source.by_ref().take(START).read_to_end(&mut start)?;
    Ok((start.clone(), Cursor::new(start).chain(source)))
}

fn first_bytes(store: &dyn Store, path: &Path) -> Result<Vec<u8>> {
    let mut start = Vec::new();
    let file = store.open(path).map_err(cannot_read(path))?;
    file.take(START).read_to_end(&mut start).map_err(cannot_read(path))?;
    Ok(start)
}

/// Returns whether a path means stdin.
pub(crate) fn is_stdin(path: &Path) -> bool {
    path == Path::new("-")
}

/// The tables that were found, and the paths that were skipped.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Found {
    /// The tables in reading order, each real file once.
    pub files: Vec<PathBuf>,
    /// For each file the keys and values of folders such as `month=1` below the given folder or
    /// pattern.
    pub keys: Vec<Vec<(String, String)>>,
    /// Files in folders that do not look like tables.
    pub ignored: Vec<PathBuf>,
    /// Other names of files and folders that are already included.
    pub repeated: Vec<PathBuf>,
    /// Links to folders that match a pattern. Patterns do not follow such links.
    pub links: Vec<PathBuf>,
}

impl Found {
    /// Describes for the user what was skipped, one sentence each.
    pub fn notes(&self) -> Vec<String> {
        let lists = [
            ("files skipped because they do not look like tables", &self.ignored),
            ("found twice and read once", &self.repeated),
            ("links to folders, which patterns do not follow", &self.links),
        ];
        let some = lists.into_iter().filter(|(_, paths)| !paths.is_empty());
        some.map(|(what, paths)| {
            let names: Vec<String> =
                paths.iter().take(NAMED).map(|p| p.display().to_string()).collect();
            let more = match paths.len().saturating_sub(NAMED) {
                0 => String::new(),
                n => format!(" and {n} more"),
            };
            format!("{what}: {}{more}", names.join(", "))
        })
        .collect()
    }
}

/// Number of files that a note names.
const NAMED: usize = 10;

/// Expands patterns and folders of a store. The files of each are in [natural
/// order](crate::natural_order).
///
/// `-` means stdin. Files and folders whose names start with `_` or `.`, such as Spark's
/// `_SUCCESS`, are skipped. A file that is found twice, through a link or because it was named
/// twice, is read once.
///
/// ```
/// use nysketch_tables::{find, store::Local};
///
/// let folder = tempfile::tempdir()?;
/// for name in ["10.csv", "9.csv", "README"] {
///     std::fs::write(folder.path().join(name), "x\n1\n")?;
/// }
/// let found = find(&Local, [folder.path()])?;
/// assert_eq!(found.files, [folder.path().join("9.csv"), folder.path().join("10.csv")]);
/// assert_eq!(found.ignored, [folder.path().join("README")]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn find<P: AsRef<Path>>(
    store: &dyn Store,
    paths: impl IntoIterator<Item = P>,
) -> Result<Found> {
    find_by(store, paths, true)
}

/// Like [`find()`]. Without `look`, only the name of a file in a folder decides whether it is a
/// table, not its first bytes.
pub(crate) fn find_by<P: AsRef<Path>>(
    store: &dyn Store,
    paths: impl IntoIterator<Item = P>,
    look: bool,
) -> Result<Found> {
    let (found, base) = (Found::default(), PathBuf::new());
    let mut finder = Finder { store, found, base, look, seen: HashSet::new() };
    for path in paths {
        let path = path.as_ref();
        finder.base = path.to_path_buf();
        let text = path.to_string_lossy();
        if is_stdin(path) {
            if finder.found.files.iter().any(|f| is_stdin(f)) {
                return Err(Error::Usage("stdin ('-') can be named only once".into()));
            }
            finder.push(path.to_path_buf());
        } else if text.contains(['*', '?', '[']) && store.metadata(path).is_err() {
            finder.add_matches(&text)?;
        } else {
            finder.add(path)?;
        }
    }
    Ok(finder.found)
}

/// Identity of a file: its two numbers, or its path if it has none.
#[derive(PartialEq, Eq, Hash)]
enum Identity {
    Numbers([u64; 2]),
    Path(PathBuf),
}

impl Identity {
    fn new(path: &Path, metadata: &Metadata) -> Self {
        metadata.id.map_or_else(|| Identity::Path(path.to_path_buf()), Identity::Numbers)
    }
}

/// The state of the search.
struct Finder<'a> {
    store: &'a dyn Store,
    found: Found,
    /// The given path up to its first wildcard.
    base: PathBuf,
    /// Whether the first bytes of a file may show that it is a table.
    look: bool,
    /// The files that are already included.
    seen: HashSet<Identity>,
}

impl Finder<'_> {
    fn metadata(&self, path: &Path) -> Result<Metadata> {
        self.store.metadata(path).map_err(cannot_read(path))
    }

    /// Returns the number of tables found, repeated ones included.
    fn tables(&self) -> usize {
        self.found.files.len() + self.found.repeated.len()
    }

    /// Adds the files that match a pattern, without hidden files that it does not name.
    fn add_matches(&mut self, text: &str) -> Result<()> {
        let plain =
            |part: &Component<'_>| !part.as_os_str().to_string_lossy().contains(['*', '?', '[']);
        self.base = Path::new(text).components().take_while(plain).collect();
        let mut matches = Pattern::new(text)?.matches(self.store, &mut self.found.links)?;
        matches.sort_by(|a, b| natural_path_order(a, b));
        matches.dedup();
        let before = self.tables();
        for path in matches {
            // `**` returns folders as well as their contents.
            if text.contains("**") && self.metadata(&path).is_ok_and(|m| m.kind == Kind::Folder) {
                continue;
            }
            self.add(&path)?;
        }
        if self.tables() == before {
            return Err(Error::NoTables(format!("no table matches {text}")));
        }
        Ok(())
    }

    /// Adds a file, or all tables of a folder.
    fn add(&mut self, path: &Path) -> Result<()> {
        let name = path.display();
        let metadata = self.metadata(path)?;
        match metadata.kind {
            Kind::File => self.add_file(path.to_path_buf(), &metadata),
            Kind::Other => {
                let how = "is not a regular file, and files are read several times; \
                           pipe it into '-' with `plan`";
                return Err(Error::not_a_table(name, how));
            }
            Kind::Folder => {
                let before = self.tables();
                self.add_folder(path, &metadata, &mut HashSet::new())?;
                if self.tables() == before {
                    let message = format!(
                        "the folder {name} holds no tables (csv, tsv, npy, parquet, arrow)"
                    );
                    return Err(Error::NoTables(message));
                }
            }
        }
        Ok(())
    }

    fn add_file(&mut self, path: PathBuf, metadata: &Metadata) {
        if self.seen.insert(Identity::new(&path, metadata)) {
            self.push(path)
        } else {
            self.found.repeated.push(path)
        }
    }

    fn push(&mut self, path: PathBuf) {
        self.found.keys.push(keys_of(path.strip_prefix(&self.base).unwrap_or(Path::new(""))));
        self.found.files.push(path);
    }

    /// Adds the tables of a folder unless it was visited already: links may form cycles.
    fn add_folder(
        &mut self,
        folder: &Path,
        metadata: &Metadata,
        visited: &mut HashSet<Identity>,
    ) -> Result<()> {
        if !visited.insert(Identity::new(folder, metadata)) {
            self.found.repeated.push(folder.to_path_buf());
            return Ok(());
        }
        let cannot = |error| Error::read(format!("the folder {}", folder.display()), error);
        let mut entries = self.store.list(folder).map_err(cannot)?;
        entries.sort_by(|a, b| natural_path_order(a, b));
        for path in entries {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if name.starts_with(['_', '.']) {
                continue;
            }
            let metadata = self.metadata(&path)?;
            let is_table = || -> Result<bool> {
                Ok(by_extension(&path).is_some()
                    || self.look && by_content(&first_bytes(self.store, &path)?).is_some())
            };
            match metadata.kind {
                Kind::Folder => self.add_folder(&path, &metadata, visited)?,
                Kind::File if is_table()? => self.add_file(path, &metadata),
                _ => self.found.ignored.push(path),
            }
        }
        Ok(())
    }
}
