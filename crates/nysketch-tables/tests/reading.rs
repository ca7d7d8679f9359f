//! Reading from paths: which files are read and in which order, and how changes during reading are
//! detected.

use arrow_array::{Float64Array, Int64Array, RecordBatch};
use arrow_schema::Schema;
use nysketch_core::rows::read_in_order;
use nysketch_core::{Error as RowError, RowSource};
use nysketch_tables::{Columns, Dataset, Extras, Header, OutputFormat, ReadOptions, TableWriter};
use std::fs;
use std::io::{Cursor, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

fn open(paths: &[&Path]) -> Dataset {
    Dataset::open(paths, &ReadOptions::default()).unwrap()
}

fn values(table: &Dataset) -> Vec<f64> {
    let mut values = Vec::new();
    read_in_order(table, &(), |block| {
        values.extend_from_slice(&block.values);
        Ok(())
    })
    .unwrap();
    values
}

fn error_of(table: &Dataset) -> String {
    read_in_order(table, &(), |_| Ok(())).unwrap_err().to_string()
}

/// Makes a folder with three files and links to them.
#[cfg(unix)]
fn linked() -> tempfile::TempDir {
    use std::os::unix::fs::symlink;
    let folder = tempfile::tempdir().unwrap();
    let t = folder.path();
    for (name, x) in [("d2/1.csv", 1), ("d2/2.csv", 2), ("d10/3.csv", 3)] {
        fs::create_dir_all(t.join(name).parent().unwrap()).unwrap();
        fs::write(t.join(name), format!("x\n{x}\n")).unwrap();
    }
    symlink("d2", t.join("latest")).unwrap();
    symlink("..", t.join("d10/up")).unwrap();
    symlink("..", t.join("d10/up2")).unwrap();
    symlink("1.csv", t.join("d2/newest.csv")).unwrap();
    folder
}

#[test]
#[cfg(unix)]
fn every_file_is_read_once() {
    let folder = linked();
    let t = folder.path();
    let notes = |table: &Dataset| table.notes().join("\n").replace(&t.display().to_string(), "t");
    let table = open(&[&t.join("**/*.csv")]);
    assert_eq!(values(&table), [1.0, 2.0, 3.0]);
    let expected = "found twice and read once: t/d2/newest.csv\n\
                    links to folders, which patterns do not follow: t/d10/up, t/d10/up2, t/latest";
    assert_eq!(notes(&table), expected);
    let table = open(&[&t.join("*/*.csv"), &t.join("d2/2.csv")]);
    assert_eq!(values(&table), [1.0, 2.0, 3.0]);
    assert!(notes(&table).contains("read once: t/d2/newest.csv, t/d2/2.csv"));
    // A named link is followed, also within folders; cycles end.
    assert_eq!(values(&open(&[&t.join("latest/*.csv")])), [1.0, 2.0]);
    let table = open(&[t]);
    assert_eq!(values(&table), [1.0, 2.0, 3.0]);
    let expected = "found twice and read once: t/d2/newest.csv, t/d10/up, t/d10/up2, t/latest";
    assert_eq!(notes(&table), expected);
    assert_eq!(values(&open(&[t, t])), [1.0, 2.0, 3.0]);
}

#[test]
fn files_are_in_the_order_of_their_numbers() {
    let folder = tempfile::tempdir().unwrap();
    let t = folder.path();
    for month in [1, 2, 10] {
        fs::create_dir(t.join(format!("m{month}"))).unwrap();
        for day in [1, 9, 10, 11] {
            let text = format!("x\n{}\n", month * 100 + day);
            fs::write(t.join(format!("m{month}/day{day}.csv")), text).unwrap();
        }
    }
    let sorted: Vec<f64> = [1, 2, 10]
        .into_iter()
        .flat_map(|m| [1, 9, 10, 11].map(|d| f64::from(m * 100 + d)))
        .collect();
    assert_eq!(values(&open(&[t])), sorted);
    assert_eq!(values(&open(&[&t.join("*/*.csv")])), sorted);
    assert_eq!(values(&open(&[&t.join("m*/**/day*")])), sorted);
    assert_eq!(values(&open(&[&t.join("**")])), sorted);
    assert_eq!(values(&open(&[&t.join("m?/day[19].csv")])), [101.0, 109.0, 201.0, 209.0]);
}

fn npy(rows: u64, columns: u64, value: f64) -> Vec<u8> {
    let shape = format!("({rows}, {columns})");
    let text = format!("{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}");
    let mut bytes = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
    writeln!(bytes, "{text:117}").unwrap();
    (0..rows * columns).for_each(|_| bytes.extend(value.to_le_bytes()));
    bytes
}

fn parquet(batch: &RecordBatch) -> Vec<u8> {
    let mut out = Cursor::new(Vec::new());
    let mut writer = TableWriter::new(OutputFormat::Parquet, &batch.schema(), &mut out).unwrap();
    writer.write(batch).unwrap();
    writer.finish().unwrap();
    out.into_inner()
}

#[test]
fn a_file_that_changes_between_or_during_readings_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x");
    let csv = |x: f64| format!("c0\n{}", format!("{x}\n").repeat(50_000)).into_bytes();
    let array = |x: f64| npy(50_000, 1, x);
    let columns = |x: f64| {
        let column = Arc::new(Float64Array::from(vec![x; 50_000])) as _;
        parquet(&RecordBatch::try_from_iter([("c0", column)]).unwrap())
    };
    for contents in [csv, array, columns] {
        let replace = |bytes: &[u8]| {
            let other = folder.path().join("other");
            fs::write(&other, bytes).unwrap();
            fs::rename(other, &file).unwrap();
        };
        let append = || {
            let mut out = fs::OpenOptions::new().append(true).open(&file).unwrap();
            out.write_all(b"7\n").unwrap();
        };
        let truncate = || {
            let out = fs::OpenOptions::new().write(true).open(&file).unwrap();
            out.set_len(20_000).unwrap();
        };
        let touch = || {
            let out = fs::OpenOptions::new().write(true).open(&file).unwrap();
            out.set_modified(SystemTime::now() + Duration::from_secs(9)).unwrap();
        };
        let changes: [&dyn Fn(); 4] = [&|| replace(&contents(2.0)), &append, &truncate, &touch];
        for (i, change) in changes.into_iter().enumerate() {
            let expected = format!("{} was changed while it was read", file.display());
            // The file changes between two readings.
            fs::write(&file, contents(1.0)).unwrap();
            let table = open(&[&file]);
            assert_eq!(values(&table).len(), 50_000);
            change();
            assert!(error_of(&table).starts_with(&expected), "{i}: {}", error_of(&table));
            // The file changes during a reading.
            fs::write(&file, contents(1.0)).unwrap();
            let table = open(&[&file]);
            let mut first = true;
            let during = read_in_order(&table, &(), |_| {
                if std::mem::take(&mut first) {
                    change();
                }
                Ok(())
            });
            let during = during.unwrap_err().to_string();
            assert!(during.starts_with(&expected), "{i}: {during}");
        }
    }
}

