//! Printed output.

use crate::args::Common;
use anyhow::Result;
use std::io::{self, Write};
use std::path::Path;

pub use nysketch_report::Usage;
pub use nysketch_report::words::numbers::{
    count, list, percent, short, size, thousands, thousands_signed,
};
pub use nysketch_report::words::options::in_options;

/// Returns whether the command was used incorrectly.
pub fn is_usage(error: &anyhow::Error) -> bool {
    error.chain().any(|e| {
        e.is::<Usage>()
            || e.downcast_ref::<nysketch_tables::Error>().is_some_and(|e| e.is_usage())
            || e.downcast_ref::<nysketch::Error>().is_some_and(nysketch::Error::is_usage)
    })
}

/// Prints an error as one JSON object on stdout: `{"error": {"code", "message", "fields"}}`.
pub fn error_as_json(error: &anyhow::Error) {
    let library = error.chain().find_map(|e| match e.downcast_ref::<nysketch_tables::Error>() {
        Some(nysketch_tables::Error::Rows(rows)) => Some(rows),
        _ => e.downcast_ref::<nysketch::Error>(),
    });
    let table = error.chain().find_map(|e| e.downcast_ref::<nysketch_tables::Error>());
    let code = match (library, table) {
        (Some(library), _) => library.code(),
        (None, Some(table)) => table.code(),
        (None, None) if is_usage(error) => "usage",
        (None, None) if error.chain().any(|e| e.is::<io::Error>()) => "io",
        (None, None) => "failed",
    };
    let fields = library.map(nysketch::Error::fields).unwrap_or_default();
    let message = in_options(&format!("{error:#}"));
    let json = serde_json::json!({
        "error": { "code": code, "message": message, "fields": fields }
    });
    // A reader that has closed stdout has the message on stderr.
    let _ = writeln!(io::stdout(), "{}", as_json(&json));
}

/// Writes JSON without characters that would control a terminal.
fn as_json(json: &serde_json::Value) -> String {
    // In JSON, only strings can contain such characters.
    escaped(&json.to_string(), |c| format!("\\u{:04x}", u32::from(c)))
}

/// Returns whether the reader of stdout has closed it, as in `nysketch inspect s.nys | head -1`.
pub fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|e| {
        e.downcast_ref::<io::Error>().is_some_and(|e| e.kind() == io::ErrorKind::BrokenPipe)
    })
}

/// Prints a result: `json` as one object, or `text`.
pub fn result(common: &Common, json: &serde_json::Value, text: &str) -> Result<()> {
    let shown = if common.json {
        as_json(json)
    } else {
        text.trim_end().split('\n').map(printable).collect::<Vec<_>>().join("\n")
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

/// Returns the name of a file for JSON. Bytes that are not Unicode are replaced.
pub fn name(path: &Path) -> serde_json::Value {
    path.display().to_string().into()
}

/// Prints a note on stderr, unless `-q` is given.
pub fn note(common: &Common, message: &str) {
    if !common.quiet {
        say("note: ", message);
    }
}

/// Prints a warning on stderr, even with `-q`, because results may be misleading.
pub fn warn(message: &str) {
    say("warning: ", message);
}

pub fn error(message: &str) {
    say("error: ", message);
}

/// Prints a detail on stderr, only with `-v`.
pub fn detail(common: &Common, message: &str) {
    if common.verbose {
        say("", message);
    }
}

/// Prints one line on stderr. A closed stderr does not stop the command.
fn say(kind: &str, message: &str) {
    let _ = writeln!(io::stderr(), "{kind}{}", printable(&in_options(message)));
}

/// Escapes characters from files and names that would control a terminal or break the line.
pub fn printable(text: &str) -> String {
    escaped(text, |c| c.escape_unicode().to_string())
}

/// Escapes control characters and those that change the direction of text.
fn escaped(text: &str, write: impl Fn(char) -> String) -> String {
    let steers =
        |c: char| c.is_control() || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    if !text.contains(steers) {
        return text.to_string();
    }
    text.chars().map(|c| if steers(c) { write(c) } else { c.to_string() }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_steers_the_terminal() {
        assert_eq!(printable("a\u{1b}[31m\u{7}b\nc\u{9b}d"), "a\\u{1b}[31m\\u{7}b\\u{a}c\\u{9b}d");
        assert_eq!(printable("évident 温度 ✓"), "évident 温度 ✓");
    }
}
