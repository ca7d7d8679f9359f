//! Adding a row to a file moves the sums of a private plan by at most their sensitivity, and never
//! decides whether the file is
//! read.
//!
//! Each case draws a private plan, a table D, rows r and their positions, writes D, D + r and r as
//! files, and reads all three
//! with the library functions of `nysketch sketch --plan`. For some cases the command reads them
//! too. `NYSKETCH_CASES` sets
//! the number of cases, and `NYSKETCH_SEED` the first seed:
//!
//! ```console
//! $ NYSKETCH_CASES=20000 cargo test --release -p nysketch-cli --test neighbours one_row
//! ```
//!
//! The test fails after each of these changes: `rowwise(false)` in `ReadOptions::for_plan`, with or
//! without types guessed from
//! values; list lengths taken from the first rows; an error for a key without a text; a format
//! taken from the first bytes of
//! a file without a header; skipped rows counted in the sums; numbers above the bounds left
//! as they are; a wrapping addition in `Private::reach`.

mod common;
#[path = "neighbours/draw.rs"]
mod draw;
#[path = "neighbours/plans.rs"]
mod plans;
#[path = "neighbours/text.rs"]
mod text;
#[path = "neighbours/typed.rs"]
mod typed;

use common::Folder;
use draw::Rng;
use num_bigint::BigUint;
use nysketch::privacy::Mechanism;
use nysketch::{Plan, Sketch, SketchParams};
use nysketch_tables::{Dataset, Extras, Format, Header, ReadOptions};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Cases of a usual run. Twenty thousand take some minutes.
const CASES: u64 = 1500;
/// Cases that share a plan: making a plan takes longer than using it.
const CASES_OF_A_PLAN: u64 = 8;
/// One in this many cases is also read by the command.
const COMMAND_EVERY: u64 = 60;

/// How the tables of a case are read.
#[derive(Debug, Clone, Default)]
struct Reading {
    format: Option<Format>,
    delimiter: Option<u8>,
    no_header: bool,
    threads: usize,
}

/// A table, the table with some rows more, and these rows alone.
struct Case {
    /// For messages.
    what: String,
    reading: Reading,
    /// The files of each table, as names and contents.
    before: Vec<(String, Vec<u8>)>,
    after: Vec<(String, Vec<u8>)>,
    alone: Vec<(String, Vec<u8>)>,
    /// Whether the new rows change the types that a guessing reader would choose.
    guessed_otherwise: bool,
}

/// Reads files with the library functions of the command.
fn sketch_of(plan: &Arc<Plan>, files: &[PathBuf], how: &Reading) -> Result<Sketch, String> {
    let header = if how.no_header { Header::Absent } else { Header::Expected };
    let key = plan.people().map(|people| people.column.clone());
    let options = ReadOptions::default()
        .format(how.format)
        .header(header)
        .delimiter(how.delimiter)
        .for_plan(plan)
        .extras(Extras::default().key(key));
    let table = Dataset::open(files, &options).map_err(|e| e.to_string())?;
    let params = SketchParams::default().threads(how.threads);
    Sketch::of(plan, &table, params, &()).map_err(|e| e.to_string())
}

/// Writes the files of a table into a folder of its own.
fn written(folder: &Path, files: &[(String, Vec<u8>)]) -> Vec<PathBuf> {
    std::fs::create_dir_all(folder).unwrap();
    let write = |(name, bytes): &(String, Vec<u8>)| {
        let path = folder.join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    };
    files.iter().map(write).collect()
}

/// The square of the distance between the sums of a mechanism.
fn moved(mechanism: Mechanism, a: &Sketch, b: &Sketch) -> BigUint {
    let pairs = mechanism.exact(a).unwrap().into_iter().zip(mechanism.exact(b).unwrap());
    pairs.map(|(a, b)| BigUint::from((a - b).unsigned_abs()).pow(2)).sum()
}

/// Returns whether any sum differs. Panics if the sums of a mechanism differ by more than its
/// sensitivity.
fn differs(what: &str, plan: &Plan, before: &Sketch, after: &Sketch) -> bool {
    let rows = plan.people().map_or(1, |people| people.rows);
    let mut differs = false;
    for mechanism in Mechanism::of_plan(plan) {
        let moved = moved(mechanism, before, after);
        let claimed = mechanism.sensitivity(plan).unwrap() * rows.pow(2);
        assert!(moved <= claimed, "{what}: {mechanism:?} moves by {moved} > {claimed}");
        differs |= moved > BigUint::ZERO;
    }
    differs
}

