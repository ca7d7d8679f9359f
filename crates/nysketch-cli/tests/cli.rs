//! The real binary in temporary folders: the first complete workflow, and bad input.

mod common;

use common::Folder;
use predicates::prelude::*;
use predicates::str::contains;
use std::fs;

fn npy(descr: &str, order: bool, shape: &str, data: &[u8]) -> Vec<u8> {
    let order = if order { "True" } else { "False" };
    let mut header =
        format!("{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}");
    while (10 + header.len() + 1) % 64 != 0 {
        header.push(' ');
    }
    header.push('\n');
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend_from_slice(&(header.len() as u16).to_le_bytes());
    bytes.extend_from_slice(header.as_bytes());
    bytes.extend_from_slice(data);
    bytes
}

const SMALL: &str = "a,b,name\n1,2,x\n3,4,y\n5,6.5,z\n7,8,w\n";

#[test]
fn the_whole_path() {
    let f = Folder::new();
    f.ok("generate gmm --rows 3000 --dims 4 --clusters 5 --seed 3 -o x.csv");
    let text = String::from_utf8(f.read("x.csv")).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!((lines[0], lines.len()), ("c0,c1,c2,c3", 3001));
    let head =
        |range: std::ops::Range<usize>| format!("{}\n{}\n", lines[0], lines[range].join("\n"));
    f.write("a.csv", head(1..1201)).write("b.csv", head(1201..3001));

    let plan = f.json("plan x.csv -o p.nys --landmarks 50");
    assert_eq!(plan["rows"], 3000);
    assert_eq!(plan["landmarks"], 50);
    assert_eq!(plan["bandwidths"].as_array().unwrap().len(), 3);
    f.ok("sketch x.csv --plan p.nys -o whole.nys");
    f.ok("sketch a.csv --plan p.nys -o a.nys --threads 3");
    f.ok("sketch b.csv --plan p.nys -o b.nys --threads 1");
    f.ok("sketch a.csv b.csv --plan p.nys -o two.nys");
    f.ok("merge b.nys a.nys -o merged.nys");
    f.ok("subtract whole.nys b.nys -o left.nys");
    assert!(f.read("merged.nys") == f.read("whole.nys"));
    assert!(f.read("two.nys") == f.read("whole.nys"));
    assert!(f.read("left.nys") == f.read("a.nys"));

    // A plan made during sketching equals a separate one, and stdin is equivalent to a file.
    f.ok("sketch x.csv -o direct.nys --landmarks 50");
    f.ok("sketch x.csv --plan p.nys -o embedded.nys --embed-witnesses");
    assert!(f.read("direct.nys") == f.read("embedded.nys"));
    f.command("sketch - --plan p.nys -o stdin.nys").write_stdin(text.clone()).assert().success();
    assert!(f.read("stdin.nys") == f.read("whole.nys"));

    let inspected = f.json("inspect whole.nys");
    assert_eq!(inspected["kind"], "sketch");
    assert_eq!(inspected["rows"], 3000);
    assert_eq!(inspected["fingerprint"], plan["fingerprint"]);
    assert_eq!(inspected["rank"][2], 50);
    assert!(f.ok("inspect p.nys").contains("contains     3,050 raw rows: 50 landmarks"));
}

#[test]
fn npy_and_csv_of_the_same_numbers_give_the_same_bytes() {
    let f = Folder::new();
    f.ok("generate gmm --rows 500 --dims 3 --clusters 2 -o x.npy --labels y.npy");
    f.ok("generate gmm --rows 500 --dims 3 --clusters 2 -o x.csv --labels y.csv");
    f.ok("sketch x.npy -o a.nys");
    f.ok("sketch x.csv -o b.nys");
    assert!(f.read("a.nys") == f.read("b.nys"));
    let labels = String::from_utf8(f.read("y.csv")).unwrap();
    assert_eq!(labels.lines().count(), 501);
    assert_eq!(f.read("y.npy").len(), 128 + 500 * 4);
}

