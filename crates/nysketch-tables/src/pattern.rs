//! Patterns of paths: `*`, `?`, `[…]` and `**`.

use crate::error::{Error, Result};
use crate::store::{Kind, Store};
use glob::MatchOptions;
use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// One folder or file name of a pattern.
#[derive(Debug, Clone)]
enum Part {
    Name(OsString),
    Like(glob::Pattern),
    /// `**`: this folder and all folders below it.
    AnyFolder,
}

/// A parsed pattern.
pub struct Pattern {
    parts: Vec<Part>,
}

impl Pattern {
    /// Parses a pattern.
    pub fn new(text: &str) -> Result<Self> {
        let mut parts = Vec::new();
        for component in Path::new(text).components() {
            let name = component.as_os_str();
            parts.push(match name.to_str() {
                Some("**") => Part::AnyFolder,
                Some(like) if like.contains(['*', '?', '[']) => {
                    Part::Like(glob::Pattern::new(like).map_err(|error| {
                        Error::NoTables(format!("{text} is not a valid pattern: {error}"))
                    })?)
                }
                _ => Part::Name(name.to_os_string()),
            });
        }
        Ok(Pattern { parts })
    }

    /// Returns the matching paths, in no particular order and possibly with repetitions. A wildcard
    /// matches a name with a leading dot or underscore only if the pattern has that character.
    /// Links to folders that a wildcard matches are not followed; they are added to `links`.
    pub fn matches(&self, store: &dyn Store, links: &mut Vec<PathBuf>) -> Result<Vec<PathBuf>> {
        let mut walk = Walk { store, links, found: Vec::new() };
        walk.go(PathBuf::new(), &self.parts)?;
        walk.links.sort();
        walk.links.dedup();
        Ok(walk.found)
    }
}

/// Wildcards do not match a leading dot.
const OPTIONS: MatchOptions = MatchOptions {
    case_sensitive: true,
    require_literal_separator: true,
    require_literal_leading_dot: true,
};

/// Returns whether wildcards skip a name, such as `.git`, `_temporary` and `_SUCCESS`.
fn hidden(name: &str) -> bool {
    name.starts_with(['.', '_'])
}

struct Walk<'a> {
    store: &'a dyn Store,
    links: &'a mut Vec<PathBuf>,
    found: Vec<PathBuf>,
}

impl Walk<'_> {
    /// Finds everything below `base` that matches the rest of the pattern.
    fn go(&mut self, base: PathBuf, parts: &[Part]) -> Result<()> {
        let Some((part, rest)) = parts.split_first() else {
            self.found.push(base);
            return Ok(());
        };
        match part {
            Part::Name(name) => {
                let path = base.join(name);
                if rest.is_empty() && self.store.metadata(&path).is_err() {
                    Ok(())
                } else {
                    self.go(path, rest)
                }
            }
            Part::Like(like) => {
                for (name, path) in self.list(&base)? {
                    if hidden(&name) && !hidden(like.as_str()) {
                        continue;
                    }
                    if like.matches_with(&name, OPTIONS) && !self.is_linked_folder(&path) {
                        self.go(path, rest)?;
                    }
                }
                Ok(())
            }
            Part::AnyFolder => {
                for (name, path) in self.list(&base)? {
                    if hidden(&name) || self.is_linked_folder(&path) {
                        continue;
                    }
                    if rest.is_empty() {
                        self.found.push(path.clone());
                    }
                    if self.is_folder(&path) {
                        self.go(path, parts)?;
                    }
                }
                if rest.is_empty() { Ok(()) } else { self.go(base, rest) }
            }
        }
    }

    /// Returns the names in a folder with their paths, or an empty list if it is not a folder.
    fn list(&self, base: &Path) -> Result<Vec<(String, PathBuf)>> {
        let folder = if base.as_os_str().is_empty() { Path::new(".") } else { base };
        let entries = match self.store.list(folder) {
            Ok(entries) => entries,
            Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                return Ok(Vec::new());
            }
            Err(e) => return Err(Error::read(format!("the folder {}", folder.display()), e)),
        };
        let names = entries.iter().filter_map(|entry| entry.file_name());
        Ok(names.map(|n| (n.to_string_lossy().into_owned(), base.join(n))).collect())
    }

    fn is_folder(&self, path: &Path) -> bool {
        self.store.metadata(path).is_ok_and(|m| m.kind == Kind::Folder)
    }

    /// Returns whether a path is a link to a folder, and records such links.
    fn is_linked_folder(&mut self, path: &Path) -> bool {
        let linked = self.store.is_link(path).unwrap_or(false) && self.is_folder(path);
        if linked {
            self.links.push(path.to_path_buf());
        }
        linked
    }
}
