//! `sketch --folds`, `fit --intervals` and `fit --cross-validate`.

mod common;

use common::Folder;
use std::fmt::Write;

/// Returns two clusters of users in x and y.
fn visits(rows: usize) -> String {
    let mut text = String::from("user,x,y\n");
    for i in 0..rows {
        let wave = |step: f64| (i as f64 * step).sin();
        let user = if i % 40 == 7 { String::new() } else { format!("u{}", i % 40) };
        let far = if i % 3 == 0 { 10.0 } else { 0.0 };
        writeln!(text, "{user},{},{}", far + wave(0.77), 2.0 * wave(1.3) - far).unwrap();
    }
    text
}

fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("visits.csv", visits(300));
    folder
}

#[test]
fn folds_are_kept_told_and_left_out_again() {
    let f = folder();
    let told = f.ok("sketch visits.csv --columns x,y --landmarks 20 --folds 4 -o folded.nys");
    assert!(told.contains("folds: 4 by the values of rows, of "), "{told}");
    f.ok("sketch visits.csv --plan folded.nys -o plain.nys");
    let inspected = f.json("inspect folded.nys");
    assert_eq!(inspected["folds"]["count"], 4);
    assert!(inspected["folds"]["by"].is_null());
    assert!(f.ok("inspect folded.nys").contains("4 by the values of rows"));
    // Dropping the folds gives the bytes of a sketch without folds. Both contain the retained rows.
    f.ok("merge folded.nys --drop-folds -o dropped.nys");
    f.ok("sketch visits.csv --plan folded.nys --embed-witnesses -o embedded.nys");
    assert_eq!(f.read("dropped.nys"), f.read("embedded.nys"));
    f.fails(1, "merge folded.nys plain.nys -o x.nys", &["4 folds by content", "without folds"]);
    f.fails(1, "merge folded.nys plain.nys -o x.nys", &["--drop-folds"]);
    f.fails(1, "subtract folded.nys plain.nys -o x.nys", &["without folds"]);
    f.ok("subtract folded.nys plain.nys --drop-folds -o none.nys");
}

#[test]
fn folds_by_a_column() {
    let f = folder();
    let told = f.ok("sketch visits.csv --landmarks 20 --folds 4 --fold-by user -o folded.nys");
    assert!(told.contains("folds: 4 by 'user', of "), "{told}");
    assert_eq!(f.json("inspect folded.nys")["folds"]["by"], "user");
    // Sketching in two parts, with a separate plan and in another order of columns, gives the same
    // bytes.
    f.ok("plan visits.csv --columns x,y --landmarks 20 -o plan.nys");
    f.ok("sketch visits.csv --plan plan.nys --folds 4 --fold-by user -o whole.nys");
    let text = visits(300);
    let (head, rows) = text.split_once('\n').unwrap();
    let rows: Vec<&str> = rows.lines().rev().collect();
    for (name, part) in [("a.csv", &rows[..100]), ("b.csv", &rows[100..])] {
        f.write(name, format!("{head}\n{}\n", part.join("\n")));
        f.ok(&format!("sketch {name} --plan plan.nys --folds 4 --fold-by user -o {name}.nys"));
    }
    f.ok("merge a.csv.nys b.csv.nys -o merged.nys");
    assert_eq!(f.read("merged.nys"), f.read("whole.nys"));
    // A run with a checkpoint gives the same bytes.
    f.ok("sketch visits.csv --plan plan.nys --folds 4 --fold-by user -o saved.nys --checkpoint \
        c.ckpt");
    assert_eq!(f.read("saved.nys"), f.read("whole.nys"));
}

#[test]
fn groups_with_folds() {
    let f = folder();
    f.ok("sketch visits.csv --by user --skip-invalid --landmarks 20 --folds 3 -o users/");
    let one = f.json("inspect users/u1.nys");
    assert_eq!((&one["folds"]["count"], &one["rows"]), (&3.into(), &8.into()));
    f.fails(
        2,
        "sketch visits.csv --by user --folds 3 --fold-by x -o other/",
        &["--fold-by", "--by"],
    );
}

