//! Building blocks of chores: the root folder, commands, and announced steps.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Success, or the reason why the chore failed.
pub type Outcome = Result<(), String>;

pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}

/// Returns the folder in which cargo puts its output.
pub fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| root().join("target"), |folder| root().join(folder))
}

pub fn cargo(line: &str) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(line.split_whitespace()).current_dir(root());
    command
}

/// Runs a command that must succeed.
pub fn step(name: &str, mut command: Command) -> Outcome {
    eprintln!("== {name}");
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{name} failed ({status})")),
        Err(error) => Err(format!("{name} could not run: {error}")),
    }
}

/// Returns the output of a command that must succeed.
pub fn output(name: &str, mut command: Command) -> Result<String, String> {
    let output = command.output().map_err(|e| format!("{name} could not run: {e}"))?;
    if output.status.success() {
        String::from_utf8(output.stdout).map_err(|e| format!("{name}: {e}"))
    } else {
        Err(format!("{name}: {}", String::from_utf8_lossy(&output.stderr)))
    }
}

/// Returns what git prints for these arguments.
pub fn git(line: &str) -> Result<String, String> {
    let mut command = Command::new("git");
    command.args(line.split_whitespace()).current_dir(root());
    output("git", command)
}

/// Returns whether a command runs and succeeds; its output is not shown.
pub fn succeeds(mut command: Command) -> bool {
    command.output().is_ok_and(|output| output.status.success())
}

/// Returns whether a program runs, if necessary after installing its Debian package.
pub fn program(name: &str, version: &str, package: &str) -> bool {
    if runs(name, version) {
        return true;
    }
    let mut install = Command::new("apt-get");
    install.args(["install", "--yes", "--quiet", package]);
    step(&format!("installing {package}"), install).is_ok() && runs(name, version)
}

fn runs(name: &str, version: &str) -> bool {
    let mut command = Command::new(name);
    command.arg(version);
    succeeds(command)
}

/// Installs a component of the toolchain if it is missing.
pub fn component(name: &str) -> Outcome {
    let tool = if name == "clippy" { "clippy" } else { "fmt" };
    if succeeds(cargo(&format!("{tool} --version"))) {
        return Ok(());
    }
    let mut install = Command::new("rustup");
    install.args(["component", "add", name]);
    step(&format!("installing {name}"), install)
}
