//! Private plans and releases, as the real binary makes them.

mod common;

use common::Folder;
use nysketch::privacy::Budget;
use nysketch::{Plan, Sketch, SketchParams, Table};
use sha2::{Digest, Sha256};
use std::fs;
use std::sync::Arc;

const BOUNDS: &str = "--bounds c0=-9..9,c1=-9..9";

/// Private and public rows, a private plan and a sketch.
fn folder() -> Folder {
    let f = Folder::new();
    f.ok("generate gmm --rows 30000 --dims 2 --clusters 3 -o x.csv");
    f.ok("generate gmm --rows 2000 --dims 2 --clusters 3 --seed 1 -o public.csv");
    f.ok(&format!("plan --private --public public.csv {BOUNDS} --landmarks 60 -o p.nys"));
    f.ok("sketch x.csv --plan p.nys -o s.nys");
    f
}

#[test]
fn from_public_rows_to_a_model() {
    let f = folder();
    let made = f.json("privatize s.nys -o r.nys --epsilon 1 --delta 1e-6");
    assert_eq!((&made["epsilon"], &made["delta"]), (&1.0.into(), &1e-6.into()));
    assert_eq!(made["mechanisms"].as_array().unwrap().len(), 3);
    assert!(made["rows"].as_u64().unwrap().abs_diff(30_000) < 1000);
    let told = f.ok("inspect r.nys");
    assert!(told.contains("a release") && told.contains("ε = 1, δ = 1e-6"), "{told}");
    assert!(!told.contains("skipped"), "{told}");
    f.ok("fit kmeans r.nys -k 3 -o m.json");
    assert!(String::from_utf8(f.read("m.json")).unwrap().contains("learned from a release"));
    f.ok("fit gmm r.nys -k 3 -o g.json");
    f.ok("report r.nys -o r.html");
    let page = String::from_utf8(f.read("r.html")).unwrap();
    assert!(page.contains("noise on all sums") && page.contains("ε = 1"));
    assert!(page.contains("<p>About <strong>"));
    assert!(!page.contains("skipped as invalid"));
    f.fails(2, "inspect r.nys --model g.json", &["not all the noise of a release"]);
    f.fails(2, "fit kmeans r.nys -k 3 -o z.json --intervals", &["which a release does not have"]);
    let risk = |model: &str| f.json(&format!("evaluate {model} x.csv"))["mse"].as_f64().unwrap();
    f.ok("fit kmeans s.nys -k 3 -o exact.json");
    assert!(risk("m.json") < 1.05 * risk("exact.json"));
    // No two releases are the same, and together they reveal more.
    let again = f.json("privatize s.nys -o r2.nys --epsilon 1 --delta 1e-6");
    assert_ne!(f.read("r.nys"), f.read("r2.nys"));
    assert_eq!(again["releases"], 2);
    // Also where noise is shared, and by whatever name the sketch is called.
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(f.path("s.nys"), f.path("link.nys")).unwrap();
        let third = f.json("privatize link.nys -o r3.nys --epsilon 1 --delta 1e-6");
        assert_eq!(third["releases"], 3);
    }
    let both = again["all_releases"]["epsilon"].as_f64().unwrap();
    assert!(both > 1.3 && both < 2.0, "{both}");
}

