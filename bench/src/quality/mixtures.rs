//! Mixtures of real tables from a sketch, compared with EM on rows.
//!
//! EM on rows is the same library on a table whose rows are all retained, the best of three starts
//! by Lloyd's algorithm, as in scikit-learn. Figures are nats per row relative to EM on all rows;
//! negative values are better.

use crate::{for_each_seed, median, npy};
use nysketch::predictor::Detail;
use nysketch::*;
use nysketch_core::kmeans::{Effort, Loss, WeightedPoints};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// A table.
struct Set {
    file: &'static str,
    /// Columns of the file to use.
    columns: Range<usize>,
    /// Maximum number of rows to learn from.
    rows: usize,
}

/// Number of columns above which matrices are learned for k = 5 only, to keep EM on all rows short.
const WIDE: usize = 50;

const SETS: [Set; 8] = [
    Set { file: "mnist_spectral", columns: 0..10, rows: 60_000 },
    Set { file: "esc50_mfcc20", columns: 0..20, rows: 60_000 },
    Set { file: "flights_3m", columns: 0..9, rows: 60_000 },
    Set { file: "shuttle", columns: 0..9, rows: 60_000 },
    Set { file: "covtype", columns: 0..54, rows: 30_000 },
    Set { file: "mnist_pca50", columns: 0..50, rows: 30_000 },
    Set { file: "cifar10_resnet18_pca50", columns: 0..50, rows: 30_000 },
    // The means of its coefficients, after the number of the track.
    Set { file: "fma2000_mfcc", columns: 1..21, rows: 60_000 },
];

const FEW: usize = 2_000;
/// Number of starts of EM on rows, and the effort of each.
const STARTS: u64 = 3;
const LLOYD: Effort = Effort::new(1, 30);
/// Maximum excess of the median and of the worst seed over EM on all rows, with diagonals and with
/// matrices.
const LIMITS: [(f64, f64); 2] = [(0.03, 0.15), (0.10, 0.40)];
/// Maximum excess of the median over EM on as many rows as there are retained rows.
const LIMIT_BEHIND_ROWS: f64 = 0.03;
/// Rounding error of a likelihood, in nats, for intervals of zero width: if all rows are retained.
const ROUNDING: f64 = 1e-6;

/// Standardised rows in random order.
struct Data {
    d: usize,
    fitted: Table,
    held_out: Vec<f64>,
}

impl Data {
    /// Reads a table: three quarters of the rows to learn from and the rest held out, each limited
    /// to the number in the set.
    fn read(folder: &Path, set: &Set) -> Option<Self> {
        let (width, values) = npy::read(&folder.join(format!("{}.npy", set.file)))?;
        let mut order: Vec<&[f64]> =
            values.chunks_exact(width).map(|x| &x[set.columns.clone()]).collect();
        order.shuffle(&mut ChaCha8Rng::seed_from_u64(0));
        let fitted = set.rows.min(order.len() * 3 / 4);
        let held_out = set.rows.min(order.len() - fitted);
        let (d, n) = (set.columns.len(), fitted as f64);
        let mean =
            |of: &dyn Fn(&[f64]) -> f64| order[..fitted].iter().map(|x| of(x)).sum::<f64>() / n;
        let means: Vec<f64> = (0..d).map(|j| mean(&|x| x[j])).collect();
        let deviation = |j: usize| mean(&|x| (x[j] - means[j]).powi(2)).sqrt();
        let scale: Vec<f64> =
            (0..d).map(deviation).map(|s| if s > 0.0 { s } else { 1.0 }).collect();
        let standard =
            |x: &&[f64]| -> Vec<f64> { (0..d).map(|j| (x[j] - means[j]) / scale[j]).collect() };
        let rows = |of: &[&[f64]]| of.iter().flat_map(standard).collect::<Vec<f64>>();
        let table = Table::unnamed(d, rows(&order[..fitted])).expect("whole rows");
        Some(Data { d, fitted: table, held_out: rows(&order[fitted..fitted + held_out]) })
    }

    fn rows(&self) -> usize {
        self.fitted.len()
    }

    /// Returns `n` uniform rows, different ones for each seed if there are enough.
    fn some(&self, n: usize, seed: u64) -> Table {
        let rows = self.fitted.values().chunks_exact(self.d).cycle();
        let some = rows.skip(seed as usize * n % self.rows()).take(n.min(self.rows()));
        Table::unnamed(self.d, some.flatten().copied().collect()).expect("whole rows")
    }
}

