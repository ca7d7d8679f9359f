//! Cross-validation compared with risks on held-out rows.

use crate::npy;
use nysketch::metrics::Risks;
use nysketch::{
    Context, FitParams, FoldRule, PlanParams, Predictor, Scale, Sketch, SketchParams, Table, Task,
    plan_for,
};
use nysketch_core::rows::sample::mix;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

const KS: [usize; 3] = [2, 5, 10];

/// Prints a line for each table of a folder, task and k.
pub fn print(folder: &Path, only: &str) {
    println!(
        "Risks on folds held out in turn (16 folds of one half of the rows) and on the other \
         half:\n"
    );
    println!(
        "| table | task | k | cross-validated | models of 15 folds on the other half | error \
         | standard error | model of all folds on the other half | on its own | time |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
    for (name, scale) in [
        ("mnist_spectral", Scale::None),
        ("mnist_pca50", Scale::None),
        ("cifar10_resnet18_pca50", Scale::None),
        ("shuttle", Scale::Standard),
        ("covtype", Scale::Standard),
    ] {
        if !name.contains(only) {
            continue;
        }
        let Some((d, values)) = npy::read(&folder.join(format!("{name}.npy"))) else {
            println!("| {name} | missing | | | | | | | | |");
            continue;
        };
        let [fitted, other] = [0, 1].map(|half| {
            let rows = values.chunks_exact(d).enumerate();
            let rows = rows.filter(|(i, _)| mix(*i as u64) >> 63 == half).flat_map(|(_, row)| row);
            Table::unnamed(d, rows.copied().collect()).expect("whole rows")
        });
        let threads = std::thread::available_parallelism().map_or(1, |n| n.get());
        let params = PlanParams::default().scale(scale).threads(threads);
        let plan = Arc::new(plan_for(&fitted, params).expect("a plan").0);
        let rule = FoldRule::by_content(16).expect("a rule");
        let pass = SketchParams::default().threads(threads);
        let sketch = Sketch::of_folds(&plan, &rule, &fitted, pass, &()).expect("a sketch");
        let context = Context::new(&sketch);
        for task in [Task::Kmeans, Task::Gmm] {
            for k in KS {
                let params = FitParams::new(task, k).threads(threads).restarts(6);
                let params = if task == Task::Gmm { params } else { params.restarts(None) };
                let start = Instant::now();
                let found = context.cross_validate(&params, k, k).expect("risks").points[0];
                let seconds = start.elapsed().as_secs_f64();
                // Cross-validation estimates the risk of models of 15 folds, each of which may find
                // a different optimum.
                let refits: Vec<f64> = (0..16)
                    .map(|fold| risk(&Context::new(&sketch.without_fold(fold)), &params, &other))
                    .collect();
                let refitted = refits.iter().sum::<f64>() / 16.0;
                let min = refits.iter().fold(f64::INFINITY, |m, r| m.min(*r));
                let max = refits.iter().fold(f64::NEG_INFINITY, |m, r| m.max(*r));
                let error = match task {
                    Task::Gmm => format!("{:+.3} nats", found.risk - refitted),
                    _ => format!("{:+.2} %", 100.0 * (found.risk / refitted - 1.0)),
                };
                println!(
                    "| {name} | {task} | {k} | {:.4} | {refitted:.4} ({min:.4} to {max:.4}) \
                     | {error} | {:.4} | {:.4} | {:.4} | {seconds:.1} s |",
                    found.risk,
                    found.error,
                    risk(&context, &params, &other),
                    risk(&context, &params, &fitted),
                );
            }
        }
    }
}

/// Returns the risk of a model on rows that it was not learned from.
fn risk(context: &Context, params: &FitParams, rows: &Table) -> f64 {
    let model = context.fit(params).expect("a model");
    let mut risks = Risks::default();
    risks.add(&Predictor::new(&model), rows.values(), &[]);
    let risks = risks.evaluation(&model);
    risks.nll.unwrap_or(risks.mse)
}
