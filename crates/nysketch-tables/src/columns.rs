//! Which columns of a file are read: patterns of names, and where the names are in a file.

use crate::error::{Error, Result};
use std::collections::HashMap;

/// The columns of a file.
#[derive(Debug, Clone)]
pub struct Schema {
    /// Names; `c0`, `c1`, … where the file has none.
    pub names: Vec<String>,
    /// The place of each name.
    places: HashMap<String, usize>,
    /// Whether the file itself names them.
    pub named: bool,
    /// What each holds.
    pub kinds: Vec<Kind>,
    /// Number of rows, where the file says so.
    pub rows: Option<u64>,
}

/// What a column holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// Numbers, at least at first sight.
    Number,
    /// True and false as text, at least at first sight: 1 and 0.
    Truth,
    /// Numbers that another program keeps as the names of its rows.
    Index,
    /// Text at first sight; a number may still be read from it.
    Text,
    /// Values of this type, which are not numbers.
    Other(String),
}

impl Schema {
    /// For a file that names its columns, each differently.
    pub fn named(
        file: &str,
        names: Vec<String>,
        kinds: Vec<Kind>,
        rows: Option<u64>,
    ) -> Result<Self> {
        let mut places = HashMap::with_capacity(names.len());
        for (i, name) in names.iter().enumerate() {
            if places.insert(name.clone(), i).is_some() {
                return Err(Error::in_file(file, format!("two columns are called '{name}'")));
            }
        }
        Ok(Schema { names, places, named: true, kinds, rows })
    }

    /// For a file that does not name its columns.
    pub fn unnamed(columns: usize, rows: Option<u64>) -> Self {
        let names = nysketch::rows::default_names(columns);
        let places = names.iter().cloned().zip(0..).collect();
        Schema { names, places, named: false, kinds: vec![Kind::Number; columns], rows }
    }

    /// The place of a name.
    pub fn find(&self, name: &str) -> Option<usize> {
        self.places.get(name).copied()
    }

    /// All names, or how many there are.
    fn list(&self) -> String {
        match self.names.len() {
            n if n > 30 => format!("{}, … ({n} columns)", self.names[..30].join(", ")),
            _ => self.names.join(", "),
        }
    }
}

/// Names of the columns that are read.
#[derive(Debug, Clone, Default)]
pub struct Names {
    /// Columns of numbers.
    pub values: Vec<String>,
    /// Column of weights.
    pub weight: Option<String>,
    /// Column that comes as text with every row.
    pub key: Option<String>,
    /// Columns to keep as they are.
    pub kept: Vec<String>,
}

/// Where the wanted columns are in a file.
#[derive(Debug, Clone)]
pub struct Places {
    pub names: Names,
    pub values: Vec<usize>,
    pub weight: Option<usize>,
    pub key: Option<usize>,
    pub kept: Vec<usize>,
    /// All of the above, sorted, each once.
    pub projection: Vec<usize>,
    /// Whether names were not found and positions were taken instead.
    pub by_position: bool,
    /// Whether `true` and `false` are numbers, for each of `values` and for the weight.
    pub truths: Truths,
}

/// Where `true` and `false` are numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Truths {
    pub values: Vec<bool>,
    pub weight: bool,
}

impl Truths {
    /// What one file says, together with what others say: all are one table.
    pub fn join(&mut self, other: &Truths) {
        self.values.iter_mut().zip(&other.values).for_each(|(a, b)| *a |= b);
        self.weight |= other.weight;
    }
}

