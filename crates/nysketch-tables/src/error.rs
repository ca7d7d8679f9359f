//! What can go wrong with a table, as data. The messages are made here, once.
//!
//! Advice names parameters in backquotes, such as `` `exclude` ``; a front end puts its own spelling
//! there with [`nysketch::error::respell`].

use std::io;
use std::path::Path;

/// The result of opening or writing a table.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a table cannot be opened or written.
///
/// What is wrong with a *row* is a [`nysketch::Error`]: it comes from reading, with the file, the row
/// and the column.
///
/// ```
/// use nysketch_tables::{Dataset, Error, ReadOptions};
///
/// let error = Dataset::open(["no such file.csv"], &ReadOptions::default()).unwrap_err();
/// assert!(matches!(&error, Error::Read { name, .. } if name == "no such file.csv"));
/// assert!(!error.is_usage());
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A request that is wrong for any data.
    #[error("{0}")]
    Usage(String),
    /// No file was named.
    #[error("no input file")]
    NoFile,
    /// A file or folder that cannot be opened or read.
    #[error("cannot read {name}: {error}")]
    Read {
        /// Its name.
        name: String,
        /// The reason.
        error: io::Error,
    },
    /// A file, or stdin, without any bytes.
    #[error("{name} is empty")]
    Empty {
        /// Its name.
        name: String,
    },
    /// A folder without tables, or a pattern that matches none.
    #[error("{0}")]
    NoTables(String),
    /// Something that is not a table, or a table that cannot be read.
    #[error("{name} {how}")]
    NotATable {
        /// Its name.
        name: String,
        /// What it is instead.
        how: String,
    },
    /// A table that is damaged, cut short or changed while it is read.
    #[error("{name} {how}")]
    Damaged {
        /// Its name.
        name: String,
        /// What is wrong.
        how: String,
    },
    /// Columns that are not there, have the same name, or hold no numbers.
    #[error("{name}{how}")]
    Columns {
        /// The file.
        name: String,
        /// What is wrong with them, from the character after the name on.
        how: String,
    },
    /// Columns that were all left out.
    #[error("`exclude` leaves no column of {name}; it has {has}")]
    NothingLeft {
        /// The file.
        name: String,
        /// Its columns.
        has: String,
    },
    /// More columns than a plan can hold.
    #[error(
        "{found} columns are more than the {most} that a plan can hold; choose some with `columns`"
    )]
    TooManyColumns {
        /// Columns chosen.
        found: usize,
        /// The limit.
        most: usize,
    },
    /// A kept column whose type differs between files.
    #[error("column '{column}' holds {here}, but {first}; predict the files one by one")]
    MixedTypes {
        /// Its name.
        column: String,
        /// Its type in a later file: "Utf8 in 2.csv".
        here: String,
        /// Its type in the first file, likewise.
        first: String,
    },
    /// A column that cannot be written in this format.
    #[error(
        "column '{column}' holds {kind}, which {format} files cannot hold; {}",
        if *format == "Parquet" { "convert it, or leave it out" } else { "write a .parquet file" }
    )]
    CannotHold {
        /// Its name.
        column: String,
        /// What it holds: a type, or a value with its row in the output.
        kind: String,
        /// Format of the file.
        format: &'static str,
    },
    /// A table that cannot be written.
    #[error("{0}")]
    Write(String),
    /// An invalid row, a read error, or the caller's request to stop.
    #[error(transparent)]
    Rows(#[from] nysketch::Error),
}

impl Error {
    /// Whether the request was wrong, rather than the data.
    pub fn is_usage(&self) -> bool {
        matches!(self, Error::Usage(_))
    }

    pub(crate) fn read(name: impl ToString, error: io::Error) -> Self {
        Error::Read { name: name.to_string(), error }
    }

    pub(crate) fn not_a_table(name: impl ToString, how: impl Into<String>) -> Self {
        Error::NotATable { name: name.to_string(), how: how.into() }
    }

    pub(crate) fn damaged(name: impl ToString, how: impl Into<String>) -> Self {
        Error::Damaged { name: name.to_string(), how: how.into() }
    }

    /// About the columns of a file: "x.csv has …".
    pub(crate) fn columns(name: impl ToString, how: impl std::fmt::Display) -> Self {
        Error::Columns { name: name.to_string(), how: format!(" {how}") }
    }

    /// About one place in a file: "x.csv: column …".
    pub(crate) fn in_file(name: impl ToString, how: impl std::fmt::Display) -> Self {
        Error::Columns { name: name.to_string(), how: format!(": {how}") }
    }

    /// The root cause of an error of a format's writer.
    pub(crate) fn writing(error: impl std::error::Error + 'static) -> Self {
        let mut cause: &(dyn std::error::Error + 'static) = &error;
        while let Some(deeper) = cause.source() {
            cause = deeper;
        }
        Error::Write(cause.to_string())
    }
}

/// An error of opening a file while rows are read.
impl From<Error> for nysketch::Error {
    fn from(error: Error) -> Self {
        match error {
            Error::Rows(error) => error,
            other => nysketch::Error::source(other),
        }
    }
}

/// Names the file in an error of its bytes.
pub(crate) fn cannot_read(path: &Path) -> impl Fn(io::Error) -> Error {
    move |error| Error::read(path.display(), error)
}
