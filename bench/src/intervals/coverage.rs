//! Coverage of the confidence intervals, by simulation.

use crate::each;
use nysketch::{
    Context, CovarianceKind, FitParams, FoldRule, PlanParams, Shape, Sketch, SketchParams, Table,
    Task, plan_for,
};
use nysketch_core::numeric::random::{draw, normal, unit};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use std::sync::Arc;

type Rng = ChaCha8Rng;

const DIMS: usize = 3;
/// Number of rows on which k-means finds the optimum of the population.
const POPULATION: usize = 10_000_000;
/// Share of a user's rows in the preferred cluster of the user, if rows are grouped by user.
const LOYAL: f64 = 0.7;
const ROWS_OF_A_USER: usize = 20;

/// Clusters of a population.
struct Clusters {
    weights: Vec<f64>,
    means: Vec<[f64; DIMS]>,
}

impl Clusters {
    /// Creates four clusters of different sizes and unit variance, at distances of about `apart`.
    fn new(apart: f64) -> Self {
        let corners = [[0.0; DIMS], [1.0, 0.0, 0.0], [0.0, 1.0, 0.5], [0.5, 0.0, 1.0]];
        Clusters {
            weights: vec![0.4, 0.3, 0.2, 0.1],
            means: corners.map(|c| c.map(|x| apart * x)).to_vec(),
        }
    }

    fn row(&self, cluster: usize, rng: &mut Rng) -> [f64; DIMS] {
        self.means[cluster].map(|m| m + normal(rng))
    }

    fn cluster(&self, rng: &mut Rng) -> usize {
        draw(&self.weights, rng).expect("positive weights")
    }

    /// Returns rows of users, each of whom prefers one cluster; all together they follow the
    /// distribution of the population.
    fn table(&self, rows: usize, users: bool, rng: &mut Rng) -> Table {
        let (mut values, mut keys) = (Vec::with_capacity(rows * DIMS), Vec::new());
        let mut preferred = 0;
        for i in 0..rows {
            if i % ROWS_OF_A_USER == 0 {
                preferred = self.cluster(rng);
            }
            let loyal = users && unit(rng) < LOYAL;
            let cluster = if loyal { preferred } else { self.cluster(rng) };
            values.extend(self.row(cluster, rng));
            keys.push(Some((i / ROWS_OF_A_USER).to_string()));
        }
        let table = Table::unnamed(DIMS, values).expect("whole rows");
        table.with_keys(keys).expect("one key per row")
    }

    /// Returns the centres and shares of k-means on the population: Lloyd's algorithm on ten
    /// million rows, from the means, until no coordinate moves by a hundredth of the resolution of
    /// a trial.
    fn optimum(&self) -> Truth {
        let rng = &mut Rng::seed_from_u64(u64::MAX);
        let rows: Vec<[f32; DIMS]> = (0..POPULATION)
            .map(|_| {
                let cluster = self.cluster(rng);
                self.row(cluster, rng).map(|x| x as f32)
            })
            .collect();
        let mut truth = Truth { weights: self.weights.clone(), centres: self.means.clone() };
        let k = truth.centres.len();
        for _ in 0..1000 {
            let centres: Vec<[f32; DIMS]> =
                truth.centres.iter().map(|c| c.map(|x| x as f32)).collect();
            let pieces = rows.chunks(100_000);
            let sums = each(pieces.len() as u64, |piece| {
                let mut sums = vec![[0.0f64; DIMS + 1]; k];
                for row in &rows[piece as usize * 100_000..][..100_000] {
                    let sum = &mut sums[nearest(row, &centres)];
                    sum[DIMS] += 1.0;
                    (0..DIMS).for_each(|j| sum[j] += f64::from(row[j]));
                }
                sums
            });
            let mut moved = 0.0f64;
            for c in 0..k {
                let rows = sums.iter().map(|s| s[c][DIMS]).sum::<f64>();
                truth.weights[c] = rows / POPULATION as f64;
                for j in 0..DIMS {
                    let x = sums.iter().map(|s| s[c][j]).sum::<f64>() / rows;
                    moved = moved.max((x - truth.centres[c][j]).abs());
                    truth.centres[c][j] = x;
                }
            }
            if moved < 1e-5 {
                break;
            }
        }
        truth
    }
}

/// Returns the nearest centre of a row.
fn nearest(row: &[f32; DIMS], centres: &[[f32; DIMS]]) -> usize {
    let mut best = (0, f32::INFINITY);
    for (i, centre) in centres.iter().enumerate() {
        let d2: f32 = (0..DIMS).map(|j| (row[j] - centre[j]).powi(2)).sum();
        if d2 < best.1 {
            best = (i, d2);
        }
    }
    best.0
}

/// The true values that intervals should contain.
#[derive(Clone)]
struct Truth {
    weights: Vec<f64>,
    centres: Vec<[f64; DIMS]>,
}

/// One line of the table.
struct Setting {
    name: &'static str,
    task: Task,
    apart: f64,
    rows: usize,
    witnesses: usize,
    /// Whether rows are grouped by user, and whether folds are.
    users: bool,
    by_user: bool,
}

const BASE: Setting = Setting {
    name: "",
    task: Task::Kmeans,
    apart: 6.0,
    rows: 10_000,
    witnesses: 20_000,
    users: false,
    by_user: false,
};

