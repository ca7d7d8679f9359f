//! Learning with the real binary: fit, predict, evaluate, demo.

mod common;

use common::Folder;
use serde_json::Value;

/// Makes a folder with 2,000 rows of 4 clusters in 3 columns, their labels and their sketch.
fn learned() -> Folder {
    let f = Folder::new();
    f.ok(
        "generate gmm --rows 2000 --dims 3 --clusters 4 --separation 4 --seed 2 -o x.npy --labels \
        y.npy",
    );
    f.ok("sketch x.npy -o s.nys --landmarks 100");
    f
}

#[test]
fn learning_from_a_sketch() {
    let f = learned();
    for (task, decoder) in [
        ("kmeans", "auto"),
        ("kmeans", "kernel"),
        ("kmedians", "auto"),
        ("gmm", "auto"),
        ("gmm", "kernel"),
    ] {
        let report = f.json(&format!("fit {task} s.nys -k 4 -o m.json --decoder {decoder}"));
        assert_eq!(report["k"], 4);
        let covariance = match (task, decoder) {
            ("gmm", "auto") => "full".into(),
            ("gmm", _) => "diag".into(),
            _ => Value::Null,
        };
        assert_eq!(report["covariance"], covariance);
        assert!(report["estimated_risk"].as_f64().unwrap() > 0.0);
        let e = f.json("evaluate m.json x.npy --labels y.npy");
        assert_eq!(e["rows"], 2000);
        assert!(e["ari"].as_f64().unwrap() > 0.98, "{task} {decoder} {e}");
        assert!(e["nmi"].as_f64().unwrap() > 0.95, "{e}");
        assert_eq!(e.get("nll").is_some(), task == "gmm");
        // Three unit variances give a mean squared distance near 3.
        assert!((e["mse"].as_f64().unwrap() - 3.0).abs() < 0.3, "{e}");
    }
    // A known covariance may be a number, variances, or a matrix, with or without names.
    f.write("variances.csv", "1,1,1\n");
    f.write("matrix.csv", "c0,c1,c2\n1,0.01,0\n0.01,1,0\n0,0,1\n");
    for (known, covariances) in
        [("1", "diagonal"), ("variances.csv", "diagonal"), ("matrix.csv", "tied")]
    {
        let text = f.ok(&format!("fit gmm s.nys -k 4 -o m.json --known-covariance {known}"));
        assert!(text.contains(&format!("4 components, {covariances} covariances")), "{text}");
        let e = f.json("evaluate m.json x.npy --labels y.npy");
        assert!(e["ari"].as_f64().unwrap() > 0.98, "{known} {e}");
    }
    assert!(f.ok("inspect m.json").contains("tied covariances"));
    f.ok("fit kmeans s.nys -k 4 -o c.json --decoder clompr --separation 1 --radius 100");
    f.ok("fit pca s.nys -k 2 -o p.json");
    f.ok("predict p.json x.npy -o scores.csv");
    assert!(String::from_utf8(f.read("scores.csv")).unwrap().starts_with("pc1,pc2\n"));
}

