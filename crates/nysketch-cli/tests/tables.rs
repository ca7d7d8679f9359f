//! Real tables, read and written: every format, every way to name inputs, and their errors.

mod common;

use arrow_array::*;
use arrow_schema::{DataType, Field, Schema};
use common::Folder;
use common::tables::{Column, arrow_file, arrow_stream, batch, gz, npy, parquet, zst};
use predicates::str::contains;
use std::fs;
use std::sync::Arc;

/// The same values in every format, with more rows than a part has, and row groups of odd sizes.
#[test]
fn every_format_gives_the_same_bytes() {
    let n = 40_000usize;
    let wave = |i: usize, j: usize| ((i * 7 + j * 13) as f64 * 0.011).sin() * 50.0 + j as f64;
    for kind in ["<f4", "<f8", "<i2"] {
        let f = Folder::new();
        let mut data = Vec::new();
        let mut text = String::from("c0,c1,c2\n");
        let mut columns: Vec<Column> = Vec::new();
        for (j, name) in ["c0", "c1", "c2"].into_iter().enumerate() {
            let values = (0..n).map(|i| wave(i, j));
            let array: ArrayRef = match kind {
                "<f4" => Arc::new(Float32Array::from_iter_values(values.map(|x| x as f32))),
                "<f8" => Arc::new(Float64Array::from_iter_values(values)),
                _ => Arc::new(Int16Array::from_iter_values(values.map(|x| x as i16))),
            };
            columns.push((name, array));
        }
        for i in 0..n {
            let numbers: Vec<String> = (0..3)
                .map(|j| match kind {
                    "<f4" => {
                        data.extend((wave(i, j) as f32).to_le_bytes());
                        f64::from(wave(i, j) as f32).to_string()
                    }
                    "<f8" => {
                        data.extend(wave(i, j).to_le_bytes());
                        wave(i, j).to_string()
                    }
                    _ => {
                        data.extend((wave(i, j) as i16).to_le_bytes());
                        (wave(i, j) as i16).to_string()
                    }
                })
                .collect();
            text.push_str(&numbers.join(","));
            text.push('\n');
        }
        let batch = batch(&columns);
        f.write("x.npy", npy(kind, &format!("({n}, 3)"), &data))
            .write("x.parquet", parquet(&batch, 9_999))
            .write("one-group.parquet", parquet(&batch, n))
            .write("x.arrow", arrow_file(&batch))
            .write("stream.arrow", arrow_stream(&batch))
            .write("x.csv", &text)
            .write("crlf.csv", text.replace('\n', "\r\n"))
            .write(
                "quoted.csv",
                text.replace(',', "\",\"")
                    .replace('\n', "\"\n\"")
                    .trim_end_matches('"')
                    .replacen("c0", "\"c0", 1),
            )
            .write("x.csv.gz", gz(text.as_bytes()))
            .write("x.csv.zst", zst(text.as_bytes()))
            .write("x.tsv", text.replace(',', "\t"))
            // The content determines the format, whatever the name.
            .write("parquet.csv", parquet(&batch, n))
            .write("arrow.parquet", arrow_file(&batch));
        fs::create_dir(f.path("parts")).unwrap();
        for (k, at) in [0, 123, 17_000].into_iter().enumerate() {
            let end = [123, 17_000, n][k];
            f.write(&format!("parts/{k}.parquet"), parquet(&batch.slice(at, end - at), 5_000));
        }
        f.ok("sketch x.npy -o npy.nys --landmarks 40 --scale standard");
        f.ok("plan x.npy -o p.nys --landmarks 40 --scale standard");
        let expected = f.read("npy.nys");
        for file in [
            "x.parquet",
            "one-group.parquet",
            "x.arrow",
            "stream.arrow",
            "x.csv",
            "crlf.csv",
            "quoted.csv",
            "x.csv.gz",
            "x.csv.zst",
            "x.tsv",
            "parquet.csv",
            "arrow.parquet",
            "parts",
        ] {
            // The plan is made from the same file, so this also tests statistics, samples and
            // landmarks.
            f.ok(&format!("sketch {file} -o s.nys --landmarks 40 --scale standard --threads 3"));
            assert!(f.read("s.nys") == expected, "{kind} {file}");
        }
        for (file, name) in [
            ("x.csv", "csv"),
            ("x.csv.gz", "gz"),
            ("x.csv.zst", "zst"),
            ("stream.arrow", "stream"),
            ("x.arrow", "file"),
        ] {
            f.command("sketch - --plan p.nys -o s.nys --embed-witnesses")
                .write_stdin(f.read(file))
                .assert()
                .success();
            assert!(f.read("s.nys") == expected, "{kind} stdin {name}");
        }
    }
}

