//! Tables that are made to crash the program. Each gives an error with a message, within 500 MB of
//! memory.
//!
//! A failed allocation or a stack overflow ends the process, and no guard can catch it. Each file
//! is therefore read by the real command in its own process with limited memory.
#![cfg(target_os = "linux")]

mod common;

use arrow_array::{Float64Array, RecordBatch};
use arrow_ipc::CompressionType;
use arrow_ipc::writer::{FileWriter, IpcWriteOptions, StreamWriter};
use common::Folder;
use common::tables::gz;
use std::io::Read;
use std::sync::Arc;

/// Limit of the address space in kB.
const LIMIT: u32 = 500_000;

/// Reads a table in a process with little memory, which must end with code 1 and this message.
fn refused(name: &str, bytes: &[u8], message: &str) {
    let f = Folder::new();
    f.write(name, bytes);
    let command =
        format!("ulimit -v {LIMIT}; exec \"$0\" plan {name} -o p.nys --threads 2 --format ");
    let format = name.rsplit('.').next().unwrap().replace("gz", "csv");
    let output = std::process::Command::new("sh")
        .arg("-c")
        .arg(command + &format)
        .arg(assert_cmd::cargo::cargo_bin("nysketch"))
        .current_dir(f.path(""))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{name}, {message}: {said}");
    assert!(said.contains(message), "{name}, {message}: {said}");
    assert!(!f.path("p.nys").exists());
}

/// An encoder of Thrift's compact protocol, limited to the needs of Parquet.
#[derive(Default)]
struct Thrift(Vec<u8>);

