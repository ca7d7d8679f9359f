//! `nysketch merge` and `nysketch subtract`.

use super::files::read_sketch;
use crate::args::{Common, Merge, Subtract};
use crate::output::{check_writable, count, result, size, write_bytes};
use anyhow::{Context, Result};
use nysketch::Sketch;
use serde_json::json;
use std::path::Path;

pub fn merge(args: &Merge, common: &Common) -> Result<()> {
    check_writable(&args.output, [])?;
    let mut total: Option<Sketch> = None;
    for path in &args.input {
        let sketch = read_sketch(path)?;
        match &mut total {
            Some(total) => total.merge(&sketch).with_context(|| {
                format!("cannot merge {} with {}", path.display(), args.input[0].display())
            })?,
            None => total = Some(sketch),
        }
    }
    let total = total.context("no sketch to merge")?;
    finish(&total, &args.output, common)
}

pub fn subtract(args: &Subtract, common: &Common) -> Result<()> {
    check_writable(&args.output, [])?;
    let mut total = read_sketch(&args.from)?;
    total.subtract(&read_sketch(&args.what)?).with_context(|| {
        format!("cannot subtract {} from {}", args.what.display(), args.from.display())
    })?;
    finish(&total, &args.output, common)
}

fn finish(sketch: &Sketch, output: &Path, common: &Common) -> Result<()> {
    let bytes = sketch.to_bytes();
    write_bytes(output, &bytes)?;
    let json = json!({
        "file": output, "rows": sketch.rows(), "skipped": sketch.skipped(),
        "fingerprint": sketch.plan().fingerprint(), "bytes": bytes.len(),
    });
    let text =
        format!("{}: {}, {}", output.display(), count(sketch.rows(), "row"), size(bytes.len()));
    result(common, &json, &text)
}
