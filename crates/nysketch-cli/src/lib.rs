//! The `nysketch` command, and the page it writes about a sketch.
//!
//! Two layers: `args` records what was typed, each of `commands` resolves what it means and runs
//! it with the library. Results go to stdout, progress and remarks to stderr. Exit codes: 0 done,
//! 1 data or run-time error, 2 usage, 128 and its number for a signal, of which the program itself dies where it can; with
//! `diff --exit-code` 0 no drift, 1 drift, 2 usage, 3 any other error.
//!
//! [`main`] is the program, [`run`] the same inside another program, and [`report`] makes the page of
//! `nysketch report` without the command line.

mod args;
mod columns;
mod commands;
mod describe;
mod input;
mod kind;
mod losses;
mod markup;
mod output;
mod page;
mod plot;
mod progress;
pub mod report;
mod writing;

pub use progress::interrupt;

use clap::Parser;
use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;
use std::sync::{Mutex, TryLockError};

/// Runs what was typed, as the whole program.
pub fn main() -> ExitCode {
    ExitCode::from(run_as_program(std::env::args_os()))
}

/// Runs a command line as [`run`] does, for a program that does nothing else: Ctrl-C and SIGTERM end the work cleanly, and
/// then the process.
pub fn run_as_program(words: impl IntoIterator<Item = OsString>) -> u8 {
    progress::stop_on_signals();
    let code = run(words);
    progress::end_by_signal();
    code
}

/// Runs a command line, of which the first word is the program's name, and returns the exit code.
/// Signals are left to the caller, who may call [`interrupt`].
///
/// One command runs at a time in a process: a second is refused until the first has ended, also where
/// that was interrupted and is still on its way out.
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
        Ok(args) => outcome(commands::run(&args), args.command.failure()),
        Err(error) => {
            // Help and version are "errors" too, which go to stdout.
            let _ = error.print();
            u8::try_from(error.exit_code()).unwrap_or(2)
        }
    };
    // Only a Rust program flushes by itself when it ends.
    let _ = std::io::stdout().flush();
    code
}

/// The exit code; says what went wrong.
fn outcome(result: anyhow::Result<u8>, failure: u8) -> u8 {
    match result {
        // What came too late to stop the work still ends the script that it is a part of.
        Ok(code) => progress::interrupted().unwrap_or(code),
        Err(error) if output::is_broken_pipe(&error) => 0,
        Err(error) => {
            output::error(&format!("{error:#}"));
            let usage = output::is_usage(&error);
            progress::interrupted().unwrap_or(if usage { 2 } else { failure })
        }
    }
}
