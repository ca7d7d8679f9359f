//! Chooses which columns are read and how, from patterns and from the types in a file.

use crate::error::{Error, Result};
use crate::schema::{Column, Kind, Schema, Source};
use std::collections::HashSet;

/// A column of a table and how it is used.
///
/// ```
/// use nysketch_tables::{Dataset, ReadOptions, Role};
///
/// let folder = tempfile::tempdir()?;
/// let file = folder.path().join("x.csv");
/// std::fs::write(&file, "when,x,colour\n2024-01-01,1,red\n2024-01-02,2,blue\n")?;
/// let table = Dataset::open([file], &ReadOptions::default())?;
/// let roles: Vec<String> = table.roles().iter().map(|c| c.to_string()).collect();
/// assert_eq!(roles[1..], ["x (number): a number", "colour (text): a category"]);
/// assert!(matches!(&table.roles()[0].role, Role::LeftOut(why) if why.contains("`dates=when`")));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ColumnRole {
    /// Its name.
    pub name: String,
    /// Its type in words: `int64`, `text`, `timestamp[us, UTC]`, `float32[384]`.
    pub holds: String,
    /// How it is used.
    pub role: Role,
}

/// How a column is used.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Role {
    /// A column of numbers.
    Number,
    /// A column of categories.
    Category,
    /// A column of points in time.
    Time,
    /// This number of columns of numbers.
    Vector(usize),
    /// Not read, for this reason.
    LeftOut(String),
}

impl std::fmt::Display for Role {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Role::Number => f.write_str("a number"),
            Role::Category => f.write_str("a category"),
            Role::Time => f.write_str("a time"),
            Role::Vector(1) => f.write_str("a vector of 1 number"),
            Role::Vector(n) => write!(f, "a vector of {n} numbers"),
            Role::LeftOut(why) => write!(f, "left out: {why}"),
        }
    }
}

impl std::fmt::Display for ColumnRole {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({}): {}", self.name, self.holds, self.role)
    }
}

/// The choice of columns in the options.
#[derive(Debug, Clone, Copy)]
pub struct Choice<'a> {
    /// Patterns to read, or `None` for all numbers and texts.
    pub include: Option<&'a [String]>,
    /// Patterns to leave out.
    pub exclude: &'a [String],
    /// Patterns to read as categories, as numbers and as times.
    pub categorical: &'a [String],
    pub numeric: &'a [String],
    pub dates: &'a [String],
    /// Columns with another use, such as weights or groups.
    pub taken: &'a [&'a str],
}

/// The columns of a file that are read.
#[derive(Debug, Default)]
pub struct Chosen {
    /// Columns of numbers.
    pub values: Vec<String>,
    /// The columns of `values` that are points in time.
    pub times: Vec<String>,
    /// Columns of categories.
    pub categories: Vec<String>,
    /// The columns of `categories` that may have any type with a text form.
    pub any: Vec<String>,
}

/// How a column is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum As {
    Category,
    Number,
    Time,
}

impl As {
    fn option(self) -> &'static str {
        match self {
            As::Category => "`categorical`",
            As::Number => "`numeric`",
            As::Time => "`dates`",
        }
    }
}

/// Chooses the columns to read from a file.
pub fn choose(file: &str, schema: &Schema, choice: Choice<'_>) -> Result<Chosen> {
    if let Some(name) = choice.taken.iter().find(|n| schema.find(n).is_none()) {
        let how = format!("has no column '{name}'; it has {}", schema.list());
        return Err(Error::columns(file, how));
    }
    if let [column] = schema.columns.as_slice()
        && !matches!(column.kind, Kind::Number | Kind::Vector(_))
        && let Some(c) = [';', '\t', '|', ','].into_iter().find(|c| column.name.contains(*c))
    {
        let how = format!(
            "has one column called '{}'; if '{c}' separates columns, pass `delimiter='{c}'`",
            column.name
        );
        return Err(Error::columns(file, how));
    }
    if schema.names.is_empty() {
        return Err(Error::columns(file, "has no columns"));
    }
    let excluded = choice.excluded(file, schema)?;
    if excluded.iter().all(|e| *e) {
        return Err(Error::NothingLeft { name: file.to_string(), has: schema.list() });
    }
    let asked = choice.asked(file, schema, &excluded)?;
    let mut chosen = Chosen::default();
    for i in choice.columns(file, schema, &excluded, &asked)? {
        let (name, kind) = (&schema.names[i], kind_of(schema, i));
        if *kind == Kind::View {
            let holds = &schema.column(schema.sources[i]).holds;
            let how = format!(
                "column '{name}' holds {holds}, which cannot be read; convert it to a list, or leave it out with \
                 `exclude={name}`"
            );
            return Err(Error::in_file(file, how));
        }
        let read_as = asked[i].unwrap_or(match kind {
            Kind::Text => As::Category,
            _ => As::Number,
        });
        match read_as {
            As::Category => chosen.categories.push(name.clone()),
            As::Number | As::Time => chosen.values.push(name.clone()),
        }
        match read_as {
            As::Time => chosen.times.push(name.clone()),
            As::Category if asked[i].is_some() => chosen.any.push(name.clone()),
            _ => {}
        }
    }
    if chosen.values.is_empty() {
        let how = format!("has no numeric column to read; it has {}", schema.list());
        return Err(Error::columns(file, how));
    }
    Ok(chosen)
}

