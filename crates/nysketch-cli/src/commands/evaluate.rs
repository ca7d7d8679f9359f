//! `nysketch evaluate`: risks of a model on rows.

use super::files::read_model;
use super::plan::{invalid, tell_input};
use super::predict::{on_device, tell_device, unusable_rows};
use crate::args::{Common, Evaluate, InputArgs};
use crate::input;
use crate::losses::Lost;
use crate::output::{Usage, result, short, thousands};
use crate::progress::Bar;
use anyhow::{Result, bail};
use nysketch::metrics::Risks;
use nysketch::predictor::ModelRows;
use nysketch::recipe::View;
use nysketch::rows::Losses;
use nysketch::{Block, Error, Invalid, Model, Predictor, Step, Task};
use nysketch_tables::{Batch, Columns, Extras};
use serde_json::json;
use std::path::Path;
use std::sync::Arc;

/// The source of the true labels.
enum Labels {
    None,
    Column(String),
    File(Vec<Arc<str>>),
}

pub fn run(args: &Evaluate, common: &Common) -> Result<()> {
    let model = read_model(&args.model)?;
    let reference =
        args.reference.as_deref().map(|file| read_reference(file, &model)).transpose()?;
    if args.labels.is_some() && model.task == Task::Pca {
        let file = args.model.display();
        let message =
            format!("--labels are compared with clusters; {file} holds principal components");
        return Err(Usage(message).into());
    }
    let labels = find_labels(args)?;
    let key = match &labels {
        Labels::Column(c) => Some(c),
        _ => None,
    };
    let extras = Extras::default().key(key).weight(args.weights.clone());
    let input = input::open_for_model(&args.input, &model.recipe, extras)?;
    tell_input(&input, common);
    let bar = Bar::reading("evaluating", &input, common.quiet);
    let predictor = on_device(&model, &args.device, &input, common)?;
    let best_predictor = reference.as_ref().map(Predictor::new);
    let view = View::new(&model.recipe, &model.columns, &input)?;
    let (mut risks, mut best, mut seen) = (Risks::default(), Risks::default(), 0);
    let mut losses = Losses::default();
    let work = |mut batch: Batch| {
        batch.block = view.apply(batch.block);
        let weights = args.weights.as_deref();
        let (risks, bad, rows) =
            measure(&predictor, &batch, &labels, weights, invalid(&args.input))?;
        let best = match &best_predictor {
            Some(r) => measure(r, &batch, &Labels::None, weights, invalid(&args.input))?.0,
            None => Risks::default(),
        };
        Ok((risks, best, bad, rows))
    };
    let take = |(part, of_best, bad, rows): (Risks, Risks, Losses, u64)| {
        risks.merge(part);
        best.merge(of_best);
        losses.merge(&bad);
        seen += rows;
        Ok(())
    };
    // Parts are added in row order, so that the result does not depend on the number of threads.
    input.map_in_order(common.threads(), &bar, work, take)?;
    drop(bar);
    tell_device(&predictor);
    if let Labels::File(all) = &labels
        && all.len() as u64 != seen
    {
        return Err(Usage(format!("there are {} labels but {seen} rows", all.len())).into());
    }
    if risks.rows == 0 {
        return Err(Error::NoRows { skipped: losses.skipped() }.into());
    }
    if risks.weight() == 0.0 {
        bail!("all rows have weight 0, so there is nothing to measure");
    }
    let lost = Lost::new(&losses, &model.columns, &model.recipe, seen);
    lost.check(&args.input)?;
    lost.tell(common, "");
    let e = risks.evaluation(&model);
    let mut json = json!({
        "rows": e.rows, "skipped": losses.skipped(),
        "skipped_by_column": lost.json(), "mse": e.mse, "mse_table_units": e.mse_table_units,
        "mean_distance": e.mean_distance,
    });
    let scaled = model.scale.iter().any(|s| *s != 1.0);
    let mut lines = vec![
        ("rows", thousands(e.rows)),
        ("mse", short(e.mse)),
        ("mean distance", short(e.mean_distance)),
    ];
    // Squares of logarithms and of sines have no unit of the table.
    if scaled && model.recipe.numbers.iter().all(|n| n.step == Step::AsIs) {
        lines.insert(2, ("mse, table units", short(e.mse_table_units)));
    }
    for (name, key, value) in
        [("-log-likelihood", "nll", e.nll), ("ARI", "ari", e.ari), ("NMI", "nmi", e.nmi)]
    {
        if let Some(v) = value {
            json[key] = json!(v);
            lines.push((name, short(v)));
        }
    }
    if let Some(reference) = &reference {
        let best = best.evaluation(reference);
        let ((name, risk), (_, least)) = (e.risk(&model), best.risk(reference));
        json["reference"] = json!({"risk": name, "of_reference": least, "excess": risk - least});
        let excess = format!(
            "{} in {name}, {} of the reference's {}",
            short(risk - least),
            short((risk - least) / least.abs()),
            short(least)
        );
        lines.push(("excess risk", excess));
    }
    let width = lines.iter().map(|(name, _)| name.len()).max().unwrap_or(0).max(13);
    let text: String =
        lines.iter().map(|(name, value)| format!("{name:width$}  {value}\n")).collect();
    result(common, &json, &text)
}

