//! A table in memory: sketch it, learn k-means from the sketch, print the centres.
//!
//! ```console
//! $ cargo run --release -p nysketch --example table
//! ```

use nysketch::{
    FitParams, Mixture, PlanParams, Planned, Predictor, Result, Shape, Sketch, SketchParams, Table,
    Task, fit, metrics::Risks, plan_for,
};
use std::sync::Arc;

/// Runs the example.
pub fn main() -> Result<()> {
    // 20,000 rows around four centres. Put your own rows here: row-major doubles, with column
    // names.
    let rows = Mixture::new(2, 4, 3.0, 5)?.rows(0, 20_000).values;
    let table = Table::new(vec!["x".into(), "y".into()], rows.clone())?;

    // Choose the measurements from the rows, then pass over the rows once.
    let Planned { plan, report } = plan_for(&table, PlanParams::default().landmarks(100))?;
    report.notes.iter().for_each(|note| println!("note: {note}"));
    let sketch = Sketch::of(&Arc::new(plan), &table, SketchParams::default().threads(2), &())?;
    let (before, after) = (rows.len() * 8, sketch.to_bytes().len());
    println!("{} rows: {before} bytes became {after}", sketch.rows());

    // The rows are not needed from here on.
    let model = fit(&sketch, &FitParams::new(Task::Kmeans, 4))?;
    if let Shape::Centres { weights, centres } = &model.shape {
        for (share, centre) in weights.iter().zip(centres) {
            println!("{:5.1} % around ({:7.3}, {:7.3})", 100.0 * share, centre[0], centre[1]);
        }
    }

    // Evaluate the model on the rows. The mixture has two unit variances.
    let mut risks = Risks::default();
    risks.add(&Predictor::new(&model), &rows, &[]);
    let mse = risks.evaluation(&model).mse;
    println!("mean squared distance to the nearest centre: {mse:.3}");
    assert!((mse - 2.0).abs() < 0.1);
    Ok(())
}
