//! Secure aggregation with the real binary.

mod common;

use common::Folder;
use predicates::prelude::*;
use predicates::str::contains;
use std::fs;

const SESSION: &str = "8c5f0b1e7d2a4c6093e1d4b7a8f20c35";
const NEXT: &str = "00000000000000000000000000000002";

/// Parties with keys, their list, a plan without retained rows, and a sketch for each party.
fn parties(names: &[&str]) -> Folder {
    let f = Folder::new();
    let mut list = String::new();
    f.ok("generate gmm --rows 600 --dims 2 --clusters 3 -o all.csv");
    f.ok("plan --private --public all.csv --bounds c0=-9..9,c1=-9..9 -o p.nys --landmarks 20");
    for (seed, id) in names.iter().enumerate() {
        list += &f.ok(&format!("keys new {id} -o {id}.key"));
        f.ok(&format!(
            "generate gmm --rows 9{seed} --dims 2 --clusters 3 --seed {seed} -o {id}.csv"
        ));
        f.ok(&format!("sketch {id}.csv --plan p.nys -o {id}.nys"));
    }
    f.write("keys.toml", list);
    f
}

fn mask(id: &str, session: &str) -> String {
    format!(
        "mask {id}.nys --parties keys.toml --key {id}.key --session {session} -o {id}.masked.nys"
    )
}

#[test]
fn masked_sketches_merge_to_the_bytes_of_plain_ones() {
    let names = ["clinic-a", "clinic-b", "clinic-c", "clinic-d", "clinic-e"];
    let f = parties(&names);
    fs::create_dir(f.path("masked")).unwrap();
    let shown = f.json("keys show keys.toml");
    assert_eq!(shown["parties"].as_array().unwrap().len(), 5);
    for id in names {
        let made = f.json(&mask(id, SESSION));
        assert_eq!(made["party"], id);
        assert_eq!((&made["parties"], &made["session"]), (&5.into(), &SESSION.into()));
        assert_eq!(made["parties_fingerprint"], shown["parties_fingerprint"]);
        fs::rename(f.path(&format!("{id}.masked.nys")), f.path(&format!("masked/{id}.nys")))
            .unwrap();
    }
    let plain: Vec<String> = names.iter().map(|id| format!("{id}.nys")).collect();
    f.ok(&format!("merge {} -o plain.nys", plain.join(" ")));
    let merged = f.json("merge masked/ -o merged.nys");
    assert_eq!(f.read("merged.nys"), f.read("plain.nys"));
    assert_eq!((&merged["session"], &merged["parties"]), (&SESSION.into(), &5.into()));
    f.ok("merge masked/ --parties keys.toml -o named.nys");
    assert_eq!(f.read("named.nys"), f.read("plain.nys"));
    // The merged sketch is an ordinary sketch.
    f.ok("fit kmeans merged.nys -k 3 -o m.json");
    // The fingerprint is printed in groups for reading aloud.
    let fingerprint = shown["parties_fingerprint"].as_str().unwrap();
    let aloud: Vec<String> =
        fingerprint.as_bytes().chunks(4).map(|c| String::from_utf8_lossy(c).into()).collect();
    assert!(f.ok("keys show keys.toml").contains(&aloud.join(" ")));
}

#[test]
fn sets_that_are_not_one_whole_session_are_refused() {
    let f = parties(&["a", "b", "c"]);
    ["a", "b", "c"].iter().for_each(|id| drop(f.ok(&mask(id, SESSION))));
    let all = "a.masked.nys b.masked.nys c.masked.nys";
    f.fails(
        1,
        "merge a.masked.nys c.masked.nys -o x.nys",
        &["2 of 3 masked sketches", SESSION, "only if none is missing"],
    );
    f.fails(
        1,
        "merge a.masked.nys c.masked.nys --parties keys.toml -o x.nys",
        &["missing in session", SESSION, ": b;"],
    );
    fs::copy(f.path("b.masked.nys"), f.path("b2.nys")).unwrap();
    let doubled = ["cannot add b2.nys", "'b' is there twice"];
    f.fails(1, &format!("merge {all} b2.nys -o x.nys"), &doubled);
    f.fails(1, "merge a.masked.nys b.masked.nys b2.nys -o x.nys", &doubled);
    f.fails(
        1,
        &format!("merge {all} c.nys -o x.nys"),
        &["a.masked.nys is a masked sketch", "c.nys a plain one"],
    );
    f.fails(2, &format!("merge {all} --allow-duplicates -o x.nys"), &["--allow-duplicates"]);
    f.fails(2, "merge a.nys b.nys --parties keys.toml -o x.nys", &["--parties belongs to masked"]);
    // Another session.
    f.ok(&mask("c", NEXT).replace("-o c.masked", "-o c.next"));
    f.fails(
        1,
        "merge a.masked.nys b.masked.nys c.next.nys -o x.nys",
        &["cannot add c.next.nys", "belongs to session 0000", "but others to 8c5f"],
    );
    // Another list: one more party, which the others do not know.
    let more = f.ok("keys new d -o d.key");
    let list = String::from_utf8(f.read("keys.toml")).unwrap();
    f.write("more.toml", list + &more);
    f.fails(
        1,
        &format!("merge {all} --parties more.toml -o x.nys"),
        &["more.toml", "is not the list of parties"],
    );
    let line =
        mask("c", SESSION).replace("keys.toml", "more.toml").replace("-o c.masked", "-o c.more");
    f.command(&format!("{line} --new-key"))
        .env("NYSKETCH_LEDGERS", f.path("").join("elsewhere"))
        .assert()
        .success();
    f.fails(
        1,
        "merge a.masked.nys b.masked.nys c.more.nys -o x.nys",
        &["cannot add c.more.nys", "another list of parties"],
    );
    f.ok(&format!("merge {all} -o x.nys"));
}

