//! k-means of real tables, with the plan's defaults.

use crate::{Outcome, mse, npy, print_line};
use nysketch::{
    FitParams, PlanParams, Scale, Sketch, SketchParams, Table, Task, fit, model, plan_for,
};
use nysketch_core::kmeans::{Effort, Loss, WeightedPoints};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// A real table in `.npy` format.
struct Real {
    file: &'static str,
    k: usize,
    scale: Scale,
    /// Best known mean squared error: the best of several Lloyd runs, from the data's manifest, to
    /// four digits; `None` for the best of 3 runs here.
    reference: Option<f64>,
    limit: f64,
}

const REAL: [Real; 7] = [
    Real {
        file: "mnist_spectral",
        k: 10,
        scale: Scale::None,
        reference: Some(0.0950),
        limit: 1.002,
    },
    Real {
        file: "cifar10_resnet18_pca50",
        k: 10,
        scale: Scale::None,
        reference: Some(210.6),
        limit: 1.01,
    },
    Real { file: "mnist_pca50", k: 10, scale: Scale::None, reference: Some(30.02), limit: 1.01 },
    Real { file: "covtype", k: 10, scale: Scale::Standard, reference: Some(41.13), limit: 1.01 },
    Real { file: "flights_3m", k: 10, scale: Scale::Standard, reference: Some(5.032), limit: 1.02 },
    Real { file: "shuttle", k: 10, scale: Scale::Standard, reference: Some(2.169), limit: 1.03 },
    Real { file: "covtype", k: 50, scale: Scale::Standard, reference: None, limit: 1.03 },
];

/// Prints a line for each table of a folder of `.npy` files whose name contains `only`.
pub fn lines(folder: &Path, seeds: u64, only: &str) {
    for set in &REAL {
        let name = format!("{}, k={}, plan defaults", set.file, set.k);
        if !name.contains(only) {
            continue;
        }
        let Some((d, values)) = npy::read(&folder.join(format!("{}.npy", set.file))) else {
            println!("| {} | – | missing | | | | | |", set.file);
            continue;
        };
        let table = Table::unnamed(d, values).expect("whole rows");
        let mut results = Vec::new();
        let mut reference = set.reference;
        for seed in 0..seeds {
            let threads = std::thread::available_parallelism().map_or(1, |n| n.get());
            let params = PlanParams::default().scale(set.scale).seed(seed).threads(threads);
            let plan = Arc::new(plan_for(&table, params).expect("a plan").0);
            let sketch = SketchParams::default().threads(threads);
            let sketch = Sketch::of(&plan, &table, sketch, &()).expect("a sketch");
            let start = Instant::now();
            let params = FitParams::new(Task::Kmeans, set.k).seed(seed);
            let model = fit(&sketch, &params).expect("a model");
            let seconds = start.elapsed().as_secs_f64();
            let frame = &plan.frame;
            let scaled: Vec<f64> =
                table.values().chunks_exact(d).flat_map(|x| frame.coordinates(x)).collect();
            let model::Shape::Centres { centres, .. } = &model.shape else { continue };
            let centres: Vec<Vec<f64>> = centres.iter().map(|c| frame.coordinates(c)).collect();
            let best = *reference
                .get_or_insert_with(|| mse(&scaled, d, &lloyd(&scaled, d, set.k, 3, seed)));
            let landmarks: Vec<f64> =
                plan.features.points().data().iter().map(|x| f64::from(*x)).collect();
            // 2,000 rows spread over the table.
            let step = (scaled.len() / d / 2000).max(1);
            let few: Vec<f64> = scaled
                .chunks_exact(d)
                .skip(seed as usize)
                .step_by(step)
                .flatten()
                .copied()
                .collect();
            results.push(Outcome {
                fit: mse(&scaled, d, &centres) / best,
                landmarks: mse(&scaled, d, &lloyd(&landmarks, d, set.k, 10, seed)) / best,
                subsample: mse(&scaled, d, &lloyd(&few, d, set.k, 10, seed)) / best,
                seconds,
            });
        }
        print_line(&name, "RSE", set.limit, &results);
    }
}

/// Returns the centres of the best of some Lloyd runs.
fn lloyd(rows: &[f64], d: usize, k: usize, restarts: usize, seed: u64) -> Vec<Vec<f64>> {
    let rng = &mut ChaCha8Rng::seed_from_u64(seed);
    WeightedPoints::of_rows(d, rows).cluster(k, Loss::Squared, Effort::new(restarts, 100), rng)
}
