//! Predictions, evaluations and help, as the real binary gives them.

mod common;

use arrow_array::*;
use arrow_schema::DataType;
use common::Folder;
use common::tables::{batch, parquet};
use predicates::prelude::*;
use predicates::str::contains;
use std::fs;
use std::sync::Arc;

/// What `predict` wrote.
fn read_parquet(bytes: Vec<u8>) -> RecordBatch {
    let reader = parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder::try_new(
        bytes::Bytes::from(bytes),
    );
    let reader = reader.unwrap().with_batch_size(1 << 20).build().unwrap();
    let batches: Vec<RecordBatch> = reader.map(|b| b.unwrap()).collect();
    assert_eq!(batches.len(), 1);
    batches.into_iter().next().unwrap()
}

#[test]
fn predictions_carry_columns_along() {
    use arrow_array::cast::AsArray;
    use arrow_array::types::*;
    let f = Folder::new();
    let n = 30_000;
    let id = Int64Array::from_iter_values((0..n).map(|i| (1 << 60) + i));
    let name = StringArray::from_iter((0..n).map(|i| (i % 5 != 3).then(|| format!("row {i}"))));
    let x = Float32Array::from_iter_values((0..n).map(|i| (i % 3) as f32 * 10.0));
    let table = batch(&[("id", Arc::new(id)), ("x", Arc::new(x)), ("name", Arc::new(name))]);
    f.write("x.parquet", parquet(&table, 7_001));
    f.ok("sketch x.parquet -o s.nys --columns x");
    f.ok("fit kmeans s.nys -k 3 -o m.json");
    f.ok("predict m.json x.parquet -o y.parquet --keep id,n* --threads 3");
    let out = read_parquet(f.read("y.parquet"));
    let names: Vec<String> = out.schema().fields().iter().map(|f| f.name().clone()).collect();
    assert_eq!(names, ["id", "name", "label", "distance"]);
    assert_eq!(out.column(0).data_type(), &DataType::Int64);
    let (ids, labels) =
        (out.column(0).as_primitive::<Int64Type>(), out.column(2).as_primitive::<Int32Type>());
    for i in 0..n as usize {
        assert_eq!(ids.value(i), (1 << 60) + i as i64);
        assert_eq!(labels.value(i), labels.value(i % 3));
    }
    assert!(out.column(1).is_null(3) && !out.column(1).is_null(4));
    for kind in ["parquet", "csv"] {
        f.ok(&format!("predict m.json x.parquet -o one.{kind} --keep id,n* --threads 1"));
        f.ok(&format!("predict m.json x.parquet -o many.{kind} --keep id,n* --threads 8"));
        assert!(f.read(&format!("one.{kind}")) == f.read(&format!("many.{kind}")), "{kind}");
    }
    f.ok("predict m.json x.parquet -o y.csv --keep id");
    let text = String::from_utf8(f.read("y.csv")).unwrap();
    assert_eq!(text.lines().count(), n as usize + 1);
    let line = format!("{},{},0.0", 1i64 << 60, labels.value(0));
    assert_eq!(text.lines().nth(1), Some(&line[..]));
    f.ok("predict m.json x.parquet -o y.npy");
    let npy = f.read("y.npy");
    assert!(npy[128 + 4..].starts_with(&labels.value(1).to_le_bytes()));
    assert_eq!(npy.len(), 128 + 4 * n as usize);
    // From text the columns stay text.
    f.write("t.csv", "id,x\n007,10\n,20\n");
    f.ok("predict m.json t.csv -o t.parquet --keep id");
    let out = read_parquet(f.read("t.parquet"));
    assert_eq!(out.column(0).as_string::<i32>().value(0), "007");
    assert!(out.column(0).is_null(1));
    f.write("bad.csv", "id,x\n1,10\n2,nan\n");
    f.fails(1, "predict m.json bad.csv -o t2.csv", &["bad.csv: row 2, column 'x'"]);
    f.ok("predict m.json bad.csv -o bad.parquet --skip-invalid");
    let out = read_parquet(f.read("bad.parquet"));
    assert_eq!(
        (out.column(0).as_primitive::<Int32Type>().value(1), out.column(1).is_null(1)),
        (-1, true)
    );
    f.write("label.csv", "label,x\n1,10\n");
    f.fails(2, "predict m.json label.csv -o l.csv --keep label", &["'label'", "--prefix"]);
    f.ok("predict m.json label.csv -o l.csv --keep label --prefix my_");
    assert!(f.read("l.csv").starts_with(b"label,my_label,my_distance\n1,"));
    f.fails(
        1,
        "predict m.json x.parquet t.csv -o t2.parquet --keep id",
        &["column 'id' holds Utf8 in t.csv, but Int64 in x.parquet"],
    );
    f.fails(2, "predict m.json x.parquet -o t.npy --keep id", &["--keep"]);
}

