//! Tests with Python: independent scripts check the file format and the paper's formulas, and the
//! Python package is tested in a separate environment, as the wheel that users install.

use crate::shell::{Outcome, cargo, program, root, step, target};
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Minimum version of Python that the package supports.
const MIN_VERSION: (u32, u32) = (3, 10);

pub fn test() -> Outcome {
    let Some(version) = version() else {
        eprintln!("== Python: skipped, python3 is not installed");
        return Ok(());
    };
    if version < MIN_VERSION {
        eprintln!("== Python: skipped, {}.{} is older than 3.10", version.0, version.1);
        return Ok(());
    }
    let environment = Environment::new()?;
    // An independent check of FORMAT.md: a reader that uses only numpy and safetensors recomputes
    // the golden sketches from their plans and rows.
    let golden = root().join("crates/nysketch/tests/golden/check.py");
    step("golden files by Python", environment.python([golden]))?;
    step("spelling", environment.program("typos"))?;
    step(
        "Python format",
        environment.module("ruff format --check --quiet python crates/nysketch-cli/tests/browser"),
    )?;
    step(
        "lints of Python",
        environment.module("ruff check --quiet python crates/nysketch-cli/tests/browser"),
    )?;
    let tables = "bench/paper_tables.py research/figures/trials.csv.gz --check research/RESULTS.md";
    step("tables of the paper's experiments", environment.python(tables.split_whitespace()))?;
    let wheel = environment.build_wheel()?;
    java();
    environment.pip(
        "the wheel",
        ["--force-reinstall".as_ref(), "--no-deps".as_ref(), wheel.as_os_str()],
    )?;
    // Build the whole workspace, so that the features are those of the tests.
    step("the command, for its bytes", cargo("build --locked --workspace --bin nysketch"))?;
    let command = target().join("debug/nysketch");
    // An independent check of the arithmetic: the paper's formulas in numpy, compared with the
    // output of the command.
    let paper = root().join("bench/paper_check.py");
    step("the paper's formulas by Python", environment.python([&paper, &command]))?;
    let mut tests = environment.module("pytest python/tests");
    tests.env("NYSKETCH_BIN", command);
    step("tests of Python", tests)?;
    step("types of Python", environment.module("mypy python/nysketch"))?;
    let mut stubs = environment.module("mypy.stubtest nysketch._core");
    // Run outside the source tree, so that the installed package is tested.
    stubs.current_dir(target());
    step("types of the compiled half", stubs)
}

/// Installs Java for Spark; if that fails, the tests on Spark are skipped with a message.
fn java() {
    if !program("java", "-version", "default-jre-headless") {
        eprintln!("== Java cannot be installed here: the tests on Spark will be skipped");
    }
}

/// Returns the version of python3, if there is one.
fn version() -> Option<(u32, u32)> {
    let script = "import sys; print(sys.version_info[0], sys.version_info[1])";
    let output = Command::new("python3").args(["-c", script]).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let (major, minor) = text.trim().split_once(' ')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// A virtual environment in the target folder, recreated when the list of packages changes.
struct Environment {
    python: PathBuf,
}

impl Environment {
    /// Returns a program that a package installed.
    fn program(&self, name: &str) -> Command {
        let mut command = Command::new(self.python.with_file_name(name));
        command.current_dir(root());
        command
    }

    fn new() -> Result<Self, String> {
        let folder = target().join("python");
        let list = root().join("python/tests/requirements.txt");
        let wanted = fs::read_to_string(&list).map_err(|e| format!("{}: {e}", list.display()))?;
        let ready = folder.join("ready");
        let environment = Environment { python: folder.join("bin/python") };
        if fs::read_to_string(&ready).is_ok_and(|installed| installed == wanted) {
            return Ok(environment);
        }
        let mut make = Command::new("python3");
        make.args(["-m", "venv", "--clear"]).arg(&folder);
        step("python environment", make)?;
        environment.pip("packages", ["-r".as_ref(), list.as_os_str()])?;
        fs::write(&ready, wanted).map_err(|e| format!("{}: {e}", ready.display()))?;
        Ok(environment)
    }

    fn python<A: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = A>) -> Command {
        let mut command = Command::new(&self.python);
        command.args(arguments).current_dir(root());
        command
    }

    /// Returns the command `python -m …`.
    fn module(&self, line: &str) -> Command {
        self.python(["-m"].into_iter().chain(line.split_whitespace()))
    }

    fn pip<'a>(&self, what: &str, arguments: impl IntoIterator<Item = &'a OsStr>) -> Outcome {
        let mut install = self.module("pip install --quiet --disable-pip-version-check");
        install.args(arguments);
        step(&format!("installing {what}"), install)
    }

    fn build_wheel(&self) -> Result<PathBuf, String> {
        let folder = target().join("wheels");
        // A wheel of an earlier version must not be mistaken for the new one.
        let _ = fs::remove_dir_all(&folder);
        // The dev profile reuses the build of the Rust tests. A workflow builds releases.
        let mut build = self.module("maturin build --profile dev --locked --quiet --out");
        build.arg(&folder).arg("--interpreter").arg(&self.python);
        step("wheel", build)?;
        one_file(&folder)
    }
}

fn one_file(folder: &Path) -> Result<PathBuf, String> {
    let mut files = fs::read_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    match (files.next(), files.next()) {
        (Some(Ok(file)), None) => Ok(file.path()),
        _ => Err(format!("{} does not hold one wheel", folder.display())),
    }
}
