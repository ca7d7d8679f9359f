//! A temporary folder in which the real binary runs.

pub mod tables;

use assert_cmd::Command;
use predicates::prelude::*;
use predicates::str::contains;
use serde_json::Value;
use std::fs;
use std::path::PathBuf;
use tempfile::TempDir;

/// A folder of files, and one of ledgers.
pub struct Folder {
    files: TempDir,
    ledgers: TempDir,
}

#[allow(dead_code, reason = "not every test binary needs everything")]
impl Folder {
    pub fn new() -> Self {
        Folder { files: TempDir::new().unwrap(), ledgers: TempDir::new().unwrap() }
    }

    /// The folder of ledgers.
    pub fn ledgers(&self) -> PathBuf {
        self.ledgers.path().to_path_buf()
    }

    /// The ledgers of a kind.
    pub fn ledgers_of(&self, kind: &str) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.ledgers()).unwrap().map(|e| e.unwrap().path());
        let of_kind = |path: &PathBuf| {
            path.file_name().unwrap().to_str().unwrap().starts_with(&format!("{kind}-"))
        };
        entries.filter(of_kind).collect()
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.files.path().join(name)
    }

    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> &Self {
        fs::write(self.path(name), content).unwrap();
        self
    }

    pub fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap()
    }

    pub fn command(&self, line: &str) -> Command {
        let mut command = Command::cargo_bin("nysketch").unwrap();
        command.current_dir(self.files.path()).args(line.split_whitespace());
        command.env("NYSKETCH_LEDGERS", self.ledgers());
        command
    }

    /// A script of a shell, in which `$NYSKETCH` is the command.
    pub fn script(&self, script: &str) -> std::process::Command {
        let mut command = std::process::Command::new("sh");
        command.args(["-c", script]).current_dir(self.files.path());
        command.env("NYSKETCH", assert_cmd::cargo::cargo_bin("nysketch"));
        command.env("NYSKETCH_LEDGERS", self.ledgers());
        command
    }

    /// Runs a command that must succeed, and returns its stdout.
    pub fn ok(&self, line: &str) -> String {
        let output = self.command(line).assert().success().get_output().stdout.clone();
        String::from_utf8(output).unwrap()
    }

    pub fn json(&self, line: &str) -> Value {
        serde_json::from_str(&self.ok(&format!("{line} --json"))).unwrap()
    }

    /// Runs a command that must fail with this code and these words, and must leave no new file.
    pub fn fails(&self, code: i32, line: &str, words: &[&str]) {
        let files = || {
            let mut names: Vec<_> =
                fs::read_dir(self.files.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
            names.sort();
            names
        };
        let before = files();
        let mut assert = self.command(line).assert().code(code).stdout("");
        for word in words {
            assert = assert.stderr(contains(*word));
        }
        assert.stderr(contains("panicked").not());
        assert_eq!(files(), before, "'{line}' left a file behind");
    }
}
