//! Types of columns: INT96 timestamps are read in their whole range, and what is written keeps its
//! type and its values.

use arrow_array::types::*;
use arrow_array::*;
use arrow_schema::{DataType, Field, Schema, TimeUnit};
use nysketch::RowSource;
use nysketch::rows::{RowSet, read_in_order};
use nysketch_tables::{Columns, Dataset, Extras, OutputFormat, ReadOptions, TableWriter};
use parquet::arrow::arrow_reader::{ArrowReaderOptions, ParquetRecordBatchReaderBuilder};
use parquet::data_type::{Int96, Int96Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use std::io::Cursor;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const DAY: i64 = 86_400;
/// Days from the start of the Julian calendar to 1970-01-01.
const JULIAN: i64 = 2_440_588;

/// A day, counted from 1970-01-01, and the nanoseconds since midnight.
#[derive(Clone, Copy)]
struct Stamp {
    day: i64,
    nanos: i64,
}

impl Stamp {
    fn int96(self) -> Int96 {
        let mut value = Int96::new();
        let day = (self.day + JULIAN) as i32 as u32;
        value.set_data(self.nanos as u32, (self.nanos >> 32) as u32, day);
        value
    }

    /// Seconds since 1970, rounded once, from these nanoseconds.
    fn seconds(self, nanos: i64) -> f64 {
        // The quotient and the remainder are exact, so that their sum is rounded once.
        let total = i128::from(self.day) * i128::from(DAY) * 1_000_000_000 + i128::from(nanos);
        format!("{}e-9", total).parse().unwrap()
    }
}

/// A file of one column `t` of INT96 timestamps, as Spark, Hive and Impala write it.
fn int96_file(folder: &Path, stamps: &[Option<Stamp>]) -> PathBuf {
    let schema = parquet::schema::parser::parse_message_type("message m { optional int96 t; }");
    let mut bytes = Vec::new();
    let properties = Arc::new(WriterProperties::default());
    let mut writer =
        SerializedFileWriter::new(&mut bytes, Arc::new(schema.unwrap()), properties).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    let values: Vec<Int96> = stamps.iter().flatten().map(|stamp| stamp.int96()).collect();
    let levels: Vec<i16> = stamps.iter().map(|stamp| i16::from(stamp.is_some())).collect();
    column.typed::<Int96Type>().write_batch(&values, Some(&levels), None).unwrap();
    column.close().unwrap();
    group.close().unwrap();
    writer.close().unwrap();
    let path = folder.join("int96.parquet");
    std::fs::write(&path, bytes).unwrap();
    path
}

fn as_time() -> ReadOptions {
    let columns = Columns::matching(["t"]).dates(["t"]);
    ReadOptions::default().columns(columns).allow_missing(true)
}

fn values(table: &Dataset, done: &RowSet) -> nysketch::Result<Vec<f64>> {
    let mut values = Vec::new();
    let mut stream = RowSource::open(table, done)?;
    while let Some(part) = stream.next_part() {
        values.extend(part.decode()?.map(|block| block.values).unwrap_or_default());
    }
    Ok(values)
}

#[test]
fn int96_timestamps_are_read_in_their_whole_range() {
    let folder = tempfile::tempdir().unwrap();
    let digits = 45_296_123_456_000;
    let stamps = [
        Some(Stamp { day: 2_932_896, nanos: 0 }), // 9999-12-31
        Some(Stamp { day: -719_162, nanos: 0 }),  // 0001-01-01
        None,
        Some(Stamp { day: 19_723, nanos: digits }), // 2024-01-01 12:34:56.123456
        Some(Stamp { day: -106_752, nanos: digits }), // 1677-09-21, the first day in nanoseconds
        Some(Stamp { day: 106_751, nanos: 0 }),
        Some(Stamp { day: 106_751_991, nanos: 0 }), // the last day in microseconds
    ];
    let file = int96_file(folder.path(), &stamps);
    let table = Dataset::open([&file], &as_time()).unwrap();
    let read = values(&table, &RowSet::default()).unwrap();
    for (found, stamp) in read.iter().zip(&stamps) {
        match stamp {
            Some(stamp) => assert_eq!(*found, stamp.seconds(stamp.nanos)),
            None => assert!(found.is_nan()),
        }
    }
    assert_eq!(read[..2], [253_402_214_400.0, -62_135_596_800.0]);
    // Text and kept columns agree. The last year that has a text is 262,142.
    let file = int96_file(folder.path(), &stamps[..4]);
    let options = as_time().extras(Extras::default().key(Some("t")).keep(["t"]));
    let table = Dataset::open([&file], &options).unwrap();
    let microseconds = DataType::Timestamp(TimeUnit::Microsecond, None);
    assert_eq!(table.kept_fields().unwrap()[0].data_type(), &microseconds);
    let mut keys = Vec::new();
    read_in_order(&table, &(), |block| {
        keys.extend(block.keys.iter().cloned());
        Ok(())
    })
    .unwrap();
    assert_eq!(keys[0].as_deref(), Some("9999-12-31T00:00:00"));
    assert_eq!(keys[2], None);
    assert_eq!(keys[3].as_deref(), Some("2024-01-01T12:34:56.123456"));
}

/// Digits after the microseconds are cut off, which changes the seconds by less than a microsecond.
#[test]
fn int96_timestamps_have_microseconds() {
    let folder = tempfile::tempdir().unwrap();
    let stamp = Stamp { day: 19_723, nanos: 123_456_789 };
    let file = int96_file(folder.path(), &[Some(stamp)]);
    let table = Dataset::open([&file], &as_time()).unwrap();
    let read = values(&table, &RowSet::default()).unwrap();
    assert_eq!(read, [stamp.seconds(123_456_000)]);
}

/// A day that microseconds cannot hold would be another day, so its row is named.
#[test]
fn int96_timestamps_never_wrap() {
    let folder = tempfile::tempdir().unwrap();
    for day in [106_751_992, -106_751_993, i64::from(i32::MAX) - JULIAN, -2_147_483_648 - JULIAN] {
        let mut stamps = vec![None; 3000];
        stamps[1234] = Some(Stamp { day, nanos: 0 });
        let file = int96_file(folder.path(), &stamps);
        let table = Dataset::open([&file], &as_time()).unwrap();
        let error = values(&table, &RowSet::default()).unwrap_err().to_string();
        assert!(error.contains("row 1235, column 't'"), "{day}: {error}");
        // Rows that were read before are skipped in both units.
        let error = values(&table, &RowSet::new(std::iter::once(0..1000))).unwrap_err().to_string();
        assert!(error.contains("row 1235, column 't'"), "{day}: {error}");
        assert_eq!(values(&table, &RowSet::new(std::iter::once(0..2000))).unwrap().len(), 1000);
    }
}

/// Columns of every type that Arrow has and Parquet holds: the values before and after.
fn kept_columns() -> Vec<(&'static str, ArrayRef, ArrayRef)> {
    let seconds = [Some(1_700_000_000), None, Some(-62_135_596_800)];
    let milliseconds = seconds.map(|x| x.map(|x| x * 1000));
    let same = |name, array: ArrayRef| (name, array.clone(), array);
    let day = 86_400_000;
    let zone = "Europe/Vienna";
    vec![
        (
            "timestamp[s]",
            Arc::new(TimestampSecondArray::from(seconds.to_vec())),
            Arc::new(TimestampMillisecondArray::from(milliseconds.to_vec())),
        ),
        (
            "timestamp[s] with zone",
            Arc::new(TimestampSecondArray::from(seconds.to_vec()).with_timezone(zone)),
            Arc::new(TimestampMillisecondArray::from(milliseconds.to_vec()).with_timezone(zone)),
        ),
        (
            "date64",
            Arc::new(Date64Array::from(vec![Some(19_723 * day), None, Some(-719_162 * day)])),
            Arc::new(Date32Array::from(vec![Some(19_723), None, Some(-719_162)])),
        ),
        (
            "time32[s]",
            Arc::new(Time32SecondArray::from(vec![Some(0), None, Some(86_399)])),
            Arc::new(Time32MillisecondArray::from(vec![Some(0), None, Some(86_399_000)])),
        ),
        same("date32", Arc::new(Date32Array::from(vec![Some(i32::MIN), None, Some(5)]))),
        same("time32[ms]", Arc::new(Time32MillisecondArray::from(vec![Some(1), None, Some(5)]))),
        same("time64[us]", Arc::new(Time64MicrosecondArray::from(vec![Some(1), None, Some(5)]))),
        same("time64[ns]", Arc::new(Time64NanosecondArray::from(vec![Some(1), None, Some(5)]))),
        same(
            "timestamp[ms]",
            Arc::new(TimestampMillisecondArray::from(vec![Some(i64::MAX), None, Some(i64::MIN)])),
        ),
        same(
            "timestamp[us]",
            Arc::new(
                TimestampMicrosecondArray::from(vec![Some(i64::MAX), None, Some(-1)])
                    .with_timezone("+01:00"),
            ),
        ),
        same("timestamp[ns]", Arc::new(TimestampNanosecondArray::from(vec![1, i64::MIN, 0]))),
        same("bool", Arc::new(BooleanArray::from(vec![Some(true), None, Some(false)]))),
        same("int8", Arc::new(Int8Array::from(vec![Some(i8::MIN), None, Some(1)]))),
        same("int16", Arc::new(Int16Array::from(vec![Some(i16::MIN), None, Some(1)]))),
        same("int32", Arc::new(Int32Array::from(vec![Some(i32::MIN), None, Some(1)]))),
        same("int64", Arc::new(Int64Array::from(vec![Some(i64::MIN), None, Some(1)]))),
        same("uint8", Arc::new(UInt8Array::from(vec![Some(u8::MAX), None, Some(1)]))),
        same("uint16", Arc::new(UInt16Array::from(vec![Some(u16::MAX), None, Some(1)]))),
        same("uint32", Arc::new(UInt32Array::from(vec![Some(u32::MAX), None, Some(1)]))),
        same("uint64", Arc::new(UInt64Array::from(vec![Some(u64::MAX), None, Some(1)]))),
        same(
            "float16",
            Arc::new(Float16Array::from_iter([Some(half::f16::MAX), None, Some(half::f16::ONE)])),
        ),
        same("float32", Arc::new(Float32Array::from(vec![Some(f32::MIN), None, Some(0.1)]))),
        same("float64", Arc::new(Float64Array::from(vec![Some(f64::MIN), None, Some(0.1)]))),
        same(
            "decimal128",
            Arc::new(
                Decimal128Array::from(vec![Some(12_345), None, Some(-5)])
                    .with_precision_and_scale(20, 2)
                    .unwrap(),
            ),
        ),
        same("text", Arc::new(StringArray::from(vec![Some("é"), None, Some("")]))),
        same("large text", Arc::new(LargeStringArray::from(vec![Some("é"), None, Some("")]))),
        same("text view", Arc::new(StringViewArray::from(vec![Some("é"), None, Some("")]))),
        same("binary", Arc::new(BinaryArray::from(vec![Some(&b"\xff"[..]), None, Some(b"")]))),
        same(
            "binary of a fixed size",
            Arc::new(
                FixedSizeBinaryArray::try_from_iter([b"ab", b"cd", b"ef"].into_iter()).unwrap(),
            ),
        ),
        same("missing values alone", Arc::new(NullArray::new(3))),
        same("duration", Arc::new(DurationSecondArray::from(vec![Some(i64::MAX), None, Some(1)]))),
        same("interval", Arc::new(IntervalYearMonthArray::from(vec![Some(14), None, Some(-1)]))),
        same(
            "list",
            Arc::new(ListArray::from_iter_primitive::<TimestampMicrosecondType, _, _>([
                Some(vec![Some(1), None]),
                None,
                Some(vec![]),
            ])),
        ),
        same(
            "dictionary of text",
            Arc::new(
                [Some("b"), None, Some("a")].into_iter().collect::<DictionaryArray<Int8Type>>(),
            ),
        ),
    ]
}

fn written(name: &str, column: ArrayRef) -> nysketch_tables::Result<Vec<u8>> {
    let field = Field::new(name, column.data_type().clone(), true);
    let batch = RecordBatch::try_new(Arc::new(Schema::new(vec![field])), vec![column]).unwrap();
    let mut out = Cursor::new(Vec::new());
    let mut writer = TableWriter::new(OutputFormat::Parquet, &batch.schema(), &mut out)?;
    writer.write(&batch)?;
    writer.finish()?;
    Ok(out.into_inner())
}

fn read_back(bytes: &[u8], options: ArrowReaderOptions) -> ArrayRef {
    let bytes = bytes::Bytes::copy_from_slice(bytes);
    let reader = ParquetRecordBatchReaderBuilder::try_new_with_options(bytes, options).unwrap();
    reader.build().unwrap().next().unwrap().unwrap().column(0).clone()
}

#[test]
fn kept_columns_have_the_same_type_and_values_in_parquet() {
    for (name, before, after) in kept_columns() {
        let bytes = written(name, before).unwrap();
        let read = read_back(&bytes, ArrowReaderOptions::new());
        assert_eq!(read.data_type(), after.data_type(), "{name}");
        assert_eq!(&read, &after, "{name}");
        // To a reader that does not know Arrow, a date or a time is still one: no plain integer.
        let plain = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
        let plain = read_back(&bytes, plain);
        let is_number = plain.data_type().is_integer();
        let was_number = after.data_type().is_integer();
        // Parquet has no durations; only Arrow notes that these integers are some.
        assert_eq!(is_number, was_number || name == "duration", "{name}: {}", plain.data_type());
    }
}

#[test]
fn runs_keep_their_values() {
    let ends = Int32Array::from(vec![2, 3]);
    let runs = RunArray::try_new(&ends, &StringArray::from(vec!["p", "q"])).unwrap();
    let bytes = written("r", Arc::new(runs)).unwrap();
    let plain = read_back(&bytes, ArrowReaderOptions::new().with_skip_arrow_metadata(true));
    assert_eq!(&*plain, &StringArray::from(vec!["p", "p", "q"]) as &dyn Array);
}

/// The values of a dictionary change their unit like those of a plain column.
#[test]
fn dictionaries_change_their_unit_too() {
    let keys = Int8Array::from(vec![Some(1), None, Some(0)]);
    let values = TimestampSecondArray::from(vec![7, -7, i64::MAX]);
    let bytes = written("d", Arc::new(DictionaryArray::new(keys, Arc::new(values)))).unwrap();
    // Only texts are read as dictionaries again.
    let plain = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
    let read = read_back(&bytes, plain);
    let expected = TimestampMillisecondArray::from(vec![Some(-7000), None, Some(7000)]);
    assert_eq!(&*read, &expected as &dyn Array);
}

#[test]
fn values_that_parquet_cannot_hold_are_refused_with_their_row() {
    let day = 86_400_000;
    let cases: [(ArrayRef, &str); 5] = [
        (Arc::new(TimestampSecondArray::from(vec![0, i64::MAX / 1000 + 1])), "timestamp[s]"),
        (Arc::new(TimestampSecondArray::from(vec![0, i64::MIN])), "timestamp[s]"),
        (Arc::new(Time32SecondArray::from(vec![0, i32::MAX])), "time[s]"),
        (Arc::new(Date64Array::from(vec![0, day / 2])), "date"),
        (Arc::new(Date64Array::from(vec![0, i64::MAX / day * day])), "date"),
    ];
    for (column, kind) in cases {
        match written("when", column).unwrap_err() {
            nysketch_tables::Error::CannotHold { column, kind: found, format } => {
                assert_eq!((column.as_str(), format), ("when", "Parquet"));
                assert!(found.contains("row 2") && found.contains(kind), "{found}");
            }
            other => panic!("{other}"),
        }
    }
}

/// A list view is refused, and the error names its type.
#[test]
fn list_views_are_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x.arrow");
    let item = Arc::new(Field::new("item", DataType::Float64, true));
    let numbers: ArrayRef = Arc::new(Float64Array::from(vec![1.0, 2.0, 3.0, 4.0]));
    let x: ArrayRef = Arc::new(Float64Array::from(vec![0.5, 1.5]));
    let small = ListViewArray::new(
        item.clone(),
        vec![0, 2].into(),
        vec![2, 2].into(),
        numbers.clone(),
        None,
    );
    let large = LargeListViewArray::new(item, vec![0, 2].into(), vec![2, 2].into(), numbers, None);
    for view in [Arc::new(small) as ArrayRef, Arc::new(large)] {
        let batch = RecordBatch::try_from_iter([("x", x.clone()), ("v", view)]).unwrap();
        let out = std::fs::File::create(&file).unwrap();
        let mut writer = arrow_ipc::writer::FileWriter::try_new(out, &batch.schema()).unwrap();
        writer.write(&batch).unwrap();
        writer.finish().unwrap();
        let open = |columns| Dataset::open([&file], &ReadOptions::default().columns(columns));
        for columns in [Columns::default(), Columns::matching(["v"]), Columns::matching(["*"])] {
            let error = open(columns).unwrap_err().to_string();
            assert!(error.contains("'v'") && error.contains("list view of float64"), "{error}");
        }
        let table = open(Columns::default().except(["v"])).unwrap();
        assert_eq!(values(&table, &RowSet::default()).unwrap(), [0.5, 1.5]);
    }
}