fn sketch(table: &Table, params: PlanParams) -> Sketch {
    let plan = Arc::new(plan_for(table, params).expect("a plan").plan);
    Sketch::of(&plan, table, SketchParams::default(), &()).expect("a sketch")
}

/// Rows to run EM on: a sketch in which every row is retained.
struct Rows {
    table: Table,
    sketch: Sketch,
}

impl Rows {
    fn new(table: Table) -> Self {
        let collect = Collect { kernel: false, cells: true, moments: true };
        let params = PlanParams::default().collect(collect).sample_rows(SampleRows::All);
        Rows { sketch: sketch(&table, params.witnesses(table.len())), table }
    }

    /// Returns the mixture that EM finds from one start, and the likelihood of the rows.
    fn em(&self, d: usize, params: &FitParams, start: u64) -> (f64, Model) {
        let points = WeightedPoints::of_rows(d, self.table.values());
        let rng = &mut ChaCha8Rng::seed_from_u64(start);
        let centres = points.cluster(params.k, Loss::Squared, LLOYD, rng);
        let found = model(&self.sketch, &params.clone().init(centres));
        (found.report.likelihood.map_or(f64::NEG_INFINITY, |l| l.mean), found)
    }
}

/// The data from which the models of one seed are learned.
struct Sources {
    seed: u64,
    ours: Sketch,
    without_witnesses: Sketch,
    as_many_rows: Rows,
    few_rows: Rows,
}

impl Sources {
    fn new(data: &Data, seed: u64) -> Self {
        let params = || PlanParams::default().seed(seed);
        let ours = sketch(&data.fitted, params());
        let few = |n| Rows::new(data.some(n, seed));
        Sources {
            seed,
            without_witnesses: sketch(&data.fitted, params().witnesses(0)),
            as_many_rows: few(witnesses(&ours)),
            few_rows: few(FEW),
            ours,
        }
    }
}

fn witnesses(sketch: &Sketch) -> usize {
    sketch.plan().witness_rows().map_or(0, Points::len)
}

/// Mean log-likelihoods of a model.
#[derive(Clone, Copy)]
struct Score {
    fitted: f64,
    held_out: f64,
}

impl Score {
    fn of(model: &Model, data: &Data) -> Self {
        let mean = |rows: &[f64]| {
            let said = Predictor::new(model).predict(rows, Detail::Density).log_density;
            said.iter().sum::<f64>() / said.len() as f64
        };
        Score { fitted: mean(data.fitted.values()), held_out: mean(&data.held_out) }
    }

    fn behind(self, best: Score) -> Score {
        Score { fitted: best.fitted - self.fitted, held_out: best.held_out - self.held_out }
    }
}

fn model(sketch: &Sketch, params: &FitParams) -> Model {
    fit(sketch, params).expect("a model")
}

fn best(found: impl IntoIterator<Item = (f64, Model)>) -> Model {
    found.into_iter().max_by(|a, b| a.0.total_cmp(&b.0)).expect("at least one start").1
}

/// Results of one seed, in nats relative to EM on all rows.
struct Trial {
    ours: Score,
    without_witnesses: Option<Score>,
    as_many_rows: Score,
    few_rows: Score,
    seconds: f64,
    /// Whether the interval contains the likelihood of the fitted rows.
    covered: bool,
}

impl Trial {
    fn new(data: &Data, sources: &Sources, params: &FitParams, reference: Score) -> Self {
        let score = |model: &Model| Score::of(model, data).behind(reference);
        let seed = sources.seed;
        let em = |rows: &Rows| {
            let start = |start| rows.em(data.d, params, STARTS * seed + start);
            score(&best((0..STARTS).map(start)))
        };
        let params = params.clone().seed(seed);
        let ours = model(&sources.ours, &params);
        let scored = score(&ours);
        let likelihood = reference.fitted - scored.fitted;
        let without = || score(&model(&sources.without_witnesses, &params));
        Trial {
            ours: scored,
            without_witnesses: (params.covariance == Some(CovarianceKind::Diag)).then(without),
            as_many_rows: em(&sources.as_many_rows),
            few_rows: em(&sources.few_rows),
            seconds: ours.report.seconds,
            covered: (ours.report.likelihood)
                .is_some_and(|l| l.low - ROUNDING <= likelihood && likelihood <= l.high + ROUNDING),
        }
    }
}

