//! Retained rows on the command line: which files contain them, and how `fit` finds them.

mod common;

use common::Folder;
use std::fs;

/// Makes 3,000 rows in 4 columns, a plan with 100 retained rows, and a sketch of that plan without
/// them.
fn folder() -> Folder {
    let f = Folder::new();
    f.ok("generate gmm --rows 3000 --dims 4 --clusters 3 -o x.csv");
    f.ok("plan x.csv -o p.nys --landmarks 40 --witnesses 100");
    f.ok("sketch x.csv --plan p.nys -o s.nys");
    f
}

fn stderr(f: &Folder, line: &str) -> String {
    let output = f.command(line).assert().success().get_output().stderr.clone();
    String::from_utf8(output).unwrap()
}

#[test]
fn one_sketch_holds_them_and_sketches_by_a_plan_do_where_asked() {
    let f = folder();
    f.ok("sketch x.csv -o direct.nys --landmarks 40 --witnesses 100");
    f.ok("sketch x.csv --plan p.nys -o embedded.nys --embed-witnesses");
    assert!(f.read("direct.nys") == f.read("embedded.nys"));
    let (light, whole) = (f.read("s.nys").len(), f.read("direct.nys").len());
    assert!(light + 100 * 4 * 4 < whole && whole < light + 100 * 4 * 4 + 200, "{light} {whole}");
    let (light, whole) = (f.json("inspect s.nys"), f.json("inspect direct.nys"));
    assert_eq!((&light["witnesses"], &whole["witnesses"]), (&0.into(), &100.into()));
    for field in ["fingerprint", "witnesses_digest"] {
        assert_eq!(light[field], whole[field]);
    }
    assert_eq!(f.json("plan x.csv -o q.nys --witnesses 7 --landmarks 5")["raw_rows"], 12);
    let said = f.ok("plan x.csv -o q.nys --landmarks 40");
    assert!(said.contains("contains 3,040 raw rows: 40 landmarks and 3,000 witnesses"), "{said}");
    let said = f.ok("inspect s.nys");
    assert!(said.contains("contains     40 raw rows: 40 landmarks"), "{said}");
    assert!(said.contains("not in this file, but in p.nys"), "{said}");
    f.write("l.csv", "c0,c1,c2,c3\n0,0,0,0\n1,1,1,1\n");
    let said = f.ok("plan x.csv -o given.nys --landmarks-from l.csv");
    assert!(said.contains("contains no raw rows"), "{said}");
    f.fails(
        2,
        "plan x.csv -o new.nys --landmarks-from l.csv --witnesses 5",
        &["--witnesses must be 0 or left out with --landmarks-from"],
    );
    f.fails(2, "sketch x.csv -o new.nys --plan p.nys --witnesses 5", &["--witnesses"]);
    f.fails(
        2,
        "sketch x.csv -o new.nys --plan given.nys --embed-witnesses",
        &["--embed-witnesses", "keeps none"],
    );
    f.fails(
        2,
        "sketch x.csv -o new.nys --plan s.nys --embed-witnesses",
        &["--embed-witnesses", "not in that file"],
    );
}

#[test]
fn fit_finds_them_beside_the_sketch_or_where_it_is_told() {
    let f = folder();
    let fit = "fit gmm s.nys -k 3 -o m.json";
    assert!(stderr(&f, fit).contains("retained rows come from p.nys"), "{}", stderr(&f, fit));
    // Other files in the folder are ignored, even damaged copies of the plan.
    let plan = f.read("p.nys");
    f.write("a.nys", &plan[..plan.len() / 2]).write("b.nys", "").write("c", [0; 40]);
    fs::create_dir(f.path("d.nys")).unwrap();
    assert!(stderr(&f, fit).contains("retained rows come from p.nys"));
    fs::create_dir(f.path("away")).unwrap();
    fs::rename(f.path("p.nys"), f.path("away/p.nys")).unwrap();
    let said = stderr(&f, fit);
    assert!(said.contains("keeps retained rows that are not in the file; with --plan"), "{said}");
    for line in [
        "fit gmm s.nys -k 3 -o m.json --covariance diag",
        "report s.nys -o r.html --most-clusters 3",
    ] {
        let said = stderr(&f, &format!("{line} --plan away/p.nys"));
        assert!(!said.contains("retained rows"), "{said}");
    }
    assert!(stderr(&f, "report s.nys -o r.html --most-clusters 3").contains("keeps retained rows"));
    assert!(!stderr(&f, "fit pca s.nys -k 2 -o pca.json").contains("retained rows"));
    f.fails(1, "fit gmm s.nys -k 3 -o n.json --plan s.nys", &["does not hold the retained rows"]);
    f.ok("plan x.csv -o q.nys --landmarks 41");
    f.fails(1, "fit gmm s.nys -k 3 -o n.json --plan q.nys", &["s.nys", "another plan"]);
    f.fails(2, "fit gmm s.nys -k 3 -o away/p.nys --plan away/p.nys", &["both input and output"]);
}