#[test]
fn npy_types_byte_orders_and_layouts() {
    let f = Folder::new();
    let rows: Vec<[i16; 2]> = (0..40).map(|i| [i * i % 97, 3 * i - 60]).collect();
    let csv: String = rows.iter().map(|[a, b]| format!("{a},{b}\n")).collect();
    f.write("x.csv", csv);
    f.ok("sketch x.csv --no-header -o x.nys");
    let flat: Vec<i16> = rows.iter().flatten().copied().collect();
    let columns: Vec<i16> = (0..2).flat_map(|j| rows.iter().map(move |r| r[j])).collect();
    let cases: Vec<(&str, bool, Vec<u8>)> = vec![
        ("<i2", false, flat.iter().flat_map(|x| x.to_le_bytes()).collect()),
        (">i2", false, flat.iter().flat_map(|x| x.to_be_bytes()).collect()),
        ("<i4", true, columns.iter().flat_map(|x| i32::from(*x).to_le_bytes()).collect()),
        ("<i8", false, flat.iter().flat_map(|x| i64::from(*x).to_le_bytes()).collect()),
        ("<f4", true, columns.iter().flat_map(|x| f32::from(*x).to_le_bytes()).collect()),
        (">f8", false, flat.iter().flat_map(|x| f64::from(*x).to_be_bytes()).collect()),
    ];
    for (descr, order, data) in cases {
        f.write("x.npy", npy(descr, order, "(40, 2)", &data));
        f.ok("sketch x.npy -o y.nys");
        assert!(f.read("y.nys") == f.read("x.nys"), "{descr} {order}");
    }
}

#[test]
fn columns_are_chosen_and_matched_by_name() {
    let f = Folder::new();
    f.write("x.csv", SMALL)
        .write("y.csv", "name,b,a\nx,2,1\ny,4,3\nz,6.5,5\nw,8,7\n")
        .write("z.csv", "a,c\n1,2\n");
    let mut notes = f.command("plan x.csv -o p.nys").assert().success();
    notes = notes.stderr(contains("columns: a, b; text: name"));
    drop(notes);
    f.ok("sketch x.csv --plan p.nys -o x.nys");
    f.ok("sketch y.csv --plan p.nys -o y.nys");
    assert!(f.read("x.nys") == f.read("y.nys"));
    assert_eq!(f.json("plan x.csv -o q.nys --columns b")["columns"], serde_json::json!(["b"]));
    assert_eq!(f.json("plan x.csv -o q.nys --exclude b")["columns"], serde_json::json!(["a"]));
    f.fails(
        1,
        "sketch z.csv --plan p.nys -o s.nys",
        &["z.csv does not have the columns b, name", "it has a, c"],
    );
    f.fails(1, "plan x.csv -o s.nys --columns a,zz", &["no column 'zz'", "it has a, b, name"]);
    f.fails(1, "plan x.csv z.csv -o s.nys", &["z.csv does not have the columns b, name"]);
}

#[test]
fn weights_count_rows() {
    let f = Folder::new();
    f.write("w.csv", "a,w\n1,2\n5,1\n9,0\n").write("t.csv", "a,w\n1,1\n1,1\n5,1\n");
    f.ok("plan w.csv -o p.nys --weights w");
    f.ok("sketch w.csv --plan p.nys -o w.nys");
    f.ok("sketch t.csv --plan p.nys -o t.nys");
    assert!(f.read("w.nys") == f.read("t.nys"));
    assert_eq!(f.json("inspect w.nys")["rows"], 3);
    f.write("bad.csv", "a,w\n1,2\n5,-1.5\n");
    f.fails(1, "sketch bad.csv --plan p.nys -o s.nys", &["row 2, column 'w'", "-1.5"]);
    f.fails(1, "plan bad.csv --weights w -o s.nys", &["row 2, column 'w'", "-1.5 is negative"]);
}

