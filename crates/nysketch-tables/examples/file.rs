//! Opens a table, plans, sketches, learns a mixture, and writes a label and a distance for each row
//! to another table.
//!
//! ```console
//! $ cargo run --release -p nysketch-tables --example file
//! ```

use arrow_array::{ArrayRef, BooleanArray, Float64Array, Int32Array, Int64Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use nysketch::predictor::{Column, Values};
use nysketch::{FitParams, Mixture, PlanParams, Predictor, Sketch, SketchParams, Task};
use nysketch::{file, fit, plan_for};
use nysketch_tables::{Batch, Columns, Dataset, Extras, OutputFormat, ReadOptions, TableWriter};
use std::path::Path;
use std::sync::Arc;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

const ROWS: usize = 20_000;

/// Makes a Parquet file with an id and two measurements, as input of the example.
fn make_table(path: &Path) -> Result<()> {
    let rows = Mixture::new(2, 3, 4.0, 2)?.rows(0, ROWS).values;
    let column = |j: usize| -> ArrayRef {
        Arc::new(Float64Array::from_iter_values(rows.iter().skip(j).step_by(2).copied()))
    };
    let id: ArrayRef = Arc::new(Int64Array::from_iter_values(0..ROWS as i64));
    let batch =
        RecordBatch::try_from_iter([("id", id), ("width", column(0)), ("height", column(1))])?;
    file::write(path, |out| {
        let mut writer = TableWriter::new(OutputFormat::Parquet, &batch.schema(), out)?;
        writer.write(&batch)?;
        Ok(writer.finish()?)
    })
}

/// Runs the example.
pub fn main() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let (input, output) = (folder.path().join("in.parquet"), folder.path().join("out.parquet"));
    make_table(&input)?;

    // The input may be files, folders and patterns, of any format. The id is not a measurement, but
    // it is copied to the output.
    let options = ReadOptions::default()
        .columns(Columns::default().except(["id"]))
        .extras(Extras::default().keep(["id"]));
    let table = Dataset::open([&input], &options)?;

    // The mixture of three Gaussians is learned from the sketch alone. Sketch and model are written
    // to files, too.
    let threads = 2;
    let plan = plan_for(&table, PlanParams::default().landmarks(100).threads(threads))?.plan;
    println!("columns: {}", plan.columns.join(", "));
    let sketch =
        Sketch::of(&Arc::new(plan), &table, SketchParams::default().threads(threads), &())?;
    std::fs::write(folder.path().join("table.nys"), sketch.to_bytes())?;
    let model = fit(&sketch, &FitParams::new(Task::Gmm, 3))?;
    std::fs::write(folder.path().join("model.json"), model.to_json())?;
    println!("{} rows, {} components by {}", sketch.rows(), model.k(), model.report.decoder);

    // Predicts batch by batch, on all threads, in row order.
    let columns = [Column::Label, Column::Distance];
    let mut fields = table.kept_fields()?;
    fields.push(Field::new("label", DataType::Int32, false));
    fields.push(Field::new("distance", DataType::Float64, false));
    let schema = Arc::new(Schema::new(fields));
    let predictor = Predictor::new(&model);
    let predict = |batch: Batch| {
        let mut arrays = batch.kept;
        for values in predictor.columns(&batch.block.values, &columns) {
            arrays.push(match values {
                Values::Labels(labels) => Arc::new(Int32Array::from(labels)) as ArrayRef,
                Values::Numbers(numbers) => Arc::new(Float64Array::from(numbers)),
                Values::Flags(flags) => Arc::new(BooleanArray::from(flags)),
            });
        }
        RecordBatch::try_new(schema.clone(), arrays).map_err(nysketch_core::Error::source)
    };
    let mut written = 0;
    file::write(&output, |out| -> Result<()> {
        let mut writer = TableWriter::new(OutputFormat::of(&output)?, &schema, out)?;
        written = table.map_to_table(threads, &(), predict, &mut writer)?;
        Ok(writer.finish()?)
    })?;
    println!("{written} predictions written");

    // The output can be read like any other table.
    let labels = Dataset::open([&output], &ReadOptions::default())?.read_all()?;
    let first = labels.iter().filter(|row| row[1] == 0.0).count();
    println!("{first} rows in the first component");
    assert_eq!((written as usize, labels.len()), (ROWS, ROWS));
    Ok(())
}
