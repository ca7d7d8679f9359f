//! The decoder `kernel`: centres and mixtures from kernel sums.

use super::by_pursuit::{check_kernel_sums, chosen_rung};
use super::calibrate::{self, weighted};
use super::cells::Cells;
use super::context::Context;
use super::decode::{Decode, Job};
use super::em::Floor;
use super::kernel::Matcher;
use super::params::FitParams;
use crate::atom::Atom;
use crate::model::report::{Report, Status};
use crate::model::task::Task;
use nysketch_core::error::{Error, Result};
use nysketch_core::kernel::Kernel;
use nysketch_core::kmeans::{Effort, WeightedPoints};

const EFFORT: Effort = Effort::new(20, 200);
/// Largest risk difference attributed to chance, as a share of the risk of k-means on calibrated
/// landmarks.
const MOST_CHANCE: f64 = 0.15;

/// Fits atoms of a learned width to the kernel sums.
pub struct KernelDecoder;

impl Decode for KernelDecoder {
    fn check(&self, context: &Context<'_>, params: &FitParams) -> Result<()> {
        if context.plan().kernel != Kernel::Gaussian {
            let expected = "clompr or clomp for a sketch of another kernel than the Gaussian";
            return Err(Error::parameter("`decoder`", expected, "kernel"));
        }
        check_kernel_sums(context, params)?;
        if context.calibrated()?.is_some_and(WeightedPoints::is_empty) {
            let expected = "another, or the plan one of such rows: these are too far from all \
                            landmarks for kernel sums";
            return Err(Error::parameter("`decoder`", expected, "kernel"));
        }
        Ok(())
    }

    fn centres(&self, job: &mut Job<'_>) -> Result<Vec<Atom>> {
        if job.context.plan().landmarks().is_none() {
            return without_landmarks(job);
        }
        let (matcher, k, task) = (matcher(job)?, job.params.k, job.params.task);
        let matched = matcher.shared_diagonal(&mut job.rng, &mut job.report);
        let Some(calibrated) = matcher.calibrated else {
            return Ok(matched);
        };
        let loss = task.loss();
        let plain = calibrated.cluster(k, loss, EFFORT, &mut job.rng);
        let means: Vec<Vec<f64>> = matched.iter().map(|a| a.mean.clone()).collect();
        // Below about k(d+1) moments, matching is arbitrary. Atoms whose risk on the calibrated
        // landmarks exceeds that of k-means by more than chance explains have not found the
        // clusters.
        let chance = 1.0 + (2.0 * k as f64 / calibrated.effective()).min(MOST_CHANCE);
        let sound = calibrated.risk(&means, loss) <= chance * calibrated.risk(&plain, loss);
        if task == Task::Kmeans && matcher.enough_moments() && sound {
            return Ok(matched);
        }
        from_landmarks(&mut job.report);
        if task == Task::Kmedians {
            // The k-means centres serve as one more start.
            let (mean_risk, medians) =
                calibrated.cluster_from(k, loss, EFFORT, &means, &mut job.rng);
            if mean_risk < calibrated.risk(&plain, loss) {
                return Ok(weighted(calibrated, medians));
            }
        }
        Ok(weighted(calibrated, plain))
    }

    fn mixture(&self, job: &mut Job<'_>) -> Result<Vec<Atom>> {
        if job.context.plan().landmarks().is_none() {
            return without_landmarks(job);
        }
        let (matcher, k) = (matcher(job)?, job.params.k);
        let (rng, report) = (&mut job.rng, &mut job.report);
        if let Some(known) = &job.known {
            return Ok(matcher.known_variance(known, rng, report));
        }
        let Some(calibrated) = matcher.calibrated else {
            return Ok(matcher.mixture(rng, report));
        };
        let floor = least_variances(job.context, calibrated, job.params.min_variance);
        let learned = calibrate::mixture(calibrated, k, &floor, job.params);
        if learned.atoms.len() == k && !matcher.enough_moments() {
            from_landmarks(report);
            return Ok(learned.atoms);
        }
        let mut atoms = matcher.mixture(rng, report);
        atoms.iter_mut().for_each(|a| floor.lift(&mut a.covariance));
        if learned.atoms.len() < k {
            return Ok(atoms);
        }
        // Landmarks are rows. If they are less likely under this mixture than other rows are under
        // a mixture fitted to landmarks, it has not found the clusters, or it has lost variances
        // that the sketch cannot determine.
        if Cells::of_points(calibrated).likelihood(&atoms) >= learned.likelihood {
            return Ok(atoms);
        }
        from_landmarks(report);
        Ok(learned.atoms)
    }
}