#[test]
fn types_that_parquet_does_not_have_are_refused_by_name() {
    let nested = |unit| {
        let times = DataType::Timestamp(unit, None);
        DataType::List(Arc::new(Field::new("item", times, true)))
    };
    let interval = DataType::Interval(arrow_schema::IntervalUnit::MonthDayNano);
    let view = DataType::ListView(Arc::new(Field::new("item", DataType::Float64, true)));
    let union = DataType::Union(arrow_schema::UnionFields::empty(), arrow_schema::UnionMode::Dense);
    for (refused, name) in [
        (nested(TimeUnit::Second), "list of timestamp[s]"),
        (interval, "Interval"),
        (view, "list view of float64"),
        (union, "Union"),
        (DataType::Struct(arrow_schema::Fields::empty()), "struct"),
    ] {
        let schema = Arc::new(Schema::new(vec![Field::new("odd", refused, true)]));
        let mut out = Cursor::new(Vec::new());
        match TableWriter::new(OutputFormat::Parquet, &schema, &mut out).unwrap_err() {
            nysketch_tables::Error::CannotHold { column, kind, .. } => {
                assert!(column == "odd" && kind.contains(name), "{kind}");
            }
            other => panic!("{other}"),
        }
    }
    let schema = Arc::new(Schema::new(vec![Field::new("t", nested(TimeUnit::Millisecond), true)]));
    assert!(TableWriter::new(OutputFormat::Parquet, &schema, &mut Cursor::new(Vec::new())).is_ok());
}