/// Prints a line for each table and mixture whose name contains `only`.
pub fn lines(folder: &Path, floor: f64, seeds: u64, only: &str) {
    let diag = [5, 10, 20, 50].map(|k| (CovarianceKind::Diag, k));
    let full = [5, 10, 20].map(|k| (CovarianceKind::Full, k));
    println!("\nMixtures, variances at least {floor} of the column's\n\n{HEAD}");
    let mut covered = Vec::new();
    for set in &SETS {
        let wide = set.columns.len() >= WIDE;
        let wanted = |&(kind, k): &(CovarianceKind, usize)| {
            format!("mixture {} {kind} k={k}", set.file).contains(only)
                && !(wide && kind == CovarianceKind::Full && k > 5)
        };
        let kinds: Vec<_> = diag.into_iter().chain(full).filter(wanted).collect();
        if kinds.is_empty() {
            continue;
        }
        let Some(data) = Data::read(folder, set) else {
            println!("| {} | missing |", set.file);
            continue;
        };
        let all = Rows::new(data.some(data.rows(), 0));
        let sources = for_each_seed(seeds, |seed| Sources::new(&data, seed));
        for (kind, k) in kinds {
            let params = FitParams::new(Task::Gmm, k).covariance(kind).min_variance(floor);
            let starts = for_each_seed(STARTS, |start| all.em(data.d, &params, start));
            let reference = Score::of(&best(starts), &data);
            let trial = |seed| Trial::new(&data, &sources[seed as usize], &params, reference);
            let trials = for_each_seed(seeds, trial);
            covered.extend(trials.iter().map(|t| t.covered));
            println!(
                "{}",
                line(set, &data, &params, witnesses(&sources[0].ours), reference, &trials)
            );
        }
    }
    let held = covered.iter().filter(|c| **c).count();
    println!("\n{held} of {} intervals hold the likelihood of the fitted rows.", covered.len());
}

/// Pairs are for fitted and held-out rows.
const HEAD: &str = "\
| set | d | covariance | k | numbers | witnesses | carried | EM on all rows | sketch: median | worst | as many rows | \
2,000 rows | no witnesses | seconds | covered |
|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|";

fn line(
    set: &Set,
    data: &Data,
    params: &FitParams,
    witnesses: usize,
    reference: Score,
    trials: &[Trial],
) -> String {
    let kind = params.covariance.expect("a kind was asked for");
    let numbers = kind.parameters(params.k, data.d);
    let carried = 10 * numbers <= witnesses;
    let over = |of: &dyn Fn(&Trial) -> Option<Score>, together: &dyn Fn(Vec<f64>) -> f64| {
        let scores: Option<Vec<Score>> = trials.iter().map(of).collect();
        scores.map(|scores| Score {
            fitted: together(scores.iter().map(|s| s.fitted).collect()),
            held_out: together(scores.iter().map(|s| s.held_out).collect()),
        })
    };
    let most = |values: Vec<f64>| values.into_iter().fold(f64::NEG_INFINITY, f64::max);
    let ours = over(&|t| Some(t.ours), &median);
    let worst = over(&|t| Some(t.ours), &most);
    let rows = over(&|t| Some(t.as_many_rows), &median);
    let limits = LIMITS[usize::from(kind.is_matrix())];
    let behind_rows = rows.map_or(f64::INFINITY, |s| s.fitted + LIMIT_BEHIND_ROWS);
    let (limit, limit_worst) = match carried {
        true => (limits.0.min(behind_rows), limits.1),
        false => (behind_rows, f64::INFINITY),
    };
    let nats = |score: Option<Score>, limit: f64| match score {
        Some(Score { fitted, held_out }) => {
            let mark = if fitted <= limit { "" } else { " (missed)" };
            // Columns that are constant in a few rows have zero variance there.
            let show = |x: f64| if x < 1e3 { format!("{x:+.3}") } else { "> 1000".to_string() };
            format!("{}, {}{mark}", show(fitted), show(held_out))
        }
        None => "–".to_string(),
    };
    let cells = [
        set.file.to_string(),
        data.d.to_string(),
        kind.to_string(),
        params.k.to_string(),
        numbers.to_string(),
        witnesses.to_string(),
        if carried { "yes" } else { "no" }.to_string(),
        format!("{:.3}, {:.3}", reference.fitted, reference.held_out),
        nats(ours, limit),
        nats(worst, limit_worst),
        nats(rows, f64::INFINITY),
        nats(over(&|t| Some(t.few_rows), &median), f64::INFINITY),
        nats(over(&|t| t.without_witnesses, &median), f64::INFINITY),
        format!("{:.2}", median(trials.iter().map(|t| t.seconds).collect())),
        format!("{}/{}", trials.iter().filter(|t| t.covered).count(), trials.len()),
    ];
    format!("| {} |", cells.join(" | "))
}
