//! `cargo run --release -p nysketch-bench --bin quality`: the quality of each decoder on synthetic
//! data (appendix E.1 of the paper), compared with baselines. Prints a Markdown table.
//!
//! RSE is the mean squared error divided by that of the best of 10 Lloyd runs on all rows; gap is
//! the negative log-likelihood minus that of EM on all rows started at the truth, in nats. Medians
//! over seeds. The baselines learn, with 10 starts, from the landmarks alone and from 2,000 rows.
//!
//! `--real FOLDER` uses real tables in `.npy` format (bench/convert.py), with the plan's defaults:
//! k-means, then mixtures, with variances of at least `--floor` (1e-4) of the column's. `--seeds N`
//! sets the number of seeds (10; 3 for mixtures of real tables). Any other word selects lines; the
//! lines of `alone` are for kernel sums without cells and retained rows.

mod alone;
mod centres;
mod mixtures;
mod npy;

use nysketch::decoder::cells::Cells;
use nysketch::metrics::Risks;
use nysketch::{
    Collect, CovarianceKind, Decoder, FitParams, KnownCovariance, Mixture, PlanParams, Predictor,
    Report, Sampling, Sketch, SketchParams, Table, Task, fit, plan_for, synthetic,
};
use nysketch_core::kmeans::{Effort, Loss, WeightedPoints};
use nysketch_learn::atom::Atom;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// One line of the table.
struct Setting {
    name: &'static str,
    task: Task,
    k: usize,
    d: usize,
    s: f64,
    n: usize,
    /// Weights ∝ 1/i² instead of equal ones.
    unbalanced: bool,
    m: usize,
    sigma2: Option<f64>,
    fourier: bool,
    sampling: Sampling,
    cells: bool,
    decoder: Decoder,
    known: Option<f64>,
    /// Largest acceptable value.
    limit: f64,
}

const BASE: Setting = Setting {
    name: "",
    task: Task::Kmeans,
    k: 10,
    d: 10,
    s: 2.0,
    n: 100_000,
    unbalanced: false,
    m: 440,
    sigma2: Some(15.0),
    fourier: false,
    sampling: Sampling::Uniform,
    cells: false,
    decoder: Decoder::Auto,
    known: None,
    limit: 1.0,
};

const MIXTURE: Setting = Setting { task: Task::Gmm, n: 10_000, sigma2: Some(24.0), ..BASE };

/// Returns a setting of k-means from cells.
fn cells(name: &'static str, s: f64, m: usize, limit: f64) -> Setting {
    let sampling = Sampling::Dsquared;
    Setting { name, s, m, cells: true, limit, sampling, sigma2: None, ..BASE }
}

fn settings() -> Vec<Setting> {
    vec![
        Setting {
            name: "k-means, clompr, m=220",
            m: 220,
            decoder: Decoder::Clompr,
            limit: 1.03,
            ..BASE
        },
        Setting { name: "k-means, clompr, m=440", decoder: Decoder::Clompr, limit: 1.01, ..BASE },
        Setting { name: "k-means, kernel sums, m=220", m: 220, limit: 1.005, ..BASE },
        Setting { name: "k-means, kernel sums, m=440", limit: 1.002, ..BASE },
        Setting {
            name: "k-means, kernel sums, σ²=81, m=440",
            sigma2: Some(81.0),
            limit: 1.005,
            ..BASE
        },
        Setting { name: "k-means, kernel sums, s=1, m=440", s: 1.0, limit: 1.01, ..BASE },
        cells("k-means, cells, s=2, m=50", 2.0, 50, 1.005),
        cells("k-means, cells, s=2, m=100", 2.0, 100, 1.002),
        cells("k-means, cells, s=2, m=400", 2.0, 400, 1.001),
        cells("k-means, cells, s=1, m=50", 1.0, 50, 1.02),
        cells("k-means, cells, s=1, m=100", 1.0, 100, 1.01),
        cells("k-means, cells, s=1, m=400", 1.0, 400, 1.003),
        Setting {
            name: "k-means, weights ∝ 1/i², defaults",
            n: 20_000,
            unbalanced: true,
            m: 400,
            cells: true,
            sigma2: None,
            sampling: Sampling::Dsquared,
            limit: 1.02,
            ..BASE
        },
        Setting { name: "mixture, kernel sums, m/p=1", m: 200, limit: 0.02, ..MIXTURE },
        Setting { name: "mixture, kernel sums, m/p=2", m: 400, limit: 0.012, ..MIXTURE },
        Setting { name: "mixture, kernel sums, m/p=5", m: 1000, limit: 0.004, ..MIXTURE },
        Setting { name: "mixture, fourier, m/p=1", m: 200, fourier: true, limit: 0.03, ..MIXTURE },
        Setting { name: "mixture, fourier, m/p=2", m: 400, fourier: true, limit: 0.025, ..MIXTURE },
        Setting {
            name: "mixture, fourier, m/p=5",
            m: 1000,
            fourier: true,
            limit: 0.012,
            ..MIXTURE
        },
        Setting {
            name: "mixture, known covariance, m/p=1",
            m: 200,
            known: Some(1.0),
            limit: 0.002,
            ..MIXTURE
        },
        Setting {
            name: "mixture, cells, s=2, m=100",
            n: 20_000,
            m: 100,
            cells: true,
            sigma2: None,
            sampling: Sampling::Dsquared,
            limit: 0.002,
            ..MIXTURE
        },
        Setting {
            name: "mixture, cells, s=1, m=400",
            n: 20_000,
            s: 1.0,
            m: 400,
            cells: true,
            sigma2: None,
            sampling: Sampling::Dsquared,
            limit: 0.02,
            ..MIXTURE
        },
        Setting {
            name: "mixture, cells, k=20 d=30, m=200",
            k: 20,
            d: 30,
            n: 20_000,
            m: 200,
            cells: true,
            sigma2: None,
            sampling: Sampling::Dsquared,
            limit: 0.005,
            ..MIXTURE
        },
    ]
}

