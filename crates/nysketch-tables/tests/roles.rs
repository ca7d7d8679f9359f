//! Realistic tables with missing numbers, text, dates, vectors and folders, which must be read
//! alike in every format.

use arrow_array::builder::{FixedSizeListBuilder, Float32Builder, Float64Builder, ListBuilder};
use arrow_array::types::{Float16Type, Int8Type, Int32Type};
use arrow_array::*;
use arrow_ipc::writer::{FileWriter, StreamWriter};
use nysketch_core::recipe::Number;
use nysketch_core::rows::{Lost, MAX_TEXTS, MISSING, OTHER};
use nysketch_core::{Category, Recipe, RowSource, Step};
use nysketch_tables::{Columns, Dataset, Extras, OutputFormat, ReadOptions, Role, TableWriter};
use parquet::arrow::ArrowWriter;
use parquet::file::properties::WriterProperties;
use proptest::prelude::*;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A row in comparable form: numbers as bits, with one pattern for missing ones, and the texts of
/// categories.
type Row = (Vec<u64>, Vec<Option<String>>);

fn rows(table: &Dataset, threads: usize) -> nysketch_core::Result<Vec<Row>> {
    let mut rows = Vec::new();
    let categories = table.categories();
    let bits = |x: &f64| if x.is_nan() { u64::MAX } else { x.to_bits() };
    let work = |batch: nysketch_tables::Batch| Ok(batch.block);
    table.map_in_order(threads, &(), work, |block| {
        assert_eq!(block.codes.len(), block.len() * categories.len());
        let texts: Vec<_> = categories.iter().map(|c| c.vocabulary.texts()).collect();
        let text = |(k, code): (usize, &u32)| match *code {
            MISSING => None,
            OTHER => Some("(other)".to_string()),
            code => Some(texts[k][code as usize].to_string()),
        };
        for (i, (_, values, _)) in block.rows().enumerate() {
            let codes = &block.codes[i * texts.len()..(i + 1) * texts.len()];
            let texts = codes.iter().enumerate().map(text).collect();
            rows.push((values.iter().map(bits).collect(), texts));
        }
        Ok(())
    })?;
    Ok(rows)
}

/// Returns the numbers and texts of all rows.
fn read(table: &Dataset) -> (Vec<f64>, Vec<Option<String>>) {
    let (numbers, texts): (Vec<_>, Vec<_>) = rows(table, 1).unwrap().into_iter().unzip();
    (
        numbers.into_iter().flatten().map(f64::from_bits).collect(),
        texts.into_iter().flatten().collect(),
    )
}

fn open(path: &Path, columns: Columns) -> nysketch_tables::Result<Dataset> {
    Dataset::open([path], &ReadOptions::default().columns(columns))
}

/// Returns the error of opening or reading a table.
fn error_of(paths: &[&Path], options: &ReadOptions) -> String {
    match Dataset::open(paths, options) {
        Err(error) => error.to_string(),
        Ok(table) => rows(&table, 1).unwrap_err().to_string(),
    }
}

fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    let nullable = columns.into_iter().map(|(name, array)| (name, array, true));
    RecordBatch::try_from_iter_with_nullable(nullable).unwrap()
}

fn write_parquet(path: &Path, batch: &RecordBatch, group: usize) {
    let properties = WriterProperties::builder().set_max_row_group_row_count(Some(group)).build();
    let file = File::create(path).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties)).unwrap();
    writer.write(batch).unwrap();
    writer.close().unwrap();
}

fn write_arrow(path: &Path, batch: &RecordBatch, rows: usize) {
    let mut writer = FileWriter::try_new(File::create(path).unwrap(), &batch.schema()).unwrap();
    for start in (0..batch.num_rows()).step_by(rows) {
        writer.write(&batch.slice(start, rows.min(batch.num_rows() - start))).unwrap();
    }
    writer.finish().unwrap();
}

fn write_csv(path: &Path, batch: &RecordBatch) {
    let mut out = File::create(path).unwrap();
    let mut writer = TableWriter::new(OutputFormat::Csv, &batch.schema(), &mut out).unwrap();
    writer.write(batch).unwrap();
    writer.finish().unwrap();
}

