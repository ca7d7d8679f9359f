//! Chores: `cargo xtask test` runs every check of the project, `cargo xtask licences` one of them.

mod licences;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

type Outcome = Result<(), String>;

fn main() -> ExitCode {
    let task = std::env::args().nth(1).unwrap_or_default();
    let outcome = match task.as_str() {
        "test" => test(),
        "licences" => licences::check(),
        _ => Err("usage: cargo xtask test | licences".into()),
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
    format_by_python()?;
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

/// FORMAT.md from the other side: a reader in Python, with numpy and safetensors alone, computes the
/// golden sketches from their plans and rows.
fn format_by_python() -> Outcome {
    let Ok(version) = Command::new("python3").arg("--version").output() else {
        eprintln!("== format by Python: skipped, python3 is not there");
        return Ok(());
    };
    eprintln!("== format by {}", String::from_utf8_lossy(&version.stdout).trim());
    let venv = root().join("target/python");
    let python = venv.join("bin/python");
    let ready = venv.join("ready");
    if !ready.exists() {
        let mut make = Command::new("python3");
        make.args(["-m", "venv", "--clear"]).arg(&venv);
        step("python environment", make)?;
        let mut install = Command::new(&python);
        install.args([
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "numpy>=1.26",
            "safetensors>=0.4",
        ]);
        step("python packages", install)?;
        std::fs::write(&ready, "").map_err(|e| format!("{}: {e}", ready.display()))?;
    }
    let mut check = Command::new(&python);
    check.arg(root().join("crates/nysketch/tests/golden/check.py"));
    step("golden files by Python", check)
}
