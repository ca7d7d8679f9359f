//! Chores: `cargo xtask test` runs every check of the project; `cargo xtask licences`, `python` and
//! `count` one part of them. `cargo xtask count --write` makes the instructions counted the standard.

mod instructions;
mod licences;
mod python;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

type Outcome = Result<(), String>;

fn main() -> ExitCode {
    let task = std::env::args().nth(1).unwrap_or_default();
    let outcome = match task.as_str() {
        "test" => test(),
        "licences" => licences::check(),
        "python" => python::test(),
        "count" => instructions::check(std::env::args().nth(2).as_deref() == Some("--write")),
        _ => Err("usage: cargo xtask test | licences | python | count [--write]".into()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("xtask: {message}");
            ExitCode::FAILURE
        }
    }
}

/// Everything that must hold before a change is done.
fn test() -> Outcome {
    let start = Instant::now();
    component("rustfmt")?;
    component("clippy")?;
    step("format", cargo("fmt --all --check"))?;
    step("clippy", cargo("clippy --workspace --all-targets --locked -- -D warnings"))?;
    let mut doc = cargo("doc --workspace --no-deps --document-private-items --locked");
    doc.env("RUSTDOCFLAGS", "-D warnings");
    step("docs", doc)?;
    eprintln!("== licences");
    licences::check()?;
    step("tests", cargo("test --workspace --locked"))?;
    python::test()?;
    instructions::check(false)?;
    eprintln!("== all checks passed in {:.0} s", start.elapsed().as_secs_f64());
    Ok(())
}

fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}

fn cargo(line: &str) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(line.split_whitespace()).current_dir(root());
    command
}

fn step(name: &str, mut command: Command) -> Outcome {
    eprintln!("== {name}");
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{name} failed ({status})")),
        Err(error) => Err(format!("{name} could not run: {error}")),
    }
}

/// Whether a program runs, perhaps after its Debian package is installed.
fn program(name: &str, version: &str, package: &str) -> bool {
    let there = || Command::new(name).arg(version).output().is_ok_and(|o| o.status.success());
    if there() {
        return true;
    }
    let mut install = Command::new("apt-get");
    install.args(["install", "--yes", "--quiet", package]);
    step(&format!("installing {package}"), install).is_ok() && there()
}

/// Installs a part of the toolchain where it is missing.
fn component(name: &str) -> Outcome {
    let tool = if name == "clippy" { "clippy" } else { "fmt" };
    let there = cargo(&format!("{tool} --version")).output().is_ok_and(|o| o.status.success());
    if there {
        return Ok(());
    }
    let mut install = Command::new("rustup");
    install.args(["component", "add", name]);
    step(&format!("installing {name}"), install)
}