#[test]
fn fractional_weights_are_rounded_with_a_note() {
    let f = Folder::new();
    f.write("w.csv", "a,w\n1,0.3\n5,1.25\n9,2\n").write("n.csv", "a,w\n1,2\n5,1\n9,3\n");
    // The unit is derived from the weights.
    let said = |line: &str| String::from_utf8(f.command(line).output().unwrap().stderr).unwrap();
    let quiet = said("sketch w.csv -o w.nys --weights w");
    assert!(!quiet.contains("rounded"), "{quiet}");
    let unit = f.json("inspect w.nys")["weights"]["unit"].as_f64().unwrap();
    assert!(unit < 1e-6, "{unit}");
    // A plan for whole weights has the unit 1.
    f.ok("plan n.csv -o p.nys --weights w");
    let said = said("sketch w.csv --plan p.nys -o s.nys");
    assert!(said.contains("rounded to multiples of 1") && said.contains("--weight-unit"), "{said}");
    // The share is (0.3 + 0.25) / 3.55: both weights change by more than a tenth.
    assert!(said.contains("15.49 %"), "{said}");
    assert_eq!(f.json("inspect s.nys")["rows"], 3);
}

#[test]
fn every_sampling_rule_runs() {
    let f = Folder::new();
    f.ok("generate gmm --rows 2000 --dims 3 --clusters 4 -o x.npy");
    for rule in ["uniform", "leverage", "greedy", "rpcholesky", "dsquared"] {
        let plan = f.json(&format!("plan x.npy -o p.nys --landmarks 30 --sampling {rule}"));
        assert_eq!((plan["landmarks"].as_u64(), plan["sampling"].as_str()), (Some(30), Some(rule)));
    }
    let plan = f.json("plan x.npy -o p.nys --leverage-lambda 0.01");
    assert!((plan["leverage"]["lambda"].as_f64().unwrap() - 0.01).abs() < 1e-9);
    assert!(plan["leverage"]["accuracy"].as_f64().unwrap() >= 1.0);
    assert_eq!(f.json("plan x.npy -o p.nys --features fourier --frequencies 9")["frequencies"], 9);
    f.write("l.csv", "c0,c1,c2\n0,0,0\n1,1,1\n");
    assert_eq!(f.json("plan x.npy -o p.nys --landmarks-from l.csv")["landmarks"], 2);
    f.ok("plan x.npy -o p.nys --sample-rows all --bandwidth 4,1 --collect cells");
}

#[test]
fn bad_rows_are_named_or_skipped_and_counted() {
    let f = Folder::new();
    f.write("p.csv", "a,b\n1,2\n3,4\n5,6\n").ok("plan p.csv -o p.nys");
    for (bad, words) in [
        ("nan", "NaN"),
        ("inf", "infinite"),
        ("-Infinity", "infinite"),
        ("", "missing"),
        ("abc", "'abc' is not a number"),
        ("1e400", "infinite"),
    ] {
        f.write("x.csv", format!("a,b\n1,2\n3,{bad}\n5,6\n7,8\n"));
        for command in [
            "plan x.csv -o s.nys --missing error",
            "sketch x.csv -o s.nys --missing error",
            "sketch x.csv --plan p.nys -o s.nys",
        ] {
            f.fails(1, command, &["x.csv: row 2, column 'b'", words]);
        }
        let report = f.json("sketch x.csv -o ok.nys --skip-invalid");
        assert_eq!(
            (report["rows"].as_u64(), report["skipped"].as_u64()),
            (Some(3), Some(1)),
            "{bad}"
        );
        assert_eq!(f.json("inspect ok.nys")["skipped"], 1);
        f.command("sketch x.csv -o ok.nys --skip-invalid")
            .assert()
            .stderr(contains("warning: 1 of 4 rows skipped as invalid (25.0 %), by column: b 1"));
        assert_eq!(report["skipped_by_column"]["b"], 1);
    }
    // Losing more than half of the rows is an error, unless the user allows it.
    f.write("holes.csv", "a,b,c\n1,2,3\n1,,\n2,,1\n3,4,5\n,,2\n");
    let lost = ["3 of 5 rows are invalid (60.0 %)", "b 3, a 1, c 1", "--max-skipped 0.6"];
    f.fails(1, "sketch holes.csv -o s.nys --skip-invalid", &lost);
    f.fails(1, "plan holes.csv -o p.nys --skip-invalid", &lost);
    f.ok("sketch holes.csv -o s.nys --skip-invalid --max-skipped 0.6");
    f.ok("fit kmeans s.nys -k 1 -o m.json");
    f.fails(1, "predict m.json holes.csv -o y.csv --skip-invalid", &lost);
    f.fails(1, "evaluate m.json holes.csv --skip-invalid", &lost);
    f.ok("predict m.json holes.csv -o y.csv --skip-invalid --max-skipped 1");
    f.fails(2, "plan holes.csv -o p.nys --skip-invalid --max-skipped 2", &["from 0 to 1"]);
    let nan: Vec<u8> = [1.0f32, 2.0, 3.0, f32::NAN].iter().flat_map(|x| x.to_le_bytes()).collect();
    f.write("x.npy", npy("<f4", false, "(2, 2)", &nan));
    f.fails(1, "sketch x.npy -o s.nys --missing error", &["x.npy: row 2, column 'c1'"]);
}