/// Truth values give the same bytes, whether written as true and false or as 1 and 0.
#[test]
fn true_and_false_give_the_bytes_of_parquet() {
    let f = Folder::new();
    let bits: Vec<bool> = (0..500).map(|i| i * 7 % 3 == 0).collect();
    let x = Float64Array::from_iter_values((0..500).map(|i| f64::from(i * 37 % 100)));
    let table = batch(&[("x", Arc::new(x)), ("b", Arc::new(BooleanArray::from(bits.clone())))]);
    let csv = |text: fn(bool) -> &'static str| {
        let line = |(i, b): (usize, &bool)| format!("{},{}\n", i * 37 % 100, text(*b));
        format!("x,b\n{}", bits.iter().enumerate().map(line).collect::<String>())
    };
    f.write("x.parquet", parquet(&table, 99));
    f.write("lower.csv", csv(|b| if b { "true" } else { "false" }));
    f.write("python.csv", csv(|b| if b { "True" } else { "False" }));
    f.write("upper.csv", csv(|b| if b { "TRUE" } else { "FALSE" }));
    f.write("bits.csv", csv(|b| if b { "1" } else { "0" }));
    f.ok("sketch x.parquet -o expected.nys --landmarks 9");
    f.ok("plan x.parquet -o p.nys --landmarks 9");
    for file in ["lower.csv", "python.csv", "upper.csv", "bits.csv"] {
        f.ok(&format!("sketch {file} -o s.nys --landmarks 9"));
        assert!(f.read("s.nys") == f.read("expected.nys"), "{file}");
        let piped = "sketch - --plan p.nys -o s.nys --embed-witnesses";
        f.command(piped).write_stdin(f.read(file)).assert().success();
        assert!(f.read("s.nys") == f.read("expected.nys"), "stdin {file}");
    }
    // Input from a pipe is identified by its content, too.
    let given = f.command("sketch - --plan p.nys -o t.nys").write_stdin(f.read("s.nys")).assert();
    given.code(1).stderr(contains("stdin is a nysketch plan or sketch, not a table"));
}