/// Returns a share of the variance of each column: the variance of the rows if the sketch contains
/// it, because the landmarks may all have the same value.
fn least_variances(context: &Context<'_>, points: &WeightedPoints, share: f64) -> Floor {
    let of_points = Cells::of_points(points).floor_at(share);
    let Some(of_rows) = context.floor_of_moments(share) else { return of_points };
    let pairs = of_points.variances().iter().zip(of_rows.variances());
    Floor::new(pairs.map(|(p, r)| p.max(*r)).collect())
}

/// Records that the model comes from calibrated landmarks. These have no bandwidth, because they
/// match the sums at all bandwidths.
fn from_landmarks(report: &mut Report) {
    report.calibrated = true;
    report.bandwidth = None;
}

/// Returns the matcher at the chosen bandwidth.
fn matcher<'a>(job: &mut Job<'a>) -> Result<Matcher<'a>> {
    let rung = chosen_rung(job.context, job.params)?;
    job.report.bandwidth = Some(job.context.plan().bandwidths[rung]);
    let matcher = matcher_at(job.context, job.params, rung)?;
    job.report.rank = Some(matcher.embedding.rank());
    Ok(matcher)
}

fn matcher_at<'a>(
    context: &'a Context<'_>,
    params: &FitParams,
    rung: usize,
) -> Result<Matcher<'a>> {
    Ok(Matcher {
        embedding: context.embedding(rung)?,
        space: context.space(),
        k: params.k,
        rows: context.sketch().weight().max(1.0),
        calibrated: context.calibrated()?,
    })
}

/// The atoms of one bandwidth.
#[derive(Default)]
struct Tried {
    /// The difference of their moments from those of the data.
    mismatch: f64,
    atoms: Vec<Atom>,
    report: Report,
}

/// Decodes a Fourier sketch. It has no landmarks on which to estimate a risk, so each bandwidth is
/// decoded, and the atoms are kept whose mean and variances are nearest to those of the data, which
/// the sketch knows exactly.
fn without_landmarks(job: &mut Job<'_>) -> Result<Vec<Atom>> {
    let (context, params) = (job.context, job.params);
    let plan = context.plan();
    let bandwidths = &plan.bandwidths;
    let rungs = match params.bandwidth {
        None if plan.collect.moments => (0..bandwidths.len()).collect(),
        None => vec![bandwidths.len() / 2],
        Some(_) => vec![chosen_rung(context, params)?],
    };
    let mut best: Option<Tried> = None;
    for rung in rungs {
        let matcher = matcher_at(context, params, rung)?;
        let (bandwidth, rank) = (Some(bandwidths[rung]), Some(matcher.embedding.rank()));
        let mut report = Report { bandwidth, rank, ..job.report.clone() };
        let rng = &mut job.rng;
        let atoms = match (params.task, &job.known) {
            (Task::Gmm, Some(known)) => matcher.known_variance(known, rng, &mut report),
            (Task::Gmm, None) => matcher.mixture(rng, &mut report),
            _ => matcher.shared_diagonal(rng, &mut report),
        };
        if !matcher.enough_moments() {
            report.status = Status::TooFewMoments;
        }
        let mismatch = context.space().mismatch(&atoms);
        if best.as_ref().is_none_or(|best| mismatch < best.mismatch) {
            best = Some(Tried { mismatch, atoms, report });
        }
    }
    let Tried { atoms, report, .. } = best.unwrap_or_default();
    job.report = report;
    Ok(atoms)
}