/// Returns the bytes with a change in one place and a corrected checksum.
fn altered(bytes: &[u8], change: impl FnOnce(&mut [u8])) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    change(&mut bytes);
    let body = bytes.len() - 4;
    let checksum = crc32fast::hash(&bytes[..body]).to_le_bytes();
    bytes[body..].copy_from_slice(&checksum);
    bytes
}

#[test]
fn altered_files_are_refused() {
    let f = parties(&["a", "b"]);
    ["a", "b"].iter().for_each(|id| drop(f.ok(&mask(id, SESSION))));
    let bytes = f.read("b.masked.nys");
    let merge = "merge a.masked.nys bad.nys -o x.nys";
    let data = 8 + u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let mut damaged = bytes.clone();
    damaged[data + 5] ^= 1;
    f.write("bad.nys", damaged);
    f.fails(1, merge, &["bad.nys: damaged file: the checksum"]);
    // One sum is changed by one unit, with a corrected checksum.
    f.write("bad.nys", altered(&bytes, |bytes| bytes[data] ^= 1));
    f.fails(1, merge, &["a file was altered after it was masked"]);
    let replace = |from: &str, to: &str| {
        assert_eq!(from.len(), to.len());
        let at = memchr::memmem::find(&bytes, from.as_bytes()).unwrap();
        altered(&bytes, |bytes| bytes[at..at + to.len()].copy_from_slice(to.as_bytes()))
    };
    f.write("bad.nys", replace(SESSION, NEXT));
    f.fails(1, merge, &["belongs to session 0000"]);
    f.write("bad.nys", replace(r#"\"party\":\"b\""#, r#"\"party\":\"c\""#));
    f.fails(1, merge, &["differ from the list", "a file was altered"]);
    f.write("bad.nys", replace(r#"\"parties\":2"#, r#"\"parties\":3"#));
    f.fails(1, merge, &["another list of parties"]);
    // The session id of both files is changed, but their masks are those of the old session.
    let at = memchr::memmem::find(&bytes, SESSION.as_bytes()).unwrap();
    for (from, to) in [("a.masked.nys", "a2.nys"), ("b.masked.nys", "b2.nys")] {
        let moved = |bytes: &mut [u8]| bytes[at..at + 32].copy_from_slice(NEXT.as_bytes());
        f.write(to, altered(&f.read(from), moved));
    }
    f.fails(1, "merge a2.nys b2.nys -o x.nys", &["the masks do not cancel"]);
}

#[test]
fn a_session_masks_one_sketch() {
    let f = parties(&["a", "b"]);
    f.ok(&mask("a", SESSION));
    let first = f.read("a.masked.nys");
    // The same sketch, even from another file, gives the same bytes again.
    fs::remove_file(f.path("a.masked.nys")).unwrap();
    f.ok(&mask("a", &SESSION.to_uppercase()));
    assert_eq!(f.read("a.masked.nys"), first);
    let other = format!("mask b.nys --parties keys.toml --key a.key --session {SESSION} -o x.nys");
    f.fails(1, &other, &["cannot mask b.nys", "was used in session", "Agree on a new session"]);
    f.ok(&other.replace(SESSION, NEXT));
    let made = f.json(&other.replace(SESSION, NEXT).replace("x.nys", "y.nys"));
    let ledger = fs::read_to_string(made["ledger"].as_str().unwrap()).unwrap();
    assert_eq!(ledger.lines().count(), 3);
    assert!(ledger.lines().nth(1).unwrap().contains(SESSION));
    fs::write(made["ledger"].as_str().unwrap(), "lost\n").unwrap();
    f.fails(1, &other, &["damaged in line 1"]);
}

/// Only all parties together can use a masked sketch.
#[test]
fn a_masked_sketch_is_no_sketch() {
    let f = parties(&["a", "b"]);
    f.ok(&mask("a", SESSION));
    f.ok("fit kmeans a.nys -k 3 -o m.json");
    let words =
        ["a.masked.nys is a masked sketch", "merge all files of its session: nysketch merge"];
    for line in [
        "fit kmeans a.masked.nys -k 3 -o x.json",
        "fit pca a.masked.nys -k 1 -o x.json",
        "diff a.nys a.masked.nys",
        "diff a.masked.nys a.nys",
        "subtract a.nys a.masked.nys -o x.nys",
        "subtract a.masked.nys a.nys -o x.nys",
        "report a.masked.nys -o x.html",
        "sketch all.csv --plan a.masked.nys -o x.nys",
        "predict a.masked.nys all.csv -o x.csv",
        "evaluate a.masked.nys all.csv",
        "mask a.masked.nys --parties keys.toml --key a.key --session \
         8c5f0b1e7d2a4c6093e1d4b7a8f20c35 -o x.nys",
    ] {
        f.fails(1, line, &words);
    }
    let shown = f.json("inspect a.masked.nys");
    assert_eq!((&shown["kind"], &shown["party"]), (&"masked".into(), &"a".into()));
    assert!(shown.get("rows").is_none());
    let text = f.ok("inspect a.masked.nys");
    assert!(
        text.contains("a masked sketch") && text.contains(SESSION) && !text.contains("  rows "),
        "{text}"
    );
    f.fails(2, "inspect a.masked.nys --theory", &["masked sketch"]);
    // A result of another kind does not replace it.
    f.fails(
        1,
        "merge a.nys b.nys -o a.masked.nys",
        &["a.masked.nys exists and is a masked sketch"],
    );
}

#[test]
fn keys_are_made_once_and_lists_are_checked() {
    let f = parties(&["a", "b"]);
    let key = f.read("a.key");
    for force in ["", " --force"] {
        f.fails(1, &format!("keys new a -o a.key{force}"), &["a.key exists", "replaces nothing"]);
        f.fails(
            2,
            &format!("sketch all.csv -o a.key{force}"),
            &["a.key: a sketch cannot be written"],
        );
    }
    f.ok("keys new c -o secret");
    f.fails(
        1,
        "sketch all.csv -o secret --force",
        &["secret: it is a secret key, which is never replaced"],
    );
    assert_eq!(f.read("a.key"), key);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = |m| fs::set_permissions(f.path("a.key"), fs::Permissions::from_mode(m)).unwrap();
        assert_eq!(f.path("a.key").metadata().unwrap().permissions().mode() & 0o777, 0o600);
        mode(0o644);
        f.command(&mask("a", SESSION)).assert().success().stderr(contains("other users can read"));
        for ledger in f.ledgers_of("sessions") {
            assert_eq!(ledger.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        }
        mode(0o600);
        f.command(&mask("a", SESSION)).assert().success().stderr(contains("other users").not());
    }
    // The secret occurs only in its own file.
    let secret = String::from_utf8(key).unwrap().lines().last().unwrap()[7..].to_string();
    let ledgers = f.ledgers_of("sessions");
    assert_eq!(ledgers.len(), 3);
    for file in [f.path("keys.toml"), f.path("a.masked.nys")].into_iter().chain(ledgers) {
        let bytes = fs::read(&file).unwrap();
        assert!(memchr::memmem::find(&bytes, secret.as_bytes()).is_none(), "{}", file.display());
    }
    f.fails(2, "keys new a/b -o x.key", &["'a/b' cannot be the id of a party"]);
    assert_ne!(f.ok("keys session"), f.ok("keys session"));
    assert_eq!(f.ok("keys session").trim().len(), 32);
    f.fails(2, &mask("a", "january"), &["'january' is not the id of a session"]);

    let list = String::from_utf8(f.read("keys.toml")).unwrap();
    // Each party has a header, an id and a public key.
    let blocks: Vec<&str> = list.split_inclusive("\"\n").collect();
    assert_eq!(blocks.len(), 4);
    let show = |text: &str, words: &[&str]| {
        f.write("bad.toml", text);
        f.fails(1, "keys show bad.toml", words);
    };
    show("", &["bad.toml", "0 parties"]);
    show(&list.replace("id = \"b\"", "id = \"a\""), &["'a' is in the list of parties twice"]);
    let own = blocks[1];
    show(&[blocks[0], own, blocks[2], own].concat(), &["'a' and 'b' have the same public key"]);
    show(&list.replace("id = \"b\"", "id = \"b c\""), &["bad.toml: 'b c' cannot be the id"]);
    show(
        &list.replace("public = \"", "public = \"ff"),
        &["bad.toml: the public key of 'a' is not one"],
    );
    show(&list.replace("[[party]]", "[[partner]]"), &["bad.toml: line 1: unknown field 'partner'"]);

    f.write("bad.toml", list.replace("id = \"a\"", "id = \"z\""));
    let mask = mask("a", NEXT).replace("keys.toml", "bad.toml");
    f.fails(1, &mask, &["that of 'a', who is not in the list"]);
    f.write("bad.toml", [blocks[0], blocks[3], blocks[2], blocks[1]].concat());
    f.fails(1, &mask, &["another public key for 'a'"]);
    let zero = format!("public = \"{}\"\n", "00".repeat(32));
    f.write("bad.toml", [blocks[0], blocks[1], blocks[2], &zero].concat());
    f.fails(1, &mask, &["the public key of 'b' would make masks that anybody can compute"]);
    f.fails(
        1,
        &mask.replace("--key a.key", "--key keys.toml"),
        &["keys.toml: the file is not a secret key"],
    );
    f.fails(2, &mask.replace("-o a.masked.nys", "-o a.key"), &["a.key is both input and output"]);
}

#[test]
fn what_would_show_rows_is_not_masked() {
    let f = parties(&["a", "b"]);
    f.ok("sketch all.csv -o open.nys --landmarks 20");
    let mask = |sketch: &str| {
        format!("mask {sketch} --parties keys.toml --key a.key --session {SESSION} -o x.nys")
    };
    f.fails(1, &mask("open.nys"), &["cannot mask open.nys", "made from rows", "--private"]);
    f.ok("sketch all.csv --plan p.nys --folds 4 -o folded.nys");
    f.fails(1, &mask("folded.nys"), &["with folds cannot be masked", "--drop-folds"]);
    f.ok("merge folded.nys --drop-folds -o whole.nys");
    f.ok(&mask("whole.nys"));
}

#[test]
fn noise_of_all_parties_makes_a_release() {
    let f = parties(&["a", "b", "c"]);
    let noisy = |id: &str, more: &str| format!("{} {more}", mask(id, SESSION));
    let terms = "--epsilon 2 --delta 1e-6 --honest 2";
    f.fails(2, &noisy("a", "--epsilon 2"), &["--delta", "--honest"]);
    f.fails(2, &noisy("a", "--epsilon 2 --delta 1e-6 --honest 3"), &["--honest"]);
    f.fails(2, &noisy("a", "--epsilon 0 --delta 1e-6 --honest 2"), &["--epsilon"]);
    for id in ["a", "b", "c"] {
        let made = f.json(&noisy(id, terms));
        assert_eq!((&made["epsilon"], &made["honest"]), (&2.0.into(), &2.into()));
    }
    let text = f.ok("inspect a.masked.nys");
    assert!(text.contains("2 of 3 parties keep their noise secret"), "{text}");
    let all = "merge a.masked.nys b.masked.nys c.masked.nys --parties keys.toml -o r.nys";
    let merged = f.json(all);
    assert_eq!((&merged["epsilon"], &merged["parties"]), (&2.0.into(), &3.into()));
    assert!(f.ok("inspect r.nys").contains("as long as 2 of 3 parties"));
    f.ok("fit kmeans r.nys -k 2 -o m.json");
    // Noise is drawn once per session, and all parties use the same terms.
    f.fails(1, &noisy("a", &format!("{terms} --force")), &["was used in session", SESSION]);
    let other = |id: &str, more: &str| format!("{} --force {more}", mask(id, NEXT));
    f.ok(&other("a", terms));
    f.ok(&other("b", "--epsilon 1 --delta 1e-6 --honest 2"));
    f.fails(
        1,
        "merge a.masked.nys b.masked.nys c.masked.nys -o x.nys",
        &["b.masked.nys", "ε = 1", "ε = 2", "--honest"],
    );
    f.fails(2, &format!("{all} --disjoint-people"), &["--disjoint-people"]);
}
