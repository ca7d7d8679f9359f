//! The effect of starts, bounds, steps and replicates on the quality of CL-OMPR.
//!
//! The same sketches are decoded with one setting changed at a time, for Fourier features and for
//! Nyström features at uniform landmarks. Numbers are medians over trials: the risk divided by that
//! of Lloyd's algorithm on all rows, or nats above EM on all rows, for one pursuit and for the best
//! of five by the objective, with the CPU seconds of one.
//!
//! ```console
//! $ cargo run --release -p nysketch-bench --bin pursuit -- --real DATA --trials 5
//! ```

#[path = "sketches.rs"]
mod sketches;

use nysketch::decoder::clompr::{Clompr, Steps, objective_of};
use nysketch::decoder::constraints::Constraints;
use nysketch::decoder::space::Space;
use nysketch::decoder::starts::Starts;
use nysketch::{Context, Sketch, Task};
use nysketch_core::numeric::random::{below, normal};
use nysketch_learn::atom::Family;
use nysketch_learn::atom::embedding::Embedding;
use nysketch_learn::optimize::Stop;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use sketches::{Arguments, K, Rows, Setting, median, prepared, risk, widened};
use std::time::Instant;

const REPLICATES: usize = 5;

/// Distribution of the starts of atoms.
#[derive(Debug, Clone, Copy, PartialEq)]
enum From {
    /// Uniform within 1.7 deviations of the mean.
    Box,
    /// Normal, with the mean and deviations of the rows.
    Normal,
    /// Rows.
    Rows,
}

/// Bounds of the atoms.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Within {
    /// This many deviations from the mean.
    Deviations(f64),
    /// The smallest and the largest value of each column.
    Range,
}

#[derive(Debug, Clone, Copy)]
struct Variant {
    name: &'static str,
    from: From,
    within: Within,
    steps: Steps,
}

const SHORT: Steps = Steps {
    look: 200,
    follow: 5,
    find: Stop { evaluations: 60, relative: 1e-6 },
    refine: Stop { evaluations: 30, relative: 1e-4 },
    rough: Stop { evaluations: 30, relative: 1e-4 },
    shared: Stop { evaluations: 300, relative: 1e-9 },
    settle: Stop { evaluations: 1000, relative: 1e-10 },
    polish: Stop { evaluations: 1000, relative: 1e-10 },
};

const OLD: Variant = Variant {
    name: "box, 5 sd, short",
    from: From::Box,
    within: Within::Deviations(5.0),
    steps: SHORT,
};
const NEW: Variant = Variant {
    name: "rows, range, long",
    from: From::Rows,
    within: Within::Range,
    steps: Steps::LONG,
};

/// Returns variants that change one setting at a time from either end; the last is used for a plan
/// without rows.
fn variants() -> Vec<Variant> {
    let blind = Within::Deviations(3.0);
    vec![
        OLD,
        Variant { name: "rows, 5 sd, short", from: From::Rows, ..OLD },
        Variant { name: "box, range, short", within: Within::Range, ..OLD },
        Variant { name: "box, 5 sd, long", steps: Steps::LONG, ..OLD },
        Variant { name: "rows, range, short", steps: SHORT, ..NEW },
        Variant { name: "rows, 5 sd, long", within: Within::Deviations(5.0), ..NEW },
        Variant { name: "box, range, long", from: From::Box, ..NEW },
        NEW,
        Variant { name: "normal, 3 sd, long", from: From::Normal, within: blind, ..NEW },
        Variant { name: "box, 3 sd, long", from: From::Box, within: blind, ..NEW },
    ]
}

const SETTINGS: [Setting; 5] = [
    Setting {
        name: "mixture, synthetic, m = p",
        file: None,
        task: Task::Gmm,
        m: 200,
        sigma2: 24.0,
    },
    Setting {
        name: "k-means, synthetic, m = p",
        file: None,
        task: Task::Kmeans,
        m: 100,
        sigma2: 81.0,
    },
    Setting {
        name: "k-means, synthetic, m = 2p",
        file: None,
        task: Task::Kmeans,
        m: 200,
        sigma2: 81.0,
    },
    Setting {
        name: "k-means, MNIST, m = 2p",
        file: Some("mnist_spectral.npy"),
        task: Task::Kmeans,
        m: 200,
        sigma2: 0.3,
    },
    Setting {
        name: "k-means, CIFAR10, m = 2p",
        file: Some("cifar10_resnet18_pca50.npy"),
        task: Task::Kmeans,
        m: 1000,
        sigma2: 450.0,
    },
];

