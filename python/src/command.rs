//! The command line inside a Python process.

use crate::work::run_beside;
use pyo3::prelude::*;
use std::ffi::OsString;

/// Run the command line, in the same way as the program ``nysketch``.
///
/// Parameters
/// ----------
/// argv : sequence of str
///     The command line, starting with the name of the program.
/// main_program : bool, default=False
///     Whether the process does nothing else. If so, Ctrl-C ends the process, as in the program.
///     Otherwise Ctrl-C raises ``KeyboardInterrupt``.
///
/// Returns
/// -------
/// int
///     The exit code: 0 done, 1 data error, 2 usage error. Output goes to the stdout and stderr of
///     the process, not through ``sys.stdout``.
#[pyfunction]
#[pyo3(signature = (argv, *, main_program=false))]
pub fn main(py: Python<'_>, argv: Vec<OsString>, main_program: bool) -> PyResult<u8> {
    if main_program {
        return Ok(py.detach(|| nysketch_cli::run_as_program(argv)));
    }
    run_beside(py, || nysketch_cli::run(argv), || Ok(()), nysketch_cli::interrupt)
}
