//! Mixtures of real tables from a sketch, compared with EM on rows.
//!
//! EM on rows is the same library on a table whose rows are all retained, the best of three starts
//! by Lloyd's algorithm, as in scikit-learn. Figures are nats per row relative to EM on all rows;
//! negative values are better.

use crate::{for_each_seed, median, npy};
use nysketch::predictor::Detail;
use nysketch::{
    Collect, CovarianceKind, FitParams, Model, PlanParams, Points, Predictor, SampleRows, Sketch,
    SketchParams, Table, Task, fit, plan_for,
};
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
        let (fitted, held_out) = (&order[..fitted], &order[fitted..fitted + held_out]);
        let (mut means, mut scales) = (Vec::new(), Vec::new());
        for j in 0..d {
            let mean = fitted.iter().map(|x| x[j]).sum::<f64>() / n;
            let variance = fitted.iter().map(|x| (x[j] - mean).powi(2)).sum::<f64>() / n;
            means.push(mean);
            scales.push(if variance > 0.0 { variance.sqrt() } else { 1.0 });
        }
        let [fitted, held_out] = [fitted, held_out].map(|rows| {
            let rows = rows.iter();
            rows.flat_map(|x| (0..d).map(|j| (x[j] - means[j]) / scales[j]).collect::<Vec<f64>>())
                .collect::<Vec<f64>>()
        });
        Some(Data { d, fitted: Table::unnamed(d, fitted).expect("whole rows"), held_out })
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
    let plan = Arc::new(plan_for(table, params).expect("a plan").0);
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
        let params = PlanParams::default().seed(seed);
        let ours = sketch(&data.fitted, params.clone());
        Sources {
            seed,
            without_witnesses: sketch(&data.fitted, params.witnesses(0)),
            as_many_rows: Rows::new(data.some(witnesses(&ours), seed)),
            few_rows: Rows::new(data.some(FEW, seed)),
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
        let [fitted, held_out] = [data.fitted.values(), &data.held_out].map(|rows| {
            let densities = Predictor::new(model).predict(rows, Detail::Density).log_density;
            densities.iter().sum::<f64>() / densities.len() as f64
        });
        Score { fitted, held_out }
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
        let seed = sources.seed;
        let [as_many_rows, few_rows] = [&sources.as_many_rows, &sources.few_rows].map(|rows| {
            let starts = (0..STARTS).map(|start| rows.em(data.d, params, STARTS * seed + start));
            Score::of(&best(starts), data).behind(reference)
        });
        let params = params.clone().seed(seed);
        let ours = model(&sources.ours, &params);
        let score = Score::of(&ours, data).behind(reference);
        let likelihood = reference.fitted - score.fitted;
        let mut without_witnesses = None;
        if params.covariance == Some(CovarianceKind::Diag) {
            let model = model(&sources.without_witnesses, &params);
            without_witnesses = Some(Score::of(&model, data).behind(reference));
        }
        Trial {
            ours: score,
            without_witnesses,
            as_many_rows,
            few_rows,
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
        let mut kinds: Vec<_> = diag.into_iter().chain(full).collect();
        kinds.retain(|(kind, k)| {
            format!("mixture {} {kind} k={k}", set.file).contains(only)
                && !(wide && *kind == CovarianceKind::Full && *k > 5)
        });
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
            let trials = for_each_seed(seeds, |seed| {
                Trial::new(&data, &sources[seed as usize], &params, reference)
            });
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
| set | d | covariance | k | numbers | witnesses | carried | EM on all rows | sketch: median \
| worst | as many rows | 2,000 rows | no witnesses | seconds | covered |
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
    let ours = combined(trials.iter().map(|t| Some(t.ours)), median);
    let worst = combined(trials.iter().map(|t| Some(t.ours)), max);
    let rows = combined(trials.iter().map(|t| Some(t.as_many_rows)), median);
    let few = combined(trials.iter().map(|t| Some(t.few_rows)), median);
    let without = combined(trials.iter().map(|t| t.without_witnesses), median);
    let limits = LIMITS[usize::from(kind.is_matrix())];
    let behind_rows = rows.map_or(f64::INFINITY, |s| s.fitted + LIMIT_BEHIND_ROWS);
    let (limit, limit_worst) =
        if carried { (limits.0.min(behind_rows), limits.1) } else { (behind_rows, f64::INFINITY) };
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
        nats(few, f64::INFINITY),
        nats(without, f64::INFINITY),
        format!("{:.2}", median(trials.iter().map(|t| t.seconds).collect())),
        format!("{}/{}", trials.iter().filter(|t| t.covered).count(), trials.len()),
    ];
    format!("| {} |", cells.join(" | "))
}

/// Combines the scores of trials, if all have one.
fn combined(
    scores: impl Iterator<Item = Option<Score>>,
    combine: fn(Vec<f64>) -> f64,
) -> Option<Score> {
    let scores: Vec<Score> = scores.collect::<Option<_>>()?;
    Some(Score {
        fitted: combine(scores.iter().map(|s| s.fitted).collect()),
        held_out: combine(scores.iter().map(|s| s.held_out).collect()),
    })
}

fn max(values: Vec<f64>) -> f64 {
    values.into_iter().fold(f64::NEG_INFINITY, f64::max)
}

/// Returns a score as text, with a mark if it is beyond its limit.
fn nats(score: Option<Score>, limit: f64) -> String {
    let Some(Score { fitted, held_out }) = score else { return "–".to_string() };
    let mark = if fitted <= limit { "" } else { " (missed)" };
    format!("{}, {}{mark}", signed(fitted), signed(held_out))
}

/// Returns a number with its sign. Columns that are constant in a few rows have zero variance
/// there, and a very large loss.
fn signed(x: f64) -> String {
    if x < 1e3 { format!("{x:+.3}") } else { "> 1000".to_string() }
}