#[test]
fn true_and_false_are_numbers_in_columns_of_them() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path
    };
    let a = write("a.csv", "x,b\n1,true\n2,False\n3,\n4,TRUE\n5,FALSE\n6, true\n");
    let table = open(&[&a]);
    assert_eq!(table.columns(), ["x", "b"]);
    let skip = ReadOptions::default().skip_invalid(true);
    let read = values(&Dataset::open([&a], &skip).unwrap());
    let b: Vec<f64> = read.into_iter().skip(1).step_by(2).collect();
    assert_eq!(b[..2], [1.0, 0.0]);
    assert!(b[2].is_nan());
    assert_eq!(b[3..], [1.0, 0.0, 1.0]);
    // The type found in one file applies to the column in all files.
    let missing = format!("x,b\n{}2,true\n", "1,\n".repeat(300));
    let (empty, numbers) = (write("b.csv", &missing), write("c.csv", "x,b\n1,0\n2,1\n"));
    for files in [[&a, &empty, &numbers], [&numbers, &a, &empty]] {
        let table = open(&files.map(|p| p.as_path()));
        assert_eq!(table.columns(), ["x", "b"]);
        assert_eq!(values(&table).len(), 2 * (6 + 301 + 2));
    }
    // A truth value among numbers is an error, and text stays text.
    let odd = write("d.csv", "x,b\n1,3\n2,true\n3,4\n");
    assert!(error_of(&open(&[&odd])).contains("row 2, column 'b': 'true' is not a number"));
    let text = write("e.csv", "x,b\n1,yes\n2,true\n3,no\n");
    assert_eq!(open(&[&text]).columns(), ["x"]);
    // Truth values can be weights.
    let weighted = ReadOptions::default().extras(Extras::default().weight(Some("b")));
    let mut weights = Vec::new();
    let table = Dataset::open([&a], &weighted).unwrap();
    read_in_order(&table, &(), |block| {
        weights.extend(block.weights[..2].to_vec());
        Ok(())
    })
    .unwrap();
    assert_eq!(weights, [1.0, 0.0]);
}

#[test]
fn text_after_a_closing_quote_is_not_a_number() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x.csv");
    fs::write(&file, "x,y\n\"1\",2\n\"1\"5,3\n").unwrap();
    let expected = "row 2, column 'x': '\"1\"5' is not a number";
    assert!(error_of(&open(&[&file])).contains(expected));
    fs::write(&file, "x\n\"1\"\n\"1\"5\n\"2\" \n").unwrap();
    assert!(error_of(&open(&[&file])).contains(expected));
}

