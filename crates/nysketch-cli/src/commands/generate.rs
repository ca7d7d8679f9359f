//! `nysketch generate`: synthetic data.

use crate::args::{Common, Generate};
use crate::output::{Usage, check_writable, result, thousands, while_writing};
use crate::progress::{Bar, interrupted};
use anyhow::Result;
use nysketch::synthetic::CHUNK_ROWS;
use nysketch::{Error, Mixture, Progress, file};
use serde_json::json;
use std::io::{self, Write};
use std::path::Path;

#[derive(Debug, Clone, Copy)]
enum Kind {
    Npy,
    Csv,
}

pub fn run(args: &Generate, common: &Common) -> Result<()> {
    let kind = kind_of(&args.output)?;
    check_writable(&args.output, [])?;
    if let Some(labels) = &args.labels {
        if *labels == args.output {
            return Err(Usage("--labels and --output name the same file".into()).into());
        }
        kind_of(labels)?;
        check_writable(labels, [])?;
    }
    let mixture = Mixture::new(args.dims, args.clusters, args.separation, args.seed)?;
    let bar = Bar::new("generating", Some(args.rows), common.quiet);
    let written = file::write(&args.output, |out| write_values(kind, &mixture, args, out, &bar));
    while_writing(&args.output, written)?;
    if let Some(labels) = &args.labels {
        let kind = kind_of(labels)?;
        let written = file::write(labels, |out| write_labels(kind, &mixture, args.rows, out));
        while_writing(labels, written)?;
    }
    drop(bar);
    let json = json!({
        "file": args.output, "rows": args.rows, "dims": args.dims, "clusters": args.clusters,
        "separation": args.separation, "seed": args.seed,
    });
    let text = format!(
        "{}: {} rows, {} columns, {} clusters",
        args.output.display(),
        thousands(args.rows),
        args.dims,
        args.clusters
    );
    result(common, &json, &text)
}

fn kind_of(path: &Path) -> Result<Kind> {
    match path.extension().and_then(|e| e.to_str()).map(str::to_ascii_lowercase).as_deref() {
        Some("npy") => Ok(Kind::Npy),
        Some("csv") => Ok(Kind::Csv),
        _ => Err(Usage(format!("{}: name the file .npy or .csv", path.display())).into()),
    }
}

/// The header of a little-endian, row-major NumPy file, padded to a multiple of 64 bytes.
pub fn npy_header(out: &mut dyn Write, dtype: &str, shape: &str) -> io::Result<()> {
    let mut text = format!("{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}");
    while (10 + text.len() + 1) % 64 != 0 {
        text.push(' ');
    }
    text.push('\n');
    out.write_all(b"\x93NUMPY\x01\x00")?;
    out.write_all(&(text.len() as u16).to_le_bytes())?;
    out.write_all(text.as_bytes())
}

/// Calls `write` with every chunk of the mixture, in order.
fn for_each_chunk(
    mixture: &Mixture,
    rows: u64,
    mut write: impl FnMut(nysketch::synthetic::Generated) -> Result<()>,
) -> Result<()> {
    let chunk_rows = CHUNK_ROWS as u64;
    for chunk in 0..rows.div_ceil(chunk_rows) {
        if interrupted() {
            return Err(Error::Cancelled.into());
        }
        let count = (rows - chunk * chunk_rows).min(chunk_rows);
        write(mixture.rows(chunk, count as usize))?;
    }
    Ok(())
}

fn write_values(
    kind: Kind,
    mixture: &Mixture,
    args: &Generate,
    out: &mut dyn Write,
    bar: &Bar,
) -> Result<()> {
    let d = args.dims;
    match kind {
        Kind::Npy => npy_header(out, "<f4", &format!("({}, {d})", args.rows))?,
        Kind::Csv => writeln!(out, "{}", nysketch::rows::default_names(d).join(","))?,
    }
    let mut bytes = Vec::new();
    for_each_chunk(mixture, args.rows, |rows| {
        bytes.clear();
        for row in rows.values.chunks_exact(d) {
            for (j, &x) in row.iter().enumerate() {
                match kind {
                    Kind::Npy => bytes.extend_from_slice(&(x as f32).to_le_bytes()),
                    Kind::Csv => {
                        let end = if j + 1 == d { '\n' } else { ',' };
                        // The same number as in npy, to the last digit.
                        write!(bytes, "{}{end}", f64::from(x as f32))?;
                    }
                }
            }
        }
        out.write_all(&bytes)?;
        bar.advance(rows.labels.len() as u64);
        Ok(())
    })
}

fn write_labels(kind: Kind, mixture: &Mixture, rows: u64, out: &mut dyn Write) -> Result<()> {
    match kind {
        Kind::Npy => npy_header(out, "<u4", &format!("({rows},)"))?,
        Kind::Csv => writeln!(out, "label")?,
    }
    for_each_chunk(mixture, rows, |chunk| {
        for label in chunk.labels {
            match kind {
                Kind::Npy => out.write_all(&label.to_le_bytes())?,
                Kind::Csv => writeln!(out, "{label}")?,
            }
        }
        Ok(())
    })
}
