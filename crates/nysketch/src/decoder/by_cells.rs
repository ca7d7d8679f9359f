//! The decoder `cells`.

use super::calibrate::weighted;
use super::context::Context;
use super::decode::{Decode, Job};
use super::params::FitParams;
use crate::atom::Atom;
use crate::error::{Error, Result};
use crate::kernel::Kernel;
use crate::sums::Sum;
use crate::weighted::Effort;

const EFFORT: Effort = Effort { restarts: 20, iterations: 200 };
const EM_EFFORT: Effort = Effort { restarts: 5, iterations: 500 };

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
        let cells = job.context.cells();
        Ok(cells.mixture(job.params.k, EM_EFFORT, &mut job.rng, &mut job.report))
    }
}