impl Places {
    /// Finds columns by name, or by position where the file does not name its columns.
    pub fn find(file: &str, schema: &Schema, names: &Names) -> Result<Self> {
        let others = names.weight.iter().chain(&names.key).chain(&names.kept);
        let missing: Vec<&str> = names
            .values
            .iter()
            .chain(others.clone())
            .map(String::as_str)
            .filter(|n| schema.find(n).is_none())
            .collect();
        // Where another column stands among unnamed ones cannot be known.
        let by_position = !missing.is_empty()
            && !schema.named
            && others.clone().next().is_none()
            && schema.names.len() == names.values.len();
        if !missing.is_empty() && !by_position {
            let plural = if missing.len() > 1 { "s" } else { "" };
            let missing = missing.join(", ");
            let how = format!("lacks the column{plural} {missing}; it has {}", schema.list());
            return Err(Error::columns(file, how));
        }
        let place = |i: usize, name: &String| match schema.find(name) {
            Some(found) if !by_position => found,
            _ => i,
        };
        let values: Vec<usize> =
            names.values.iter().enumerate().map(|(i, n)| place(i, n)).collect();
        let weight = names.weight.as_ref().map(|n| place(0, n));
        let key = names.key.as_ref().map(|n| place(0, n));
        let kept: Vec<usize> = names.kept.iter().map(|n| place(0, n)).collect();
        for &column in values.iter().chain(&weight) {
            if let Kind::Other(kind) = &schema.kinds[column] {
                let how = format!("column '{}' holds {kind}, not numbers", schema.names[column]);
                return Err(Error::in_file(file, how));
            }
        }
        let mut projection: Vec<usize> =
            values.iter().chain(&weight).chain(&key).chain(&kept).copied().collect();
        projection.sort_unstable();
        projection.dedup();
        let truth = |column: &usize| schema.kinds[*column] == Kind::Truth;
        let truths = Truths {
            values: values.iter().map(truth).collect(),
            weight: weight.as_ref().is_some_and(truth),
        };
        let names = names.clone();
        Ok(Places { names, values, weight, key, kept, projection, by_position, truths })
    }

    /// The place of a column of the file among those that are read.
    pub fn place(&self, file_column: usize) -> usize {
        self.projection.partition_point(|c| *c < file_column)
    }
}

/// What the options say about columns.
#[derive(Debug, Clone, Copy)]
pub struct Choice<'a> {
    /// Patterns to read, all numeric columns where `None`.
    pub include: Option<&'a [String]>,
    /// Patterns to leave out.
    pub exclude: &'a [String],
    /// Columns that are used otherwise, as weights or groups.
    pub taken: &'a [&'a str],
}

/// The columns of a file that are read, and those that are not.
#[derive(Debug, Default)]
pub struct Chosen {
    /// Names of the columns to read.
    pub values: Vec<String>,
    /// Columns left out because they do not hold numbers.
    pub left_out: Vec<String>,
    /// Columns left out because they are the names of rows.
    pub indexes: Vec<String>,
}

/// The columns to read from a file.
pub fn choose(file: &str, schema: &Schema, choice: Choice<'_>) -> Result<Chosen> {
    if let Some(name) = choice.taken.iter().find(|n| schema.find(n).is_none()) {
        let how = format!("has no column '{name}'; it has {}", schema.list());
        return Err(Error::columns(file, how));
    }
    let mut excluded = vec![false; schema.names.len()];
    for pattern in choice.exclude {
        matching(file, schema, pattern)?.into_iter().for_each(|i| excluded[i] = true);
    }
    let mut chosen = Vec::new();
    let (mut left_out, mut indexes) = (Vec::new(), Vec::new());
    match choice.include {
        Some(patterns) => {
            let mut taken = vec![false; schema.names.len()];
            for pattern in patterns {
                let found = matching(file, schema, pattern)?;
                if let [one] = found[..]
                    && taken[one]
                    && schema.names[one] == *pattern
                {
                    return Err(Error::Usage(format!("`columns` names '{pattern}' twice")));
                }
                for i in found.into_iter().filter(|i| !excluded[*i]) {
                    if !std::mem::replace(&mut taken[i], true) {
                        chosen.push(i);
                    }
                }
            }
        }
        None => {
            for (i, name) in schema.names.iter().enumerate() {
                if excluded[i] || choice.taken.contains(&name.as_str()) {
                    continue;
                }
                match &schema.kinds[i] {
                    Kind::Number | Kind::Truth => chosen.push(i),
                    Kind::Index => indexes.push(name.clone()),
                    Kind::Text => left_out.push(name.clone()),
                    Kind::Other(kind) => left_out.push(format!("{name} ({kind})")),
                }
            }
        }
    }
    if let ([name], false) = (schema.names.as_slice(), schema.kinds == [Kind::Number])
        && let Some(c) = [';', '\t', '|', ','].into_iter().find(|c| name.contains(*c))
    {
        let how = format!(
            "has one column called '{name}'; if '{c}' separates columns, pass `delimiter='{c}'`"
        );
        return Err(Error::columns(file, how));
    }
    if schema.names.is_empty() {
        return Err(Error::columns(file, "has no columns"));
    }
    if excluded.iter().all(|e| *e) {
        return Err(Error::NothingLeft { name: file.to_string(), has: schema.list() });
    }
    if chosen.is_empty() {
        let how = format!("has no numeric column to read; it has {}", schema.list());
        return Err(Error::columns(file, how));
    }
    let values = chosen.into_iter().map(|i| schema.names[i].clone()).collect();
    Ok(Chosen { values, left_out, indexes })
}

