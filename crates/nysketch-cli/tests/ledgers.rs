//! Ledgers under attack: keys, sketches and ledgers that are renamed, linked and copied, processes
//! that run at the same time or are killed, stopped or out of space.
#![cfg(unix)]

mod common;

use common::Folder;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

/// The id of a session.
fn session(number: usize) -> String {
    format!("{number:032x}")
}

/// Two parties, of which `a` has several sketches: `a0.nys`, `a1.nys`, …
fn parties(sketches: usize) -> Folder {
    let f = Folder::new();
    f.ok("plan --private --bounds c0=-9..9,c1=-9..9 -o p.nys --landmarks 20");
    let list: String =
        ["a", "b"].iter().map(|id| f.ok(&format!("keys new {id} -o {id}.key"))).collect();
    f.write("keys.toml", list);
    for i in 0..sketches {
        let rows = 90 + i;
        f.ok(&format!(
            "generate gmm --rows {rows} --dims 2 --clusters 3 --seed {i} -o rows{i}.csv"
        ));
        f.ok(&format!("sketch rows{i}.csv --plan p.nys -o a{i}.nys"));
    }
    f
}

fn mask(key: &str, sketch: usize, number: usize) -> String {
    format!(
        "mask a{sketch}.nys --parties keys.toml --key {key} --session {} -o {sketch}.masked.nys",
        session(number)
    )
}

/// Makes a pipe with a name.
fn pipe(path: &Path) {
    assert!(std::process::Command::new("mkfifo").arg(path).status().unwrap().success());
}

const REPLAY: &[&str] = &["was used in session"];

#[test]
fn a_key_keeps_its_ledger_under_every_name() {
    let f = parties(2);
    f.ok(&mask("a.key", 0, 1));
    let first = f.read("0.masked.nys");
    fs::create_dir(f.path("other")).unwrap();
    fs::hard_link(f.path("a.key"), f.path("hard.key")).unwrap();
    fs::copy(f.path("a.key"), f.path("other/copy")).unwrap();
    symlink(f.path("a.key"), f.path("link.key")).unwrap();
    for key in ["a.key", "hard.key", "other/copy", "link.key"] {
        f.fails(1, &mask(key, 1, 1), REPLAY);
        f.ok(&mask(key, 0, 1));
        assert_eq!(f.read("0.masked.nys"), first);
    }
    fs::rename(f.path("a.key"), f.path("moved.key")).unwrap();
    f.fails(1, &mask("moved.key", 1, 1), REPLAY);
    // Another id does not make another key.
    let text = String::from_utf8(f.read("moved.key")).unwrap().replace("id a\n", "id c\n");
    f.write("renamed.key", text);
    let list = String::from_utf8(f.read("keys.toml")).unwrap().replace("id = \"a\"", "id = \"c\"");
    f.write("keys.toml", list);
    f.fails(1, &mask("renamed.key", 1, 1), REPLAY);
    assert_eq!(f.ledgers_of("sessions").len(), 2);
}