/// Returns the kind of a column. Coordinates of a vector are numbers.
fn kind_of(schema: &Schema, i: usize) -> &Kind {
    match schema.sources[i] {
        Source::Coordinate(..) => &Kind::Number,
        source => &schema.column(source).kind,
    }
}

impl Choice<'_> {
    fn excluded(&self, file: &str, schema: &Schema) -> Result<Vec<bool>> {
        let mut excluded = vec![false; schema.names.len()];
        for pattern in self.exclude {
            schema.matching(file, pattern)?.into_iter().for_each(|i| excluded[i] = true);
        }
        Ok(excluded)
    }

    /// Returns for each column how the options ask to read it, if they name it.
    fn asked(&self, file: &str, schema: &Schema, excluded: &[bool]) -> Result<Vec<Option<As>>> {
        let mut asked = vec![None; schema.names.len()];
        let lists =
            [(As::Category, self.categorical), (As::Number, self.numeric), (As::Time, self.dates)];
        for (read_as, pattern) in
            lists.iter().flat_map(|(a, list)| list.iter().map(move |p| (*a, p)))
        {
            let option = read_as.option();
            for i in schema.matching(file, pattern)? {
                let name = &schema.names[i];
                if excluded[i] && name == pattern {
                    return Err(Error::Usage(format!(
                        "`exclude` leaves out '{name}', which {option} names"
                    )));
                }
                if let Some(other) = asked[i].filter(|other: &As| *other != read_as) {
                    let other = other.option();
                    return Err(Error::Usage(format!("{other} and {option} both name '{name}'")));
                }
                asked[i] = (!excluded[i]).then_some(read_as);
            }
        }
        Ok(asked)
    }

    /// Returns the columns to read, in order.
    fn columns(
        &self,
        file: &str,
        schema: &Schema,
        excluded: &[bool],
        asked: &[Option<As>],
    ) -> Result<Vec<usize>> {
        let Some(patterns) = self.include else {
            let by_default = |i: &usize| {
                let free = !self.taken.contains(&schema.names[*i].as_str());
                let kind = kind_of(schema, *i);
                let plain = matches!(kind, Kind::Number | Kind::Truth | Kind::Text | Kind::View);
                plain && free && !schema.column(schema.sources[*i]).index
            };
            let wanted = |i: &usize| !excluded[*i] && (asked[*i].is_some() || by_default(i));
            return Ok((0..schema.names.len()).filter(wanted).collect());
        };
        let mut seen = vec![false; schema.names.len()];
        let mut columns = Vec::new();
        for pattern in patterns {
            let found = schema.matching(file, pattern)?;
            if let [one] = found[..]
                && seen[one]
                && schema.names[one] == *pattern
            {
                return Err(Error::Usage(format!("`columns` names '{pattern}' twice")));
            }
            for i in found.into_iter().filter(|i| !excluded[*i]) {
                if !std::mem::replace(&mut seen[i], true) {
                    columns.push(i);
                }
            }
        }
        // A column that an option names as a category, number or date is read, too.
        columns.extend((0..asked.len()).filter(|i| asked[*i].is_some() && !seen[*i]));
        Ok(columns)
    }
}

