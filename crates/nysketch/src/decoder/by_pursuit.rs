//! The decoders `clompr` and `clomp`, and what all decoders of kernel sums have in common.

use super::clompr::Clompr;
use super::constraints::Constraints;
use super::context::Context;
use super::decode::{Decode, Job};
use super::params::FitParams;
use crate::atom::{Atom, Family};
use crate::error::{Error, Result};
use crate::kernel::Kernel;
use crate::kmeans::{Effort, Loss};
use crate::task::Task;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

/// Starts around the mean where there are no landmarks to start from.
const STARTS: usize = 500;

/// The paper's decoder, with replacement (CL-OMPR) or without (CL-OMP).
pub struct Pursuit {
    /// Whether atoms may be replaced.
    pub replacement: bool,
}

impl Decode for Pursuit {
    fn check(&self, context: &Context<'_>, params: &FitParams) -> Result<()> {
        let kernel = context.plan().kernel;
        if params.task == Task::Gmm && kernel != Kernel::Gaussian {
            let expected = "gaussian for a mixture of Gaussians";
            return Err(Error::parameter("`kernel`", expected, kernel.name()));
        }
        check_kernel_sums(context, params)
    }

    fn centres(&self, job: &mut Job<'_>) -> Result<Vec<Atom>> {
        self.pursue(job, Family::Dirac)
    }

    fn mixture(&self, job: &mut Job<'_>) -> Result<Vec<Atom>> {
        let family = job.known.clone().map_or(Family::Diagonal, Family::Known);
        self.pursue(job, family)
    }
}

impl Pursuit {
    fn pursue(&self, job: &mut Job<'_>, family: Family) -> Result<Vec<Atom>> {
        let (context, params) = (job.context, job.params);
        let rung = chosen_rung(context, params)?;
        job.report.bandwidth = Some(context.plan().bandwidths[rung]);
        let (embedding, space) = (context.embedding(rung)?, context.space());
        let d = embedding.dims();
        let starts: Vec<Vec<f64>> = match embedding.landmarks() {
            Some(landmarks) => landmarks.chunks_exact(d).map(<[f64]>::to_vec).collect(),
            None => (0..STARTS).map(|_| space.draw(&mut job.rng)).collect(),
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
            replacement: self.replacement,
            bounds: &space.bounds,
            variances: &space.variances,
            starts: &starts,
            constraints: Constraints {
                separation: params.separation,
                radius: params.radius,
                precision,
            },
            rows: context.sketch().rows() as f64,
        };
        let atoms = clompr.run(&mut job.rng, &mut job.report);
        if !clompr.constraints.hold(&atoms) {
            return Err(Error::NoRoom {
                k: params.k,
                separation: params.separation.unwrap_or(0.0),
                radius: params.radius,
            });
        }
        Ok(atoms)
    }
}

/// Refuses sketches without kernel sums, or with fewer than atoms.
pub fn check_kernel_sums(context: &Context<'_>, params: &FitParams) -> Result<()> {
    let plan = context.plan();
    if !plan.collect.kernel {
        return Err(Error::MissingSums { task: params.task.name(), what: "kernel".into() });
    }
    let available = plan.features_per_bandwidth();
    if params.k > available {
        let what = "kernel sums";
        return Err(Error::TooManyComponents { k: params.k, available, what });
    }
    Ok(())
}

/// The rung that was asked for, or else the best one.
pub fn chosen_rung(context: &Context<'_>, params: &FitParams) -> Result<usize> {
    match params.bandwidth {
        Some(sigma2) => context.plan().rung_of(sigma2),
        None => best_rung(context, params),
    }
}

/// The rung nearest, in ratio, to twice the risk that calibrated landmarks give; the middle one
/// where there are no landmarks and for other kernels than the Gaussian.
fn best_rung(context: &Context<'_>, params: &FitParams) -> Result<usize> {
    let bandwidths = &context.plan().bandwidths;
    let middle = bandwidths.len() / 2;
    if bandwidths.len() == 1 || context.plan().kernel != Kernel::Gaussian {
        return Ok(middle);
    }
    let Some(calibrated) = context.calibrated(middle)? else {
        return Ok(middle);
    };
    let mut rng = ChaCha8Rng::seed_from_u64(params.seed);
    let effort = Effort::new(2, 30);
    let centres = calibrated.cluster(params.k, Loss::Squared, effort, &mut rng);
    let wanted = 2.0 * calibrated.risk(&centres, Loss::Squared);
    let distance = |s: f64| (s / wanted).ln().abs();
    let nearest = (0..bandwidths.len())
        .min_by(|&a, &b| distance(bandwidths[a]).total_cmp(&distance(bandwidths[b])));
    Ok(nearest.filter(|_| wanted > 0.0).unwrap_or(middle))
}
