//! Which folder of a crate may import which: data flows one way, and a reader can learn the folders
//! in this order.
//!
//! The check reads `crate::…` paths outside tests and comments. Items are imported from the folder
//! that defines them, not from the crate's root, so the table below is the whole story.

use crate::shell::{Outcome, root};
use std::fs;
use std::path::{Path, PathBuf};

/// A folder, or a file at the root of a crate, and the others that it may import.
type Row = (&'static str, &'static [&'static str]);

/// The tables, by crate. A folder imports only folders in rows above its own.
const CRATES: &[(&str, &[Row])] = &[
    (
        "nysketch-core",
        &[
            ("error", &[]),
            ("numeric", &["error"]),
            ("rows", &["error", "numeric"]),
            ("recipe", &["error", "rows"]),
            ("kernel", &["error", "numeric"]),
            ("plan", &["error", "numeric", "rows", "recipe", "kernel"]),
            ("kmeans", &["numeric", "kernel", "plan"]),
            ("sums", &["error", "numeric", "recipe", "plan"]),
            ("sketch", &["error", "numeric", "rows", "recipe", "kernel", "plan", "sums"]),
            ("pass", &["error", "numeric", "rows", "recipe", "kernel", "plan", "sums", "sketch"]),
            ("format", &["error", "numeric", "rows", "recipe", "kernel", "plan", "sums", "sketch"]),
            (
                "planning",
                &[
                    "error", "numeric", "rows", "recipe", "kernel", "plan", "kmeans", "sums",
                    "sketch", "pass",
                ],
            ),
        ],
    ),
    (
        "nysketch-learn",
        &[
            ("covariance", &[]),
            ("optimize", &[]),
            ("atom", &["covariance"]),
            ("model", &["covariance", "optimize", "atom"]),
            ("predictor", &["covariance", "model"]),
            ("metrics", &["model", "predictor"]),
            ("decoder", &["covariance", "optimize", "atom", "model"]),
            ("theory", &["optimize", "atom", "model", "decoder"]),
        ],
    ),
    (
        "nysketch-drift",
        &[
            ("statistics", &[]),
            ("differences", &["statistics"]),
            ("significance", &["statistics", "differences"]),
            ("comparison", &["statistics", "differences", "significance"]),
            ("days", &["statistics", "differences", "comparison"]),
        ],
    ),
    (
        "nysketch-privacy",
        &[
            ("ledger", &[]),
            ("subtractions", &["ledger"]),
            ("dp", &["ledger"]),
            ("masking", &["ledger", "dp"]),
        ],
    ),
];

/// Checks the imports of every crate in the table.
pub fn check() -> Outcome {
    let mut broken = Vec::new();
    for (name, rows) in CRATES {
        let source = root().join("crates").join(name).join("src");
        for file in rust_files(&source)? {
            let path = file.strip_prefix(&source).unwrap_or(&file);
            let Some(folder) = folder_of(path) else { continue };
            let text = fs::read_to_string(&file).map_err(|e| format!("{}: {e}", file.display()))?;
            let allowed = rows.iter().find(|(row, _)| *row == folder);
            let Some((_, allowed)) = allowed else {
                broken.push(format!("{name}: '{folder}' has no row in xtask/src/folders.rs"));
                continue;
            };
            for (line, import) in imports(&text) {
                if import != folder && !allowed.contains(&import.as_str()) {
                    let place = format!("crates/{name}/src/{}:{line}", path.display());
                    broken.push(format!("{place}: '{folder}' may not import '{import}'"));
                }
            }
        }
    }
    broken.dedup();
    if broken.is_empty() {
        Ok(())
    } else {
        Err(format!("imports against the order of folders:\n  {}", broken.join("\n  ")))
    }
}

/// Returns the folder of a file of a crate, or the name of a file at its root; `None` for `lib.rs`
/// and for files of tests.
fn folder_of(path: &Path) -> Option<String> {
    if path.ends_with("tests.rs") {
        return None;
    }
    let first = path.iter().next()?.to_str()?;
    let name = first.strip_suffix(".rs").unwrap_or(first);
    (name != "lib").then(|| name.to_string())
}

/// Returns the names that follow `crate::`, each with its line, up to the unit tests of the file.
fn imports(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (at, line) in text.lines().enumerate() {
        if line.trim() == "#[cfg(test)]" {
            break;
        }
        let code = line.split("//").next().unwrap_or_default();
        for rest in code.split("crate::").skip(1) {
            let name = rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            found.push((at + 1, name));
        }
    }
    found
}

/// Returns the Rust files under a folder.
fn rust_files(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let entries: Result<Vec<_>, _> = fs::read_dir(folder).and_then(Iterator::collect);
    let mut files = Vec::new();
    for entry in entries.map_err(|e| format!("{}: {e}", folder.display()))? {
        let path = entry.path();
        if path.is_dir() {
            files.extend(rust_files(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_imports_only_rows_above_it() {
        for (name, rows) in CRATES {
            for (at, (folder, allowed)) in rows.iter().enumerate() {
                let above: Vec<&str> = rows[..at].iter().map(|(row, _)| *row).collect();
                for import in *allowed {
                    assert!(above.contains(import), "{name}: {folder} imports {import}");
                }
            }
        }
    }

    #[test]
    fn paths_are_found_outside_comments_and_tests() {
        let text = "use crate::plan::Plan;\n// crate::no\nlet x = crate::rows::f(crate::sums::g);\n\
                    #[cfg(test)]\nmod tests { use crate::no::Never; }";
        let names: Vec<String> = imports(text).into_iter().map(|(_, name)| name).collect();
        assert_eq!(names, ["plan", "rows", "sums"]);
    }

    #[test]
    fn a_file_belongs_to_its_first_folder() {
        assert_eq!(folder_of(Path::new("plan/frame.rs")).as_deref(), Some("plan"));
        assert_eq!(folder_of(Path::new("sums.rs")).as_deref(), Some("sums"));
        assert_eq!(folder_of(Path::new("lib.rs")), None);
    }
}