#[test]
fn a_key_without_a_ledger_masks_only_when_it_is_declared_new() {
    let f = parties(2);
    f.ok(&mask("a.key", 0, 1));
    let made = f.json(&mask("a.key", 0, 1));
    let ledger = PathBuf::from(made["ledger"].as_str().unwrap());
    f.fails(1, &format!("{} --new-key", mask("a.key", 0, 2)), &["is not new", "--new-key"]);
    let away = f.path("away");
    fs::rename(&ledger, &away).unwrap();
    f.fails(1, &mask("a.key", 1, 1), &["has no ledger at", "--new-key"]);
    // Links, pipes, folders and the ledgers of other keys do not take its place.
    symlink(&away, &ledger).unwrap();
    f.fails(1, &mask("a.key", 1, 1), &["not a regular file"]);
    fs::remove_file(&ledger).unwrap();
    pipe(&ledger);
    f.fails(1, &mask("a.key", 1, 1), &["not a regular file"]);
    fs::remove_file(&ledger).unwrap();
    fs::create_dir(&ledger).unwrap();
    f.fails(1, &mask("a.key", 1, 1), &["not a regular file"]);
    fs::remove_dir(&ledger).unwrap();
    let other = f.ledgers_of("sessions").pop().unwrap();
    fs::copy(&other, &ledger).unwrap();
    f.fails(1, &mask("a.key", 1, 1), &["the ledger of something else"]);
    fs::write(&ledger, "").unwrap();
    f.fails(1, &mask("a.key", 1, 1), &["damaged in line 1"]);
    fs::remove_file(&ledger).unwrap();
    // A restored ledger refuses as before; a hard link is the same file.
    fs::hard_link(&away, &ledger).unwrap();
    f.fails(1, &mask("a.key", 1, 1), REPLAY);
    // Times do not matter.
    for time in [std::time::UNIX_EPOCH, std::time::SystemTime::now() + Duration::from_secs(1 << 30)]
    {
        fs::File::options().write(true).open(&ledger).unwrap().set_modified(time).unwrap();
        f.fails(1, &mask("a.key", 1, 1), REPLAY);
    }
    // A key from elsewhere is declared once.
    let elsewhere = |line: &str| {
        let mut command = f.command(line);
        command.env("NYSKETCH_LEDGERS", f.path("elsewhere/ledgers"));
        command
    };
    elsewhere(&mask("b.key", 0, 5)).assert().code(1);
    assert!(!f.path("elsewhere").exists());
    elsewhere(&format!("{} --new-key", mask("b.key", 0, 5))).assert().success();
    elsewhere(&format!("{} --new-key", mask("b.key", 0, 6))).assert().code(1);
    elsewhere(&mask("b.key", 1, 5)).assert().code(1);
    elsewhere(&mask("b.key", 1, 6)).assert().success();
    // A folder that depends on where the command runs would be lost.
    for (folder, word) in [("here", "absolute path"), ("/proc/none", "cannot use the ledger")] {
        let line = format!("{} --new-key", mask("b.key", 0, 7));
        let mut command = f.command(&line);
        let assert = command.env("NYSKETCH_LEDGERS", folder).assert().code(1);
        assert.stderr(predicates::str::contains(word));
    }
}

#[test]
fn outputs_never_replace_keys_and_ledgers() {
    let f = parties(1);
    f.ok(&mask("a.key", 0, 1));
    f.ok("privatize a0.nys -o r.nys --epsilon 1 --delta 1e-6");
    f.ok("subtract a0.nys a0.nys -o none.nys");
    let kinds = ["sessions", "releases", "subtractions"];
    let all: Vec<PathBuf> = kinds.iter().flat_map(|kind| f.ledgers_of(kind)).collect();
    assert_eq!(all.len(), 4);
    fs::copy(f.path("a.key"), f.path("secret")).unwrap();
    let unnamed: Vec<PathBuf> = all.iter().chain([&f.path("secret")]).cloned().collect();
    let content: Vec<Vec<u8>> = unnamed.iter().map(|path| fs::read(path).unwrap()).collect();
    for (at, path) in unnamed.iter().enumerate() {
        // By any name that a result may have.
        let (link, hard) = (format!("link{at}.nys"), format!("hard{at}.nys"));
        symlink(path, f.path(&link)).unwrap();
        fs::hard_link(path, f.path(&hard)).unwrap();
        for output in [&link, &hard] {
            for line in [
                "sketch rows0.csv",
                "plan rows0.csv",
                "merge a0.nys",
                "subtract a0.nys a0.nys --no-ledger",
                "privatize a0.nys --epsilon 1 --delta 1e-6",
            ] {
                let words = ["which is never replaced"];
                f.fails(1, &format!("{line} -o {output} --force"), &words);
            }
        }
    }
    for (path, content) in unnamed.iter().zip(content) {
        assert_eq!(fs::read(path).unwrap(), content, "{}", path.display());
    }
    f.fails(2, "sketch rows0.csv -o new.ledger --force", &["cannot be written as .ledger"]);
    // Pipes are refused as keys and as outputs.
    pipe(&f.path("pipe.key"));
    f.fails(1, &mask("pipe.key", 0, 1), &["not a regular file"]);
    pipe(&f.path("pipe.nys"));
    for line in ["sketch rows0.csv", "merge a0.nys", &mask("a.key", 0, 1)] {
        let line = line.split(" -o ").next().unwrap();
        f.fails(1, &format!("{line} -o pipe.nys --force"), &["not a regular file"]);
    }
    f.fails(1, "keys new c -o pipe.key", &["pipe.key exists"]);
}

