//! CL-OMPR and CL-OMP (Keriven et al. 2017): orthogonal matching pursuit with and without
//! replacement, which minimises ‖A(p) − A(π_n)‖² over mixtures p of k atoms.
//!
//! The mixture is built atom by atom in 2k rounds (k rounds without replacement):
//!
//! 1. `find_atom`: find the atom most correlated with the residual, by bounded ascent from several
//!    starts.
//! 2. `append`: add it to the mixture.
//! 3. `threshold`: if there are more than k atoms, keep the k with the largest weights.
//! 4. `fit_weights`: compute the weights by non-negative least squares.
//! 5. `refine`: optimise weights and atoms together by bounded L-BFGS.
//! 6. `residual`: compute the unexplained part r as its dual vector `v = M r`; the correlation of
//!    an atom f with r is fᵀv.
//!
//! Several pursuits are run, and the one with the smallest objective is kept. If it is a Gaussian
//! mixture and above the noise floor of the sketch,
//!
//! ```text
//! ‖A(p) − A(π_n)‖² > (1 − ‖A(π_n)‖²)/n ,
//! ```
//!
//! where the right side is the expected objective for rows drawn from the mixture itself, then a
//! cluster was missed if the clusters are Gaussian, and `replace` tries to find a better mixture.
//! It removes one atom, starting with the lightest, refines the others and repeats steps 1 to 5.
//! Changes that lower the objective are kept. It stops at the noise floor, or when each atom was
//! tried twice without success. Further rounds of the pursuit, which add an atom before they remove
//! one, rarely repair such a mixture. Mixtures at the noise floor are not changed. Mixtures of
//! Diracs are not changed either: clusters have a width and Diracs have none, so the objective of
//! k-means stays above the noise floor even for the best centres.
//!
//! The mixture that is kept is then polished, and its weights are divided by their sum. `region.rs`
//! determines where atoms start and the bounds within which they stay.
//!
//! Departure from the paper for Gaussians with individual diagonals: during the pursuit all atoms
//! share their variances up to a learned factor. After the pursuit one diagonal is learned for all
//! atoms, then one for each, with a prior as weak as the noise of the sketch for variances that the
//! sketch does not determine. With free diagonals from the start, the first atoms grow to cover
//! several clusters, or shrink to a point where the sketch has no resolution, and the pursuit ends
//! tens to thousands of nats from the data. For the same reason step 1 moves only the mean.
//!
//! Steps 1 and 5 end when five steps in a row gain less than 1e-4 of the objective (1e-3 while
//! there are fewer than k atoms). The next round and the final polish, which ends at 1e-8, do the
//! rest. Pursuits are compared at a tolerance of 1e-5, with shared variances: they differ in the
//! clusters that they found, which is visible long before convergence. The report states when a
//! pursuit ended at its limit of evaluations. Step 1 follows the best of 200 starts: following more
//! starts costs more than another pursuit and finds less.

use super::constraints::Constraints;
use super::explain::noise_floor;
use super::matching::{Matching, Objective, normal_equations};
use super::starts::Starts;
use crate::atom::embedding::Embedding;
use crate::atom::{Atom, Family};
use crate::model::report::Status;
use crate::optimize::{Minimum, Stop, minimise_each, nonnegative_quadratic};
use nysketch_core::kernel::Kernel;
use nysketch_core::numeric::linalg::dot;

/// Number of times that replacing each atom is tried without success.
const PASSES: usize = 2;
/// Minimum decrease of the objective by a replacement, as a share. A missed cluster accounts for
/// most of the objective.
const GAIN: f64 = 0.1;

/// The effort of each step.
#[derive(Debug, Clone, Copy)]
pub struct Steps {
    /// Number of starts that step 1 evaluates; it then follows the best `follow`.
    pub look: usize,
    /// See [`look`](Self::look).
    pub follow: usize,
    /// Stopping rule of step 1.
    pub find: Stop,
    /// Stopping rule of step 5 while there are fewer than k atoms.
    pub rough: Stop,
    /// Stopping rule of step 5 with k atoms.
    pub refine: Stop,
    /// Stopping rule of the last optimisation of a pursuit, before pursuits are compared.
    pub settle: Stop,
    /// Stopping rule of the final polish, and `shared` of the preceding polish with a shared
    /// diagonal.
    pub polish: Stop,
    /// See [`polish`](Self::polish).
    pub shared: Stop,
}