/// Checks a case, and returns whether r changes the sums or the types that a guessing reader would
/// choose.
fn is_effective(plan: &Arc<Plan>, case: &Case, folder: &Folder, command: bool) -> bool {
    let read = |files: &[(String, Vec<u8>)], name: &str| {
        let paths = written(&folder.path(name), files);
        sketch_of(plan, &paths, &case.reading)
    };
    let (before, after) = (read(&case.before, "before"), read(&case.after, "after"));
    let alone = read(&case.alone, "alone");
    let what = &case.what;
    if command {
        by_command(plan, case, folder, &before, "before");
        by_command(plan, case, folder, &after, "after");
    }
    let changed = match (&before, &after, &alone) {
        (Ok(before), Ok(after), Ok(alone)) => {
            let changed = differs(what, plan, before, after);
            // An invalid row leaves no trace.
            assert!(changed || before.to_bytes() == after.to_bytes(), "{what}: a trace is left");
            // Each row adds the same as in a table of its own. The new rows belong to a new person.
            let mut both = before.clone();
            both.merge_other_people(alone).unwrap();
            assert!(both.to_bytes() == after.to_bytes(), "{what}: rows depend on others");
            changed
        }
        // Refused for the header or the types.
        (Err(_), Err(_), Err(_)) => false,
        _ => {
            let outcomes = [before, after, alone].map(|found| found.err());
            panic!("{what}: rows decide whether it is read: {outcomes:?}")
        }
    };
    for name in ["before", "after", "alone"] {
        std::fs::remove_dir_all(folder.path(name)).unwrap();
    }
    changed || case.guessed_otherwise
}

/// Checks that the command makes the same sketch, or refuses the same files.
fn by_command(
    plan: &Plan,
    case: &Case,
    folder: &Folder,
    expected: &Result<Sketch, String>,
    name: &str,
) {
    folder.write("p.nys", plan.to_bytes());
    let files = if name == "before" { &case.before } else { &case.after };
    let mut command = folder.command("sketch --plan p.nys -o s.nys --force");
    command.args(files.iter().map(|(file, _)| format!("{name}/{file}")));
    if case.reading.no_header {
        command.arg("--no-header");
    }
    if let Some(delimiter) = case.reading.delimiter {
        command.arg(format!("--delimiter={}", char::from(delimiter)));
    }
    if let Some(format) = case.reading.format {
        command.args(["--format", if format == Format::Csv { "csv" } else { "npy" }]);
    }
    let output = command.output().unwrap();
    let (code, what) = (output.status.code(), &case.what);
    let told = String::from_utf8_lossy(&output.stderr);
    match expected {
        Ok(sketch) => {
            assert_eq!(code, Some(0), "{what}: {told}");
            assert_eq!(folder.read("s.nys"), sketch.to_bytes(), "{what}");
        }
        Err(error) => assert_eq!(code, Some(1), "{what}: {error}, but {told}"),
    }
}

fn from_environment(name: &str, usual: u64) -> u64 {
    std::env::var(name).map_or(usual, |text| text.parse().unwrap())
}

#[test]
fn one_row_moves_no_sum_beyond_its_sensitivity_and_decides_nothing() {
    let (cases, seed) =
        (from_environment("NYSKETCH_CASES", CASES), from_environment("NYSKETCH_SEED", 0));
    let folder = Folder::new();
    let mut plan = None;
    let (mut effective, mut by_kind) = (0, [[0u64; 2]; 4]);
    for number in 0..cases {
        let mut rng = Rng::new(seed + number);
        if number % CASES_OF_A_PLAN == 0 || plan.is_none() {
            plan = Some(Arc::new(plans::random(&mut rng)));
        }
        let Some(plan) = &plan else { continue };
        let kind = [0, 0, 0, 1, 2, 3][rng.below(6)];
        let what = format!("case {}", seed + number);
        let case = match kind {
            0 => text::case(&mut rng, plan, what),
            1 => typed::parquet(&mut rng, plan, what),
            2 => typed::arrow(&mut rng, plan, what),
            _ => typed::npy(&mut rng, plan, what),
        };
        let command = number % COMMAND_EVERY == 0;
        let counts = is_effective(plan, &case, &folder, command);
        effective += u64::from(counts);
        by_kind[kind][0] += 1;
        by_kind[kind][1] += u64::from(counts);
    }
    println!("{effective} of {cases} cases are effective; of csv, Parquet, Arrow, npy {by_kind:?}");
    // Otherwise the test would show little.
    assert!(3 * effective >= cases, "{effective} of {cases} cases are effective: {by_kind:?}");
}