#[derive(Debug, Clone)]
struct Mixed {
    x: Option<f64>,
    n: Option<i32>,
    b: Option<bool>,
    text: Option<String>,
    level: Option<&'static str>,
    when: Option<i64>,
    day: Option<i32>,
    vector: Option<[Option<i8>; 3]>,
    list: Option<[i8; 2]>,
}

fn mixed() -> impl Strategy<Value = Mixed> {
    let some = prop::option::weighted(0.8, any::<i8>());
    let level = prop::sample::select(vec!["UA", "AA", "B6", "other"]);
    (
        prop::option::weighted(0.8, -1e9..1e9),
        prop::option::weighted(0.8, any::<i32>()),
        prop::option::weighted(0.8, any::<bool>()),
        prop::option::weighted(0.8, "(NA|None|[a-c,\"é 1]{0,3})"),
        prop::option::weighted(0.8, level),
        prop::option::weighted(0.8, -4_000_000_000_000_000_000..4_000_000_000_000_000_000i64),
        prop::option::weighted(0.8, -700_000..2_900_000i32),
        prop::option::weighted(0.8, [some.clone(), some.clone(), some]),
        prop::option::weighted(0.8, any::<[i8; 2]>()),
    )
        .prop_map(|(x, n, b, text, level, when, day, vector, list)| Mixed {
            x,
            n,
            b,
            text,
            level,
            when,
            day,
            vector,
            list,
        })
}

/// Makes the table with vectors in one column, or with one column per coordinate.
fn mixed_batch(rows: &[Mixed], vectors: bool) -> RecordBatch {
    let levels: DictionaryArray<Int8Type> = rows.iter().map(|r| r.level).collect();
    let mut columns: Vec<(&str, ArrayRef)> = vec![
        ("x", Arc::new(Float64Array::from_iter(rows.iter().map(|r| r.x)))),
        ("n", Arc::new(Int32Array::from_iter(rows.iter().map(|r| r.n)))),
        ("b", Arc::new(BooleanArray::from_iter(rows.iter().map(|r| r.b)))),
        ("text", Arc::new(StringArray::from_iter(rows.iter().map(|r| r.text.as_deref())))),
        ("level", Arc::new(levels)),
        ("when", Arc::new(TimestampNanosecondArray::from_iter(rows.iter().map(|r| r.when)))),
        ("day", Arc::new(Date32Array::from_iter(rows.iter().map(|r| r.day)))),
    ];
    if vectors {
        let mut vector = FixedSizeListBuilder::new(Float32Builder::new(), 3);
        let mut list = ListBuilder::new(Float64Builder::new());
        for row in rows {
            let coordinates = row.vector.unwrap_or_default();
            for c in coordinates {
                vector.values().append_option(c.map(|c| f32::from(c) / 8.0));
            }
            vector.append(row.vector.is_some());
            row.list.iter().flatten().for_each(|c| list.values().append_value(f64::from(*c) / 8.0));
            list.append(row.list.is_some());
        }
        columns.push(("v", Arc::new(vector.finish())));
        columns.push(("w", Arc::new(list.finish())));
    } else {
        let coordinate = |j: usize| rows.iter().map(move |r| r.vector.and_then(|v| v[j]));
        for (j, name) in ["v[0]", "v[1]", "v[2]"].into_iter().enumerate() {
            let numbers = coordinate(j).map(|c| c.map(|c| f64::from(c) / 8.0));
            columns.push((name, Arc::new(Float64Array::from_iter(numbers))));
        }
        for (j, name) in ["w[0]", "w[1]"].into_iter().enumerate() {
            let numbers = rows.iter().map(|r| r.list.map(|w| f64::from(w[j]) / 8.0));
            columns.push((name, Arc::new(Float64Array::from_iter(numbers))));
        }
    }
    batch(columns)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn the_same_table_is_the_same_in_every_format(
        mut table in prop::collection::vec(mixed(), 1..200),
        cut in 1usize..100,
        day_is_text: bool,
    ) {
        // The first list determines the length of all.
        table[0].list = Some([1, 2]);
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let whole = mixed_batch(&table, true);
        write_parquet(&path("x.parquet"), &whole, cut);
        write_arrow(&path("x.arrow"), &whole, cut);
        write_csv(&path("x.csv"), &mixed_batch(&table, false));
        let columns = Columns::default().numeric(["x", "n", "b"]).categorical(["text", "level"]);
        let columns = if day_is_text { columns.categorical(["day", "n"]).dates(["when"]) } else { columns.dates(["when", "day"]) };
        let columns = if day_is_text { without_numeric(columns) } else { columns };
        let first = open(&path("x.parquet"), columns.clone()).unwrap();
        let expected = rows(&first, 1).unwrap();
        prop_assert_eq!(expected.len(), table.len());
        for name in ["x.parquet", "x.arrow", "x.csv"] {
            for threads in [1, 3] {
                let other = open(&path(name), columns.clone()).unwrap();
                prop_assert_eq!(other.columns(), first.columns());
                prop_assert_eq!(&rows(&other, threads).unwrap(), &expected, "{}", name);
            }
        }
        // Every value is read back unchanged.
        let at = |name: &str| first.columns().iter().position(|c| c == name).unwrap();
        for (row, (numbers, texts)) in table.iter().zip(&expected) {
            let number = |name: &str| f64::from_bits(numbers[at(name)]);
            prop_assert!(row.x.map_or(number("x").is_nan(), |x| number("x") == x));
            let when = row.when.map(|ns| ns as f64 / 1e9);
            prop_assert!(when.map_or(number("when").is_nan(), |s| (number("when") - s).abs() < 1e-5));
            let kept = row.text.clone().filter(|t| !t.is_empty());
            let names: Vec<&str> = first.categories().iter().map(|c| c.name.as_str()).collect();
            let text = |name: &str| &texts[names.iter().position(|n| *n == name).unwrap()];
            prop_assert_eq!(text("text"), &kept);
            prop_assert_eq!(text("level").as_deref(), row.level);
            let v1 = row.vector.and_then(|v| v[1]).map(|c| f64::from(c) / 8.0);
            prop_assert!(v1.map_or(number("v[1]").is_nan(), |c| number("v[1]") == c));
        }
    }
}

