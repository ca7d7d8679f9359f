//! The command line inside a Python process.

use crate::work::run_beside;
use pyo3::prelude::*;
use std::ffi::OsString;

/// Run the command line, as the program ``nysketch`` does.
///
/// Parameters
/// ----------
/// argv : sequence of str
///     What was typed, the name of the program first.
/// main_program : bool, default=False
///     Whether the process does nothing else: Ctrl-C is then handled as by the program, which ends the
///     process. Otherwise Ctrl-C raises ``KeyboardInterrupt``.
///
/// Returns
/// -------
/// int
///     The exit code: 0 done, 1 an error of the data, 2 an error of usage. What is printed goes to the
///     stdout and stderr of the process, not through ``sys.stdout``.
#[pyfunction]
#[pyo3(signature = (argv, *, main_program=false))]
pub fn main(py: Python<'_>, argv: Vec<OsString>, main_program: bool) -> PyResult<u8> {
    if main_program {
        return Ok(py.detach(|| nysketch_cli::run_as_program(argv)));
    }
    run_beside(py, || nysketch_cli::run(argv), || Ok(()), nysketch_cli::interrupt)
}
