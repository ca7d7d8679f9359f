//! What is printed.

use crate::args::Common;
use anyhow::Result;
use std::io::{self, Write};
use std::path::Path;

pub use nysketch::recipe::words::short;

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
    let shown = match common.json {
        // Only strings can hold such characters.
        true => escaped(&json.to_string(), |c| format!("\\u{:04x}", u32::from(c))),
        false => {
            let lines = text.trim_end().split('\n').map(printable);
            lines.collect::<Vec<_>>().join("\n")
        }
    };
    let mut out = io::stdout().lock();
    writeln!(out, "{shown}")?;
    out.flush()?;
    Ok(())
}

/// Adds the fields of another object.
pub fn extended(json: &mut serde_json::Value, more: serde_json::Value) {
    if let (serde_json::Value::Object(all), serde_json::Value::Object(more)) = (json, more) {
        all.extend(more);
    }
}

/// The name of a file for JSON; what is not Unicode in it is replaced.
pub fn name(path: &Path) -> serde_json::Value {
    path.display().to_string().into()
}

/// Prints a note on stderr, unless `-q`.
pub fn note(common: &Common, message: &str) {
    if !common.quiet {
        say("note: ", message);
    }
}

/// Prints a warning on stderr, also with `-q`: results may not be what they seem.
pub fn warn(message: &str) {
    say("warning: ", message);
}

/// Prints an error on stderr.
pub fn error(message: &str) {
    say("error: ", message);
}

/// Prints a detail on stderr, with `-v` only.
pub fn detail(common: &Common, message: &str) {
    if common.verbose {
        say("", message);
    }
}

/// One line on stderr. A closed stderr is no reason to stop.
fn say(kind: &str, message: &str) {
    let _ = writeln!(io::stderr(), "{kind}{}", printable(&in_options(message)));
}

/// Text from files and names, without what would steer a terminal or break the line.
pub fn printable(text: &str) -> String {
    escaped(text, |c| c.escape_unicode().to_string())
}

/// With control characters, and those that turn the direction of text, written otherwise.
fn escaped(text: &str, write: impl Fn(char) -> String) -> String {
    let steers =
        |c: char| c.is_control() || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    if !text.contains(steers) {
        return text.to_string();
    }
    text.chars().map(|c| if steers(c) { write(c) } else { c.to_string() }).collect()
}

/// "1 row", "2 rows", "3 frequencies", "4 witnesses", "5 days".
pub fn count(n: u64, what: &str) -> String {
    let one = thousands(n);
    // "days", but "frequencies".
    let stem = what.strip_suffix('y').filter(|stem| !stem.ends_with(['a', 'e', 'o', 'u']));
    match (n, stem) {
        (1, _) => format!("{one} {what}"),
        (_, Some(stem)) => format!("{one} {stem}ies"),
        (_, None) if what.ends_with('s') => format!("{one} {what}es"),
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

/// "61.3 %", "0.42 %".
pub fn percent(share: f64) -> String {
    let digits = if share < 0.01 { 2 } else { 1 };
    format!("{:.digits$} %", 100.0 * share)
}

/// Several numbers.
pub fn list(values: &[f64]) -> String {
    values.iter().map(|v| short(*v)).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_steers_the_terminal() {
        assert_eq!(printable("a\u{1b}[31m\u{7}b\nc\u{9b}d"), "a\\u{1b}[31m\\u{7}b\\u{a}c\\u{9b}d");
        assert_eq!(printable("évident 温度 ✓"), "évident 温度 ✓");
    }

    #[test]
    fn numbers_for_people() {
        assert_eq!(thousands(0), "0");
        assert_eq!(count(2, "day"), "2 days");
        assert_eq!(count(3, "frequency"), "3 frequencies");
        assert_eq!(thousands(12_345_678), "12,345,678");
        assert_eq!(short(0.0), "0");
        assert_eq!(short(12.5), "12.5");
        assert_eq!(short(123_456.0), "123456");
        assert_eq!(short(1.23456e-9), "1.235e-9");
    }
}