#[test]
fn other_types_are_read_as_numbers() {
    let f = Folder::new();
    let days = Date32Array::from_iter_values([19_000, 19_001, 19_001, 19_002]);
    let decimal = Decimal128Array::from_iter_values([1_234i128, -5, 0, 99_999]);
    let keys = Int8Array::from(vec![1, 0, 1, 1]);
    let values: ArrayRef = Arc::new(Float64Array::from(vec![0.5, 2.5]));
    let table = batch(&[
        ("u", Arc::new(UInt64Array::from(vec![1u64 << 60, 2, 3, 4]))),
        ("b", Arc::new(BooleanArray::from(vec![true, false, true, true]))),
        ("d", Arc::new(decimal.with_precision_and_scale(10, 2).unwrap())),
        ("k", Arc::new(DictionaryArray::new(keys, values))),
        (
            "h",
            Arc::new(Float16Array::from_iter_values(
                [1.5, 2.0, -3.0, 0.25].map(half::f16::from_f32),
            )),
        ),
        ("day", Arc::new(days)),
        ("name", Arc::new(StringArray::from(vec!["x", "y", "z", "w"]))),
    ]);
    f.write("x.parquet", parquet(&table, 3)).write("x.arrow", arrow_file(&table));
    f.write("x.csv", "u,b,d,k,h\n1152921504606846976,1,12.34,2.5,1.5\n2,0,-0.05,0.5,2\n3,1,0,2.5,-3\n4,1,999.99,2.5,0.25\n");
    f.ok("sketch x.csv -o c.nys --scale standard");
    for file in ["x.parquet", "x.arrow"] {
        f.command(&format!("sketch {file} -o s.nys --scale standard --exclude name"))
            .assert()
            .success()
            .stderr(contains("columns: u, b, d, k, h"))
            .stderr(contains("hold dates, which --dates day would read: day"));
        assert!(f.read("s.nys") == f.read("c.nys"), "{file}");
        f.fails(
            1,
            &format!("plan {file} -o p.nys --columns u --numeric name"),
            &["'name'", "text"],
        );
    }
    // A column without any value is not numeric, but it can be left out.
    f.write("empty.csv", "a,b,\n1,,\n2,,\n");
    assert_eq!(f.json("plan empty.csv -o p.nys")["columns"], serde_json::json!(["a"]));
    let halves: Vec<u8> = [0x3c00u16, 0x4000].iter().flat_map(|x| x.to_le_bytes()).collect();
    f.write("h.npy", npy("<f2", "(2, 1)", &halves)).write("h.csv", "c0\n1\n2\n");
    f.ok("sketch h.npy -o a.nys");
    f.ok("sketch h.csv -o b.nys");
    assert!(f.read("a.nys") == f.read("b.nys"));
    let keys = Int8Array::from(vec![1, 0, 1, 1]);
    let words: ArrayRef = Arc::new(BooleanArray::from(vec![false, true]));
    let dictionary = batch(&[("b", Arc::new(DictionaryArray::new(keys, words)))]);
    f.write("dict.parquet", parquet(&dictionary, 9)).write("dict.csv", "b\n1\n0\n1\n1\n");
    f.ok("sketch dict.parquet -o a.nys");
    f.ok("sketch dict.csv -o b.nys");
    assert!(f.read("a.nys") == f.read("b.nys"));
    let booleans: Vec<u8> = vec![1, 0, 1, 1];
    f.write("b.npy", npy("|b1", "(4, 1)", &booleans)).write("b.csv", "c0\n1\n0\n1\n1\n");
    f.ok("sketch b.npy -o a.nys");
    f.ok("sketch b.csv -o b.nys");
    assert!(f.read("a.nys") == f.read("b.nys"));
}

#[test]
fn bad_rows_are_named_in_every_format() {
    let f = Folder::new();
    f.write("p.csv", "a,b\n1,2\n3,4\n5,6\n").ok("plan p.csv -o p.nys");
    for (bad, words) in [
        (None, "missing"),
        (Some(f64::NAN), "NaN"),
        (Some(f64::INFINITY), "infinite"),
        (Some(1e300), "far"),
    ] {
        let a = Float64Array::from(vec![1.0, 3.0, 5.0, 7.0, 9.0]);
        let b = Float64Array::from(vec![Some(2.0), Some(4.0), Some(6.0), bad, Some(1.0)]);
        let table = batch(&[("a", Arc::new(a)), ("b", Arc::new(b))]);
        f.write("x.parquet", parquet(&table, 2)).write("x.arrow", arrow_file(&table));
        f.write("s.arrow", arrow_stream(&table));
        for file in ["x.parquet", "x.arrow", "s.arrow"] {
            let at = format!("{file}: row 4, column 'b'");
            f.fails(1, &format!("sketch {file} --plan p.nys -o s.nys"), &[&at, words]);
            if words != "far" {
                f.fails(1, &format!("sketch {file} -o s.nys --missing error"), &[&at, words]);
            }
            let report = f.json(&format!("sketch {file} --plan p.nys -o ok.nys --skip-invalid"));
            assert_eq!((report["rows"].as_u64(), report["skipped"].as_u64()), (Some(4), Some(1)));
        }
    }
}

/// Writes the same columns to files of four formats.
fn write_all(f: &Folder, columns: &[&[f64]]) -> [&'static str; 4] {
    let names = ["c0", "c1", "c2"];
    let arrays: Vec<Column> = columns
        .iter()
        .zip(names)
        .map(|(c, n)| (n, Arc::new(Float64Array::from(c.to_vec())) as ArrayRef))
        .collect();
    let (n, d) = (columns[0].len(), columns.len());
    let rows = |i: usize| columns.iter().map(move |c| c[i]);
    let line = |i: usize| rows(i).map(|x| x.to_string()).collect::<Vec<_>>().join(",") + "\n";
    let text: String = (0..n).map(line).collect();
    let data: Vec<u8> = (0..n).flat_map(rows).flat_map(|x| x.to_le_bytes()).collect();
    f.write("x.parquet", parquet(&batch(&arrays), 2))
        .write("x.arrow", arrow_file(&batch(&arrays)))
        .write("x.csv", format!("{}\n{text}", names[..d].join(",")))
        .write("x.npy", npy("<f8", &format!("({n}, {d})"), &data));
    ["x.parquet", "x.arrow", "x.csv", "x.npy"]
}

