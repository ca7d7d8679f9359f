//! `nysketch report`: writes a page about a sketch.

use super::files::{read_model, read_sketch, read_sums, sketch_files, stem};
use super::witnesses;
use crate::args::{Common, ReportArgs};
use crate::kind::Kind;
use crate::output::{Usage, name, result, size};
use crate::writing::{check_output, write_bytes};
use anyhow::Result;
use nysketch::{Model, Sketch};
use nysketch_report::sections::{ReportRequest, page};
use serde_json::json;
use std::path::{Path, PathBuf};

pub fn run(args: &ReportArgs, common: &Common) -> Result<()> {
    let is_model = |p: &&PathBuf| Kind::of(p).unwrap_or(Kind::by_extension(p)) == Kind::Model;
    let (models, sketches): (Vec<&PathBuf>, Vec<&PathBuf>) = args.files.iter().partition(is_model);
    let sketches: Vec<PathBuf> = sketches.into_iter().cloned().collect();
    let sketches = sketch_files(&sketches, args.against.as_deref(), common)?;
    let models: Vec<&PathBuf> = models.into_iter().chain(&args.models).collect();
    let inputs =
        sketches.iter().chain(models.iter().copied()).chain(&args.against).chain(&args.plan);
    check_output(common, &args.output, Kind::Page, inputs.map(PathBuf::as_path))?;
    let last = match (&sketches[..], &args.against) {
        ([], _) => return Err(Usage("a report needs a sketch".into()).into()),
        ([.., last], Some(_)) | ([last], None) => last,
        (many, None) => {
            let message = "a report is about one sketch, or several with --against BASELINE";
            return Err(Usage(format!("{message}; {} were given", many.len())).into());
        }
    };
    let models: Vec<Model> = models.into_iter().map(|m| read_model(m)).collect::<Result<_>>()?;
    let title = display(last);
    let mut read: Vec<Sketch> = match &sketches[..] {
        [one] if args.against.is_none() => vec![read_sums(one)?],
        // The tests of drift do not model the noise of a release.
        several => several.iter().map(|s| read_sketch(s)).collect::<Result<_>>()?,
    };
    // The curve over k belongs to the last sketch.
    if let Some(sketch) = read.pop() {
        read.push(witnesses::attach(sketch, last, args.plan.as_deref(), common)?);
    }
    let baseline = args.against.as_deref().map(read_sketch).transpose()?;
    let other = args.against.as_deref().map(display);
    let names: Vec<String> = sketches.iter().map(|s| stem(s)).collect();
    let series = match read.len() {
        1 => Vec::new(),
        _ => read.iter().zip(names.iter().map(String::as_str)).collect(),
    };
    let report = page(&ReportRequest {
        models: models.iter().collect(),
        baseline: baseline.as_ref().zip(other.as_deref()),
        series,
        most_clusters: usize::from(args.most_clusters),
        seed: args.seed,
        threads: common.threads(),
        ..ReportRequest::new(&read[read.len() - 1], &title)
    })?;
    write_bytes(&args.output, report.html.as_bytes())?;
    let bytes = report.html.len();
    let json = json!({"file": name(&args.output), "bytes": bytes, "sketches": read.len(),
        "models": models.len(), "k": report.k});
    result(common, &json, &format!("{}: {}", args.output.display(), size(bytes)))
}

fn display(path: &Path) -> String {
    path.display().to_string()
}