/// Rows of a setting, and the mixture from which they were drawn.
struct Data {
    table: Table,
    truth: Vec<Atom>,
}

fn data(setting: &Setting, seed: u64) -> Data {
    let mixture =
        Mixture::new(setting.d, setting.k, setting.s, 1000 + seed).expect("valid setting");
    let weights: Vec<f64> = (1..=setting.k)
        .map(|i| if setting.unbalanced { 1.0 / (i * i) as f64 } else { 1.0 })
        .collect();
    let largest = weights.iter().fold(0.0f64, |a, b| a.max(*b));
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut values = Vec::new();
    let mut chunk = 0;
    while values.len() < setting.n * setting.d {
        let rows = mixture.rows(chunk, synthetic::CHUNK_ROWS);
        chunk += 1;
        for (row, label) in rows.values.chunks_exact(setting.d).zip(&rows.labels) {
            // Rejection turns equal weights into the required ones.
            if nysketch_core::numeric::random::unit(&mut rng) * largest <= weights[*label as usize]
            {
                values.extend_from_slice(row);
            }
        }
    }
    values.truncate(setting.n * setting.d);
    let total: f64 = weights.iter().sum();
    let truth = mixture.means.iter().zip(&weights);
    let truth = truth
        .map(|(mean, w)| Atom::diagonal(w / total, mean.clone(), vec![1.0; setting.d]))
        .collect();
    Data { table: Table::unnamed(setting.d, values).expect("whole rows"), truth }
}

fn mse(values: &[f64], d: usize, centres: &[Vec<f64>]) -> f64 {
    let n = (values.len() / d) as f64;
    values.chunks_exact(d).map(|x| nysketch_core::kmeans::nearest(x, centres).1).sum::<f64>() / n
}

/// Returns the risk of the best of 10 Lloyd runs on all rows.
fn lloyd(values: &[f64], d: usize, k: usize) -> f64 {
    let points = WeightedPoints::of_rows(d, values);
    let mut rng = ChaCha8Rng::seed_from_u64(99);
    let centres = points.cluster(k, Loss::Squared, Effort::new(10, 100), &mut rng);
    points.risk(&centres, Loss::Squared)
}

fn log_density(atoms: &[Atom], x: &[f64]) -> (f64, Vec<f64>) {
    let logs: Vec<f64> = atoms
        .iter()
        .map(|a| {
            let sum: f64 = (0..x.len())
                .map(|j| {
                    (std::f64::consts::TAU * a.variance()[j]).ln()
                        + (x[j] - a.mean[j]).powi(2) / a.variance()[j]
                })
                .sum();
            a.weight.max(1e-300).ln() - 0.5 * sum
        })
        .collect();
    let max = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let total: f64 = logs.iter().map(|l| (l - max).exp()).sum();
    (max + total.ln(), logs.iter().map(|l| (l - max).exp() / total).collect())
}

