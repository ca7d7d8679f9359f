//! Decoders from the literature compared with ours, on the same sketches of the paper's data sets.
//!
//! All have the same starts and bounds, from the moments of the rows, use the best of five runs by
//! the objective, and end with the same polish. Numbers are medians over trials: the risk divided
//! by that of Lloyd's algorithm on all rows, or nats above EM on all rows, and the seconds of all
//! runs.
//!
//! ```console
//! $ cargo run --release -p nysketch-bench --bin decoders -- --real DATA --trials 5
//! # Laws of frequencies.
//! $ cargo run --release -p nysketch-bench --bin decoders -- --real DATA --trials 5 --laws
//! ```

mod amp;
mod laws;
mod problem;
mod shift;
#[path = "../sketches.rs"]
mod sketches;
mod splitting;
mod thresholding;

use nysketch::decoder::space::Space;
use nysketch::model::Shape;
use nysketch::{Context, Decoder, FitParams, Sketch, Task};
use nysketch_learn::atom::Atom;
use problem::Problem;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use sketches::{Arguments, K, Setting, median, prepared, risk, widened};
use std::time::Instant;

const RUNS: u64 = 5;

#[derive(Debug, Clone, Copy, PartialEq)]
enum Method {
    Clompr,
    Kernel,
    Shift,
    Amp,
    Thresholding,
    Splitting,
}

impl Method {
    const ALL: [Method; 6] = [
        Method::Clompr,
        Method::Shift,
        Method::Amp,
        Method::Thresholding,
        Method::Splitting,
        Method::Kernel,
    ];

    fn name(self) -> &'static str {
        match self {
            Method::Clompr => "CL-OMPR",
            Method::Kernel => "kernel (ours)",
            Method::Shift => "sketch and shift",
            Method::Amp => "CL-AMP",
            Method::Thresholding => "hard thresholding",
            Method::Splitting => "splitting",
        }
    }

    /// Returns whether the method decodes such a sketch for such a task.
    fn can(self, task: Task, fourier: bool) -> bool {
        match self {
            Method::Amp => task == Task::Kmeans && fourier,
            Method::Splitting => task == Task::Gmm,
            _ => true,
        }
    }
}

const fn setting(
    name: &'static str,
    file: Option<&'static str>,
    task: Task,
    m: usize,
    sigma2: f64,
) -> Setting {
    Setting { name, file, task, m, sigma2 }
}

const MNIST: Option<&str> = Some("mnist_spectral.npy");
const CIFAR: Option<&str> = Some("cifar10_resnet18_pca50.npy");
const AUDIO: Option<&str> = Some("esc50_mfcc20.npy");

const SETTINGS: [Setting; 16] = [
    setting("k-means, synthetic, m = p", None, Task::Kmeans, 100, 81.0),
    setting("k-means, synthetic, m = 2p", None, Task::Kmeans, 200, 81.0),
    setting("k-means, synthetic, m = 4p", None, Task::Kmeans, 400, 81.0),
    // Mean shift needs a kernel that separates the clusters.
    setting("k-means, synthetic, m = 2p, σ² = 15", None, Task::Kmeans, 200, 15.0),
    setting("k-means, synthetic, m = 4p, σ² = 15", None, Task::Kmeans, 400, 15.0),
    setting("k-means, MNIST, m = p", MNIST, Task::Kmeans, 100, 0.3),
    setting("k-means, MNIST, m = 2p", MNIST, Task::Kmeans, 200, 0.3),
    setting("k-means, MNIST, m = 4p", MNIST, Task::Kmeans, 400, 0.3),
    setting("k-means, MNIST, m = 2p, σ² = 0.1", MNIST, Task::Kmeans, 200, 0.1),
    setting("k-means, audio, m = 2p", AUDIO, Task::Kmeans, 400, 25_000.0),
    setting("k-means, CIFAR10, m = p", CIFAR, Task::Kmeans, 500, 450.0),
    setting("k-means, CIFAR10, m = 2p", CIFAR, Task::Kmeans, 1000, 450.0),
    setting("mixture, synthetic, m = p", None, Task::Gmm, 200, 24.0),
    setting("mixture, synthetic, m = 2p", None, Task::Gmm, 400, 24.0),
    setting("mixture, MNIST, m = 2p", MNIST, Task::Gmm, 400, 0.3),
    setting("mixture, audio, m = p", AUDIO, Task::Gmm, 400, 25_000.0),
];

