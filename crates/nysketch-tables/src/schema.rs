//! The columns of a file: their names, their types, and which of them match a pattern.

use crate::error::{Error, Result};
use std::collections::HashMap;
use std::ops::Range;

/// Maximum number of coordinates of a vector.
pub const MOST_COORDINATES: usize = 4096;

/// A column of a file, or a folder whose name gives the value of all rows of the file.
#[derive(Debug, Clone)]
pub struct Column {
    pub name: String,
    /// Its type in words.
    pub holds: String,
    pub kind: Kind,
    /// Whether another program stores its row names here.
    pub index: bool,
}

/// The kind of value in a column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// Numbers, judging by the first rows.
    Number,
    /// The texts "true" and "false", judging by the first rows; read as 1 and 0.
    Truth,
    /// Text, judging by the first rows.
    Text,
    /// Points in time, judging by the first rows.
    Date(Zone),
    /// A vector with this number of coordinates in every row.
    Vector(usize),
    /// A list of numbers in every row, of unknown length.
    List,
    /// Numbers in every row, stored as a list view, which is not read.
    View,
    /// Another type, which may have a text form.
    Other { text: bool },
}

/// Whether times have a zone and therefore denote the same instant everywhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Zone {
    #[default]
    Unknown,
    Without,
    With,
}

/// The place of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// In a column of the file.
    Column(usize),
    /// In a vector: the column and the coordinate.
    Coordinate(usize, usize),
    /// In the name of a folder.
    Folder(usize),
}

/// The columns of a file. A vector counts as one column per coordinate: `emb[0]`, `emb[1]`, …
#[derive(Debug, Clone)]
pub struct Schema {
    /// Names, or `c0`, `c1`, … if the file has none.
    pub names: Vec<String>,
    /// The place of each named value.
    pub sources: Vec<Source>,
    /// The columns of the file, followed by the folders.
    pub columns: Vec<Column>,
    /// Number of columns that are in the file itself.
    pub width: usize,
    /// The index of each name.
    places: HashMap<String, usize>,
    /// For each vector its column and the indexes of its coordinates; for each list its column and
    /// an empty range.
    vectors: HashMap<String, (usize, Range<usize>)>,
    /// Whether the file names its columns.
    pub named: bool,
    /// Whether every value is stored as text, which can be read in several ways.
    pub texts: bool,
    /// Number of rows, if the file states it.
    pub rows: Option<u64>,
}

impl Schema {
    /// Makes the schema of a file with column names, which must be distinct.
    pub fn named(file: &str, columns: Vec<Column>, rows: Option<u64>) -> Result<Self> {
        Self::new(file, columns, true, rows)
    }

    /// Makes the schema of a file without column names.
    pub fn unnamed(file: &str, kinds: Vec<(Kind, String)>, rows: Option<u64>) -> Result<Self> {
        let names = nysketch_core::rows::default_names(kinds.len());
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

    /// Adds columns for folders.
    pub fn add_folders(&mut self, file: &str, folders: &[Column]) -> Result<()> {
        for (i, folder) in folders.iter().enumerate() {
            self.add(file, folder.name.clone(), Source::Folder(i))?;
            self.columns.push(folder.clone());
        }
        Ok(())
    }

    /// Returns the index of a name.
    pub fn find(&self, name: &str) -> Option<usize> {
        self.places.get(name).copied()
    }

    /// Returns the place of a named value. A list of unknown length accepts any coordinate, because
    /// another file may declare the length.
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

    /// Returns the column of the file, or the folder, that contains a value.
    pub fn column(&self, source: Source) -> &Column {
        match source {
            Source::Column(i) | Source::Coordinate(i, _) => &self.columns[i],
            Source::Folder(i) => &self.columns[self.width + i],
        }
    }

    /// Returns the place of a whole column, found by its own name.
    pub fn whole(&self, name: &str) -> Option<Source> {
        match self.vectors.get(name) {
            Some((column, _)) => Some(Source::Column(*column)),
            None => self.find(name).map(|i| self.sources[i]),
        }
    }

    /// Lists the names of the columns; long lists are cut and end with the number of columns.
    pub fn list(&self) -> String {
        let names: Vec<&str> = self.columns.iter().map(|c| c.name.as_str()).collect();
        match names.len() {
            n if n > 30 => format!("{}, … ({n} columns)", names[..30].join(", ")),
            _ => names.join(", "),
        }
    }

    /// Returns the columns that match a name, a range FIRST..LAST (both included) or a pattern with
    /// * ? [ ], in file order. The name of a vector matches all its coordinates.
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
