//! `nysketch predict`: applies a model to a stream of rows.

use super::files::read_model;
use super::plan::{invalid, tell_input};
use crate::args::{Common, DeviceArg, Predict};
use crate::input;
use crate::kind::Kind;
use crate::losses::Lost;
use crate::output::{Usage, count, name, note, result, short, thousands, warn};
use crate::progress::Bar;
use crate::writing::{check_output, while_writing};
use anyhow::Result;
use arrow_array::{ArrayRef, BooleanArray, Float64Array, Int32Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use nysketch::predictor::{Column, Values};
use nysketch::recipe::View;
use nysketch::rows::Losses;
use nysketch::{Block, Error, Invalid, Model, Predictor, file};
use nysketch_report::words::describe::digits;
use nysketch_tables::{Batch, Dataset, Extras, OutputFormat, TableWriter};
use serde_json::json;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

pub fn run(args: &Predict, common: &Common) -> Result<()> {
    let kind = OutputFormat::of(&args.output)?;
    let inputs = args.input.input.iter().chain([&args.model]).map(PathBuf::as_path);
    check_output(common, &args.output, Kind::by_extension(&args.output), inputs)?;
    let model = read_model(&args.model)?;
    let columns = columns(args, kind, &model)?;
    let extras = Extras::default().keep(&args.keep);
    let input = input::open_for_model(&args.input, &model.recipe, extras)?;
    input.check_output(&args.output)?;
    tell_input(&input, common);
    let schema = schema(&input, &columns, &args.prefix)?;
    let invalid = invalid(&args.input);
    let predictor = on_device(&model, &args.device, &input, common)?;
    let view = View::new(&model.recipe, &model.columns, &input)?;
    let bar = Bar::reading("predicting", &input, common.quiet);
    let (mut rows, losses) = (0, Mutex::new(Losses::default()));
    let flagged = AtomicU64::new(0);
    let written = file::write(&args.output, |out| -> Result<()> {
        let mut writer = TableWriter::new(kind, &schema, out)?;
        let work = |mut batch: Batch| {
            batch.block = view.apply(batch.block);
            let (batch, bad) = apply(&predictor, &columns, batch, invalid, &schema, &flagged)?;
            losses.lock().unwrap_or_else(|e| e.into_inner()).merge(&bad);
            Ok(batch)
        };
        rows = input.map_to_table(common.threads(), &bar, work, &mut writer)?;
        let losses = losses.lock().unwrap_or_else(|e| e.into_inner());
        Lost::new(&losses, &model.columns, &model.recipe, rows).check(&args.input)?;
        Ok(writer.finish()?)
    });
    while_writing(&args.output, written)?;
    drop(bar);
    tell_device(&predictor);
    let losses = losses.into_inner().unwrap_or_else(|e| e.into_inner());
    let lost = Lost::new(&losses, &model.columns, &model.recipe, rows);
    lost.tell(common, "; their label is -1");
    let mut json = json!({"file": name(&args.output), "rows": rows, "skipped": losses.skipped(),
        "skipped_by_column": lost.json()});
    let mut text = format!("{}: {}", args.output.display(), count(rows, "row"));
    let outlier = columns.iter().find_map(|c| match c {
        Column::Outlier { threshold } => Some(*threshold),
        _ => None,
    });
    if let (Some(share), Some(threshold)) = (args.flag, outlier) {
        let flagged = flagged.into_inner();
        note(common, &said_of_flag(&model, share, threshold));
        text.push_str(&format!(", {} flagged", thousands(flagged)));
        json["flag"] = json!(share);
        json["threshold"] = json!(threshold);
        json["flagged"] = json!(flagged);
    }
    result(common, &json, &text)
}

/// Creates the predictor, on a GPU if one was requested or saves time.
pub fn on_device<'a>(
    model: &'a Model,
    device: &DeviceArg,
    input: &Dataset,
    common: &Common,
) -> Result<Predictor<'a>> {
    let predictor = Predictor::new(model);
    let (predictor, remark) = predictor.on_device(device.device, input.rows(), common.threads())?;
    remark.iter().for_each(|remark| note(common, remark));
    Ok(predictor)
}

/// Warns if a GPU failed. The processors have finished its work, so the results are correct.
pub fn tell_device(predictor: &Predictor<'_>) {
    predictor.device_remark().iter().for_each(|remark| warn(remark));
}