/// Returns the same columns, but does not force `n` to be a number.
fn without_numeric(columns: Columns) -> Columns {
    match columns {
        Columns::Matching { include, exclude, categorical, dates, .. } => {
            let numeric = vec!["x".into(), "b".into()];
            Columns::Matching { include, exclude, categorical, numeric, dates }
        }
        other => other,
    }
}

fn files(texts: &[(&str, &str)]) -> (tempfile::TempDir, Vec<PathBuf>) {
    let folder = tempfile::tempdir().unwrap();
    let mut paths = Vec::new();
    for (name, text) in texts {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        paths.push(path);
    }
    (folder, paths)
}

#[test]
fn columns_have_sensible_roles() {
    let late = "NA\n".repeat(300);
    let csv = "when,x,b,colour,gap,id\n\
               2013-01-01T05:00:00,1.5,true,red,NA,7\n2013-01-01 06:00,NA,false,None,N/A,8\n,#N/A,,,,9\n";
    let (_folder, paths) = files(&[("a.csv", csv), ("late.csv", &format!("x\n{late}3\n"))]);
    let table = open(&paths[0], Columns::default().except(["id"])).unwrap();
    assert_eq!(table.columns(), ["x", "b", "gap"]);
    let (numbers, texts) = read(&table);
    assert_eq!(numbers[..2], [1.5, 1.0]);
    assert!(numbers[2].is_nan() && numbers[3].is_nan() && numbers[4] == 0.0);
    // A level may be called None; only an empty field is missing.
    assert_eq!(texts, [Some("red".into()), Some("None".into()), None]);
    let expected = "columns skipped because they hold dates, which `dates=when` would read: when";
    assert_eq!(table.notes(), [expected]);
    let roles: Vec<String> = table.roles().iter().map(|r| r.to_string()).collect();
    let expected = [
        "when (date): left out: dates; `dates=when` reads them",
        "x (number): a number",
        "b (bool): a number",
        "colour (text): a category",
        "gap (number): a number",
        "id (number): left out: excluded",
    ];
    assert_eq!(roles, expected);
    // Rows with a missing value do not affect the type of the column.
    let table = open(&paths[1], Columns::default()).unwrap();
    assert_eq!(read(&table).0.last(), Some(&3.0));
}

