//! Realistic tables: text, dates, missing values, ids and vectors; how each column is used, and the
//! same bytes from every format.

mod common;

use arrow_array::builder::{FixedSizeListBuilder, Float32Builder, ListBuilder};
use arrow_array::types::Int8Type;
use arrow_array::*;
use common::Folder;
use common::tables::{Column, arrow_file, arrow_stream, batch, parquet};
use serde_json::Value;
use std::fs;
use std::sync::Arc;

const ROWS: usize = 3000;

/// A row of the table of flights.
struct Flight {
    id: i64,
    /// Seconds since 1970, and their text.
    when: (i64, String),
    carrier: &'static str,
    tail: String,
    distance: f64,
    delay: Option<f64>,
    air_time: Option<f64>,
    weather: Option<&'static str>,
    late: bool,
}

/// Returns pseudo-random whole numbers that are the same on every machine.
fn mix(i: usize, salt: usize) -> usize {
    let mut x = (i as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (salt as u64) << 32;
    x = (x ^ (x >> 31)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (x ^ (x >> 29)) as usize >> 8
}

fn flight(i: usize) -> Flight {
    let carriers = [("UA", 2000.0), ("B6", 900.0), ("EV", 400.0), ("DL", 1200.0)];
    let (carrier, far) = carriers[mix(i, 1) % 4];
    let distance = far + (mix(i, 2) % 200) as f64;
    let minutes = (mix(i, 3) % (365 * 1440)) as i64;
    let (day, minute) = (minutes / 1440, minutes % 1440);
    // The year 2013 began 15,706 days after 1970-01-01.
    let months = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let (mut month, mut rest) = (0, day);
    while rest >= months[month] {
        rest -= months[month];
        month += 1;
    }
    let text =
        format!("2013-{:02}-{:02}T{:02}:{:02}", month + 1, rest + 1, minute / 60, minute % 60);
    let there = |salt: usize, percent: usize| mix(i, salt) % 100 >= percent;
    Flight {
        id: i as i64 + 1,
        when: ((15_706 * 1440 + minutes) * 60, text),
        carrier,
        tail: format!("N{}", mix(i, 4) % 900),
        distance,
        delay: there(5, 4).then(|| (mix(i, 6) % 120) as f64 - 20.0),
        air_time: there(7, 10).then(|| distance / 8.0 + (mix(i, 8) % 10) as f64),
        weather: there(9, 2).then(|| ["clear", "rain"][mix(i, 10) % 2]),
        late: mix(i, 11).is_multiple_of(3),
    }
}

const NAMES: [&str; 9] =
    ["id", "when", "carrier", "tail", "distance", "delay", "air_time", "weather", "late"];

/// Returns the rows as csv, with the columns in the given order.
fn csv(rows: std::ops::Range<usize>, order: &[usize]) -> String {
    let number = |x: Option<f64>| x.map_or(String::new(), |x| x.to_string());
    let pick = |fields: Vec<String>| {
        order.iter().map(|j| fields[*j].clone()).collect::<Vec<_>>().join(",") + "\n"
    };
    let header = pick(NAMES.map(String::from).to_vec());
    let line = |i| {
        let f = flight(i);
        let weather = f.weather.unwrap_or("").to_string();
        pick(vec![
            f.id.to_string(),
            f.when.1,
            f.carrier.to_string(),
            f.tail,
            f.distance.to_string(),
            number(f.delay),
            number(f.air_time),
            weather,
            f.late.to_string(),
        ])
    };
    header + &rows.map(line).collect::<String>()
}

/// Returns the same rows in memory, with text as a dictionary or not.
fn arrays(rows: std::ops::Range<usize>, dictionary: bool) -> RecordBatch {
    let all: Vec<Flight> = rows.map(flight).collect();
    let text = |values: Vec<Option<&str>>| -> ArrayRef {
        if dictionary {
            Arc::new(values.into_iter().collect::<DictionaryArray<Int8Type>>())
        } else {
            Arc::new(StringArray::from(values))
        }
    };
    let numbers = |f: &dyn Fn(&Flight) -> Option<f64>| -> ArrayRef {
        Arc::new(all.iter().map(f).collect::<Float64Array>())
    };
    let columns: Vec<Column> = vec![
        ("id", Arc::new(Int64Array::from_iter_values(all.iter().map(|f| f.id)))),
        (
            "when",
            Arc::new(TimestampMicrosecondArray::from_iter_values(
                all.iter().map(|f| f.when.0 * 1_000_000),
            )),
        ),
        ("carrier", text(all.iter().map(|f| Some(f.carrier)).collect())),
        ("tail", Arc::new(StringArray::from_iter_values(all.iter().map(|f| &f.tail)))),
        ("distance", numbers(&|f| Some(f.distance))),
        ("delay", numbers(&|f| f.delay)),
        ("air_time", numbers(&|f| f.air_time)),
        ("weather", text(all.iter().map(|f| f.weather).collect())),
        ("late", Arc::new(BooleanArray::from_iter(all.iter().map(|f| Some(f.late))))),
    ];
    batch(&columns)
}

const IN_ORDER: [usize; 9] = [0, 1, 2, 3, 4, 5, 6, 7, 8];

fn flights() -> Folder {
    let f = Folder::new();
    f.write("flights.csv", csv(0..ROWS, &IN_ORDER));
    f
}

/// Returns the entry of a column in `roles`.
fn role<'a>(told: &'a Value, column: &str) -> &'a Value {
    let roles = told["roles"].as_array().unwrap();
    roles.iter().find(|r| r["column"] == column).unwrap_or_else(|| panic!("{column}: {told}"))
}