impl Steps {
    /// The default effort.
    pub const LONG: Steps = Steps {
        look: 200,
        follow: 1,
        find: Stop { evaluations: 100, relative: 1e-4 },
        rough: Stop { evaluations: 50, relative: 1e-3 },
        refine: Stop { evaluations: 100, relative: 1e-4 },
        settle: Stop { evaluations: 300, relative: 1e-5 },
        shared: Stop { evaluations: 300, relative: 1e-7 },
        polish: Stop { evaluations: 2000, relative: 1e-8 },
    };
}

/// The result of a pursuit.
#[derive(Debug, Clone)]
pub struct Pursued {
    /// The mixture.
    pub atoms: Vec<Atom>,
    /// The objective after each round, after the last optimisation, after each replaced atom, and
    /// after the polish.
    pub objective: Vec<f64>,
    /// How the last optimisation ended.
    pub status: Status,
    /// Number of evaluations of objective and gradient.
    pub evaluations: usize,
}

impl Pursued {
    /// Returns the latest objective, by which pursuits are compared before one is polished.
    pub fn value(&self) -> f64 {
        self.objective.last().copied().unwrap_or(f64::INFINITY)
    }
}

/// The problem and the settings of CL-OMPR.
#[derive(Debug, Clone)]
pub struct Clompr<'a> {
    /// The mean embedding of the data.
    pub embedding: &'a Embedding,
    /// The family of the atoms.
    pub family: Family,
    /// Number of atoms.
    pub k: usize,
    /// Whether to run 2k rounds with replacement, or k rounds without.
    pub replacement: bool,
    /// Bounds of the means.
    pub bounds: &'a [(f64, f64)],
    /// Minimum and maximum variance of each column.
    pub variances: &'a [(f64, f64)],
    /// The starts of atoms.
    pub starts: &'a Starts,
    /// The effort of each step.
    pub steps: Steps,
    /// Separation and radius.
    pub constraints: Constraints,
    /// Number of rows of the sketch.
    pub rows: f64,
}

