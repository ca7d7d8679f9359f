//! Sketches of the paper's data sets, with Fourier features and at uniform landmarks, and the
//! measures of quality of their models.

#[path = "quality/npy.rs"]
mod npy;

use nysketch::decoder::cells::Cells;
use nysketch::{
    Collect, Mixture, PlanParams, Report, SampleRows, Sampling, Sketch, SketchParams, Table, Task,
    plan_for,
};
use nysketch_core::kmeans::{Effort, Loss, WeightedPoints, nearest};
use nysketch_learn::atom::Atom;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Number of clusters of every data set.
pub const K: usize = 10;

/// The size and variance of a sketch, and the model learned from it.
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    pub name: &'static str,
    pub file: Option<&'static str>,
    pub task: Task,
    pub m: usize,
    pub sigma2: f64,
}

impl Setting {
    /// Returns the ratio of a risk to that of the reference, or the difference in nats for
    /// mixtures.
    pub fn relative(&self, risk: f64, base: f64) -> f64 {
        if self.task == Task::Gmm { risk - base } else { risk / base }
    }
}

/// The arguments of the command line.
pub struct Arguments {
    /// The folder of the real data sets.
    pub real: Option<PathBuf>,
    pub trials: u64,
    /// Selects the settings whose names contain this.
    pub only: String,
}

impl Arguments {
    /// Reads `--real DATA`, `--trials N` and `--only WORDS`.
    pub fn read() -> Self {
        Arguments {
            real: after("--real").map(PathBuf::from),
            trials: after("--trials").and_then(|t| t.parse().ok()).unwrap_or(5),
            only: after("--only").unwrap_or_default(),
        }
    }
}

/// Returns the argument after a name.
fn after(name: &str) -> Option<String> {
    std::env::args().skip_while(|argument| argument != name).nth(1)
}

/// Rows of a data set.
pub struct Rows {
    pub dims: usize,
    pub values: Vec<f64>,
}

/// Returns the rows of a trial; synthetic rows are drawn again for each trial.
pub fn rows_of(setting: &Setting, real: Option<&Path>, trial: u64) -> Option<Rows> {
    match setting.file {
        None => {
            let count = if setting.task == Task::Gmm { 10_000 } else { 20_000 };
            let values = Mixture::new(10, K, 2.0, 1000 + trial).ok()?.rows(0, count).values;
            Some(Rows { dims: 10, values })
        }
        Some(file) => npy::read(&real?.join(file)).map(|(dims, values)| Rows { dims, values }),
    }
}

/// Returns the mean squared distance, or the mean negative log-likelihood, of all rows.
pub fn risk(task: Task, rows: &Rows, atoms: &[Atom]) -> f64 {
    if task == Task::Gmm {
        return -Cells::of_rows(rows.dims, &rows.values).likelihood(atoms);
    }
    let centres: Vec<Vec<f64>> = atoms.iter().map(|a| a.mean.clone()).collect();
    let all = rows.values.chunks_exact(rows.dims);
    let n = all.len() as f64;
    all.map(|x| nearest(x, &centres).1).sum::<f64>() / n
}

/// Returns the risk of Lloyd's algorithm or EM on all rows.
pub fn reference(task: Task, rows: &Rows, rng: &mut ChaCha8Rng) -> f64 {
    let effort = Effort::new(5, 100);
    let atoms = match task {
        Task::Gmm => {
            Cells::of_rows(rows.dims, &rows.values).mixture(K, effort, rng, &mut Report::default())
        }
        _ => {
            let centres = WeightedPoints::of_rows(rows.dims, &rows.values).cluster(
                K,
                Loss::Squared,
                effort,
                rng,
            );
            centres.into_iter().map(|c| Atom::dirac(1.0, c)).collect()
        }
    };
    risk(task, rows, &atoms)
}

/// Returns the sketch of a trial.
pub fn sketch(setting: &Setting, rows: &Rows, fourier: bool, seed: u64) -> Option<Sketch> {
    let table = Table::unnamed(rows.dims, rows.values.clone()).ok()?;
    let params = if fourier {
        PlanParams::default().fourier(setting.m / 2)
    } else {
        PlanParams::default().landmarks(setting.m).sampling(Sampling::Uniform)
    };
    let collect = Collect { kernel: true, cells: false, moments: true };
    let params = params.bandwidths([setting.sigma2]).collect(collect).seed(seed);
    let params = params.sample_rows(SampleRows::Count(10_000));
    let plan = Arc::new(plan_for(&table, params).ok()?.0);
    Sketch::of(&plan, &table, SketchParams::default(), &()).ok()
}

/// A trial of a setting.
pub struct Prepared {
    pub rows: Rows,
    /// The risk of the reference on all rows.
    pub base: f64,
    /// The sketches with Fourier features and at landmarks.
    pub sketches: [Sketch; 2],
}

impl Prepared {
    fn new(setting: &Setting, arguments: &Arguments, trial: u64) -> Option<Self> {
        let rows = rows_of(setting, arguments.real.as_deref(), trial)?;
        let base = reference(setting.task, &rows, &mut ChaCha8Rng::seed_from_u64(trial));
        let sketches =
            [sketch(setting, &rows, true, trial)?, sketch(setting, &rows, false, trial)?];
        Some(Prepared { rows, base, sketches })
    }
}

/// Returns the trials of a setting whose rows are available.
pub fn prepared(setting: &Setting, arguments: &Arguments) -> Vec<Prepared> {
    (0..arguments.trials).map_while(|trial| Prepared::new(setting, arguments, trial)).collect()
}

/// Converts atoms to the coordinates of the rows.
pub fn widened(sketch: &Sketch, atoms: &[Atom]) -> Vec<Atom> {
    let frame = &sketch.plan().frame;
    let widened = atoms.iter().map(|a| {
        let variance = a.variance().iter().zip(&frame.scale).map(|(v, s)| v * s * s).collect();
        Atom::diagonal(a.weight, frame.widen_coordinates(&a.mean), variance)
    });
    widened.collect()
}

/// Returns the median.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}
