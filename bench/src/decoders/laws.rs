//! Fourier features from the literature: frequencies of adapted radius, in orthogonal blocks, and
//! one-bit features, compared with plain ones, all decoded by CL-OMPR.
//!
//! Each is tried at several variances, to show its best quality and its sensitivity to the
//! variance.

use super::sketches::{Arguments, K, Rows, Setting, median, reference, risk, rows_of, widened};
use nysketch::decoder::clompr::{Clompr, Pursued, Steps, objective_of};
use nysketch::decoder::constraints::Constraints;
use nysketch::decoder::space::Space;
use nysketch::decoder::starts::Starts;
use nysketch::{
    Collect, Context, Features, FrequencyLaw, PlanParams, Sketch, SketchParams, Table, Task,
    plan_for,
};
use nysketch_core::kernel::fourier::draw_frequencies;
use nysketch_core::numeric::points::Points;
use nysketch_core::numeric::random::{normal, unit};
use nysketch_learn::atom::{Atom, Family};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use std::sync::Arc;

#[derive(Debug, Clone, Copy, PartialEq)]
enum Law {
    Gaussian,
    Adapted,
    Orthogonal,
    OneBit,
}

impl Law {
    const ALL: [Law; 4] = [Law::Gaussian, Law::Adapted, Law::Orthogonal, Law::OneBit];

    fn name(self) -> &'static str {
        match self {
            Law::Gaussian => "Gaussian",
            Law::Adapted => "adapted radius",
            Law::Orthogonal => "orthogonal blocks",
            Law::OneBit => "Gaussian, one bit",
        }
    }
}

/// Returns frequencies of a law, not divided by σ.
fn frequencies(law: Law, d: usize, count: usize, rng: &mut ChaCha8Rng) -> Points {
    match law {
        Law::Gaussian | Law::OneBit => draw_frequencies(FrequencyLaw::Normal, d, count, rng),
        Law::Adapted => draw_frequencies(FrequencyLaw::Adapted, d, count, rng),
        Law::Orthogonal => {
            let (mut data, mut rows) = (Vec::with_capacity(d * count), Vec::new());
            while data.len() < d * count {
                if rows.is_empty() {
                    rows = hadamard_rows(d.next_power_of_two(), rng);
                }
                let direction = rows.pop().map_or(Vec::new(), |row| row[..d].to_vec());
                let length = direction.iter().map(|x| x * x).sum::<f64>().sqrt();
                // The truncated direction may be zero.
                if length > 1e-9 {
                    let radius = (0..d).map(|_| normal(rng).powi(2)).sum::<f64>().sqrt();
                    data.extend(direction.iter().map(|x| (x / length * radius) as f32));
                }
            }
            Points::new(d, data)
        }
    }
}

/// Returns the rows of H D₁ H D₂ H D₃: Walsh-Hadamard transforms and random signs.
fn hadamard_rows(n: usize, rng: &mut ChaCha8Rng) -> Vec<Vec<f64>> {
    let signs: Vec<Vec<f64>> = (0..3)
        .map(|_| (0..n).map(|_| if unit(rng) < 0.5 { -1.0 } else { 1.0 }).collect())
        .collect();
    let mut rows = Vec::new();
    for i in 0..n {
        // Row i of the product is its transpose applied to a unit vector; H is symmetric.
        let mut x: Vec<f64> = (0..n).map(|j| f64::from(u8::from(i == j))).collect();
        for signs in &signs {
            let mut half = 1;
            while half < n {
                for start in (0..n).step_by(2 * half) {
                    for j in start..start + half {
                        (x[j], x[j + half]) = (x[j] + x[j + half], x[j] - x[j + half]);
                    }
                }
                half *= 2;
            }
            x.iter_mut().zip(signs).for_each(|(x, s)| *x *= s / (n as f64).sqrt());
        }
        rows.push(x);
    }
    rows
}