#[test]
fn roles_can_be_told() {
    let csv = "when,x,code,colour\n2013-01-01,1,07,red\n2013-01-02T12:00,2,08,blue\n";
    let (_folder, paths) = files(&[("a.csv", csv)]);
    let columns = Columns::matching(["x", "colour"]).categorical(["code"]).dates(["when"]);
    let table = open(&paths[0], columns).unwrap();
    assert_eq!(table.columns(), ["x", "when"]);
    assert_eq!((table.is_time(0), table.is_time(1)), (false, true));
    let (numbers, texts) = read(&table);
    assert_eq!(numbers, [1.0, 1_356_998_400.0, 2.0, 1_357_128_000.0]);
    assert_eq!(texts.into_iter().flatten().collect::<Vec<_>>(), ["red", "07", "blue", "08"]);
    // Reads the columns of a plan, in its order.
    let mut recipe = Recipe::plain(["x"]);
    recipe.numbers.insert(0, Number { input: "when".into(), step: Step::Time });
    recipe.numbers.push(Number { input: "when".into(), step: Step::HourSin });
    let levels = vec!["07".into()];
    recipe.categories.push(Category { name: "code".into(), levels, weight: 1.0 });
    let table = open(&paths[0], Columns::of_recipe(&recipe)).unwrap();
    assert_eq!(table.columns(), ["when", "x"]);
    assert!(table.is_time(0) && !table.is_time(1));
    assert_eq!(table.categories()[0].name, "code");
    let refused =
        |columns: Columns| error_of(&[&paths[0]], &ReadOptions::default().columns(columns));
    let said = refused(Columns::matching(["x", "when"]));
    assert!(said.ends_with("column 'when' holds dates; read them with `dates=when`"), "{said}");
    let said = refused(Columns::default().numeric(["colour"]));
    assert!(said.contains("row 1, column 'colour': 'red' is not a number"), "{said}");
    let said = refused(Columns::default().dates(["colour"]));
    assert!(said.contains("row 1, column 'colour': 'red' is not a date such as"), "{said}");
    assert_eq!(
        refused(Columns::default().categorical(["x"]).dates(["x"])),
        "`categorical` and `dates` both name 'x'"
    );
    assert_eq!(
        refused(Columns::default().categorical(["x"]).except(["x"])),
        "`exclude` leaves out 'x', which `categorical` names"
    );
}

#[test]
fn times_are_checked() {
    let (_folder, paths) = files(&[
        ("mixed.csv", "x,when\n1,2013-01-01T05:00:00Z\n2,\n3,2013-01-01T05:00:00\n"),
        ("wrong.csv", "x,when\n1,2013-02-28\n2,2013-02-30\n"),
        ("naive.csv", "x,when\n1,2013-02-28\n"),
        ("late.csv", &format!("x,when\n{}1,2013-01-01T00:00Z\n", "1,\n".repeat(500_000))),
    ]);
    let options = ReadOptions::default().columns(Columns::default().dates(["when"]));
    let said = |paths: &[&PathBuf], options: &ReadOptions| {
        let paths: Vec<&Path> = paths.iter().map(|p| p.as_path()).collect();
        error_of(&paths, options)
    };
    let mixed = said(&[&paths[0]], &options.clone().allow_missing(true));
    let expected =
        "row 3, column 'when': '2013-01-01T05:00:00' mixes times with and without a zone";
    assert!(mixed.ends_with(expected), "{mixed}");
    let wrong = said(&[&paths[1]], &options);
    assert!(wrong.contains("row 2, column 'when': '2013-02-30' is not a date such as"), "{wrong}");
    let between = said(&[&paths[2], &paths[0]], &options);
    assert!(
        between.contains("mixes times with and without a zone: with here, without in"),
        "{between}"
    );
    // If the first rows do not show a zone, all rows together must agree.
    let late = said(&[&paths[3], &paths[2]], &options.clone().allow_missing(true));
    assert!(late.contains("mixes times with and without a zone"), "{late}");
    // The same instants with and without a zone, in files that declare which.
    let folder = tempfile::tempdir().unwrap();
    let (with, without) = (folder.path().join("z.parquet"), folder.path().join("n.parquet"));
    let stamps = TimestampMicrosecondArray::from(vec![1_500_000]);
    let x = || Arc::new(Float64Array::from(vec![1.0])) as ArrayRef;
    let zoned = stamps.clone().with_timezone("+01:00");
    write_parquet(&with, &batch(vec![("x", x()), ("when", Arc::new(zoned))]), 10);
    write_parquet(&without, &batch(vec![("x", x()), ("when", Arc::new(stamps))]), 10);
    for path in [&with, &without] {
        let table = Dataset::open([path], &options).unwrap();
        assert_eq!(read(&table).0, [1.0, 1.5]);
    }
    let between = said(&[&with, &without], &options);
    assert!(
        between.contains("mixes times with and without a zone: without here, with in"),
        "{between}"
    );
    let unasked = error_of(&[&with], &ReadOptions::default().columns(Columns::exactly(["when"])));
    assert!(
        unasked.contains("column 'when' holds dates; read them with `dates=when`"),
        "{unasked}"
    );
}

