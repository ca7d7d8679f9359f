//! Chores: `cargo xtask test` runs every check of the project, `cargo xtask check` the quick ones.
//! The other tasks, except `advisories`, are single checks.

mod advisories;
mod browser;
mod features;
mod folders;
mod gpu;
mod instructions;
mod licences;
mod package;
mod prose;
mod python;
mod shell;
mod style;
mod workflows;

use shell::{Outcome, cargo, component, output, root, step};
use std::process::{Command, ExitCode};
use std::time::Instant;

const USAGE: &str = "usage: cargo xtask TASK

  test              every check: what must hold before a change is merged
  check             the quick ones: format, folder imports, style, clippy, unit tests

  folders           which folder of a crate imports which
  prose             words and links of docs and comments
  style             width of lines, length of functions, named closures
                    (--table: the structure of each crate)
  workflows         actionlint on .github/workflows
  licences          licences of the dependencies
  package           whether the crates can be published (--verify: build the packages)
  features          dependencies that are built more than once
  gpu               the engine on a GPU, or on an emulated one where there is none
  browser           the page of a report in Chromium
  python            the wheel and its tests
  count             instructions of the pass (--write: set a new standard)
  advisories        known vulnerabilities of the dependencies; not part of test";

fn main() -> ExitCode {
    let task = std::env::args().nth(1).unwrap_or_default();
    let outcome = match task.as_str() {
        "test" => timed(test),
        "check" => timed(check),
        "folders" => folders::check(),
        "prose" => prose::check(),
        "style" => style::check(has_option("--table")),
        "workflows" => workflows::check(),
        "licences" => licences::check(),
        "package" => package::check(has_option("--verify")),
        "features" => features::check(),
        "gpu" => gpu::test(),
        "browser" => browser::test(),
        "python" => python::test(),
        "count" => instructions::check(has_option("--write")),
        "advisories" => advisories::check(),
        _ => Err(USAGE.into()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("xtask: {message}");
            ExitCode::FAILURE
        }
    }
}

/// Whether the task is followed by this option.
fn has_option(name: &str) -> bool {
    std::env::args().nth(2).as_deref() == Some(name)
}

/// Runs all checks that must pass before a change is merged.
///
/// Steps run in order of increasing cost. Dependencies are checked once, for clippy and the docs,
/// and built once, in the dev profile, for the tests and the wheel (see `features`). Instructions
/// are counted in the release profile.
fn test() -> Outcome {
    format()?;
    folders::check()?;
    prose::check()?;
    style::check(false)?;
    workflows::check()?;
    licences::check()?;
    package::check(false)?;
    features::note()?;
    clippy()?;
    without_planning()?;
    let mut doc = cargo("doc --workspace --no-deps --document-private-items --locked");
    doc.env("RUSTDOCFLAGS", "-D warnings");
    step("docs", doc)?;
    step("tests", with_data(cargo("test --workspace --locked --no-fail-fast")))?;
    gpu::emulated()?;
    browser::test()?;
    python::test()?;
    instructions::check(false)
}

/// Runs the checks that are quick enough to run after every edit.
fn check() -> Outcome {
    format()?;
    folders::check()?;
    prose::check()?;
    style::check(false)?;
    clippy()?;
    // The compiled half of the Python package has no unit tests and would need a libpython to link
    // with.
    step(
        "unit tests",
        cargo("test --workspace --exclude nysketch-python --lib --bin xtask --locked --quiet"),
    )
}

fn format() -> Outcome {
    component("rustfmt")?;
    step("format", cargo("fmt --all --check"))
}

/// Programs that only sketch with a given plan build without linear algebra.
fn without_planning() -> Outcome {
    step(
        "core without planning",
        cargo("check -p nysketch-core -p nysketch-tables --lib --locked"),
    )?;
    let tree = output("cargo tree", cargo("tree -p nysketch-core -e normal --locked"))?;
    if tree.contains("faer") {
        return Err("nysketch-core depends on faer without the feature 'planning'".into());
    }
    Ok(())
}

fn clippy() -> Outcome {
    component("clippy")?;
    step("clippy", cargo("clippy --workspace --all-targets --locked -- -D warnings"))
}

/// Sets the folder of the tests on real data, NYSKETCH_DATA; by default the one next to the
/// checkout, if it exists.
fn with_data(mut command: Command) -> Command {
    let folder = root().join("../shared/data");
    if std::env::var_os("NYSKETCH_DATA").is_none() {
        if folder.is_dir() {
            command.env("NYSKETCH_DATA", folder);
        } else {
            eprintln!("== real data: skipped, NYSKETCH_DATA is not set");
        }
    }
    command
}

fn timed(tasks: fn() -> Outcome) -> Outcome {
    let start = Instant::now();
    tasks()?;
    eprintln!("== all checks passed in {:.0} s", start.elapsed().as_secs_f64());
    Ok(())
}
