//! What ledgers refuse.

use std::io;
use std::path::PathBuf;

/// The environment variable that names the folder of ledgers.
pub const FOLDER_VARIABLE: &str = "NYSKETCH_LEDGERS";

/// Errors of ledgers, and uses that they forbid.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the message of each variant explains its fields")]
#[non_exhaustive]
pub enum LedgerError {
    #[error("there is no home folder for ledgers; set {FOLDER_VARIABLE} to a folder that is kept")]
    NoFolder,
    #[error(
        "{FOLDER_VARIABLE} is '{}', which depends on the working folder; set it to an absolute \
         path",
        folder.display()
    )]
    RelativeFolder { folder: PathBuf },
    #[error("cannot use the ledger {}: {error}", path.display())]
    Io { path: PathBuf, error: io::Error },
    #[error(
        "the ledger {} is not a regular file of its own; put the file itself there, not a link to \
         it",
        path.display()
    )]
    NotAFile { path: PathBuf },
    #[error(
        "another process has held the ledger {} for 30 seconds; wait until it ends, or continue it \
         if it is stopped",
        path.display()
    )]
    Busy { path: PathBuf },
    #[error(
        "the ledger {} is damaged in line {line}; restore the file, since uses that it has \
         forgotten could be repeated",
        path.display()
    )]
    Damaged { path: PathBuf, line: usize },
    #[error("{} is the ledger of something else, under a wrong name; restore the right file",
        path.display())]
    Misplaced { path: PathBuf },
    #[error(
        "the rows were subtracted from this sketch before, according to {}; `again` subtracts them \
         once more",
        path.display()
    )]
    Subtracted { path: PathBuf },
}
