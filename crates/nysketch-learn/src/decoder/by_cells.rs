//! The decoder `cells`: centres and mixtures from cell moments and retained rows.

use super::calibrate::weighted;
use super::cell_mixture::ended;
use super::cells::Cells;
use super::context::Context;
use super::decode::{Decode, Job, Mode};
use super::em::Until;
use super::given::given;
use super::likelihood::PointDensities;
use super::params::{DEFAULT_MIN_VARIANCE, FitParams};
use super::search::{CARRIED, Found, HeldOut, Search, work};
use super::stand_ins::StandIns;
use crate::atom::Atom;
use crate::covariance::{Covariance, CovarianceKind};
use crate::model::densities::Densities;
use crate::model::report::{Likelihood, Report};
use crate::model::task::Task;
use nysketch_core::error::{Error, Result};
use nysketch_core::kernel::Kernel;
use nysketch_core::kmeans::{Effort, Loss, WeightedPoints};
use nysketch_core::sums::Sum;
use rand_chacha::ChaCha8Rng;
use std::borrow::Cow;

/// Number of k-means runs on the cells while k is small, and rounds of exchanges in each run.
const RUNS: usize = 10;
const EXCHANGES: usize = 10;
const ITERATIONS: usize = 200;
/// Number of iterations after which centres are assumed to have converged.
const STANDSTILL: usize = 2_000;
/// Number of iterations on retained rows after which runs are compared.
const RACE: usize = 10;
/// Minimum decrease of the risk per iteration, as a share of the risk.
const TOLERANCE: f64 = 1e-5;

/// Returns the effort of the search for k centres. With many centres, runs differ little and each
/// costs more.
fn effort(k: usize, threads: usize) -> Effort {
    let restarts = (RUNS * 50 / k.max(1)).clamp(1, RUNS);
    let (exchanges, tolerance) = (EXCHANGES, TOLERANCE);
    Effort { restarts, iterations: ITERATIONS, exchanges, tolerance, threads }
}

/// How far to move the density quantiles of the points towards those of held-out points. With p
/// parameters and s retained rows, a log-likelihood is p/2s too large on the points themselves,
/// p/2s too small on other rows, and p/s too small on one half for a model fitted to the other
/// half.
const HELD_OUT: f64 = 2.0 / 3.0;
/// Maximum number of columns for which a mixture that describes the cells is fitted. It needs
/// 20,000 points, which take 128 MB with this number of columns.
const DESCRIBED: usize = 800;
/// Relative error of the estimated optimism of a likelihood.
const OPTIMISM_ERROR: f64 = 0.3;

/// Learns from the count, mean and variance of the cells.
pub struct CellsDecoder;

impl Decode for CellsDecoder {
    fn check(&self, context: &Context<'_>, params: &FitParams) -> Result<()> {
        if params.known_covariance.is_some() {
            let expected = "left out with cells, which learn it";
            return Err(Error::parameter("`known_covariance`", expected, "both"));
        }
        if let Some(got) = params.bandwidth {
            let expected = "left out for the cells decoder, which needs none";
            return Err(Error::parameter("`bandwidth`", expected, got));
        }
        if context.plan().kernel != Kernel::Gaussian {
            let expected = "clompr or clomp for a sketch of another kernel than the Gaussian";
            return Err(Error::parameter("`decoder`", expected, "cells"));
        }
        if !context.plan().collect.cells {
            return Err(Error::MissingSums { task: params.task.name(), what: "cells".into() });
        }
        let (kind, _) = context.covariance(params);
        if params.task == Task::Gmm && kind.is_matrix() {
            let points = context.witnessed().map_or(0, StandIns::len).max(1000);
            let (d, steps) = (context.plan().dims(), params.max_iterations);
            work(kind, points, params.k, d, params.restarts, steps)
                .check("learning full covariances of so many columns")?;
        }
        let available = context.sketch().sums()[Sum::CellRows].iter().filter(|n| **n > 0).count();
        if params.k > available {
            return Err(Error::TooFewCells { k: params.k, available });
        }
        Ok(())
    }

