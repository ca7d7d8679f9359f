//! Writes tables in memory as files of every format.
#![allow(dead_code, reason = "not every test binary writes every format")]

use arrow_array::{ArrayRef, RecordBatch};
use parquet::arrow::ArrowWriter;
use parquet::file::properties::WriterProperties;
use std::io::Write;

pub type Column = (&'static str, ArrayRef);

pub fn batch(columns: &[Column]) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable(columns.iter().map(|(n, a)| (*n, a.clone(), true)))
        .unwrap()
}

pub fn parquet(batch: &RecordBatch, group_rows: usize) -> Vec<u8> {
    let properties =
        WriterProperties::builder().set_max_row_group_row_count(Some(group_rows)).build();
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), Some(properties)).unwrap();
    writer.write(batch).unwrap();
    writer.close().unwrap();
    bytes
}

pub fn arrow_file(batch: &RecordBatch) -> Vec<u8> {
    let mut writer = arrow_ipc::writer::FileWriter::try_new(Vec::new(), &batch.schema()).unwrap();
    for at in (0..batch.num_rows()).step_by(5000) {
        writer.write(&batch.slice(at, 5000.min(batch.num_rows() - at))).unwrap();
    }
    writer.into_inner().unwrap()
}

pub fn arrow_stream(batch: &RecordBatch) -> Vec<u8> {
    let mut writer = arrow_ipc::writer::StreamWriter::try_new(Vec::new(), &batch.schema()).unwrap();
    for at in (0..batch.num_rows()).step_by(3000) {
        writer.write(&batch.slice(at, 3000.min(batch.num_rows() - at))).unwrap();
    }
    writer.into_inner().unwrap()
}

pub fn npy(descr: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}");
    let mut bytes = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
    writeln!(bytes, "{header:117}").unwrap();
    bytes.extend_from_slice(data);
    bytes
}

pub fn gz(text: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

pub fn zst(text: &[u8]) -> Vec<u8> {
    zstd::encode_all(text, 1).unwrap()
}