impl Clompr<'_> {
    fn matching(&self) -> Matching<'_> {
        Matching {
            embedding: self.embedding,
            family: match &self.family {
                Family::Diagonal => Family::Scaled,
                other => other.clone(),
            },
            objective: objective_of(self.embedding),
            sum_to_one: 0.0,
            prior: 0.0,
            bounds: self.bounds,
            variances: self.variances,
            constraints: self.constraints.clone(),
        }
    }

    /// Returns the norm that divides the correlation of an atom, given f and M f: the norm in the
    /// space of the objective.
    fn norm(&self, features: &[f64], product: &[f64]) -> f64 {
        match objective_of(self.embedding) {
            Objective::Full => 1.0,
            Objective::Projected => dot(features, product).max(1e-24).sqrt(),
        }
    }

    /// Runs steps 1 to 6, then optimises until pursuits can be compared.
    pub fn pursue(&self, rng: &mut impl rand::Rng) -> Pursued {
        let matching = self.matching();
        let mut atoms: Vec<Atom> = Vec::new();
        let (mut objective, mut evaluations) = (Vec::new(), 0);
        let rounds = if self.replacement { 2 * self.k } else { self.k };
        let mut residual = self.residual(&atoms);
        for _ in 0..rounds {
            let (atom, tried) = self.find_atom(&residual, &atoms, rng);
            self.append(&mut atoms, atom);
            self.threshold(&mut atoms);
            matching.fit_weights(&mut atoms);
            let full = atoms.len() == self.k;
            let stop = if full { self.steps.refine } else { self.steps.rough };
            let minimum = matching.refine(&mut atoms, stop);
            self.constraints.project(&mut atoms);
            residual = self.residual(&atoms);
            objective.push(minimum.value);
            evaluations += tried + minimum.evaluations;
        }
        let minimum = matching.refine(&mut atoms, self.steps.settle);
        objective.push(minimum.value);
        evaluations += minimum.evaluations;
        Pursued { atoms, objective, status: minimum.status.into(), evaluations }
    }

    /// Replaces atoms while the objective is above the noise floor and decreases.
    pub fn replace(&self, mut found: Pursued, rng: &mut impl rand::Rng) -> Pursued {
        if self.family == Family::Dirac || !self.replacement {
            return found;
        }
        let noise = self.noise();
        let mut failed = 0;
        while failed < PASSES * found.atoms.len() && found.value() > noise {
            let (atoms, minimum) = self.replaced(&mut found, failed, rng);
            if minimum.value < (1.0 - GAIN) * found.value() {
                found.atoms = atoms;
                found.objective.push(minimum.value);
                found.status = minimum.status.into();
                failed = 0;
            } else {
                failed += 1;
            }
        }
        found
    }

    /// Returns the mixture with one atom replaced: the lightest, after skipping the `skip`
    /// lightest.
    fn replaced(
        &self,
        found: &mut Pursued,
        skip: usize,
        rng: &mut impl rand::Rng,
    ) -> (Vec<Atom>, Minimum) {
        let matching = self.matching();
        let mut atoms = found.atoms.clone();
        atoms.sort_by(|a, b| a.weight.total_cmp(&b.weight));
        atoms.remove(skip % atoms.len());
        if !atoms.is_empty() {
            matching.fit_weights(&mut atoms);
            found.evaluations += matching.refine(&mut atoms, self.steps.rough).evaluations;
        }
        let (atom, tried) = self.find_atom(&self.residual(&atoms), &atoms, rng);
        self.append(&mut atoms, atom);
        matching.fit_weights(&mut atoms);
        let minimum = matching.refine(&mut atoms, self.steps.settle);
        found.evaluations += tried + minimum.evaluations;
        self.constraints.project(&mut atoms);
        (atoms, minimum)
    }

    /// Returns the noise floor: the expected objective for rows drawn from the mixture itself.
    fn noise(&self) -> f64 {
        noise_floor(self.embedding.squared_norm(&self.embedding.target), self.rows as u64).powi(2)
    }

    /// Polishes the result of a pursuit, with the variances that the family allows to differ.
    pub fn polish(&self, mut found: Pursued) -> Pursued {
        let atoms = &mut found.atoms;
        let mut matching = self.matching();
        if self.family == Family::Diagonal {
            let shared = matching.free(Family::Shared, self.rows);
            found.evaluations += shared.refine(atoms, self.steps.shared).evaluations;
            matching = matching.free(Family::Diagonal, self.rows);
        }
        let minimum = matching.refine(atoms, self.steps.polish);
        found.objective.push(minimum.value);
        found.evaluations += minimum.evaluations;
        found.status = minimum.status.into();
        if self.constraints.project(atoms) {
            matching.fit_weights(atoms);
        }
        to_simplex(atoms);
        found
    }

    /// Step 1: maximises ⟨A(P_θ), r⟩ / ‖A(P_θ)‖ over the mean, by bounded ascent from the best of
    /// several starts.
    fn find_atom(
        &self,
        residual: &[f64],
        atoms: &[Atom],
        rng: &mut impl rand::Rng,
    ) -> (Atom, usize) {
        let variance = match atoms.first() {
            Some(atom) => atom.variance().to_vec(),
            None => self.starts.variance.clone(),
        };
        let d = self.embedding.dims();
        // The variables are the coordinates of the mean divided by σ.
        let unit = self.embedding.sigma2.sqrt();
        let low: Vec<f64> = self.bounds.iter().map(|b| b.0 / unit).collect();
        let high: Vec<f64> = self.bounds.iter().map(|b| b.1 / unit).collect();
        let followed = self.starts.best(residual, self.steps.look, self.steps.follow, rng);
        let starts: Vec<Vec<f64>> =
            followed.iter().map(|start| start.iter().map(|m| m / unit).collect()).collect();
        let found = minimise_each(
            |points| self.correlations(points, residual, &variance),
            starts,
            &low,
            &high,
            self.steps.find,
        );
        let evaluations = found.iter().map(|minimum| minimum.evaluations).sum();
        let best = found.into_iter().min_by(|a, b| a.value.total_cmp(&b.value));
        let mean = best
            .map_or_else(|| vec![0.0; d], |minimum| minimum.x.iter().map(|m| m * unit).collect());
        (Atom::diagonal(1.0 / self.k as f64, mean, variance), evaluations)
    }

    /// Returns minus the correlation of an atom with the residual and its gradient, at each of
    /// several means divided by σ.
    fn correlations(
        &self,
        points: &[&[f64]],
        residual: &[f64],
        variance: &[f64],
    ) -> Vec<(f64, Vec<f64>)> {
        let (d, unit) = (self.embedding.dims(), self.embedding.sigma2.sqrt());
        let means: Vec<Vec<f64>> =
            points.iter().map(|x| x.iter().map(|m| m * unit).collect()).collect();
        let features: Vec<Vec<f64>> =
            means.iter().map(|m| self.embedding.features(m, variance)).collect();
        let products = self.embedding.metric_times(&features);
        let mut found = Vec::with_capacity(means.len());
        for ((mean, features), product) in means.iter().zip(&features).zip(&products) {
            let norm = self.norm(features, product);
            let value = dot(features, residual) / norm;
            let shrink = match objective_of(self.embedding) {
                Objective::Full => 0.0,
                Objective::Projected => value / (norm * norm),
            };
            let pull: Vec<f64> =
                residual.iter().zip(product).map(|(r, p)| shrink * p - r / norm).collect();
            let (mut gradient, mut by_variance) = (vec![0.0; d], vec![0.0; d]);
            let atom = (mean.as_slice(), variance);
            self.embedding.add_vjp(atom, features, &pull, 1.0, &mut gradient, &mut by_variance);
            gradient.iter_mut().for_each(|g| *g *= unit);
            found.push((-value, gradient));
        }
        found
    }

    /// Step 2: adds the atom.
    fn append(&self, atoms: &mut Vec<Atom>, atom: Atom) {
        atoms.push(atom);
    }

    /// Step 3: if there are more than k atoms, keeps the k with the largest weights by non-negative
    /// least squares on normalised atoms.
    fn threshold(&self, atoms: &mut Vec<Atom>) {
        let n = atoms.len();
        if n <= self.k {
            return;
        }
        let (mut gram, mut right) = normal_equations(self.embedding, atoms);
        let norms: Vec<f64> = (0..n).map(|i| gram[i * n + i].max(1e-24).sqrt()).collect();
        for i in 0..n {
            right[i] /= norms[i];
            for j in 0..n {
                gram[i * n + j] /= norms[i] * norms[j];
            }
        }
        let weights = nonnegative_quadratic(&gram, &right, 2000);
        let mut order: Vec<usize> = (0..n).collect();
        order.sort_by(|&i, &j| weights[j].total_cmp(&weights[i]));
        let dropped: Vec<usize> = order.split_off(self.k.min(n));
        let mut i = 0;
        atoms.retain(|_| {
            i += 1;
            !dropped.contains(&(i - 1))
        });
    }

    /// Step 6: returns the dual vector of the residual.
    fn residual(&self, atoms: &[Atom]) -> Vec<f64> {
        let mut left = self.embedding.target.clone();
        for a in atoms {
            let features = self.embedding.features(&a.mean, a.variance());
            left.iter_mut().zip(features).for_each(|(l, f)| *l -= a.weight * f);
        }
        self.embedding.metric_times(&[left]).swap_remove(0)
    }
}

/// Returns the objective to minimise. For a kernel with a cusp, a Dirac next to a cluster matches
/// the flat top of the cluster's sketch better than one inside it, unless the part outside the span
/// of the landmarks is penalised.
pub fn objective_of(embedding: &Embedding) -> Objective {
    match embedding.kernel().kernel {
        Kernel::Laplace => Objective::Full,
        _ => Objective::Projected,
    }
}

/// Divides the weights by their sum.
pub fn to_simplex(atoms: &mut [Atom]) {
    let total: f64 = atoms.iter().map(|a| a.weight).sum();
    let equal = 1.0 / atoms.len() as f64;
    for a in atoms {
        a.weight = if total > 0.0 { a.weight / total } else { equal };
    }
}