#[test]
fn the_first_row_that_is_wrong_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x.csv");
    let good = "1,2\n".repeat(10);
    for later in ["oops,1\n", "1,2,3\n", "1,oops\n"] {
        fs::write(&file, format!("x,y\n{good}3,\n{good}{later}")).unwrap();
        let table = open(&[&file]);
        let error = read_in_order(&table, &(), |_| Ok(())).unwrap_err();
        assert!(matches!(error, RowError::NonFinite { .. }), "{error}");
        assert!(error.to_string().contains("row 11, column 'y'"), "{error}");
        // If such rows are skipped, this value is not an error.
        let skip = ReadOptions::default().skip_invalid(true);
        let table = Dataset::open([&file], &skip).unwrap();
        let read = read_in_order(&table, &(), |_| Ok(()));
        assert_eq!(read.is_err(), later == "1,2,3\n");
    }
}

#[test]
fn wide_files_are_read_and_have_a_limit() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x.csv");
    let line = |text: &dyn Fn(usize) -> String, columns: usize| {
        (0..columns).map(text).collect::<Vec<_>>().join(",")
    };
    let name = |j: usize| format!("column number {j}");
    let number = |j: usize| j.to_string();
    let d = 65_536;
    fs::write(&file, format!("{}\n{1}\n{1}\n", line(&name, d), line(&number, d))).unwrap();
    // A linear search for every name would take minutes.
    assert_eq!(values(&open(&[&file])).len(), 2 * d);
    let all = ReadOptions::default().columns(Columns::matching(["*"]));
    let all = all.extras(Extras::default().keep(["*"]));
    assert_eq!(values(&Dataset::open([&file], &all).unwrap()).len(), 2 * d);
    // Too many fields are refused while the header is split, and so is a record with too many.
    let commas = ",".repeat(3 << 20);
    let open = |text: String, header: Header| {
        fs::write(&file, text).unwrap();
        Dataset::open([&file], &ReadOptions::default().header(header)).unwrap_err().to_string()
    };
    let error = open(format!("{commas}\n"), Header::Expected);
    assert!(error.contains("has 3145729 columns; at most 1048576 can be read"), "{error}");
    let error = open(format!("{commas}\n"), Header::Absent);
    assert!(error.contains("at most 1048576"), "{error}");
    fs::write(&file, format!("x,y\n1,2\n{commas}\n")).unwrap();
    let error = error_of(&Dataset::open([&file], &ReadOptions::default()).unwrap());
    assert!(error.contains("row 2 (line 3): expected 2 fields, found 3145729"), "{error}");
}

#[test]
fn arrays_of_different_widths_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (a, b) = (folder.path().join("a.npy"), folder.path().join("b.npy"));
    fs::write(&a, npy(3, 2, 1.0)).unwrap();
    fs::write(&b, npy(3, 3, 1.0)).unwrap();
    for (files, words) in
        [([&a, &b], "has 3 columns, but"), ([&b, &a], "does not have the column c2")]
    {
        let error = Dataset::open(files, &ReadOptions::default()).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
}

#[test]
fn the_index_of_a_pandas_table_is_not_a_feature() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x.parquet");
    let columns: [(&str, arrow_array::ArrayRef); 2] = [
        ("x", Arc::new(Float64Array::from(vec![0.5, 1.5]))),
        ("__index_level_0__", Arc::new(Int64Array::from(vec![7, 9]))),
    ];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let noted = r#"{"index_columns": ["__index_level_0__"], "columns": [], "pandas_version": "3"}"#;
    let schema =
        Schema::clone(&batch.schema()).with_metadata([("pandas".to_string(), noted.to_string())]);
    let noted = batch.clone().with_schema(Arc::new(schema)).unwrap();
    fs::write(&file, parquet(&noted)).unwrap();
    let table = open(&[&file]);
    assert_eq!(table.columns(), ["x"]);
    let expected = "columns skipped because they are the index of a pandas table; \
                    `columns` reads them: __index_level_0__";
    assert_eq!(table.notes(), [expected]);
    let named = ReadOptions::default().columns(Columns::matching(["*"]));
    assert_eq!(values(&Dataset::open([&file], &named).unwrap()), [0.5, 7.0, 1.5, 9.0]);
    // Without the pandas metadata, the index is an ordinary column.
    fs::write(&file, parquet(&batch)).unwrap();
    assert_eq!(open(&[&file]).columns().len(), 2);
}

#[test]
fn files_that_are_no_tables_are_named_for_what_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x.csv");
    fs::write(&file, "a,b\n1,2\n3,5\n4,4\n").unwrap();
    let plan = nysketch_core::plan_for(&open(&[&file]), Default::default()).unwrap().plan;
    for (bytes, what) in [
        (plan.to_bytes(), "is a nysketch plan or sketch, not a table"),
        (b"{\n  \"schema\": 2,\n".to_vec(), "is a nysketch model, not a table"),
        (b"{\"schema\":1}".to_vec(), "is a nysketch model, not a table"),
        (b"{\"a\": 1}".to_vec(), "is JSON; tables are csv"),
        (b"PK\x03\x04 and so on".to_vec(), "is a zip archive"),
    ] {
        fs::write(&file, bytes).unwrap();
        let error = Dataset::open([&file], &ReadOptions::default()).unwrap_err().to_string();
        assert!(error.contains(what), "{error}");
    }
}
