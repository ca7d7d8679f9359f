//! Converts errors of the library to Python's built-in exceptions.

use nysketch::Error;
use nysketch::error::respell;
use nysketch::ledger::LedgerError;
use pyo3::PyErr;
use pyo3::exceptions::{
    PyFileNotFoundError, PyIsADirectoryError, PyKeyboardInterrupt, PyOSError, PyPermissionError,
    PyRuntimeError, PyValueError,
};
use std::io;
use std::path::Path;

/// Spells the parameters in a message as keyword arguments: `scale='standard'`.
pub fn in_keywords(message: &str) -> String {
    respell(message, |name, value| match (name, value) {
        ("lambda", None) => "lambda_".into(),
        ("skip_invalid", _) => "skip_invalid=True".into(),
        ("weight_column", _) => "weight_columns".into(),
        ("no_header", _) => "nysketch.Files(..., header=False)".into(),
        ("header", _) => "header=True".into(),
        ("max_work", Some(value)) => format!("nysketch.set_max_work({value})"),
        ("delimiter", Some(value)) => format!("nysketch.Files(..., delimiter={value})"),
        (_, None) => name.into(),
        (_, Some(value)) if value.contains(',') => {
            let items: Vec<String> = value.split(',').map(|v| format!("'{v}'")).collect();
            format!("{name}=[{}]", items.join(", "))
        }
        (_, Some(value)) if value.parse::<f64>().is_ok() => format!("{name}={value}"),
        (_, Some(value)) => format!("{name}='{value}'"),
    })
}

/// Returns a `ValueError`, unless the cause is another exception or Ctrl-C.
pub fn exception(error: Error) -> PyErr {
    match error {
        Error::Cancelled => PyKeyboardInterrupt::new_err(()),
        Error::Ledger(LedgerError::Io { path, error }) => os_error(&error, &path),
        Error::NoConvergence { .. } => PyRuntimeError::new_err(in_keywords(&error.to_string())),
        Error::Source(source) => match source.downcast::<PyErr>() {
            Ok(own) => *own,
            Err(other) => match other.downcast::<nysketch_tables::Error>() {
                Ok(table) => table_exception(*table),
                Err(other) => PyValueError::new_err(in_keywords(&other.to_string())),
            },
        },
        other => PyValueError::new_err(in_keywords(&other.to_string())),
    }
}

/// Returns an `OSError` for a file that cannot be read, otherwise the same as for rows.
pub fn table_exception(error: nysketch_tables::Error) -> PyErr {
    match error {
        nysketch_tables::Error::Read { name, error } => os_error(&error, Path::new(&name)),
        nysketch_tables::Error::Rows(error) => exception(error),
        other => PyValueError::new_err(in_keywords(&other.to_string())),
    }
}

/// Returns the `OSError` of a file.
pub fn os_error(error: &io::Error, path: &Path) -> PyErr {
    let name = path.display().to_string();
    match error.raw_os_error() {
        // Python derives subclasses such as FileNotFoundError from the error number.
        Some(code) => {
            let text = error.to_string();
            let text = text.split(" (os error").next().unwrap_or_default().to_string();
            PyOSError::new_err((code, text, name))
        }
        None => {
            let text = format!("{name}: {error}");
            match error.kind() {
                io::ErrorKind::NotFound => PyFileNotFoundError::new_err(text),
                io::ErrorKind::IsADirectory => PyIsADirectoryError::new_err(text),
                io::ErrorKind::PermissionDenied => PyPermissionError::new_err(text),
                _ => PyOSError::new_err(text),
            }
        }
    }
}

/// Converts errors of the command's functions.
pub fn command_exception(error: anyhow::Error) -> PyErr {
    match error.downcast::<Error>() {
        Ok(error) => exception(error),
        Err(other) => PyValueError::new_err(in_keywords(&format!("{other:#}"))),
    }
}
