//! Opens the dataset that INPUT and its options describe.

use crate::args::{ColumnArgs, InputArgs};
use nysketch::{Plan, Recipe};
use nysketch_tables::{Columns, Dataset, Extras, Header, ReadOptions, Result};
use std::path::Path;

/// Opens every file, finds the columns, and checks that all files have them. `holes` states whether
/// missing values are allowed.
pub fn open(args: &InputArgs, columns: Columns, extras: Extras, holes: bool) -> Result<Dataset> {
    let options = options(args).columns(columns).extras(extras).allow_missing(holes);
    Dataset::open(&args.input, &options)
}

/// Opens the rows that a plan measures. The plan decides the type of each column.
pub fn open_for_plan(args: &InputArgs, plan: &Plan, extras: Extras) -> Result<Dataset> {
    Dataset::open(&args.input, &options(args).for_plan(plan).extras(extras))
}

/// Opens the rows that a model is applied to. The model decides the type of each column.
pub fn open_for_model(args: &InputArgs, recipe: &Recipe, extras: Extras) -> Result<Dataset> {
    Dataset::open(&args.input, &options(args).for_recipe(recipe).extras(extras))
}

/// Returns the names of the columns of a file.
pub fn names_of(path: &Path, args: &InputArgs) -> Result<Vec<String>> {
    Dataset::names_of(path, &options(args))
}

fn options(args: &InputArgs) -> ReadOptions {
    ReadOptions::default()
        .format(args.format)
        .header(match (args.header, args.no_header) {
            (true, _) => Header::Present,
            (_, true) => Header::Absent,
            _ => Header::Expected,
        })
        .delimiter(args.delimiter)
        .skip_invalid(args.skip_invalid)
}

impl From<&ColumnArgs> for Columns {
    fn from(args: &ColumnArgs) -> Self {
        let columns = args.columns.as_ref().map_or_else(Columns::default, Columns::matching);
        columns
            .except(&args.exclude)
            .categorical(&args.categorical)
            .numeric(&args.numeric)
            .dates(args.dates.iter().map(|date| &date.columns))
    }
}
