//! Models of real tables from kernel sums only, without cells and retained rows. The baseline is
//! the same algorithm on as many uniform rows as there are landmarks.

use crate::{median, npy};
use nysketch::decoder::cells::Cells;
use nysketch::metrics::Risks;
use nysketch::{
    Collect, FitParams, PlanParams, Predictor, Report, Scale, Shape, Sketch, SketchParams, Table,
    Task, fit, plan_for,
};
use nysketch_core::kmeans::{Effort, Loss, WeightedPoints};
use nysketch_core::numeric::random::below;
use nysketch_learn::atom::Atom;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// Maximum number of rows of a table, and number of clusters.
const ROWS: usize = 20_000;
const K: usize = 10;

const SETS: [&str; 7] = [
    "mnist_spectral",
    "cifar10_resnet18_pca50",
    "mnist_pca50",
    "esc50_mfcc20",
    "shuttle",
    "covtype",
    "flights_3m",
];

/// Prints a line for each table, task and number of landmarks whose name contains `only`.
pub fn lines(folder: &Path, seeds: u64, only: &str) {
    println!(
        "| table | task | landmarks | kernel sums alone | worst | as many rows | 2,000 rows \
         | seconds |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    for set in SETS {
        let Some((d, values)) = npy::read(&folder.join(format!("{set}.npy"))) else { continue };
        let rng = &mut ChaCha8Rng::seed_from_u64(7);
        let values = some(&standard(d, values), d, ROWS, rng);
        for task in [Task::Kmeans, Task::Gmm] {
            let mut best = None;
            for m in [100, 200, 400, 800] {
                if !format!("alone {set} {} {m}", task.name()).contains(only) {
                    continue;
                }
                let best = *best.get_or_insert_with(|| baseline(task, d, &values, &values, 3));
                let found: Vec<[f64; 4]> = crate::for_each_seed(seeds, |seed| {
                    let rng = &mut ChaCha8Rng::seed_from_u64(seed);
                    let (ours, seconds) = ours(task, d, &values, m, seed);
                    let [as_many, more] = [m, 2000]
                        .map(|n| baseline(task, d, &some(&values, d, n, rng), &values, 10));
                    let [ours, as_many, more] = [ours, as_many, more]
                        .map(|risk| if task == Task::Gmm { risk - best } else { risk / best });
                    [ours, as_many, more, seconds]
                });
                let [fitted, as_many, more, seconds] =
                    [0, 1, 2, 3].map(|i| median(found.iter().map(|f| f[i]).collect()));
                let worst = found.iter().map(|f| f[0]).fold(f64::NEG_INFINITY, f64::max);
                println!(
                    "| {set} | {} | {m} | {fitted:.3} | {worst:.3} | {as_many:.3} | {more:.3} \
                     | {seconds:.2} |",
                    task.name(),
                );
            }
        }
    }
}

/// Scales columns to unit variance.
fn standard(d: usize, mut values: Vec<f64>) -> Vec<f64> {
    let n = (values.len() / d) as f64;
    for k in 0..d {
        let column = values.iter().skip(k).step_by(d);
        let mean = column.clone().sum::<f64>() / n;
        let deviation = (column.map(|x| (x - mean).powi(2)).sum::<f64>() / n).sqrt();
        let by = if deviation > 0.0 { 1.0 / deviation } else { 1.0 };
        values.iter_mut().skip(k).step_by(d).for_each(|x| *x = (*x - mean) * by);
    }
    values
}

/// Returns some rows, drawn without replacement.
fn some(values: &[f64], d: usize, count: usize, rng: &mut ChaCha8Rng) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len() / d).collect();
    let count = count.min(order.len());
    for i in 0..count {
        let other = i + below(order.len() - i, rng);
        order.swap(i, other);
    }
    order[..count].iter().flat_map(|i| values[i * d..(i + 1) * d].iter().copied()).collect()
}

/// Returns the risk on all rows of a model learned from some rows.
fn baseline(task: Task, d: usize, rows: &[f64], all: &[f64], starts: usize) -> f64 {
    let rng = &mut ChaCha8Rng::seed_from_u64(5);
    let effort = Effort::new(starts, 200);
    if task == Task::Gmm {
        let atoms = Cells::of_rows(d, rows).mixture(K, effort, rng, &mut Report::default());
        return -Cells::of_rows(d, all).likelihood(&lifted(d, all, atoms));
    }
    let centres = WeightedPoints::of_rows(d, rows).cluster(K, Loss::Squared, effort, rng);
    crate::mse(all, d, &centres)
}

/// Raises variances to at least 1e-4 of the variances of all rows, as `fit` does: a column that is
/// constant in a few rows may vary in others.
fn lifted(d: usize, all: &[f64], mut atoms: Vec<Atom>) -> Vec<Atom> {
    let n = (all.len() / d) as f64;
    for k in 0..d {
        let column = all.iter().skip(k).step_by(d);
        let mean = column.clone().sum::<f64>() / n;
        let min = (1e-4 * column.map(|x| (x - mean).powi(2)).sum::<f64>() / n).max(1e-12);
        atoms.iter_mut().for_each(|a| a.variance_mut()[k] = a.variance_mut()[k].max(min));
    }
    atoms
}

/// Returns the risk on all rows of a model learned from kernel sums at landmarks, and the seconds
/// of the fit.
fn ours(task: Task, d: usize, values: &[f64], m: usize, seed: u64) -> (f64, f64) {
    let table = Table::unnamed(d, values.to_vec()).expect("whole rows");
    let collect = Collect { kernel: true, cells: false, moments: true };
    let params = PlanParams::default().landmarks(m).scale(Scale::None).collect(collect).seed(seed);
    let plan = Arc::new(plan_for(&table, params).expect("a plan").0);
    let sketch = Sketch::of(&plan, &table, SketchParams::default(), &()).expect("a sketch");
    let start = Instant::now();
    let model = fit(&sketch, &FitParams::new(task, K).seed(seed)).expect("a model");
    let seconds = start.elapsed().as_secs_f64();
    if let Shape::Mixture { weights, means, covariances, .. } = &model.shape {
        let each = weights.iter().zip(means.iter().zip(covariances));
        let atoms: Vec<Atom> =
            each.map(|(w, (mean, c))| Atom::new(*w, mean.clone(), c.clone())).collect();
        return (-Cells::of_rows(d, values).likelihood(&atoms), seconds);
    }
    let mut risks = Risks::default();
    risks.add(&Predictor::new(&model), values, &[]);
    (risks.evaluation(&model).mse, seconds)
}
