//! Runs that are killed or interrupted, or whose disk is full.
#![cfg(unix)]

mod common;

use common::Folder;
use predicates::str::contains;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

fn start(f: &Folder, line: &str) -> Child {
    Command::new(assert_cmd::cargo::cargo_bin("nysketch"))
        .args(line.split_whitespace())
        .current_dir(f.path(""))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Kills the run after each new checkpoint, and resumes it.
#[test]
fn killed_runs_go_on_to_the_same_bytes() {
    for input in ["x.parquet", "x.csv", "parts"] {
        let f = Folder::new();
        let rows = 400_000;
        f.ok(&format!("generate gmm --rows {rows} --dims 8 --clusters 5 -o x.parquet"));
        match input {
            "x.csv" => {
                drop(f.ok(&format!("generate gmm --rows {rows} --dims 8 --clusters 5 -o x.csv")))
            }
            "parts" => {
                fs::create_dir(f.path("parts")).unwrap();
                for i in 0..5 {
                    f.ok(&format!(
                        "generate gmm --rows 80000 --dims 8 --clusters 5 --seed {i} -o \
                        parts/{i}.parquet"
                    ));
                }
            }
            _ => {}
        }
        let options = "--landmarks 1000 --sampling uniform --threads 2";
        f.ok(&format!("sketch {input} -o whole.nys {options}"));
        let line = format!(
            "sketch {input} -o s.nys {options} --checkpoint c.ckpt --checkpoint-every 0.001 \
             --resume"
        );
        let mut kills = 0;
        let mut last = Vec::new();
        loop {
            let mut child = start(&f, &line);
            let begun = Instant::now();
            let status = loop {
                if let Some(status) = child.try_wait().unwrap() {
                    break Some(status);
                }
                let saved = fs::read(f.path("c.ckpt")).unwrap_or_default();
                let more = !saved.is_empty() && saved != last;
                if more && kills < 6 {
                    last = saved;
                    child.kill().unwrap();
                    child.wait().unwrap();
                    break None;
                }
                assert!(begun.elapsed() < Duration::from_secs(120), "no checkpoint in two minutes");
                std::thread::sleep(Duration::from_millis(1));
            };
            match status {
                Some(status) => {
                    assert!(status.success());
                    break;
                }
                None => kills += 1,
            }
        }
        assert!(kills >= 3, "killed only {kills} times");
        assert!(f.read("s.nys") == f.read("whole.nys"), "{input} after {kills} kills");
        assert!(!f.path("c.ckpt").exists());
        let left: Vec<_> =
            fs::read_dir(f.path("")).unwrap().map(|e| e.unwrap().file_name()).collect();
        // A kill during a save may leave a temporary file, but never a broken checkpoint.
        assert!(
            left.iter().filter(|n| n.to_string_lossy().starts_with(".nysketch-")).count() <= kills
        );
    }
}

/// Leaves the checkpoint of a killed run.
fn killed(f: &Folder, line: &str) {
    let mut child = start(f, line);
    let begun = Instant::now();
    while !f.path("c.ckpt").exists() {
        assert!(begun.elapsed() < Duration::from_secs(120));
        assert!(child.try_wait().unwrap().is_none(), "ended before it could be killed");
        std::thread::sleep(Duration::from_millis(1));
    }
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn checkpoints_of_something_else_are_refused() {
    let f = Folder::new();
    f.ok("generate gmm --rows 200000 --dims 4 --clusters 3 -o x.npy");
    f.ok("generate gmm --rows 1000 --dims 4 --clusters 3 --seed 5 -o y.npy");
    let line = "sketch x.npy -o s.nys --checkpoint c.ckpt --checkpoint-every 0.01";
    killed(&f, line);
    f.fails(1, line, &["c.ckpt exists", "--resume"]);
    f.fails(1, &format!("{line} --resume --seed 3"), &["other options"]);
    f.fails(1, &line.replace("x.npy", "x.npy y.npy --resume"), &["of other files"]);
    f.fails(1, &line.replace("x.npy", "y.npy --resume"), &["of other files"]);
    // The numbers are equal, but the file was written again.
    f.ok("generate gmm --rows 200000 --dims 4 --clusters 3 -o x.npy --force");
    f.fails(1, &format!("{line} --resume"), &["x.npy has changed since the checkpoint"]);
    let whole = f.read("c.ckpt");
    f.write("c.ckpt", &whole[..whole.len() - 1]);
    f.fails(1, &format!("{line} --resume"), &["c.ckpt is not a complete checkpoint"]);
    f.write("c.ckpt", "").fails(1, &format!("{line} --resume"), &["not a complete checkpoint"]);
    fs::remove_file(f.path("c.ckpt")).unwrap();
    f.ok("plan y.npy -o p.nys");
    f.fails(
        2,
        "sketch - --plan p.nys -o s.nys --checkpoint c.ckpt",
        &["stdin cannot be read again"],
    );
    f.fails(2, "sketch x.npy -o s.nys --resume", &["--checkpoint"]);
    f.fails(2, "sketch x.npy -o s.nys --checkpoint c.ckpt --checkpoint-every 0", &["above 0"]);
    // A new plan differs from the one in the checkpoint.
    let line = "sketch x.npy --plan p.nys -o s.nys --checkpoint c.ckpt --checkpoint-every 0.001";
    killed(&f, line);
    f.ok("plan y.npy -o p.nys --seed 9");
    f.fails(1, &format!("{line} --resume"), &["p.nys has changed since the checkpoint"]);
    fs::remove_file(f.path("c.ckpt")).unwrap();
    f.fails(2, "sketch x.npy -o s.nys --checkpoint x.npy", &["both input and output"]);
    f.fails(2, "sketch x.npy -o s.nys --checkpoint s.nys", &["both input and output"]);
}

/// A run that was refused because of lost rows is refused again after resuming.
#[test]
fn lost_rows_are_remembered() {
    let f = Folder::new();
    f.write("x.csv", "a,b\n1,2\n,2\n,3\n4,5\n,1\n");
    let line = "sketch x.csv -o s.nys --skip-invalid --max-skipped 0.9 --checkpoint c.ckpt";
    f.ok("plan x.csv -o p.nys --skip-invalid --max-skipped 0.9");
    let line = line.replace("sketch x.csv", "sketch x.csv --plan p.nys").replace("0.9", "0.5");
    for resume in ["", " --resume"] {
        let output = f.command(&format!("{line}{resume}")).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains("3 of 5 rows are invalid (60.0 %), by column: a 3"), "{said}");
    }
}

/// Sends Ctrl-C after a while; the run must end with an error.
fn interrupt(child: &mut Child) {
    std::thread::sleep(Duration::from_millis(300));
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    // The process ends by the signal, which also ends a shell loop.
    assert_eq!(child.wait().unwrap().signal(), Some(2));
}

/// Makes copies of x.npy, because a file that is named twice counts once.
fn copies(f: &Folder, count: usize) -> String {
    let names: Vec<String> = (0..count).map(|i| format!("x{i}.npy")).collect();
    for name in &names {
        fs::copy(f.path("x.npy"), f.path(name)).unwrap();
    }
    names.join(" ")
}

#[test]
fn interrupted_runs_leave_nothing_behind() {
    let f = Folder::new();
    f.ok("generate gmm --rows 100000 --dims 20 --clusters 3 -o x.npy");
    f.ok("plan x.npy -o p.nys --landmarks 4000");
    let input = copies(&f, 6);
    let mut child = start(&f, &format!("sketch {input} --plan p.nys -o s.nys --threads 1"));
    interrupt(&mut child);
    let files: Vec<_> = fs::read_dir(f.path("")).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(files.len(), 2 + 6, "{files:?}");
}

#[test]
fn an_interrupted_run_with_a_checkpoint_goes_on() {
    let f = Folder::new();
    f.ok("generate gmm --rows 100000 --dims 20 --clusters 3 -o x.npy");
    f.ok("plan x.npy -o p.nys --landmarks 4000");
    let input = copies(&f, 4);
    f.ok(&format!("sketch {input} --plan p.nys -o whole.nys"));
    let line = format!("sketch {input} --plan p.nys -o s.nys --checkpoint c.ckpt --threads 1");
    let mut child = start(&f, &line);
    interrupt(&mut child);
    f.command(&format!("{line} --resume")).assert().success().stderr(contains("continuing after"));
    assert!(f.read("s.nys") == f.read("whole.nys"));
}

/// A limit on file size has the same effect as a full disk: a write fails half-way.
#[test]
fn a_full_disk_is_reported_and_leaves_nothing() {
    let f = Folder::new();
    f.ok("generate gmm --rows 60000 --dims 4 --clusters 3 -o x.npy");
    f.ok("sketch x.npy -o s.nys");
    f.ok("fit kmeans s.nys -k 3 -o m.json");
    let few: String = (0..900).map(|i| format!("{i},{}\n", i % 3)).collect();
    f.write("few.csv", format!("a,g\n{few}"));
    let bin = assert_cmd::cargo::cargo_bin("nysketch");
    let before = fs::read_dir(f.path("")).unwrap().count();
    for line in [
        "sketch x.npy -o t.nys",
        "sketch x.npy -o t.nys --checkpoint c.ckpt",
        "predict m.json x.npy -o y.csv",
        "predict m.json x.npy -o y.parquet",
        "predict m.json x.npy -o y.npy",
        "generate gmm --rows 60000 --dims 4 --clusters 3 -o z.csv",
        "sketch few.csv --by g -o g",
    ] {
        // The signal is ignored, so that the write fails and the program continues.
        let script = format!("trap '' XFSZ; ulimit -f 16; {} {line}", bin.display());
        let output =
            Command::new("sh").args(["-c", &script]).current_dir(f.path("")).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{line}: {said}");
        assert!(said.contains("cannot write") && said.contains("File too large"), "{line}: {said}");
        let after: Vec<_> =
            fs::read_dir(f.path("")).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(after.len(), before, "{line} left {after:?}");
    }
}

/// Repeats the test on a file system of 64 kB, if one can be mounted.
#[test]
fn a_full_file_system_is_reported_and_leaves_nothing() {
    let f = Folder::new();
    f.ok("generate gmm --rows 60000 --dims 4 --clusters 3 -o x.npy");
    fs::create_dir(f.path("small")).unwrap();
    let bin = assert_cmd::cargo::cargo_bin("nysketch");
    let script = format!(
        "mount -t tmpfs -o size=64k none small || exit 77; {} sketch x.npy -o small/s.nys; \
         code=$?; ls -A small >&2; exit $code",
        bin.display()
    );
    let output =
        Command::new("unshare").args(["-rm", "sh", "-c", &script]).current_dir(f.path("")).output();
    match output {
        Ok(output)
            if output.status.code() != Some(77) && !output.stderr.starts_with(b"unshare") =>
        {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(output.status.code(), Some(1), "{said}");
            assert!(
                said.contains("cannot write small/s.nys") && said.contains("No space left"),
                "{said}"
            );
            assert!(!said.contains(".nysketch-"), "{said}");
        }
        _ => eprintln!("skipped: no file system can be mounted here"),
    }
}
