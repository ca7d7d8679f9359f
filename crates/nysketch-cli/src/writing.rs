//! Output files of a command: none replaces an input or a file of another kind.

use crate::args::Common;
use crate::kind::Kind;
use crate::output::Usage;
use crate::progress::interrupted;
use anyhow::{Context, Result, bail};
use nysketch::file;
use std::path::Path;

/// Fails before the work starts if a result of this kind cannot or must not be written to this
/// path.
///
/// An input of the same command is never replaced. Another file is replaced only by a result of its
/// own kind. A table is replaced only with `--force`, because it may be the only copy. A secret key
/// or a ledger is never replaced.
pub fn check_output<'a>(
    common: &Common,
    path: &Path,
    kind: Kind,
    inputs: impl IntoIterator<Item = &'a Path>,
) -> Result<()> {
    let name = path.display();
    if path == Path::new("-") {
        return Err(Usage("-o needs the name of a file".into()).into());
    }
    if let Some(input) = inputs.into_iter().find(|input| *input == path || file::same(input, path))
    {
        let message = if input == path {
            format!("{name} is both input and output")
        } else {
            format!("{name} and {} are the same file, both input and output", input.display())
        };
        return Err(Usage(message).into());
    }
    if !kind.may_be_called(path) {
        let extension = path.extension().unwrap_or_default().to_string_lossy();
        let called = if extension.is_empty() {
            "without an extension".into()
        } else {
            format!(".{extension}")
        };
        let fits = kind.extension();
        let message = format!("{name}: {} cannot be written as {called}; use .{fits}", kind.name());
        return Err(Usage(message).into());
    }
    file::check_writable(path).with_context(|| cannot_write(path))?;
    if !common.force && path.exists() {
        let there = Kind::of(path).with_context(|| cannot_write(path))?;
        if there != Kind::Empty && (there != kind || kind.is_table()) {
            bail!("{name} exists and is {}; --force replaces it", there.name());
        }
    }
    Ok(())
}

/// Fails if the user has pressed Ctrl-C; called before a command writes its first file.
pub fn go_on() -> Result<()> {
    match interrupted() {
        Some(_) => Err(nysketch::Error::Cancelled.into()),
        None => Ok(()),
    }
}

/// Writes a complete file, or none after Ctrl-C; see [`go_on`].
pub fn write_bytes(path: &Path, bytes: &[u8]) -> Result<()> {
    go_on()?;
    keep_bytes(path, bytes)
}

/// Writes a complete file or none, even after Ctrl-C: for further files of a command, and for files
/// from which interrupted work can continue.
pub fn keep_bytes(path: &Path, bytes: &[u8]) -> Result<()> {
    file::write(path, |out| out.write_all(bytes)).with_context(|| cannot_write(path))
}

/// Adds the name of the file to an error of writing; errors in rows and Ctrl-C are unchanged.
pub fn while_writing<T>(path: &Path, result: Result<T>) -> Result<T> {
    let of_rows = |e: &anyhow::Error| {
        e.is::<nysketch::Error>()
            || matches!(e.downcast_ref(), Some(nysketch_tables::Error::Rows(_)))
    };
    result.map_err(|e| if of_rows(&e) { e } else { e.context(cannot_write(path)) })
}

/// Returns the start of the message for a file that cannot be written.
fn cannot_write(path: &Path) -> String {
    format!("cannot write {}", path.display())
}