/// A folder with a plan for smokers and their age.
fn smokers() -> Folder {
    let folder = Folder::new();
    folder.ok("plan --private --bounds smoker=0..1,age=0..100 --landmarks 20 -o p.nys");
    folder
}

/// Returns the number of rows that count.
fn rows_of(folder: &Folder, rows: &[&str]) -> u64 {
    folder.write("x.csv", format!("smoker,age\n{}", rows.concat()));
    let told = folder.json("sketch x.csv --plan p.nys -o s.nys --force");
    let sketch = Sketch::from_bytes(&folder.read("s.nys")).unwrap();
    assert_eq!(sketch.skipped(), 0);
    assert_eq!(told["rows"], sketch.rows());
    sketch.rows()
}

/// A reader that decides types by majority reads `true` as a number in the first table, and as text
/// after one row more: a release
/// then has about 15 rows instead of 20,100.
#[test]
fn truth_values_are_numbers_whatever_is_above_them() {
    let folder = smokers();
    let unknown = "unknown,60\n".repeat(100);
    let rest = "true,50\nfalse,40\n".repeat(10_050);
    let rows = rows_of(&folder, &[&unknown, &rest]);
    assert_eq!(rows, 20_100);
    assert_eq!(rows_of(&folder, &["unknown,60\n", &unknown, &rest]), rows);
    assert_eq!(rows_of(&folder, &["true,60\n", &unknown, &rest]), rows + 1);
    // 99 and 100 sevens before truth values.
    let (sevens, truths) = ("7,50\n".repeat(99), "true,40\n".repeat(1000));
    assert_eq!(rows_of(&folder, &[&sevens, &truths]), 1099);
    assert_eq!(rows_of(&folder, &["7,50\n", &sevens, &truths]), 1100);
}

#[test]
fn no_row_makes_a_file_unreadable() {
    let folder = smokers();
    let good = "1,50\n0,40\n".repeat(5);
    let dates = "2013-01-31,50\n".repeat(7);
    for odd in [
        dates.as_str(),
        "1,2,3\n",
        "1\n",
        "\"1,50\n",
        "1,\"50\n",
        "\u{0},\n",
        "inf,50\n",
        "1e999,50\n",
        "\u{feff}x,50\n",
    ] {
        for rows in [[odd, &good], [&good, odd]] {
            assert_eq!(rows_of(&folder, &rows), 10, "{odd:?}");
        }
        assert_eq!(rows_of(&folder, &[odd]), 0, "{odd:?}");
    }
    // Numbers that are too large count at the bounds.
    assert_eq!(rows_of(&folder, &["1e300,1e308\n-7,1\n"]), 2);
    assert_eq!(rows_of(&folder, &[]), 0);
}

/// A file is refused for its header only, which is not a row.
#[test]
fn only_the_header_is_refused() {
    let folder = smokers();
    for text in
        ["1,50\n", "0.5,50\n1,2\n", "smoker\n1\n", "smoker,agee\n1,2\n", "\"smoker,age\n1,2\n"]
    {
        folder.write("x.csv", text);
        folder.fails(1, "sketch x.csv --plan p.nys -o s.nys", &["x.csv"]);
    }
    // Columns with names like numbers.
    folder.ok("plan --private --bounds 1=0..1,50=0..100 --landmarks 5 -o n.nys");
    folder.write("x.csv", "1,50\n1,50\n");
    assert_eq!(folder.json("sketch x.csv --plan n.nys -o s.nys")["rows"], 1);
    // A file without a header may be empty.
    for (text, rows) in
        [("", 0), ("1,50\n", 1), ("PAR1,50\n1,2\n", 1), ("{\"a\",50\n1,2\n1,2,3\n", 1)]
    {
        folder.write("x.csv", text);
        let told = folder.json("sketch x.csv --plan p.nys --no-header -o s.nys --force");
        assert_eq!(told["rows"], rows, "{text:?}");
    }
}

#[test]
fn the_number_of_invalid_rows_is_shown_and_not_kept() {
    let folder = smokers();
    folder.write("x.csv", "smoker,age\n1,50\nx,2\n1,2,3\n");
    let told = folder.json("sketch x.csv --plan p.nys -o s.nys");
    assert_eq!((&told["rows"], &told["skipped"]), (&1.into(), &2.into()));
    folder.write("y.csv", "smoker,age\n1,50\n");
    folder.ok("sketch y.csv --plan p.nys -o t.nys");
    assert_eq!(folder.read("s.nys"), folder.read("t.nys"));
}
