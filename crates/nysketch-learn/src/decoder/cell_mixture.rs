//! k-means, k-medians and mixtures on cells.
//!
//! A mixture is refined in rounds: it unfolds the cells, and EM refits it to the resulting points.

use super::cells::Cells;
use super::em::{Em, Shaped, TOLERANCE, Until};
use crate::atom::Atom;
use crate::covariance::CovarianceKind;
use crate::model::report::{Report, Status};
use nysketch_core::kmeans::{Effort, Loss, members};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

/// Largest number of centres for which a mixture is fitted to shape the cells: the cost of each
/// round grows with it.
const DESCRIBED: usize = 50;
/// Number of starts of a mixture.
const STARTS: usize = 3;
/// Rounds of unfolding and fitting for each start before only the best continues.
const RACE: usize = 4;
/// Maximum number of rounds of unfolding by a mixture and refitting it.
const ROUNDS: usize = 20;
/// First round whose mixture enters the average.
const AVERAGED_FROM: usize = 10;
/// EM steps on cells unfolded without a mixture, before a mixture unfolds them.
const FIRST_STEPS: usize = 10;
/// EM steps per round.
const STEPS: usize = 5;
/// Rounds end when the mean log-likelihood changes by less than this, in nats, twice in a row. Then
/// no border cuts a cell, and the random draws do not matter.
const SETTLED: f64 = 2e-4;
/// EM steps on cells unfolded without a mixture, if no mixture describes them.
const PLAIN_STEPS: usize = 50;

/// Returns the status of an iteration that did or did not converge.
pub(super) fn ended(converged: bool) -> Status {
    if converged { Status::Converged } else { Status::IterationLimit }
}

impl Cells {
    /// Runs EM on the cells or on the points into which they were unfolded.
    fn em(&self, atoms: &mut [Atom], steps: usize) -> (f64, usize) {
        let shaped = Shaped { kind: CovarianceKind::Diag, floor: &self.floor, shrinkage: 0.0 };
        let em = Em::new(&self.rows, &self.means, &self.variances, shaped);
        let ended = em.run(atoms, Until { steps, tolerance: TOLERANCE });
        (ended.likelihood, ended.steps)
    }

    /// Returns k centres of small risk. They are found on cell means, from several starts, one of
    /// which adds centres to the `warm` ones; if there are k `warm` centres, only from those. They
    /// are then refined on unfolded cells, so that a cell which a border cuts contributes to both
    /// sides.
    pub fn cluster(
        &self,
        k: usize,
        loss: Loss,
        effort: Effort,
        warm: &[Vec<f64>],
        rng: &mut impl rand::Rng,
        report: &mut Report,
    ) -> Vec<Vec<f64>> {
        let (risk, mut centres) = self.centred_means().cluster_from(k, loss, effort, warm, rng);
        report.objective.push(risk);
        let unfolded = self.unfold_around(&centres, rng).weighted_means().on(self.spheres.clone());
        report.iterations += unfolded.iterate(&mut centres, loss, effort);
        report.objective.push(unfolded.risk(&centres, loss));
        report.status = ended(report.iterations < effort.iterations);
        centres
    }

    /// Unfolds the cells by a mixture that starts at these centres, if a mixture describes them.
    fn unfold_around(&self, centres: &[Vec<f64>], rng: &mut impl rand::Rng) -> Cells {
        let plain = self.unfold(rng);
        if centres.len() < 2 || centres.len() > DESCRIBED || !self.can_be_described() {
            return plain;
        }
        let mut mixture = CellMixture::new(self.atoms_around(centres));
        plain.em(&mut mixture.atoms, FIRST_STEPS);
        self.refine(&mut mixture, ROUNDS, rng);
        self.unfold_by(&mixture.atoms, rng).unwrap_or(plain)
    }

    /// Returns a mixture that describes the cells, with its mean log-likelihood on them, if there
    /// is one. Starts are compared on unfolded cells, because on the cells themselves the
    /// likelihood favours components that cut no cell.
    pub(super) fn describe(&self, k: usize, rng: &mut impl rand::Rng) -> Option<CellMixture> {
        if !self.can_be_described() {
            return None;
        }
        let (means, plain) = (self.weighted_means(), self.unfold(rng));
        let mut best: Option<CellMixture> = None;
        for start in 0..STARTS {
            let effort = Effort::new(if start == 0 { 10 } else { 2 }, 50);
            let centres = means.cluster(k, Loss::Squared, effort, rng);
            let mut mixture = CellMixture::new(self.atoms_around(&centres));
            plain.em(&mut mixture.atoms, FIRST_STEPS);
            self.refine(&mut mixture, RACE, rng);
            // The mixture settled, so each cell belongs to one component and the best of many
            // k-means runs has found the components.
            let done = mixture.settled();
            if mixture.likelihood > best.as_ref().map_or(f64::NEG_INFINITY, |b| b.likelihood) {
                best = Some(mixture);
            }
            if done {
                break;
            }
        }
        let mut mixture = best?;
        self.refine(&mut mixture, ROUNDS, rng);
        Some(mixture)
    }

    /// Alternates unfolding the cells by a mixture and refitting it, until the likelihood settles,
    /// the given number of rounds is done, or the mixture no longer describes the cells.
    fn refine(&self, mixture: &mut CellMixture, rounds: usize, rng: &mut impl rand::Rng) {
        while mixture.rounds < rounds && !mixture.settled() {
            let Some(unfolded) = self.unfold_by(&mixture.atoms, rng) else { break };
            let likelihood = unfolded.em(&mut mixture.atoms, STEPS).0;
            mixture.round(likelihood);
        }
        if let Some(mean) = mixture.mean.take() {
            mixture.atoms = mean;
        }
    }