fn lists(rows: &[Option<&[i32]>]) -> ArrayRef {
    let rows = rows.iter().map(|r| r.map(|r| r.iter().map(|x| Some(*x)).collect::<Vec<_>>()));
    Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(rows))
}

#[test]
fn vectors_are_columns() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let half = |x: f32| Some(half::f16::from_f32(x));
    let halves = ListArray::from_iter_primitive::<Float16Type, _, _>([
        Some(vec![half(0.5), half(1.5)]),
        Some(vec![half(-2.0), None]),
        None,
    ]);
    let x: ArrayRef = Arc::new(Int8Array::from(vec![1, 2, 3]));
    let whole = batch(vec![("x", x.clone()), ("h", Arc::new(halves))]);
    write_parquet(&path("h.parquet"), &whole, 2);
    write_arrow(&path("h.arrow"), &whole, 2);
    let mut stream =
        StreamWriter::try_new(File::create(path("h.arrows")).unwrap(), &whole.schema()).unwrap();
    stream.write(&whole).unwrap();
    stream.finish().unwrap();
    for name in ["h.parquet", "h.arrow", "h.arrows"] {
        let table = open(&path(name), Columns::default()).unwrap();
        assert_eq!(table.columns(), ["x", "h[0]", "h[1]"]);
        assert_eq!(table.roles()[1].to_string(), "h (float16[2]): a vector of 2 numbers");
        let (numbers, _) = read(&table);
        assert_eq!(numbers[..5], [1.0, 0.5, 1.5, 2.0, -2.0]);
        assert!(
            numbers[5].is_nan() && numbers[6] == 3.0 && numbers[7..].iter().all(|x| x.is_nan())
        );
        let some = open(&path(name), Columns::matching(["h"]).except(["h[0]"])).unwrap();
        assert_eq!((some.columns(), read(&some).0[0]), (&["h[1]".to_string()][..], 1.5));
        let turned = open(&path(name), Columns::exactly(["h[1]", "x", "h[0]"])).unwrap();
        assert_eq!(read(&turned).0[..3], [1.5, 1.0, 0.5]);
        let kept = ReadOptions::default().extras(Extras::default().keep(["h"]));
        let kept = Dataset::open([path(name)], &kept).unwrap();
        assert_eq!(kept.kept_fields().unwrap()[0].name(), "h");
        let said = error_of(
            &[&path(name)],
            &ReadOptions::default().columns(Columns::default().categorical(["h"])),
        );
        assert!(said.contains("column 'h' holds float16[2], which has no text"), "{said}");
    }
    // A row of a different length, in a later row group.
    let odd = lists(&[Some(&[1, 2]), None, Some(&[3, 4, 5])]);
    let odd = batch(vec![("x", x.clone()), ("w", odd)]);
    write_parquet(&path("odd.parquet"), &odd, 2);
    write_arrow(&path("odd.arrow"), &odd, 2);
    for name in ["odd.parquet", "odd.arrow"] {
        let said = error_of(&[&path(name)], &ReadOptions::default());
        let expected =
            format!("{name}: row 3, column 'w': a vector of 3 numbers, where others have 2");
        assert!(said.ends_with(&expected), "{said}");
    }
    // Files with vectors of different lengths, and one without any vector.
    let file = |name: &str, rows: &[Option<&[i32]>]| {
        let numbers = Arc::new(Int8Array::from(vec![1; rows.len()]));
        write_parquet(&path(name), &batch(vec![("x", numbers), ("w", lists(rows))]), 10);
    };
    file("two.parquet", &[Some(&[1, 2])]);
    file("three.parquet", &[Some(&[1, 2, 3])]);
    file("none.parquet", &[None, None]);
    file("empty.parquet", &[]);
    let said = error_of(&[&path("two.parquet"), &path("three.parquet")], &ReadOptions::default());
    assert!(said.contains("three.parquet"), "{said}");
    let said = error_of(&[&path("three.parquet"), &path("two.parquet")], &ReadOptions::default());
    assert!(said.contains("two.parquet"), "{said}");
    let paths = ["two.parquet", "none.parquet", "empty.parquet"].map(path);
    let table = Dataset::open(&paths, &ReadOptions::default()).unwrap();
    let (numbers, _) = read(&table);
    assert_eq!((numbers.len(), &numbers[..4]), (9, &[1.0, 1.0, 2.0, 1.0][..]));
    assert!(numbers[4].is_nan());
    let alone = open(&path("none.parquet"), Columns::default()).unwrap();
    assert_eq!(alone.columns(), ["x"]);
    assert!(matches!(&alone.roles()[1].role, Role::LeftOut(why) if why.contains("length")));
    // A vector that is too long, and a nested type without numbers.
    let long = vec![0; 4097];
    let words =
        arrow_array::ListArray::from_iter_primitive::<Int32Type, _, _>([Some(vec![Some(1)])]);
    let nested: ArrayRef = Arc::new(StructArray::from(batch(vec![("inner", Arc::new(words))])));
    let one: ArrayRef = Arc::new(Int8Array::from(vec![1]));
    write_parquet(
        &path("odd.parquet"),
        &batch(vec![("x", one), ("long", lists(&[Some(&long)])), ("s", nested)]),
        10,
    );
    let table = open(&path("odd.parquet"), Columns::default()).unwrap();
    assert_eq!(table.columns(), ["x"]);
    let expected = "columns skipped because they cannot be read as numbers or text: long \
        (int32[4097]), s (struct)";
    assert_eq!(table.notes(), [expected]);
}

