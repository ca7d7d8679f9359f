//! Two samples: false alarms, power and estimated changes of the test.

use crate::rows::{
    Change, DRAWS, LEVEL, Rng, Row, clusters, correlated, discrete, heavy, median, sketch, skewed,
    trials,
};
use nysketch::drift::{Comparison, Drift, DriftParams};
use nysketch::{Kernel, Plan, PlanParams, RowSource, Sampling, Table, plan_for};
use nysketch_core::numeric::linalg;
use nysketch_core::numeric::linalg::Matrix;
use nysketch_core::numeric::random::{below, normal};
use rand::SeedableRng;
use std::sync::Arc;

/// The rows from which the plan is made.
#[derive(Clone, Copy)]
enum From {
    First,
    Second,
    Neither,
}

struct Setting {
    name: &'static str,
    row: Row,
    rows: [usize; 2],
    landmarks: usize,
    sampling: Sampling,
    from: From,
}

fn table(row: Row, rows: usize, change: &dyn Fn(&mut Vec<f64>, &mut Rng), rng: &mut Rng) -> Table {
    let mut values = Vec::new();
    for _ in 0..rows {
        let mut x = row(rng);
        change(&mut x, rng);
        values.extend(x);
    }
    Table::unnamed(values.len() / rows, values).expect("whole rows")
}

/// The two tables of a trial, their plan, and the result of the test.
struct Trial {
    a: Table,
    b: Table,
    plan: Arc<Plan>,
    drift: Drift,
}

fn trial(s: &Setting, change: &dyn Fn(&mut Vec<f64>, &mut Rng), seed: u64) -> Trial {
    let rng = &mut Rng::seed_from_u64(seed);
    let a = table(s.row, s.rows[0], &|_, _| {}, rng);
    let b = table(s.row, s.rows[1], change, rng);
    let other = table(s.row, s.rows[0], &|_, _| {}, rng);
    let params = PlanParams::default().landmarks(s.landmarks).sampling(s.sampling).seed(seed);
    let from = match s.from {
        From::First => &a,
        From::Second => &b,
        From::Neither => &other,
    };
    let plan = Arc::new(plan_for(from, params).expect("a plan").0);
    let params = DriftParams::default().draws(DRAWS).seed(seed);
    let comparison = Comparison::new(&plan).expect("a comparison");
    let drift = comparison.of(&sketch(&plan, &a), &sketch(&plan, &b), &params).expect("a drift");
    Trial { a, b, plan, drift }
}

/// Returns the p-value of the permutation test of the MMD on raw rows at one bandwidth.
fn raw_p_value(a: &Table, b: &Table, sigma2: f64, seed: u64) -> f64 {
    let d = a.columns().len();
    let rows: Vec<&[f64]> = a.values().chunks(d).chain(b.values().chunks(d)).collect();
    let n = rows.len();
    let kernel = Kernel::Gaussian.at(sigma2);
    let gram = Matrix::from_fn(n, n, |i, j| kernel.value(rows[i], rows[j]));
    let mut side: Vec<f64> = (0..n)
        .map(|i| if i < a.len() { 1.0 / a.len() as f64 } else { -1.0 / b.len() as f64 })
        .collect();
    let rng = &mut Rng::seed_from_u64(seed);
    let mut sides = vec![side.clone()];
    for _ in 0..DRAWS {
        for i in (1..n).rev() {
            side.swap(i, below(i + 1, rng));
        }
        sides.push(side.clone());
    }
    let products = gram.times_each(&sides);
    let found: Vec<f64> = sides.iter().zip(&products).map(|(s, p)| linalg::dot(s, p)).collect();
    let above = found.iter().filter(|value| **value >= found[0]).count();
    above as f64 / (DRAWS + 1) as f64
}

fn setting(
    name: &'static str,
    row: Row,
    rows: [usize; 2],
    landmarks: usize,
    sampling: Sampling,
    from: From,
) -> Setting {
    Setting { name, row, rows, landmarks, sampling, from }
}