    /// Fits a diagonal Gaussian mixture: one that describes the cells if there is one, otherwise
    /// the best of several EM runs in which a cell represents rows with its mean and variance.
    pub fn mixture(
        &self,
        k: usize,
        effort: Effort,
        rng: &mut impl rand::Rng,
        report: &mut Report,
    ) -> Vec<Atom> {
        if let Some(found) = self.describe(k, rng) {
            report.iterations += found.rounds;
            report.objective.push(-found.likelihood);
            let done = found.settled() || found.rounds == ROUNDS;
            report.status = ended(done);
            return found.atoms;
        }
        let mut best: Option<Run> = None;
        for _ in 0..effort.restarts {
            let effort_of_start = Effort::new(2, 50);
            let centres = self.weighted_means().cluster(k, Loss::Squared, effort_of_start, rng);
            let mut atoms = self.atoms_around(&centres);
            let (likelihood, steps) = self.em(&mut atoms, effort.iterations);
            if best.as_ref().is_none_or(|best| likelihood > best.likelihood) {
                best = Some(Run { atoms, likelihood, steps });
            }
        }
        let Run { mut atoms, mut likelihood, mut steps } = best.unwrap_or_default();
        if self.have_variance() {
            let (found, more) = self.unfold(rng).em(&mut atoms, PLAIN_STEPS);
            likelihood = found;
            steps += more;
        }
        report.iterations += steps;
        report.objective.push(-likelihood);
        report.status = ended(steps < effort.iterations);
        atoms
    }

    /// Returns the mean log-likelihood of a mixture on the cells, or on the points if these are
    /// points.
    pub(crate) fn plain_likelihood(&self, atoms: &[Atom]) -> f64 {
        self.em(&mut atoms.to_vec(), 1).0
    }

    /// Returns the mean log-likelihood of a mixture on the cells unfolded without a mixture.
    pub fn likelihood(&self, atoms: &[Atom]) -> f64 {
        self.unfold_with_fixed_seed().plain_likelihood(atoms)
    }

    /// Returns the mean log-likelihood of a mixture on the cells, unfolded by this mixture if it
    /// describes them. This is closer to the likelihood on the rows.
    pub fn own_likelihood(&self, atoms: &[Atom]) -> f64 {
        match self.unfold_by(atoms, &mut ChaCha8Rng::seed_from_u64(0)) {
            Some(unfolded) => unfolded.plain_likelihood(atoms),
            None => self.likelihood(atoms),
        }
    }

    /// Returns one atom per centre, fitted to the cells nearest to it.
    fn atoms_around(&self, centres: &[Vec<f64>]) -> Vec<Atom> {
        let d = self.dims;
        let total: f64 = self.rows.iter().sum();
        let mut atoms = Vec::with_capacity(centres.len());
        for (centre, members) in centres.iter().zip(members(d, &self.means, centres)) {
            let mass: f64 = members.iter().map(|i| self.rows[*i]).sum();
            let (mut mean, mut variance) = (centre.clone(), vec![1.0; d]);
            for k in (0..d).filter(|_| mass > 0.0) {
                let (mut moved, mut within, mut spread) = (0.0, 0.0, 0.0);
                for i in &members {
                    let (rows, at) = (self.rows[*i], i * d + k);
                    moved += rows * (self.means[at] - centre[k]);
                    within += rows * self.variances.get(at).copied().unwrap_or(0.0);
                }
                mean[k] += moved / mass;
                for i in &members {
                    spread += self.rows[*i] * (self.means[i * d + k] - mean[k]).powi(2);
                }
                variance[k] = (spread / mass + within / mass).max(self.floor.variances()[k]);
            }
            atoms.push(Atom::diagonal(mass / total, mean, variance));
        }
        atoms
    }
}

/// The result of an EM run on the cells.
#[derive(Default)]
struct Run {
    atoms: Vec<Atom>,
    likelihood: f64,
    steps: usize,
}

/// A mixture that is being fitted to the cells.
#[derive(Debug)]
pub(super) struct CellMixture {
    pub(super) atoms: Vec<Atom>,
    /// Mean log-likelihood in the last round.
    likelihood: f64,
    rounds: usize,
    /// Consecutive rounds in which the likelihood barely changed.
    still: usize,
    /// Average over the last rounds, which cancels much of the noise of the draws.
    mean: Option<Vec<Atom>>,
}

impl CellMixture {
    fn new(atoms: Vec<Atom>) -> Self {
        CellMixture { atoms, likelihood: f64::NEG_INFINITY, rounds: 0, still: 0, mean: None }
    }

    fn settled(&self) -> bool {
        self.still == 2
    }

    /// Records the end of a round with this likelihood.
    fn round(&mut self, likelihood: f64) {
        let near = (likelihood - self.likelihood).abs() < SETTLED;
        self.still = if near { self.still + 1 } else { 0 };
        self.likelihood = likelihood;
        if self.rounds >= AVERAGED_FROM {
            let share = 1.0 / (self.rounds - AVERAGED_FROM + 1) as f64;
            average(self.mean.get_or_insert_with(|| self.atoms.clone()), &self.atoms, share);
        }
        self.rounds += 1;
    }
}

/// Moves a mean towards other atoms by this share of the difference.
fn average(mean: &mut [Atom], atoms: &[Atom], share: f64) {
    for (mean, atom) in mean.iter_mut().zip(atoms) {
        mean.weight += share * (atom.weight - mean.weight);
        mean.mean.iter_mut().zip(&atom.mean).for_each(|(m, x)| *m += share * (x - *m));
        let variances = mean.variance_mut().iter_mut().zip(atom.variance());
        variances.for_each(|(m, x)| *m += share * (x - *m));
    }
}
