//! Choosing a decoder and a bandwidth, and making a model of what comes out.

use super::cells::Cells;
use super::clompr::Clompr;
use super::constraints::Constraints;
use super::kernel::{KernelDecoder, calibrated};
use super::{Report, Space, pca};
use crate::atom::embedding::Embedding;
use crate::atom::{Atom, Family};
use crate::error::{Error, Result};
use crate::measure::{Effort, Loss, Measure};
use crate::model::{Model, Shape};
use crate::sketch::Sketch;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use std::time::Instant;

/// What to learn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Task {
    /// Centres of least mean squared distance.
    Kmeans,
    /// Centres of least mean distance.
    Kmedians,
    /// A mixture of Gaussians with diagonal covariances.
    Gmm,
    /// Principal components.
    Pca,
}

impl Task {
    /// Its name on the command line and in models.
    pub fn name(self) -> &'static str {
        match self {
            Task::Kmeans => "kmeans",
            Task::Kmedians => "kmedians",
            Task::Gmm => "gmm",
            Task::Pca => "pca",
        }
    }

    fn loss(self) -> Loss {
        if self == Task::Kmedians { Loss::Distance } else { Loss::Squared }
    }
}

/// Which decoder to use; see the table of [`decoder`](super).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Decoder {
    /// Cells where the sketch has them, else kernel.
    #[default]
    Auto,
    /// Cell moments.
    Cells,
    /// Kernel sums, with starts and atoms better than the paper's.
    Kernel,
    /// The paper's.
    Clompr,
    /// The paper's without replacement.
    Clomp,
}

impl Decoder {
    /// Its name on the command line and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Decoder::Auto => "auto",
            Decoder::Cells => "cells",
            Decoder::Kernel => "kernel",
            Decoder::Clompr => "clompr",
            Decoder::Clomp => "clomp",
        }
    }
}

/// What to fit and how.
#[derive(Debug, Clone)]
pub struct FitParams {
    /// What to learn.
    pub task: Task,
    /// Number of centres, components of the mixture, or principal components.
    pub k: usize,
    /// Which decoder.
    pub decoder: Decoder,
    /// Which of the sketch's bandwidths; `None` chooses.
    pub bandwidth: Option<f64>,
    /// Known variance of every component and column, in the plan's squared coordinates.
    pub known_variance: Option<f64>,
    /// CL-OMPR: least distance between atoms, in the plan's coordinates (deviations where the
    /// variance is known).
    pub separation: Option<f64>,
    /// CL-OMPR: largest distance of an atom from the plan's centre, likewise.
    pub radius: Option<f64>,
    /// Seed of everything random.
    pub seed: u64,
}

impl FitParams {
    /// The defaults for a task and a k.
    pub fn new(task: Task, k: usize) -> Self {
        FitParams {
            task,
            k,
            decoder: Decoder::Auto,
            bandwidth: None,
            known_variance: None,
            separation: None,
            radius: None,
            seed: 0,
        }
    }
}

/// What a report calls k-means or EM on calibrated landmarks.
const CALIBRATED: &str = "kernel (calibrated landmarks)";

const EFFORT: Effort = Effort { restarts: 20, iterations: 200 };
const EM_EFFORT: Effort = Effort { restarts: 5, iterations: 500 };

/// Learns a model from a sketch.
pub fn fit(sketch: &Sketch, params: &FitParams) -> Result<Model> {
    fit_from(sketch, params, &[])
}

/// The same, with centres to start from.
pub(super) fn fit_from(sketch: &Sketch, params: &FitParams, warm: &[Vec<f64>]) -> Result<Model> {
    check(sketch, params)?;
    let start = Instant::now();
    let mut report = Report::default();
    let mut rng = ChaCha8Rng::seed_from_u64(params.seed);
    let shape = match params.task {
        Task::Pca => {
            report.decoder = "moments".into();
            report.status = "Converged".into();
            Shape::components(sketch, pca::components(sketch, params.k)?)
        }
        Task::Gmm => Shape::mixture(sketch, mixture(sketch, params, &mut rng, &mut report)?),
        Task::Kmeans | Task::Kmedians => {
            Shape::centres(sketch, centres(sketch, params, warm, &mut rng, &mut report)?)
        }
    };
    report.seconds = start.elapsed().as_secs_f64();
    Model::new(sketch, params.task, shape, report)
}