#[test]
fn labels_may_be_text() {
    let f = Folder::new();
    f.write("x.csv", "x,kind\n1,low\n1.1,low\n9,high\n9.1,high\n");
    f.ok("sketch x.csv -o s.nys --columns x");
    f.ok("fit kmeans s.nys -k 2 -o m.json");
    assert_eq!(f.json("evaluate m.json x.csv --labels kind")["ari"], 1.0);
    f.write("y.csv", "kind\nlow\nlow\nhigh\nlow\n");
    assert!(f.json("evaluate m.json x.csv --labels y.csv")["ari"].as_f64().unwrap() < 0.9);
    f.write("z.csv", "x,kind\n1,low\n9,\n");
    f.fails(
        1,
        "evaluate m.json z.csv --labels kind",
        &["z.csv: row 2, column 'kind': the label is missing"],
    );
}

#[test]
fn help_in_every_shape() {
    let f = Folder::new();
    for shell in ["bash", "zsh", "fish"] {
        assert!(f.ok(&format!("completions {shell}")).contains("nysketch"), "{shell}");
    }
    assert!(f.ok("man").starts_with(".ie"));
    f.ok("man --dir man1");
    assert!(String::from_utf8(f.read("man1/nysketch-sketch.1")).unwrap().contains("checkpoint"));
    // Colours only on a terminal.
    f.command("sketch").assert().code(2).stderr(contains("\u{1b}[").not());
}

/// A folder with the files that the examples of the help texts name.
fn folder_of_the_examples() -> Folder {
    let f = Folder::new();
    let rows: String = (0..300)
        .map(|i| format!("{i},{},{},{},n{}\n", i % 7, i * i % 31, ["at", "be"][i % 2], i / 2))
        .collect();
    let table = format!("id,c0,c1,country,customer\n{rows}");
    f.write("sales.csv", &table).write("day1.csv", &table).write("day2.csv", &table);
    let flight = |i: usize| {
        let delay = if i.is_multiple_of(9) { String::new() } else { (i * i % 83).to_string() };
        let (day, hour, carrier) = (i % 28 + 1, i % 24, ["UA", "B6", "EV"][i * i % 3]);
        format!("2013-02-{day:02}T{hour:02}:15,{carrier},F{},{},{delay}\n", i % 80, i * 7 % 501)
    };
    let flights: String = (0..300).map(flight).collect();
    f.write("flights.csv", format!("when,carrier,flight,distance,delay\n{flights}"));
    f.ok("generate gmm --rows 2000 --dims 2 --clusters 3 --labels y.npy -o x.npy");
    f.ok("generate gmm --rows 2000 --dims 2 --clusters 3 -o x.csv");
    let id = Int64Array::from_iter_values(0..2000);
    let c = || -> ArrayRef { Arc::new(Float64Array::from_iter_values((0..2000).map(f64::from))) };
    let with_id = parquet(&batch(&[("id", Arc::new(id)), ("c0", c()), ("c1", c())]), 999);
    fs::create_dir(f.path("days")).unwrap();
    f.write("days/1.parquet", &with_id).write("x.parquet", &with_id);
    f.ok("plan x.csv -o p.nys --landmarks 20");
    for (seed, part) in ["s", "day1", "day2", "site-1", "site-2", "yesterday"].iter().enumerate() {
        f.ok(&format!(
            "generate gmm --rows 200 --dims 2 --clusters 3 --seed {seed} -o part.csv --force"
        ));
        f.ok(&format!("sketch part.csv --plan p.nys -o {part}.nys"));
    }
    fs::copy(f.path("yesterday.nys"), f.path("today.nys")).unwrap();
    for (i, part) in ["day1", "day2", "site-1", "site-2", "s"].iter().enumerate() {
        let day = format!("days/2026-02-0{}.nys", i + 1);
        fs::copy(f.path(&format!("{part}.nys")), f.path(&day)).unwrap();
    }
    for (month, parts) in [("january", ["day1", "day2"]), ("february", ["site-1", "site-2"])] {
        fs::create_dir(f.path(month)).unwrap();
        for (country, part) in ["at", "be"].iter().zip(parts) {
            let file = format!("{month}/{country}.nys");
            fs::copy(f.path(&format!("{part}.nys")), f.path(&file)).unwrap();
        }
    }
    f.ok("merge day1.nys day2.nys -o week.nys");
    f.ok("sketch x.csv --plan p.nys --folds 4 -o folded.nys");
    clinics(&f);
    for (task, k, name) in [("kmeans", 3, "model"), ("kmeans", 5, "m5"), ("gmm", 3, "mixture")] {
        f.ok(&format!("fit {task} s.nys -k {k} -o {name}.json"));
    }
    f
}