#[test]
fn the_curve_over_k_is_printed_and_drawn() {
    let f = learned();
    let curve = f.json("fit kmeans s.nys -k 2..8 -o m.json --plot curve.svg");
    assert_eq!(curve["suggested_k"], 4);
    assert_eq!(curve["curve"].as_array().unwrap().len(), 7);
    assert!(String::from_utf8(f.read("curve.svg")).unwrap().contains("suggested: k = 4"));
    let model: Value = serde_json::from_slice(&f.read("m.json")).unwrap();
    assert_eq!(model["centres"].as_array().unwrap().len(), 4);
    let silhouette = |i: usize| curve["curve"][i]["silhouette"].as_f64().unwrap();
    assert!(silhouette(2) > silhouette(6));
    let text = f.ok("fit gmm s.nys -k 3..5 -o g.json");
    assert!(text.contains("<- suggested") && text.contains("BIC"), "{text}");
    // A k at the end of the range is never clear.
    let end = f.json("fit kmeans s.nys -k 2..4 -o e.json");
    assert_eq!(end["suggested_k"], 4);
    assert_eq!((end["clear"].as_bool(), end["at_end"].as_bool()), (Some(false), Some(true)));
    f.ok("sketch x.npy -o f.nys --features fourier");
    f.fails(2, "fit kmeans f.nys -k 2..4 -o t.json", &["f.nys", "Fourier"]);
    f.ok("sketch x.npy -o k.nys --landmarks 50 --collect kernel");
    f.fails(1, "fit gmm k.nys -k 2..4 -o t.json", &["k.nys", "needs cells"]);
    f.fails(1, "fit kmeans s.nys -k 2..101 -o t.json", &["k = 101"]);
    f.fails(2, "fit kmeans s.nys -k 2..4 -o t.json --plot t.pdf", &[".svg or .png"]);
    f.json("fit kmeans s.nys -k 2..4 -o t.json --plot t.png");
    assert!(f.read("t.png").starts_with(b"\x89PNG"));
    f.fails(2, "fit kmeans s.nys -k 8..2 -o t.json", &["-k must be"]);
    f.fails(2, "fit kmeans s.nys -k many -o t.json", &["-k must be"]);
}

#[test]
fn one_model_is_drawn_too() {
    let f = learned();
    let svg = |line: &str| {
        f.ok(line);
        String::from_utf8(f.read("p.svg")).unwrap()
    };
    let kmeans = svg("fit kmeans s.nys -k 3 -o m.json --plot p.svg");
    for words in ["cells of 2,000 rows", "standard deviations from the mean", ">c0<"] {
        assert!(kmeans.contains(words), "{words}");
    }
    assert!(svg("fit gmm s.nys -k 2 -o m.json --plot p.svg").contains("principal axis"));
    assert!(svg("fit pca s.nys -k 2 -o m.json --plot p.svg").contains("share of the variance"));
    f.ok("fit kmeans s.nys -k 3 -o m.json --plot p.png");
    assert!(f.read("p.png").starts_with(b"\x89PNG"));
    // Without a map, only the profiles are drawn.
    f.ok("sketch x.npy -o k.nys --landmarks 50 --collect kernel,moments");
    assert!(!svg("fit kmeans k.nys -k 3 -o m.json --plot p.svg").contains("principal axis"));
    f.ok("sketch x.npy -o k.nys --landmarks 50 --collect kernel");
    f.fails(2, "fit kmeans k.nys -k 3 -o t.json --plot t.svg", &["--plot", "cells or moments"]);
}

#[test]
fn names_leave_pictures_well_formed() {
    let f = Folder::new();
    let rows: String = (0..300).map(|i| format!("{},{},{}\n", i % 7, i % 11, i % 3)).collect();
    let long = "n".repeat(300);
    f.write("odd.csv", format!("a\u{1}\u{1b}b,<&\"\"'>,{long}\n{rows}"));
    f.ok("sketch odd.csv -o s.nys --landmarks 20");
    f.ok("fit kmeans s.nys -k 2 -o m.json --plot p.svg");
    let svg = String::from_utf8(f.read("p.svg")).unwrap();
    assert!(svg.chars().all(|c| c == '\n' || !c.is_control()), "control characters are not XML");
    assert!(svg.contains("a␁␛b") && svg.contains("&lt;&amp;") && !svg.contains(&long));
}

