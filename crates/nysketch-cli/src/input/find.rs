//! From what was typed to files: globs, folders, formats.

use crate::args::FormatArg;
use crate::output::Usage;
use anyhow::{Context, Result, bail};
use std::fs::File;
use std::io::{Chain, Cursor, Read};
use std::path::{Path, PathBuf};

/// Format of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableFormat {
    Csv,
    Tsv,
    Npy,
    Parquet,
    Arrow,
}

impl From<FormatArg> for TableFormat {
    fn from(arg: FormatArg) -> Self {
        match arg {
            FormatArg::Csv => TableFormat::Csv,
            FormatArg::Tsv => TableFormat::Tsv,
            FormatArg::Npy => TableFormat::Npy,
            FormatArg::Parquet => TableFormat::Parquet,
            FormatArg::Arrow => TableFormat::Arrow,
        }
    }
}

/// The format that a name promises; `.gz` and `.zst` stand for compressed csv.
pub fn by_extension(path: &Path) -> Option<TableFormat> {
    let name = path.file_name()?.to_str()?.to_ascii_lowercase();
    let name = name.strip_suffix(".gz").or_else(|| name.strip_suffix(".zst")).unwrap_or(&name);
    match Path::new(name).extension()?.to_str()? {
        "csv" | "txt" => Some(TableFormat::Csv),
        "tsv" => Some(TableFormat::Tsv),
        "npy" => Some(TableFormat::Npy),
        "parquet" | "parq" | "pq" => Some(TableFormat::Parquet),
        "arrow" | "arrows" | "feather" | "ipc" => Some(TableFormat::Arrow),
        _ => None,
    }
}

/// The format that the first bytes show, unless they may be text.
pub fn by_content(start: &[u8]) -> Option<TableFormat> {
    if start.starts_with(b"\x93NUMPY") {
        Some(TableFormat::Npy)
    } else if start.starts_with(b"PAR1") {
        Some(TableFormat::Parquet)
    } else if start.starts_with(super::ipc::FILE_MAGIC)
        || start.starts_with(super::ipc::STREAM_MAGIC)
    {
        Some(TableFormat::Arrow)
    } else {
        None
    }
}

/// The format of a file: as forced, by content, by extension, or csv.
pub fn format_of(path: &Path, forced: Option<FormatArg>) -> Result<TableFormat> {
    let name = path.display();
    let start = first_bytes(path)?;
    if start.is_empty() {
        return Err(super::Empty(name.to_string()).into());
    }
    if let Some(forced) = forced {
        return Ok(forced.into());
    }
    let unreadable = match &start[..] {
        [b'P', b'K', 3, 4, ..] => Some("a zip archive (.xlsx, .npz)"),
        [b'F', b'E', b'A', b'1', ..] => Some("a Feather file of version 1"),
        [b'B', b'Z', b'h', ..] => Some("compressed with bzip2"),
        [0xfd, b'7', b'z', b'X', b'Z', ..] => Some("compressed with xz"),
        [_, _, _, _, 0, 0, 0, 0, b'{', ..] => Some("a nysketch file, not a table"),
        _ => None,
    };
    if let Some(what) = unreadable {
        bail!("{name} is {what}; tables are csv (also .gz, .zst), Parquet, Arrow or npy files");
    }
    Ok(by_content(&start).or_else(|| by_extension(path)).unwrap_or(TableFormat::Csv))
}

/// A source whose first bytes were looked at.
type Peeked<R> = Chain<Cursor<Vec<u8>>, R>;

/// The first bytes of a source, eight where there are so many, and all of it.
pub fn peek<R: Read>(mut source: R) -> std::io::Result<(Vec<u8>, Peeked<R>)> {
    let mut start = Vec::new();
    source.by_ref().take(8).read_to_end(&mut start)?;
    Ok((start.clone(), Cursor::new(start).chain(source)))
}

fn first_bytes(path: &Path) -> Result<Vec<u8>> {
    let cannot = || format!("cannot read {}", path.display());
    let mut start = Vec::new();
    let file = File::open(path).with_context(cannot)?;
    file.take(9).read_to_end(&mut start).with_context(cannot)?;
    Ok(start)
}

/// The files of a command.
#[derive(Debug, Default)]
pub struct Found {
    pub files: Vec<PathBuf>,
    /// Files in folders that do not look like tables.
    pub passed_over: Vec<PathBuf>,
}

/// Expands globs and folders; files come in the order of their names.
pub fn files(paths: &[PathBuf]) -> Result<Found> {
    let mut found = Found::default();
    if paths.iter().filter(|p| *p == Path::new("-")).count() > 1 {
        return Err(Usage("stdin ('-') can be named only once".into()).into());
    }
    for path in paths {
        let text = path.to_string_lossy();
        if path == Path::new("-") {
            found.files.push(path.clone());
        } else if text.contains(['*', '?', '[']) && !path.exists() {
            add_matches(&text, &mut found)?;
        } else {
            add(path, &mut found)?;
        }
    }
    Ok(found)
}

/// What a pattern means, each file once, without the hidden files that it does not name.
fn add_matches(pattern: &str, found: &mut Found) -> Result<()> {
    let options = glob::MatchOptions { require_literal_leading_dot: true, ..Default::default() };
    let matches = glob::glob_with(pattern, options)
        .with_context(|| format!("{pattern} is not a valid pattern"))?;
    let names_notes = pattern.rsplit('/').next().is_some_and(|last| last.starts_with('_'));
    let mut matched = Found::default();
    for entry in matches {
        let path = entry.with_context(|| format!("cannot read {pattern}"))?;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with('_') && !names_notes {
            continue;
        }
        // `**` gives folders and then what is in them.
        if path.is_dir() && pattern.contains("**") {
            continue;
        }
        add(&path, &mut matched)?;
    }
    if matched.files.is_empty() {
        bail!("no table matches {pattern}");
    }
    found.files.append(&mut matched.files);
    found.passed_over.append(&mut matched.passed_over);
    Ok(())
}

/// A file, or all tables of a folder.
fn add(path: &Path, found: &mut Found) -> Result<()> {
    let name = path.display();
    let metadata = std::fs::metadata(path).with_context(|| format!("cannot read {name}"))?;
    if metadata.is_file() {
        found.files.push(path.to_path_buf());
        return Ok(());
    }
    if !metadata.is_dir() {
        bail!(
            "{name} is not a regular file, and files are read more than once; pipe it into '-' with --plan"
        );
    }
    let before = found.files.len();
    add_folder(path, found)?;
    if found.files.len() == before {
        bail!("the folder {name} holds no tables (csv, tsv, npy, parquet, arrow)");
    }
    Ok(())
}

/// Names that start with `_` or `.` are other programs' notes, such as Spark's `_SUCCESS`.
fn add_folder(folder: &Path, found: &mut Found) -> Result<()> {
    let cannot = || format!("cannot read the folder {}", folder.display());
    let mut entries = Vec::new();
    for entry in std::fs::read_dir(folder).with_context(cannot)? {
        entries.push(entry.with_context(cannot)?.path());
    }
    entries.sort();
    for path in entries {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name.starts_with(['_', '.']) {
            continue;
        }
        let metadata = std::fs::metadata(&path);
        let metadata = metadata.with_context(|| format!("cannot read {}", path.display()))?;
        if metadata.is_dir() {
            add_folder(&path, found)?;
        } else if metadata.is_file()
            && (by_extension(&path).is_some() || by_content(&first_bytes(&path)?).is_some())
        {
            found.files.push(path);
        } else {
            found.passed_over.push(path);
        }
    }
    Ok(())
}