#[test]
fn few_rows_and_odd_columns_in_every_format() {
    let f = Folder::new();
    for file in write_all(&f, &[&[3.5]]) {
        assert_eq!(f.json(&format!("sketch {file} -o s.nys"))["rows"], 1, "{file}");
    }
    for file in write_all(&f, &[&[1.0, 2.0, 3.0], &[5.0, 5.0, 5.0]]) {
        let report = f.json(&format!("sketch {file} -o s.nys --scale standard"));
        assert_eq!(report["rows"], 3, "{file}");
        f.fails(1, &format!("sketch {file} -o t.nys --landmarks 4"), &["only 3 rows"]);
        f.fails(1, "fit kmeans s.nys -k 9 -o m.json", &["k = 9 is more than"]);
    }
    for file in write_all(&f, &[&[4.0; 9]]) {
        assert_eq!(f.json(&format!("sketch {file} -o s.nys"))["landmarks"], 1, "{file}");
    }
    for file in write_all(&f, &[&[1e30, -1e30, 0.0]]) {
        f.fails(1, &format!("sketch {file} -o t.nys"), &["column 'c0'", "--scale standard"]);
        f.ok(&format!("sketch {file} -o s.nys --scale standard"));
    }
    for file in write_all(&f, &[&[], &[]]) {
        f.fails(1, &format!("sketch {file} -o t.nys"), &["the input has no rows"]);
    }
}

#[test]
fn damaged_tables_are_refused() {
    let f = Folder::new();
    let values = |k: f64| {
        Arc::new(Float64Array::from_iter_values((0..2000).map(|i| (f64::from(i) * k).sin())))
    };
    let table = batch(&[("a", values(0.1)), ("b", values(0.7))]);
    let (file, ipc, stream) = (parquet(&table, 700), arrow_file(&table), arrow_stream(&table));
    f.write("x.parquet", &file).ok("plan x.parquet -o p.nys --landmarks 20");
    f.write("cut.parquet", &file[..file.len() / 2]);
    f.fails(1, "sketch cut.parquet --plan p.nys -o s.nys", &["cut.parquet cannot be read"]);
    f.write("magic.parquet", "PAR1....").fails(
        1,
        "plan magic.parquet -o s.nys",
        &["magic.parquet"],
    );
    f.write("text.parquet", "a,b\n1,2\n").fails(
        1,
        "plan text.parquet -o s.nys",
        &["text.parquet cannot be read"],
    );
    f.write("cut.arrow", &ipc[..ipc.len() / 2]);
    f.fails(1, "sketch cut.arrow --plan p.nys -o s.nys", &["cut.arrow cannot be read"]);
    // The stream is cut anywhere, even between two batches.
    for cut in (0..stream.len()).step_by(stream.len() / 40) {
        f.write("s.arrow", &stream[..cut]);
        f.fails(1, "sketch s.arrow --plan p.nys -o s.nys", &["s.arrow"]);
        f.command("sketch - --plan p.nys -o s.nys").write_stdin(&stream[..cut]).assert().code(1);
    }
    // A flipped byte may change a number, but it never causes a panic or a partial file.
    for (name, bytes) in [("y.parquet", &file), ("y.arrow", &ipc), ("z.arrow", &stream)] {
        for k in 0..60 {
            let mut bytes = bytes.clone();
            let at = (k * 7919 + 13) * (1 + k * k) % bytes.len();
            bytes[at] ^= 1 << (k % 8);
            f.write(name, &bytes);
            let output =
                f.command(&format!("sketch {name} --plan p.nys -o y.nys")).output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(matches!(output.status.code(), Some(0 | 1)), "{name} byte {at}: {said}");
            assert!(!said.contains("panicked"), "{name} byte {at}: {said}");
            assert_eq!(f.path("y.nys").exists(), output.status.success());
            let _ = fs::remove_file(f.path("y.nys"));
        }
    }
    // Two concatenated streams are not one stream.
    f.write("twice.arrow", [&stream[..], &stream[..]].concat());
    f.fails(1, "sketch twice.arrow --plan p.nys -o s.nys", &["after the end of the stream"]);
    f.write("none.parquet", parquet(&table.slice(0, 0), 10));
    f.fails(1, "sketch none.parquet --plan p.nys -o s.nys", &["no rows"]);
    let report = f.json("sketch none.parquet --plan p.nys -o none.nys --allow-empty");
    assert_eq!(report["rows"], 0);
    let gz = gz(b"a,b\n1,2\n3,4\n5,6\n7,8\n");
    f.write("cut.csv.gz", &gz[..gz.len() - 6]);
    f.fails(1, "sketch cut.csv.gz --plan p.nys -o s.nys", &["cut.csv.gz"]);
    f.write("old.csv", b"\xff\xfea\x00").fails(1, "plan old.csv -o s.nys", &["UTF-16"]);
    f.write("x.xlsx", b"PK\x03\x04....").fails(
        1,
        "plan x.xlsx -o s.nys",
        &["x.xlsx is a zip archive"],
    );
}

