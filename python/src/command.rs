//! The command line inside a Python process.

use crate::work::{GRACE, STACK, TICK};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use std::ffi::OsString;
use std::sync::Mutex;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

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
        nysketch_cli::handle_interrupts();
        return Ok(py.detach(|| nysketch_cli::run(argv)));
    }
    let (send, receive) = channel();
    let body = move || {
        // Nobody listens after Ctrl-C.
        let _ = send.send(nysketch_cli::run(argv));
    };
    thread::Builder::new()
        .stack_size(STACK)
        .spawn(body)
        .map_err(|e| PyRuntimeError::new_err(format!("cannot start a thread: {e}")))?;
    // Not shared in truth: only a closure that runs without the GIL must be able to be sent.
    let receive = Mutex::new(receive);
    let next = |time| receive.lock().unwrap_or_else(|e| e.into_inner()).recv_timeout(time);
    let wait = |time: Duration| py.detach(|| next(time));
    loop {
        match wait(TICK) {
            Ok(code) => return Ok(code),
            Err(RecvTimeoutError::Disconnected) => {
                return Err(PyRuntimeError::new_err("internal error: the command has panicked"));
            }
            Err(RecvTimeoutError::Timeout) => {
                if let Err(interrupt) = py.check_signals() {
                    nysketch_cli::interrupt();
                    // Either it has ended by then, or it is left alone.
                    let _ = wait(GRACE);
                    return Err(interrupt);
                }
            }
        }
    }
}
