//! Days that differ from each other: whether one is unusual among others, and watching them in
//! order.

use crate::rows::{LEVEL, Rng, clusters, median, share, sketch, trials};
use nysketch::drift::{Comparison, Days, Watched};
use nysketch::{Plan, PlanParams, Table, plan_for};
use nysketch_core::numeric::random::normal;
use rand::SeedableRng;
use std::sync::Arc;

/// Rows of a day, days of a stream, and the day at which a stream changes.
const ROWS: usize = 200;
const STREAM: usize = 100;
const CHANGE: usize = 60;

/// Returns the rows of a day, shifted by the effect of the day in the first two columns.
fn day(effect: [f64; 2], rng: &mut Rng) -> Table {
    let mut values = Vec::new();
    for _ in 0..ROWS {
        let mut x = clusters(rng);
        x[0] += effect[0];
        x[1] += effect[1];
        values.extend(x);
    }
    Table::unnamed(5, values).expect("whole rows")
}

fn plan(seed: u64, rng: &mut Rng) -> Arc<Plan> {
    let rows: Vec<f64> = (0..2000).flat_map(|_| clusters(rng)).collect();
    let table = Table::unnamed(5, rows).expect("whole rows");
    let params = PlanParams::default().landmarks(50).seed(seed);
    Arc::new(plan_for(&table, params).expect("a plan").0)
}

/// Returns effects of days with standard deviation 0.3 and correlation ρ between neighbours.
fn effects(count: usize, rho: f64, rng: &mut Rng) -> Vec<[f64; 2]> {
    let mut effects: Vec<[f64; 2]> = Vec::new();
    for t in 0..count {
        let fresh = [0.3 * normal(rng), 0.3 * normal(rng)];
        let scale = if t == 0 { 1.0 } else { (1.0 - rho * rho).sqrt() };
        let before = effects.last().copied().unwrap_or([0.0; 2]);
        effects.push([0, 1].map(|k| rho * before[k] + scale * fresh[k]));
    }
    effects
}

/// Prints the rates at which a day is called unusual among 30 others.
pub fn baselines(count: u64) {
    println!(
        "\nDays called unusual at {LEVEL} among 30 others that differ by 0.3 in two columns, \
         {ROWS} rows each, {count} trials,"
    );
    println!("next to the test of equality with all of them:\n");
    println!("| today | unusual | not equal |\n|---|---|---|");
    for (name, shift) in [
        ("a day like the others", 0.0),
        ("moved by 1 in one column", 1.0),
        ("moved by 2 in one column", 2.0),
    ] {
        let count = if shift == 0.0 { count } else { count / 5 };
        let found = trials(count, |seed| {
            let rng = &mut Rng::seed_from_u64(seed);
            let plan = plan(seed, rng);
            let comparison = Comparison::new(&plan).expect("a comparison");
            let mut days = Days::new(&comparison);
            let mut all = nysketch::Sketch::empty(plan.clone());
            let mut effects = effects(31, 0.0, rng);
            let mut today = effects.pop().expect("a day");
            today[0] += shift;
            for effect in effects {
                let sketch = sketch(&plan, &day(effect, rng));
                days.push("", &sketch).expect("a day");
                all.merge(&sketch).expect("of one plan");
            }
            let today = sketch(&plan, &day(today, rng));
            let unusual = days.compare("", &today, LEVEL).expect("a comparison").unusual;
            let params =
                nysketch::drift::DriftParams::default().draws(crate::rows::DRAWS).seed(seed);
            let equal = comparison.of(&all, &today, &params).expect("a drift").drift;
            (unusual, equal == Some(true))
        });
        let unusual = found.iter().filter(|f| f.0).count() as f64 / count as f64;
        let different = found.iter().filter(|f| f.1).count() as f64 / count as f64;
        println!("| {name} | {:.1} % | {:.1} % |", 100.0 * unusual, 100.0 * different);
    }
}

/// Prints the rates and delays of alarms when streams are watched.
pub fn streams(count: u64) {
    println!(
        "\nStreams of {STREAM} days, {ROWS} rows each, watched at {LEVEL}, {count} streams:\n"
    );
    println!(
        "| days | change on day {} | ever an alarm | days until it | error of its start |",
        CHANGE + 1
    );
    println!("|---|---|---|---|---|");
    for (name, rho, shift) in [
        ("exchangeable", 0.0, 0.0),
        ("exchangeable", 0.0, 1.0),
        ("exchangeable", 0.0, 2.0),
        ("neighbours alike, correlation 0.5", 0.5, 0.0),
        ("neighbours alike, correlation 0.9", 0.9, 0.0),
    ] {
        let count = if shift == 0.0 && rho == 0.0 { count } else { count / 5 };
        let found = trials(count, |seed| stream(rho, shift, seed));
        let alarms = found.iter().filter(|w| w.alarm.is_some()).count();
        let late = median(found.iter().filter_map(|w| after_change(&w.alarm)));
        let off = median(found.iter().filter_map(|w| Some(after_change(&w.began)?.abs())));
        let alarms = 100.0 * alarms as f64 / count as f64;
        if shift > 0.0 {
            println!("| {name} | {shift} in one column | {alarms:.1} % | {late:.0} | {off:.0} |");
        } else {
            println!("| {name} | none | {alarms:.1} % | - | - |");
        }
    }
    let reported =
        share(count / 5, |seed| stream(0.5, 0.0, seed).autocorrelation_p_value <= Some(0.05));
    println!(
        "\nSimilar neighbours are reported for {:.0} % of the streams with a correlation of 0.5.",
        100.0 * reported
    );
}

/// Returns the number of days from the change to a day.
fn after_change(day: &Option<String>) -> Option<f64> {
    Some(day.as_ref()?.parse::<f64>().ok()? - CHANGE as f64)
}

fn stream(rho: f64, shift: f64, seed: u64) -> Watched {
    let rng = &mut Rng::seed_from_u64(seed);
    let plan = plan(seed, rng);
    let comparison = Comparison::new(&plan).expect("a comparison");
    let mut days = Days::new(&comparison);
    for (t, mut effect) in effects(STREAM, rho, rng).into_iter().enumerate() {
        if t >= CHANGE {
            effect[0] += shift;
        }
        days.push(t.to_string(), &sketch(&plan, &day(effect, rng))).expect("a day");
    }
    days.watch(None, LEVEL, seed).expect("a verdict")
}