/// Numbers of intervals that contain the truth and of all intervals, and the sum of their
/// half-widths.
#[derive(Default, Clone, Copy)]
struct Coverage {
    held: f64,
    count: f64,
    half_widths: f64,
}

impl Coverage {
    fn add(&mut self, other: Coverage) {
        self.held += other.held;
        self.count += other.count;
        self.half_widths += other.half_widths;
    }

    fn count(&mut self, [low, high]: [f64; 2], truth: f64) {
        let held = f64::from(u8::from(low <= truth && truth <= high));
        self.add(Coverage { held, count: 1.0, half_widths: 0.5 * (high - low) });
    }

    /// Returns the share that contains the truth, in per cent.
    fn percent(&self) -> f64 {
        100.0 * self.held / self.count
    }

    fn half_width(&self) -> f64 {
        self.half_widths / self.count
    }
}

/// The coverage for shares and for centres, and the number of clusters without an interval.
#[derive(Default, Clone, Copy)]
struct Held {
    shares: Coverage,
    centres: Coverage,
    unstable: f64,
}

impl Held {
    fn add(&mut self, other: &Held) {
        self.shares.add(other.shares);
        self.centres.add(other.centres);
        self.unstable += other.unstable;
    }
}

fn trial(s: &Setting, clusters: &Clusters, truth: &Truth, seed: u64) -> Held {
    let rng = &mut Rng::seed_from_u64(seed);
    let table = clusters.table(s.rows, s.users, rng);
    let plan = PlanParams::default().landmarks(60).witnesses(s.witnesses).seed(seed);
    let plan = Arc::new(plan_for(&table, plan).expect("a plan").0);
    let rule = if s.by_user { FoldRule::by_key(16, "user") } else { FoldRule::by_content(16) };
    let rule = rule.expect("a rule");
    let sketch = Sketch::of_folds(&plan, &rule, &table, SketchParams::default(), &());
    let sketch = sketch.expect("a sketch");
    let context = Context::new(&sketch);
    let k = clusters.means.len();
    let params = match s.task {
        Task::Gmm => FitParams::new(s.task, k).covariance(CovarianceKind::Diag).restarts(4),
        _ => FitParams::new(s.task, k),
    };
    let model = context.fit(&params).expect("a model");
    let model = context.with_intervals(model, &params, 0.95).expect("intervals");
    let (Shape::Centres { centres, .. } | Shape::Mixture { means: centres, .. }) = &model.shape
    else {
        unreachable!("a clustering or a mixture")
    };
    let intervals = model.intervals.as_ref().expect("intervals");
    let (mut held, mut centres_of) = (Held::default(), truth.centres.iter());
    let places: Vec<[f32; DIMS]> =
        centres.iter().map(|c| std::array::from_fn(|j| c[j] as f32)).collect();
    for weight in &truth.weights {
        let centre = centres_of.next().expect("one centre per share");
        let at = nearest(&centre.map(|x| x as f32), &places);
        let (Some(share), Some(columns)) = (intervals.weights[at], &intervals.centres[at]) else {
            held.unstable += 1.0;
            continue;
        };
        held.shares.count(share, *weight);
        columns.iter().zip(centre).for_each(|(i, x)| held.centres.count(*i, *x));
    }
    held
}

/// Prints a line for each setting whose name contains `only`.
pub fn print(trials: u64, only: &str) {
    let gmm = Setting { task: Task::Gmm, ..BASE };
    let settings = [
        Setting { name: "k-means, 6 σ apart", ..BASE },
        Setting { name: "k-means, 6 σ apart, 2,000 witnesses", witnesses: 2000, ..BASE },
        Setting { name: "k-means, 3 σ apart", apart: 3.0, ..BASE },
        Setting {
            name: "k-means, 3 σ apart, 2,000 witnesses",
            apart: 3.0,
            witnesses: 2000,
            ..BASE
        },
        Setting { name: "k-means, 2.5 σ apart", apart: 2.5, ..BASE },
        Setting { name: "gmm, 6 σ apart", ..gmm },
        Setting { name: "gmm, 3 σ apart", apart: 3.0, ..gmm },
        Setting { name: "gmm, 3 σ apart, 2,000 witnesses", apart: 3.0, witnesses: 2000, ..gmm },
        Setting { name: "k-means, users, folds by user", users: true, by_user: true, ..BASE },
        Setting { name: "k-means, users, folds by content", users: true, ..BASE },
    ];
    println!(
        "95 % intervals that hold the optimum of the population, {trials} trials of 16 folds:\n"
    );
    println!(
        "| rows | shares | ± | centres | ± | clusters called unstable |\n|---|---|---|---|---|---|"
    );
    for s in settings.iter().filter(|s| s.name.contains(only)) {
        let clusters = Clusters::new(s.apart);
        let truth = match s.task {
            Task::Gmm => {
                Truth { weights: clusters.weights.clone(), centres: clusters.means.clone() }
            }
            _ => clusters.optimum(),
        };
        let mut all = Held::default();
        each(trials, |seed| trial(s, &clusters, &truth, seed)).iter().for_each(|h| all.add(h));
        let unstable = 100.0 * all.unstable / (trials * 4) as f64;
        println!(
            "| {} | {:.1} % | {:.4} | {:.1} % | {:.3} | {unstable:.1} % |",
            s.name,
            all.shares.percent(),
            all.shares.half_width(),
            all.centres.percent(),
            all.centres.half_width()
        );
    }
}