#[test]
fn bad_csv_files() {
    let f = Folder::new();
    f.write("ragged.csv", "a,b\n1,2\n3,4\n5\n").fails(
        1,
        "sketch ragged.csv -o s.nys",
        &["ragged.csv: row 3 (line 4): expected 2 fields, found 1"],
    );
    f.write("empty.csv", "").fails(1, "sketch empty.csv -o s.nys", &["empty.csv is empty"]);
    f.write("header.csv", "a,b\n").fails(1, "sketch header.csv -o s.nys", &["no rows"]);
    f.write("text.csv", "a,b\nx,y\nz,w\n").fails(
        1,
        "sketch text.csv -o s.nys",
        &["no numeric column"],
    );
    f.write("twice.csv", "a,a\n1,2\n").fails(
        1,
        "sketch twice.csv -o s.nys",
        &["two columns are called 'a'"],
    );
    f.write("numbers.csv", "1,2\n3,4\n").fails(
        1,
        "sketch numbers.csv -o s.nys",
        &["looks like data", "--no-header"],
    );
    assert_eq!(f.json("sketch numbers.csv --no-header -o ok.nys")["rows"], 2);
    assert_eq!(f.json("sketch numbers.csv --header -o ok.nys")["rows"], 1);
    f.write("latin.csv", b"a,b\n1,2\n3,\xff\xfe\n").fails(
        1,
        "sketch latin.csv -o s.nys",
        &["row 2, column 'b'", "not a number"],
    );
    f.write("names.csv", b"a,\xff\n1,2\n").fails(
        1,
        "sketch names.csv -o s.nys",
        &["column 2 is not valid UTF-8"],
    );
    f.fails(1, "sketch missing.csv -o s.nys", &["cannot read missing.csv", "No such file"]);
}

#[test]
fn bad_npy_files() {
    let f = Folder::new();
    let data = vec![0u8; 24];
    f.write("cut.npy", npy("<f4", false, "(3, 2)", &data[..20])).fails(
        1,
        "sketch cut.npy -o s.nys",
        &["cut.npy is truncated"],
    );
    f.write("more.npy", npy("<f4", false, "(3, 2)", &[0; 28])).fails(
        1,
        "sketch more.npy -o s.nys",
        &["4 bytes after the array"],
    );
    f.write("cube.npy", npy("<f4", false, "(1, 3, 2)", &data)).fails(
        1,
        "sketch cube.npy -o s.nys",
        &["3 dimensions"],
    );
    f.write("text.npy", npy("<U1", false, "(3, 2)", &data)).fails(
        1,
        "sketch text.npy -o s.nys",
        &["only real numbers"],
    );
    f.write("complex.npy", npy("<c8", false, "(3,)", &data)).fails(
        1,
        "sketch complex.npy -o s.nys",
        &["only real numbers"],
    );
    f.write("huge.npy", npy("<f8", false, "(9223372036854775807, 1000)", &data)).fails(
        1,
        "sketch huge.npy -o s.nys",
        &["huge.npy"],
    );
    f.write("none.npy", npy("<f8", false, "(0, 3)", &[])).fails(
        1,
        "sketch none.npy -o s.nys",
        &["no rows"],
    );
    f.write("flat.npy", npy("<f8", false, "(3, 0)", &[])).fails(
        1,
        "sketch flat.npy -o s.nys",
        &["0 columns"],
    );
    f.write("junk.npy", "not numpy at all").fails(
        1,
        "sketch junk.npy -o s.nys",
        &["junk.npy is not a valid npy file"],
    );
    f.write("start.npy", b"\x93NUMPY\x01\x00\xff\xff{").fails(
        1,
        "sketch start.npy -o s.nys",
        &["start.npy is not a valid npy file"],
    );
}

