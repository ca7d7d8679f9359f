//! Words that the project does not use, with the words to use instead, and links of the docs.
//!
//! The list comes from docs/GLOSSARY.md. It holds phrases that are never right here, so the check
//! has no exceptions; a phrase that is right in some sentence does not belong in it. The tests with
//! Python check the spelling.

use crate::shell::{Outcome, git, root};
use std::collections::HashSet;
use std::fs;
use std::path::Path;

/// Phrases to avoid and what to write instead, in lower case.
const WORDS: &[(&str, &str)] = &[
    ("at hand", "available"),
    ("brought into bounds", "clipped to the bounds"),
    ("brought to the bounds", "clipped to the bounds"),
    ("but for", "except for"),
    ("cannot be told from", "cannot be distinguished from"),
    ("dealt to", "assigned to"),
    ("from which on", "from … onwards"),
    ("hardly", "barely, or rarely"),
    ("hole", "missing value"),
    ("holes", "missing values"),
    ("in the making", "being written"),
    ("is told", "is reported"),
    ("are told", "are reported"),
    ("lack", "do not have"),
    ("lacks", "does not have, or is missing"),
    ("lacking", "missing"),
    ("likewise", "in the same way"),
    ("nobody", "no one"),
    ("owes", "depends on"),
    ("owing to", "because of"),
    ("so many", "a given number of"),
    ("stands for", "is, or represents"),
    ("tells", "shows, or reports"),
    ("what becomes of", "how … is used"),
    ("what it is made of", "its parts"),
    ("who wants", "if you want"),
];

/// Places whose text is not the project's own prose.
const LEFT_OUT: &[&str] = &["xtask/src/prose.rs", "LICENSE", "Cargo.lock", "research/figures"];

/// Checks words and links.
pub fn check() -> Outcome {
    eprintln!("== prose");
    let mut wrong = Vec::new();
    for file in git("ls-files")?.lines() {
        if LEFT_OUT.iter().any(|place| file.starts_with(place)) {
            continue;
        }
        let path = root().join(file);
        let (Some(kind), Ok(text)) = (Kind::of(file), fs::read_to_string(&path)) else { continue };
        for (number, line) in prose(kind, &text) {
            for (bad, good) in WORDS {
                if contains_phrase(line, bad) {
                    wrong.push(format!("{file}:{number}: '{bad}' → {good}"));
                }
            }
        }
        if kind == Kind::Markdown {
            wrong.extend(broken_links(file, &text));
        }
    }
    if !wrong.is_empty() {
        return Err(format!("{} places in the prose:\n  {}", wrong.len(), wrong.join("\n  ")));
    }
    Ok(())
}

/// Kinds of files that contain prose.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Markdown,
    /// Comments that start with `//`.
    Slashes,
    /// Comments that start with `#`.
    Hashes,
}

impl Kind {
    fn of(file: &str) -> Option<Kind> {
        match Path::new(file).extension()?.to_str()? {
            "md" => Some(Kind::Markdown),
            "rs" | "cu" | "js" => Some(Kind::Slashes),
            "py" | "toml" | "yml" => Some(Kind::Hashes),
            _ => None,
        }
    }
}

/// Returns the lines of prose with their numbers: Markdown outside of code, or comments.
fn prose(kind: Kind, text: &str) -> Vec<(usize, &str)> {
    let mut in_code = false;
    let mut lines = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let trimmed = line.trim_start();
        let is_prose = match kind {
            Kind::Markdown => {
                let is_fence = trimmed.starts_with("```");
                in_code ^= is_fence;
                !in_code && !is_fence
            }
            Kind::Slashes => trimmed.starts_with("//"),
            Kind::Hashes => trimmed.starts_with('#'),
        };
        if is_prose {
            lines.push((at + 1, line));
        }
    }
    lines
}

/// Whether a line contains a phrase between word boundaries, in any case, outside of backquotes.
fn contains_phrase(line: &str, phrase: &str) -> bool {
    let plain: String = line.split('`').step_by(2).collect::<Vec<_>>().join("`");
    let lower = plain.to_lowercase();
    let is_boundary = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric() && c != '_');
    lower.match_indices(phrase).any(|(at, _)| {
        is_boundary(lower[..at].chars().next_back())
            && is_boundary(lower[at + phrase.len()..].chars().next())
    })
}

/// Returns the relative links of a Markdown file that lead nowhere.
fn broken_links(file: &str, text: &str) -> Vec<String> {
    let folder = root().join(file).parent().map(Path::to_path_buf).unwrap_or_default();
    let mut broken = Vec::new();
    for (number, line) in prose(Kind::Markdown, text) {
        for rest in line.split("](").skip(1) {
            let target = rest.split([')', ' ']).next().unwrap_or_default();
            if target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
            let path = if path.is_empty() { root().join(file) } else { folder.join(path) };
            let is_whole = path.exists()
                && (anchor.is_empty()
                    || fs::read_to_string(&path).is_ok_and(|text| anchors(&text).contains(anchor)));
            if !is_whole {
                broken.push(format!("{file}:{number}: the link '{target}' leads nowhere"));
            }
        }
    }
    broken
}

/// Returns the anchors of a Markdown file's headings, as GitHub makes them.
fn anchors(text: &str) -> HashSet<String> {
    let headings =
        prose(Kind::Markdown, text).into_iter().filter(|(_, line)| line.starts_with('#'));
    headings.map(|(_, line)| anchor(line.trim_start_matches('#').trim())).collect()
}

/// Returns the anchor of one heading: lower case, words joined by hyphens, no punctuation.
fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phrases_are_whole_words_outside_of_code() {
        assert!(contains_phrase("/// It Lacks a column.", "lacks"));
        assert!(!contains_phrase("/// blacksmith", "lack"));
        assert!(!contains_phrase("/// calls `lacks_rows`", "lacks"));
        assert!(!contains_phrase("/// lacks_rows", "lacks"));
    }

    #[test]
    fn code_is_no_prose() {
        let text = "a\n```\nb\n```\nc";
        assert_eq!(prose(Kind::Markdown, text), [(1, "a"), (5, "c")]);
        assert_eq!(prose(Kind::Slashes, "let x = 1;\n  // why"), [(2, "  // why")]);
    }

    #[test]
    fn headings_have_anchors() {
        assert_eq!(anchor("What must exist?"), "what-must-exist");
        assert!(anchors("# A b\n\n## `c` (d)\n").contains("c-d"));
    }
}