/// Sums of the rows of a component, weighted by their responsibilities.
#[derive(Clone)]
struct Sums {
    mass: f64,
    first: Vec<f64>,
    second: Vec<f64>,
}

/// Runs EM on all rows from given atoms and returns the negative log-likelihood. `known` keeps
/// variances fixed.
fn em(values: &[f64], d: usize, mut atoms: Vec<Atom>, known: bool) -> f64 {
    let n = (values.len() / d) as f64;
    let mut before = f64::INFINITY;
    for _ in 0..200 {
        let mut nll = 0.0;
        let empty = Sums { mass: 0.0, first: vec![0.0; d], second: vec![0.0; d] };
        let mut sums = vec![empty; atoms.len()];
        for x in values.chunks_exact(d) {
            let (log, r) = log_density(&atoms, x);
            nll -= log / n;
            for (s, r) in sums.iter_mut().zip(r) {
                s.mass += r;
                for j in 0..d {
                    s.first[j] += r * x[j];
                    s.second[j] += r * x[j] * x[j];
                }
            }
        }
        for (a, Sums { mass, first, second }) in atoms.iter_mut().zip(sums) {
            a.weight = mass / n;
            for j in 0..d {
                a.mean[j] = first[j] / mass;
                if !known {
                    a.variance_mut()[j] = (second[j] / mass - a.mean[j] * a.mean[j]).max(1e-6);
                }
            }
        }
        if before - nll < 1e-8 {
            return nll;
        }
        before = nll;
    }
    before
}

fn make_sketch(setting: &Setting, table: &Table, seed: u64) -> Sketch {
    let params = if setting.fourier {
        PlanParams::default().fourier(setting.m / 2)
    } else {
        PlanParams::default().landmarks(setting.m).sampling(setting.sampling)
    };
    let collect = Collect { kernel: true, cells: setting.cells, moments: true };
    let mut params = params.collect(collect).seed(seed);
    params.bandwidths = setting.sigma2.map(|s| vec![s]);
    let plan = Arc::new(plan_for(table, params).expect("a plan").0);
    Sketch::of(&plan, table, SketchParams::default(), &()).expect("a sketch")
}

/// The risks of a fit and of its baselines.
struct Outcome {
    fit: f64,
    landmarks: f64,
    subsample: f64,
    seconds: f64,
}

fn run_seed(setting: &Setting, seed: u64, references: &References) -> Outcome {
    let data = data(setting, seed);
    let reference = references.get(setting, seed, &data);
    let sketch = make_sketch(setting, &data.table, seed);
    let start = Instant::now();
    // The clusters are spherical, and EM on all rows has diagonal covariances.
    let free = setting.task == Task::Gmm && setting.known.is_none();
    let diagonal = free.then_some(CovarianceKind::Diag);
    let params = FitParams::new(setting.task, setting.k)
        .decoder(setting.decoder)
        .covariance(diagonal)
        .known_covariance(setting.known.map(KnownCovariance::Variance))
        .seed(seed);
    let model = fit(&sketch, &params).expect("a model");
    let seconds = start.elapsed().as_secs_f64();
    let mut risks = Risks::default();
    risks.add(&Predictor::new(&model), data.table.values(), &[]);
    let e = risks.evaluation(&model);
    let plan = sketch.plan();
    let landmarks: Vec<f64> = match plan.landmarks() {
        Some(points) => points.rows().flat_map(|z| plan.frame.widen(z)).collect(),
        None => Vec::new(),
    };
    let few = &data.table.values()[..2000.min(setting.n) * setting.d];
    Outcome {
        fit: relative(setting, e.nll.unwrap_or(e.mse), reference),
        landmarks: relative(setting, baseline(setting, &data, &landmarks), reference),
        subsample: relative(setting, baseline(setting, &data, few), reference),
        seconds,
    }
}

/// Returns a ratio for k-means and a difference in nats for mixtures.
fn relative(setting: &Setting, risk: f64, reference: f64) -> f64 {
    if setting.task == Task::Gmm { risk - reference } else { risk / reference }
}