#[test]
fn few_rows_and_odd_columns() {
    let f = Folder::new();
    f.write("x.csv", SMALL);
    f.fails(1, "sketch x.csv -o s.nys --landmarks 5", &["5 landmarks", "only 4 rows"]);
    let report = f.json("sketch x.csv -o s.nys");
    assert_eq!(report["landmarks"], 4);
    let asked = "sketch twice.csv -o s.nys --landmarks 5";
    f.write("twice.csv", format!("{SMALL}{}", SMALL.split_once('\n').unwrap().1));
    f.command(asked).assert().stderr(contains("only 4 different points"));
    let unasked = f.command("sketch x.csv -o s.nys").assert();
    unasked.stderr(contains("different points").not());
    f.write("one.csv", "a\n3\n");
    assert_eq!(f.json("sketch one.csv -o s.nys")["rows"], 1);
    f.write("constant.csv", "a,b\n1,5\n2,5\n3,5\n");
    assert_eq!(f.json("sketch constant.csv -o s.nys --scale standard")["rows"], 3);
    f.write("same.csv", "a\n4\n4\n4\n4\n");
    assert_eq!(f.json("sketch same.csv -o s.nys")["landmarks"], 1);
    f.write("uneven.csv", "small,large\n1,1000\n2,9000\n3,4000\n");
    f.command("plan uneven.csv -o p.nys")
        .assert()
        .success()
        .stderr(contains("'large' varies").and(contains("--scale standard")));
    f.write("big.csv", "a\n1e30\n-1e30\n");
    f.fails(1, "sketch big.csv -o t.nys", &["column 'a'", "--scale standard"]);
    assert_eq!(f.json("sketch big.csv -o s.nys --scale standard")["rows"], 2);
    f.write("p.csv", "a\n1\n2\n").ok("plan p.csv -o p.nys");
    f.write("far.csv", "a\n1\n1e15\n").fails(
        1,
        "sketch far.csv --plan p.nys -o t.nys",
        &["row 2, column 'a'", "too far"],
    );
}

#[test]
fn damaged_sketches_and_wrong_kinds() {
    let f = Folder::new();
    f.write("x.csv", SMALL).ok("plan x.csv -o p.nys");
    f.ok("sketch x.csv --plan p.nys -o s.nys");
    f.ok("sketch x.csv -o other.nys --seed 9 --landmarks 2");
    let mut bytes = f.read("s.nys");
    let middle = bytes.len() - 100;
    bytes[middle] ^= 1;
    f.write("damaged.nys", &bytes).write("cut.nys", &bytes[..middle]).write("empty.nys", "");
    for command in [
        "inspect damaged.nys",
        "merge s.nys damaged.nys -o t.nys",
        "sketch x.csv --plan damaged.nys -o t.nys",
    ] {
        f.fails(1, command, &["damaged.nys", "checksum"]);
    }
    f.fails(1, "inspect cut.nys", &["cut.nys", "not a nysketch file"]);
    f.fails(
        1,
        "inspect empty.nys",
        &["empty.nys is not a plan, a sketch or a release: it is an empty file"],
    );
    f.fails(1, "inspect x.csv", &["x.csv is a text file, not a plan", "nysketch sketch x.csv"]);
    f.fails(1, "inspect nothing.nys", &["cannot read nothing.nys"]);
    f.fails(
        1,
        "merge s.nys p.nys -o t.nys",
        &["p.nys is a plan, not a sketch", "nysketch sketch INPUT --plan p.nys"],
    );
    // A sketch can serve as a plan.
    f.ok("sketch x.csv --plan s.nys -o again.nys");
    assert!(f.read("again.nys") == f.read("s.nys"));
    f.fails(1, "fit kmeans p.nys -k 2 -o m.json", &["p.nys is a plan, not a sketch"]);
    f.fails(1, "predict s.nys x.csv -o t.csv", &["s.nys is a sketch, not a model", "nysketch fit"]);
    f.fails(1, "plan s.nys -o t.nys", &["s.nys is a nysketch plan or sketch, not a table"]);
    let fingerprint = |file: &str| {
        f.json(&format!("inspect {file}"))["fingerprint"].as_str().unwrap().to_string()
    };
    let (a, b) = (fingerprint("s.nys"), fingerprint("other.nys"));
    f.fails(1, "merge s.nys other.nys -o t.nys", &[&a, &b, "with the same --plan"]);
    f.fails(1, "subtract s.nys other.nys -o t.nys", &[&a, &b]);
    f.write("more.csv", "a,b,name\n1,2,x\n1,2,x\n3,4,y\n5,6.5,z\n7,8,w\n")
        .ok("sketch more.csv --plan p.nys -o more.nys");
    f.fails(1, "subtract s.nys more.nys -o t.nys", &["cannot subtract", "the number of rows"]);
}

