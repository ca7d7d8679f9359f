//! Selects the columns to read from the options, for files and for tables in memory.

use crate::columns::{Choice, Chosen, ColumnRole, Role, choose};
use crate::error::{Error, Result};
use crate::options::{Columns, Extras, ReadOptions};
use crate::places::{Names, SharedZone};
use crate::schema::{Column, Kind, Schema};
use nysketch_core::rows::CategoryColumn;
use nysketch_core::rows::MAX_COLUMNS;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Returns whether the options leave the choice of columns to the defaults.
pub fn by_default(options: &ReadOptions) -> bool {
    matches!(options.columns, Columns::Matching { include: None, .. })
}

/// Chooses the columns that the options ask for, from the types in the first file.
pub fn chosen(file: &str, schema: &Schema, options: &ReadOptions) -> Result<Chosen> {
    if options.rowwise && !matches!(options.columns, Columns::Exactly { .. }) {
        let how = "`rowwise` needs `columns` with exact names and types";
        return Err(Error::Usage(how.into()));
    }
    let chosen = match &options.columns {
        Columns::Exactly { numbers, times, categories } => Chosen {
            values: numbers.clone(),
            times: times.clone(),
            categories: categories.clone(),
            any: categories.clone(),
        },
        Columns::Matching { include, exclude, categorical, numeric, dates } => {
            let (include, taken) = (include.as_deref(), options.extras.taken());
            let choice = Choice { include, exclude, categorical, numeric, dates, taken: &taken };
            choose(file, schema, choice)?
        }
    };
    match chosen.values.len() {
        found if found > MAX_COLUMNS => Err(Error::TooManyColumns { found, most: MAX_COLUMNS }),
        _ => Ok(chosen),
    }
}

/// Collects by name everything that is read, from files with these schemas or from one table.
pub fn names(
    file: &str,
    schemas: &[&Schema],
    chosen: Chosen,
    options: &ReadOptions,
) -> Result<Names> {
    let schema = schemas[0];
    let Extras { weight, key, keep } = options.extras.clone();
    let (mut kept, mut seen) = (Vec::new(), HashSet::new());
    for pattern in &keep {
        for i in schema.matching(file, pattern)? {
            let name = &schema.column(schema.sources[i]).name;
            if seen.insert(name) {
                kept.push(name.clone());
            }
        }
    }
    let mut lengths = HashMap::new();
    for column in schemas.iter().flat_map(|s| &s.columns) {
        if let Kind::Vector(n) = column.kind {
            lengths.entry(column.name.clone()).or_insert(n);
        }
    }
    let times: HashSet<&String> = chosen.times.iter().collect();
    let times = { chosen.values.iter().enumerate() }.filter(|(_, name)| times.contains(name));
    let any: HashSet<&String> = chosen.any.iter().collect();
    let category =
        |name: &String| CategoryColumn { name: name.clone(), vocabulary: Arc::default() };
    let by_first = matches!(options.columns, Columns::Matching { .. });
    Ok(Names {
        times: times.map(|(j, _)| (j, SharedZone::default())).collect(),
        any: chosen.categories.iter().map(|name| any.contains(name)).collect(),
        categories: chosen.categories.iter().map(category).collect(),
        values: chosen.values,
        weight,
        key,
        kept,
        lengths,
        first: by_first.then(|| Arc::from(file)),
        rowwise: options.rowwise,
    })
}

/// Returns the columns that match names, ranges or patterns, each once.
pub fn matching<S: AsRef<str>>(
    file: &str,
    schema: &Schema,
    patterns: impl IntoIterator<Item = S>,
) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for pattern in patterns {
        for i in schema.matching(file, pattern.as_ref())? {
            if !names.contains(&schema.names[i]) {
                names.push(schema.names[i].clone());
            }
        }
    }
    Ok(names)
}

/// Describes the columns that are left out because of their type.
pub fn left_out(schema: &Schema, roles: &[ColumnRole]) -> Vec<String> {
    let left = |wanted: &dyn Fn(&Column) -> bool| -> Vec<&ColumnRole> {
        let both = schema.columns.iter().zip(roles);
        let left = both.filter(|(c, r)| matches!(r.role, Role::LeftOut(_)) && wanted(c));
        left.map(|(_, role)| role).collect()
    };
    let names = |roles: &[&ColumnRole]| {
        let names: Vec<&str> = roles.iter().map(|r| r.name.as_str()).collect();
        names.join(", ")
    };
    let mut notes = Vec::new();
    let dates = left(&|c| matches!(c.kind, Kind::Date(_)) && !c.index);
    if let Some(one) = dates.first() {
        let (name, all) = (&one.name, names(&dates));
        notes.push(format!(
            "columns skipped because they hold dates, which `dates={name}` would read: {all}"
        ));
    }
    let others = left(&|c| matches!(c.kind, Kind::Other { .. } | Kind::List) && !c.index);
    if !others.is_empty() {
        let all: Vec<String> = others.iter().map(|r| format!("{} ({})", r.name, r.holds)).collect();
        let all = all.join(", ");
        notes
            .push(format!("columns skipped because they cannot be read as numbers or text: {all}"));
    }
    let indexes = left(&|c| c.index);
    if !indexes.is_empty() {
        notes.push(format!(
            "columns skipped because they are the index of a pandas table; `columns` reads them: \
             {}",
            names(&indexes)
        ));
    }
    notes
}
