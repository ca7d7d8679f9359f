//! Tests the page of `nysketch report` in a real browser: Chromium from Debian's packages, driven
//! by the standard library of Python.

use crate::shell::{Outcome, cargo, program, root, step, target};
use std::process::Command;

pub fn test() -> Outcome {
    if !program("python3", "--version", "python3") {
        eprintln!("== PAGES IN A BROWSER: NOT TESTED, python3 is not installed");
        return Ok(());
    }
    if !program("chromium", "--version", "chromium") {
        eprintln!("== PAGES IN A BROWSER: NOT TESTED, chromium cannot be installed here");
        return Ok(());
    }
    // Build the whole workspace, so that the features are those of the tests.
    step("the command, for its pages", cargo("build --locked --workspace --bin nysketch"))?;
    let mut tests = Command::new("python3");
    tests.arg(root().join("crates/nysketch-cli/tests/browser/test_pages.py"));
    tests.env("NYSKETCH_BIN", target().join("debug/nysketch"));
    step("pages in a browser", tests)
}