/// Reads a model for the same task, columns and scales, so that the risks are comparable.
fn read_reference(file: &Path, model: &Model) -> Result<Model> {
    let reference = read_model(file)?;
    let name = file.display();
    if reference.task != model.task {
        return Err(Usage(format!("{name} is a model for another task")).into());
    }
    if reference.columns != model.columns || reference.recipe != model.recipe {
        return Err(
            Usage(format!("{name} is a model with other columns, or in another order")).into()
        );
    }
    if reference.scale != model.scale {
        return Err(Usage(format!(
            "{name} is a model with other scales, so the risks cannot be compared"
        ))
        .into());
    }
    Ok(reference)
}

fn find_labels(args: &Evaluate) -> Result<Labels> {
    let Some(name) = &args.labels else {
        return Ok(Labels::None);
    };
    let path = Path::new(name);
    if !path.is_file() {
        return Ok(Labels::Column(name.clone()));
    }
    let input = InputArgs { input: vec![path.to_path_buf()], format: None, ..args.input.clone() };
    let columns = input::names_of(path, &input)?;
    let [column] = &columns[..] else {
        bail!("{name} has {} columns; a file of labels must have one", columns.len());
    };
    let key = Extras::default().key(Some(column));
    let input = input::open(&input, Columns::exactly::<String>([]), key, false)?;
    let mut labels = Vec::new();
    let take = |batch: Batch| {
        for (row, key) in (batch.block.first_row..).zip(batch.block.keys) {
            let Some(key) = key else {
                return Err(Error::source(format!("{name}: row {row}: the label is missing")));
            };
            labels.push(key);
        }
        Ok(())
    };
    input.map_in_order(1, &(), Ok, take)?;
    Ok(Labels::File(labels))
}

/// Returns the risks of some rows, the losses through invalid rows, and the number of rows.
fn measure(
    predictor: &Predictor<'_>,
    batch: &Batch,
    labels: &Labels,
    weights: Option<&str>,
    invalid: Invalid,
) -> nysketch::Result<(Risks, Losses, u64)> {
    let block = &batch.block;
    let (mut skipped, mut losses) = unusable_rows(predictor.model(), block, invalid)?;
    if let Some(column) = weights {
        for (i, weight) in block.weights.iter().enumerate() {
            let at = || block.place(block.first_row + i as u64, column);
            if *weight < 0.0 {
                return Err(Error::NegativeWeight { at: at(), value: *weight });
            }
            if !weight.is_finite() && invalid == Invalid::Refuse {
                return Err(Error::NonFinite { at: at(), value: *weight });
            }
            if !weight.is_finite() && !skipped.contains(&i) {
                losses.skip(std::iter::empty());
                skipped.push(i);
            }
        }
        skipped.sort_unstable();
    }
    let used = |i: usize| skipped.binary_search(&i).is_err();
    let mut known = Vec::new();
    for i in (0..block.len()).filter(|i| used(*i)) {
        known.extend(label_of(labels, block, i)?);
    }
    let mut risks = Risks::default();
    if skipped.is_empty() {
        risks.add_weighted(predictor, block, &block.weights, &known);
    } else {
        let (d, c) = (block.columns, predictor.model().categories().len());
        let rows: Vec<usize> = (0..block.len()).filter(|i| used(*i)).collect();
        let values: Vec<f64> =
            rows.iter().flat_map(|i| &block.values[i * d..(i + 1) * d]).copied().collect();
        let codes: Vec<u32> =
            rows.iter().flat_map(|i| &block.codes[i * c..(i + 1) * c]).copied().collect();
        let weights: Vec<f64> =
            rows.iter().filter_map(|i| block.weights.get(*i)).copied().collect();
        let rows = ModelRows { values: &values, codes: &codes };
        risks.add_weighted(predictor, rows, &weights, &known);
    }
    Ok((risks, losses, block.len() as u64))
}

/// Returns the true label of a row of a block, if there are labels.
fn label_of<'a>(
    labels: &'a Labels,
    block: &'a Block,
    i: usize,
) -> nysketch::Result<Option<&'a Arc<str>>> {
    match labels {
        Labels::None => Ok(None),
        Labels::Column(column) => block.keys[i].as_ref().map(Some).ok_or_else(|| {
            let at = block.place(block.first_row + i as u64, column);
            Error::source(format!("{at}: the label is missing"))
        }),
        Labels::File(all) => all.get(block.position as usize + i).map(Some).ok_or_else(|| {
            Error::source(format!("there are more rows than the {} labels", all.len()))
        }),
    }
}