#[test]
fn a_statement_fits_on_one_page() {
    let f = folder();
    let line = "privatize s.nys -o r.nys --epsilon 1 --delta 1e-6 --statement page.md";
    let made = f.json(line);
    assert_eq!(made["statement"], "page.md");
    let page = String::from_utf8(f.read("page.md")).unwrap();
    let ledger = made["ledger"].as_str().unwrap();
    for word in ["## Promise", "## Assumptions", "## Limits", "one row", "`c0`,", ledger] {
        assert!(page.contains(word), "{word}\n{page}");
    }
    assert!(page.contains(made["fingerprint"].as_str().unwrap()));
    // What `sha256sum r.nys` prints.
    let digest = Sha256::digest(f.read("r.nys"));
    let digest: String = digest.iter().map(|b| format!("{b:02x}")).collect();
    assert!(page.contains(&digest) && fs::read_to_string(ledger).unwrap().contains(&digest));
    // A page of A4 has 60 lines. Tables and the path of the ledger are not broken.
    assert!(page.lines().count() <= 60, "{}", page.lines().count());
    let text = page.lines().filter(|l| !l.starts_with('|') && !l.contains(ledger));
    assert!(text.clone().all(|l| l.chars().count() <= 98));
    // ε of a row that is replaced, and of two releases.
    let cells = |page: &str, what: &str| -> Vec<f64> {
        let line = page.lines().find(|l| l.contains(what)).unwrap();
        let numbers = line.split('|').filter_map(|cell| cell.trim().parse().ok());
        numbers.collect()
    };
    let (one, replaced) = (cells(&page, "| this release"), cells(&page, "replaced"));
    assert_eq!(one[..2], [1.0, 1e-6]);
    // 2.111, of which the page shows three digits after the point, rounded up.
    assert!((2.111..=2.112).contains(&replaced[0]) && replaced[1] == 1e-6, "{replaced:?}");
    // ρ is printed with six digits after the point.
    assert!((replaced[2] - 4.0 * one[2]).abs() < 3e-6);
    assert_eq!(cells(&page, "ledger: 1 release")[..], one[..]);
    let again = f.json(line);
    let page = String::from_utf8(f.read("page.md")).unwrap();
    let both = cells(&page, "ledger: 2 releases");
    assert!((both[2] - 2.0 * one[2]).abs() < 2e-6);
    let claimed = again["all_releases"]["epsilon"].as_f64().unwrap();
    assert!(both[0] >= claimed && both[0] < claimed + 1e-3);
    // It replaces its own kind alone.
    f.write("notes.md", "dear diary");
    f.fails(1, &line.replace("page.md", "notes.md"), &["notes.md exists and is a text file"]);
    for same in ["r.nys", "s.nys"] {
        f.fails(2, &line.replace("page.md", same), &["both input and output"]);
    }
    f.fails(2, &line.replace("page.md", "page.json"), &["cannot be written as .json"]);
}

#[test]
fn a_statement_on_people_names_their_column_and_quotes_names() {
    let f = Folder::new();
    f.write("x.csv", "a`|b,user\n1,u1\n2,u2\n");
    f.write("bounds.toml", "\"a`|b\" = [0, 9]\n");
    f.ok("plan --private --bounds-from bounds.toml --landmarks 5 --max-rows-per user=3 -o p.nys");
    f.ok("sketch x.csv --plan p.nys -o s.nys");
    f.ok("privatize s.nys -o r.nys --epsilon 2 --delta 1e-6 --statement page.txt");
    let page = String::from_utf8(f.read("page.txt")).unwrap();
    assert!(page.contains("all rows with the same 'user', of which at most 3 count"), "{page}");
    assert!(page.contains("`a'|b`") && page.contains("one person replaced"), "{page}");
}

/// Kernel matrices of points all over a box have been seen to stall the eigendecomposition.
#[test]
fn a_plan_from_all_over_the_bounds_can_be_looked_at() {
    let f = Folder::new();
    f.ok("plan --private --bounds age=0..120,income=0..150 -o p.nys");
    let told = f.ok("inspect p.nys");
    assert!(told.contains("age 0..120, income 0..150") && told.contains("single rows"), "{told}");
    f.ok("plan --private --bounds age=0..120 --collect moments -o m.nys");
    assert!(!f.ok("inspect m.nys").contains("of their landmark"));
}

#[test]
fn two_rounds_need_no_public_rows() {
    let f = folder();
    // In their order, not that of the alphabet.
    f.write("other.toml", "c1 = [-9, 9]\nc0 = [-9, 9]\n");
    let other = f.json("plan --private --bounds-from other.toml --landmarks 10 -o other.nys");
    assert_eq!(other["columns"], serde_json::json!(["c1", "c0"]));
    f.write("bounds.toml", "c0 = [-9, 9]\nc1 = [-9.0, 9]\n");
    f.ok("plan --private --bounds-from bounds.toml --landmarks 100 -o first.nys");
    f.ok("sketch x.csv --plan first.nys -o s1.nys");
    f.ok("privatize s1.nys -o r1.nys --epsilon 0.5 --delta 1e-6");
    let plan = f.json("plan --private --bounds-from bounds.toml --release r1.nys -o second.nys");
    assert!(plan["private"]["spent_rho"].as_f64().unwrap() > 0.0);
    f.ok("sketch x.csv --plan second.nys -o s2.nys");
    f.fails(2, "privatize s2.nys -o r2.nys --epsilon 0.5 --delta 1e-6", &["--epsilon", "has cost"]);
    let made = f.json("privatize s2.nys -o r2.nys --epsilon 1 --delta 1e-6");
    assert!(made["total_rho"].as_f64() > made["rho"].as_f64());
}

