//! The decoder `cells`.

use super::calibrate::weighted;
use super::context::Context;
use super::decode::{Decode, Job};
use super::em::Until;
use super::given::given;
use super::likelihood::Said;
use super::params::FitParams;
use super::search::{CARRIED, Found, Search};
use super::stand_ins::StandIns;
use crate::atom::Atom;
use crate::covariance::CovarianceKind;
use crate::error::{Error, Result};
use crate::kernel::Kernel;
use crate::report::{Likelihood, Status};
use crate::sums::Sum;
use crate::weighted::Effort;
use std::borrow::Cow;

const EFFORT: Effort = Effort { restarts: 20, iterations: 200 };
/// How far the optimism of a likelihood may be off, as a share of it.
const OPTIMISM_ERROR: f64 = 0.3;

/// Learns from count, mean and variance of the cells.
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
        let available = context.sketch().sums()[Sum::CellRows].iter().filter(|n| **n > 0).count();
        if params.k > available {
            let what = "cells with rows";
            return Err(Error::TooManyComponents { k: params.k, available, what });
        }
        Ok(())
    }

    fn centres(&self, job: &mut Job<'_>) -> Result<Vec<Atom>> {
        let (cells, loss) = (job.context.cells(), job.params.task.loss());
        let (rng, report) = (&mut job.rng, &mut job.report);
        let centres = cells.cluster(job.params.k, loss, EFFORT, job.warm, rng, report);
        Ok(weighted(&cells.weighted_means(), centres))
    }

    fn mixture(&self, job: &mut Job<'_>) -> Result<Vec<Atom>> {
        let (params, kind) = (job.params, job.kind);
        let cells = job.context.cells().clone().floored(params.min_variance);
        let points = match job.context.witnessed() {
            Some(points) => Cow::Borrowed(points),
            None if kind == CovarianceKind::Diag && job.warm.is_empty() => {
                let effort =
                    Effort { restarts: params.restarts, iterations: params.max_iterations };
                return Ok(cells.mixture(params.k, effort, &mut job.rng, &mut job.report));
            }
            None => {
                let unfolded = job.context.unfolded().weighted_means();
                Cow::Owned(StandIns::of_points(unfolded.dims(), unfolded.iter()))
            }
        };
        let search = Search {
            points: &points,
            coarse: &cells.weighted_means(),
            kind,
            floor: cells.floor(),
            restarts: params.restarts,
            until: Until { steps: params.max_iterations, tolerance: params.tolerance },
            threads: params.threads,
        };
        let mut found = match job.warm.is_empty() {
            true => {
                let grown = search.grown(job.smaller, &mut job.rng);
                search.best(params.k, grown, false, &mut job.rng)
            }
            false => {
                let start = search.lifted(given(job, &points));
                search.best(params.k, vec![start], true, &mut job.rng)
            }
        };
        let numbers = kind.parameters(params.k, job.context.plan().dims());
        let witnesses = points.witnesses();
        let carried = numbers as f64 <= CARRIED * witnesses as f64;
        if kind == CovarianceKind::Full && !carried && witnesses > 0 {
            found = search.shrunk(found);
            job.report.notes.push(format!(
                "{numbers} numbers from {witnesses} witness rows: the rows do not carry the model well{}",
                if found.shrinkage > 0.0 { ", so correlations were drawn towards those of all components" } else { "" },
            ));
        }
        let report = &mut job.report;
        report.iterations += found.ended.steps;
        report.objective.push(-found.ended.likelihood);
        report.status =
            if found.ended.converged { Status::Converged } else { Status::IterationLimit };
        report.shrinkage = found.shrinkage;
        let chance = numbers as f64 / witnesses.max(1) as f64;
        let described = match kind {
            CovarianceKind::Diag if job.warm.is_empty() && !points.are_all_rows() => {
                cells.describe(params.k, &mut job.rng)
            }
            _ => None,
        };
        let mut optimism = None;
        if let Some(other) = described {
            let likelihood = points.mean(&Said::new(&points, &other.atoms).log_density).0;
            // The one that was fitted to the witnesses is more likely on them by chance alone.
            if likelihood > found.ended.likelihood - chance {
                found = Found { atoms: other.atoms, ..found };
                optimism = Some(0.0);
            }
        }
        let said = Said::new(&points, &found.atoms);
        let optimism = match optimism {
            Some(optimism) => optimism,
            None if points.are_all_rows() || witnesses == 0 => 0.0,
            None => {
                let rows = job.context.sketch().rows() as f64;
                let weighted = job.context.plan().weighting.is_some();
                let seen = if weighted { 0.0 } else { (witnesses as f64 / rows).min(1.0) };
                search.optimism(&found) * (1.0 - seen)
            }
        };
        if witnesses > 0 {
            let (mean, error) = points.mean(&said.log_density);
            let error = 1.96 * error.hypot(OPTIMISM_ERROR * optimism);
            let logs: f64 = job.context.plan().frame.scale.iter().map(|s| s.ln()).sum();
            let mean = mean - optimism - logs;
            let entropy = points.mean(&said.entropy).0;
            job.report.likelihood = Some(Likelihood::new(mean, error, entropy));
        }
        Ok(found.atoms)
    }
}