/// Which decoder really runs.
fn chosen(sketch: &Sketch, params: &FitParams) -> Decoder {
    // A known variance or a bandwidth is for kernel sums.
    let cells = sketch.plan().collect.cells
        && params.known_variance.is_none()
        && params.bandwidth.is_none();
    match params.decoder {
        Decoder::Auto if cells => Decoder::Cells,
        Decoder::Auto => Decoder::Kernel,
        other => other,
    }
}

pub(super) fn check(sketch: &Sketch, params: &FitParams) -> Result<()> {
    let (plan, k) = (sketch.plan(), params.k);
    if sketch.rows() == 0 {
        return Err(Error::NoRows { skipped: sketch.skipped() });
    }
    if k == 0 {
        return Err(Error::parameter("`k`", "at least 1", k));
    }
    if params.known_variance.is_some_and(|v| !(v > 0.0 && v.is_finite())) {
        let got = params.known_variance.unwrap_or(f64::NAN);
        return Err(Error::parameter("`known_variance`", "a positive number", got));
    }
    for (name, value) in [("`separation`", params.separation), ("`radius`", params.radius)] {
        if value.is_some_and(|v| !(v > 0.0 && v.is_finite())) {
            let got = value.unwrap_or(f64::NAN);
            return Err(Error::parameter(name, "a positive number", got));
        }
    }
    let missing =
        |what: &str| Error::MissingSums { task: params.task.name(), what: what.to_string() };
    let bandwidth_used = params.task != Task::Pca && chosen(sketch, params) != Decoder::Cells;
    if params.bandwidth.is_some() && !bandwidth_used {
        let expected = "left out for pca and for the cells decoder, which need none";
        let got = params.bandwidth.unwrap_or(f64::NAN);
        return Err(Error::parameter("`bandwidth`", expected, got));
    }
    if params.task == Task::Pca {
        if !plan.collect.moments {
            return Err(missing("moments"));
        }
        if k > plan.dims() {
            return Err(Error::TooManyComponents { k, available: plan.dims(), what: "columns" });
        }
        return Ok(());
    }
    if k as u64 > sketch.rows() {
        return Err(Error::TooManyComponents {
            k,
            available: sketch.rows() as usize,
            what: "rows",
        });
    }
    match chosen(sketch, params) {
        Decoder::Cells => {
            if params.known_variance.is_some() {
                return Err(Error::parameter(
                    "`known_variance`",
                    "left out with cells, which learn it",
                    "both",
                ));
            }
            if !plan.collect.cells {
                return Err(missing("cells"));
            }
            let filled = sketch.sums().cell_rows.iter().filter(|n| **n > 0).count();
            if k > filled {
                return Err(Error::TooManyComponents {
                    k,
                    available: filled,
                    what: "cells with rows",
                });
            }
        }
        _ => {
            if !plan.collect.kernel {
                return Err(missing("kernel"));
            }
            let available = plan.features_per_bandwidth();
            if k > available {
                return Err(Error::TooManyComponents { k, available, what: "kernel sums" });
            }
        }
    }
    Ok(())
}

/// The sketch at the chosen bandwidth.
fn embedding(sketch: &Sketch, params: &FitParams, report: &mut Report) -> Result<Embedding> {
    let rung = chosen_rung(sketch, params)?;
    report.bandwidth = Some(sketch.plan().bandwidths[rung]);
    Embedding::new(sketch, rung)
}

/// The rung that was asked for, or else the best one.
fn chosen_rung(sketch: &Sketch, params: &FitParams) -> Result<usize> {
    let bandwidths = &sketch.plan().bandwidths;
    let Some(wanted) = params.bandwidth else { return choose_rung(sketch, params) };
    bandwidths.iter().position(|s| (s / wanted - 1.0).abs() < 1e-3).ok_or_else(|| {
        let list: Vec<String> = bandwidths.iter().map(f64::to_string).collect();
        Error::parameter(
            "`bandwidth`",
            format!("auto or one of the sketch's: {}", list.join(", ")),
            wanted,
        )
    })
}

/// The rung nearest, in ratio, to twice the risk that calibrated landmarks give; the middle one
/// where there are no landmarks.
fn choose_rung(sketch: &Sketch, params: &FitParams) -> Result<usize> {
    let bandwidths = &sketch.plan().bandwidths;
    let middle = bandwidths.len() / 2;
    if bandwidths.len() == 1 {
        return Ok(0);
    }
    let Some(measure) = calibrated(&Embedding::new(sketch, middle)?) else {
        return Ok(middle);
    };
    let mut rng = ChaCha8Rng::seed_from_u64(params.seed);
    let effort = Effort { restarts: 2, iterations: 30 };
    let centres = measure.cluster(params.k, Loss::Squared, effort, &mut rng);
    let wanted = 2.0 * measure.risk(&centres, Loss::Squared);
    let distance = |s: f64| (s / wanted).ln().abs();
    let nearest = (0..bandwidths.len())
        .min_by(|&a, &b| distance(bandwidths[a]).total_cmp(&distance(bandwidths[b])));
    Ok(nearest.filter(|_| wanted > 0.0).unwrap_or(middle))
}