#[test]
fn what_cannot_be_folded_is_said() {
    let f = folder();
    for count in ["1", "1000"] {
        let line = format!("sketch visits.csv --columns x,y --folds {count} -o s.nys");
        f.fails(2, &line, &["--folds must be between 2 and 64"]);
    }
    f.fails(1, "sketch visits.csv --folds 4 --fold-by nobody -o s.nys", &["no column 'nobody'"]);
    f.fails(2, "sketch visits.csv --fold-by user -o s.nys", &["--folds"]);
    f.ok("plan visits.csv --columns x,y --landmarks 20 -o plan.nys");
    let measured = "sketch visits.csv --plan plan.nys --folds 4 --fold-by x -o s.nys";
    f.fails(2, measured, &["--fold-by", "does not measure"]);
    // Three users cannot fill sixteen folds.
    let few: Vec<String> = (0..60).map(|i| format!("u{},{},{}", i % 3, i % 7, i % 11)).collect();
    f.write("few.csv", format!("user,x,y\n{}\n", few.join("\n")));
    let line = "sketch few.csv --landmarks 5 --folds 16 --fold-by user -o few.nys";
    let assert = f.command(line).assert().success();
    let told = String::from_utf8(assert.get_output().stderr.clone()).unwrap();
    assert!(told.contains("of 16 folds are empty: 'user' has too few"), "{told}");
    f.fails(1, "fit kmeans few.nys -k 2 -o m.json --intervals", &["rows in every fold"]);
    f.fails(1, "fit kmeans few.nys -k 2..3 -o m.json --cross-validate", &["rows in every fold"]);
    f.ok("merge few.nys --drop-folds -o plain.nys");
    f.fails(1, "fit kmeans plain.nys -k 2 -o m.json --intervals", &["--intervals", "--folds 16"]);
    f.fails(1, "fit kmeans plain.nys -k 2..3 -o m.json --cross-validate", &["--folds 16"]);
    f.fails(2, "fit kmeans plain.nys -k 2 -o m.json --confidence 0.9", &["--intervals"]);
}

#[test]
fn intervals_are_printed_and_kept() {
    let f = folder();
    f.ok("sketch visits.csv --columns x,y --landmarks 20 --folds 8 -o folded.nys");
    let told = f.ok("fit kmeans folded.nys -k 2 -o model.json --intervals");
    assert!(told.contains("±") && told.contains("95 % interval from 8 folds"), "{told}");
    assert_eq!(f.ok("inspect model.json").matches('±').count(), told.matches('±').count());
    let json = f.json("fit kmeans folded.nys -k 2 -o model.json --intervals --confidence 0.5");
    let found = &json["intervals"];
    assert_eq!((&found["folds"], &found["confidence"]), (&8.into(), &0.5.into()));
    // A third of the rows is distant. The order of the rows is fixed, so the share is known.
    for share in found["weights"].as_array().unwrap() {
        let [low, high] = [0, 1].map(|end| share[end].as_f64().unwrap());
        assert!(low < high && (high - low) < 0.2, "{share}");
    }
    assert_eq!(found["stability"], serde_json::json!([1.0, 1.0]));
    let found = &f.json("fit gmm folded.nys -k 2 -o model.json --intervals")["intervals"];
    assert_eq!(found["centres"][0].as_array().unwrap().len(), 2);
    let found = &f.json("fit pca folded.nys -k 2 -o model.json --intervals")["intervals"];
    assert_eq!(found["explained_variance"].as_array().unwrap().len(), 2);
    assert!(f.ok("inspect model.json").contains("±"));
    // The clusters of a ring can be cut anywhere, so they are unstable.
    let ring: Vec<String> = (0..600)
        .map(|i| f64::from(i) * 0.618_034 * std::f64::consts::TAU)
        .map(|angle| format!("{},{}", angle.cos(), angle.sin()))
        .collect();
    f.write("ring.csv", format!("x,y\n{}\n", ring.join("\n")));
    f.ok("sketch ring.csv --landmarks 60 --folds 8 -o ring.nys");
    let told = f.ok("fit kmeans ring.nys -k 5 -o model.json --intervals");
    assert!(told.contains("unstable"), "{told}");
}

#[test]
fn cross_validation_is_printed() {
    let f = folder();
    f.ok("sketch visits.csv --columns x,y --landmarks 20 --folds 8 -o folded.nys");
    let told = f.ok("fit gmm folded.nys -k 1..3 -o model.json --cross-validate");
    assert!(told.contains("8 folds held out in turn; landmarks and scale are given"), "{told}");
    let found = &f.json("fit kmeans folded.nys -k 1..4 -o model.json --cross-validate");
    let found = &found["cross_validation"];
    let risks: Vec<f64> =
        found["points"].as_array().unwrap().iter().map(|p| p["risk"].as_f64().unwrap()).collect();
    assert!(risks[0] > 5.0 * risks[1] && found["best_k"].as_u64() >= Some(2), "{found}");
    f.ok("fit kmeans folded.nys -k 2 -o model.json --cross-validate");
    f.fails(2, "fit pca folded.nys -k 2 -o model.json --cross-validate", &["pca"]);
}