/// Returns the means of `sign cos` and `sign sin` of dithered phases, converted to those of cosines
/// and sines: their first Fourier coefficient is 4/π, and the dither is rotated back.
fn one_bit(frequencies: &[f64], rows: &Rows, sketch: &Sketch, rng: &mut ChaCha8Rng) -> Vec<f64> {
    let (d, frame) = (rows.dims, &sketch.plan().frame);
    let count = frequencies.len() / d;
    let dither: Vec<f64> = (0..count).map(|_| std::f64::consts::TAU * unit(rng)).collect();
    let mut sums = vec![[0.0; 2]; count];
    let all = rows.values.chunks_exact(d);
    let n = all.len() as f64;
    for row in all {
        let z = frame.coordinates(row);
        for (m, w) in frequencies.chunks_exact(d).enumerate() {
            let phase: f64 = w.iter().zip(&z).map(|(w, z)| w * z).sum::<f64>() + dither[m];
            let (sin, cos) = phase.sin_cos();
            sums[m][0] += cos.signum() / n;
            sums[m][1] += sin.signum() / n;
        }
    }
    let scale = std::f64::consts::FRAC_PI_4 / (count as f64).sqrt();
    let mut target = vec![0.0; 2 * count];
    for (m, [c, s]) in sums.into_iter().enumerate() {
        let (sin, cos) = dither[m].sin_cos();
        target[m] = scale * (c * cos + s * sin);
        target[count + m] = scale * (s * cos - c * sin);
    }
    target
}

/// Returns the risk of the best of five pursuits.
fn decoded(law: Law, setting: &Setting, rows: &Rows, sigma2: f64, seed: u64) -> Option<f64> {
    let table = Table::unnamed(rows.dims, rows.values.clone()).ok()?;
    let collect = Collect { kernel: true, cells: false, moments: true };
    let params = PlanParams::default().fourier(setting.m / 2).bandwidths([sigma2]).collect(collect);
    let mut plan = plan_for(&table, params.seed(seed)).ok()?.0;
    let rng = &mut ChaCha8Rng::seed_from_u64(seed);
    let drawn = frequencies(law, rows.dims, setting.m / 2, rng);
    plan.features = Features::Fourier(drawn, FrequencyLaw::Normal);
    let sketch = Sketch::of(&Arc::new(plan), &table, SketchParams::default(), &()).ok()?;
    let context = Context::new(&sketch);
    let mut embedding = context.embedding(0).ok()?.clone();
    if law == Law::OneBit {
        embedding.target = one_bit(embedding.frequencies()?, rows, &sketch, rng);
    }
    let space = Space::new(&sketch, None);
    let (starts, bounds): (Vec<_>, _) =
        ((0..500).map(|_| space.draw(rng)).collect(), space.around(3.0));
    let (family, variance) = match setting.task {
        Task::Gmm => (Family::Diagonal, space.first_variance()),
        _ => (Family::Dirac, vec![0.0; rows.dims]),
    };
    let starts = Starts::new(&embedding, objective_of(&embedding), starts, variance);
    let clompr = Clompr {
        embedding: &embedding,
        family,
        k: K,
        replacement: true,
        bounds: &bounds,
        variances: &space.variances,
        starts: &starts,
        steps: Steps::LONG,
        constraints: Constraints::default(),
        rows: sketch.rows() as f64,
    };
    let runs = (0..super::RUNS).map(|_| clompr.pursue(rng));
    let best = runs.min_by(|a: &Pursued, b| a.value().total_cmp(&b.value()))?;
    let atoms: Vec<Atom> = widened(&sketch, &clompr.polish(best).atoms);
    Some(risk(setting.task, rows, &atoms))
}

/// Prints a table for each setting.
pub fn tables(settings: &[Setting], arguments: &Arguments) {
    for setting in settings.iter().filter(|s| s.name.contains(&arguments.only)) {
        let factors = [16.0, 4.0, 2.0, 1.0, 0.5, 0.25, 0.0625];
        println!("\n{}\n", setting.name);
        let heads: Vec<String> =
            factors.iter().map(|f| format!(" {} |", f * setting.sigma2)).collect();
        println!("| σ² |{}\n|---|{}", heads.concat(), "---|".repeat(factors.len()));
        let mut prepared: Vec<(Rows, f64)> = Vec::new();
        for trial in 0..arguments.trials {
            let Some(rows) = rows_of(setting, arguments.real.as_deref(), trial) else { break };
            let base = reference(setting.task, &rows, &mut ChaCha8Rng::seed_from_u64(trial));
            prepared.push((rows, base));
        }
        for law in Law::ALL.into_iter().filter(|_| !prepared.is_empty()) {
            let mut line = format!("| {} |", law.name());
            for factor in factors {
                let mut over = Vec::new();
                for (trial, (rows, base)) in prepared.iter().enumerate() {
                    let found = decoded(law, setting, rows, factor * setting.sigma2, trial as u64);
                    over.push(setting.relative(found.unwrap_or(f64::NAN), *base));
                }
                line += &format!(" {:.4} |", median(&over));
            }
            println!("{line}");
        }
    }
}
