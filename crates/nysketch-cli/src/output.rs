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

/// Returns whether the reader of stdout has closed it, as in `nysketch inspect s.nys | head -1`.
pub fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|e| {
        e.downcast_ref::<io::Error>().is_some_and(|e| e.kind() == io::ErrorKind::BrokenPipe)
    })
}

/// Prints a result: `json` as one object, or `text`.
pub fn result(common: &Common, json: &serde_json::Value, text: &str) -> Result<()> {
    let shown = match common.json {
        // In JSON, only strings can contain such characters.
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
