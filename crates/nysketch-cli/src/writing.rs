//! The files that a command writes: none replaces an input, nor a file of another kind.

use crate::args::Common;
use crate::kind::Kind;
use crate::output::Usage;
use crate::progress::interrupted;
use anyhow::{Context, Result, bail};
use nysketch::file;
use std::path::Path;

/// Fails before the work starts if a result of this kind could not, or should not, be written there.
///
/// An input of the same command is never replaced. Another file is replaced only by a result of its own kind,
/// and a table, which may be somebody's only copy, not without `--force`. A secret key or a ledger is never replaced.
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
        let message = match input == path {
            true => format!("{name} is both input and output"),
            false => {
                format!("{name} and {} are the same file, both input and output", input.display())
            }
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

/// Fails where Ctrl-C came while a result was in the making: asked before the first file of a command.
pub fn go_on() -> Result<()> {
    match interrupted() {
        Some(_) => Err(nysketch::Error::Cancelled.into()),
        None => Ok(()),
    }
}

/// Writes the whole file of a result, or none; see [`go_on`].
pub fn write_bytes(path: &Path, bytes: &[u8]) -> Result<()> {
    go_on()?;
    keep_bytes(path, bytes)
}

/// Writes a whole file or none, whatever comes: a second file of a command, or what lets interrupted work go on.
pub fn keep_bytes(path: &Path, bytes: &[u8]) -> Result<()> {
    file::write(path, |out| out.write_all(bytes)).with_context(|| cannot_write(path))
}

/// Names the file in an error of writing it; errors in rows and Ctrl-C stay as they are.
pub fn while_writing<T>(path: &Path, result: Result<T>) -> Result<T> {
    let of_rows = |e: &anyhow::Error| {
        e.is::<nysketch::Error>()
            || matches!(e.downcast_ref(), Some(nysketch_tables::Error::Rows(_)))
    };
    result.map_err(|e| if of_rows(&e) { e } else { e.context(cannot_write(path)) })
}

/// The start of a message about a file that cannot be written.
fn cannot_write(path: &Path) -> String {
    format!("cannot write {}", path.display())
}
