//! The mixture that the user gave as the start of EM.

use super::decode::Job;
use super::stand_ins::StandIns;
use crate::atom::Atom;
use crate::covariance::Covariance;

/// Returns atoms in the plan's coordinates around the means of the job. Weights and covariances
/// that were not given are computed from the points nearest to each mean.
pub(super) fn given(job: &Job<'_>, points: &StandIns) -> Vec<Atom> {
    let (params, matrices) = (job.params, job.kind.is_matrix());
    let mut atoms = points.atoms_around(job.start.centres, matrices);
    let total: f64 = params.init_weights.iter().sum();
    for (atom, weight) in atoms.iter_mut().zip(&params.init_weights) {
        atom.weight = weight / total;
    }
    let inverse: Vec<f64> = job.context.plan().frame.scale.iter().map(|s| 1.0 / s).collect();
    let given = params.init_covariances.iter().zip(job.start.centres);
    for (atom, (covariance, mean)) in atoms.iter_mut().zip(given) {
        let covariance = covariance.scaled(&inverse);
        atom.covariance = if matrices {
            covariance.to_matrix()
        } else {
            Covariance::Diagonal(covariance.variances().into_owned())
        };
        // The covariance refers to the given mean, not to the mean of the points.
        atom.mean.clone_from(mean);
    }
    atoms
}
