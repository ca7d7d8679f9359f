//! `nysketch predict`: a model applied to rows.

use super::read_model;
use crate::args::{Common, Predict};
use crate::input::{Input, Wanted};
use crate::output::{Usage, check_writable, count, note, result, while_writing};
use crate::progress::Bar;
use anyhow::Result;
use nysketch::model::Shape;
use nysketch::rows::read_in_order;
use nysketch::{Block, Error, Invalid, Model, file};
use serde_json::json;
use std::io::{self, Write};

pub fn run(args: &Predict, common: &Common) -> Result<()> {
    check_writable(&args.output, args.input.input.iter().chain([&args.model]))?;
    let model = read_model(&args.model)?;
    let extension =
        args.output.extension().and_then(|e| e.to_str()).unwrap_or("").to_ascii_lowercase();
    let npy = match extension.as_str() {
        "csv" => false,
        "npy" if args.scores => return Err(Usage("--scores needs a .csv file".into()).into()),
        "npy" => true,
        _ => {
            return Err(
                Usage(format!("{}: name the file .csv or .npy", args.output.display())).into()
            );
        }
    };
    let input = Input::open(&args.input, Wanted::Columns(&model.columns, None))?;
    let invalid = super::plan::invalid(&args.input);
    let bar = Bar::new("predicting", input.rows_hint(), common.quiet);
    let mut totals = (0u64, 0u64);
    let written = file::write(&args.output, |out| -> Result<()> {
        let mut labels: Vec<i32> = Vec::new();
        if !npy {
            writeln!(out, "{}", header(&model, args.scores))?;
        }
        read_in_order(&input, &bar, |block| {
            let mut text = Vec::new();
            for (number, row, _) in block.rows() {
                let valid = check(&model, block, number, row, invalid)?;
                totals.0 += 1;
                totals.1 += u64::from(!valid);
                if npy {
                    labels.push(if valid { model.predict(row).label as i32 } else { -1 });
                } else {
                    line(&mut text, &model, valid.then_some(row), args.scores)
                        .map_err(Error::source)?;
                }
            }
            out.write_all(&text).map_err(Error::source)
        })?;
        if npy {
            super::generate::npy_header(out, "<i4", &format!("({},)", labels.len()))?;
            for label in labels {
                out.write_all(&label.to_le_bytes())?;
            }
        }
        Ok(())
    });
    while_writing(&args.output, written)?;
    drop(bar);
    let (rows, skipped) = totals;
    if skipped > 0 {
        note(common, &format!("{} skipped as invalid; their label is -1", count(skipped, "row")));
    }
    let json = json!({"file": args.output, "rows": rows, "skipped": skipped});
    result(common, &json, &format!("{}: {}", args.output.display(), count(rows, "row")))
}

/// Values beyond this overflow when squared and summed.
const LARGEST: f64 = 1e150;

/// Whether the row can be used; an error where it cannot and rows are not skipped.
pub fn check(
    model: &Model,
    block: &Block,
    number: u64,
    row: &[f64],
    invalid: Invalid,
) -> nysketch::Result<bool> {
    match row.iter().position(|x| !(x.abs() <= LARGEST)) {
        None => Ok(true),
        Some(_) if invalid == Invalid::Skip => Ok(false),
        Some(j) => {
            Err(Error::NonFinite { at: block.cell(number, &model.columns[j]), value: row[j] })
        }
    }
}

fn header(model: &Model, scores: bool) -> String {
    match &model.shape {
        Shape::Centres { .. } => "label,distance".into(),
        Shape::Mixture { .. } if scores => {
            let columns: Vec<String> = (0..model.k()).map(|i| format!("p{i}")).collect();
            format!("label,distance,log_density,{}", columns.join(","))
        }
        Shape::Mixture { .. } => "label,distance,log_density".into(),
        Shape::Components { .. } => {
            let columns: Vec<String> = (0..model.k()).map(|i| format!("pc{}", i + 1)).collect();
            columns.join(",")
        }
    }
}

fn line(out: &mut Vec<u8>, model: &Model, row: Option<&[f64]>, scores: bool) -> io::Result<()> {
    let fields = header(model, scores).matches(',').count();
    let Some(row) = row else {
        let first = if matches!(model.shape, Shape::Components { .. }) { "" } else { "-1" };
        return writeln!(out, "{first}{}", ",".repeat(fields));
    };
    let p = model.predict(row);
    let join = |values: &[f64]| values.iter().map(f64::to_string).collect::<Vec<_>>().join(",");
    match (&model.shape, p.log_density) {
        (Shape::Components { .. }, _) => writeln!(out, "{}", join(&p.scores)),
        (_, Some(log)) if scores => {
            writeln!(out, "{},{},{log},{}", p.label, p.squared_distance.sqrt(), join(&p.scores))
        }
        (_, Some(log)) => writeln!(out, "{},{},{log}", p.label, p.squared_distance.sqrt()),
        _ => writeln!(out, "{},{}", p.label, p.squared_distance.sqrt()),
    }
}