#[test]
fn predictions_keep_every_row_in_order() {
    let f = learned();
    f.ok("fit gmm s.nys -k 4 -o m.json");
    f.ok("predict m.json x.npy -o l.npy");
    assert_eq!(f.read("l.npy").len(), 128 + 2000 * 4);
    f.ok("predict m.json x.npy -o l.csv --scores");
    let text = String::from_utf8(f.read("l.csv")).unwrap();
    assert!(text.starts_with("label,distance,log_density,p0,p1,p2,p3\n"));
    assert_eq!(text.lines().count(), 2001);
    // Columns are matched by name, whatever their order; a missing one is named.
    f.write("a.csv", "c0,c1,c2\n1,2,3\n4,5,6\n").write("b.csv", "c2,id,c0,c1\n3,7,1,2\n6,8,4,5\n");
    f.ok("predict m.json a.csv -o a.out.csv");
    f.ok("predict m.json b.csv -o b.out.csv");
    assert!(f.read("a.out.csv") == f.read("b.out.csv"));
    f.write("c.csv", "c0,c1\n1,2\n").fails(
        1,
        "predict m.json c.csv -o t.csv",
        &["c.csv does not have the column c2"],
    );
    f.write("n.csv", "c0,c1,c2\n1,2,3\n1,,3\n").fails(
        1,
        "predict m.json n.csv -o t.csv",
        &["row 2, column 'c1'"],
    );
    f.ok("predict m.json n.csv -o n.out.csv --skip-invalid");
    assert!(String::from_utf8(f.read("n.out.csv")).unwrap().ends_with("\n-1,,\n"));
    let e = f.json("evaluate m.json n.csv --skip-invalid");
    assert_eq!((e["rows"].as_u64(), e["skipped"].as_u64()), (Some(1), Some(1)));
}

/// The label is the nearest centre by the distances that are written, even if columns are scaled.
/// The mean square of these distances is printed by `evaluate`, on any number of threads.
#[test]
fn distances_are_those_of_the_fit() {
    let f = Folder::new();
    let rows: String = (0..3000).map(|i| format!("{},{}\n", i % 7, (i * i % 11) * 1000)).collect();
    f.write("x.csv", format!("a,b\n{rows}")).ok("sketch x.csv -o s.nys --scale standard");
    f.ok("fit kmeans s.nys -k 5 -o m.json");
    f.ok("predict m.json x.csv -o l.csv");
    let text = String::from_utf8(f.read("l.csv")).unwrap();
    let distances = text.lines().skip(1).map(|line| line.split(',').nth(1).unwrap());
    let squares: f64 = distances.map(|d| d.parse::<f64>().unwrap().powi(2)).sum();
    let e = f.json("evaluate m.json x.csv");
    assert!((squares / 3000.0 / e["mse"].as_f64().unwrap() - 1.0).abs() < 1e-12, "{e}");
    assert!(e["mse_table_units"].as_f64().unwrap() > 1e3 * e["mse"].as_f64().unwrap());
    assert_eq!(e, f.json("evaluate m.json x.csv --threads 1"));
    assert!(f.ok("evaluate m.json x.csv").contains("mse, table units"));
}