/// Returns the model of a decoder of the library, as atoms.
fn of_library(sketch: &Sketch, context: &Context<'_>, task: Task, decoder: Decoder) -> Vec<Atom> {
    let mut params = FitParams::new(task, K).decoder(decoder).threads(1);
    if decoder == Decoder::Clompr {
        params = params.blind();
    }
    let Ok(model) = context.fit(&params) else { return Vec::new() };
    let dims = sketch.plan().dims();
    match model.shape {
        Shape::Centres { weights, centres } => {
            let each = weights.into_iter().zip(centres);
            each.map(|(w, c)| Atom::diagonal(w, c, vec![0.0; dims])).collect()
        }
        Shape::Mixture { weights, means, covariances, .. } => {
            let each = weights.into_iter().zip(means.into_iter().zip(covariances));
            each.map(|(w, (mean, covariance))| Atom::new(w, mean, covariance)).collect()
        }
        Shape::Components { .. } => Vec::new(),
    }
}

fn decoded(method: Method, task: Task, sketch: &Sketch, context: &Context<'_>) -> Vec<Atom> {
    match method {
        Method::Clompr => return of_library(sketch, context, task, Decoder::Clompr),
        Method::Kernel => return of_library(sketch, context, task, Decoder::Kernel),
        _ => {}
    }
    let Ok(embedding) = context.embedding(0) else { return Vec::new() };
    let space = Space::new(sketch, None);
    let rng = &mut ChaCha8Rng::seed_from_u64(3);
    let starts: Vec<Vec<f64>> = (0..500).map(|_| space.draw(rng)).collect();
    let bounds = space.around(3.0);
    let rows = sketch.rows() as f64;
    let problem =
        Problem { embedding, space: &space, bounds: &bounds, starts: &starts, k: K, rows };
    let mixture = task == Task::Gmm;
    // Splitting is deterministic.
    let runs = if method == Method::Splitting { 1 } else { RUNS };
    let results = (0..runs).map(|run| {
        let rng = &mut ChaCha8Rng::seed_from_u64(10 + run);
        let atoms = match method {
            Method::Shift => shift::decode(&problem, rng),
            Method::Amp => amp::decode(&problem, rng),
            Method::Thresholding => thresholding::decode(&problem, mixture, rng),
            _ => splitting::decode(&problem),
        };
        let polished = problem.polish(atoms, mixture);
        (problem.residual(&polished).1, polished)
    });
    let best = results.min_by(|a, b| a.0.total_cmp(&b.0));
    best.map_or(Vec::new(), |b| widened(sketch, &b.1))
}

fn main() {
    let arguments = Arguments::read();
    if std::env::args().any(|a| a == "--laws") {
        return laws::tables(&SETTINGS, &arguments);
    }
    for setting in SETTINGS.iter().filter(|s| s.name.contains(&arguments.only)) {
        println!("\n{}\n", setting.name);
        println!("| decoder | Fourier | seconds | Nyström | seconds |\n|---|---|---|---|---|");
        let prepared = prepared(setting, &arguments);
        for method in Method::ALL {
            let mut line = format!("| {} |", method.name());
            for (map, fourier) in [true, false].into_iter().enumerate() {
                if !method.can(setting.task, fourier) || prepared.is_empty() {
                    line += " – | |";
                    continue;
                }
                let (mut over, mut seconds) = (Vec::new(), Vec::new());
                for trial in &prepared {
                    let sketch = &trial.sketches[map];
                    let context = Context::new(sketch);
                    let start = Instant::now();
                    let atoms = decoded(method, setting.task, sketch, &context);
                    seconds.push(start.elapsed().as_secs_f64());
                    let found = risk(setting.task, &trial.rows, &atoms);
                    over.push(setting.relative(found, trial.base));
                }
                line += &format!(" {:.4} | {:.2} |", median(&over), median(&seconds));
            }
            println!("{line}");
        }
    }
}
