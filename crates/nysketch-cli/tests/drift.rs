//! `diff` in a daily job: size of a change, tolerances, days among days, segments, files for
//! monitoring.

mod common;

use common::Folder;
use std::fmt::Write;

/// Returns 1,500 rows around three places, different on each day, all moved by `shift`.
fn day(seed: u64, shift: f64) -> String {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) + 1;
    let mut unit = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as f64 / (1u64 << 31) as f64
    };
    let mut text = String::from("price,size,user,country\n");
    for i in 0..1500 {
        let place = (i % 3) as f64 * 4.0;
        let mut normal = || (0..12).map(|_| unit()).sum::<f64>() - 6.0;
        let (price, size) = (place + normal() + shift, normal() - place);
        let country = ["AT", "DE", "FR"][i % 3];
        writeln!(text, "{price},{size},u{},{country}", i / 10).unwrap();
    }
    text
}

/// Makes a plan, ten days, and one day that moved.
fn days() -> Folder {
    let f = Folder::new();
    std::fs::create_dir(f.path("days")).unwrap();
    f.write("plan.csv", day(99, 0.0));
    f.ok("plan plan.csv --columns price,size --landmarks 60 -o plan.nys");
    for i in 1..=10 {
        f.write("day.csv", day(i, 0.1 * (i as f64).sin()));
        f.ok(&format!("sketch day.csv --plan plan.nys -o days/2026-02-{i:02}.nys"));
    }
    f.write("day.csv", day(20, 1.0));
    f.ok("sketch day.csv --plan plan.nys -o today.nys");
    f
}

#[test]
fn how_much_and_whether_that_is_tolerated() {
    let f = days();
    let found = f.json("diff days/2026-02-01.nys today.nys");
    let moved = &found["moved"];
    let [low, share, high] = ["low", "share", "high"].map(|k| moved[k].as_f64().unwrap());
    assert!(0.05 < low && low <= share && share <= high && high < 0.7, "{moved}");
    assert_eq!(found["columns"][0]["column"], "price");
    let effect = &found["columns"][0]["effect"];
    // The shift is one unit and the places are 4 apart: 0.27 standard deviations.
    assert!((effect["deviations"].as_f64().unwrap() - 0.27).abs() < 0.1, "{effect}");
    assert!(found["columns"][0]["q_value"].as_f64().unwrap() < 0.01);
    let text = f.ok("diff days/2026-02-01.nys today.nys");
    for words in
        ["moved    ", "of the rows would have to move", "MMD      ", "p-value  0.001 or less"]
    {
        assert!(text.contains(words), "{text}");
    }
    let code = |line: &str| f.command(line).output().unwrap().status.code();
    let pair = "diff days/2026-02-01.nys today.nys --exit-code --tolerance";
    assert_eq!(code(&format!("{pair} 0.9")), Some(0));
    assert_eq!(code(&format!("{pair} 0.02")), Some(1));
    assert_eq!(
        code("diff days/2026-02-01.nys days/2026-02-02.nys --exit-code --tolerance 0.001"),
        Some(4)
    );
    assert!(
        f.ok("diff days/2026-02-01.nys today.nys --tolerance 0.9")
            .contains("same at the resolution of the cells")
    );
    f.fails(2, "diff days/2026-02-01.nys today.nys --tolerance 2", &["--tolerance"]);
    f.fails(2, "diff --watch days --tolerance 0.1", &["--tolerance needs"]);
}

#[test]
fn parts_are_compared_with_the_rest() {
    let f = days();
    f.ok("merge days/2026-02-01.nys today.nys -o both.nys");
    let rest = f.json("diff both.nys today.nys --part-of");
    let plain = f.json("diff days/2026-02-01.nys today.nys");
    assert_eq!(rest["p_value"], plain["p_value"]);
    assert_eq!((&rest["rows"], &rest["moved"]), (&plain["rows"], &plain["moved"]));
    let said = f.command("diff both.nys today.nys").output().unwrap();
    let said = String::from_utf8_lossy(&said.stderr).to_string();
    assert!(said.contains("may be among those of") && said.contains("--part-of"), "{said}");
    f.fails(1, "diff today.nys both.nys --part-of", &["both.nys is not part of today.nys"]);
    f.fails(2, "diff both.nys today.nys --part-of --watch", &["do not go together"]);
}

