//! Writing tables: the bytes do not depend on the number of threads, and errors name their cause.

use arrow_array::cast::AsArray;
use arrow_array::types::Float64Type;
use arrow_array::{Array, Float32Array, Float64Array, Int32Array, ListArray, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use nysketch_core::{Progress, RowSource};
use nysketch_tables::{
    Batch, Columns, Dataset, Error, Extras, OutputFormat, ReadOptions, TableWriter,
};
use std::io::{self, Cursor, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::Arc;

/// Makes three files of odd sizes: 300,001 rows, more than two row groups.
fn dataset(folder: &Path) -> Dataset {
    for (name, rows) in
        [("1.csv", 0..100_000), ("2.csv", 100_000..100_001), ("3.csv", 100_001..300_001)]
    {
        let lines: String =
            rows.map(|i| format!("{i},{},t{}\n", i % 1000 * 919 % 1000, i % 13)).collect();
        std::fs::write(folder.join(name), format!("i,x,text\n{lines}")).unwrap();
    }
    let options = ReadOptions::default()
        .columns(Columns::exactly(["i", "x"]))
        .extras(Extras::default().keep(["text"]));
    Dataset::open([folder.join("*.csv")], &options).unwrap()
}

fn schema(kept: bool) -> SchemaRef {
    let mut fields = vec![Field::new("label", DataType::Int32, false)];
    if kept {
        fields.push(Field::new("half", DataType::Float64, true));
        fields.push(Field::new("text", DataType::Utf8, true));
    }
    Arc::new(Schema::new(fields))
}

fn work(batch: Batch, schema: &SchemaRef) -> nysketch_core::Result<RecordBatch> {
    let column = |j: usize| batch.block.values.iter().skip(j).step_by(2);
    let mut columns: Vec<Arc<dyn Array>> =
        vec![Arc::new(Int32Array::from_iter_values(column(0).map(|i| *i as i32)))];
    if schema.fields().len() > 1 {
        let halves = column(1).map(|x| (*x != 0.0).then_some(x / 2.0));
        columns.push(Arc::new(Float64Array::from_iter(halves)));
        columns.push(batch.kept[0].clone());
    }
    RecordBatch::try_new(schema.clone(), columns).map_err(nysketch_core::Error::source)
}

fn written(dataset: &Dataset, format: OutputFormat, threads: usize) -> Vec<u8> {
    let schema = schema(format != OutputFormat::Npy);
    let mut out = Cursor::new(Vec::new());
    let mut writer = TableWriter::new(format, &schema, &mut out).unwrap();
    let work = |batch| work(batch, &schema);
    let rows = dataset.map_to_table(threads, &(), work, &mut writer).unwrap();
    assert_eq!(rows, 300_001);
    writer.finish().unwrap();
    out.into_inner()
}

#[test]
fn the_number_of_threads_does_not_show() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = dataset(folder.path());
    for (format, name) in [
        (OutputFormat::Parquet, "y.parquet"),
        (OutputFormat::Csv, "y.csv"),
        (OutputFormat::Npy, "y.npy"),
    ] {
        let one = written(&dataset, format, 1);
        for threads in [2, 8] {
            assert!(written(&dataset, format, threads) == one, "{name} on {threads} threads");
        }
        // The written file is read back in order.
        let file = folder.path().join(name);
        std::fs::write(&file, &one).unwrap();
        let back = Dataset::open([file], &ReadOptions::default()).unwrap();
        let mut next = 0.0;
        let take = |batch: Batch| {
            for (_, row, _) in batch.block.rows() {
                assert_eq!(row[0], next);
                next += 1.0;
            }
            Ok(())
        };
        back.map_in_order(3, &(), Ok, take).unwrap();
        assert_eq!(next, 300_001.0);
        if format == OutputFormat::Csv {
            let text = String::from_utf8(one).unwrap();
            assert!(text.starts_with("label,half,text\n0,,t0\n1,459.5,t1\n"), "{}", &text[..60]);
        }
    }
}

/// Batches may have any size: row groups are cut by rows.
#[test]
fn row_groups_do_not_depend_on_batches() {
    let values = Float64Array::from_iter_values((0..200_000).map(|i| f64::from(i).sin()));
    let batch = RecordBatch::try_from_iter([("x", Arc::new(values) as _)]).unwrap();
    let write = |size: usize| {
        let mut out = Cursor::new(Vec::new());
        let mut writer =
            TableWriter::new(OutputFormat::Parquet, &batch.schema(), &mut out).unwrap();
        for at in (0..200_000).step_by(size) {
            writer.write(&batch.slice(at, size.min(200_000 - at))).unwrap();
        }
        writer.finish().unwrap();
        let reader = parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder::try_new(
            bytes::Bytes::from(out.into_inner()),
        );
        let reader = reader.unwrap();
        let groups: Vec<i64> =
            reader.metadata().row_groups().iter().map(|g| g.num_rows()).collect();
        assert_eq!(groups, [1 << 17, 200_000 - (1 << 17)]);
        let read = reader.with_batch_size(1 << 20).build().unwrap();
        let numbers = |b: RecordBatch| b.column(0).as_primitive::<Float64Type>().values().to_vec();
        read.flat_map(|b| numbers(b.unwrap())).collect::<Vec<f64>>()
    };
    let expected = batch.column(0).as_primitive::<Float64Type>().values().to_vec();
    for size in [1000, 131_072, 200_000] {
        assert!(write(size) == expected, "batches of {size}");
    }
}

/// A disk that is full after this number of bytes.
struct Small(usize);

impl Write for Small {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self.0.checked_sub(bytes.len()).ok_or(io::ErrorKind::StorageFull)?;
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Seek for Small {
    fn seek(&mut self, _: SeekFrom) -> io::Result<u64> {
        Ok(0)
    }
}

#[test]
fn errors_of_writing_and_of_rows_are_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = dataset(folder.path());
    // The error of the earliest rows is returned, whatever the number of threads.
    let mut first = None;
    for format in [OutputFormat::Parquet, OutputFormat::Csv, OutputFormat::Npy] {
        for threads in [1, 4] {
            let schema = schema(format != OutputFormat::Npy);
            let mut out = Small(100_000);
            let mut writer = TableWriter::new(format, &schema, &mut out).unwrap();
            let error = dataset
                .map_to_table(threads, &(), |batch| work(batch, &schema), &mut writer)
                .unwrap_err();
            assert!(matches!(&error, Error::Write(cause) if cause.contains("space")), "{error:?}");
            let mut out = Cursor::new(Vec::new());
            let mut writer = TableWriter::new(format, &schema, &mut out).unwrap();
            let fail = |batch: Batch| match batch.block.position {
                0..150_000 => work(batch, &schema),
                at => Err(nysketch_core::Error::source(at.to_string())),
            };
            let error = dataset.map_to_table(threads, &(), fail, &mut writer).unwrap_err();
            assert!(matches!(&error, Error::Rows(_)), "{error:?}");
            assert_eq!(*first.get_or_insert(error.to_string()), error.to_string());
        }
    }
}

#[test]
fn the_earliest_error_is_reported_on_any_number_of_threads() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = dataset(folder.path());
    for threads in 1..6 {
        let fail = |batch: Batch| -> nysketch_core::Result<()> {
            Err(nysketch_core::Error::source(batch.block.position.to_string()))
        };
        let error = dataset.map_in_order(threads, &(), fail, Ok).unwrap_err();
        assert_eq!(error.to_string(), "0");
    }
}

