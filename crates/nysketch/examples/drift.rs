//! Two days compared by their sketches: did the data change, and where?
//!
//! ```console
//! $ cargo run --release -p nysketch --example drift
//! ```

use nysketch::drift::{Comparison, Drift, DriftParams};
use nysketch::{Mixture, PlanParams, Result, Sketch, SketchParams, Table, plan_for};
use std::sync::Arc;

fn show(name: &str, drift: &Drift) {
    let p = drift.p_value.expect("these sketches keep cells");
    println!("{name}: p = {p:.3}{}", if p < 0.01 { ", the data changed" } else { "" });
    // The column that changed most, in the units of the table.
    let column = &drift.columns[0];
    let [before, after] = column.means;
    println!(
        "  mean of {}: {before:.3}, then {after:.3} ({:+.1} standard errors)",
        column.column, column.z
    );
}

/// Runs the example.
pub fn main() -> Result<()> {
    let mixture = Mixture::new(3, 4, 2.0, 3)?;
    let columns = ["price", "size", "age"].map(String::from).to_vec();
    let monday = Table::new(columns.clone(), mixture.rows(0, 5000).values)?;
    let tuesday = Table::new(columns.clone(), mixture.rows(1, 5000).values)?;
    // On Wednesday every size is 0.2 too large.
    let mut rows = mixture.rows(2, 5000).values;
    rows.iter_mut().skip(1).step_by(3).for_each(|size| *size += 0.2);
    let wednesday = Table::new(columns, rows)?;

    // One plan, made on the first day; days are then compared without their rows.
    let plan = Arc::new(plan_for(&monday, PlanParams::default().landmarks(100))?.0);
    let monday = Sketch::of(&plan, &monday, SketchParams::default(), &())?;
    let tuesday = Sketch::of(&plan, &tuesday, SketchParams::default(), &())?;
    let wednesday = Sketch::of(&plan, &wednesday, SketchParams::default(), &())?;

    let comparison = Comparison::new(&plan)?;
    let params = DriftParams::default().seed(1);
    let same = comparison.of(&monday, &tuesday, &params)?;
    let other = comparison.of(&monday, &wednesday, &params)?;
    show("Monday and Tuesday", &same);
    show("Monday and Wednesday", &other);
    assert!(same.p_value > Some(0.01) && other.p_value < Some(0.01));
    assert_eq!(other.columns[0].column, "size");
    Ok(())
}