#[test]
fn files_must_fit_together() {
    let f = Folder::new();
    let numbers = || -> ArrayRef { Arc::new(Float64Array::from(vec![1.0, 2.0, 4.0])) };
    let text: ArrayRef = Arc::new(StringArray::from(vec!["x", "y", "z"]));
    f.write("1.parquet", parquet(&batch(&[("a", numbers()), ("b", numbers())]), 9))
        .write("2.parquet", parquet(&batch(&[("b", numbers()), ("c", numbers())]), 9))
        .write("3.parquet", parquet(&batch(&[("a", numbers()), ("b", text)]), 9))
        .write(
            "4.parquet",
            parquet(&batch(&[("b", numbers()), ("a", numbers()), ("z", numbers())]), 9),
        )
        .write("5.csv", "b,a\n1,1\n2,2\n4,4\n");
    f.fails(
        1,
        "plan 1.parquet 2.parquet -o s.nys",
        &["2.parquet does not have the column a; it has b, c"],
    );
    f.fails(
        1,
        "plan 1.parquet 3.parquet -o s.nys",
        &["3.parquet: column 'b' holds text here, and numbers in 1.parquet"],
    );
    f.command("plan 1.parquet 4.parquet 5.csv -o p.nys")
        .assert()
        .success()
        .stderr(contains("'z' of 4.parquet"));
    f.ok("sketch 4.parquet --plan p.nys -o 4.nys");
    f.ok("sketch 5.csv --plan p.nys -o 5.nys");
    assert!(f.read("4.nys") == f.read("5.nys"));
    let twice = Schema::new(vec![
        Field::new("a", DataType::Float64, true),
        Field::new("a", DataType::Float64, true),
    ]);
    let twice = RecordBatch::try_new(Arc::new(twice), vec![numbers(), numbers()]).unwrap();
    f.write("twice.arrow", arrow_file(&twice)).fails(
        1,
        "plan twice.arrow -o s.nys",
        &["two columns are called 'a'"],
    );
    f.fails(1, "plan 5.csv -o s.nys --format parquet", &["5.csv cannot be read"]);
    f.write("odd", "a\tb\n1\t2\n3\t4\n");
    assert_eq!(f.json("plan odd -o q.nys --format tsv")["columns"], serde_json::json!(["a", "b"]));
}

