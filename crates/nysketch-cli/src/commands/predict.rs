//! `nysketch predict`: a model applied to rows, streamed.

use super::plan::{invalid, tell_input};
use super::read_model;
use crate::args::{Common, Predict};
use crate::input;
use crate::output::{Usage, check_writable, count, note, result, while_writing};
use crate::progress::Bar;
use anyhow::Result;
use arrow_array::{ArrayRef, Float64Array, Int32Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use nysketch::model::Shape;
use nysketch::{Block, Error, Invalid, Model, file};
use nysketch_tables::{Batch, Columns, Dataset, Extras, OutputFormat, TableWriter};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

pub fn run(args: &Predict, common: &Common) -> Result<()> {
    let kind = OutputFormat::of(&args.output)?;
    if kind == OutputFormat::Npy && (args.scores || !args.keep.is_empty()) {
        return Err(Usage("--scores and --keep need a .parquet or .csv file".into()).into());
    }
    check_writable(&args.output, args.input.input.iter().chain([&args.model]))?;
    let model = read_model(&args.model)?;
    let extras = Extras::default().keep(&args.keep);
    let input = input::open(&args.input, Columns::exactly(&model.columns), extras)?;
    input.check_output(&args.output)?;
    tell_input(&input, common);
    let columns = Predicted::new(&model, args.scores, kind)?;
    let schema = schema(&input, &columns)?;
    let invalid = invalid(&args.input);
    let bar = Bar::reading("predicting", &input, common.quiet);
    let (mut rows, skipped) = (0, AtomicU64::new(0));
    let written = file::write(&args.output, |out| -> Result<()> {
        let mut writer = TableWriter::new(kind, &schema, out)?;
        let work = |batch: Batch| {
            let (batch, bad) = columns.apply(&model, batch, invalid, &schema)?;
            skipped.fetch_add(bad, Ordering::Relaxed);
            Ok(batch)
        };
        rows = input.map_to_table(common.threads(), &bar, work, &mut writer)?;
        Ok(writer.finish()?)
    });
    while_writing(&args.output, written)?;
    drop(bar);
    let skipped = skipped.into_inner();
    if skipped > 0 {
        note(common, &format!("{} skipped as invalid; their label is -1", count(skipped, "row")));
    }
    let json = json!({"file": args.output, "rows": rows, "skipped": skipped});
    result(common, &json, &format!("{}: {}", args.output.display(), count(rows, "row")))
}

/// The columns carried along, then what is predicted, by another name where one is carried along.
fn schema(input: &Dataset, columns: &Predicted) -> Result<SchemaRef> {
    let mut fields = input.kept_fields()?;
    let kept: Vec<String> = fields.iter().map(|f| f.name().clone()).collect();
    for name in &columns.names {
        let is_label = name == "label";
        let data_type = if is_label { DataType::Int32 } else { DataType::Float64 };
        let mut name = name.clone();
        while kept.contains(&name) {
            name.insert_str(0, "predicted_");
        }
        fields.push(Field::new(name, data_type, !is_label));
    }
    Ok(Arc::new(Schema::new(fields)))
}

/// What is predicted for each row.
struct Predicted {
    names: Vec<String>,
}

impl Predicted {
    fn new(model: &Model, scores: bool, kind: OutputFormat) -> Result<Self> {
        let numbered = |prefix: &str, from: usize| -> Vec<String> {
            (from..from + model.k()).map(|i| format!("{prefix}{i}")).collect()
        };
        let mut names = match &model.shape {
            Shape::Components { .. } if kind == OutputFormat::Npy => {
                let message = "principal components need a .parquet or .csv file";
                return Err(Usage(message.into()).into());
            }
            Shape::Components { .. } => return Ok(Predicted { names: numbered("pc", 1) }),
            _ if kind == OutputFormat::Npy => return Ok(Predicted { names: vec!["label".into()] }),
            Shape::Centres { .. } => vec!["label".to_string(), "distance".into()],
            Shape::Mixture { .. } => vec!["label".into(), "distance".into(), "log_density".into()],
        };
        if scores && matches!(model.shape, Shape::Mixture { .. }) {
            names.extend(numbered("p", 0));
        }
        Ok(Predicted { names })
    }

    /// The columns carried along and the predictions, and how many rows are invalid.
    fn apply(
        &self,
        model: &Model,
        batch: Batch,
        invalid: Invalid,
        schema: &SchemaRef,
    ) -> nysketch::Result<(RecordBatch, u64)> {
        let block = &batch.block;
        let mut labels = Vec::with_capacity(block.len());
        let labelled = self.names.first().is_some_and(|n| n == "label");
        let width = self.names.len() - usize::from(labelled);
        let mut numbers = vec![Vec::with_capacity(block.len()); width];
        let mut skipped = 0;
        for (number, row, _) in block.rows() {
            if !check(model, block, number, row, invalid)? {
                skipped += 1;
                labels.push(-1);
                numbers.iter_mut().for_each(|n| n.push(None));
                continue;
            }
            let p = model.predict(row);
            labels.push(p.label as i32);
            let distance = labelled.then(|| p.squared_distance.sqrt());
            let values = distance.into_iter().chain(p.log_density).chain(p.scores);
            numbers.iter_mut().zip(values).for_each(|(n, x)| n.push(Some(x)));
        }
        let mut columns = batch.kept;
        if labelled {
            columns.push(Arc::new(Int32Array::from(labels)));
        }
        columns.extend(numbers.into_iter().map(|n| Arc::new(Float64Array::from(n)) as ArrayRef));
        Ok((RecordBatch::try_new(schema.clone(), columns).map_err(Error::source)?, skipped))
    }
}

/// Whether the row can be used; an error where it cannot and rows are not skipped.
pub fn check(
    model: &Model,
    block: &Block,
    number: u64,
    row: &[f64],
    invalid: Invalid,
) -> nysketch::Result<bool> {
    match Model::unusable(row) {
        None => Ok(true),
        Some(_) if invalid == Invalid::Skip => Ok(false),
        Some(j) => {
            Err(Error::NonFinite { at: block.cell(number, &model.columns[j]), value: row[j] })
        }
    }
}
