//! Checks the dependencies for known vulnerabilities, with cargo-deny and the RustSec database.

use crate::shell::{Outcome, cargo, step, succeeds};

/// Not part of the tests, because the result can change without a change of the project.
pub fn check() -> Outcome {
    if !succeeds(cargo("deny --version")) {
        return skipped("cargo-deny is not installed (cargo install --locked cargo-deny)");
    }
    if !succeeds(cargo("deny fetch db")) {
        return skipped("the advisory database cannot be reached");
    }
    step("advisories", cargo("deny check --disable-fetch advisories"))
}

/// Reports the skipped check on the terminal and, in a workflow, on its page.
fn skipped(why: &str) -> Outcome {
    eprintln!("== advisories: SKIPPED, {why}");
    if std::env::var_os("GITHUB_ACTIONS").is_some() {
        println!("::warning title=advisories skipped::{why}");
    }
    Ok(())
}