#[test]
fn folders_and_patterns() {
    let f = Folder::new();
    for (path, text) in [
        ("d/day=1/part-0.csv", "a,b\n1,2\n3,4\n"),
        ("d/day=2/part-0.csv", "a,b\n5,6\n"),
        ("d/day=2/part-1.csv.gz", ""),
        ("d/_SUCCESS", ""),
        ("d/.part-0.csv.crc", "x"),
        ("d/notes.md", "x"),
        ("none/notes.md", "x"),
    ] {
        fs::create_dir_all(f.path(path).parent().unwrap()).unwrap();
        f.write(path, text);
    }
    f.write("d/day=2/part-1.csv.gz", gz(b"a,b\n7,8\n"));
    f.write("all.csv", "a,b\n1,2\n3,4\n5,6\n7,8\n").ok("sketch all.csv -o all.nys");
    f.command("sketch d -o d.nys --exclude day")
        .assert()
        .success()
        .stderr(contains("do not look like tables: d/notes.md"));
    assert!(f.read("d.nys") == f.read("all.nys"));
    f.ok("sketch d/day=1/part-0.csv d/*/part-*.csv.gz d/day=2/*0.csv -o e.nys");
    assert_eq!(f.json("inspect e.nys")["rows"], 4);
    f.ok("sketch d/**/part-* -o g.nys --exclude day");
    assert!(f.read("g.nys") == f.read("all.nys"));
    // Every file is read once, and notes of other programs are not read.
    for pattern in ["d/**/*.csv*", "d/day*", "d/day=*/*"] {
        f.ok(&format!("sketch {pattern} -o g.nys --exclude day"));
        assert!(f.read("g.nys") == f.read("all.nys"), "{pattern}");
    }
    f.ok("plan all.csv -o p.nys");
    f.fails(2, "sketch - - --plan p.nys -o s.nys", &["can be named only once"]);
    f.fails(1, "sketch none -o s.nys", &["the folder none holds no tables"]);
    f.fails(1, "sketch d/*.parquet -o s.nys", &["no table matches d/*.parquet"]);
    f.fails(1, "sketch nowhere/ -o s.nys", &["cannot read nowhere/"]);
    f.fails(2, "sketch *.csv -o all.csv", &["cannot be written as .csv"]);
    // A file whose name looks like a pattern is read as that file.
    f.write("[1].csv", "a,b\n1,2\n3,4\n5,6\n7,8\n").ok("sketch [1].csv -o h.nys");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        fs::create_dir(f.path("locked")).unwrap();
        fs::set_permissions(f.path("locked"), fs::Permissions::from_mode(0o000)).unwrap();
        // The root user can read every folder.
        match fs::read_dir(f.path("locked")) {
            Err(_) => f.fails(1, "sketch locked -o s.nys", &["cannot read the folder locked"]),
            Ok(_) => f.fails(1, "sketch locked -o s.nys", &["holds no tables"]),
        }
        fs::set_permissions(f.path("locked"), fs::Permissions::from_mode(0o755)).unwrap();
    }
}

#[test]
fn columns_by_range_and_pattern() {
    let f = Folder::new();
    f.write("x.csv", "id,x1,x2,x3,y\n1,2,3,4,5\n2,4,4,1,7\n3,2,9,9,9\n");
    let columns =
        |options: &str| f.json(&format!("plan x.csv -o p.nys {options}"))["columns"].clone();
    assert_eq!(columns("--columns x1..x3"), serde_json::json!(["x1", "x2", "x3"]));
    assert_eq!(columns("--columns y,x* --exclude x2"), serde_json::json!(["y", "x1", "x3"]));
    assert_eq!(columns("--exclude id,x2..y"), serde_json::json!(["x1"]));
    f.fails(1, "plan x.csv -o s.nys --columns x3..x1", &["x1..x3"]);
    f.fails(1, "plan x.csv -o s.nys --columns q*", &["no column like 'q*'"]);
    f.fails(1, "plan x.csv -o s.nys --exclude *", &["--exclude leaves no column"]);
}

#[test]
fn a_stray_quote_in_row_one_million_is_named() {
    let f = Folder::new();
    f.write("p.csv", "a,b\n1,2\n3,4\n5,6\n").ok("plan p.csv -o p.nys");
    let mut text = String::from("a,b\n");
    text.push_str(&"1,2\n".repeat(999_999));
    text.push_str("1,\"2\n");
    let words = ["row 1000000 (line 1000001): a quote (\") is opened and never closed"];
    f.write("x.csv", format!("{text}{}", "3,4\n".repeat(5000)));
    f.fails(1, "sketch x.csv --plan p.nys -o s.nys", &words);
    f.write("x.csv", format!("{text}3,4\n"));
    f.fails(1, "sketch x.csv --plan p.nys -o s.nys", &words);
    f.write("x.csv", format!("{text}3,\"4\"\n")).fails(
        1,
        "sketch x.csv --plan p.nys -o s.nys",
        &["row 1000000"],
    );
}