/// Describes the threshold and its uncertainty.
fn said_of_flag(model: &Model, share: f64, threshold: f64) -> String {
    let error = model.densities.as_ref().map_or(f64::INFINITY, |d| d.error(share));
    let known = if error.is_finite() {
        let digits = digits(100.0 * error) + 1;
        let ends = [(share - error).max(0.0), (share + error).min(1.0)].map(|x| 100.0 * x);
        format!("({:.digits$} % to {:.digits$} %)", ends[0], ends[1])
    } else {
        "(estimated from cells; without retained rows, the error is not known)".into()
    };
    format!(
        "outliers have a log density below {}; about {} % of the rows of the sketch are below it \
         {known}",
        short(threshold),
        short(100.0 * share)
    )
}

/// Returns the columns to write.
fn columns(args: &Predict, kind: OutputFormat, model: &Model) -> Result<Vec<Column>> {
    let usage = |message: String| Err(Usage(message).into());
    let mut columns = Column::of(model);
    if args.scores {
        match Column::probabilities(model) {
            Some(probabilities) => columns.extend(probabilities),
            None => {
                let task = &model.task;
                return usage(format!(
                    "--scores writes the probabilities of a mixture; {} is a {task} model",
                    args.model.display()
                ));
            }
        }
    }
    if let Some(share) = args.flag {
        columns.push(Column::outlier(model, share)?);
    }
    if kind != OutputFormat::Npy {
        return Ok(columns);
    }
    if args.scores || args.flag.is_some() || !args.keep.is_empty() {
        return usage("--scores, --flag and --keep need a .parquet or .csv file as output".into());
    }
    columns.retain(|c| c.is_label());
    if columns.is_empty() {
        return usage("principal components need a .parquet or .csv file as output".into());
    }
    Ok(columns)
}

/// Returns the schema of the output: the kept columns, followed by the predictions.
fn schema(input: &Dataset, columns: &[Column], prefix: &str) -> Result<SchemaRef> {
    let mut fields = input.kept_fields()?;
    let kept: Vec<String> = fields.iter().map(|f| f.name().clone()).collect();
    for column in columns {
        let data_type = match column {
            Column::Label => DataType::Int32,
            Column::Outlier { .. } => DataType::Boolean,
            _ => DataType::Float64,
        };
        let name = format!("{prefix}{}", column.name());
        if kept.contains(&name) {
            let message = format!(
                "the column '{name}' that is kept has the name of a prediction; give predictions \
                 other names with --prefix"
            );
            return Err(Usage(message).into());
        }
        fields.push(Field::new(name, data_type, !column.is_label()));
    }
    Ok(Arc::new(Schema::new(fields)))
}

/// Returns the kept columns with the predictions, and the losses from invalid rows; counts the
/// flagged rows.
fn apply(
    predictor: &Predictor<'_>,
    columns: &[Column],
    batch: Batch,
    invalid: Invalid,
    schema: &SchemaRef,
    flagged: &AtomicU64,
) -> nysketch::Result<(RecordBatch, Losses)> {
    let (skipped, losses) = unusable_rows(predictor.model(), &batch.block, invalid)?;
    let array = |values: Values| -> ArrayRef {
        match values {
            Values::Labels(labels) => Arc::new(Int32Array::from(labels)),
            Values::Numbers(numbers) if skipped.is_empty() => Arc::new(Float64Array::from(numbers)),
            Values::Numbers(numbers) => Arc::new(Float64Array::from_iter(
                numbers.into_iter().map(|x| (!x.is_nan()).then_some(x)),
            )),
            Values::Flags(flags) => {
                let raised = flags.iter().filter(|f| **f == Some(true)).count() as u64;
                flagged.fetch_add(raised, Ordering::Relaxed);
                Arc::new(BooleanArray::from(flags))
            }
        }
    };
    let mut arrays = batch.kept;
    arrays.extend(predictor.columns(&batch.block, columns).into_iter().map(array));
    let batch = RecordBatch::try_new(schema.clone(), arrays).map_err(Error::source)?;
    Ok((batch, losses))
}

/// Returns the unusable rows of a block, numbered from 0, and the reasons. Returns an error if rows
/// are not skipped.
pub fn unusable_rows(
    model: &Model,
    block: &Block,
    invalid: Invalid,
) -> nysketch::Result<(Vec<usize>, Losses)> {
    let (mut unusable, mut losses) = (Vec::new(), Losses::default());
    let c = model.categories().len();
    for (i, (number, row, _)) in block.rows().enumerate() {
        let codes = &block.codes[i * c..(i + 1) * c];
        let Some(j) = model.unusable(row, codes) else { continue };
        // A row with too many missing values is excluded, as in sketching.
        if invalid == Invalid::Refuse && model.out_of_range(row).is_some() {
            let at = block.place(number, &model.columns[j]);
            return Err(Error::NonFinite { at, value: row[j] });
        }
        losses.skip((0..row.len()).filter(|j| !model.in_range(row[*j])));
        unusable.push(i);
    }
    Ok((unusable, losses))
}