#[test]
fn ledgers_are_in_one_folder_of_the_user() {
    let f = parties(0);
    let new = |id: &str, state: Option<&str>| {
        let mut command = f.command(&format!("keys new {id} -o {id}.key"));
        command.env_remove("NYSKETCH_LEDGERS").env("HOME", f.path("home"));
        match state {
            Some(state) => command.env("XDG_STATE_HOME", state),
            None => command.env_remove("XDG_STATE_HOME"),
        };
        command.assert().success();
    };
    let count = |folder: &str| fs::read_dir(f.path(folder)).unwrap().count();
    new("c", None);
    assert_eq!(count("home/.local/state/nysketch/ledgers"), 1);
    // A relative path is not one of the standard, and is left out.
    new("d", Some("state"));
    assert_eq!(count("home/.local/state/nysketch/ledgers"), 2);
    assert!(!f.path("state").exists());
    new("e", f.path("other").to_str());
    assert_eq!(count("other/nysketch/ledgers"), 1);
    // A key that has no ledger is not written.
    let mut command = f.command("keys new f -o f.key");
    command.env("NYSKETCH_LEDGERS", "/proc/none").assert().code(1);
    assert!(!f.path("f.key").exists());
}

/// Starts masking a sketch in a session.
fn start(f: &Folder, sketch: usize, number: usize) -> Child {
    let script = format!("exec $NYSKETCH {}", mask("a.key", sketch, number));
    f.script(&script).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

fn signal(child: &Child, name: &str) {
    let sent = std::process::Command::new("kill").args([name, &child.id().to_string()]).status();
    assert!(sent.is_ok());
}

fn masked(f: &Folder, sketch: usize) -> bool {
    f.path(&format!("{sketch}.masked.nys")).exists()
}

fn forget(f: &Folder) {
    for sketch in 0..8 {
        let _ = fs::remove_file(f.path(&format!("{sketch}.masked.nys")));
    }
}

#[test]
fn of_processes_at_once_one_passes() {
    let f = parties(8);
    for number in 1..=5 {
        let all: Vec<Child> = (0..8).map(|sketch| start(&f, sketch, number)).collect();
        let passed = all.into_iter().filter_map(|mut c| c.wait().unwrap().success().then_some(()));
        assert_eq!(passed.count(), 1);
        assert_eq!((0..8).filter(|sketch| masked(&f, *sketch)).count(), 1);
        forget(&f);
    }
}

/// Whenever a process is killed, no two sketches of a session can come to light, and the ledger
/// stays readable.
#[test]
fn kills_never_let_two_sketches_pass() {
    let f = parties(2);
    let (mut seen, mut between, mut before) = (0, 0, 0);
    for number in 1..=80 {
        let mut child = start(&f, 0, number);
        std::thread::sleep(Duration::from_micros(3000 + 100 * number as u64));
        signal(&child, "-KILL");
        child.wait().unwrap();
        let first = masked(&f, 0);
        let recorded = f
            .ledgers_of("sessions")
            .iter()
            .any(|path| fs::read_to_string(path).unwrap().contains(&session(number)));
        assert!(recorded || !first, "session {number} came to light without a line");
        let second = f.command(&mask("a.key", 1, number)).output().unwrap().status.success();
        let retried = f.command(&mask("a.key", 0, number)).output().unwrap().status.success();
        assert!(!(first && second), "session {number} has masked two sketches");
        assert_eq!(second, !retried, "one of both can be masked in session {number}");
        assert_eq!(second, !recorded);
        match (first, recorded) {
            (true, _) => seen += 1,
            (false, true) => between += 1,
            (false, false) => before += 1,
        }
        forget(&f);
    }
    println!("killed before the line {before}, before the output {between}, after it {seen}");
}

/// A stopped process that continues later finds the line that was written in the meantime.
#[test]
fn stopped_processes_never_let_two_sketches_pass() {
    let f = parties(2);
    for number in 1..=30 {
        let mut first = start(&f, 0, number);
        std::thread::sleep(Duration::from_micros(700 * number as u64));
        signal(&first, "-STOP");
        let mut second = start(&f, 1, number);
        // The second waits for the ledger where the first has stopped inside.
        std::thread::sleep(Duration::from_millis(40));
        signal(&first, "-CONT");
        let passed = [first.wait().unwrap().success(), second.wait().unwrap().success()];
        assert_eq!(passed.iter().filter(|p| **p).count(), 1, "session {number}: {passed:?}");
        assert_eq!(passed, [masked(&f, 0), masked(&f, 1)]);
        forget(&f);
    }
}

/// Bytes of a block of `ulimit -f`.
const BLOCK: usize = 512;

/// A limit on the size of files is what a full disk or a quota is to a program.
#[test]
fn a_full_disk_gives_nothing_out_and_loses_no_session() {
    let f = parties(2);
    let limited = |blocks: usize, line: &str| {
        let script = format!("trap '' XFSZ; ulimit -f {blocks}; exec $NYSKETCH {line}");
        let output = f.script(&script).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains("File too large"), "{said}");
    };
    // No room for a line: the session was not used.
    limited(0, &mask("a.key", 0, 1));
    f.ok(&mask("a.key", 1, 1));
    // Room for a part of a line, where one crosses the end of a block.
    let ledger = PathBuf::from(f.json(&mask("a.key", 1, 1))["ledger"].as_str().unwrap());
    let length = || ledger.metadata().unwrap().len() as usize;
    let line = length() - fs::read_to_string(&ledger).unwrap().find('\n').unwrap() - 1;
    let mut number = 2;
    while length() / BLOCK == (length() + line - 1) / BLOCK {
        f.ok(&mask("a.key", 1, number));
        number += 1;
    }
    let whole = length();
    limited(whole.div_ceil(BLOCK), &mask("a.key", 0, number));
    assert!((whole + 1..whole + line).contains(&length()), "{whole} {}", length());
    f.ok(&mask("a.key", 1, number));
    assert_eq!(length(), whole + line);
    forget(&f);
    // Room for the line, not for the output: the session is used, and the same sketch can be masked
    // again.
    let blocks = (length() + line).div_ceil(BLOCK);
    limited(blocks, &mask("a.key", 0, 100));
    assert!(!masked(&f, 0));
    f.fails(1, &mask("a.key", 1, 100), REPLAY);
    f.ok(&mask("a.key", 0, 100));
}