/// `inspect --theory` takes them from the plan next to the sketch, as `fit` does.
#[test]
fn the_theory_finds_them_beside_the_sketch() {
    let f = folder();
    let basis = |f: &Folder| f.json("inspect s.nys --theory -k 3")["theory"]["basis"].clone();
    assert_eq!(basis(&f), "witnesses");
    let said = stderr(&f, "inspect s.nys --theory -k 3");
    assert!(said.contains("retained rows for the theory come from p.nys"), "{said}");
    fs::remove_file(f.path("p.nys")).unwrap();
    assert_eq!(basis(&f), "landmarks");
}

#[test]
fn merging_keeps_them_and_finds_duplicates_all_the_same() {
    let f = folder();
    f.ok("sketch x.csv --plan p.nys -o embedded.nys --embed-witnesses");
    f.fails(1, "merge s.nys embedded.nys -o all.nys", &["hold the same sums"]);
    f.ok("merge s.nys embedded.nys -o all.nys --allow-duplicates");
    assert_eq!(f.json("inspect all.nys")["witnesses"], 100);
    f.ok("subtract all.nys s.nys -o rest.nys");
    assert!(f.read("rest.nys") == f.read("embedded.nys"));
}

#[test]
fn groups_say_which_they_are_and_the_plan_is_beside_them() {
    let f = Folder::new();
    let line = |i: usize| format!("{},{},{}\n", i / 2, i * i % 17, ["plan", "a"][i % 2]);
    let text: String = (0..400).map(line).collect();
    f.write("x.csv", format!("x,y,g\n{text}"));
    let said = f.ok("sketch x.csv --by g -o groups --landmarks 10 --witnesses 50");
    assert!(
        said.contains(
            "each sketch contains 10 raw rows: 10 landmarks, and rows that are alone in a cell\n"
        ),
        "{said}"
    );
    assert!(said.contains("plan.nys contains 60 raw rows"), "{said}");
    assert_eq!(f.json("inspect groups/plan.nys")["kind"], "plan");
    assert_eq!(f.json("inspect groups/a.nys")["witnesses"], 0);
    let said = stderr(&f, "fit gmm groups/%70lan.nys -k 2 -o m.json");
    assert!(said.contains("retained rows come from groups/plan.nys"), "{said}");
    f.ok("merge groups -o all.nys");
    assert_eq!(f.json("inspect all.nys")["rows"], 400);
    let found = f.json("sketch x.csv --by g -o more --plan groups/plan.nys --embed-witnesses");
    assert!(found.get("plan").is_none() && !f.path("more/plan.nys").exists());
    assert_eq!(f.json("inspect more/a.nys")["witnesses"], 50);
}

/// A cell whose rows are all equal reveals that row, however often it occurs.
#[test]
fn rows_that_count_often_are_raw_rows_too() {
    let f = Folder::new();
    let line = |i: usize| format!("{},{},2\n", i * i % 97, i);
    let text: String = (0..40).map(line).collect();
    f.write("x.csv", format!("x,y,w\n{text}")).write("twice.csv", format!("x,y,w\n{text}{text}"));
    f.write("at.csv", "x,y,w\n0,0,1\n30,8,1\n60,16,1\n90,24,1\n20,32,1\n");
    let options = "--columns x,y --landmarks-from at.csv";
    f.ok(&format!("sketch x.csv -o once.nys {options}"));
    f.ok(&format!("sketch twice.csv -o twice.nys {options}"));
    f.ok(&format!("sketch x.csv -o heavy.nys {options} --weights w"));
    let rows = |file: &str| f.json(&format!("inspect {file}"))["raw_rows"].as_u64().unwrap();
    // With many given landmarks, some cells contain one row.
    let many: String = (0..40).map(|i| format!("{},{},1\n", i * i % 97, i)).collect();
    f.write("at.csv", format!("x,y,w\n{many}"));
    for (name, table, more) in
        [("a", "x.csv", ""), ("b", "twice.csv", ""), ("c", "x.csv", " --weights w")]
    {
        f.ok(&format!("sketch {table} -o {name}.nys {options}{more}"));
        assert_eq!(rows(&format!("{name}.nys")), 40, "{name}");
        let found = f.json(&format!("inspect {name}.nys --contains x.csv"));
        assert_eq!(found["contains"]["alone"], 40, "{found}");
    }
    assert!(rows("once.nys") < 5 && rows("once.nys") == rows("twice.nys"));
    assert_eq!(rows("once.nys"), rows("heavy.nys"));
}

/// Rows with equal numbers but different levels are different rows.
#[test]
fn levels_tell_rows_apart() {
    let f = Folder::new();
    let text = |level: &str| -> String {
        let lines = (0..30).map(|i| format!("{},{},{level}\n", i * i % 97, i));
        format!("x,y,g\n{},{},b\n", 1, 99) + &lines.collect::<String>()
    };
    f.write("x.csv", text("a")).write("other.csv", text("b"));
    f.ok("sketch x.csv -o s.nys --landmarks 31 --witnesses 0 --sampling uniform");
    let found =
        |table: &str| f.json(&format!("inspect s.nys --contains {table}"))["contains"].clone();
    assert_eq!(found("x.csv")["alone"], 31);
    assert_eq!(found("other.csv")["alone"], 1);
}