/// The first failure in time need not be the first in row order.
#[test]
fn an_earlier_error_of_taking_or_writing_goes_before_a_later_one_of_reading() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = dataset(folder.path());
    let late = |batch: Batch| match batch.block.position {
        0 => {
            std::thread::sleep(std::time::Duration::from_millis(200));
            Ok(batch)
        }
        _ => Err(nysketch_core::Error::source("work")),
    };
    for threads in [1, 2, 4] {
        let take = |_| Err(nysketch_core::Error::source("take"));
        let error = dataset.map_in_order(threads, &(), late, take).unwrap_err();
        assert_eq!(error.to_string(), "take", "{threads} threads");
        let schema = schema(false);
        let mut out = Small(150);
        let mut writer = TableWriter::new(OutputFormat::Npy, &schema, &mut out).unwrap();
        let work = |batch| late(batch).and_then(|batch| work(batch, &schema));
        let error = dataset.map_to_table(threads, &(), work, &mut writer).unwrap_err();
        assert!(matches!(error, Error::Write(_)), "{threads} threads: {error}");
    }
}

#[test]
fn arrays_hold_missing_values_only_as_nan() {
    let write = |column: Arc<dyn Array>| {
        let batch = RecordBatch::try_from_iter_with_nullable([("x", column, true)]).unwrap();
        let mut out = Cursor::new(Vec::new());
        let mut writer = TableWriter::new(OutputFormat::Npy, &batch.schema(), &mut out).unwrap();
        writer.write(&batch).map(|()| writer.finish().unwrap()).map(|()| out.into_inner())
    };
    let floats = write(Arc::new(Float32Array::from(vec![Some(1.5), None]))).unwrap();
    assert_eq!(floats[floats.len() - 8..], [1.5f32.to_le_bytes(), f32::NAN.to_le_bytes()].concat());
    let error = write(Arc::new(Int32Array::from(vec![Some(1), None]))).unwrap_err().to_string();
    assert!(error.contains("column 'x' holds missing values, which npy files cannot"), "{error}");
}