/// Lists how each column of a file is used. `taken` names the weights and groups.
pub fn roles(schema: &Schema, chosen: &Chosen, taken: &[&str], all: bool) -> Vec<ColumnRole> {
    let [values, times, categories] =
        [&chosen.values, &chosen.times, &chosen.categories].map(HashSet::<&String>::from_iter);
    let role = |column: &Column| {
        let name = &column.name;
        if let Kind::Vector(n) = column.kind {
            let read = (0..n).filter(|j| values.contains(&format!("{name}[{j}]"))).count();
            if read > 0 {
                return Role::Vector(read);
            }
        }
        if times.contains(name) {
            return Role::Time;
        }
        if values.contains(name) {
            return Role::Number;
        }
        if categories.contains(name) {
            return Role::Category;
        }
        Role::LeftOut(match &column.kind {
            _ if taken.contains(&name.as_str()) => "read as weight or group".into(),
            _ if !all => "not chosen".into(),
            _ if column.index => "the index of a pandas table; `columns` reads it".into(),
            Kind::Date(_) => format!("dates; `dates={name}` reads them"),
            Kind::Other { text: true } => {
                format!("not numbers and not text; `categorical={name}` reads its text")
            }
            Kind::Other { text: false } => "cannot be read as numbers or text".into(),
            Kind::View => "a list view, which cannot be read".into(),
            Kind::List => "vectors whose length the first rows do not show".into(),
            Kind::Number | Kind::Truth | Kind::Text | Kind::Vector(_) => "excluded".into(),
        })
    };
    let columns = schema.columns.iter();
    columns
        .map(|c| ColumnRole { name: c.name.clone(), holds: c.holds.clone(), role: role(c) })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::Zone;

    fn schema() -> Schema {
        let column = |name: &str, kind| Column {
            name: name.into(),
            holds: String::new(),
            kind,
            index: false,
        };
        let mut columns: Vec<Column> = ["id", "x1", "x2", "x10", "y", "odd..name", "a*b"]
            .map(|name| column(name, Kind::Number))
            .to_vec();
        columns.push(column("c", Kind::Text));
        columns.push(column("when", Kind::Date(Zone::Unknown)));
        columns.push(column("v", Kind::Vector(2)));
        Schema::named("f", columns, None).unwrap()
    }

    fn list(text: &str) -> Vec<String> {
        text.split_whitespace().map(String::from).collect()
    }

    #[test]
    fn exclusion_and_order() {
        let all = |columns: Option<&str>, exclude: &str| {
            let (include, exclude) = (columns.map(list), list(exclude));
            let choice = Choice {
                include: include.as_deref(),
                exclude: &exclude,
                categorical: &[],
                numeric: &[],
                dates: &[],
                taken: &["id"],
            };
            choose("f", &schema(), choice).map(|c| (c.values.join(" "), c.categories.join(" ")))
        };
        let found = |values: &str, categories: &str| (values.to_string(), categories.to_string());
        assert_eq!(all(None, "x*").unwrap(), found("y odd..name a*b v[0] v[1]", "c"));
        assert_eq!(all(Some("y c x*"), "x10").unwrap(), found("y x1 x2", "c"));
        assert_eq!(all(Some("v y"), "v[0]").unwrap(), found("v[1] y", ""));
        assert!(all(None, "*").is_err());
        assert!(all(Some("y y"), "").unwrap_err().to_string().contains("twice"));
    }

    #[test]
    fn roles_can_be_told() {
        let told = |columns: Option<&str>, exclude: &str, [c, n, d]: [&str; 3]| {
            let (include, exclude) = (columns.map(list), list(exclude));
            let (categorical, numeric, dates) = (list(c), list(n), list(d));
            let choice = Choice {
                include: include.as_deref(),
                exclude: &exclude,
                categorical: &categorical,
                numeric: &numeric,
                dates: &dates,
                taken: &[],
            };
            choose("f", &schema(), choice)
                .map(|c| [c.values, c.times, c.categories].map(|names| names.join(" ")))
                .map_err(|e| e.to_string())
        };
        let found = |parts: [&str; 3]| Ok(parts.map(String::from));
        let all = told(None, "v", ["x* id", "c", "when"]);
        assert_eq!(all, found(["y odd..name a*b c when", "when", "id x1 x2 x10"]));
        assert_eq!(told(Some("y"), "", ["x1", "", "when"]), found(["y when", "when", "x1"]));
        // A column that only a pattern matches can be excluded; a column that is named cannot.
        assert_eq!(told(Some("y"), "x2", ["x*", "", ""]), found(["y", "", "x1 x10"]));
        let refused = told(None, "x*", ["x1", "", ""]).unwrap_err();
        assert_eq!(refused, "`exclude` leaves out 'x1', which `categorical` names");
        let refused = told(None, "", ["x1", "x*", ""]).unwrap_err();
        assert_eq!(refused, "`categorical` and `numeric` both name 'x1'");
    }
}
