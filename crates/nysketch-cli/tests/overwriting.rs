//! Inputs are never overwritten: tests of the files that a command may and must not replace.

mod common;

use common::Folder;
use std::fs;

const ROWS: &str = "a,b\n1,2\n3,4\n5,6\n7,8\n2,1\n";

/// Tables, a plan, sketches and a model.
fn folder() -> Folder {
    let f = Folder::new();
    f.write("x.csv", ROWS).write("y.csv", "a,b\n1,2\n9,4\n");
    f.ok("plan x.csv -o p.nys");
    f.ok("sketch x.csv --plan p.nys -o s.nys");
    f.ok("sketch y.csv --plan p.nys -o t.nys");
    f.ok("fit kmeans s.nys -k 2 -o m.json");
    f
}

#[test]
fn an_output_never_replaces_an_input() {
    let f = folder();
    fs::hard_link(f.path("s.nys"), f.path("hard.nys")).unwrap();
    for (line, output) in [
        ("plan x.csv", "x.csv"),
        ("sketch x.csv", "x.csv"),
        ("sketch x.csv --plan p.nys", "p.nys"),
        ("merge s.nys t.nys", "s.nys"),
        ("merge s.nys t.nys", "t.nys"),
        ("merge s.nys t.nys", "hard.nys"),
        ("merge .", "s.nys"),
        ("subtract s.nys s.nys", "s.nys"),
        ("subtract s.nys t.nys", "t.nys"),
        ("fit kmeans s.nys -k 2", "s.nys"),
        ("predict m.json x.csv", "x.csv"),
        ("predict m.json x.csv", "m.json"),
        ("report s.nys", "s.nys"),
        ("report s.nys --against t.nys", "t.nys"),
    ] {
        for force in ["", " --force"] {
            let before = f.read(output);
            let line = format!("{line} -o {output}{force}");
            let words: &[&str] = if output == "m.json" { &[] } else { &["both input and output"] };
            f.fails(2, &line, words);
            assert!(f.read(output) == before, "{line} replaced {output}");
        }
    }
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("s.nys", f.path("link.nys")).unwrap();
        f.fails(2, "merge s.nys t.nys -o link.nys", &["are the same file"]);
    }
}

#[test]
fn a_file_is_replaced_only_by_one_of_its_kind() {
    let f = folder();
    f.write("notes", "dear diary").write("empty.nys", "").write("page.html", "hello");
    let commands = [
        ("plan x.csv", "p2.nys"),
        ("sketch x.csv", "s2.nys"),
        ("merge s.nys t.nys", "m2.nys"),
        ("subtract s.nys s.nys", "d2.nys"),
        ("fit kmeans s.nys -k 2", "m2.json"),
        ("fit kmeans s.nys -k 1..3", "m3.json"),
        ("report s.nys", "r2.html"),
    ];
    for (line, own) in commands {
        // Its own result of an earlier run, and an empty file, may be replaced.
        f.ok(&format!("{line} -o {own}"));
        f.ok(&format!("{line} -o {own}"));
        if !line.starts_with("report") {
            f.fails(
                1,
                &format!("{line} -o notes"),
                &["notes exists and is a text file", "--force"],
            );
        }
    }
    f.ok("sketch x.csv -o empty.nys");
    f.fails(1, "sketch x.csv -o p.nys", &["p.nys exists and is a plan", "--force"]);
    f.fails(1, "plan x.csv -o s.nys", &["s.nys exists and is a sketch"]);
    f.fails(1, "report s.nys -o page.html", &["page.html exists and is a text file"]);
    f.ok("report s.nys -o page.html --force");
    // A table may be the only copy.
    f.ok("predict m.json x.csv -o labels.csv");
    f.fails(1, "predict m.json x.csv -o labels.csv", &["labels.csv exists", "--force"]);
    f.ok("predict m.json x.csv -o labels.csv --force");
    f.fails(1, "generate gmm --rows 5 --dims 2 --clusters 1 -o y.csv", &["y.csv exists"]);
    assert_eq!(f.read("notes"), b"dear diary");
    // Pictures.
    f.ok("fit kmeans s.nys -k 1..3 -o m3.json --plot p.svg");
    f.ok("fit kmeans s.nys -k 1..3 -o m3.json --plot p.svg");
    f.write("q.svg", "a,b\n1,2\n");
    f.fails(1, "fit kmeans s.nys -k 1..3 -o m3.json --plot q.svg", &["q.svg exists"]);
    f.fails(1, "diff s.nys t.nys --plot q.svg", &["q.svg exists"]);
}

