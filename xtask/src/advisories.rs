//! Known vulnerabilities of the dependencies, by cargo-deny and the RustSec database.

use crate::shell::{Outcome, cargo, step, succeeds};

/// Not part of the tests: what passes today may fail tomorrow without a change of ours.
pub fn check() -> Outcome {
    if !succeeds(cargo("deny --version")) {
        return skipped("cargo-deny is not installed (cargo install --locked cargo-deny)");
    }
    if !succeeds(cargo("deny fetch db")) {
        return skipped("the advisory database cannot be reached");
    }
    step("advisories", cargo("deny check --disable-fetch advisories"))
}

/// Says so on the terminal and, where a workflow runs, on its page.
fn skipped(why: &str) -> Outcome {
    eprintln!("== advisories: SKIPPED, {why}");
    if std::env::var_os("GITHUB_ACTIONS").is_some() {
        println!("::warning title=advisories skipped::{why}");
    }
    Ok(())
}
