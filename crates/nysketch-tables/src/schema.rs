//! The columns of a file: what they are called, what they hold, and which of them a pattern means.

use crate::error::{Error, Result};
use std::collections::HashMap;
use std::ops::Range;

/// Coordinates of a vector, at most.
pub const MOST_COORDINATES: usize = 4096;

/// A column as the file has it, or a folder that says what all its rows have in common.
#[derive(Debug, Clone)]
pub struct Column {
    pub name: String,
    /// Its type in words.
    pub holds: String,
    pub kind: Kind,
    /// Whether another program keeps the names of its rows here.
    pub index: bool,
}

/// What a column holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// Numbers, at least at first sight.
    Number,
    /// True and false as text, at least at first sight: 1 and 0.
    Truth,
    /// Text, at least at first sight.
    Text,
    /// Points in time, at least at first sight.
    Date(Zone),
    /// So many numbers in every row.
    Vector(usize),
    /// Numbers in every row; how many is not known.
    List,
    /// Numbers in every row, stored as a list view, which is not read.
    View,
    /// Something else, which may have a text.
    Other { text: bool },
}

/// Whether times have a zone, and so are the same instant everywhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Zone {
    #[default]
    Unknown,
    Without,
    With,
}

/// Where a value stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// In a column of the file.
    Column(usize),
    /// In a vector: the column, and which coordinate.
    Coordinate(usize, usize),
    /// In the name of a folder.
    Folder(usize),
}

/// The columns of a file. A vector is as many columns as it has coordinates: `emb[0]`, `emb[1]`, …
#[derive(Debug, Clone)]
pub struct Schema {
    /// Names; `c0`, `c1`, … where the file has none.
    pub names: Vec<String>,
    /// Where each of them stands.
    pub sources: Vec<Source>,
    /// The columns of the file, and then the folders.
    pub columns: Vec<Column>,
    /// How many of these are in the file.
    pub width: usize,
    /// The place of each name.
    places: HashMap<String, usize>,
    /// The places of each vector, and the column of each list.
    vectors: HashMap<String, (usize, Range<usize>)>,
    /// Whether the file itself names them.
    pub named: bool,
    /// Whether every value is a text, which may be read in several ways.
    pub texts: bool,
    /// Number of rows, where the file says so.
    pub rows: Option<u64>,
}

impl Schema {
    /// For a file that names its columns, each differently.
    pub fn named(file: &str, columns: Vec<Column>, rows: Option<u64>) -> Result<Self> {
        Self::new(file, columns, true, rows)
    }

    /// For a file that does not name its columns.
    pub fn unnamed(file: &str, kinds: Vec<(Kind, String)>, rows: Option<u64>) -> Result<Self> {
        let names = nysketch::rows::default_names(kinds.len());
        let column = |(name, (kind, holds))| Column { name, holds, kind, index: false };
        let columns = names.into_iter().zip(kinds).map(column).collect();
        Self::new(file, columns, false, rows)
    }

    fn new(file: &str, columns: Vec<Column>, named: bool, rows: Option<u64>) -> Result<Self> {
        let mut schema = Schema {
            names: Vec::with_capacity(columns.len()),
            sources: Vec::with_capacity(columns.len()),
            width: columns.len(),
            places: HashMap::with_capacity(columns.len()),
            vectors: HashMap::new(),
            columns,
            named,
            texts: false,
            rows,
        };
        for i in 0..schema.width {
            let (name, start) = (schema.columns[i].name.clone(), schema.names.len());
            match schema.columns[i].kind {
                Kind::Vector(n) => {
                    for j in 0..n {
                        schema.add(file, format!("{name}[{j}]"), Source::Coordinate(i, j))?;
                    }
                    schema.vectors.insert(name, (i, start..start + n));
                }
                Kind::List => {
                    schema.vectors.insert(name.clone(), (i, start..start));
                    schema.add(file, name, Source::Column(i))?;
                }
                _ => schema.add(file, name, Source::Column(i))?,
            }
        }
        Ok(schema)
    }

    fn add(&mut self, file: &str, name: String, source: Source) -> Result<()> {
        if self.places.insert(name.clone(), self.names.len()).is_some() {
            return Err(Error::in_file(file, format!("two columns are called '{name}'")));
        }
        self.names.push(name);
        self.sources.push(source);
        Ok(())
    }

    /// Adds columns that are names of folders.
    pub fn add_folders(&mut self, file: &str, folders: &[Column]) -> Result<()> {
        for (i, folder) in folders.iter().enumerate() {
            self.add(file, folder.name.clone(), Source::Folder(i))?;
            self.columns.push(folder.clone());
        }
        Ok(())
    }

    /// The place of a name.
    pub fn find(&self, name: &str) -> Option<usize> {
        self.places.get(name).copied()
    }