#[test]
fn few_rows_per_landmark_are_noted() {
    let f = days();
    let said = |line: &str| {
        let said = f.command(line).output().unwrap();
        String::from_utf8_lossy(&said.stderr).to_string()
    };
    f.ok("plan plan.csv --columns price,size --landmarks 400 -o crowded.nys");
    f.ok("sketch plan.csv --plan crowded.nys -o a.nys");
    f.ok("sketch day.csv --plan crowded.nys -o b.nys");
    let crowded = said("diff a.nys b.nys");
    assert!(crowded.contains("a.nys has 1,500 rows for 400 landmarks"), "{crowded}");
    f.ok("sketch plan.csv --plan plan.nys -o c.nys");
    assert!(!said("diff c.nys today.nys").contains("landmarks"), "25 rows per landmark");
}

#[test]
fn a_day_among_days() {
    let f = days();
    let found = f.json("diff --baseline days today.nys --level 0.1 --plot d.svg --metrics m.prom");
    assert_eq!((&found["unusual"], &found["days"]), (&true.into(), &10.into()));
    assert!((found["p_value"].as_f64().unwrap() - 1.0 / 11.0).abs() < 1e-12);
    assert_eq!(found["reasons"][0]["what"], "price");
    assert!(String::from_utf8(f.read("d.svg")).unwrap().contains("among 10 days"));
    let metrics = String::from_utf8(f.read("m.prom")).unwrap();
    assert!(metrics.contains("nysketch_drift_found{sketch=\"today.nys\"} 1"), "{metrics}");
    // The shell expands a pattern to a list of files.
    let files: Vec<String> = (1..=10).map(|i| format!("days/2026-02-{i:02}.nys")).collect();
    let listed = f.json(&format!("diff --baseline {} today.nys --level 0.1", files.join(" ")));
    assert_eq!(listed["p_value"], found["p_value"]);
    // Metrics are overwritten every day; other files are not.
    f.ok("diff --baseline days today.nys --metrics m.prom");
    f.fails(2, "diff --baseline days today.nys --metrics plan.csv", &["plan.csv", "use .prom"]);
    f.write("notes.txt", "mine\n");
    f.fails(1, "diff --baseline days today.nys --metrics notes.txt", &["notes.txt exists"]);
    f.fails(2, "diff --baseline days today.nys --metrics today.nys", &["both input and output"]);
    let said = f.command("diff --baseline days today.nys").output().unwrap();
    assert!(String::from_utf8_lossy(&said.stderr).contains("10 days cannot show a p-value below"));
    f.fails(2, "diff --baseline days/2026-02-01.nys today.nys", &["at least two"]);
    f.fails(2, "diff --baseline days days/2026-02-10.nys --same-weekday", &["at least two"]);
    f.fails(2, "diff --baseline days today.nys --same-weekday", &["today.nys has none"]);
}

#[test]
fn days_are_watched() {
    let f = days();
    let found = f.json("diff --watch days today.nys --plot w.png");
    assert_eq!(found["days"].as_array().unwrap().len(), 11);
    assert!(f.ok("diff --watch days").contains("no alarm"));
    f.fails(2, "diff --watch days/2026-02-01.nys", &["at least 5"]);
    // The alarm accumulates evidence: twelve days that moved raise it.
    for i in 11..=22 {
        f.write("day.csv", day(100 + i, 1.0));
        f.ok(&format!("sketch day.csv --plan plan.nys -o days/2026-02-{i:02}.nys"));
    }
    let alarm = f.json("diff --watch days");
    assert_eq!(alarm["began"], "2026-02-11", "{alarm}");
    let week = f.ok("diff --baseline days days/2026-02-22.nys --same-weekday");
    assert!(week.contains("3 days of the same day of the week"), "{week}");
    f.ok("diff --watch days --same-weekday");
    assert_eq!(f.command("diff --watch days --exit-code").output().unwrap().status.code(), Some(1));
}