#[test]
fn outputs_that_cannot_be_written() {
    let f = Folder::new();
    f.write("x.csv", SMALL).ok("plan x.csv -o p.nys");
    f.ok("sketch x.csv --plan p.nys -o s.nys");
    for command in [
        "plan x.csv",
        "sketch x.csv",
        "merge s.nys",
        "subtract s.nys s.nys",
        "generate gmm --rows 5 --dims 1 --clusters 1",
    ] {
        let file = if command.starts_with("generate") { "y.csv" } else { "y.nys" };
        f.fails(
            1,
            &format!("{command} -o nowhere/{file}"),
            &["cannot write nowhere/", "does not exist"],
        );
    }
    fs::create_dir(f.path("d.nys")).unwrap();
    f.fails(1, "plan x.csv -o d.nys", &["cannot write d.nys", "folder"]);
    // A failed run leaves an existing file unchanged.
    f.write("bad.csv", "a,b\n1,x\n");
    let before = f.read("s.nys");
    f.fails(1, "sketch bad.csv --plan p.nys -o s.nys", &["bad.csv"]);
    assert!(f.read("s.nys") == before);
}

#[test]
fn empty_input_needs_to_be_allowed() {
    let f = Folder::new();
    f.write("x.csv", SMALL).write("none.csv", "a,b,name\n").ok("plan x.csv -o p.nys");
    f.write("zero.csv", "").ok("sketch zero.csv none.csv --plan p.nys -o z.nys --allow-empty");
    f.ok("sketch zero.csv --plan p.nys -o zz.nys --allow-empty");
    assert!(f.read("z.nys") == f.read("zz.nys"));
    f.command("sketch - --plan p.nys -o y.nys --allow-empty").write_stdin("").assert().success();
    assert!(f.read("z.nys") == f.read("y.nys"));
    f.fails(1, "sketch none.csv --plan p.nys -o e.nys", &["no rows"]);
    assert_eq!(f.json("sketch none.csv --plan p.nys -o e.nys --allow-empty")["rows"], 0);
    f.ok("sketch x.csv --plan p.nys -o s.nys");
    f.ok("merge e.nys s.nys e.nys -o m.nys");
    assert!(f.read("m.nys") == f.read("s.nys"));
    assert_eq!(f.json("inspect e.nys")["rows"], 0);
}

