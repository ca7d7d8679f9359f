//! `nysketch evaluate`: risks of a model on rows.

use super::predict::check;
use super::read_model;
use crate::args::{Common, Evaluate, InputArgs};
use crate::input::{Input, Wanted};
use crate::output::{Usage, count, note, result, short, thousands};
use crate::progress::Bar;
use anyhow::{Result, bail};
use nysketch::metrics::Risks;
use nysketch::rows::read_in_order;
use nysketch::{Error, Model};
use serde_json::json;
use std::path::Path;

/// Where the true labels are.
enum Labels {
    None,
    Column(String),
    File(Vec<i64>),
}

pub fn run(args: &Evaluate, common: &Common) -> Result<()> {
    let model = read_model(&args.model)?;
    let labels = find_labels(args)?;
    let column = match &labels {
        Labels::Column(c) => Some(c.as_str()),
        _ => None,
    };
    let input = Input::open(&args.input, Wanted::Columns(&model.columns, column))?;
    let bar = Bar::new("evaluating", input.rows_hint(), common.quiet);
    let (risks, skipped) = measure(args, &model, &input, &labels, &bar)?;
    drop(bar);
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
    result(common, &json, &text)
}

fn find_labels(args: &Evaluate) -> Result<Labels> {
    let Some(name) = &args.labels else {
        return Ok(Labels::None);
    };
    let path = Path::new(name);
    if !path.is_file() {
        return Ok(Labels::Column(name.clone()));
    }
    let input = InputArgs {
        input: vec![path.to_path_buf()],
        columns: None,
        exclude: vec![],
        ..args.input.clone()
    };
    let columns = Input::names_of(path, &input)?;
    if columns.len() != 1 {
        bail!("{name} has {} columns; a file of labels has one", columns.len());
    }
    let rows = Input::open(&input, Wanted::Columns(&columns, None))?.read_all()?;
    let labels: Option<Vec<i64>> = rows.iter().map(|r| whole(r[0])).collect();
    match labels {
        Some(labels) => Ok(Labels::File(labels)),
        None => bail!("{name} holds labels that are not whole numbers"),
    }
}

fn whole(x: f64) -> Option<i64> {
    (x.fract() == 0.0 && x.abs() < 9e15).then_some(x as i64)
}

/// In the order of the rows, so that sums of doubles come out the same every time.
fn measure(
    args: &Evaluate,
    model: &Model,
    input: &Input,
    labels: &Labels,
    bar: &Bar,
) -> Result<(Risks, u64)> {
    let invalid = super::plan::invalid(&args.input);
    let (mut risks, mut skipped, mut seen) = (Risks::default(), 0, 0);
    read_in_order(input, bar, |block| {
        for (number, row, extra) in block.rows() {
            seen += 1;
            if !check(model, block, number, row, invalid)? {
                skipped += 1;
                continue;
            }
            let label = match labels {
                Labels::None => None,
                Labels::Column(column) => Some(whole(extra).ok_or_else(|| {
                    let at = block.cell(number, column);
                    Error::source(format!("{at}: the label {extra} is not a whole number"))
                })?),
                Labels::File(all) => Some(*all.get(seen - 1).ok_or_else(|| {
                    Error::source(format!("there are {} labels but more rows", all.len()))
                })?),
            };
            risks.add(model, row, label);
        }
        Ok(())
    })?;
    if let Labels::File(all) = labels
        && all.len() != seen
    {
        return Err(Usage(format!("there are {} labels but {seen} rows", all.len())).into());
    }
    Ok((risks, skipped))
}