#[test]
fn a_reading_can_be_stopped() {
    struct Stopped;
    impl Progress for Stopped {
        fn advance(&self, _: u64) {}
        fn cancelled(&self) -> bool {
            true
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let dataset = dataset(folder.path());
    assert_eq!(dataset.columns(), ["i", "x"]);
    let stopped = dataset.map_in_order(3, &Stopped, |_| Ok(()), Ok);
    assert!(matches!(stopped, Err(nysketch_core::Error::Cancelled)));
}

#[test]
fn formats_refuse_what_they_cannot_hold() {
    let list = DataType::List(Arc::new(Field::new("item", DataType::Int32, true)));
    let schema: SchemaRef = Arc::new(Schema::new(vec![Field::new("tags", list, true)]));
    let mut out = Cursor::new(Vec::new());
    for (format, words) in
        [(OutputFormat::Csv, "which csv files"), (OutputFormat::Npy, "which npy files")]
    {
        let error = TableWriter::new(format, &schema, &mut out).unwrap_err().to_string();
        assert!(error.contains("column 'tags' holds List") && error.contains(words), "{error}");
    }
    // Parquet supports all types.
    let lists = ListArray::from_iter_primitive::<arrow_array::types::Int32Type, _, _>([
        Some(vec![Some(1), None]),
        None,
    ]);
    let batch = RecordBatch::try_new(schema.clone(), vec![Arc::new(lists)]).unwrap();
    let mut writer = TableWriter::new(OutputFormat::Parquet, &schema, &mut out).unwrap();
    writer.write(&batch).unwrap();
    writer.finish().unwrap();
    let bytes = bytes::Bytes::from(out.into_inner());
    let reader = parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder::try_new(bytes);
    let back = reader.unwrap().build().unwrap().next().unwrap().unwrap();
    assert_eq!(back.column(0), batch.column(0));
    let twice = ["a", "b"]
        .map(|n| Field::new(n, if n == "a" { DataType::Int32 } else { DataType::Float32 }, false));
    let mixed: SchemaRef = Arc::new(Schema::new(twice.to_vec()));
    let mut out = Cursor::new(Vec::new());
    assert!(TableWriter::new(OutputFormat::Npy, &mixed, &mut out).is_err());
}