fn centres(
    sketch: &Sketch,
    params: &FitParams,
    warm: &[Vec<f64>],
    rng: &mut ChaCha8Rng,
    report: &mut Report,
) -> Result<Vec<Atom>> {
    let decoder = chosen(sketch, params);
    report.decoder = decoder.name().into();
    let loss = params.task.loss();
    if decoder == Decoder::Cells {
        let cells = Cells::new(sketch);
        let centres = cells.cluster(params.k, loss, EFFORT, warm, rng, report);
        return Ok(weighted(&cells.measure(), centres));
    }
    if sketch.plan().landmarks().is_none() && decoder == Decoder::Kernel {
        return blind(sketch, params, rng, report);
    }
    let embedding = embedding(sketch, params, report)?;
    let space = Space::new(sketch);
    if decoder != Decoder::Kernel {
        return pursue(sketch, &embedding, params, Family::Dirac, decoder, rng, report);
    }
    let kernel = KernelDecoder::new(sketch, &embedding, &space, params.k);
    let matched = kernel.shared_diagonal(rng, report);
    let Some(measure) = &kernel.measure else {
        return Ok(matched);
    };
    let plain = measure.cluster(params.k, loss, EFFORT, rng);
    let means: Vec<Vec<f64>> = matched.iter().map(|a| a.mean.clone()).collect();
    // Below about k(d+1) moments matching is arbitrary, and atoms that cluster the calibrated
    // landmarks clearly worse than k-means does have not found the clusters.
    let sound = measure.risk(&means, loss) <= 1.15 * measure.risk(&plain, loss);
    if params.task == Task::Kmeans && kernel.enough_moments() && sound {
        return Ok(matched);
    }
    report.decoder = CALIBRATED.into();
    Ok(weighted(measure, plain))
}

/// Centres as atoms, with the share of the measure nearest to each.
fn weighted(measure: &Measure, centres: Vec<Vec<f64>>) -> Vec<Atom> {
    let mut mass = vec![0.0; centres.len()];
    for (x, w) in measure.iter() {
        mass[crate::measure::nearest(x, &centres).0] += w / measure.mass();
    }
    let atom =
        |(mean, weight): (Vec<f64>, f64)| Atom { weight, variance: vec![0.0; mean.len()], mean };
    centres.into_iter().zip(mass).map(atom).collect()
}

/// Centres as atoms that share, in each column, the variance of the measure around them: more than
/// that a few points cannot tell.
fn pooled(measure: &Measure, centres: Vec<Vec<f64>>) -> Vec<Atom> {
    let mut variance = measure.variance_around(&centres);
    let least = 1e-6 * variance.iter().fold(1e-12, |a: f64, v| a.max(*v));
    variance.iter_mut().for_each(|v| *v = v.max(least));
    let mut atoms = weighted(measure, centres);
    atoms.iter_mut().for_each(|a| a.variance.clone_from(&variance));
    atoms
}

fn mixture(
    sketch: &Sketch,
    params: &FitParams,
    rng: &mut ChaCha8Rng,
    report: &mut Report,
) -> Result<Vec<Atom>> {
    let decoder = chosen(sketch, params);
    report.decoder = decoder.name().into();
    if decoder == Decoder::Cells {
        return Ok(Cells::new(sketch).mixture(params.k, EM_EFFORT, rng, report));
    }
    if sketch.plan().landmarks().is_none() && decoder == Decoder::Kernel {
        return blind(sketch, params, rng, report);
    }
    let embedding = embedding(sketch, params, report)?;
    let space = Space::new(sketch);
    if decoder != Decoder::Kernel {
        let family = match params.known_variance {
            Some(v) => Family::Known(vec![v; embedding.dims()]),
            None => Family::Diagonal,
        };
        return pursue(sketch, &embedding, params, family, decoder, rng, report);
    }
    let kernel = KernelDecoder::new(sketch, &embedding, &space, params.k);
    match (params.known_variance, &kernel.measure) {
        (Some(v), _) => Ok(kernel.known_variance(&vec![v; embedding.dims()], rng, report)),
        (None, Some(measure)) if !kernel.enough_moments() => {
            report.decoder = CALIBRATED.into();
            Ok(pooled(measure, measure.cluster(params.k, Loss::Squared, EFFORT, rng)))
        }
        (None, measure) => {
            let atoms = kernel.mixture(rng, report);
            let Some(measure) = measure else { return Ok(atoms) };
            let plain = pooled(measure, measure.cluster(params.k, Loss::Squared, EFFORT, rng));
            if plain.len() < params.k {
                return Ok(atoms);
            }
            // Landmarks are rows: a mixture under which they are much less likely than under one that was
            // fitted to them has not found the clusters, or has lost variances that the sketch cannot tell.
            let landmarks = Cells::of_measure(measure);
            let optimism = 2.0 * (params.k * measure.dims()) as f64 / measure.len() as f64;
            if landmarks.likelihood(&atoms) >= landmarks.likelihood(&plain) - optimism {
                return Ok(atoms);
            }
            report.decoder = CALIBRATED.into();
            Ok(plain)
        }
    }
}