impl Thrift {
    fn varint(mut self, mut number: u64) -> Self {
        while number > 0x7f {
            self.0.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
        self
    }

    /// Appends a 64-bit integer. `after` is the difference to the last field number.
    fn number(mut self, after: u8, number: i64) -> Self {
        self.0.push(after << 4 | 6);
        self.varint((number << 1 ^ number >> 63) as u64)
    }

    /// Appends a 32-bit integer in the same way.
    fn small(mut self, after: u8, number: i64) -> Self {
        self.0.push(after << 4 | 5);
        self.varint((number << 1 ^ number >> 63) as u64)
    }

    fn text(self, after: u8, text: &str) -> Self {
        let mut thrift = self.raw(&[after << 4 | 8]).varint(text.len() as u64);
        thrift.0.extend(text.bytes());
        thrift
    }

    /// Appends the head of a list of structures.
    fn list(self, after: u8, count: u64) -> Self {
        self.raw(&[after << 4 | 9, 0xfc]).varint(count)
    }

    fn raw(mut self, bytes: &[u8]) -> Self {
        self.0.extend(bytes);
        self
    }
}

/// Makes a Parquet file with this footer.
fn parquet(data: &[u8], footer: Thrift) -> Vec<u8> {
    let length = footer.0.len() as u32;
    [b"PAR1", data, &footer.0, &length.to_le_bytes(), b"PAR1"].concat()
}

const GZIP: i64 = 2;
const BROTLI: i64 = 4;
const ZSTD: i64 = 6;

/// Makes one row group with one column of doubles, compressed with Zstandard.
fn parquet_of_pages(pages: &[u8], rows: i64) -> Vec<u8> {
    parquet_of(ZSTD, pages, rows)
}

/// One row group of one column of doubles, compressed in this way.
fn parquet_of(compression: i64, pages: &[u8], rows: i64) -> Vec<u8> {
    let root = Thrift::default().text(4, "root").small(1, 1).raw(&[0]);
    let column = Thrift::default().small(1, 5).small(2, 0).text(1, "x").raw(&[0]);
    let metadata = Thrift::default()
        .small(1, 5)
        .raw(&[0x19, 0x15, 0])
        .raw(&[0x19, 0x18, 1, b'x'])
        .small(1, compression)
        .number(1, rows)
        .number(1, pages.len() as i64)
        .number(1, pages.len() as i64)
        .number(2, 4)
        .raw(&[0]);
    let chunk = Thrift::default().number(2, 4).raw(&[0x1c]).raw(&metadata.0).raw(&[0]);
    let group = Thrift::default().list(1, 1).raw(&chunk.0);
    let group = group.number(1, pages.len() as i64).number(1, rows).raw(&[0]);
    let footer = Thrift::default().small(1, 1).list(1, 2).raw(&root.0).raw(&column.0);
    let footer = footer.number(1, rows).list(1, 1).raw(&group.0).raw(&[0]);
    parquet(pages, footer)
}

/// Makes a page of plain doubles, with additional bytes in its header.
fn page(values: i64, expanded: i64, compressed: &[u8], more: &[u8]) -> Vec<u8> {
    let head = Thrift::default().small(1, 0).small(1, expanded).small(1, compressed.len() as i64);
    let head = head.raw(&[0x2c]).small(1, values).small(1, 0).small(1, 3).small(1, 3);
    [&head.raw(more).raw(&[0, 0]).0, compressed].concat()
}

fn zeros(bytes: u64) -> Vec<u8> {
    zstd::encode_all(std::io::repeat(0).take(bytes), 1).unwrap()
}

#[test]
fn parquet_pages() {
    // The file itself is valid.
    let f = Folder::new();
    let good = page(1000, 8000, &zeros(8000), &[]);
    f.write("good.parquet", parquet_of_pages(&good, 1000));
    f.ok("sketch good.parquet -o s.nys");
    // Four pages that expand to 2 GB each.
    let values = (1i64 << 28) - 1;
    let bomb = page(values, 8 * values, &zeros(8 * values as u64), &[]);
    let bombs = parquet_of_pages(&bomb.repeat(4), 4 * values);
    assert!(bombs.len() < 1 << 20);
    refused("x.parquet", &bombs, "would expand to 2147483640; at most 512 MB");
    // A page that only claims this size.
    let lie = page(1000, i64::from(i32::MAX), &zeros(8000), &[]);
    refused("x.parquet", &parquet_of_pages(&lie, 1000), "would expand to 2147483647");
    // A dictionary of 2³¹ values, and statistics of 2⁴⁰ bytes.
    let data = zeros(8000);
    let head = Thrift::default().small(1, 2).small(1, 8000).small(1, data.len() as i64);
    let head = head.raw(&[0x4c]).small(1, i64::from(i32::MAX)).small(1, 0).raw(&[0, 0]);
    let dictionary = [&head.0[..], &data, &good].concat();
    refused("x.parquet", &parquet_of_pages(&dictionary, 1000), "declares 2147483647 values");
    let statistics = Thrift::default().raw(&[0x1c, 0x18]).varint(1 << 40);
    let long = page(1000, 8000, &data, &statistics.0);
    refused("x.parquet", &parquet_of_pages(&long, 1000), "a page ends within its header");
}

/// Zeros, compressed with gzip.
fn gzip(bytes: u64) -> Vec<u8> {
    let mut out =
        flate2::read::GzEncoder::new(std::io::repeat(0).take(bytes), flate2::Compression::best());
    let mut compressed = Vec::new();
    out.read_to_end(&mut compressed).unwrap();
    compressed
}

/// Zeros, compressed with Brotli.
fn brotli(bytes: u64) -> Vec<u8> {
    let mut compressed = Vec::new();
    brotli::CompressorReader::new(std::io::repeat(0).take(bytes), 1 << 16, 1, 22)
        .read_to_end(&mut compressed)
        .unwrap();
    compressed
}

/// A page of version 2, whose first bytes are levels that are not compressed.
fn page_v2(values: i64, expanded: i64, levels: &[u8], compressed: &[u8]) -> Vec<u8> {
    let size = (levels.len() + compressed.len()) as i64;
    let head = Thrift::default().small(1, 3).small(1, expanded).small(1, size);
    let head = head.raw(&[0x5c]).small(1, values).small(1, 0).small(1, values).small(1, 0);
    let head = head.small(1, levels.len() as i64).small(1, 0).raw(&[0x11]);
    [&head.raw(&[0, 0]).0, levels, compressed].concat()
}

/// Gzip and Brotli are expanded to the end, whatever size a page declares.
#[test]
fn parquet_pages_that_expand_to_more_than_they_declare() {
    let f = Folder::new();
    for (codec, compress) in [(GZIP, gzip as fn(u64) -> Vec<u8>), (BROTLI, brotli)] {
        for good in
            [page(1000, 8000, &compress(8000), &[]), page_v2(1000, 8000, &[], &compress(8000))]
        {
            f.write("good.parquet", parquet_of(codec, &good, 1000));
            f.ok("plan good.parquet -o p.nys --force");
        }
        // Less than a megabyte, from which more memory would be taken than there is.
        let bomb = compress(600 << 20);
        assert!(bomb.len() < 1 << 20, "{}", bomb.len());
        let lie = page(1000, 8000, &bomb, &[]);
        refused("x.parquet", &parquet_of(codec, &lie, 1000), "more than the 8000 bytes");
        let lie = page_v2(1000, 8000, &[], &bomb);
        refused("x.parquet", &parquet_of(codec, &lie, 1000), "more than the 8000 bytes");
        // As a dictionary.
        let head = Thrift::default().small(1, 2).small(1, 8000).small(1, bomb.len() as i64);
        let head = head.raw(&[0x4c]).small(1, 1000).small(1, 0).raw(&[0, 0]);
        let lie = [&head.0[..], &bomb, &page(1000, 8000, &compress(8000), &[])].concat();
        refused("x.parquet", &parquet_of(codec, &lie, 1000), "more than the 8000 bytes");
    }
    // A short page of gzip is expanded by the Parquet crate, within what any page may take.
    let short = gzip(100 << 20);
    let lie = parquet_of(GZIP, &page(1000, 8000, &short, &[]), 1000);
    refused("x.parquet", &lie, "cannot be read");
    // A window of a gigabyte.
    let window = parquet_of(BROTLI, &page(1000, 8000, &[0x11, 0x1e, 0, 0], &[]), 1000);
    refused("x.parquet", &window, "a Brotli window that is too large");
}

#[test]
fn parquet_schemas() {
    let node =
        |children: i64| Thrift::default().small(3, 0).text(1, "a").small(1, children).raw(&[0]);
    let nodes = |children: &[i64]| {
        let mut footer = Thrift::default().small(1, 1).list(1, children.len() as u64);
        children.iter().for_each(|count| footer.0.extend(node(*count).0));
        parquet(b"", footer.number(1, 0).list(1, 0).raw(&[0]))
    };
    let deep = nodes(&[vec![1; 10_000], vec![0]].concat());
    assert!(deep.len() < 100_000);
    refused("x.parquet", &deep, "its schema is more than 64 levels deep");
    for children in [i64::from(i32::MAX), 1 << 31, -1] {
        let wide = nodes(&[children]);
        assert!(wide.len() < 45);
        refused("x.parquet", &wide, "children, but 0 are left");
    }
    let footer = Thrift::default().small(1, 1).list(1, i32::MAX as u64).raw(&[0; 20]);
    refused("x.parquet", &parquet(b"", footer), "more columns than its footer has bytes");
    let long = [&b"PAR1"[..], &u32::MAX.to_le_bytes(), b"PAR1"].concat();
    refused("x.parquet", &long, "cannot be read");
}

fn arrow(stream: bool, compression: Option<CompressionType>) -> Vec<u8> {
    let column = Arc::new(Float64Array::from(vec![0.5; 1000]));
    let batch = RecordBatch::try_from_iter([("x", column as _)]).unwrap();
    let options = IpcWriteOptions::default().try_with_compression(compression).unwrap();
    let schema = batch.schema();
    if stream {
        let mut writer = StreamWriter::try_new_with_options(Vec::new(), &schema, options).unwrap();
        writer.write(&batch).unwrap();
        return writer.into_inner().unwrap();
    }
    let mut writer = FileWriter::try_new_with_options(Vec::new(), &schema, options).unwrap();
    writer.write(&batch).unwrap();
    writer.into_inner().unwrap()
}

/// Replaces every number of this value by another one.
fn replaced(bytes: &[u8], from: i64, to: i64) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let mut found = 0;
    for at in 0..bytes.len() - 8 {
        if bytes[at..at + 8] == from.to_le_bytes() {
            bytes[at..at + 8].copy_from_slice(&to.to_le_bytes());
            found += 1;
        }
    }
    assert!(found > 0, "{from}");
    bytes
}

