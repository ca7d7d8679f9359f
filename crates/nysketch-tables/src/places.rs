//! The positions of the required columns in a file.

use crate::error::{Error, Result};
use crate::parse;
use crate::schema::{Column, Kind, Schema, Source, Zone};
use nysketch_core::rows::CategoryColumn;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

/// The names of the columns to read.
#[derive(Debug, Default)]
pub struct Names {
    /// Columns of numbers.
    pub values: Vec<String>,
    /// The columns of `values` that are points in time, with their zones.
    pub times: HashMap<usize, SharedZone>,
    /// Columns of categories.
    pub categories: Vec<CategoryColumn>,
    /// Whether each category column may have any type that can be written as text.
    pub any: Vec<bool>,
    /// Column of weights.
    pub weight: Option<String>,
    /// Column whose text is returned with every row.
    pub key: Option<String>,
    /// Columns to keep unchanged.
    pub kept: Vec<String>,
    /// Number of coordinates of each vector column.
    pub lengths: HashMap<String, usize>,
    /// The file whose columns decided which columns are numbers; `None` if the caller decided.
    pub first: Option<Arc<str>>,
    /// Whether rows are read separately.
    pub rowwise: bool,
}

/// Whether the times of a column have a zone, as found so far by all files and threads.
#[derive(Debug, Default)]
pub struct SharedZone(AtomicU8);

impl SharedZone {
    /// Records another time. Returns `false` if it differs from earlier ones.
    pub fn agrees(&self, zoned: bool) -> bool {
        let (zone, order) = (1 + u8::from(zoned), Ordering::Relaxed);
        let known = match self.0.load(order) {
            0 => self.0.compare_exchange(0, zone, order, order).unwrap_or_else(|known| known),
            known => known,
        };
        known == 0 || known == zone
    }

    /// Records the zone of a column of a file. Returns `false` if it differs from earlier ones.
    pub fn agrees_with(&self, zone: Zone) -> bool {
        match zone {
            Zone::Unknown => true,
            Zone::Without => self.agrees(false),
            Zone::With => self.agrees(true),
        }
    }
}

/// The source of a number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value {
    /// A column of the file.
    Column(usize),
    /// A coordinate of a vector.
    Vector,
    /// The same value in every row.
    Constant(f64),
}

/// The source of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Text {
    /// A column of the file.
    Column(usize),
    /// The same text in every row.
    Constant(Option<Arc<str>>),
}

/// A column of vectors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vector {
    /// Name of the column.
    pub name: String,
    /// Index of the column in the file.
    pub column: usize,
    /// Number of coordinates of every vector.
    pub length: usize,
    /// Pairs of a coordinate and the column of numbers that receives it.
    pub picks: Vec<(usize, usize)>,
}

/// The positions of the required columns in a file.
#[derive(Debug, Clone)]
pub struct Places {
    pub names: Arc<Names>,
    pub values: Vec<Value>,
    pub vectors: Vec<Vector>,
    pub categories: Vec<Text>,
    pub weight: Option<Value>,
    pub key: Option<Text>,
    pub kept: Vec<Text>,
    /// The columns of the file that are read, sorted, without duplicates.
    pub projection: Vec<usize>,
    /// Whether columns are matched by position because the names were not found.
    pub by_position: bool,
    /// Whether `true` and `false` are numbers, for each of `values` and for the weight.
    pub truths: Truths,
}

/// The columns in which `true` and `false` are numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Truths {
    pub values: Vec<bool>,
    pub weight: bool,
}

impl Truths {
    /// Combines the result of one file with those of other files: all files form one table.
    pub fn join(&mut self, other: &Truths) {
        self.values.iter_mut().zip(&other.values).for_each(|(a, b)| *a |= b);
        self.weight |= other.weight;
    }
}

/// A search for the columns of a file.
struct Finder<'a> {
    file: &'a str,
    schema: &'a Schema,
    names: &'a Names,
    /// The values that the names of its folders provide.
    folders: &'a [Option<Arc<str>>],
    by_position: bool,
}

impl Places {
    /// Finds columns by name, or by position if the file does not name its columns.
    pub fn find(
        file: &str,
        schema: &Schema,
        names: &Arc<Names>,
        folders: &[Option<Arc<str>>],
    ) -> Result<Self> {
        let categories = names.categories.iter().map(|c| &c.name);
        let others = categories.chain(&names.weight).chain(&names.key);
        let missing = |name: &&String| schema.source(name).is_none();
        let kept = names.kept.iter().filter(|name| schema.whole(name).is_none());
        let missing: Vec<&str> = { names.values.iter() }
            .chain(others.clone())
            .filter(missing)
            .chain(kept)
            .map(String::as_str)
            .collect();
        // The position of a folder column among unnamed columns is unknown.
        let by_position = !missing.is_empty()
            && !schema.named
            && others.chain(&names.kept).next().is_none()
            && schema.width == names.values.len();
        if !missing.is_empty() && !by_position {
            let plural = if missing.len() > 1 { "s" } else { "" };
            let missing = missing.join(", ");
            let mut how =
                format!("does not have the column{plural} {missing}; it has {}", schema.list());
            if names.rowwise && schema.named && schema.texts {
                how.push_str("; if its first line is a row, pass `no_header`");
            }
            return Err(Error::columns(file, how));
        }
        Finder { file, schema, names, folders, by_position }.places(names)
    }