#[test]
fn extensions_of_other_kinds_are_refused() {
    let f = folder();
    f.fails(
        2,
        "sketch x.csv -o day.parquet",
        &["day.parquet", "a sketch cannot be written as .parquet", ".nys"],
    );
    f.fails(2, "plan x.csv -o p.json", &["a plan cannot be written as .json"]);
    f.fails(2, "fit kmeans s.nys -k 2 -o m.svg", &["a model cannot be written as .svg", ".json"]);
    f.fails(2, "report s.nys -o r.pdf", &["a web page cannot be written as .pdf", ".html"]);
    f.fails(2, "diff s.nys t.nys --plot data.csv", &["data.csv", ".svg", ".png"]);
    // Dots in names do not create extensions.
    f.ok("sketch x.csv -o 2024.01");
}

#[test]
fn merging_twice_does_not_count_twice() {
    let f = folder();
    fs::create_dir(f.path("foot")).unwrap();
    f.ok("sketch x.csv --plan p.nys -o foot/1.nys");
    f.ok("sketch y.csv --plan p.nys -o foot/2.nys");
    f.ok("merge foot -o foot/all.nys");
    let once = f.read("foot/all.nys");
    f.fails(2, "merge foot -o foot/all.nys", &["all.nys is both input and output"]);
    f.fails(1, "merge s.nys foot/1.nys -o u.nys", &["hold the same sums", "--allow-duplicates"]);
    assert_eq!(f.json("merge s.nys foot/1.nys -o u.nys --allow-duplicates")["rows"], 10);
    assert!(f.read("foot/all.nys") == once);
    // Two sketches without rows are allowed.
    f.write("none.csv", "a,b\n").ok("sketch none.csv --plan p.nys -o e1.nys --allow-empty");
    f.ok("sketch none.csv --plan p.nys -o e2.nys --allow-empty");
    f.ok("merge e1.nys e2.nys s.nys -o u.nys");
    // A part and the total that contains it.
    let said = f.command("merge foot/1.nys foot/all.nys -o v.nys").assert().success();
    let said = String::from_utf8_lossy(&said.get_output().stderr).into_owned();
    assert!(said.contains("foot/1.nys may be among those of foot/all.nys"), "{said}");
}

#[test]
fn drift_has_exit_codes_for_pipelines() {
    let f = Folder::new();
    f.ok("generate gmm --rows 4000 --dims 2 --clusters 2 -o a.npy");
    f.ok("generate gmm --rows 4000 --dims 2 --clusters 2 --seed 5 -o b.npy");
    f.ok("plan a.npy -o p.nys");
    f.ok("sketch a.npy --plan p.nys -o a.nys");
    f.ok("sketch b.npy --plan p.nys -o b.nys");
    f.ok("sketch b.npy -o other.nys");
    let code = |line: &str| f.command(line).output().unwrap().status.code().unwrap();
    assert_eq!(code("diff a.nys b.nys"), 0);
    assert_eq!(code("diff a.nys b.nys --exit-code"), 1);
    assert_eq!(code("diff a.nys a.nys --exit-code"), 0);
    // Also if the reader of the output closes the pipe.
    let bin = assert_cmd::cargo::cargo_bin("nysketch");
    for _ in 0..3 {
        let mut child = std::process::Command::new(&bin)
            .args(["diff", "a.nys", "b.nys", "--exit-code"])
            .current_dir(f.path(""))
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        assert_eq!(child.wait().unwrap().code(), Some(1));
    }
    assert_eq!(code("diff a.nys --exit-code"), 2);
    assert_eq!(code("diff a.nys nothing.nys --exit-code"), 3);
    assert_eq!(code("diff a.nys other.nys --exit-code"), 3);
}

/// A path can have many names, even before the file exists.
#[test]
fn two_outputs_are_two_files() {
    let f = Folder::new();
    fs::create_dir(f.path("w")).unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink("q.csv", f.path("link.csv")).unwrap();
    let link = cfg!(unix).then_some("link.csv");
    for labels in ["q.csv", "./q.csv", "w/../q.csv"].into_iter().chain(link) {
        let line =
            format!("generate gmm --rows 9 --dims 2 --clusters 2 -o q.csv --labels {labels}");
        f.fails(2, &line, &["--labels and --output name the same file"]);
    }
}