#[test]
fn one_sketch_a_group() {
    let f = Folder::new();
    let days = Date32Array::from_iter_values((0..3000).map(|i| 19_723 + i % 3));
    let country =
        StringArray::from_iter((0..3000).map(|i| (i % 7 != 0).then(|| ["at", "b/e"][i % 2])));
    let x = Float64Array::from_iter_values((0..3000).map(|i| (f64::from(i) * 0.1).sin()));
    let table =
        batch(&[("day", Arc::new(days)), ("country", Arc::new(country)), ("x", Arc::new(x))]);
    f.write("x.parquet", parquet(&table, 800)).write("x.arrow", arrow_file(&table));
    let report = f.json("sketch x.parquet --by day -o days --landmarks 30");
    assert_eq!(report["columns"], serde_json::json!(["x"]));
    assert_eq!(report["groups"].as_array().unwrap().len(), 3);
    assert_eq!(report["groups"][0]["value"], "2024-01-01");
    assert_eq!(
        (report["rows"].as_u64(), report["groups"][1]["rows"].as_u64()),
        (Some(3000), Some(1000))
    );
    // The groups add up to the sketch of the whole.
    f.ok("sketch x.parquet --plan days/plan.nys -o all.nys");
    f.ok("merge days/2024-01-03.nys days/2024-01-01.nys days/2024-01-02.nys -o merged.nys");
    assert!(f.read("merged.nys") == f.read("all.nys"));
    f.fails(
        1,
        "sketch x.parquet --by country -o c",
        &["x.parquet: row 1, column 'country': the group is missing"],
    );
    let report = f.json("sketch x.arrow --by country -o c --skip-invalid --landmarks 30");
    assert_eq!(
        (report["without_group"].as_u64(), report["rows"].as_u64()),
        (Some(429), Some(2571))
    );
    assert!(f.path("c/b%2Fe.nys").exists() && f.path("c/at.nys").exists());
    f.fails(
        1,
        "sketch x.parquet --by day -o e --max-groups 2",
        &["column 'day' has more than 2 different values", "--max-groups"],
    );
    f.fails(1, "sketch x.parquet --by day -o days", &["the folder days is not empty"]);
    f.fails(1, "sketch x.parquet --by day -o x.arrow", &["x.arrow is a file"]);
    f.fails(1, "sketch x.parquet --by hour -o e", &["no column 'hour'"]);
    // Text is not interpreted: NA is Namibia.
    f.write("na.csv", "x,g\n0.5,NA\n0.25, b\n0.125,NA\n0.3,\n");
    f.fails(1, "sketch na.csv --by g -o na", &["na.csv: row 4, column 'g'"]);
    f.ok("sketch na.csv --by g -o na --skip-invalid");
    assert_eq!(f.json("inspect na/NA.nys")["rows"], 2);
    assert!(f.path("na/ b.nys").exists());
    // The first bad row is reported, whatever its group.
    f.write("two.csv", "x,g\n1,b\n2,a\nnan,b\nnan,a\n5,\n");
    let line = "sketch two.csv --columns x --by g -o t --missing error";
    f.fails(1, line, &["two.csv: row 3, column 'x'"]);
    f.ok("plan na.csv -o r.nys --columns x --skip-invalid");
    f.fails(1, "sketch two.csv --plan r.nys --by g -o t", &["two.csv: row 3, column 'x'"]);
    f.write("zero.csv", "").ok("sketch zero.csv --plan r.nys --by g -o z --allow-empty");
    assert!(f.path("z").is_dir());
    let hours = TimestampMillisecondArray::from_iter_values((0..4).map(|i| i * 3_600_000));
    let hours = hours.with_timezone("Europe/Vienna");
    let x: ArrayRef = Arc::new(Float64Array::from(vec![1.0, 2.0, 3.0, 4.0]));
    f.write("ts.parquet", parquet(&batch(&[("ts", Arc::new(hours)), ("x", x)]), 9));
    f.ok("sketch ts.parquet --by ts -o ts");
    assert!(f.path("ts/1970-01-01T01%3A00%3A00Z.nys").exists());
    // A plan from different rows, csv input, and numbers as groups.
    f.ok("plan x.parquet -o p.nys --columns x --landmarks 10");
    f.write("x.csv", "x,g\n0.5,1\n0.25,2\n0.125,1\n");
    f.ok("sketch x.csv --plan p.nys --by g -o g");
    assert_eq!(f.json("inspect g/1.nys")["rows"], 2);
    f.write(
        "x.npy",
        npy(
            "<f8",
            "(3, 2)",
            &[0.5f64, 1.0, 0.25, 2.0, 0.125, 1.0]
                .iter()
                .flat_map(|x| x.to_le_bytes())
                .collect::<Vec<_>>(),
        ),
    );
    f.write("p.csv", "c0\n0.1\n0.2\n0.3\n").ok("plan p.csv -o q.nys");
    f.ok("sketch x.npy --plan q.nys --by c1 -o h");
    assert_eq!(f.json("inspect h/1.nys")["rows"], 2);
}

