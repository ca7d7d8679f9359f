//! `nysketch report`: write a page about a sketch.

use super::files::{read_model, read_sketch};
use crate::args::{Common, ReportArgs};
use crate::kind::Kind;
use crate::output::{name, result, size};
use crate::report::{ReportRequest, page};
use crate::writing::{check_output, write_bytes};
use anyhow::Result;
use serde_json::json;
use std::path::PathBuf;

pub fn run(args: &ReportArgs, common: &Common) -> Result<()> {
    let inputs = [Some(&args.sketch), args.model.as_ref(), args.against.as_ref()];
    let inputs = inputs.into_iter().flatten().map(PathBuf::as_path);
    check_output(common, &args.output, Kind::Page, inputs)?;
    let sketch = read_sketch(&args.sketch)?;
    let model = args.model.as_deref().map(read_model).transpose()?;
    let baseline = args.against.as_deref().map(read_sketch).transpose()?;
    let title = args.sketch.display().to_string();
    let other = args.against.as_ref().map(|path| path.display().to_string());
    let report = page(&ReportRequest {
        model: model.as_ref(),
        baseline: baseline.as_ref().zip(other.as_deref()),
        most_clusters: usize::from(args.most_clusters),
        seed: args.seed,
        ..ReportRequest::new(&sketch, &title)
    })?;
    write_bytes(&args.output, report.html.as_bytes())?;
    let bytes = report.html.len();
    let json = json!({"file": name(&args.output), "bytes": bytes, "model": args.model.as_deref().map(name), "k": report.k});
    result(common, &json, &format!("{}: {}", args.output.display(), size(bytes)))
}