#[test]
fn a_sketch_keeps_its_ledger_under_every_name() {
    let f = parties(2);
    let release = |sketch: &str| {
        let made = f.json(&format!("privatize {sketch} -o r.nys --epsilon 1 --delta 1e-6"));
        made["releases"].as_u64().unwrap()
    };
    assert_eq!(release("a0.nys"), 1);
    fs::copy(f.path("a0.nys"), f.path("copy.nys")).unwrap();
    fs::rename(f.path("a0.nys"), f.path("moved.nys")).unwrap();
    symlink(f.path("moved.nys"), f.path("link.nys")).unwrap();
    assert_eq!((release("copy.nys"), release("moved.nys"), release("link.nys")), (2, 3, 4));
    // The same rows, sketched and merged again, with folds and skipped rows.
    let rows = String::from_utf8(f.read("rows0.csv")).unwrap();
    let (head, rows) = rows.split_once('\n').unwrap();
    let middle = rows.len() / 2 + rows[rows.len() / 2..].find('\n').unwrap() + 1;
    f.write("1.csv", format!("{head}\n{}", &rows[..middle]));
    f.write("2.csv", format!("{head}\nx,1\n{}", &rows[middle..]));
    for part in [1, 2] {
        f.ok(&format!("sketch {part}.csv --plan p.nys --folds 3 -o part{part}.nys"));
    }
    f.ok("merge part1.nys part2.nys -o parts.nys");
    assert_eq!(release("parts.nys"), 5);
    // Noise in shares counts, too.
    let noisy = format!("{} --epsilon 1 --delta 1e-6 --honest 1", mask("a.key", 1, 1));
    f.ok(&noisy);
    assert_eq!(release("a1.nys"), 2);
    let ledger = f.ledgers_of("releases");
    assert_eq!(ledger.len(), 1);
    let text = fs::read_to_string(&ledger[0]).unwrap();
    assert_eq!(text.lines().count(), 1 + 7);
    // Damage stops the next release.
    fs::write(&ledger[0], format!("{text}damage\n")).unwrap();
    let line = "privatize moved.nys -o never.nys --epsilon 1 --delta 1e-6";
    f.fails(1, line, &["damaged in line 9"]);
}

