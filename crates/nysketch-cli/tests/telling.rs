//! Results from the sketch alone: drift, theory, whether a model explains the sketch, and a report
//! page.

mod common;

use common::Folder;
use std::fs;

/// Makes three days of rows under one plan; column b is shifted on the third day.
fn days() -> Folder {
    let f = Folder::new();
    f.ok("generate gmm --rows 3000 --dims 2 --clusters 3 --separation 3 --seed 4 -o x.csv");
    let text = String::from_utf8(f.read("x.csv")).unwrap();
    let lines: Vec<&str> = text.lines().skip(1).collect();
    let moved = |line: &&str| {
        let (a, b) = line.split_once(',').unwrap();
        format!("{a},{}", b.parse::<f64>().unwrap() + 1.0)
    };
    let day = |lines: Vec<String>| format!("a,b\n{}\n", lines.join("\n"));
    let plain = |lines: &[&str]| day(lines.iter().map(|l| l.to_string()).collect());
    f.write("1.csv", plain(&lines[..1000])).write("2.csv", plain(&lines[1000..2000]));
    f.write("3.csv", day(lines[2000..].iter().map(moved).collect()));
    f.ok("plan 1.csv -o p.nys --landmarks 60");
    fs::create_dir(f.path("days")).unwrap();
    for i in 1..=3 {
        f.ok(&format!("sketch {i}.csv --plan p.nys -o days/{i}.nys"));
    }
    f
}

#[test]
fn drift_between_two_and_among_many() {
    let f = days();
    let same = f.json("diff days/1.nys days/2.nys");
    assert_eq!(same["drift"], false, "{same}");
    assert_eq!(same["discrepancies"].as_array().unwrap().len(), 3);
    let other = f.json("diff days/1.nys days/3.nys --top 3");
    assert_eq!(other["drift"], true, "{other}");
    assert_eq!(other["columns"][0]["column"], "b");
    assert_eq!(other["cells"].as_array().unwrap().len(), 3);
    let text = f.ok("diff days/1.nys days/3.nys");
    assert!(text.contains("the rows differ") && text.contains("share of A"), "{text}");
    let many = f.json("diff --against days/1.nys days/ --plot drift.svg");
    let drifts: Vec<_> = many["sketches"].as_array().unwrap().iter().map(|s| &s["drift"]).collect();
    // The baseline itself is left out.
    assert_eq!(drifts, [false, true]);
    assert!(String::from_utf8(f.read("drift.svg")).unwrap().contains("drift"));
    assert!(f.ok("diff --against days/1.nys days/2.nys days/3.nys").contains("1 of 2 differ"));
}

#[test]
fn what_cannot_be_compared_is_reported() {
    let f = days();
    f.fails(2, "diff days/1.nys", &["two sketches"]);
    f.fails(1, "diff days/1.nys none.nys", &["none.nys"]);
    f.fails(1, "diff days/1.nys p.nys", &["p.nys"]);
    f.fails(2, "diff days/1.nys days/2.nys --level 2", &["--level"]);
    f.ok("sketch 2.csv -o own.nys --landmarks 20");
    f.fails(1, "diff days/1.nys own.nys", &["different plans", "--plan"]);
    f.ok("sketch 2.csv -o one.nys --landmarks 20 --columns a");
    f.fails(2, "diff days/1.nys one.nys", &["different columns", "b"]);
    f.write("row.csv", "a,b\n1,2\n").write("none.csv", "a,b\n");
    f.ok("sketch row.csv --plan p.nys -o row.nys");
    assert!(f.ok("diff days/1.nys row.nys").contains("p-value  none: a test needs 10 rows"));
    f.ok("sketch none.csv --plan p.nys -o empty.nys --allow-empty");
    f.fails(1, "diff days/1.nys empty.nys", &["empty.nys", "no rows"]);
    // Sketches without cells, far apart.
    f.ok("plan 1.csv -o k.nys --landmarks 60 --collect kernel");
    f.ok("sketch 1.csv --plan k.nys -o k1.nys");
    f.ok("sketch 3.csv --plan k.nys -o k3.nys");
    assert!(f.ok("diff k1.nys k3.nys").contains("--collect cells"));
    f.write("far.csv", format!("a,b\n{}", "900,900\n".repeat(50)));
    f.ok("sketch far.csv --plan p.nys -o far.nys");
    assert_eq!(f.json("diff days/1.nys far.nys")["drift"], true);
    fs::create_dir(f.path("nothing")).unwrap();
    f.fails(1, "diff --against days/1.nys nothing", &["nothing has no sketches"]);
}