#[test]
fn columns_keep_their_type_in_all_files() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let x = || Arc::new(Float64Array::from(vec![1.0])) as ArrayRef;
    write_parquet(
        &path("n.parquet"),
        &batch(vec![("x", x()), ("c", Arc::new(Int64Array::from(vec![7])))]),
        10,
    );
    write_parquet(
        &path("t.parquet"),
        &batch(vec![("x", x()), ("c", Arc::new(StringArray::from(vec!["7"])))]),
        10,
    );
    fs::write(path("t.csv"), "x,c\n1,seven\n").unwrap();
    let paths = |names: [&str; 2]| names.map(path);
    let said = |names: [&str; 2]| {
        let [a, b] = paths(names);
        error_of(&[&a, &b], &ReadOptions::default())
            .replace(&format!("{}/", folder.path().display()), "")
    };
    assert_eq!(
        said(["n.parquet", "t.parquet"]),
        "t.parquet: column 'c' holds text here, and numbers in n.parquet"
    );
    let expected = "n.parquet: column 'c' holds int64 here, and text in t.parquet";
    assert!(said(["t.parquet", "n.parquet"]).starts_with(expected));
    assert!(
        said(["n.parquet", "t.csv"]).contains("t.csv: row 1, column 'c': 'seven' is not a number")
    );
    // As categories, both columns have the same text.
    let told = ReadOptions::default().columns(Columns::default().categorical(["c"]));
    let both = Dataset::open(paths(["n.parquet", "t.parquet"]), &told).unwrap();
    assert_eq!(read(&both).1, [Some("7".to_string()), Some("7".to_string())]);
    fs::write(path("bad.csv"), b"x,c\n1,ok\n2,\xff\xfe\n").unwrap();
    let said = error_of(&[&path("bad.csv")], &ReadOptions::default());
    assert!(said.contains("row 2, column 'c': the value is not valid UTF-8"), "{said}");
}