#[test]
fn bad_learning_requests() {
    let f = learned();
    f.write("t.csv", "a\n1\n2\n3\n").ok("sketch t.csv -o t.nys");
    f.ok("sketch x.npy -o k.nys --landmarks 20 --collect kernel");
    f.ok("fit kmeans s.nys -k 4 -o m.json");
    f.fails(2, "fit kmeans s.nys -k 0 -o u.json", &["-k must be at least 1"]);
    f.fails(1, "fit kmeans t.nys -k 4 -o u.json", &["k = 4 is more than the 3 rows"]);
    f.fails(1, "fit kmeans s.nys -k 101 -o u.json", &["k = 101", "cells"]);
    f.fails(1, "fit pca k.nys -k 1 -o u.json", &["needs moments", "--collect"]);
    f.fails(1, "fit kmeans k.nys -k 2 -o u.json --decoder cells", &["needs cells"]);
    f.fails(
        2,
        "fit kmeans s.nys -k 2 -o u.json --decoder kernel --bandwidth 99999",
        &["one of the sketch's"],
    );
    f.fails(2, "fit kmeans s.nys -k 2 -o u.json --known-covariance 1", &["gmm"]);
    f.write("asymmetric.csv", "1,0.5,0\n0.4,1,0\n0,0,1\n").fails(
        2,
        "fit gmm s.nys -k 2 -o u.json --known-covariance asymmetric.csv",
        &["asymmetric.csv", "is not symmetric"],
    );
    f.write("flat.csv", "1,1,1\n1,1,1\n1,1,1\n").fails(
        2,
        "fit gmm s.nys -k 2 -o u.json --known-covariance flat.csv",
        &["positive definite"],
    );
    f.fails(1, "fit gmm s.nys -k 2 -o u.json --known-covariance none.csv", &["none.csv"]);
    f.fails(2, "fit kmeans s.nys -k 2 -o u.json --radius 1", &["clompr"]);
    f.fails(
        1,
        "fit kmeans m.json -k 2 -o u.json",
        &["m.json is a model, not a sketch", "nysketch predict"],
    );
    f.write("bad.json", "{\"schema\": 1}").fails(
        1,
        "evaluate bad.json x.npy",
        &["bad.json", "the model is not valid"],
    );
    // Values that no model can use are attributed to their columns.
    f.write("far.csv", "c0,c1,c2\n1,2,3\n1e300,2,3\n");
    let skipped = f.json("evaluate m.json far.csv --skip-invalid");
    assert_eq!(skipped["skipped_by_column"], serde_json::json!({"c0": 1}));
    // Field names of a file are not respelled as options.
    let fields = String::from_utf8(f.read("m.json")).unwrap().replace("\"task\"", "\"tusk\"");
    f.write("fields.json", fields).fails(
        1,
        "evaluate fields.json x.npy",
        &["missing field 'task'"],
    );
    f.fails(
        1,
        "evaluate m.json x.npy --labels nowhere",
        &["x.npy does not have the column nowhere"],
    );
    f.write("short.csv", "l\n1\n2\n").fails(
        1,
        "evaluate m.json x.npy --labels short.csv",
        &["2 labels"],
    );
    f.fails(2, "predict m.json x.npy -o l.txt", &[".csv or .npy"]);
    f.fails(2, "predict m.json x.npy -o l.csv --scores", &["--scores", "m.json is a kmeans model"]);
    f.ok("fit pca s.nys -k 2 -o p.json");
    f.fails(2, "predict p.json x.npy -o l.csv --scores", &["--scores", "p.json is a pca model"]);
    f.fails(2, "evaluate p.json x.npy --labels y.npy", &["p.json holds principal components"]);
    f.fails(2, "predict p.json x.npy -o l.npy", &["principal components need"]);
    f.fails(2, "predict m.json x.npy -o l.npy --keep c0", &["--keep need"]);
    let one = f.json("fit kmeans t.nys -k 1 -o one.json");
    assert_eq!(one["k"], 1);
}

#[test]
fn the_demo_compares_with_honest_baselines() {
    let f = Folder::new();
    let demo = f.json("demo --rows 5000 -o d.svg");
    assert_eq!(demo["same_bytes"], true);
    let results = demo["results"].as_array().unwrap();
    let find = |task: &str, from: &str| {
        results
            .iter()
            .find(|r| r["task"] == task && r["from"].as_str().unwrap().contains(from))
            .unwrap()["relative"]
            .as_f64()
            .unwrap()
    };
    assert!(find("kmeans", "cells") < 1.01 && find("gmm", "cells") < 0.01, "{demo}");
    assert!(find("kmeans", "2,000") > find("kmeans", "cells"));
    assert!(String::from_utf8(f.read("d.svg")).unwrap().starts_with("<svg"));
}

