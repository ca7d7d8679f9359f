//! `nysketch evaluate`: risks of a model on rows.

use super::plan::{invalid, tell_input};
use super::predict::check;
use super::read_model;
use crate::args::{Common, Evaluate, InputArgs};
use crate::input;
use crate::output::{Usage, count, note, result, short, thousands};
use crate::progress::Bar;
use anyhow::{Result, bail};
use nysketch::metrics::Risks;
use nysketch::{Error, Invalid, Model};
use nysketch_tables::{Batch, Columns, Extras};
use serde_json::json;
use std::path::Path;
use std::sync::Arc;

/// Where the true labels are.
enum Labels {
    None,
    Column(String),
    File(Vec<Arc<str>>),
}

pub fn run(args: &Evaluate, common: &Common) -> Result<()> {
    let model = read_model(&args.model)?;
    let reference =
        args.reference.as_deref().map(|file| read_reference(file, &model)).transpose()?;
    let labels = find_labels(args)?;
    let key = match &labels {
        Labels::Column(c) => Some(c),
        _ => None,
    };
    let extras = Extras::default().key(key);
    let input = input::open(&args.input, Columns::exactly(&model.columns), extras)?;
    tell_input(&input, common);
    let bar = Bar::reading("evaluating", &input, common.quiet);
    let (mut risks, mut best, mut skipped, mut seen) = (Risks::default(), Risks::default(), 0, 0);
    let work = |batch: Batch| {
        let (risks, bad, rows) = measure(&model, &batch, &labels, invalid(&args.input))?;
        let best = match &reference {
            Some(r) => measure(r, &batch, &Labels::None, invalid(&args.input))?.0,
            None => Risks::default(),
        };
        Ok((risks, best, bad, rows))
    };
    let take = |(part, of_best, bad, rows): (Risks, Risks, u64, u64)| {
        risks.merge(part);
        best.merge(of_best);
        skipped += bad;
        seen += rows;
        Ok(())
    };
    // Parts are added up in the order of the rows, so that the number of threads does not show.
    input.map_in_order(common.threads(), &bar, work, take)?;
    drop(bar);
    if let Labels::File(all) = &labels
        && all.len() as u64 != seen
    {
        return Err(Usage(format!("there are {} labels but {seen} rows", all.len())).into());
    }
    if risks.rows == 0 {
        return Err(Error::NoRows { skipped }.into());
    }
    if skipped > 0 {
        note(common, &format!("{} skipped as invalid", count(skipped, "row")));
    }
    let e = risks.evaluation(&model);
    let mut json = json!({
        "rows": e.rows, "skipped": skipped, "mse": e.mse, "scaled_mse": e.scaled_mse,
        "mean_distance": e.mean_distance,
    });
    let mut text =
        format!("rows           {}\nmse            {}\n", thousands(e.rows), short(e.mse));
    if model.scale.iter().any(|s| *s != 1.0) {
        text.push_str(&format!("scaled mse     {}\n", short(e.scaled_mse)));
    }
    text.push_str(&format!("mean distance  {}\n", short(e.mean_distance)));
    for (name, key, value) in
        [("-log-likelihood", "nll", e.nll), ("ARI", "ari", e.ari), ("NMI", "nmi", e.nmi)]
    {
        if let Some(v) = value {
            json[key] = json!(v);
            text.push_str(&format!("{name:14} {}\n", short(v)));
        }
    }
    if let Some(reference) = &reference {
        let best = best.evaluation(reference);
        let (name, risk, least) = match model.task.as_str() {
            "gmm" => ("-log-likelihood", e.nll.unwrap_or(f64::NAN), best.nll.unwrap_or(f64::NAN)),
            "kmedians" => ("mean distance", e.mean_distance, best.mean_distance),
            _ if model.scale.iter().any(|s| *s != 1.0) => {
                ("scaled mse", e.scaled_mse, best.scaled_mse)
            }
            _ => ("mse", e.mse, best.mse),
        };
        json["reference"] = json!({"risk": name, "of_reference": least, "excess": risk - least});
        text.push_str(&format!(
            "excess risk    {} in {name}, {} of the reference's {}\n",
            short(risk - least),
            short((risk - least) / least.abs()),
            short(least)
        ));
    }
    result(common, &json, &text)
}

/// A model for the same task and the same columns in the same scale, so that risks compare.
fn read_reference(file: &Path, model: &Model) -> Result<Model> {
    let reference = read_model(file)?;
    let name = file.display();
    if reference.task != model.task {
        return Err(Usage(format!("{name} is a model of another task")).into());
    }
    if reference.columns != model.columns {
        return Err(
            Usage(format!("{name} is a model of other columns, or in another order")).into()
        );
    }
    if reference.scale != model.scale {
        return Err(Usage(format!(
            "{name} is a model of columns scaled otherwise: risks do not compare"
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
        bail!("{name} has {} columns; a file of labels has one", columns.len());
    };
    let key = Extras::default().key(Some(column));
    let input = input::open(&input, Columns::Exactly(Vec::new()), key)?;
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

/// The risks of some rows, how many are invalid, and how many there are.
fn measure(
    model: &Model,
    batch: &Batch,
    labels: &Labels,
    invalid: Invalid,
) -> nysketch::Result<(Risks, u64, u64)> {
    let block = &batch.block;
    let (mut risks, mut skipped) = (Risks::default(), 0);
    for (i, (number, row, _)) in block.rows().enumerate() {
        if !check(model, block, number, row, invalid)? {
            skipped += 1;
            continue;
        }
        let label = match labels {
            Labels::None => None,
            Labels::Column(column) => Some(block.keys[i].as_ref().ok_or_else(|| {
                Error::source(format!("{}: the label is missing", block.cell(number, column)))
            })?),
            Labels::File(all) => Some(all.get(block.position as usize + i).ok_or_else(|| {
                Error::source(format!("there are {} labels but more rows", all.len()))
            })?),
        };
        risks.add(model, row, label);
    }
    Ok((risks, skipped, block.len() as u64))
}