    /// Where a name stands. A list whose length this file does not tell has as many coordinates as others have.
    pub fn source(&self, name: &str) -> Option<Source> {
        if let Some(i) = self.find(name) {
            return Some(self.sources[i]);
        }
        let (vector, rest) = name.rsplit_once('[')?;
        let coordinate = rest.strip_suffix(']')?.parse().ok()?;
        match self.vectors.get(vector)? {
            (column, places) if places.is_empty() => Some(Source::Coordinate(*column, coordinate)),
            _ => None,
        }
    }

    /// The column of the file, or the folder, in which something stands.
    pub fn column(&self, source: Source) -> &Column {
        match source {
            Source::Column(i) | Source::Coordinate(i, _) => &self.columns[i],
            Source::Folder(i) => &self.columns[self.width + i],
        }
    }

    /// Where a whole column stands, by its own name.
    pub fn whole(&self, name: &str) -> Option<Source> {
        match self.vectors.get(name) {
            Some((column, _)) => Some(Source::Column(*column)),
            None => self.find(name).map(|i| self.sources[i]),
        }
    }

    /// All names, or how many there are.
    pub fn list(&self) -> String {
        let names: Vec<&str> = self.columns.iter().map(|c| c.name.as_str()).collect();
        match names.len() {
            n if n > 30 => format!("{}, … ({n} columns)", names[..30].join(", ")),
            _ => names.join(", "),
        }
    }

    /// The columns that a name, a range FIRST..LAST (both included) or a pattern with * ? [ ] means, in
    /// the order of the file. The name of a vector means all its coordinates.
    pub fn matching(&self, file: &str, pattern: &str) -> Result<Vec<usize>> {
        if let Some(i) = self.find(pattern) {
            return Ok(vec![i]);
        }
        if let Some((_, places)) = self.vectors.get(pattern) {
            return Ok(places.clone().collect());
        }
        let ends = |name: &str| match self.vectors.get(name) {
            Some((_, places)) if !places.is_empty() => Some((places.start, places.end - 1)),
            _ => self.find(name).map(|i| (i, i)),
        };
        if let Some((first, last)) = pattern.split_once("..")
            && let (Some((a, _)), Some((_, b))) = (ends(first), ends(last))
        {
            if a > b {
                let how = format!("column '{first}' comes after '{last}'; write {last}..{first}");
                return Err(Error::in_file(file, how));
            }
            return Ok((a..=b).collect());
        }
        let found: Vec<usize> = match glob::Pattern::new(pattern) {
            Ok(glob) => (0..self.names.len()).filter(|i| glob.matches(&self.names[*i])).collect(),
            Err(_) => Vec::new(),
        };
        if found.is_empty() {
            let what = if pattern.contains(['*', '?', '[']) { "column like" } else { "column" };
            let how = format!("has no {what} '{pattern}'; it has {}", self.list());
            return Err(Error::columns(file, how));
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(name: &str, kind: Kind) -> Column {
        Column { name: name.into(), holds: String::new(), kind, index: false }
    }

    #[test]
    fn names_ranges_and_patterns() {
        let names = ["id", "x1", "x2", "x10", "y", "odd..name", "a*b"];
        let columns = names.map(|name| column(name, Kind::Number)).to_vec();
        let schema = Schema::named("f", columns, None).unwrap();
        let find = |p: &str| schema.matching("f", p).map_err(|e| e.to_string());
        assert_eq!(find("y"), Ok(vec![4]));
        assert_eq!(find("x1..y"), Ok(vec![1, 2, 3, 4]));
        assert_eq!(find("x*"), Ok(vec![1, 2, 3]));
        assert_eq!(find("x?"), Ok(vec![1, 2]));
        assert_eq!(find("odd..name"), Ok(vec![5]));
        assert_eq!(find("a*b"), Ok(vec![6]));
        assert!(find("y..x1").unwrap_err().contains("x1..y"));
        assert!(find("z").unwrap_err().contains("f has no column 'z'; it has id, x1"));
        assert!(find("z*").unwrap_err().contains("no column like 'z*'"));
    }

    #[test]
    fn vectors_are_columns_for_each_coordinate() {
        let columns =
            vec![column("x", Kind::Number), column("v", Kind::Vector(3)), column("w", Kind::List)];
        let schema = Schema::named("f", columns.clone(), None).unwrap();
        assert_eq!(schema.names, ["x", "v[0]", "v[1]", "v[2]", "w"]);
        let find = |p: &str| schema.matching("f", p).unwrap();
        assert_eq!(find("v"), [1, 2, 3]);
        assert_eq!(find("v[1]"), [2]);
        assert_eq!(find("x..v"), [0, 1, 2, 3]);
        assert_eq!(find("v[1]..v[2]"), [2, 3]);
        assert_eq!(schema.source("v[2]"), Some(Source::Coordinate(1, 2)));
        assert_eq!(schema.source("v[3]"), None);
        assert_eq!(schema.source("w[7]"), Some(Source::Coordinate(2, 7)));
        assert_eq!(schema.whole("v"), Some(Source::Column(1)));
        let twice = [columns, vec![column("v[0]", Kind::Number)]].concat();
        assert!(Schema::named("f", twice, None).is_err());
    }
}