#[test]
fn usage_errors_have_exit_code_two() {
    let f = Folder::new();
    f.write("x.csv", SMALL).ok("plan x.csv -o p.nys");
    for (line, words) in [
        ("frobnicate", "unrecognized subcommand"),
        ("plan x.csv", "--output"),
        ("plan x.csv -o s.nys --landmarks 0", "--landmarks must be at least 1"),
        ("plan x.csv -o s.nys --landmarks -3", "-3"),
        ("plan x.csv -o s.nys --bandwidth 0", "--bandwidth"),
        ("plan x.csv -o s.nys --bandwidth 1,x", "--bandwidth"),
        ("plan x.csv -o s.nys --bandwidth nan", "--bandwidth"),
        ("plan x.csv -o s.nys --bandwidth 2,2", "--bandwidth"),
        ("plan x.csv -o s.nys --sample-rows few", "--sample-rows"),
        ("plan x.csv -o s.nys --sample-rows 0", "--sample-rows"),
        ("plan x.csv -o s.nys --sample-rows 2 --landmarks 3", "--sample-rows"),
        ("plan x.csv -o s.nys --collect everything", "--collect"),
        ("plan x.csv -o s.nys --features fourier --collect cells", "--collect"),
        ("plan x.csv -o s.nys --features fourier --landmarks 3", "--frequencies"),
        ("plan x.csv -o s.nys --frequencies 3", "--features fourier"),
        ("plan x.csv -o s.nys --leverage-lambda 2", "--leverage-lambda"),
        ("plan x.csv -o s.nys --leverage-lambda 0.1 --sampling greedy", "--leverage-lambda"),
        ("plan x.csv -o s.nys --weights b --weight-unit 0", "--weight-unit"),
        ("plan x.csv -o s.nys --threads 0", "threads"),
        ("plan - -o s.nys", "--plan"),
        ("sketch x.csv --plan p.nys --bandwidth 3 -o s.nys", "--plan"),
        ("sketch x.csv --plan p.nys --landmarks 3 -o s.nys", "--landmarks"),
        ("sketch x.csv --plan p.nys --seed 3 -o s.nys", "--seed"),
        ("sketch x.csv --plan p.nys --features fourier -o s.nys", "--features"),
        ("plan x.csv -o s.nys --features fourier --leverage-lambda 0.1", "no landmarks"),
        ("generate gmm --rows 5 --dims 1 --clusters 1 -o y.npy --labels y.npy", "same file"),
        ("generate gmm --rows 5 --dims 0 --clusters 1 -o x.npy", "--dims"),
        ("generate gmm --rows 5 --dims 1 --clusters 0 -o x.npy", "--clusters"),
        ("generate gmm --rows 5 --dims 1 --clusters 1 -o x.txt", ".csv or .npy"),
    ] {
        f.fails(2, line, &[words]);
    }
}

#[test]
fn quiet_runs_say_nothing_on_stderr() {
    let f = Folder::new();
    f.write("x.csv", SMALL);
    f.command("sketch x.csv -o s.nys -q").assert().success().stderr("");
    f.command("sketch x.csv -o s.nys -v").assert().success().stderr(contains("columns: a, b"));
}

#[test]
fn files_without_names_are_matched_by_position() {
    let f = Folder::new();
    let data: Vec<u8> =
        [1.0f64, 2.0, 3.0, 4.0, 5.0, 6.5, 7.0, 8.0].iter().flat_map(|x| x.to_le_bytes()).collect();
    f.write("x.csv", SMALL)
        .write("x.npy", npy("<f8", false, "(4, 2)", &data))
        .write("x.tsv", SMALL.replace(',', "\t"));
    f.ok("plan x.csv -o p.nys --exclude name");
    f.ok("sketch x.csv --plan p.nys -o a.nys");
    f.command("sketch x.npy --plan p.nys -o b.nys")
        .assert()
        .success()
        .stderr(contains("matched by position"));
    f.ok("sketch x.tsv --plan p.nys -o c.nys");
    assert!(f.read("a.nys") == f.read("b.nys"));
    assert!(f.read("a.nys") == f.read("c.nys"));
    // The place of a weight among unnamed columns is unknown.
    f.write("w.csv", "w,a\n1,2\n1,3\n").ok("plan w.csv -o w.nys --weights w");
    f.fails(1, "sketch x.npy --plan w.nys -o t.nys", &["x.npy does not have the columns a, w"]);
    f.write("index.csv", ",a\n0,1.5\n1,2.5\n");
    assert_eq!(f.json("plan index.csv -o q.nys")["columns"], serde_json::json!(["c0", "a"]));
}

#[test]
fn bad_rows_with_weights_are_skipped_alike_by_plan_and_sketch() {
    let f = Folder::new();
    f.write("x.csv", "a,w\n1,1\nnan,-1\n5,2\n7,\n");
    let plan = f.json("plan x.csv -o p.nys --weights w --skip-invalid");
    let sketch = f.json("sketch x.csv --plan p.nys -o s.nys --skip-invalid");
    assert_eq!((plan["rows"].as_u64(), plan["skipped"].as_u64()), (Some(2), Some(2)));
    assert_eq!((sketch["rows"].as_u64(), sketch["skipped"].as_u64()), (Some(3), Some(2)));
}

