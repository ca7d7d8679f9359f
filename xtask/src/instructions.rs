//! Speed without a clock: instructions of the pass over fixed data, counted by valgrind and
//! compared with `bench/instructions.txt`. Valgrind supports AVX2 but no wider vectors, on any
//! machine. The release profile is counted, because with the checks of the dev profile a block
//! takes three times as many instructions.

use crate::shell::{Outcome, cargo, program, root, step, target};
use std::fmt::Write;
use std::path::PathBuf;
use std::process::Command;

/// The counted cases; see `bench/src/count.rs`.
const CASES: [&str; 6] = ["kernel", "ladder", "nearest", "fourier", "predict", "sketch"];
/// Numbers of blocks of the two runs whose difference is reported. The difference is large, because
/// the instructions before the first block vary by half a million between runs on a busy machine.
const BLOCKS: [u64; 2] = [2, 102];
/// An increase by more than this share is an error.
const TOLERANCE: f64 = 0.10;

/// Counts instructions and compares them with the stored counts; with `write`, stores the new
/// counts.
pub fn check(write: bool) -> Outcome {
    if !program("valgrind", "--version", "valgrind") {
        eprintln!("== instructions: skipped, valgrind cannot be installed here");
        return Ok(());
    }
    step("the program to count", cargo("build --release --locked -p nysketch-bench --bin count"))?;
    eprintln!("== instructions");
    let compiler = compiler()?;
    let mut counts = Vec::new();
    for case in CASES {
        let [few, many] = BLOCKS.map(|blocks| count(case, blocks));
        counts.push((case, (many? - few?) / (BLOCKS[1] - BLOCKS[0])));
    }
    if write {
        let mut text = format!(
            "# Instructions per block of 252 rows in the release profile; \
             `cargo xtask count --write`\n# {compiler}\n"
        );
        for (case, count) in counts {
            writeln!(text, "{case} {count}").map_err(|e| e.to_string())?;
        }
        return std::fs::write(file(), text).map_err(|e| format!("instructions.txt: {e}"));
    }
    let before = std::fs::read_to_string(file()).map_err(|e| format!("instructions.txt: {e}"))?;
    let same_compiler = before.lines().any(|line| line.trim_start_matches("# ") == compiler);
    let mut grown = Vec::new();
    for (case, count) in counts {
        let line = before.lines().find_map(|line| line.strip_prefix(case)?.strip_prefix(' '));
        let Some(standard) = line.and_then(|count| count.parse::<f64>().ok()) else {
            return Err(format!("bench/instructions.txt has no count for '{case}'"));
        };
        let change = count as f64 / standard - 1.0;
        eprintln!("   {case:8} {count:>9} per block, {:+.1} %", 100.0 * change);
        if change > TOLERANCE {
            grown.push(case);
        }
    }
    if grown.is_empty() {
        return Ok(());
    }
    if !same_compiler {
        eprintln!("   the standard was made with another compiler than {compiler}: not an error");
        return Ok(());
    }
    Err(format!(
        "more instructions than in bench/instructions.txt: {} (if that is intended, run cargo \
         xtask count --write)",
        grown.join(", ")
    ))
}

fn file() -> PathBuf {
    root().join("bench/instructions.txt")
}

fn compiler() -> Result<String, String> {
    let output = Command::new("rustc").arg("--version").current_dir(root()).output();
    let output = output.map_err(|e| format!("rustc could not run: {e}"))?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_string())
}

/// Returns the number of instructions of a whole run.
fn count(case: &str, blocks: u64) -> Result<u64, String> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(target().join("release/count"))
        .args([case, &blocks.to_string()])
        .output()
        .map_err(|e| format!("valgrind could not run: {e}"))?;
    let text = String::from_utf8_lossy(&output.stderr);
    let collected = text.lines().find_map(|line| line.split("Collected : ").nth(1));
    let count = collected.and_then(|count| count.trim().parse().ok());
    count.ok_or_else(|| format!("valgrind counted nothing for '{case}':\n{text}"))
}
