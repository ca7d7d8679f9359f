//! Names and text that would break a line, control a terminal, or are not Unicode.

mod common;

use common::Folder;
use std::ffi::OsStr;

const ROWS: &str = "1,2\n3,4\n5,6\n7,8\n2,1\n";

#[test]
fn control_characters_do_not_reach_the_terminal() {
    let f = Folder::new();
    let odd = "e\u{1b}[2Jvil\u{7}\u{9b}31m";
    f.write("x.csv", format!("\"{odd}\",\"two\nlines\"\n{ROWS}"));
    let raw = |bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes).into_owned();
        text.chars().any(|c| c.is_control() && c != '\n')
    };
    for line in [
        "sketch x.csv -o s.nys",
        "inspect s.nys",
        "inspect s.nys --json",
        "fit kmeans s.nys -k 2 -o m.json",
        "fit kmeans s.nys -k 1..3 -o m.json",
        "fit pca s.nys -k 2 -o p.json",
        "inspect m.json",
        "diff s.nys s.nys",
        "predict m.json x.csv -o y.csv --force",
        "evaluate m.json x.csv",
    ] {
        let said = f.command(line).assert().success().get_output().clone();
        assert!(!raw(&said.stdout) && !raw(&said.stderr), "{line}");
    }
    assert!(f.ok("inspect s.nys").contains("\\u{1b}[2Jvil"));
    f.write("bad.csv", format!("\"{odd}\",\"two\nlines\"\n1,x\u{1b}[0m\n"));
    let said = f.command("predict m.json bad.csv -o z.csv").assert().code(1).get_output().clone();
    assert!(!raw(&said.stderr) && said.stderr.iter().filter(|b| **b == b'\n').count() == 1);
    assert_eq!(f.json("inspect s.nys")["columns"][0], odd);
}

#[test]
#[cfg(target_os = "linux")]
fn names_that_are_no_unicode() {
    use std::os::unix::ffi::OsStrExt;
    let f = Folder::new();
    f.write("x.csv", format!("a,b\n{ROWS}")).ok("plan x.csv -o p.nys");
    let odd = |name: &[u8]| f.path("").join(OsStr::from_bytes(name));
    let (s, t, m) = (odd(b"s\xff.nys"), odd(b"t\xff.nys"), odd(b"m\xff.json"));
    let run = |line: &str, paths: &[&std::path::Path]| {
        for json in [&[][..], &["--json"]] {
            let mut command = f.command(line);
            command.args(paths).args(json).assert().success();
        }
    };
    run("sketch x.csv --plan p.nys -o", &[&s]);
    run("inspect", &[&s]);
    std::fs::copy(&s, &t).unwrap();
    run("diff", &[&s, &t]);
    run("fit kmeans -k 2 -o", &[&m, &s]);
    for json in [&[][..], &["--json"]] {
        let mut command = f.command("predict --force");
        command.arg(&m).args(["x.csv", "-o"]).arg(odd(b"y\xff.csv")).args(json).assert().success();
    }
    run("report --force -o", &[&odd(b"r\xff.html"), &s]);
}

/// Plans whose linear algebra would take hours are refused before it starts. The error names the
/// option that allows them.
#[test]
fn too_much_work_is_refused_beforehand() {
    let f = Folder::new();
    f.ok("generate gmm --rows 9000 --dims 1 --clusters 2 -o x.npy");
    f.ok(
        "sketch x.npy -o s.nys --landmarks 9000 --sampling uniform --collect kernel --bandwidth 1",
    );
    let words = ["operations", "1.9 GB", "--max-work 4"];
    f.fails(1, "fit kmeans s.nys -k 2 -o m.json --decoder kernel", &words);
    f.fails(1, "diff s.nys s.nys", &words);
    assert!(f.ok("inspect s.nys").contains("would take long"));
}
