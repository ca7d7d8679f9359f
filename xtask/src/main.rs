//! Chores: `cargo xtask test` runs every check of the project; `cargo xtask licences`, `python` and
//! `count` one part of them. `cargo xtask count --write` makes the instructions counted the standard.

mod cycles;
mod instructions;
mod licences;
mod python;
mod shell;

use shell::{Outcome, cargo, component, step};
use std::process::ExitCode;
use std::time::Instant;

fn main() -> ExitCode {
    let task = std::env::args().nth(1).unwrap_or_default();
    let outcome = match task.as_str() {
        "test" => test(),
        "cycles" => cycles::check(),
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