/// Returns the risk on all rows of a model learned, with 10 starts, from a few rows.
fn baseline(setting: &Setting, data: &Data, rows: &[f64]) -> f64 {
    let (d, k) = (setting.d, setting.k);
    if rows.is_empty() {
        return f64::NAN;
    }
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    let effort = Effort::new(10, 100);
    if setting.task == Task::Gmm {
        let atoms = Cells::of_rows(d, rows).mixture(k, effort, &mut rng, &mut Report::default());
        return -Cells::of_rows(d, data.table.values()).likelihood(&atoms);
    }
    let points = WeightedPoints::of_rows(d, rows);
    mse(data.table.values(), d, &points.cluster(k, Loss::Squared, effort, &mut rng))
}

/// Risks of models of all rows, computed once for each data set and seed.
#[derive(Default)]
struct References(Mutex<HashMap<String, f64>>);

impl References {
    fn get(&self, setting: &Setting, seed: u64, data: &Data) -> f64 {
        let s = setting;
        let key = format!(
            "{:?} {:?} {} {} {} {} {} {seed}",
            s.task, s.known, s.k, s.d, s.s, s.n, s.unbalanced
        );
        let known = self.0.lock().expect("no thread panicked").get(&key).copied();
        known.unwrap_or_else(|| {
            let values = data.table.values();
            let risk = match s.task {
                Task::Gmm => em(values, s.d, data.truth.clone(), s.known.is_some()),
                _ => lloyd(values, s.d, s.k),
            };
            self.0.lock().expect("no thread panicked").insert(key, risk);
            risk
        })
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let half = values.len() / 2;
    if values.len() % 2 == 1 { values[half] } else { (values[half - 1] + values[half]) / 2.0 }
}

/// Returns the results of a function for the first seeds, computed on all cores.
fn for_each_seed<T: Send>(seeds: u64, work: impl Fn(u64) -> T + Sync) -> Vec<T> {
    let (next, results) = (AtomicU64::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, |n| n.get()) {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= seeds {
                        break;
                    }
                    let result = work(seed);
                    results.lock().expect("no thread panicked").push((seed, result));
                }
            });
        }
    });
    let mut results = results.into_inner().expect("no thread panicked");
    results.sort_by_key(|(seed, _)| *seed);
    results.into_iter().map(|(_, result)| result).collect()
}

fn main() {
    let mut args = std::env::args().skip(1);
    let (mut seeds, mut only, mut folder, mut floor) = (None, String::new(), None, 1e-4);
    while let Some(a) = args.next() {
        match a.as_str() {
            "--real" => folder = args.next().map(std::path::PathBuf::from),
            "--seeds" => seeds = args.next().and_then(|n| n.parse().ok()),
            "--floor" => floor = args.next().and_then(|x| x.parse().ok()).unwrap_or(floor),
            other => only = other.to_string(),
        }
    }
    if let (Some(folder), true) = (&folder, only.starts_with("alone")) {
        return alone::lines(folder, seeds.unwrap_or(5), &only);
    }
    println!(
        "| setting | figure | median | worst | limit | landmarks alone | 2,000 rows | seconds |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    if let Some(folder) = folder {
        centres::lines(&folder, seeds.unwrap_or(10), &only);
        return mixtures::lines(&folder, floor, seeds.unwrap_or(3), &only);
    }
    let references = References::default();
    for setting in settings().iter().filter(|s| s.name.contains(&only)) {
        let seeds = seeds.unwrap_or(10);
        let results = for_each_seed(seeds, |seed| run_seed(setting, seed, &references));
        let figure = if setting.task == Task::Gmm { "gap" } else { "RSE" };
        print_line(setting.name, figure, setting.limit, &results);
    }
}

fn print_line(name: &str, figure: &str, limit: f64, results: &[Outcome]) {
    let value = median(results.iter().map(|r| r.fit).collect());
    let worst = results.iter().map(|r| r.fit).fold(f64::NEG_INFINITY, f64::max);
    let mark = if value <= limit { "" } else { " (missed)" };
    println!(
        "| {name} | {figure} | {value:.4}{mark} | {worst:.4} | {limit} | {} | {} | {:.2} |",
        number(median(results.iter().map(|r| r.landmarks).collect())),
        number(median(results.iter().map(|r| r.subsample).collect())),
        median(results.iter().map(|r| r.seconds).collect()),
    );
}

/// Returns a number as text, or a dash for NaN.
fn number(x: f64) -> String {
    if x.is_nan() { "–".to_string() } else { format!("{x:.4}") }
}