    /// Returns the index of a column of the file among the columns that are read.
    pub fn place(&self, file_column: usize) -> usize {
        self.projection.partition_point(|c| *c < file_column)
    }
}

impl Finder<'_> {
    fn places(&self, names: &Arc<Names>) -> Result<Places> {
        let mut values = Vec::with_capacity(names.values.len());
        let mut truths = Truths::default();
        let mut vectors: Vec<Vector> = Vec::new();
        for (j, name) in names.values.iter().enumerate() {
            let source = self.source(j, name)?;
            let column = self.schema.column(source);
            truths.values.push(self.reads_truths(column));
            values.push(match names.times.get(&j) {
                Some(zone) => self.time(source, column, zone)?,
                None => self.number(source, column)?,
            });
            if let Source::Coordinate(column, coordinate) = source {
                self.pick(&mut vectors, column, coordinate, j)?;
            }
        }
        let mut categories = Vec::new();
        for (column, any) in names.categories.iter().zip(&names.any) {
            categories.push(self.category(&column.name, *any)?);
        }
        let weight = match &names.weight {
            None => None,
            Some(name) => {
                let source = self.source(0, name)?;
                truths.weight = self.reads_truths(self.schema.column(source));
                Some(self.number(source, self.schema.column(source))?)
            }
        };
        let key = names.key.as_ref().and_then(|n| self.schema.source(n));
        let key = key.map(|source| self.text(source));
        let kept = names.kept.iter().filter_map(|n| self.schema.whole(n));
        let kept: Vec<Text> = kept.map(|source| self.text(source)).collect();
        let mut projection: Vec<usize> = vectors.iter().map(|v| v.column).collect();
        for value in values.iter().chain(&weight) {
            if let Value::Column(column) = value {
                projection.push(*column);
            }
        }
        for text in categories.iter().chain(&key).chain(&kept) {
            if let Text::Column(column) = text {
                projection.push(*column);
            }
        }
        projection.sort_unstable();
        projection.dedup();
        let (names, by_position) = (names.clone(), self.by_position);
        Ok(Places {
            names,
            values,
            vectors,
            categories,
            weight,
            key,
            kept,
            projection,
            by_position,
            truths,
        })
    }

    /// Finds a column by its name, or by its number if the columns have no names.
    fn source(&self, number: usize, name: &str) -> Result<Source> {
        match self.schema.source(name) {
            Some(found) if !self.by_position => Ok(found),
            _ => match self.schema.sources.get(number) {
                Some(found) => Ok(*found),
                None => Err(Error::columns(self.file, format!("does not have the column {name}"))),
            },
        }
    }

    fn text(&self, source: Source) -> Text {
        match source {
            Source::Column(i) | Source::Coordinate(i, _) => Text::Column(i),
            Source::Folder(i) => Text::Constant(self.folders.get(i).cloned().flatten()),
        }
    }

    fn refuse<T>(&self, column: &Column, how: &str) -> Result<T> {
        let (name, holds) = (&column.name, &column.holds);
        Err(Error::in_file(self.file, format!("column '{name}' holds {holds}, {how}")))
    }

    /// Returns the error for a column that contains numbers in the first file and other values
    /// here, or the reverse.
    fn differs<T>(&self, column: &Column, there: &str, how: &str) -> Result<T> {
        let (name, holds) = (&column.name, &column.holds);
        let Some(first) = self.names.first.as_deref().filter(|first| *first != self.file) else {
            return self.refuse(column, how);
        };
        let how = format!("column '{name}' holds {holds} here, and {there} in {first}");
        Err(Error::in_file(self.file, how))
    }

    /// Whether `true` and `false` are numbers in a column: if the caller decided its type, or if
    /// most of its values are `true` or `false`.
    fn reads_truths(&self, column: &Column) -> bool {
        self.names.first.is_none() || column.kind == Kind::Truth
    }

    fn number(&self, source: Source, column: &Column) -> Result<Value> {
        let file_column = match source {
            Source::Folder(i) => {
                let text = self.folders.get(i).and_then(|t| t.as_deref()).unwrap_or_default();
                let truth = || parse::truth(text.as_bytes()).filter(|_| self.reads_truths(column));
                return match parse::number(text.as_bytes()).or_else(truth) {
                    Some(x) => Ok(Value::Constant(x)),
                    // The folder may contain a single row, which must not cause an error.
                    None if self.names.rowwise => Ok(Value::Constant(f64::INFINITY)),
                    None => Err(self.folder(column, text, "number")),
                };
            }
            Source::Coordinate(..) => return Ok(Value::Vector),
            Source::Column(i) => i,
        };
        match &column.kind {
            Kind::Number | Kind::Truth => Ok(Value::Column(file_column)),
            Kind::Text if self.schema.texts => Ok(Value::Column(file_column)),
            Kind::Date(_) => {
                let name = &column.name;
                let how = format!("column '{name}' holds dates; read them with `dates={name}`");
                Err(Error::in_file(self.file, how))
            }
            _ => self.differs(column, "numbers", "not numbers"),
        }
    }

    fn time(&self, source: Source, column: &Column, zone: &SharedZone) -> Result<Value> {
        let agrees = match column.kind {
            Kind::Date(here) => zone.agrees_with(here),
            _ => true,
        };
        if !agrees {
            let how = format!("column '{}' mixes times with and without a zone", column.name);
            return Err(match self.names.first.as_deref() {
                Some(first) if first != self.file => {
                    let here = if zone.agrees(true) { "without" } else { "with" };
                    let other = if zone.agrees(true) { "with" } else { "without" };
                    Error::in_file(self.file, format!("{how}: {here} here, {other} in {first}"))
                }
                _ => Error::in_file(self.file, how),
            });
        }
        match source {
            Source::Folder(i) => {
                let text = self.folders.get(i).and_then(|t| t.as_deref()).unwrap_or_default();
                match parse::time(text.as_bytes()) {
                    Some(time) => Ok(Value::Constant(time.seconds)),
                    None if self.names.rowwise => Ok(Value::Constant(f64::INFINITY)),
                    None => Err(self.folder(column, text, "date")),
                }
            }
            Source::Column(i) if self.schema.texts || matches!(column.kind, Kind::Date(_)) => {
                Ok(Value::Column(i))
            }
            _ => self.refuse(column, "not dates"),
        }
    }

    fn category(&self, name: &str, any: bool) -> Result<Text> {
        let source = self.source(0, name)?;
        let column = self.schema.column(source);
        match (&column.kind, source) {
            (_, Source::Folder(_)) | (Kind::Text, _) => {}
            (_, Source::Coordinate(..))
            | (Kind::Vector(_) | Kind::List | Kind::View | Kind::Other { text: false }, _) => {
                return self.refuse(column, "which has no text");
            }
            _ if any || self.schema.texts => {}
            _ => {
                let how = format!("not text; read it with `categorical={name}`");
                return self.differs(column, "text", &how);
            }
        }
        Ok(self.text(source))
    }

    /// Uses one coordinate of a vector as a column of numbers.
    fn pick(
        &self,
        vectors: &mut Vec<Vector>,
        column: usize,
        coordinate: usize,
        j: usize,
    ) -> Result<()> {
        let described = &self.schema.columns[column];
        let known = self.names.lengths.get(&described.name).copied();
        let length = match described.kind {
            Kind::Vector(n) if known.is_some_and(|known| known != n) => {
                let there = format!("vectors of {}", known.unwrap_or(0));
                return self.differs(described, &there, "not vectors of one length");
            }
            Kind::Vector(n) => Some(n),
            // The lengths of the lists in other rows must not affect this row.
            _ if self.names.rowwise => None,
            _ => known,
        };
        if length.is_some_and(|n| coordinate >= n) {
            let how = format!("does not have the column {}[{coordinate}]", described.name);
            return Err(Error::columns(self.file, how));
        }
        match vectors.iter_mut().find(|v| v.column == column) {
            Some(vector) => {
                vector.length = vector.length.max(coordinate + 1);
                vector.picks.push((coordinate, j));
            }
            None => vectors.push(Vector {
                name: described.name.clone(),
                column,
                length: length.unwrap_or(coordinate + 1),
                picks: vec![(coordinate, j)],
            }),
        }
        Ok(())
    }

    fn folder(&self, column: &Column, text: &str, what: &str) -> Error {
        let name = &column.name;
        Error::in_file(self.file, format!("the folder {name}={text} is not a {what}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_taken_for_all_columns_or_none() {
        let names = |names: &[&str]| {
            let values = names.iter().map(|n| n.to_string()).collect();
            Arc::new(Names { values, ..Names::default() })
        };
        let kinds = vec![(Kind::Number, String::new()); 3];
        let unnamed = Schema::unnamed("f", kinds, None).unwrap();
        let find = |names| Places::find("f", &unnamed, &names, &[]).unwrap();
        let found = find(names(&["c1", "c2", "c3"]));
        assert_eq!(
            (found.values, found.by_position),
            ([0, 1, 2].map(Value::Column).to_vec(), true)
        );
        let found = find(names(&["c2", "c0"]));
        assert_eq!((found.values, found.by_position), ([2, 0].map(Value::Column).to_vec(), false));
    }
}