    fn centres(&self, job: &mut Job<'_>) -> Result<Vec<Atom>> {
        let (cells, loss) = (job.context.clustered(), job.params.task.loss());
        let (warm, k) = (in_space(cells, job.start.centres), job.params.k);
        let effort = effort(k, job.params.threads);
        let (rng, report) = (&mut job.rng, &mut job.report);
        // Only the cells know the levels of rows with missing values.
        let both = job.context.plan().is_partial() && !job.context.plan().categories().is_empty();
        let centres = match job.context.witness_points(false).filter(|_| !both) {
            points if job.start.mode == Mode::Converge => standstill(
                points
                    .cloned()
                    .unwrap_or_else(|| job.context.clustered_unfolded().weighted_means()),
                warm,
                loss,
                report,
            ),
            Some(points) => on_witnesses(cells, points, k, loss, effort, &warm, rng, report),
            None => cells.cluster(k, loss, effort, &warm, rng, report),
        };
        let mut atoms = match job.context.witness_points(true) {
            Some(points) => weighted(points, centres),
            None => weighted(&cells.weighted_means(), centres),
        };
        if atoms.len() < k {
            let found = atoms.len();
            job.report.notes.push(format!(
                "the sketch tells only {found} points apart, so there are {found} centres instead \
                 of {k}"
            ));
        }
        let plan = job.context.plan();
        for atom in &mut atoms {
            let coordinates = atom.mean.split_off(plan.dims());
            atom.levels = plan.recipe.shares(&coordinates);
            atom.covariance = Covariance::Diagonal(vec![0.0; plan.dims()]);
        }
        Ok(atoms)
    }

    fn mixture(&self, job: &mut Job<'_>) -> Result<Vec<Atom>> {
        let (params, kind) = (job.params, job.kind);
        let cells = if params.min_variance == DEFAULT_MIN_VARIANCE {
            Cow::Borrowed(job.context.cells())
        } else {
            Cow::Owned(job.context.cells().clone().floored(params.min_variance))
        };
        let alone = kind == CovarianceKind::Diag && job.start.centres.is_empty();
        if alone && job.context.witnessed().is_none() && job.context.is_plain() {
            if params.of_search().iter().any(|(name, _)| *name != "`min_variance`") {
                let note =
                    "starts, steps and tolerance of EM are for witness rows, which are not at hand";
                job.report.notes.push(note.into());
            }
            let effort = Effort::new(params.restarts, params.max_iterations);
            return Ok(cells.mixture(params.k, effort, &mut job.rng, &mut job.report));
        }
        let points = job.context.stand_ins().expect("the decoder was checked to have cells");
        let search = Search {
            points: &points,
            coarse: &job.context.clustered().weighted_means(),
            kind,
            floor: cells.floor(),
            restarts: params.restarts,
            until: Until { steps: params.max_iterations, tolerance: params.tolerance },
            threads: params.threads,
        };
        let found = searched(job, &search);
        let report = &mut job.report;
        report.iterations += found.ended.steps;
        report.objective.push(-found.ended.likelihood);
        report.status = ended(found.ended.converged);
        report.shrinkage = found.shrinkage;
        let described = described(job, &cells, &search, &found);
        let held_out = if described.is_some() || points.are_all_rows() {
            None
        } else {
            search.held_out(&found)
        };
        let atoms = described.unwrap_or(found.atoms);
        estimate(job, &points, &atoms, held_out);
        Ok(atoms)
    }
}

/// Finds centres on the cells, from several starts, and refines them on the retained rows: cell
/// sums do not show on which side of a border a row lies, or which of its values are missing.
#[expect(clippy::too_many_arguments, reason = "what a search for centres takes")]
fn on_witnesses(
    cells: &Cells,
    points: &WeightedPoints,
    k: usize,
    loss: Loss,
    effort: Effort,
    warm: &[Vec<f64>],
    rng: &mut ChaCha8Rng,
    report: &mut Report,
) -> Vec<Vec<f64>> {
    let means = cells.centred_means();
    let one = Effort { restarts: 1, ..effort };
    let short = Effort { iterations: RACE, ..effort };
    let given = warm.len() == k;
    let (mut best, mut min_risk) = (Vec::new(), f64::INFINITY);
    for run in 0..if given { 1 } else { effort.restarts } {
        let warm = if run == 0 { warm } else { &[] };
        let (_, mut centres) = means.cluster_from(k, loss, one, warm, rng);
        if centres.len() < k {
            // If the sums have a coarse resolution, cells can coincide although their rows differ.
            centres = points.grow(centres, k, rng);
        }
        points.iterate(&mut centres, loss, short);
        let risk = points.risk(&centres, loss);
        if risk < min_risk || run == 0 {
            (min_risk, best) = (risk, centres);
        }
    }
    report.objective.push(min_risk);
    report.iterations += points.iterate(&mut best, loss, effort);
    report.objective.push(points.risk(&best, loss));
    report.status = ended(report.iterations < effort.iterations);
    best
}

/// Iterates centres to convergence.
fn standstill(
    points: WeightedPoints,
    mut centres: Vec<Vec<f64>>,
    loss: Loss,
    report: &mut Report,
) -> Vec<Vec<f64>> {
    let effort = Effort { tolerance: 0.0, ..Effort::new(1, STANDSTILL) };
    report.iterations += points.iterate(&mut centres, loss, effort);
    report.objective.push(points.risk(&centres, loss));
    report.status = ended(report.iterations < STANDSTILL);
    centres
}