#[test]
fn rows_that_are_broken_or_beyond_leave_no_trace_in_a_release() {
    let f = folder();
    let mut rows = String::from_utf8(f.read("x.csv")).unwrap();
    rows.push_str("1e30,-1e30\n,2\nabc,1\ninf,0\n");
    f.write("odd.csv", rows);
    let sketch = f.json("sketch odd.csv --plan p.nys -o odd.nys");
    assert_eq!((&sketch["rows"], &sketch["skipped"]), (&30_001.into(), &3.into()));
    f.ok("privatize odd.nys -o r.nys --epsilon 1 --delta 1e-6");
    let shown = f.json("inspect r.nys");
    assert!(shown.get("skipped").is_none(), "{shown}");
    f.write("none.csv", "c0,c1\n,\n");
    f.ok("sketch none.csv --plan p.nys -o none.nys");
    f.ok("privatize none.nys -o rn.nys --epsilon 1 --delta 1e-6");
}

#[test]
fn what_cannot_be_promised_is_refused() {
    let f = folder();
    let release = "privatize s.nys -o r.nys";
    f.fails(2, release, &["--epsilon", "--delta"]);
    for wrong in ["0", "-1", "1e9", "nan"] {
        f.fails(2, &format!("{release} --epsilon={wrong} --delta 1e-6"), &["--epsilon"]);
    }
    f.fails(2, &format!("{release} --epsilon 1 --delta 0"), &["--delta"]);
    f.fails(2, &format!("{release} --epsilon 1 --delta 1e-6 --seed 1"), &["--seed"]);
    f.fails(
        2,
        &format!("{release} --epsilon 1 --delta 1e-6 --spend counts=1"),
        &["--spend", "sums"],
    );
    f.fails(
        2,
        &format!("{release} --epsilon 1 --delta 1e-6 --spend others=1"),
        &["--spend", "counts"],
    );
    // A plan from rows bounds nothing.
    f.ok("sketch x.csv -o open.nys");
    f.fails(
        1,
        "privatize open.nys -o r.nys --epsilon 1 --delta 1e-6",
        &["not private", "--private"],
    );
    assert!(!f.path("r.nys").exists());
    // Rows do not come into a private plan.
    f.fails(2, &format!("plan --private x.csv {BOUNDS} -o q.nys"), &["--private", "INPUT"]);
    f.fails(2, "plan --private -o q.nys", &["--bounds"]);
    f.fails(2, "plan --private --bounds c0=9..1 -o q.nys", &["--bounds", "c0"]);
    f.fails(2, "plan --private --bounds c0 -o q.nys", &["LOW..HIGH"]);
    for option in [
        "--witnesses 5",
        "--weights c0",
        "--missing partial",
        "--unit c0",
        "--categorical c0",
        "--dates c0",
    ] {
        f.fails(2, &format!("plan --private {BOUNDS} {option} -o q.nys"), &["--private"]);
    }
    f.write("bounds.toml", "c0 = 3\n");
    f.fails(
        2,
        "plan --private --bounds-from bounds.toml -o q.nys",
        &["bounds.toml", "age = [0, 120]"],
    );
    // A release is no sketch.
    f.ok("privatize s.nys -o r.nys --epsilon 1 --delta 1e-6");
    for command in
        ["merge r.nys s.nys -o z.nys", "subtract s.nys r.nys -o z.nys", "diff r.nys s.nys"]
    {
        f.fails(1, command, &["r.nys is a release"]);
    }
    f.fails(1, "privatize r.nys -o z.nys --epsilon 1 --delta 1e-6", &["r.nys is a release"]);
    // Damaged, or with another promise.
    let bytes = f.read("r.nys");
    let mut less = bytes.clone();
    let at = less
        .windows(14)
        .position(|w| w == br#"\"epsilon\":\""#.as_slice().get(..14).unwrap_or(w))
        .map(|at| at + 14);
    if let Some(at) = at {
        less[at] = b'0';
        fs::write(f.path("less.nys"), less).unwrap();
        f.fails(1, "fit kmeans less.nys -k 3 -o m.json", &["less.nys"]);
    }
}

#[test]
fn people_are_protected_with_all_their_rows() {
    let f = Folder::new();
    // User i has 1 + i % 7 rows.
    let user = |i: usize| (0..=i % 7).map(move |j| format!("{},{},u{i}\n", i % 10, j));
    f.write("x.csv", format!("a,b,user\n{}1,1,\n", (0..3000).flat_map(user).collect::<String>()));
    let plan = "plan --private --bounds a=0..10,b=0..10 --landmarks 30 -o p.nys --force";
    let made = f.json(&format!("{plan} --max-rows-per user=3"));
    assert_eq!(made["private"]["max_rows_per"]["rows"], 3);
    let sketched = f.json("sketch x.csv --plan p.nys -o s.nys");
    // Of every seven users, 1 + 2 + 5 · 3 rows count: 428 sevens and four more users.
    assert_eq!(sketched["rows"], 428 * 18 + 1 + 2 + 3 + 3);
    assert_eq!(sketched["columns"], serde_json::json!(["a", "b"]));
    let told = f.command("sketch x.csv --plan p.nys -o s2.nys").assert().success();
    let told = String::from_utf8_lossy(&told.get_output().stderr).into_owned();
    assert!(told.contains("of the same 'user' as 3 that do"), "{told}");
    assert!(told.contains("1 row does not count, having no 'user'"), "{told}");
    let released = f.json("privatize s.nys -o r.nys --epsilon 3 --delta 1e-6");
    assert_eq!(released["person_rows"], 3);
    assert!(f.ok("inspect r.nys").contains("for all rows of one 'user', of which 3 count at most"));
    // Parts may hold rows of the same people.
    f.write("y.csv", "a,b,user\n1,2,u1\n");
    f.ok("sketch y.csv --plan p.nys -o y.nys");
    f.fails(1, "merge s.nys s2.nys --allow-duplicates -o z.nys", &["half the noise"]);
    f.ok("merge s.nys y.nys -o both.nys");
    let both = f.json("privatize both.nys -o r2.nys --epsilon 3 --delta 1e-6");
    assert_eq!(both["person_rows"], 6);
    f.ok("merge s.nys y.nys --disjoint-people -o apart.nys");
    let apart = f.json("privatize apart.nys -o r3.nys --epsilon 3 --delta 1e-6");
    assert_eq!(apart["person_rows"], 3);
    f.fails(1, "subtract both.nys s.nys -o z.nys", &["protects people by 'user'"]);
    for option in ["--by user", "--folds 4", "--checkpoint c.ckpt"] {
        let line = format!("sketch x.csv --plan p.nys {option} -o z.nys");
        f.fails(2, &line, &["protects all rows of a 'user'"]);
    }
    f.fails(2, &format!("{plan} --max-rows-per user=0"), &["--max-rows-per"]);
    f.fails(2, &format!("{plan} --max-rows-per user"), &["COLUMN=K"]);
    f.ok(&format!("{plan} --max-rows-per nobody=3"));
    f.fails(1, "sketch x.csv --plan p.nys -o z.nys", &["nobody"]);
}

#[test]
fn rows_that_stand_in_a_file_are_found() {
    let f = folder();
    f.ok("sketch x.csv -o open.nys --landmarks 50 --witnesses 200");
    let all = f.json("inspect open.nys --contains x.csv");
    let found = &all["contains"];
    assert_eq!((&found["rows"], &found["landmarks"]), (&30_000.into(), &50.into()));
    assert_eq!(found["witnesses"], 200);
    let none = f.ok("inspect open.nys --contains public.csv");
    assert!(none.contains("none of the 2,000 rows of public.csv stands in open.nys"), "{none}");
    // Subtracting rows takes them out of the sums alone.
    f.ok("sketch x.csv --plan open.nys -o again.nys");
    f.ok("subtract open.nys again.nys -o empty.nys");
    assert_eq!(f.json("inspect empty.nys --contains x.csv")["contains"]["landmarks"], 50);
    let private = f.json("inspect p.nys --contains x.csv");
    assert_eq!(private["contains"]["found"], 0);
    f.ok("privatize s.nys -o r.nys --epsilon 1 --delta 1e-6");
    f.fails(2, "inspect r.nys --contains x.csv", &["a release holds no rows"]);
}

/// A plan whose first column has a bound that integers of 64 bits do not hold, and whose others
/// have bounds a hair's width apart:
/// the release of its sketch would hold the sum of the first column nearly exactly.
#[test]
fn plans_that_switch_the_noise_off_are_refused() {
    let f = Folder::new();
    let bounds = "a=-9..9,b=-9..9,c=-9..9";
    f.ok(&format!("plan --private --bounds {bounds} --collect moments -o p.nys"));
    let mut plan = Plan::from_bytes(&f.read("p.nys")).unwrap();
    let unit = 2f64.powi(plan.frame.exponent[0]);
    let centre = plan.frame.centre.clone();
    let private = plan.private.as_mut().unwrap();
    for j in [1, 2] {
        (private.low[j], private.high[j]) = (centre[j] - unit, centre[j] + unit);
    }
    private.high[0] = 1e13;
    let plan = Arc::new(plan);
    f.write("forged.plan.nys", plan.to_bytes());
    f.write("x.csv", "a,b,c\n1,2,3\n");
    let refused = ["bounds", "'a'", "high = 10000000000000"];
    f.fails(1, "inspect forged.plan.nys", &refused);
    f.fails(1, "sketch x.csv --plan forged.plan.nys -o s.nys", &refused);
    let mut list = String::new();
    for (party, x) in [("x", -12.5), ("y", 0.25), ("z", -40.0)] {
        let names = ["a", "b", "c"].map(String::from).to_vec();
        let table = Table::new(names, vec![x, 0.0, 0.0]).unwrap();
        let sketch = Sketch::of(&plan, &table, SketchParams::default(), &()).unwrap();
        f.write(&format!("{party}.nys"), sketch.to_bytes());
        list += &f.ok(&format!("keys new {party} -o {party}.key"));
    }
    f.write("keys.toml", list);
    f.fails(1, "privatize x.nys -o r.nys --epsilon 0.1 --delta 1e-9", &refused);
    let session = "8c5f0b1e7d2a4c6093e1d4b7a8f20c35";
    for party in ["x", "y", "z"] {
        let mask = format!(
            "mask {party}.nys --parties keys.toml --key {party}.key --session {session} -o m.nys \
             --epsilon 0.1 --delta 1e-9 --honest 2"
        );
        f.fails(1, &mask, &refused);
    }
}

/// What a private plan lets a row do, and the noise for it, before there are rows.
#[test]
fn the_noise_of_a_plan_is_shown_in_the_units_of_its_columns() {
    let f = folder();
    let shown = f.json("inspect p.nys");
    assert_eq!(shown["private"]["bounds"][0]["low"], -9.0);
    let noise = &shown["noise"];
    assert_eq!((&noise["epsilon"], &noise["delta"]), (&1.0.into(), &1e-6.into()));
    let released = f.json("privatize s.nys -o r.nys --epsilon 1 --delta 1e-6");
    for (expected, real) in noise["mechanisms"]
        .as_array()
        .unwrap()
        .iter()
        .zip(released["mechanisms"].as_array().unwrap())
    {
        assert_eq!(expected["name"], real["name"]);
        assert_eq!(expected["sensitivity_squared"], real["sensitivity_squared"]);
    }
    assert_eq!(noise["mechanisms"][0]["noise"], released["mechanisms"][0]["deviation"]);
    // Both columns have a scale of one.
    let column = &noise["columns"][1];
    assert_eq!(
        (&column["column"], &column["cell_sum"]),
        (&"c1".into(), &noise["mechanisms"][1]["noise"])
    );
    // Less budget, more noise; the default of the option is 1,1e-6.
    let less = f.json("inspect p.nys --noise 0.1,1e-6");
    let of = |json: &serde_json::Value| json["noise"]["columns"][0]["cell_mean"].as_f64().unwrap();
    let cost = |epsilon| Budget::new(epsilon, 1e-6).unwrap().rho().value();
    let expected = (cost(1.0) / cost(0.1)).sqrt();
    assert!((of(&less) / of(&shown) / expected - 1.0).abs() < 1e-6, "{less}");
    let text = f.ok("inspect s.nys");
    assert!(
        text.contains("in the units of the columns") && text.contains("mean of 1,000 rows"),
        "{text}"
    );
    assert!(f.json("inspect r.nys").get("noise").is_none());
    f.fails(2, "inspect p.nys --noise 1", &["--noise"]);
    f.fails(2, "inspect r.nys --noise 1,1e-6", &["--noise"]);
    f.fails(2, "inspect p.nys --noise 0,1e-6", &["--epsilon"]);
    // Replacing a row is two steps.
    let replacing = released["epsilon_replacing"].as_f64().unwrap();
    assert!((replacing - 2.11).abs() < 0.01, "{replacing}");
}
