//! What is printed and written, and the exit code of an error.

use crate::args::Common;
use anyhow::{Context, Result};
use nysketch::file;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// An error in how the command was used, not in the data.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Usage(pub String);

/// A message of the library with its parameters as options: `--scale standard`.
pub fn in_options(message: &str) -> String {
    nysketch::error::respell(message, |name, value| {
        let dashes = if name.len() == 1 { "-" } else { "--" };
        let value = value.map_or(String::new(), |v| format!(" {v}"));
        format!("{dashes}{}{value}", name.replace('_', "-"))
    })
}

/// 2 for usage, 1 for everything else.
pub fn exit_code(error: &anyhow::Error) -> u8 {
    let usage = error.chain().any(|e| {
        e.is::<Usage>()
            || e.downcast_ref::<nysketch_tables::Error>().is_some_and(|e| e.is_usage())
            || e.downcast_ref::<nysketch::Error>().is_some_and(nysketch::Error::is_usage)
    });
    if usage { 2 } else { 1 }
}

/// Whether the reader of stdout has closed it, as in `nysketch inspect s.nys | head -1`.
pub fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|e| {
        e.downcast_ref::<io::Error>().is_some_and(|e| e.kind() == io::ErrorKind::BrokenPipe)
    })
}

/// Prints the result: `json` as one object, or `text`.
pub fn result(common: &Common, json: &serde_json::Value, text: &str) -> Result<()> {
    let line = if common.json { json.to_string() } else { text.trim_end().to_string() };
    let mut out = io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()?;
    Ok(())
}

/// Prints a note on stderr, unless `-q`.
pub fn note(common: &Common, message: &str) {
    if !common.quiet {
        // A closed stderr is no reason to stop.
        drop(writeln!(io::stderr(), "note: {}", in_options(message)));
    }
}

/// Prints a detail on stderr, with `-v` only.
pub fn detail(common: &Common, message: &str) {
    if common.verbose {
        drop(writeln!(io::stderr(), "{message}"));
    }
}

/// Fails before the work starts if the result could not be written, or would replace an input.
pub fn check_writable<'a>(
    path: &Path,
    inputs: impl IntoIterator<Item = &'a PathBuf>,
) -> Result<()> {
    if path == Path::new("-") {
        return Err(Usage("-o needs the name of a file".into()).into());
    }
    let output = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    if inputs.into_iter().any(|i| i == path || i.canonicalize().is_ok_and(|i| i == output)) {
        return Err(Usage(format!("{} is both input and output", path.display())).into());
    }
    file::check_writable(path).with_context(|| cannot_write(path))
}

/// "1 row", "2 rows".
pub fn count(n: u64, what: &str) -> String {
    format!("{} {what}{}", thousands(n), if n == 1 { "" } else { "s" })
}

/// Writes a whole file or none.
pub fn write_bytes(path: &Path, bytes: &[u8]) -> Result<()> {
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

/// `12345678` as `12,345,678`.
pub fn thousands(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out
}

/// A size in bytes for people.
pub fn size(bytes: usize) -> String {
    match bytes {
        0..10_000 => format!("{bytes} bytes"),
        10_000..10_000_000 => format!("{:.1} kB", bytes as f64 / 1e3),
        _ => format!("{:.1} MB", bytes as f64 / 1e6),
    }
}

/// A number with four significant digits.
pub fn short(x: f64) -> String {
    match x.abs() {
        0.0 => "0".into(),
        a if (1e-3..1e6).contains(&a) => {
            let digits = (3 - a.log10().floor() as i32).clamp(0, 6) as usize;
            let text = format!("{x:.digits$}");
            if text.contains('.') {
                text.trim_end_matches('0').trim_end_matches('.').to_string()
            } else {
                text
            }
        }
        _ => format!("{x:.3e}"),
    }
}

/// Several numbers.
pub fn list(values: &[f64]) -> String {
    values.iter().map(|v| short(*v)).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_for_people() {
        assert_eq!(thousands(0), "0");
        assert_eq!(thousands(12_345_678), "12,345,678");
        assert_eq!(short(0.0), "0");
        assert_eq!(short(12.5), "12.5");
        assert_eq!(short(123_456.0), "123456");
        assert_eq!(short(1.23456e-9), "1.235e-9");
    }
}