#[test]
fn inspect_tells_dimensions_noise_and_theory() {
    let f = days();
    let json = f.json("inspect days/1.nys");
    for key in ["effective_dimension", "largest_leverage", "noise_floor", "missed"] {
        assert_eq!(json[key].as_array().unwrap().len(), 3, "{key}");
    }
    f.ok("fit gmm days/1.nys -k 3 -o g.json");
    assert_eq!(
        f.json("inspect days/1.nys --model g.json")["model"]["verdict"],
        "the model explains the sketch"
    );
    let fitted = f.json("fit gmm days/1.nys -k 1 -o g1.json");
    assert!(fitted["explained"]["verdict"].as_str().unwrap().contains("k is too small"));
    let theory = f.json("inspect days/1.nys --theory -k 3 --delta 0.05")["theory"].clone();
    assert!(theory["uniform"].as_f64().unwrap() > 67.0, "{theory}");
    assert!(f.ok("inspect days/1.nys --theory").contains("LRIP (25)"));
    f.fails(2, "inspect p.nys --theory", &["needs a sketch"]);
    f.fails(2, "inspect days/1.nys --theory --delta 2", &["--delta"]);
    f.fails(2, "inspect days/1.nys --theory --lambda 0", &["--lambda"]);
    f.ok("fit kmeans days/1.nys -k 3 -o k.json");
    f.fails(2, "inspect days/1.nys --model k.json", &["mixture"]);
}

#[test]
fn landmarks_by_themselves_say_why() {
    let f = days();
    let plan = f.json("plan x.csv -o a.nys --landmarks auto --clusters 20");
    assert_eq!(plan["landmarks"], 200);
    assert!(plan["notes"][0].as_str().unwrap().contains("200 landmarks"), "{plan}");
    let plan = f.json("plan x.csv -o a.nys --landmarks auto");
    assert!((50..=400).contains(&plan["landmarks"].as_u64().unwrap()), "{plan}");
    // Ten cells per cluster, if that is more than the default.
    assert_eq!(f.json("plan x.csv -o a.nys --clusters 50")["landmarks"], 500);
    assert_eq!(f.json("plan x.csv -o a.nys --clusters 5")["landmarks"], 400);
    f.fails(2, "plan x.csv -o b.nys --landmarks some", &["a number or 'auto'"]);
}

#[test]
fn few_cells_for_many_clusters_are_a_warning() {
    let f = days();
    f.ok("sketch x.csv -o few.nys --landmarks 60");
    let json = f.json("fit kmeans few.nys -k 50 -o many.json");
    let warning = json["warnings"][0].as_str().unwrap();
    assert!(warning.contains("60 cells are few for k = 50"), "{warning}");
    f.fails(1, "fit kmeans few.nys -k 70 -o k70.json", &["60 cells", "--clusters 70"]);
    assert!(warning.contains("plan with --clusters 50, which takes 500 landmarks"), "{warning}");
    assert!(f.ok("inspect many.json").contains(warning));
    assert!(
        f.json("fit kmeans few.nys -k 5 -o five.json")["warnings"].as_array().unwrap().is_empty()
    );
}

#[test]
fn excess_risk_over_a_reference() {
    let f = days();
    for k in [2, 3] {
        f.ok(&format!("fit kmeans days/1.nys -k {k} -o k{k}.json"));
    }
    let e = f.json("evaluate k2.json 1.csv --reference k3.json");
    let (risk, best) = (&e["mse"], &e["reference"]["of_reference"]);
    let excess = risk.as_f64().unwrap() - best.as_f64().unwrap();
    assert!((e["reference"]["excess"].as_f64().unwrap() - excess).abs() < 1e-12 && excess > 0.0);
    assert!(f.ok("evaluate k3.json 1.csv --reference k3.json").contains("excess risk    0 in mse"));
    f.ok("fit gmm days/1.nys -k 3 -o g.json");
    f.fails(2, "evaluate k2.json 1.csv --reference g.json", &["another task"]);
}