#[test]
fn segments_explain_a_change() {
    let f = days();
    let text = day(30, 0.0);
    let moved = text.replace(",DE\n", ",DE!\n");
    f.write("before.csv", &text);
    // Only DE moves.
    let lines = moved.lines().map(|line| match line.strip_suffix("DE!") {
        Some(row) => format!("9{}DE", &row[row.find('.').unwrap_or(1)..]),
        None => line.to_string(),
    });
    f.write("after.csv", lines.collect::<Vec<_>>().join("\n"));
    f.ok("sketch before.csv --plan plan.nys --by country -o before");
    f.ok("sketch after.csv --plan plan.nys --by country -o after");
    let found = f.json("diff before after --segments");
    assert_eq!(found["explained"], true, "{found}");
    assert_eq!(found["removed"][0]["segment"], "DE");
    assert!(f.ok("diff before after --segments").contains("without DE there is no drift left"));
    f.fails(2, "diff days/2026-02-01.nys today.nys --segments", &["two folders"]);
}

#[test]
fn folds_tell_of_rows_that_come_in_clusters() {
    let f = days();
    f.write("a.csv", day(40, 0.0)).write("b.csv", day(41, 0.0));
    for name in ["a", "b"] {
        f.ok(&format!("sketch {name}.csv --plan plan.nys --folds 8 --fold-by user -o {name}.nys"));
    }
    let found = f.json("diff a.nys b.nys");
    assert_eq!((&found["test_by"], &found["drift"]), (&"folds".into(), &false.into()));
    assert!((found["least_p_value"].as_f64().unwrap() - 1.0 / 128.0).abs() < 1e-12);
    assert!(f.ok("diff a.nys b.nys").contains("by folds"));
    // A folded sketch is compared with an unfolded one: rows are treated as independent, and a note
    // states this.
    let mixed = f.json("diff a.nys today.nys");
    assert_eq!(mixed["test_by"], "rows");
    assert!(mixed["note"].as_str().unwrap().contains("no folds"), "{mixed}");
}

#[test]
fn thresholds_come_from_a_file() {
    let f = days();
    f.write("drift.toml", "tolerance = 0.9\nlevel = 0.01\ntop = 1\n");
    let found = f.json("diff days/2026-02-01.nys today.nys --config drift.toml");
    assert_eq!((&found["verdict"], &found["level"]), (&"same".into(), &0.01.into()));
    let typed = f.json("diff days/2026-02-01.nys today.nys --config drift.toml --tolerance 0.01");
    assert_eq!(typed["verdict"], "changed");
    f.write("bad.toml", "tolerances = 0.9\n");
    f.fails(2, "diff today.nys today.nys --config bad.toml", &["bad.toml", "tolerances"]);
    f.fails(1, "diff today.nys today.nys --config none.toml", &["none.toml"]);
}

/// Runs the guide for a daily job in docs/DRIFT.md, from files to alert.
#[test]
#[cfg(unix)]
fn the_daily_job_of_the_docs_runs() {
    let guide =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/DRIFT.md"));
    let Ok(guide) = guide else {
        eprintln!("docs are not at hand: skipped");
        return;
    };
    let start = guide.find("```sh\n").expect("a script") + "```sh\n".len();
    let script = &guide[start..start + guide[start..].find("```").expect("its end")];
    let f = Folder::new();
    f.write("daily.sh", script);
    std::fs::create_dir(f.path("tables")).unwrap();
    f.write("history.csv", day(99, 0.0));
    let binary = assert_cmd::cargo::cargo_bin("nysketch");
    let path = format!("{}:{}", binary.parent().unwrap().display(), std::env::var("PATH").unwrap());
    let mut codes = Vec::new();
    for i in 1..=25 {
        let shift = if i == 25 { 1.0 } else { 0.1 * (i as f64).sin() };
        f.write(&format!("tables/2026-02-{i:02}.csv"), day(i, shift));
        let run = std::process::Command::new("sh")
            .args(["daily.sh", &format!("2026-02-{i:02}")])
            .current_dir(f.path(""))
            .env("PATH", &path)
            .output()
            .unwrap();
        let out = String::from_utf8_lossy(&run.stdout).to_string();
        assert!(run.status.success(), "{out}{}", String::from_utf8_lossy(&run.stderr));
        codes.push(out.contains("ALERT"));
    }
    assert!(codes[24], "the day that moved raises an alert");
    assert!(codes[..24].iter().filter(|alert| **alert).count() <= 3, "{codes:?}");
    assert!(f.path("drift.prom").exists());
}