/// Unfinished output and log files of a writer are not data.
#[test]
fn wildcards_do_not_enter_folders_of_notes() {
    let f = Folder::new();
    for folder in ["d", "d/_temporary", "d/.git", "d/sub"] {
        fs::create_dir(f.path(folder)).unwrap();
        f.write(&format!("{folder}/x.csv"), "a,b\n1,2\n3,4\n");
    }
    assert_eq!(f.json("sketch d/**/*.csv -o s.nys")["rows"], 4);
    assert_eq!(f.json("sketch d/*/*.csv -o s.nys")["rows"], 2);
    assert_eq!(f.json("sketch d/_*/*.csv -o s.nys")["rows"], 2);
}

/// The error is about the row that cannot be skipped, not about one that can.
#[test]
fn ragged_rows_are_named_where_others_are_skipped() {
    let f = Folder::new();
    f.write("x.csv", "a,b\n1,2\n,2\n3\n4,5\n");
    f.fails(1, "sketch x.csv -o s.nys --skip-invalid", &["x.csv", "row 3"]);
}

/// Notes that people keep in a folder are not tables. A csv file of any name is read if it is
/// named.
#[test]
fn texts_beside_tables_are_skipped() {
    let f = Folder::new();
    fs::create_dir(f.path("days")).unwrap();
    f.write("days/1.csv", "a,b\n1,2\n3,4\n").write("days/README.txt", "Hello, this is it\n");
    let said = f.command("sketch days -o s.nys").assert().success();
    said.stderr(contains("files skipped because they do not look like tables: days/README.txt"));
    f.write("x.txt", "a,b\n1,2\n3,4\n");
    assert_eq!(f.json("sketch x.txt -o t.nys")["rows"], 2);
}

/// Without column names, the first columns are matched with the plan, which may have left out
/// others.
#[test]
fn columns_beyond_those_of_the_plan_are_told() {
    let f = Folder::new();
    let bytes = |columns: usize| -> Vec<u8> {
        (0..9 * columns).flat_map(|i| ((i * i % 31) as f64).to_le_bytes()).collect()
    };
    f.write("two.npy", npy("<f8", "(9, 2)", &bytes(2)));
    f.write("three.npy", npy("<f8", "(9, 3)", &bytes(3)));
    f.ok("plan two.npy -o p.nys");
    let said = f.command("sketch three.npy --plan p.nys -o s.nys").assert().success();
    said.stderr(contains("three.npy has 3 columns without names, of which the first 2 are read"));
    // Columns left out in between were a choice, so there is no note. The column of weights is
    // read, too.
    f.ok("plan three.npy -o q.nys --columns c0,c2");
    f.ok("plan three.npy -o w.nys --columns c0,c1 --weights c2");
    for plan in ["q", "w"] {
        let line = format!("sketch three.npy --plan {plan}.nys -o {plan}2.nys");
        let said = f.command(&line).assert().success().get_output().stderr.clone();
        let said = String::from_utf8(said).unwrap();
        assert!(!said.contains("without names"), "{said}");
    }
}

/// The index that pandas writes has no name, and another column may already have the default name.
#[test]
fn columns_without_names_get_free_ones() {
    let f = Folder::new();
    f.write("x.csv", ",c0,c1\n0,5,6\n1,7,8\n2,9,1\n");
    let found = f.json("plan x.csv -o p.nys");
    assert_eq!(found["columns"][0], "unnamed0", "{found}");
    f.write("y.csv", "c0,c1\n5,6\n7,8\n9,1\n");
    f.ok("sketch y.csv -o y.nys");
    f.ok("fit kmeans y.nys -k 2 -o m.json");
    let whole = f.json("evaluate m.json y.csv");
    assert_eq!(f.json("evaluate m.json x.csv"), whole);
}
