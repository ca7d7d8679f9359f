//! `cargo run --release -p nysketch-bench --bin drift [--trials N]`: the test behind `nysketch diff`,
//! simulated: how often it raises a false alarm at 5 % on samples of one distribution, and how often it
//! finds a change, beside a permutation test of the maximum mean discrepancy on the raw rows. Prints
//! Markdown tables.

use nysketch::drift::{Comparison, DriftParams};
use nysketch::random::{below, normal, unit};
use nysketch::*;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use std::sync::Arc;

type Rng = ChaCha8Rng;
type Row = fn(&mut Rng) -> Vec<f64>;

const LEVEL: f64 = 0.05;
const DRAWS: usize = 199;

fn clusters(rng: &mut Rng) -> Vec<f64> {
    let c = below(5, rng) as f64;
    (0..5).map(|k| (c * (k as f64 + 1.0) * 1.7).sin() * 4.0 + normal(rng)).collect()
}

/// Student's t of two degrees of freedom: no variance.
fn heavy(rng: &mut Rng) -> Vec<f64> {
    let scale = 1.0 / (-(1.0 - unit(rng)).ln()).sqrt();
    (0..3).map(|_| scale * normal(rng)).collect()
}

/// Ten columns that carry nearly the same information.
fn correlated(rng: &mut Rng) -> Vec<f64> {
    let shared = normal(rng);
    (0..10).map(|_| shared + 0.2 * normal(rng)).collect()
}

/// Counts, a constant and a yes or no.
fn discrete(rng: &mut Rng) -> Vec<f64> {
    vec![(normal(rng) * 2.0).round(), 7.0, below(2, rng) as f64, (normal(rng).exp()).floor()]
}

fn skewed(rng: &mut Rng) -> Vec<f64> {
    (0..20).map(|_| normal(rng).exp()).collect()
}

/// Which rows the plan is made from.
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

fn sketch(plan: &Arc<Plan>, table: &Table) -> Sketch {
    Sketch::of(plan, table, SketchParams::default(), &()).expect("a sketch")
}

/// The two tables of a trial, their plan, and the p-value.
fn trial(
    s: &Setting,
    change: &dyn Fn(&mut Vec<f64>, &mut Rng),
    seed: u64,
) -> (Table, Table, Arc<Plan>, f64) {
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
    (a, b, plan, drift.p_value.expect("a test"))
}

/// p-value of the permutation test of the MMD on raw rows at one bandwidth.
fn raw_p_value(a: &Table, b: &Table, sigma2: f64, seed: u64) -> f64 {
    let d = a.columns().len();
    let rows: Vec<&[f64]> = a.values().chunks(d).chain(b.values().chunks(d)).collect();
    let n = rows.len();
    let kernel = Kernel::Gaussian.at(sigma2);
    let gram: Vec<f64> = (0..n * n).map(|i| kernel.value(rows[i / n], rows[i % n])).collect();
    let mut side: Vec<f64> = (0..n)
        .map(|i| if i < a.len() { 1.0 / a.len() as f64 } else { -1.0 / b.len() as f64 })
        .collect();
    let statistic = |side: &[f64]| -> f64 {
        (0..n).map(|i| side[i] * linalg::dot(&gram[i * n..(i + 1) * n], side)).sum()
    };
    let observed = statistic(&side);
    let rng = &mut Rng::seed_from_u64(seed);
    let mut above = 1;
    for _ in 0..DRAWS {
        for i in (1..n).rev() {
            side.swap(i, below(i + 1, rng));
        }
        above += usize::from(statistic(&side) >= observed);
    }
    above as f64 / (DRAWS + 1) as f64
}

/// Share of trials in which something happens, on all cores.
fn share(trials: u64, work: impl Fn(u64) -> bool + Sync) -> f64 {
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get() as u64);
    let work = &work;
    let hits: u64 = std::thread::scope(|scope| {
        let count = |t: u64| (t..trials).step_by(threads as usize).filter(|s| work(*s)).count();
        let handles: Vec<_> = (0..threads).map(|t| scope.spawn(move || count(t) as u64)).collect();
        handles.into_iter().map(|h| h.join().expect("no panic")).sum()
    });
    hits as f64 / trials as f64
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let trials = match &arguments[1..] {
        [flag, n] if flag == "--trials" => n.parse().expect("a number of trials"),
        _ => 1000,
    };
    use Sampling::{Dsquared, Leverage, Uniform};
    let setting = |name, row, rows, landmarks, sampling, from| Setting {
        name,
        row,
        rows,
        landmarks,
        sampling,
        from,
    };
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
        setting("few rows", clusters, [200, 100], 20, Dsquared, From::First),
        setting("many landmarks", clusters, [1000, 1000], 100, Uniform, From::First),
    ];
    println!("False alarms at {LEVEL} on samples of one distribution, {trials} trials:\n");
    println!("| rows | n_A, n_B | landmarks | from | false alarms |\n|---|---|---|---|---|");
    for s in &settings {
        let alarms = share(trials, |seed| trial(s, &|_, _| {}, seed).3 <= LEVEL);
        let from = match s.from {
            From::First => "A",
            From::Second => "B",
            From::Neither => "other rows",
        };
        println!(
            "| {} | {}, {} | {} {} | {from} | {:.1} % |",
            s.name,
            s.rows[0],
            s.rows[1],
            s.landmarks,
            s.sampling.name(),
            100.0 * alarms
        );
    }
    let trials = trials / 5;
    println!(
        "\nChanges found at {LEVEL}, 400 rows each, 40 landmarks from A, {trials} trials, beside a"
    );
    println!("permutation test of the MMD on the raw rows, at the middle bandwidth of the plan:\n");
    println!("| rows | change | from the sketches | from the rows |\n|---|---|---|---|");
    type Change = fn(&mut Vec<f64>, &mut Rng);
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
    for (name, row, what, change) in changes {
        let s = setting(name, row, [400, 400], 40, Dsquared, From::First);
        let found = share(trials, |seed| trial(&s, &change, seed).3 <= LEVEL);
        let raw = share(trials, |seed| {
            let (a, b, plan, _) = trial(&s, &change, seed);
            raw_p_value(&a, &b, plan.bandwidths[plan.bandwidths.len() / 2], seed) <= LEVEL
        });
        println!("| {name} | {what} | {:.0} % | {:.0} % |", 100.0 * found, 100.0 * raw);
    }
}
