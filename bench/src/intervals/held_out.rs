//! Cross-validation beside rows that were really held out.

use crate::npy;
use nysketch::metrics::Risks;
use nysketch::sample::mix;
use nysketch::*;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

const KS: [usize; 3] = [2, 5, 10];

/// Prints a line for each table of a folder, task and k.
pub fn print(folder: &Path, only: &str) {
    println!(
        "Risks on folds held out in turn (16 folds of one half of the rows) and on the other half:\n"
    );
    println!(
        "| table | task | k | cross-validated | other half | error | standard error | time |\n|---|---|---|---|---|---|---|---|"
    );
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
            println!("| {name} | missing | | | | | | |");
            continue;
        };
        let half = |side: u64| {
            let rows = values.chunks_exact(d).enumerate();
            let some = rows.filter(|(i, _)| mix(*i as u64) >> 63 == side).flat_map(|(_, row)| row);
            Table::unnamed(d, some.copied().collect()).expect("whole rows")
        };
        let (seen, other) = (half(0), half(1));
        let threads = std::thread::available_parallelism().map_or(1, |n| n.get());
        let params = PlanParams::default().scale(scale).threads(threads);
        let plan = Arc::new(plan_for(&seen, params).expect("a plan").0);
        let rule = FoldRule::by_content(16).expect("a rule");
        let pass = SketchParams::default().threads(threads);
        let sketch = Sketch::of_folds(&plan, &rule, &seen, pass, &()).expect("a sketch");
        let context = Context::new(&sketch);
        for task in [Task::Kmeans, Task::Gmm] {
            for k in KS {
                let params = FitParams::new(task, k).threads(threads).restarts(6);
                let params = if task == Task::Gmm { params } else { params.restarts(None) };
                let start = Instant::now();
                let found = context.cross_validate(&params, k, k).expect("risks").points[0];
                let seconds = start.elapsed().as_secs_f64();
                let model = context.fit(&params).expect("a model");
                let mut risks = Risks::default();
                risks.add(&Predictor::new(&model), other.values(), &[]);
                let risks = risks.evaluation(&model);
                let (truth, error) = match task {
                    Task::Gmm => {
                        let nll = risks.nll.expect("a mixture");
                        (nll, format!("{:+.4} nats", found.risk - nll))
                    }
                    _ => (risks.mse, format!("{:+.2} %", 100.0 * (found.risk / risks.mse - 1.0))),
                };
                println!(
                    "| {name} | {task} | {k} | {:.4} | {truth:.4} | {error} | {:.4} | {seconds:.1} s |",
                    found.risk, found.error
                );
            }
        }
    }
}
