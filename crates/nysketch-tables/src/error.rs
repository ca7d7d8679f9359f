//! Errors of tables, as data. This module writes every message once.
//!
//! Advice names parameters in backquotes, such as `` `exclude` ``. A front end replaces them with
//! its own spelling by [`nysketch_core::error::respell`].

use std::io;
use std::path::Path;

/// The result of opening or writing a table.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The reason why a table cannot be opened or written.
///
/// An error in a *row* is a [`nysketch_core::Error`]. It is returned by reading and names the file,
/// the
/// row and the column.
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
    /// A file or folder cannot be opened or read.
    #[error("cannot read {name}: {error}")]
    Read {
        /// Its name.
        name: String,
        /// The reason.
        error: io::Error,
    },
    /// A file, or stdin, has no bytes.
    #[error("{name} is empty")]
    Empty {
        /// Its name.
        name: String,
    },
    /// A folder contains no tables, or a pattern matches none.
    #[error("{0}")]
    NoTables(String),
    /// The input is not a table, or is a table of a kind that cannot be read.
    #[error("{name} {how}")]
    NotATable {
        /// Its name.
        name: String,
        /// The rest of the sentence: what the input is instead.
        how: String,
    },
    /// A table is damaged, truncated, or was changed while it was read.
    #[error("{name} {how}")]
    Damaged {
        /// Its name.
        name: String,
        /// The rest of the sentence: what is wrong.
        how: String,
    },
    /// Columns are missing, share a name, or hold no numbers.
    #[error("{name}{how}")]
    Columns {
        /// The file.
        name: String,
        /// What is wrong with the columns, including the character that follows the name.
        how: String,
    },
    /// All columns were left out.
    #[error("`exclude` leaves no column of {name}; it has {has}")]
    NothingLeft {
        /// The file.
        name: String,
        /// Its columns.
        has: String,
    },
    /// The table has more columns than a plan can hold.
    #[error(
        "{found} columns are more than the {most} that a plan can hold; choose some with `columns`"
    )]
    TooManyColumns {
        /// Number of columns chosen.
        found: usize,
        /// The limit.
        most: usize,
    },
    /// The type of a kept column differs between files.
    #[error("column '{column}' holds {here}, but {first}; predict the files one by one")]
    MixedTypes {
        /// Its name.
        column: String,
        /// Its type in a later file: "Utf8 in 2.csv".
        here: String,
        /// Its type in the first file, in the same form.
        first: String,
    },
    /// A column cannot be written in this format.
    #[error(
        "column '{column}' holds {kind}, which {format} files cannot hold; {}",
        if *format == "Parquet" { "convert it, or leave it out" } else { "write a .parquet file" }
    )]
    CannotHold {
        /// Its name.
        column: String,
        /// The type of its values, or a value with its row in the output.
        kind: String,
        /// Format of the file.
        format: &'static str,
    },
    /// A table cannot be written.
    #[error("{0}")]
    Write(String),
    /// A row is invalid, reading failed, or the caller asked to stop.
    #[error(transparent)]
    Rows(#[from] nysketch_core::Error),
}

impl Error {
    /// Returns whether the request was wrong, rather than the data.
    pub fn is_usage(&self) -> bool {
        matches!(self, Error::Usage(_))
    }

    /// Returns the code of the error, for programs: see [`nysketch_core::Error::code`].
    pub fn code(&self) -> &'static str {
        match self {
            Error::Usage(_) => "usage",
            Error::NoFile => "no_file",
            Error::Read { .. } => "cannot_read",
            Error::Empty { .. } => "empty_file",
            Error::NoTables(_) => "no_tables",
            Error::NotATable { .. } => "not_a_table",
            Error::Damaged { .. } => "damaged_table",
            Error::Columns { .. } => "columns",
            Error::NothingLeft { .. } => "nothing_left",
            Error::TooManyColumns { .. } => "too_many_columns",
            Error::MixedTypes { .. } => "mixed_types",
            Error::CannotHold { .. } => "cannot_hold",
            Error::Write(_) => "cannot_write",
            Error::Rows(error) => error.code(),
        }
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

    /// Makes an error about the columns of a file: "x.csv has …".
    pub(crate) fn columns(name: impl ToString, how: impl std::fmt::Display) -> Self {
        Error::Columns { name: name.to_string(), how: format!(" {how}") }
    }

    /// Makes an error about one place in a file: "x.csv: column …".
    pub(crate) fn in_file(name: impl ToString, how: impl std::fmt::Display) -> Self {
        Error::Columns { name: name.to_string(), how: format!(": {how}") }
    }

    /// Keeps the root cause of an error that a format's writer returned.
    pub(crate) fn writing(error: impl std::error::Error + 'static) -> Self {
        let mut cause: &(dyn std::error::Error + 'static) = &error;
        while let Some(deeper) = cause.source() {
            cause = deeper;
        }
        Error::Write(cause.to_string())
    }
}

/// Converts the error of opening a file while rows are read.
impl From<Error> for nysketch_core::Error {
    fn from(error: Error) -> Self {
        match error {
            Error::Rows(error) => error,
            other => nysketch_core::Error::source(other),
        }
    }
}

/// Returns a function that adds the path to an I/O error.
pub(crate) fn cannot_read(path: &Path) -> impl Fn(io::Error) -> Error {
    move |error| Error::read(path.display(), error)
}
