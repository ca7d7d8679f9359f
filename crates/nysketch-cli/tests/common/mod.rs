//! A temporary folder in which the real binary runs.

pub mod tables;

use assert_cmd::Command;
use predicates::prelude::*;
use predicates::str::contains;
use serde_json::Value;
use std::fs;
use std::path::PathBuf;
use tempfile::TempDir;

pub struct Folder(TempDir);

#[allow(dead_code, reason = "not every test binary needs everything")]
impl Folder {
    pub fn new() -> Self {
        Folder(TempDir::new().unwrap())
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
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
        command.current_dir(self.0.path()).args(line.split_whitespace());
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
                fs::read_dir(self.0.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
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