#[test]
fn bad_landmark_files_are_named() {
    let f = Folder::new();
    f.write("x.csv", SMALL);
    f.write("nan.csv", "a,b\n1,2\n3,nan\n").fails(
        1,
        "plan x.csv -o s.nys --landmarks-from nan.csv",
        &["nan.csv: row 2, column 'b'"],
    );
    f.write("far.csv", "a,b\n1,1e12\n").fails(
        1,
        "plan x.csv -o s.nys --landmarks-from far.csv",
        &["far.csv: row 1, column 'b'", "too far"],
    );
    f.write("few.csv", "a\n1\n").fails(
        1,
        "plan x.csv -o s.nys --landmarks-from few.csv",
        &["few.csv does not have the column b"],
    );
    f.write("none.csv", "a,b\n").fails(
        1,
        "plan x.csv -o s.nys --landmarks-from none.csv",
        &["none.csv has no rows"],
    );
}

#[test]
fn nothing_is_swallowed() {
    let f = Folder::new();
    // An open quote hides the rows after it, whether near the end of the file or far from it.
    let rows = |from: u32, to: u32| (from..to).map(|i| format!("{i},x\n")).collect::<String>();
    for tail in [5, 2000] {
        f.write("q.csv", format!("a,t\n{}3000,\"x\n{}", rows(0, 3000), rows(3001, 3001 + tail)));
        f.fails(
            1,
            "sketch q.csv -o s.nys",
            &["q.csv: row 3001", "a quote (\") is opened and never closed"],
        );
    }
    // Fields may contain line breaks.
    f.write("ok.csv", "a,t\n1,\"two\nlines\"\n2,x\n");
    assert_eq!(f.json("sketch ok.csv -o ok.nys")["rows"], 2);
    // In a file with one column, a blank line is a missing value.
    f.write("blank.csv", "a\n1\n\n\n4\n\n");
    f.fails(1, "sketch blank.csv -o s.nys --missing error", &["blank.csv: row 2, column 'a'"]);
    let report = f.json("sketch blank.csv -o b.nys --skip-invalid");
    assert_eq!((report["rows"].as_u64(), report["skipped"].as_u64()), (Some(2), Some(2)));
    // The message asks for the separator.
    f.write("semi.csv", "a;b\n1;2\n3;4\n").fails(
        1,
        "sketch semi.csv -o s.nys",
        &["--delimiter ';'"],
    );
    assert_eq!(
        f.json("sketch semi.csv --delimiter ; -o c.nys")["columns"],
        serde_json::json!(["a", "b"])
    );
    // Columns that occur only in later files are reported.
    f.write("one.csv", "a\n1\n2\n").write("two.csv", "a,b\n1,2\n");
    f.command("sketch one.csv two.csv -o d.nys")
        .assert()
        .success()
        .stderr(contains("'b' of two.csv"));
}

#[test]
fn inputs_and_odd_files_are_never_replaced() {
    let f = Folder::new();
    f.write("x.csv", SMALL).ok("plan x.csv -o p.nys");
    f.fails(2, "sketch x.csv -o x.csv", &["both input and output"]);
    f.fails(2, "sketch x.csv --plan p.nys -o p.nys", &["both input and output"]);
    f.fails(2, "plan x.csv -o -", &["name of a file"]);
    f.fails(2, "generate gmm --rows 1 --dims 99999999999 --clusters 1 -o g.npy", &["--dims"]);
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("real.nys", f.path("link.nys")).unwrap();
        f.write("real.nys", "").ok("plan x.csv -o link.nys");
        assert!(f.path("link.nys").is_symlink());
        assert!(f.read("real.nys") == f.read("p.nys"));
        let made = std::process::Command::new("mkfifo").arg(f.path("pipe")).status();
        if made.is_ok_and(|s| s.success()) {
            f.fails(1, "plan x.csv -o pipe", &["not a regular file"]);
            f.fails(1, "plan pipe -o s.nys", &["not a regular file"]);
        }
    }
}