/// Two parties with their keys, a sketch of one and the masked sketches of both.
fn clinics(f: &Folder) {
    let ids = ["a", "b"];
    let list: String = ids.iter().map(|id| f.ok(&format!("keys new {id} -o {id}.key"))).collect();
    f.write("keys.toml", list);
    f.ok("plan --private --bounds c0=-9..9,c1=-9..9 -o open.nys --landmarks 20");
    f.ok("sketch x.csv --plan open.nys -o private-s.nys");
    fs::create_dir(f.path("masked")).unwrap();
    let session = f.ok("keys session");
    for (id, rows) in ids.iter().zip(["x.csv", "part.csv"]) {
        f.ok(&format!("sketch {rows} --plan open.nys -o {id}.nys"));
        f.ok(&format!(
            "mask {id}.nys --parties keys.toml --key {id}.key --session {session} -o \
             masked/{id}.nys"
        ));
    }
}

/// Every example of every help text runs as it is written.
#[test]
fn the_examples_of_the_help_run() {
    let bin = assert_cmd::cargo::cargo_bin("nysketch");
    let path = format!("{}:{}", bin.parent().unwrap().display(), std::env::var("PATH").unwrap());
    let help = Folder::new().ok("--help");
    let commands: Vec<&str> = help
        .lines()
        .skip_while(|l| !l.starts_with("Commands:"))
        .skip(1)
        .take_while(|l| !l.is_empty())
        .filter(|l| l.starts_with("  ") && !l.starts_with("   "))
        .filter_map(|l| l.split_whitespace().next())
        .filter(|c| *c != "help")
        .collect();
    assert!(commands.len() >= 12, "{commands:?}");
    for command in commands {
        let f = folder_of_the_examples();
        let help = f.ok(&format!("{command} --help"));
        let purpose =
            help.lines().take_while(|l| !l.starts_with("Usage")).filter(|l| !l.is_empty());
        assert!(purpose.count() >= 2, "{command}: {help}");
        let examples: Vec<&str> = help
            .lines()
            .skip_while(|l| *l != "Examples:")
            .skip(1)
            .take_while(|l| l.starts_with("  "))
            .collect();
        assert!(!examples.is_empty(), "{command} has no examples");
        for example in examples {
            // As it is written, but smaller.
            let example = match example.trim() {
                e if e.starts_with("nysketch generate") => {
                    format!("{} --force", e.replace("1000000", "1000"))
                }
                e if e.starts_with("nysketch demo --rows") => e.replace("500000", "5000"),
                "nysketch demo" => "nysketch demo --rows 5000".into(),
                e => e.to_string(),
            };
            let run = std::process::Command::new("sh")
                .args(["-c", &example])
                .current_dir(f.path(""))
                .env("PATH", &path)
                .env("NYSKETCH_LEDGERS", f.ledgers())
                .output()
                .unwrap();
            let said = String::from_utf8_lossy(&run.stderr).into_owned();
            assert!(run.status.success(), "{example}\n{said}");
        }
    }
}

/// With `--json`, an error is one object on stdout with a code, a message and fields.
#[test]
fn errors_are_json_too() {
    let f = Folder::new();
    f.write("x.csv", "a,b\n1,2\n3,\n");
    let error = |code: i32, line: &str| {
        let output = f.command(line).assert().code(code).get_output().stdout.clone();
        let json: serde_json::Value = serde_json::from_slice(&output).unwrap();
        json["error"].clone()
    };
    let missing = error(1, "sketch x.csv --missing error -o s.nys --json");
    assert_eq!(missing["code"], "non_finite");
    let place = (&missing["fields"]["row"], &missing["fields"]["column"]);
    assert_eq!(place, (&2.into(), &"b".into()));
    let landmarks = error(2, "sketch x.csv --missing partial --landmarks 0 -o s.nys --json");
    assert_eq!(landmarks["code"], "parameter");
    assert_eq!(landmarks["fields"]["parameter"], "landmarks");
    assert!(landmarks["message"].as_str().unwrap().contains("--landmarks"));
    assert_eq!(error(1, "sketch nowhere.csv -o s.nys --json")["code"], "cannot_read");
    f.write("file.nys", "no sketch");
    assert_eq!(error(1, "inspect file.nys --json")["code"], "failed");
}