/// The columns that a name, a range FIRST..LAST (both included) or a pattern with * ? [ ] means, in
/// the order of the file.
pub fn matching(file: &str, schema: &Schema, pattern: &str) -> Result<Vec<usize>> {
    if let Some(i) = schema.find(pattern) {
        return Ok(vec![i]);
    }
    if let Some((first, last)) = pattern.split_once("..")
        && let (Some(a), Some(b)) = (schema.find(first), schema.find(last))
    {
        if a > b {
            let how = format!("column '{first}' comes after '{last}'; write {last}..{first}");
            return Err(Error::in_file(file, how));
        }
        return Ok((a..=b).collect());
    }
    let found: Vec<usize> = match glob::Pattern::new(pattern) {
        Ok(glob) => (0..schema.names.len()).filter(|i| glob.matches(&schema.names[*i])).collect(),
        Err(_) => Vec::new(),
    };
    if found.is_empty() {
        let what = if pattern.contains(['*', '?', '[']) { "column like" } else { "column" };
        let how = format!("has no {what} '{pattern}'; it has {}", schema.list());
        return Err(Error::columns(file, how));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema() -> Schema {
        let names = ["id", "x1", "x2", "x10", "y", "odd..name", "a*b"];
        Schema::named("f", names.map(String::from).to_vec(), vec![Kind::Number; 7], None).unwrap()
    }

    #[test]
    fn names_ranges_and_patterns() {
        let find = |p: &str| matching("f", &schema(), p).map_err(|e| e.to_string());
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
    fn positions_are_taken_for_all_columns_or_none() {
        let names = |names: &[&str]| Names {
            values: names.iter().map(|n| n.to_string()).collect(),
            ..Names::default()
        };
        let unnamed = Schema::unnamed(3, None);
        let found = Places::find("f", &unnamed, &names(&["c1", "c2", "c3"])).unwrap();
        assert_eq!((found.values, found.by_position), (vec![0, 1, 2], true));
        let found = Places::find("f", &unnamed, &names(&["c2", "c0"])).unwrap();
        assert_eq!((found.values, found.by_position), (vec![2, 0], false));
    }

    #[test]
    fn exclusion_and_order() {
        let all = |columns: Option<&[String]>, exclude: &[String]| {
            let choice = Choice { include: columns, exclude, taken: &["id"] };
            choose("f", &schema(), choice).map(|c| c.values.join(" "))
        };
        let text = |t: &str| vec![t.to_string()];
        assert_eq!(all(None, &text("x*")).unwrap(), "y odd..name a*b");
        let columns = ["y".to_string(), "x*".to_string()];
        assert_eq!(all(Some(&columns), &text("x10")).unwrap(), "y x1 x2");
        assert!(all(None, &text("*")).is_err());
        let twice = ["y".to_string(), "y".to_string()];
        assert!(all(Some(&twice), &[]).unwrap_err().to_string().contains("twice"));
    }
}