/// Appends the mean levels of all rows to centres that have numeric columns only.
fn in_space(cells: &Cells, warm: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let points = cells.weighted_means();
    let mass = points.mass();
    let mut warm = warm.to_vec();
    for centre in &mut warm {
        centre.extend(
            (centre.len()..points.dims())
                .map(|k| points.iter().map(|(x, w)| w * x[k]).sum::<f64>() / mass),
        );
    }
    warm
}

/// Returns the best mixture that EM finds. Its covariances are shrunk if the retained rows are too
/// few to estimate them.
fn searched(job: &mut Job<'_>, search: &Search<'_>) -> Found {
    let k = job.params.k;
    let found = if job.start.centres.is_empty() {
        let grown = search.grown(job.start.smaller, &mut job.rng);
        search.best(k, grown, false, &mut job.rng)
    } else {
        let start = search.lifted(given(job, search.points));
        search.best(k, vec![start], true, &mut job.rng)
    };
    let numbers = search.kind.parameters(k, job.context.plan().dims());
    let witnesses = search.points.witnesses();
    let carried = numbers as f64 <= CARRIED * witnesses as f64;
    if search.kind != CovarianceKind::Full || carried || witnesses == 0 {
        return found;
    }
    let found = search.shrunk(found);
    let drawn = if found.shrinkage > 0.0 {
        ", so correlations were drawn towards those of all components"
    } else {
        ""
    };
    job.report.notes.push(format!(
        "full covariances have {numbers} numbers here, more than a tenth of the {witnesses} \
         witness rows{drawn}"
    ));
    found
}

/// Returns the diagonal mixture that describes the cells, unless the retained rows contradict it.
fn described(
    job: &mut Job<'_>,
    cells: &Cells,
    search: &Search<'_>,
    found: &Found,
) -> Option<Vec<Atom>> {
    let points = search.points;
    let wide = job.context.plan().dims() > DESCRIBED;
    let is_given = !job.start.centres.is_empty();
    if search.kind != CovarianceKind::Diag || is_given || points.are_all_rows() || wide {
        return None;
    }
    let other = cells.describe(job.params.k, &mut job.rng)?.atoms;
    let likelihood = points.mean(&PointDensities::new(points, &other).log_density).0;
    // The mixture that was fitted to the retained rows is more likely on them by chance alone.
    let numbers = search.kind.parameters(job.params.k, job.context.plan().dims());
    let chance = numbers as f64 / points.witnesses().max(1) as f64;
    (likelihood > found.ended.likelihood - chance).then_some(other)
}

/// Estimates the likelihood and the density quantiles of the rows, from all points and from halves.
fn estimate(job: &mut Job<'_>, points: &StandIns, atoms: &[Atom], held_out: Option<HeldOut>) {
    if points.witnesses() == 0 {
        return;
    }
    let (sketch, plan) = (job.context.sketch(), job.context.plan());
    let found = PointDensities::new(points, atoms);
    let optimism = held_out.as_ref().map_or(0.0, |h| h.optimism);
    let (mean, error) = points.mean(&found.log_density);
    // For retained rows that are also rows of this sketch, the in-sample value is correct. Whether
    // they are is unknown, so only half of their share of the optimism is subtracted, and the other
    // half is added to the error.
    let contained = 0.5 * (points.witnesses() as f64 / sketch.weight()).min(1.0);
    let error = 1.96 * error.hypot(OPTIMISM_ERROR * optimism) + contained * optimism;
    // Retained rows are stored in single precision.
    let error = error.max(1e-5 * mean.abs());
    let optimism = (1.0 - contained) * optimism;
    let logs = plan.frame.log_scale();
    let entropy = points.mean(&found.entropy).0;
    job.report.likelihood = Some(Likelihood::new(mean - optimism - logs, error, entropy));
    job.report.sketch = Some(job.context.digest().to_string());
    let in_table = in_table_units(&found.log_density, logs);
    job.densities = Densities::new(&in_table, points.weights());
    let Some(densities) = &mut job.densities else { return };
    densities.estimated_by(points.witnesses(), |threshold| {
        let below: Vec<f64> =
            in_table.iter().map(|l| f64::from(u8::from(*l < threshold))).collect();
        points.mean(&below).1
    });
    if let Some(held_out) = held_out
        && let Some(other) =
            Densities::new(&in_table_units(&held_out.log_density, logs), &held_out.weights)
    {
        densities.move_towards(&other, HELD_OUT * (1.0 - contained));
    }
}

/// Returns the logarithms minus the log scale of the coordinates: log densities in the table's
/// units.
fn in_table_units(logs: &[f64], log_scale: f64) -> Vec<f64> {
    logs.iter().map(|log| log - log_scale).collect()
}