#[test]
fn arrow_lengths() {
    for stream in [false, true] {
        for compression in [CompressionType::LZ4_FRAME, CompressionType::ZSTD] {
            let good = arrow(stream, Some(compression));
            for length in [1 << 40, 1 << 30, i64::MAX] {
                let said = format!("would expand to {length}");
                refused("x.arrow", &replaced(&good, 8000, length), &said);
            }
        }
        let plain = arrow(stream, None);
        for length in [1 << 40, i64::MAX, -8] {
            refused("x.arrow", &replaced(&plain, 8000, length), "x.arrow cannot be read: ");
            refused("x.arrow", &replaced(&plain, 1000, length), "x.arrow cannot be read: ");
        }
    }
    let mut file = arrow(false, None);
    let at = file.len() - 10;
    file[at..at + 4].copy_from_slice(&i32::MAX.to_le_bytes());
    refused("x.arrow", &file, "its footer is longer than the file");
    let message = [&[0xff; 4][..], &i32::MAX.to_le_bytes(), &[0; 20]].concat();
    refused("x.arrow", &message, "it is truncated");
}

/// Sets every third byte of the metadata to values that are likely to expose errors.
#[test]
fn arrow_metadata() {
    let f = Folder::new();
    let program = assert_cmd::cargo::cargo_bin("nysketch");
    let script = format!(
        "ulimit -v {LIMIT}; for x in *.arrow; do \
         \"$0\" plan $x -o p.nys --threads 2 --landmarks 2 --skip-invalid -q >/dev/null 2>&1; \
         c=$?; [ $c -le 1 ] || echo $x $c; done"
    );
    for (stream, name) in [(true, "stream"), (false, "file")] {
        let good = arrow(stream, Some(CompressionType::LZ4_FRAME));
        // Metadata only: the schema and the batch header before the numbers, and the footer after
        // them.
        let metadata = (8..good.len().min(460)).chain(good.len().saturating_sub(300)..good.len());
        for at in metadata.step_by(3) {
            let mut bytes = good.clone();
            bytes[at] = [0xff, 0x80, 0x7f, 0][at % 4];
            f.write(&format!("{name}{at}.arrow"), bytes);
        }
    }
    let output = std::process::Command::new("sh")
        .args(["-c", &script])
        .arg(program)
        .current_dir(f.path(""))
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "");
}

#[test]
fn text_and_arrays() {
    let commas = gz(&vec![b','; 60_000_000]);
    assert!(commas.len() < 1 << 20);
    refused("x.csv.gz", &commas, "has 60000001 columns; at most 1048576 can be read");
    let record = [b"x,y\n1,2\n", &vec![b','; 60_000_000][..]].concat();
    refused("x.csv.gz", &gz(&record), "row 2 (line 3): expected 2 fields, found 60000001");
    let quote = gz(&[b"x,y\n1,\"", &vec![b'a'; 80_000_000][..]].concat());
    refused("x.csv.gz", &quote, "a quote (\") is opened and never closed");
    let npy = [&b"\x93NUMPY\x02\x00"[..], &u32::MAX.to_le_bytes(), b"{'descr'"].concat();
    refused("x.npy", &npy, "the header is 4294967295 bytes long; at most 65536 are allowed");
    let mut npy = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
    let text = "{'descr': '<f8', 'fortran_order': False, 'shape': (4611686018427387904, 60000), }";
    npy.extend(format!("{text:117}\n").bytes());
    refused("x.npy", &npy, "more numbers than a file can hold");
}