#[test]
fn folders_are_columns() {
    let (folder, paths) = files(&[
        ("month=2/kind=a%2Fb/1.csv", "x\n1\n2\n"),
        ("month=10/kind=__HIVE_DEFAULT_PARTITION__/2.csv", "x\n3\n"),
    ]);
    let t = folder.path();
    let all = [t.to_path_buf(), t.join("month=*/*/*.csv"), t.join("**/*.csv"), t.join("month=*")];
    for named in &all {
        let table = open(named, Columns::default()).unwrap();
        assert_eq!(table.columns(), ["x", "month"], "{named:?}");
        let (numbers, texts) = read(&table);
        assert_eq!(numbers, [1.0, 2.0, 2.0, 2.0, 3.0, 10.0]);
        assert_eq!(texts, [Some("a/b".into()), Some("a/b".into()), None]);
        assert_eq!(table.roles()[1].to_string(), "month (folder of numbers): a number");
    }
    // Only folders below the given path count.
    assert_eq!(open(&paths[0], Columns::default()).unwrap().columns(), ["x"]);
    assert_eq!(open(&t.join("month=2"), Columns::default()).unwrap().columns(), ["x"]);
    // Folders serve as groups, as kept columns, and as columns of a plan.
    let extras = Extras::default().key(Some("kind")).keep(["month"]);
    let options = ReadOptions::default().columns(Columns::default().categorical(["month"]));
    let table = Dataset::open([t], &options.extras(extras)).unwrap();
    assert_eq!(table.columns(), ["x"]);
    assert_eq!(table.kept_fields().unwrap()[0].name(), "month");
    let mut seen = Vec::new();
    let text =
        |batch: nysketch_tables::Batch| Ok((batch.block.keys.clone(), batch.kept[0].clone()));
    let take = |(keys, kept): (Vec<Option<Arc<str>>>, ArrayRef)| {
        let kept = nysketch_tables::arrow::texts(&kept).unwrap();
        seen.extend(keys.into_iter().zip(kept).map(|(a, b)| format!("{a:?} {b:?}")));
        Ok(())
    };
    table.map_in_order(1, &(), text, take).unwrap();
    assert_eq!(
        seen,
        ["Some(\"a/b\") Some(\"2\")", "Some(\"a/b\") Some(\"2\")", "None Some(\"10\")"]
    );
    // A column of a file takes precedence over a folder. Folders that only some files have are not
    // columns.
    let (other, _) = files(&[("x=5/1.csv", "x\n1\n"), ("x=6/2.csv", "x\n2\n")]);
    let table = open(other.path(), Columns::default()).unwrap();
    assert_eq!(read(&table).0, [1.0, 2.0]);
    assert!(table.notes()[0].contains("folders such as x=… are no column because"));
    let (other, _) = files(&[("m=5/1.csv", "x\n1\n"), ("2.csv", "x\n2\n")]);
    let table = open(other.path(), Columns::default()).unwrap();
    assert_eq!(table.columns(), ["x"]);
    assert_eq!(
        table.notes(),
        ["folders such as m=5 are no columns because not all files have them"]
    );
    let (dates, _) =
        files(&[("day=2013-01-01/1.csv", "x\n1\n"), ("day=2013-01-02/1.csv", "x\n2\n")]);
    let table = open(dates.path(), Columns::default().dates(["day"])).unwrap();
    assert_eq!(read(&table).0[1], 1_356_998_400.0);
}

#[test]
fn texts_without_end_are_other_levels() {
    let lines: String = (0..70_000).map(|i| format!("{i},id{i}\n")).collect();
    let long = "x".repeat(1 << 20);
    let (_folder, paths) = files(&[
        ("many.csv", &format!("x,id\n{lines}")),
        ("long.csv", &format!("x,id\n1,{long}\n2,short\n")),
    ]);
    let many = open(&paths[0], Columns::default()).unwrap();
    let (_, texts) = read(&many);
    let other = texts.iter().filter(|t| t.as_deref() == Some("(other)")).count();
    assert_eq!(other, 70_000 - MAX_TEXTS);
    assert_eq!(many.categories()[0].vocabulary.lost(), Some(Lost::TooMany));
    let long = open(&paths[1], Columns::default()).unwrap();
    assert_eq!(read(&long).1, [Some("(other)".to_string()), Some("short".to_string())]);
    assert_eq!(long.categories()[0].vocabulary.lost(), Some(Lost::TooLong));
}