/// Prints the rates of false alarms on samples of one distribution.
pub fn levels(count: u64, of: &str) {
    use Sampling::{Dsquared, Leverage, Uniform};
    let settings = [
        setting("5 clusters", clusters, [2000, 2000], 50, Dsquared, From::First),
        setting("5 clusters", clusters, [2000, 2000], 50, Uniform, From::First),
        setting("5 clusters", clusters, [2000, 2000], 50, Dsquared, From::Neither),
        setting("5 clusters", clusters, [2000, 500], 50, Dsquared, From::Second),
        setting("5 clusters", clusters, [10000, 1000], 200, Leverage, From::First),
        setting("heavy tails", heavy, [5000, 1000], 100, Dsquared, From::First),
        setting("heavy tails", heavy, [1000, 1000], 50, Dsquared, From::Neither),
        setting("correlated columns", correlated, [3000, 3000], 50, Dsquared, From::First),
        setting("discrete columns", discrete, [2000, 2000], 30, Dsquared, From::First),
        setting("skewed, 20 columns", skewed, [4000, 2000], 100, Dsquared, From::First),
        setting("5 clusters, defaults", clusters, [5000, 5000], 400, Dsquared, From::First),
        setting("correlated, defaults", correlated, [5000, 5000], 400, Dsquared, From::First),
        setting("skewed, defaults", skewed, [5000, 5000], 400, Dsquared, From::First),
        setting("heavy tails, defaults", heavy, [5000, 5000], 400, Dsquared, From::First),
        setting("few rows", clusters, [200, 100], 20, Dsquared, From::First),
        setting("many landmarks", clusters, [1000, 1000], 100, Uniform, From::First),
    ];
    println!(
        "False alarms at {LEVEL} on samples of one distribution, {count} trials, and the estimated \
         share"
    );
    println!("of moved rows (median), with the high end of its interval:\n");
    println!("| rows | n_A, n_B | landmarks | from | false alarms | moved | at most |");
    println!("|---|---|---|---|---|---|---|");
    for s in settings.iter().filter(|s| s.name.contains(of)) {
        let found = trials(count, |seed| trial(s, &|_, _| {}, seed).drift);
        let alarms = found.iter().filter(|d| d.p_value.expect("a test") <= LEVEL).count();
        let moved = found.iter().filter_map(|d| d.moved);
        let from = match s.from {
            From::First => "A",
            From::Second => "B",
            From::Neither => "other rows",
        };
        println!(
            "| {} | {}, {} | {} {} | {from} | {:.1} % | {:.1} % | {:.1} % |",
            s.name,
            s.rows[0],
            s.rows[1],
            s.landmarks,
            s.sampling.name(),
            100.0 * alarms as f64 / count as f64,
            100.0 * median(moved.clone().map(|m| m.share)),
            100.0 * median(moved.map(|m| m.high))
        );
    }
}

/// Prints the rates at which changes are found, compared with a permutation test on the rows.
pub fn power(count: u64, of: &str, with_rows: bool) {
    println!(
        "\nChanges found at {LEVEL}, 400 rows each, 40 landmarks from A, {count} trials, next to a"
    );
    println!("permutation test of the MMD on the raw rows, at the middle bandwidth of the plan:\n");
    println!("| rows | change | from the sketches | from the rows |\n|---|---|---|---|");
    let changes: [(&str, Row, &str, Change); 6] = [
        ("5 clusters", clusters, "all rows moved by 0.3 in one column", |x, _| x[0] += 0.3),
        ("5 clusters", clusters, "10 % of the rows moved by 3 in one column", |x, rng| {
            if below(10, rng) == 0 {
                x[1] += 3.0;
            }
        }),
        ("5 clusters", clusters, "one column 1.3 times as wide", |x, _| x[2] *= 1.3),
        ("5 clusters", clusters, "5 % of the rows elsewhere", |x, rng| {
            if below(20, rng) == 0 {
                x.iter_mut().for_each(|v| *v = 8.0 + normal(rng));
            }
        }),
        ("heavy tails", heavy, "all rows moved by 0.25 in one column", |x, _| x[0] += 0.25),
        ("correlated columns", correlated, "all rows moved by 0.15 in every column", |x, _| {
            x.iter_mut().for_each(|v| *v += 0.15);
        }),
    ];
    for (name, row, what, change) in changes.into_iter().filter(|c| c.0.contains(of)) {
        let s = setting(name, row, [400, 400], 40, Sampling::Dsquared, From::First);
        let found = trials(count, |seed| {
            let Trial { a, b, plan, drift } = trial(&s, &change, seed);
            let middle = plan.bandwidths[plan.bandwidths.len() / 2];
            let raw = with_rows.then(|| raw_p_value(&a, &b, middle, seed) <= LEVEL);
            (drift.p_value.expect("a test") <= LEVEL, raw)
        });
        let hits = 100.0 * found.iter().filter(|f| f.0).count() as f64 / count as f64;
        let of_rows = found.iter().filter(|f| f.1 == Some(true)).count() as f64;
        let of_rows =
            if with_rows { format!("{:.0} %", 100.0 * of_rows / count as f64) } else { "-".into() };
        println!("| {name} | {what} | {hits:.0} % | {of_rows} |");
    }
}
