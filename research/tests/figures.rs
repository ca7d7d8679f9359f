//! The paper's experiments: the table does not depend on threads or interruptions; pictures and the
//! page are complete.

use assert_cmd::Command;
use predicates::prelude::*;
use predicates::str::contains;
use serde_json::Value;
use std::fs;
use std::path::PathBuf;
use tempfile::TempDir;

/// A temporary folder in which the real binary runs.
struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Folder(TempDir::new().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap()
    }

    fn command(&self, line: &str) -> Command {
        let mut command = Command::cargo_bin("nysketch-research").unwrap();
        command.current_dir(self.0.path()).args(line.split_whitespace());
        command
    }

    fn json(&self, line: &str) -> Value {
        let line = format!("{line} --json");
        let output = self.command(&line).assert().success().get_output().stdout.clone();
        serde_json::from_slice(&output).unwrap()
    }

    /// Runs a command that must fail with this code and these words.
    fn fails(&self, code: i32, line: &str, words: &[&str]) {
        let mut assert = self.command(line).assert().code(code).stdout("");
        for word in words {
            assert = assert.stderr(contains(*word));
        }
        assert.stderr(contains("panicked").not());
    }

    /// Writes a NumPy array of zeros.
    fn npy(&self, name: &str, shape: &str, values: usize) {
        let header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}}}");
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        let length = (header.len() + 1).next_multiple_of(64) + 54;
        bytes.extend((length as u16).to_le_bytes());
        bytes.extend(format!("{header:<width$}\n", width = length - 1).bytes());
        bytes.extend(vec![0; 4 * values]);
        fs::write(self.path(name), bytes).unwrap();
    }
}

/// Without the data folder, only the synthetic half of figure 3 is run.
const FIGURE: &str = "fig3 --quick --trials 1";

#[test]
fn threads_and_interruptions_do_not_show() {
    let f = Folder::new();
    let first = f.json(&format!("{FIGURE} --threads 1 -o one"));
    assert_eq!((&first["new"], &first["failed"]), (&first["fits"], &0.into()), "{first}");
    assert_eq!(first["panels"], serde_json::json!(["fig3-kmeans-synthetic-k20-size"]));
    assert!(first["missing"][0].as_str().unwrap().contains("--data"), "{first}");
    let table = String::from_utf8(f.read("one/trials.csv")).unwrap();
    // Simulates a run that ended in the middle of a line.
    let half = table.len() / 2;
    fs::create_dir(f.path("two")).unwrap();
    fs::write(f.path("two/trials.csv"), &table[..half]).unwrap();
    let rest = f.json(&format!("{FIGURE} --threads 2 -o two"));
    let (new, fits) = (rest["new"].as_u64().unwrap(), rest["fits"].as_u64().unwrap());
    assert!(0 < new && new < fits, "{rest}");
    for file in ["trials.csv", "index.html", "fig3-kmeans-synthetic-k20-size.svg"] {
        assert_eq!(f.read(&format!("one/{file}")), f.read(&format!("two/{file}")), "{file}");
    }
    // No fits remain.
    assert_eq!(f.json(&format!("{FIGURE} -o two"))["new"], 0);

    let risk = |method: &str, size: &str| -> f64 {
        let start = format!("synthetic-k20,kmeans,{method},");
        let line = table.lines().find(|l| {
            let cells: Vec<&str> = l.split(',').collect();
            l.starts_with(&start) && cells[7] == size
        });
        let column = table.lines().next().unwrap().split(',').position(|name| name == "risk");
        line.unwrap().split(',').nth(column.unwrap()).unwrap().parse().unwrap()
    };
    // With 400 landmarks, cells match all rows, and the paper's decoder is within a factor of 8.
    let all = risk("all-rows", "");
    assert!(risk("ours-cells", "400") < 1.01 * all, "{table}");
    assert!(risk("nystrom-uniform", "400") < 8.0 * all, "{table}");
    let png = f.read("one/fig3-kmeans-synthetic-k20-size.png");
    assert!(png.starts_with(b"\x89PNG") && png.len() > 10_000);
    // The page has no external resources.
    let page = String::from_utf8(f.read("one/index.html")).unwrap();
    assert!(page.contains("Nyström, greedy") && page.contains("Missing: cifar10"));
    assert!(!page.contains("href") && !page.contains("src="), "{page}");
}

#[test]
fn what_cannot_be_reproduced_is_reported() {
    let f = Folder::new();
    f.fails(2, "fig5 -o out", &["fig5", "fig1"]);
    f.fails(2, "fig3 --quick --trials 0 -o out", &["--trials"]);
    fs::write(f.path("file"), "x").unwrap();
    f.fails(1, &format!("{FIGURE} -o file"), &["file"]);
    fs::create_dir(f.path("other")).unwrap();
    fs::write(f.path("other/trials.csv"), "a,b\n1,2\n").unwrap();
    f.fails(1, &format!("{FIGURE} -o other"), &["other/trials.csv", "another folder"]);
    assert_eq!(f.read("other/trials.csv"), b"a,b\n1,2\n");
    // The number of classes differs from the number of rows.
    fs::create_dir(f.path("data")).unwrap();
    f.npy("data/cifar10_resnet18_pca50.npy", "(50, 50)", 2500);
    f.npy("data/cifar10_labels.npy", "(40,)", 40);
    let messages = ["cifar10_labels.npy has 40 values", "50 rows"];
    f.fails(1, &format!("{FIGURE} --data data -o out"), &messages);
    f.npy("data/cifar10_resnet18_pca50.npy", "(50, 3)", 150);
    f.fails(1, &format!("{FIGURE} --data data -o out"), &["3 columns", "50"]);
    f.fails(2, &format!("{FIGURE} --data nowhere -o out"), &["nowhere", "folder"]);
}

/// A folder of results may contain other files under the names of pictures and pages.
#[test]
fn pictures_and_pages_replace_only_their_own_kind() {
    let f = Folder::new();
    let rows = "x,y\n1,2\n3,4\n";
    for name in ["index.html", "fig3-kmeans-synthetic-k20-size.png"] {
        fs::create_dir(f.path("out")).unwrap();
        fs::write(f.path(&format!("out/{name}")), rows).unwrap();
        f.fails(1, &format!("{FIGURE} -o out"), &[name, "exists and is", "--force replaces it"]);
        assert_eq!(f.read(&format!("out/{name}")), rows.as_bytes());
        fs::remove_dir_all(f.path("out")).unwrap();
    }
}
