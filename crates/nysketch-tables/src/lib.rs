//! Reads tables (Parquet, Arrow, csv and NumPy files) as rows for `nysketch`, and writes results
//! as files.
//!
//! A [`Dataset`] reads one or more files of any of these formats as one table of numbers and
//! categories, on many threads, in bounded memory, any number of times. The same values give the
//! same rows in every format.
//!
//! ```
//! use nysketch_core::{PlanParams, Planned, make_plan};
//! use nysketch_tables::{Dataset, ReadOptions};
//!
//! let folder = tempfile::tempdir()?;
//! std::fs::write(folder.path().join("1.csv"), "x,y\n1,2\n3,4\n")?;
//! std::fs::write(folder.path().join("2.csv"), "x,y\n5,6\n")?;
//!
//! // Files, folders or patterns. Formats are recognised by content.
//! let table = Dataset::open([folder.path().join("*.csv")], &ReadOptions::default())?;
//! let Planned { plan, report } = make_plan(&table, &PlanParams::default().check()?, &())?;
//! assert_eq!((plan.columns.join(" "), report.rows), ("x y".to_string(), 3));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | to | use |
//! |---|---|
//! | choose columns, separators, formats | [`ReadOptions`], [`Columns`] |
//! | see how each column is used | [`Dataset::roles`] |
//! | read weights, groups or labels, or keep columns | [`Extras`] |
//! | list the files that a pattern matches | [`find()`] |
//! | process the rows in order, on all threads | [`Dataset::map_in_order`] |
//! | write a table, or one made from another | [`TableWriter`], [`Dataset::map_to_table`] |
//! | read from outside the file system | [`store::Store`] |
//! | sort names so that 2 comes before 10 | [`natural_order`], [`natural_path_order`] |
//! | read Arrow tables in memory in the same way as files | [`ArrowTable`] |
//! | convert Arrow arrays to numbers, times and categories | [`arrow`] |

pub mod arrow;
mod arrow_table;
mod batch;
mod columns;
mod dataset;
mod error;
mod find;
mod folders;
mod formats;
mod meter;
mod natural;
mod options;
mod ordered;
mod parse;
mod pattern;
mod places;
mod schema;
mod selection;
pub mod store;
mod table_file;
mod text;
mod texts;
mod track;
mod tracks;
mod write;

pub use arrow_table::ArrowTable;
pub use batch::Batch;
pub use columns::{ColumnRole, Role};
pub use dataset::{Dataset, Stamp};
pub use error::{Error, Result};
pub use find::{Found, find};
pub use formats::quiet_guarded_panics;
pub use meter::Meter;
pub use natural::{natural_order, natural_path_order};
pub use options::{Columns, Extras, Format, Header, ReadOptions};
pub use parse::read_number;
pub use write::{OutputFormat, TableWriter};