/// CL-OMPR or CL-OMP.
fn pursue(
    sketch: &Sketch,
    embedding: &Embedding,
    params: &FitParams,
    family: Family,
    decoder: Decoder,
    rng: &mut ChaCha8Rng,
    report: &mut Report,
) -> Result<Vec<Atom>> {
    let d = embedding.dims();
    let (space, rows) = (Space::new(sketch), sketch.rows() as f64);
    let starts: Vec<Vec<f64>> = match embedding.landmarks() {
        Some(landmarks) => landmarks.chunks_exact(d).map(<[f64]>::to_vec).collect(),
        None => (0..500).map(|_| space.draw(rng)).collect(),
    };
    let first_variance = match &family {
        Family::Dirac => vec![0.0; d],
        Family::Known(v) => v.clone(),
        Family::Scaled | Family::Shared | Family::Diagonal => space.first_variance(),
    };
    let precision = match &family {
        Family::Known(v) => v.iter().map(|g| 1.0 / g).collect(),
        _ => Vec::new(),
    };
    let clompr = Clompr {
        embedding,
        family,
        first_variance,
        k: params.k,
        replacement: decoder == Decoder::Clompr,
        bounds: &space.bounds,
        variances: &space.variances,
        starts: &starts,
        constraints: Constraints {
            separation: params.separation,
            radius: params.radius,
            precision,
        },
        rows,
    };
    let atoms = clompr.run(rng, report);
    if !clompr.constraints.hold(&atoms) {
        let got = format!("{:?} and {:?} for {} atoms", params.separation, params.radius, params.k);
        return Err(Error::parameter("`separation` and `radius`", "possible together", got));
    }
    Ok(atoms)
}

/// Fourier sketches have no landmarks to estimate a risk with. Each rung is decoded, and the atoms
/// whose mean and variances are nearest to the data's, which the sketch knows exactly, are kept.
fn blind(
    sketch: &Sketch,
    params: &FitParams,
    rng: &mut ChaCha8Rng,
    report: &mut Report,
) -> Result<Vec<Atom>> {
    let space = Space::new(sketch);
    let bandwidths = &sketch.plan().bandwidths;
    let rungs = match params.bandwidth {
        None if sketch.plan().collect.moments => (0..bandwidths.len()).collect(),
        None => vec![bandwidths.len() / 2],
        Some(_) => vec![chosen_rung(sketch, params)?],
    };
    let mut best: Option<(f64, Vec<Atom>, Report)> = None;
    for rung in rungs {
        let embedding = Embedding::new(sketch, rung)?;
        let mut tried = Report { bandwidth: Some(bandwidths[rung]), ..report.clone() };
        let kernel = KernelDecoder::new(sketch, &embedding, &space, params.k);
        let atoms = match (params.task, params.known_variance) {
            (Task::Gmm, Some(v)) => {
                kernel.known_variance(&vec![v; embedding.dims()], rng, &mut tried)
            }
            (Task::Gmm, None) => kernel.mixture(rng, &mut tried),
            _ => kernel.shared_diagonal(rng, &mut tried),
        };
        if !kernel.enough_moments() {
            tried.status = "TooFewMoments".into();
        }
        let off = space.mismatch(&atoms);
        if best.as_ref().is_none_or(|(b, _, _)| off < *b) {
            best = Some((off, atoms, tried));
        }
    }
    let (_, atoms, tried) = best.unwrap_or_default();
    *report = tried;
    Ok(atoms)
}