/// Two groups that differ in one column: the table shows this column, both from the fit and from
/// the model's file.
#[test]
fn clusters_are_told_by_what_sets_them_apart() {
    let f = Folder::new();
    let rows: String = (0..400)
        .map(|i| format!("{},{},{}\n", i % 7, if i % 4 == 0 { 90 } else { 10 } + i % 3, 5))
        .collect();
    f.write("x.csv", format!("noise,price,constant\n{rows}"));
    f.ok("sketch x.csv -o s.nys --scale standard");
    let text = f.ok("fit kmeans s.nys -k 2 -o m.json");
    assert!(text.contains("mean squared distance in scaled columns"), "{text}");
    assert!(text.contains("25.0%           100") && text.contains("75.0%           300"), "{text}");
    assert!(text.contains("price 90.99 ↑1.7 (all 31)"), "{text}");
    let shown = f.ok("inspect m.json");
    assert!(
        shown.contains("a model, kmeans, 2 clusters") && shown.contains("price 90.99 ↑1.7"),
        "{shown}"
    );
    let json = f.json("inspect m.json");
    let columns = &json["clusters"][0]["columns"][0];
    assert_eq!(columns["column"], "price");
    assert!(columns["spread"].as_f64().unwrap() < 2.0);
    assert_eq!(f.json("fit kmeans s.nys -k 2 -o m.json")["clusters"], json["clusters"]);
    assert!(f.ok("fit pca s.nys -k 2 -o p.json").contains("explains"));
    f.fails(2, "inspect m.json --theory", &["the file is a model"]);
    let said = f.command("fit gmm s.nys -k 2 -o g.json").assert().success();
    assert!(String::from_utf8_lossy(&said.get_output().stdout).contains("component   share"));
}

/// With weight 1/2, every row counts half: the models are equal, and the number of rows is halved.
#[test]
fn weights_are_told_as_weights() {
    let f = Folder::new();
    let rows: String = (0..300)
        .map(|i| format!("{},{},0.5\n", 10 * (i % 3) + i % 7, (i * i) % 11 + 20 * (i % 3)))
        .collect();
    f.write("x.csv", format!("a,b,w\n{rows}"));
    f.ok("sketch x.csv -o w.nys --weights w --exclude w");
    f.ok("sketch x.csv -o s.nys --exclude w");
    let (weighted, plain) =
        (f.json("fit gmm w.nys -k 1..5 -o m.json"), f.json("fit gmm s.nys -k 1..5 -o n.json"));
    assert_eq!(weighted["suggested_k"], plain["suggested_k"]);
    assert_eq!(f.json("inspect m.json")["rows"], 150);
    assert!(f.ok("inspect w.nys").contains("total weight 150"));
    assert!(f.ok("merge w.nys -o v.nys").contains("rows of total weight 150"));
    assert_eq!(f.json("diff w.nys v.nys")["rows"][0], 150);
}

/// A row of weight 2 counts as two rows, and one of weight 0 does not count.
#[test]
fn weighted_evaluation() {
    let f = Folder::new();
    let (mut weighted, mut repeated) = ("a,b,w\n".to_string(), "a,b\n".to_string());
    for i in 0..60 {
        let row = format!("{},{}", i % 7, i % 11);
        weighted += &format!("{row},{}\n", i % 3);
        (0..i % 3).for_each(|_| repeated += &format!("{row}\n"));
    }
    f.write("w.csv", weighted);
    f.write("r.csv", repeated);
    f.ok("sketch r.csv -o s.nys --landmarks 20");
    f.ok("fit gmm s.nys -k 2 -o m.json");
    let (w, r) = (f.json("evaluate m.json w.csv --weights w"), f.json("evaluate m.json r.csv"));
    assert_eq!((&w["rows"], &r["rows"]), (&60.into(), &60.into()));
    for risk in ["mse", "mse_table_units", "mean_distance", "nll"] {
        let (w, r) = (w[risk].as_f64().unwrap(), r[risk].as_f64().unwrap());
        // The sums have different terms in a different order.
        assert!((w - r).abs() < 1e-12 * r.abs(), "{risk}: {w} and {r}");
    }
    f.write("negative.csv", "a,b,w\n1,2,-1\n");
    f.fails(1, "evaluate m.json negative.csv --weights w", &["row 1, column 'w'", "is negative"]);
    f.write("missing.csv", "a,b,w\n1,2,\n1,2,3\n");
    f.fails(1, "evaluate m.json missing.csv --weights w", &["row 1, column 'w'"]);
    let skipped = f.json("evaluate m.json missing.csv --weights w --skip-invalid --max-skipped 1");
    assert_eq!((&skipped["rows"], &skipped["skipped"]), (&1.into(), &1.into()));
    f.write("nothing.csv", "a,b,w\n1,2,0\n");
    f.fails(1, "evaluate m.json nothing.csv --weights w", &["all rows have weight 0"]);
}
