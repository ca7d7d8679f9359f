//! Parts of a table, sketched separately and added up: the result has the bytes of the sketch of
//! the whole.
//!
//! ```console
//! $ cargo run --release -p nysketch --example parts
//! ```

use nysketch::{Mixture, Plan, PlanParams, Result, Sketch, SketchParams, Table, plan_for};
use std::sync::Arc;

const COLUMNS: usize = 3;

fn sketch(plan: &Arc<Plan>, rows: &[f64]) -> Result<Sketch> {
    let table = Table::unnamed(COLUMNS, rows.to_vec())?;
    Sketch::of(plan, &table, SketchParams::default(), &())
}

/// Runs the example.
pub fn main() -> Result<()> {
    let rows = Mixture::new(COLUMNS, 5, 2.0, 1)?.rows(0, 9000).values;

    // All parts must be measured in the same way, so there is one plan. Here it is made from all
    // rows; the first day or a sample would do. Its file, `plan.to_bytes()`, is sent to the other
    // machines.
    let all = Table::unnamed(COLUMNS, rows.clone())?;
    let plan = Arc::new(plan_for(&all, PlanParams::default().landmarks(100))?.plan);
    let whole = sketch(&plan, &rows)?;

    // Three parts of different sizes, each on its own thread, as if they were on three machines.
    let (first, rest) = rows.split_at(1000 * COLUMNS);
    let (second, third) = rest.split_at(5000 * COLUMNS);
    let parts: Vec<Sketch> = std::thread::scope(|scope| {
        let threads: Vec<_> = [first, second, third]
            .into_iter()
            .map(|rows| scope.spawn(|| sketch(&plan, rows)))
            .collect();
        threads.into_iter().map(|t| t.join().expect("no panic")).collect::<Result<_>>()
    })?;

    // Merge in any order, starting from the neutral element.
    let mut sum = Sketch::empty(plan.clone());
    for part in parts.iter().rev() {
        sum.merge(part)?;
    }
    assert_eq!(sum.to_bytes(), whole.to_bytes());
    println!(
        "{} + {} + {} rows: the bytes of the whole",
        parts[0].rows(),
        parts[1].rows(),
        parts[2].rows()
    );

    // Subtracting rows removes every trace of them.
    sum.subtract(&parts[1])?;
    let mut without = parts[0].clone();
    without.merge(&parts[2])?;
    assert_eq!(sum.to_bytes(), without.to_bytes());
    println!("less {} rows: the bytes of the other two", parts[1].rows());

    // Subtracting them again would leave a negative number of rows.
    println!("once more: {}", sum.subtract(&parts[1]).expect_err("they are gone"));
    Ok(())
}