/// The result of a pursuit.
struct Found {
    objective: f64,
    risk: f64,
    seconds: f64,
}

/// Runs one pursuit. Bounds and starts are in the plan's coordinates, which are the table's minus a
/// centre.
fn pursue(
    variant: &Variant,
    setting: &Setting,
    rows: &Rows,
    sketch: &Sketch,
    embedding: &Embedding,
    seed: u64,
) -> Vec<Found> {
    let (d, frame) = (rows.dims, &sketch.plan().frame);
    let space = Space::new(sketch, None);
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let n = rows.values.len() / d;
    let (mut mean, mut square) = (vec![0.0; d], vec![0.0; d]);
    let (mut low, mut high) = (vec![f64::INFINITY; d], vec![f64::NEG_INFINITY; d]);
    for row in rows.values.chunks_exact(d) {
        for (k, x) in frame.coordinates(row).into_iter().enumerate() {
            mean[k] += x / n as f64;
            square[k] += x * x / n as f64;
            low[k] = low[k].min(x);
            high[k] = high[k].max(x);
        }
    }
    let deviation: Vec<f64> = (0..d).map(|k| (square[k] - mean[k] * mean[k]).sqrt()).collect();
    let bounds: Vec<(f64, f64)> = match variant.within {
        Within::Deviations(t) => {
            (0..d).map(|k| (mean[k] - t * deviation[k], mean[k] + t * deviation[k])).collect()
        }
        Within::Range => low.into_iter().zip(high).collect(),
    };
    let points: Vec<Vec<f64>> = (0..500)
        .map(|_| match variant.from {
            From::Box => space.draw(&mut rng),
            From::Normal => (0..d)
                .map(|k| {
                    (mean[k] + deviation[k] * normal(&mut rng)).max(bounds[k].0).min(bounds[k].1)
                })
                .collect(),
            From::Rows => frame.coordinates(&rows.values[below(n, &mut rng) * d..][..d]),
        })
        .collect();
    let (family, variance) = match setting.task {
        Task::Gmm => (Family::Diagonal, space.first_variance()),
        _ => (Family::Dirac, vec![0.0; d]),
    };
    let starts = Starts::new(embedding, objective_of(embedding), points, variance);
    let clompr = Clompr {
        embedding,
        family,
        k: K,
        replacement: true,
        bounds: &bounds,
        variances: &space.variances,
        starts: &starts,
        steps: variant.steps,
        constraints: Constraints::default(),
        rows: n as f64,
    };
    let mut all = Vec::new();
    for i in 0..REPLICATES {
        let start = Instant::now();
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(1 + i as u64);
        let pursued = clompr.pursue(&mut rng);
        let objective = pursued.value();
        let found = clompr.polish(pursued);
        let seconds = start.elapsed().as_secs_f64();
        let risk = risk(setting.task, rows, &widened(sketch, &found.atoms));
        all.push(Found { objective, risk, seconds });
    }
    all
}

fn main() {
    let arguments = Arguments::read();
    for setting in SETTINGS.iter().filter(|s| s.name.contains(&arguments.only)) {
        println!("\n{}", setting.name);
        println!(
            "| variant | Fourier, one | best of 5 | seconds | Nyström, one | best of 5 | seconds |"
        );
        println!("|---|---|---|---|---|---|---|");
        let prepared = prepared(setting, &arguments);
        if prepared.is_empty() {
            continue;
        }
        for variant in variants() {
            let mut line = format!("| {} |", variant.name);
            for map in 0..2 {
                let (mut one, mut best, mut seconds) = (Vec::new(), Vec::new(), Vec::new());
                for (trial, prepared) in prepared.iter().enumerate() {
                    let (rows, sketch) = (&prepared.rows, &prepared.sketches[map]);
                    let context = Context::new(sketch);
                    let Ok(embedding) = context.embedding(0) else { continue };
                    let found = pursue(&variant, setting, rows, sketch, embedding, trial as u64);
                    one.push(setting.relative(found[0].risk, prepared.base));
                    let chosen = found.iter().min_by(|a, b| a.objective.total_cmp(&b.objective));
                    let risk = chosen.map_or(f64::NAN, |c| c.risk);
                    best.push(setting.relative(risk, prepared.base));
                    seconds.push(median(&found.iter().map(|f| f.seconds).collect::<Vec<_>>()));
                }
                line += &format!(
                    " {:.4} | {:.4} | {:.3} |",
                    median(&one),
                    median(&best),
                    median(&seconds)
                );
            }
            println!("{line}");
        }
    }
}
