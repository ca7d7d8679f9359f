//! Small files of unusual shapes: many columns, bandwidths, categories. No command takes memory out
//! of proportion to
//! them, and none looks up every name among all others.
//!
//! `cargo test -p nysketch-cli --test large -- --nocapture` shows what each command takes.
#![cfg(target_os = "linux")]

mod common;

use common::Folder;
use nysketch::recipe::MAX_CATEGORIES;
use nysketch::{Collect, Mixture, PlanParams, Sketch, SketchParams, Table, plan_for};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Longer than any of these commands takes, by far, on a busy machine. With a look at every pair of
/// columns they would
/// take minutes.
const LIMIT: Duration = Duration::from_secs(120);

/// Writes two sketches of parts of a table: `a.nys` and `b.nys`.
fn sketches(f: &Folder, table: &Table, params: PlanParams) {
    let plan = Arc::new(plan_for(table, params).unwrap().plan);
    let sketch = Sketch::of(&plan, table, SketchParams::default(), &()).unwrap();
    f.write("a.nys", sketch.to_bytes());
    let mut twice = sketch.clone();
    twice.merge(&sketch).unwrap();
    f.write("b.nys", twice.to_bytes());
}

/// Runs the commands in processes that cannot take more memory than ten times the file and what the
/// program itself takes.
fn in_proportion(f: &Folder) {
    let bytes = f.read("a.nys").len() as u64;
    // Address space, of which the program and the stacks and heaps of its threads take a part
    // without using it.
    let limit = (10 * bytes + (500 << 20)) / 1024;
    for line in [
        "inspect a.nys",
        "inspect a.nys --json",
        "merge a.nys b.nys -o c.nys",
        "subtract b.nys a.nys -o c.nys",
        "diff a.nys b.nys --draws 19",
        "report b.nys -o r.html --most-clusters 3",
        "report b.nys --against a.nys -o d.html --most-clusters 3",
    ] {
        let start = Instant::now();
        let script = format!("ulimit -v {limit}; exec \"$0\" {line} --threads 2 --force -q");
        let mut command = assert_cmd::Command::new("sh");
        let program = assert_cmd::cargo::cargo_bin("nysketch");
        command.args(["-c", &script]).arg(program).current_dir(f.path("")).timeout(LIMIT);
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        eprintln!("{bytes} bytes, {line}: {:.2} s", start.elapsed().as_secs_f64());
        assert_eq!(output.status.code(), Some(0), "{line}: {said}");
    }
}

#[test]
fn many_columns() {
    let f = Folder::new();
    let d = 60_000;
    let values = (0..4 * d).map(|i| ((i * 7919) % 1000) as f64).collect();
    let table = Table::unnamed(d, values).unwrap();
    let collect = Collect { cells: true, kernel: false, moments: false };
    sketches(&f, &table, PlanParams::default().landmarks(2).witnesses(0).collect(collect));
    in_proportion(&f);
}

#[test]
fn many_bandwidths() {
    let f = Folder::new();
    let table = Table::unnamed(2, Mixture::new(2, 3, 3.0, 7).unwrap().rows(0, 300).values).unwrap();
    let bandwidths = |count: i32| -> Vec<f64> { (0..count).map(|i| 1.01f64.powi(i)).collect() };
    let params = |count| PlanParams::default().landmarks(100).bandwidths(bandwidths(count));
    let refused = plan_for(&table, params(1025)).unwrap_err().to_string();
    assert!(refused.contains("at most 1024"), "{refused}");
    sketches(&f, &table, params(1024));
    in_proportion(&f);
}

#[test]
fn many_categories() {
    let f = Folder::new();
    let rows = 40;
    let values: Vec<f64> = (0..rows).map(|i| f64::from(i * 37 % 11)).collect();
    let table = |categories: usize| {
        let mut table = Table::unnamed(1, values.clone()).unwrap();
        for c in 0..categories {
            let texts: Vec<Option<&str>> =
                (0..rows as usize).map(|i| Some(["u", "v"][i / (c % 7 + 1) % 2])).collect();
            table = table.with_category(&format!("category {c}"), &texts).unwrap();
        }
        table
    };
    let params = || PlanParams::default().landmarks(20).witnesses(10);
    let refused = plan_for(&table(MAX_CATEGORIES + 1), params()).unwrap_err().to_string();
    assert!(refused.contains("at most 1024 categories"), "{refused}");
    sketches(&f, &table(MAX_CATEGORIES), params());
    in_proportion(&f);
    f.ok("fit gmm a.nys -k 2 -o m.json");
    f.ok("inspect m.json");
}
