//! The `nysketch` command, and the report page about a sketch.
//!
//! The command has two layers: `args` parses the command line, and each module of `commands`
//! resolves its arguments and runs the library. Results go to stdout, progress and notes to stderr.
//! Exit codes: 0 done, 1 data or run-time error, 2 usage, and 128 plus its number for a signal; if
//! possible the process ends by the signal itself. With `diff --exit-code`: 0 no drift, 1 drift, 2
//! usage, 3 any other error.
//!
//! [`main`] is the program, [`run`] runs it inside another program, and `nysketch-report` makes the
//! page
//! of `nysketch report` without a command line.

mod args;
mod commands;
mod input;
mod kind;
mod losses;
mod output;
mod progress;
mod writing;

pub use progress::interrupt;

/// Parts of the command that other commands of this repository are made from.
pub mod parts {
    pub use crate::args::{Common, InputArgs};
    pub use crate::finish;
    pub use crate::input::open as open_input;
    pub use crate::kind::Kind;
    pub use crate::output::{Usage, count, detail, name, note, result, short, thousands};
    pub use crate::progress::{Fits, interrupted, on_interrupt, stop_on_signals};
    pub use crate::writing::{check_output, keep_bytes};
}

use clap::Parser;
use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;
use std::sync::{Mutex, TryLockError};

/// Runs the command line of this process, as the whole program.
pub fn main() -> ExitCode {
    ExitCode::from(run_as_program(std::env::args_os()))
}

/// Runs a command line in the same way as [`run`], for a program that does nothing else: Ctrl-C and
/// SIGTERM end the work cleanly, and then the process.
pub fn run_as_program(words: impl IntoIterator<Item = OsString>) -> u8 {
    progress::stop_on_signals();
    let code = run(words);
    progress::end_by_signal();
    code
}

/// Runs a command line, whose first word is the name of the program, and returns the exit code.
/// Signals are left to the caller, who may call [`interrupt`].
///
/// A process runs one command at a time. A second command is refused until the first one has ended,
/// even if the first was interrupted and is still stopping.
pub fn run(words: impl IntoIterator<Item = OsString>) -> u8 {
    static RUNNING: Mutex<()> = Mutex::new(());
    let _running = match RUNNING.try_lock() {
        Ok(guard) => guard,
        Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
        Err(TryLockError::WouldBlock) => {
            output::error("another command is still running");
            return 1;
        }
    };
    progress::resume();
    nysketch_tables::quiet_guarded_panics();
    let code = match args::Args::try_parse_from(words) {
        Ok(args) => finish(commands::run(&args), args.common.json, args.command.failure()),
        Err(error) => {
            // clap returns help and version as errors that go to stdout.
            let _ = error.print();
            u8::try_from(error.exit_code()).unwrap_or(2)
        }
    };
    // Inside another program, nothing else flushes stdout.
    let _ = std::io::stdout().flush();
    code
}

/// Prints the error of a command, if it failed, also as `json` if that is wanted, and returns the
/// exit code.
pub fn finish(result: anyhow::Result<u8>, json: bool, failure: u8) -> u8 {
    match result {
        // A signal that came too late to stop the work must still end the calling script.
        Ok(code) => progress::interrupted().unwrap_or(code),
        Err(error) if output::is_broken_pipe(&error) => 0,
        Err(error) => {
            output::error(&format!("{error:#}"));
            if json {
                output::error_as_json(&error);
            }
            let usage = output::is_usage(&error);
            progress::interrupted().unwrap_or(if usage { 2 } else { failure })
        }
    }
}
