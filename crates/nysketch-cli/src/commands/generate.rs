//! `nysketch generate`: synthetic data.

use crate::args::{Common, Generate};
use crate::kind::Kind;
use crate::output::{Usage, name, result, thousands};
use crate::progress::{Bar, interrupted};
use crate::writing::{check_output, while_writing};
use anyhow::Result;
use arrow_array::{ArrayRef, Float32Array, Float64Array, RecordBatch, UInt32Array};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use nysketch::file::Out;
use nysketch::rows::default_names;
use nysketch::synthetic::Generated;
use nysketch::{Error, Mixture, Progress, file};
use nysketch_tables::{OutputFormat, TableWriter};
use serde_json::json;
use std::sync::Arc;

pub fn run(args: &Generate, common: &Common) -> Result<()> {
    let kind = OutputFormat::of(&args.output)?;
    check_output(common, &args.output, Kind::by_extension(&args.output), [])?;
    if let Some(labels) = &args.labels {
        if file::same(labels, &args.output) {
            return Err(Usage("--labels and --output name the same file".into()).into());
        }
        OutputFormat::of(labels)?;
        check_output(common, labels, Kind::by_extension(labels), [args.output.as_path()])?;
    }
    let mixture = Mixture::new(args.dims, args.clusters, args.separation, args.seed)?;
    let bar = Bar::making("generating", args.rows, common.quiet);
    let written = file::write(&args.output, |out| write_values(kind, &mixture, args, out, &bar));
    while_writing(&args.output, written)?;
    if let Some(labels) = &args.labels {
        let kind = OutputFormat::of(labels)?;
        let written = file::write(labels, |out| write_labels(kind, &mixture, args.rows, out));
        while_writing(labels, written)?;
    }
    drop(bar);
    let json = json!({
        "file": name(&args.output), "rows": args.rows, "dims": args.dims, "clusters": args.clusters,
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

/// Writes all chunks of the mixture in order.
fn write_chunks(
    kind: OutputFormat,
    schema: &SchemaRef,
    (mixture, rows): (&Mixture, u64),
    out: &mut dyn Out,
    columns: impl Fn(Generated) -> Vec<ArrayRef>,
    bar: &dyn Progress,
) -> Result<()> {
    let mut writer = TableWriter::new(kind, schema, out)?;
    for chunk in mixture.chunks(rows) {
        if interrupted().is_some() {
            return Err(Error::Cancelled.into());
        }
        let count = chunk.labels.len() as u64;
        writer.write(&RecordBatch::try_new(schema.clone(), columns(chunk))?)?;
        bar.advance(count);
    }
    Ok(writer.finish()?)
}

fn write_values(
    kind: OutputFormat,
    mixture: &Mixture,
    args: &Generate,
    out: &mut dyn Out,
    bar: &Bar,
) -> Result<()> {
    let d = args.dims;
    // Values are single precision. Text is written with the digits of a double, so that it reads
    // back as the same value.
    let data_type = if kind == OutputFormat::Csv { DataType::Float64 } else { DataType::Float32 };
    let field = |name: String| Field::new(name, data_type.clone(), false);
    let schema = Arc::new(Schema::new(default_names(d).into_iter().map(field).collect::<Vec<_>>()));
    let columns = |rows: Generated| -> Vec<ArrayRef> {
        let column = |j: usize| rows.values.iter().skip(j).step_by(d).map(|x| *x as f32);
        let array = |j: usize| match kind {
            OutputFormat::Csv => {
                Arc::new(Float64Array::from_iter_values(column(j).map(f64::from))) as ArrayRef
            }
            _ => Arc::new(Float32Array::from_iter_values(column(j))) as ArrayRef,
        };
        (0..d).map(array).collect()
    };
    write_chunks(kind, &schema, (mixture, args.rows), out, columns, bar)
}

fn write_labels(kind: OutputFormat, mixture: &Mixture, rows: u64, out: &mut dyn Out) -> Result<()> {
    let schema = Arc::new(Schema::new(vec![Field::new("label", DataType::UInt32, false)]));
    let columns = |rows: Generated| vec![Arc::new(UInt32Array::from(rows.labels)) as ArrayRef];
    write_chunks(kind, &schema, (mixture, rows), out, columns, &())
}