#[test]
fn a_page_holds_everything_and_links_to_nothing() {
    let f = days();
    f.ok("fit gmm days/3.nys -k 3 -o g.json");
    let page = |line: &str| {
        f.ok(line);
        String::from_utf8(f.read("r.html")).unwrap()
    };
    let html = page("report days/3.nys g.json --against days/1.nys -o r.html");
    for words in [
        "Gaussian mixture, k = 3",
        "How many clusters?",
        "mean negative log-likelihood",
        "BIC over k",
        "Profiles",
        "Bandwidths",
        "Against days/1.nys",
    ] {
        assert!(html.contains(words), "{words}");
    }
    // A mixture has its own curve, not that of k-means.
    assert!(!html.contains("k-means"));
    // The page loads no external resources.
    for link in ["src=", "href=", "http:", "https:", "url(", "@import"] {
        assert!(!html.contains(link), "{link}");
    }
    assert!(
        html.contains(
            "Content-Security-Policy\" content=\"default-src 'none'; script-src 'sha256-"
        )
    );
    assert_eq!(html.matches("<script").count(), 1);
    // Without a model, the models of the curve are shown.
    let html = page("report days/1.nys -o r.html");
    assert_eq!(html.matches("<details class=\"model\"").count(), 11);
    assert!(html.contains("k-means, k = 3 (suggested)"));
    f.ok("plan 1.csv -o k.nys --landmarks 60 --collect kernel");
    f.ok("sketch 1.csv --plan k.nys -o k1.nys");
    assert!(page("report k1.nys -o r.html").contains("a map and spreads, which need cells"));
    f.ok("sketch 1.csv -o c.nys --landmarks 30 --collect cells --columns a");
    page("report c.nys -o r.html");
    // Names are shown as text, even if they look like HTML.
    f.write("odd.csv", "<b>,\"x&y\"\n1,2\n3,4\n5,7\n2,2\n");
    f.ok("sketch odd.csv -o odd.nys");
    let odd = page("report odd.nys -o r.html");
    assert!(odd.contains("&lt;b&gt;") && odd.contains("x&amp;y") && !odd.contains("<b>"));
    // There are fewer cells than the curve would use.
    f.ok("sketch 1.csv -o few.nys --landmarks 5");
    assert!(page("report few.nys -o r.html").contains("k-means, k = 3"));
    f.fails(2, "report days/1.nys g.json -o days/1.nys", &["both input and output"]);
    f.fails(2, "report days/1.nys -o r.pdf", &["use .html"]);
    f.fails(1, "report none.nys -o t.html", &["none.nys"]);
    f.fails(1, "report days/1.nys none.json -o t.html", &["cannot read none.json"]);
    f.fails(2, "report g.json -o t.html", &["needs a sketch"]);
}

#[test]
fn a_page_shows_several_models_and_drift_over_time() {
    let f = days();
    for k in [2, 5] {
        f.ok(&format!("fit kmeans days/3.nys -k {k} -o m{k}.json"));
    }
    let report = f.json("report days/3.nys m5.json --model m2.json -o r.html");
    assert_eq!((report["models"].as_u64(), report["k"].as_u64()), (Some(2), Some(5)));
    let html = String::from_utf8(f.read("r.html")).unwrap();
    assert_eq!(html.matches("<details class=\"model\"").count(), 2);
    assert!(html.contains("k-means, k = 2") && html.contains("max=\"1\""));
    let report = f.json("report --against days/1.nys days/ -o r.html");
    assert_eq!(report["sketches"], 2);
    let html = String::from_utf8(f.read("r.html")).unwrap();
    assert!(html.contains("<title>days/3.nys</title>") && html.contains("class=\"threshold\""));
    f.fails(2, "report days/2.nys days/3.nys -o t.html", &["--against"]);
}
