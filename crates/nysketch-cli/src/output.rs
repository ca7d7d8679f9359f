//! What is printed.

use crate::args::Common;
use anyhow::Result;
use std::io::{self, Write};

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

/// Whether the command was used wrongly.
pub fn is_usage(error: &anyhow::Error) -> bool {
    error.chain().any(|e| {
        e.is::<Usage>()
            || e.downcast_ref::<nysketch_tables::Error>().is_some_and(|e| e.is_usage())
            || e.downcast_ref::<nysketch::Error>().is_some_and(nysketch::Error::is_usage)
    })
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

/// Prints a warning on stderr, unless `-q`.
pub fn warn(common: &Common, message: &str) {
    if !common.quiet {
        drop(writeln!(io::stderr(), "warning: {}", in_options(message)));
    }
}

/// Prints a detail on stderr, with `-v` only.
pub fn detail(common: &Common, message: &str) {
    if common.verbose {
        drop(writeln!(io::stderr(), "{message}"));
    }
}

/// "1 row", "2 rows", "3 frequencies".
pub fn count(n: u64, what: &str) -> String {
    let one = thousands(n);
    match (n, what.strip_suffix('y')) {
        (1, _) => format!("{one} {what}"),
        (_, Some(stem)) => format!("{one} {stem}ies"),
        (_, None) => format!("{one} {what}s"),
    }
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

/// The nearest whole number with separators.
pub fn thousands_signed(x: f64) -> String {
    let sign = if x < -0.5 { "-" } else { "" };
    format!("{sign}{}", thousands(x.abs().round() as u64))
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