#[test]
fn a_mixed_table_from_plan_to_difference() {
    let f = flights();
    let shown = f.ok("plan flights.csv --show --landmarks 40");
    assert!(!f.path("p.nys").exists());
    for words in ["column", "left out", "--dates when", "--categorical tail", "4 levels: ", "÷ "] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    let line = "plan flights.csv -o p.nys --landmarks 40 --dates when=time+hour --log distance";
    let plan = f.json(line);
    assert_eq!(role(&plan, "id")["role"], "left_out");
    assert!(role(&plan, "id")["left_out"].as_str().unwrap().contains("as an id has"));
    assert_eq!(role(&plan, "tail")["role"], "left_out");
    assert_eq!(role(&plan, "carrier")["role"], "category");
    assert_eq!(role(&plan, "carrier")["levels"].as_array().unwrap().len(), 4);
    assert_eq!(role(&plan, "when")["transformation"], serde_json::json!(["time", "hour"]));
    assert_eq!(role(&plan, "distance")["transformation"][0], "log");
    let low = role(&plan, "distance")["low"].as_f64().unwrap();
    assert!((low - 400.0).abs() < 2.0, "in the units of the table: {low}");
    let lacking = (0..ROWS).filter(|i| flight(*i).air_time.is_none()).count() as f64 / ROWS as f64;
    let missing = |told: &Value, column: &str| role(told, column)["missing"].as_f64().unwrap();
    assert!((missing(&plan, "air_time") - lacking).abs() < 1e-9);

    f.write("a.csv", csv(0..1000, &IN_ORDER)).write("b.csv", csv(1000..ROWS, &IN_ORDER));
    let sketch = f.json("sketch flights.csv --plan p.nys -o all.nys");
    let whole = |i: &usize| flight(*i).delay.is_some() && flight(*i).air_time.is_some();
    assert_eq!(sketch["complete"], (0..ROWS).filter(whole).count());
    f.ok("sketch a.csv --plan p.nys -o a.nys");
    f.ok("sketch b.csv --plan p.nys -o b.nys");
    f.ok("merge b.nys a.nys -o ab.nys");
    assert!(f.read("ab.nys") == f.read("all.nys"));
    f.ok("subtract all.nys a.nys -o rest.nys");
    assert!(f.read("rest.nys") == f.read("b.nys"));

    // Shares of levels and of missing values in a sketch are exact.
    let told = f.json("inspect a.nys");
    let share = |rows: &dyn Fn(&Flight) -> bool| {
        (0..1000).filter(|i| rows(&flight(*i))).count() as f64 / 1000.0
    };
    assert_eq!(missing(&told, "air_time"), share(&|f| f.air_time.is_none()));
    assert_eq!(missing(&told, "weather"), share(&|f| f.weather.is_none()));
    for level in role(&told, "carrier")["levels"].as_array().unwrap() {
        let text = level["level"].as_str().unwrap();
        assert_eq!(level["share"].as_f64().unwrap(), share(&|f| f.carrier == text), "{text}");
    }
    let text = f.ok("inspect all.nys");
    for words in ["categories   2: carrier, weather", "time, hour", "at least", "complete"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    assert!(f.ok("inspect p.nys").contains("log, ÷"));
}

/// Rows with levels that are not in the plan are counted, and so are rows with too many missing
/// values.
#[test]
fn what_later_rows_have_and_lack_is_counted() {
    let f = flights();
    f.ok("plan flights.csv -o p.nys --landmarks 30 --exclude tail,id");
    let more: String = (0..5).map(|_| "7,,XX,N1,500,1,2,rain,true\n").collect();
    let empty: String = (0..3).map(|_| "8,,,N1,,,,,\n").collect();
    f.write("later.csv", csv(0..95, &IN_ORDER) + &more + &empty);
    let told = f.command("sketch later.csv --plan p.nys -o s.nys").assert().success();
    let said = String::from_utf8(told.get_output().stderr.clone()).unwrap();
    for words in [
        "carrier: 5 rows (5.0 %) have another level than the plan's 4",
        "are complete; kernel sums and moments use only these",
        "3 of 103 rows skipped as invalid or for having fewer than 2 of 6 values",
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
    let sketch = f.json("sketch later.csv --plan p.nys -o s.nys");
    assert_eq!((sketch["rows"].as_u64(), sketch["skipped"].as_u64()), (Some(100), Some(3)));
    let levels = role(&sketch, "carrier")["levels"].as_array().unwrap();
    assert_eq!(levels.last().unwrap(), &serde_json::json!({"level": "(other)", "share": 0.05}));
}

#[test]
fn the_same_bytes_from_every_format_and_order() {
    let f = flights();
    fs::create_dir(f.path("parts")).unwrap();
    f.write("parts/1.csv", csv(0..1234, &IN_ORDER));
    f.write("parts/2.parquet", parquet(&arrays(1234..ROWS, true), 500));
    f.write("x.parquet", parquet(&arrays(0..ROWS, false), 700))
        .write("dictionary.parquet", parquet(&arrays(0..ROWS, true), 700))
        .write("x.arrow", arrow_file(&arrays(0..ROWS, true)))
        .write("stream.arrow", arrow_stream(&arrays(0..ROWS, false)));
    let options = "--landmarks 40 --dates when --log distance --weight-column carrier=2,delay=0.5";
    f.ok(&format!("sketch flights.csv -o expected.nys {options} --threads 1"));
    let expected = f.read("expected.nys");
    for file in ["x.parquet", "dictionary.parquet", "x.arrow", "stream.arrow", "parts"] {
        f.ok(&format!("sketch {file} -o s.nys {options} --threads 4"));
        assert!(f.read("s.nys") == expected, "{file}");
    }
    // With a given plan, the order of the columns does not matter.
    f.write("turned.csv", csv(0..ROWS, &[8, 7, 6, 5, 4, 3, 2, 1, 0]));
    f.ok(&format!("plan x.parquet -o p.nys {options}"));
    f.ok("sketch turned.csv --plan p.nys -o s.nys --embed-witnesses --threads 4");
    assert!(f.read("s.nys") == expected, "turned.csv");
    f.command("sketch - --plan p.nys -o s.nys --embed-witnesses")
        .write_stdin(f.read("flights.csv"))
        .assert()
        .success();
    assert!(f.read("s.nys") == expected, "stdin");
}

#[test]
fn options_choose_roles() {
    let f = flights();
    let plan =
        f.json("plan flights.csv -o p.nys --landmarks 20 --categorical tail,late --numeric id");
    assert_eq!(role(&plan, "tail")["role"], "category");
    assert_eq!(role(&plan, "late")["role"], "category");
    assert_eq!(role(&plan, "id")["role"], "number");
    let plan =
        f.json("plan flights.csv -o p.nys --landmarks 20 --columns distance..air_time,carrier");
    assert_eq!(plan["columns"], serde_json::json!(["distance", "delay", "air_time"]));
    assert_eq!(role(&plan, "weather")["left_out"], "not chosen");
    let plan = f.json("plan flights.csv -o p.nys --landmarks 20 --missing skip --exclude t*");
    assert!(plan["skipped"].as_u64().unwrap() > 300 && role(&plan, "air_time")["missing"] == 0.0);
    f.fails(
        1,
        "sketch flights.csv -o s.nys --missing error",
        &["row 18, column 'air_time'", "missing"],
    );
    f.fails(2, "sketch flights.csv -o s.nys --missing error --skip-invalid", &["--missing error"]);
    f.fails(2, "plan flights.csv -o q.nys --dates when=hours", &["time, hour, weekday, month"]);
    f.fails(2, "plan flights.csv -o q.nys --weight-column carrier", &["COLUMN=WEIGHT"]);
    f.fails(2, "plan flights.csv -o q.nys --log carrier", &["--log", "columns of numbers"]);
    f.fails(
        2,
        "plan flights.csv -o q.nys --categorical late --numeric late",
        &["both name 'late'"],
    );
    f.fails(1, "plan flights.csv -o q.nys --dates then", &["no column 'then'"]);
    f.fails(2, "plan flights.csv", &["--output"]);
    f.ok("plan flights.csv -o partial.nys --landmarks 20");
    let line = "sketch flights.csv --plan partial.nys -o s.nys --missing";
    f.fails(2, &format!("{line} skip"), &["counts rows by the values they have"]);
    f.fails(2, &format!("{line} error"), &["the plan decides"]);
    // Categories that cannot be measured are left out.
    let plan = f.json("plan flights.csv -o p.nys --features fourier --missing skip");
    assert!(role(&plan, "carrier")["left_out"].as_str().unwrap().contains("need landmarks"));
}

/// Every coordinate of a vector is a numeric column, but the vector is listed in one line.
#[test]
fn vectors_are_one_line() {
    let f = Folder::new();
    let mut vectors = FixedSizeListBuilder::new(Float32Builder::new(), 8);
    for i in 0..500 {
        (0..8).for_each(|j| vectors.values().append_value((mix(i, j) % 1000) as f32 - 500.0));
        vectors.append(true);
    }
    f.write("v.parquet", parquet(&batch(&[("emb", Arc::new(vectors.finish()))]), 99));
    let plan = f.json("plan v.parquet -o p.nys --landmarks 20 --unit emb");
    assert_eq!(plan["columns"].as_array().unwrap().len(), 8);
    assert_eq!(
        (&role(&plan, "emb")["role"], &role(&plan, "emb")["numbers"]),
        (&"vector".into(), &8.into())
    );
    assert_eq!(role(&plan, "emb")["transformation"][0], "length one");
    assert!(f.ok("plan v.parquet --show --unit *").contains("vector of 8"));
    f.ok("sketch v.parquet --plan p.nys -o s.nys");
    f.fails(2, "plan v.parquet -o q.nys --unit other", &["--unit", "names of vectors"]);
    let mut lists = ListBuilder::new(Float32Builder::new());
    for i in 0..20 {
        (0..3 + i / 19).for_each(|j| lists.values().append_value(j as f32));
        lists.append(true);
    }
    let x = Float64Array::from_iter_values((0..20).map(|i| f64::from(i * i)));
    f.write(
        "uneven.parquet",
        parquet(&batch(&[("x", Arc::new(x)), ("v", Arc::new(lists.finish()))]), 99),
    );
    f.fails(1, "plan uneven.parquet -o q.nys", &["uneven.parquet", "row 20", "'v"]);
}

#[test]
fn bad_columns_are_named() {
    let f = Folder::new();
    let table = |cell: &dyn Fn(usize) -> String, rows: usize| {
        (0..rows).fold("x,c\n".to_string(), |text, i| text + &format!("{},{}\n", i % 97, cell(i)))
    };
    f.write("many.csv", table(&|i| format!("t{i}"), 70_000));
    f.fails(2, "plan many.csv -o p.nys --categorical c", &["--categorical", "'c'", "65,536"]);
    let plan = f.json("plan many.csv -o ok.nys --landmarks 20");
    assert!(role(&plan, "c")["left_out"].as_str().unwrap().contains("65,536 different texts"));
    f.write("long.csv", table(&|i| if i == 5 { "é".repeat(500_000) } else { "a".into() }, 50));
    f.fails(2, "plan long.csv -o p.nys --categorical c", &["'c'", "1,024 bytes"]);
    f.write("zones.csv", "x,t\n1,2024-01-01T00:00Z\n2,2024-01-01T00:00\n3,2024-01-01T00:00Z\n");
    f.fails(1, "plan zones.csv -o p.nys --dates t", &["zones.csv: row 2", "'t'", "zone"]);
    f.write("empty.csv", table(&|_| String::new(), 50));
    f.fails(2, "plan empty.csv -o p.nys --numeric c", &["'c'", "value in some row"]);
    assert!(f.ok("plan empty.csv --show").contains("no row has a value there"));
    fs::create_dir(f.path("days")).unwrap();
    f.write("days/1.csv", table(&|i| i.to_string(), 50))
        .write("days/2.csv", table(&|_| "b".into(), 50));
    f.fails(1, "plan days -o p.nys", &["2.csv: row 1, column 'c'", "'b' is not a number"]);
    f.write("text.csv", table(&|_| "b".into(), 50));
    f.fails(1, "plan text.csv -o p.nys --exclude x", &["no numeric column"]);
}

/// Results show levels, times and missing values in the units of the table.
#[test]
fn results_speak_of_levels_times_and_holes() {
    let f = flights();
    let options = "--landmarks 60 --dates when=time+hour --log distance --exclude late";
    f.ok(&format!("sketch flights.csv -o s.nys {options}"));
    let line = "fit kmeans s.nys -k 4 -o m.json --plot m.svg";
    let told = f.json(line);
    let told: Vec<&Value> = told["clusters"].as_array().unwrap().iter().collect();
    let columns = || told.iter().flat_map(|c| c["columns"].as_array().unwrap());
    assert!(columns().any(|t| t["level"] == "UA" && t["value"].as_f64().unwrap() > 0.5));
    let far = columns().filter(|t| t["column"] == "distance").map(|t| t["value"].as_f64().unwrap());
    assert!(far.clone().count() > 0 && far.clone().all(|x| x > 300.0 && x < 2300.0));
    assert!(told.iter().all(|c| c["missing"].as_f64().unwrap() > 0.0));
    for text in [f.ok(&format!("{line} --force")), f.ok("inspect m.json")] {
        for words in ["carrier: ", " % ↑", "missing"] {
            assert!(text.contains(words), "{words}: {text}");
        }
        assert!(!text.contains(".hour.sin ") && !text.contains("e9"), "{text}");
    }
    assert!(String::from_utf8(f.read("m.svg")).unwrap().contains("carrier: "));
    f.ok("predict m.json flights.csv -o labels.csv --keep carrier");
    assert_eq!(String::from_utf8(f.read("labels.csv")).unwrap().lines().count(), ROWS + 1);
    assert_eq!(f.json("evaluate m.json flights.csv --labels carrier")["rows"], ROWS);
    f.ok("fit gmm s.nys -k 3 -o g.json");
    assert!(f.ok("inspect g.json").contains("carrier: "));
    f.ok("report s.nys m.json g.json -o r.html");
    let page = String::from_utf8(f.read("r.html")).unwrap();
    for words in ["carrier: UA", "when (hour)", "weather: (missing)", "air_time missing", "2013-0"]
    {
        assert!(page.contains(words), "{words}");
    }
    assert!(!page.contains("hour.sin"));
}

#[test]
fn drift_of_shares_is_found_and_named() {
    let f = flights();
    f.ok("plan flights.csv -o p.nys --landmarks 40 --dates when=hour --exclude tail,id");
    let all = csv(0..ROWS, &IN_ORDER);
    let lines: Vec<&str> = all.lines().collect();
    let day = |name: &str, rows: std::ops::Range<usize>, change: &dyn Fn(usize, &str) -> String| {
        let rows: Vec<String> = rows.map(|i| change(i, lines[i + 1])).collect();
        f.write(name, format!("{}\n{}\n", lines[0], rows.join("\n")));
    };
    day("1.csv", 0..1000, &|_, line| line.to_string());
    day("2.csv", 1000..2000, &|_, line| line.to_string());
    // The next rows, with a different carrier in every tenth row.
    day("3.csv", 2000..3000, &|i, line| match i % 10 {
        0 => line.replace(",EV,", ",UA,").replace(",DL,", ",UA,").replace(",B6,", ",UA,"),
        _ => line.to_string(),
    });
    // The next rows, with one more missing value in every tenth row.
    day("4.csv", 2000..3000, &|i, line| {
        let mut fields: Vec<&str> = line.split(',').collect();
        if i % 10 == 0 {
            fields[5] = "";
        }
        fields.join(",")
    });
    for i in 1..=4 {
        f.ok(&format!("sketch {i}.csv --plan p.nys -o {i}.nys"));
    }
    let same = f.json("diff 1.nys 2.nys");
    assert_eq!(same["drift"], false, "{same}");
    let carrier = f.json("diff 1.nys 3.nys");
    assert_eq!(carrier["drift"], true, "{carrier}");
    let first = &carrier["categories"][0];
    assert_eq!((&first["column"], &first["levels"][0]["level"]), (&"carrier".into(), &"UA".into()));
    assert!(first["p_value"].as_f64().unwrap() < 0.01, "{first}");
    let holes = f.json("diff 1.nys 4.nys");
    assert_eq!(holes["drift"], true, "{holes}");
    assert_eq!(holes["missing"][0]["column"], "delay");
    assert!(holes["missing"][0]["p_value"].as_f64().unwrap() < 1e-4);
    let text = f.ok("diff 1.nys 3.nys");
    assert!(text.contains("carrier: UA") && text.contains("when (hour)"), "{text}");
    let many = f.ok("diff --against 1.nys 2.nys 3.nys 4.nys");
    assert!(many.contains("carrier: UA (z ") && many.contains("delay missing (z "), "{many}");
    f.ok("report 3.nys --against 1.nys -o r.html");
    assert!(String::from_utf8(f.read("r.html")).unwrap().contains("carrier: UA"));
    // A column that is missing in all rows.
    day("5.csv", 0..500, &|_, line| {
        let mut fields: Vec<&str> = line.split(',').collect();
        (fields[5], fields[6]) = ("", "");
        fields.join(",")
    });
    f.ok("sketch 5.csv --plan p.nys -o 5.nys");
    assert_eq!(f.json("diff 1.nys 5.nys")["drift"], true);
    f.ok("fit kmeans 5.nys -k 2 -o m.json");
    f.ok("report 5.nys -o r.html");
}
