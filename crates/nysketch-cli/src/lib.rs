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
mod write;

use clap::Parser;
use std::io::Write;
use std::process::ExitCode;

/// Runs what was typed.
pub fn main() -> ExitCode {
    let args = args::Args::parse();
    input::quiet_guarded_panics();
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

/// Reads a whole table as the commands do and returns the number of rows: for the fuzz targets.
#[doc(hidden)]
pub fn read_table(path: &std::path::Path, format: &str) -> anyhow::Result<u64> {
    let path = path.to_str().unwrap_or_default();
    let line = ["nysketch", "plan", path, "-o", "p.nys", "--format", format, "--skip-invalid"];
    let args::Command::Plan(plan) = args::Args::try_parse_from(line)?.command else { return Ok(0) };
    let input =
        input::Input::open(&plan.input, input::Wanted::Options(&plan.columns), Default::default())?;
    let mut rows = 0;
    nysketch::rows::read_in_order(&input, &(), |block| {
        rows += block.len() as u64;
        Ok(())
    })?;
    Ok(rows)
}