#[test]
fn a_deletion_is_done_once() {
    let f = Folder::new();
    let rows: String = (0..400).map(|i| format!("{},{}\n", i % 20, i % 7)).collect();
    f.write("all.csv", format!("a,b\n{rows}")).write("user.csv", "a,b\n3,3\n4,4\n");
    f.write("day.csv", format!("a,b\n{}", &rows[..900]));
    f.ok("plan all.csv -o p.nys --landmarks 20");
    for part in ["all", "user", "day"] {
        f.ok(&format!("sketch {part}.csv --plan p.nys -o {part}.nys"));
    }
    f.ok("subtract all.nys user.nys -o rest.nys");
    let once = f.read("rest.nys");
    // A job that starts again from the same total has the same result; one that goes on from its
    // result is refused.
    f.ok("subtract all.nys user.nys -o rest.nys");
    assert_eq!(f.read("rest.nys"), once);
    fs::rename(f.path("rest.nys"), f.path("total.nys")).unwrap();
    fs::copy(f.path("user.nys"), f.path("copy.nys")).unwrap();
    for user in ["user.nys", "copy.nys"] {
        let line = format!("subtract total.nys {user} -o twice.nys");
        f.fails(1, &line, &["subtracted from this sketch before", "--again"]);
    }
    f.ok("subtract total.nys user.nys -o twice.nys --again");
    assert_eq!(f.json("inspect twice.nys")["rows"], 396);
    f.ok("subtract total.nys user.nys -o twice.nys --no-ledger");
    // Other totals are not concerned, and no file shows the subtraction.
    f.ok("subtract day.nys user.nys -o day2.nys");
    f.ok("subtract total.nys day2.nys -o night.nys");
    f.fails(1, "subtract night.nys user.nys -o x.nys", &["subtracted from this sketch before"]);
    let kept: String = format!("a,b\n{rows}").replacen("3,3\n", "", 1).replacen("\n4,4\n", "\n", 1);
    f.write("kept.csv", kept);
    f.ok("sketch kept.csv --plan p.nys -o kept.nys");
    assert_eq!(f.read("kept.nys"), once);
    let ledgers = f.ledgers_of("subtractions");
    assert_eq!(ledgers.len(), 1);
    let mut command = f.command("subtract day.nys user.nys -o none.nys --no-ledger");
    command.env("NYSKETCH_LEDGERS", f.path("untouched")).assert().success();
    assert!(!f.path("untouched").exists());
}
