//! Folders as columns: in `month=1/part.parquet`, every row of the file has the month 1.

use crate::parse;
use crate::schema::{Column, Kind, Schema, Zone};
use std::path::{Component, Path};
use std::sync::Arc;

/// Hive's marker for a missing value.
const MISSING: &str = "__HIVE_DEFAULT_PARTITION__";

/// Returns the keys and values in the folders of a path, excluding its last component.
pub fn keys_of(path: &Path) -> Vec<(String, String)> {
    let mut keys: Vec<(String, String)> = Vec::new();
    for folder in path.parent().into_iter().flat_map(Path::components) {
        let Component::Normal(folder) = folder else { continue };
        let folder = folder.to_string_lossy();
        if let Some((name, value)) = folder.split_once('=')
            && !name.is_empty()
            && !keys.iter().any(|(known, _)| known == name)
        {
            keys.push((name.to_string(), decoded(value)));
        }
    }
    keys
}

/// Decodes percent signs: `a%2Fb` becomes `a/b`.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let digits = after.get(..2).and_then(|d| str::from_utf8(d).ok());
        let byte = digits.filter(|d| d.bytes().all(|b| b.is_ascii_hexdigit()));
        match byte.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) if *first == b'%' => {
                bytes.push(byte);
                rest = &after[2..];
            }
            _ => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The columns made from the folders of all files.
#[derive(Debug, Default)]
pub struct Folders {
    pub columns: Vec<Column>,
    /// For each file, the value of each column.
    pub values: Vec<Vec<Option<Arc<str>>>>,
    /// Notes for the user.
    pub notes: Vec<String>,
}

impl Folders {
    /// Makes a column of each folder key if all files have the same keys. A key is left out if a
    /// file has a column of that name.
    pub fn new<'a>(
        keys: &[Vec<(String, String)>],
        files: impl Iterator<Item = (&'a str, &'a Schema)> + Clone,
    ) -> Self {
        let mut folders = Folders { values: vec![Vec::new(); keys.len()], ..Folders::default() };
        let Some((first, others)) = keys.split_first() else { return folders };
        let names = |keys: &[(String, String)]| {
            let mut names: Vec<String> = keys.iter().map(|(name, _)| name.clone()).collect();
            names.sort();
            names
        };
        if others.iter().any(|other| names(other) != names(first)) {
            if let Some((name, value)) = keys.iter().flatten().next() {
                folders.notes.push(format!(
                    "folders such as {name}={value} are no columns because not all files have them"
                ));
            }
            return folders;
        }
        for (name, _) in first {
            let has = |(_, schema): &(&str, &Schema)| schema.whole(name).is_some();
            if let Some((file, _)) = files.clone().find(has) {
                folders.notes.push(format!(
                    "folders such as {name}=… are no column because {file} has a column '{name}'"
                ));
                continue;
            }
            let value = |keys: &Vec<(String, String)>| {
                let found = keys.iter().find(|(known, _)| known == name).map(|(_, v)| v.as_str());
                found.filter(|v| !v.is_empty() && *v != MISSING).map(Arc::from)
            };
            let values: Vec<Option<Arc<str>>> = keys.iter().map(value).collect();
            let (kind, holds) = kind_of(values.iter().flatten().map(|v| &**v));
            let column = Column { name: name.clone(), holds: holds.into(), kind, index: false };
            folders.columns.push(column);
            for (all, value) in folders.values.iter_mut().zip(values) {
                all.push(value);
            }
        }
        folders
    }
}

/// Returns the kind of a column: numbers or dates if all values are, otherwise text.
fn kind_of<'a>(values: impl Iterator<Item = &'a str> + Clone) -> (Kind, &'static str) {
    if values.clone().all(|v| parse::number(v.as_bytes()).is_some()) {
        return (Kind::Number, "folder of numbers");
    }
    let zone = |v: &str| parse::time(v.as_bytes()).map(|t| t.zoned);
    if values.clone().all(|v| matches!(zone(v), Some(Some(false) | None))) {
        return (Kind::Date(Zone::Without), "folder of dates");
    }
    (Kind::Text, "folder of text")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_values_are_in_paths() {
        let keys = |path: &str| keys_of(Path::new(path));
        let pair = |a: &str, b: &str| (a.to_string(), b.to_string());
        assert_eq!(keys("year=2013/month=1/x=1.csv"), [pair("year", "2013"), pair("month", "1")]);
        assert_eq!(keys("a=b%2Fc%zz%/=1/d/x.csv"), [pair("a", "b/c%zz%")]);
        assert_eq!(keys("x.csv"), []);
    }
}
