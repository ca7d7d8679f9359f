//! The `nysketch` command.
//!
//! Two layers: `args` records what was typed, each of `commands` resolves what it means and runs
//! it with the library. Results go to stdout, progress and remarks to stderr. Exit codes: 0 done,
//! 1 data or run-time error, 2 usage.

mod args;
mod commands;
mod input;
mod output;
mod page;
mod plot;
mod progress;

use clap::Parser;
use std::io::Write;
use std::process::ExitCode;

/// Runs what was typed.
pub fn main() -> ExitCode {
    let args = args::Args::parse();
    nysketch_tables::quiet_guarded_panics();
    progress::stop_on_interrupt();
    match commands::run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if output::is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            // A closed stderr must not turn an error into a panic.
            let message = output::in_options(&format!("{error:#}"));
            let _ = writeln!(std::io::stderr(), "error: {message}");
            ExitCode::from(output::exit_code(&error))
        }
    }
}
