//! CL-OMPR and CL-OMP (Keriven et al. 2017): orthogonal matching pursuit with replacement.
//!
//! A mixture is built atom by atom, 2k times (k times without replacement):
//!
//! 1. `find_atom`: the atom most correlated with the residual, by bounded ascent from several starts;
//! 2. `append`: it joins the others;
//! 3. `threshold`: of more than k, the k with the largest weights stay;
//! 4. `fit_weights`: weights by non-negative least squares;
//! 5. `refine`: weights and atoms together by bounded L-BFGS;
//! 6. `residual`: what is left, as its dual vector `v = M r`: an atom's correlation with it is fᵀv.
//!
//! Of several pursuits the one of least objective is kept. Where it is a mixture and above the noise of the sketch,
//!
//! ```text
//! ‖A(p) − A(π_n)‖² > (1 − ‖A(π_n)‖²)/n ,
//! ```
//!
//! the right side being what rows drawn from the very mixture leave, a better one is looked for: where clusters are Gaussians, one was missed.
//! `replace` takes atoms out, the lightest first, refines the others, and goes on with steps 1 to 5; what lowers the objective is kept, until
//! it is at the noise or each atom was tried twice in vain. Further rounds as above, which add before they take away, mend hardly any. What is at
//! the noise stays as it is. Diracs are left alone: clusters have widths that Diracs have not, which keeps k-means above the noise with the
//! best of centres.
//!
//! What is kept is polished once more, and weights are brought to the simplex. Where atoms start and stay is
//! said by `region.rs`.
//!
//! Departure for Gaussians with diagonals of their own: during the pursuit all atoms share their variances up
//! to a learned factor; when it is over one diagonal for all is learned, then one for each, with a prior as weak as the noise of
//! the sketch for those that it cannot tell. With free diagonals from the start the first atoms swell to cover
//! several clusters, or shrink to nothing where the sketch is blind, and the pursuit ends tens to thousands of
//! nats from the data. Step 1 therefore moves the mean alone.
//!
//! Steps 1 and 5 end where five steps in a row gain less than 1e-4 of the objective (1e-3 while atoms are fewer than k): what they leave undone the next round
//! and the last polish do, which ends at 1e-8. Pursuits are compared where they gain less than 1e-5, with variances shared: what differs
//! between them is which clusters they found, and that shows long before. A pursuit that is cut off at its limit of evaluations says so. Step 1 follows the
//! best of 200 starts: following more of them costs more than another replicate and finds less.

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

/// How often each atom is tried to be replaced in vain.
const PASSES: usize = 2;
/// Share of the objective that a replacement has to gain. A cluster that was missed is most of it.
const GAIN: f64 = 0.1;

/// How hard each step tries.
#[derive(Debug, Clone, Copy)]
pub struct Steps {
    /// Starts that step 1 looks at, and those of them that it follows.
    pub look: usize,
    /// See [`look`](Self::look).
    pub follow: usize,
    /// When step 1 ends.
    pub find: Stop,
    /// When step 5 ends while atoms are fewer than k.
    pub rough: Stop,
    /// When step 5 ends after that.
    pub refine: Stop,
    /// When a pursuit ends that may not be kept.
    pub settle: Stop,
    /// When the last polish, of the one that is kept, ends, and before it that of a shared diagonal.
    pub polish: Stop,
    /// See [`polish`](Self::polish).
    pub shared: Stop,
}

impl Steps {
    /// The defaults.
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

/// What a pursuit came to.
#[derive(Debug, Clone)]
pub struct Pursued {
    /// The mixture.
    pub atoms: Vec<Atom>,
    /// The objective after each round, after the last, after each atom that was replaced then, and after the polish.
    pub objective: Vec<f64>,
    /// How the last optimisation ended.
    pub status: Status,
    /// Evaluations of objective and gradient.
    pub evaluations: usize,
}

impl Pursued {
    /// The objective so far: what replicates are compared by, before any is polished.
    pub fn value(&self) -> f64 {
        self.objective.last().copied().unwrap_or(f64::INFINITY)
    }
}

/// What CL-OMPR needs to know.
#[derive(Debug, Clone)]
pub struct Clompr<'a> {
    /// The data's sketch.
    pub embedding: &'a Embedding,
    /// The atoms.
    pub family: Family,
    /// Number of atoms.
    pub k: usize,
    /// 2k iterations with replacement, or k without.
    pub replacement: bool,
    /// Bounds of the means.
    pub bounds: &'a [(f64, f64)],
    /// Least and largest variance of each column.
    pub variances: &'a [(f64, f64)],
    /// Where atoms may start.
    pub starts: &'a Starts,
    /// How hard it tries.
    pub steps: Steps,
    /// Separation and radius.
    pub constraints: Constraints,
    /// Rows of the sketch.
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

    /// What the correlation of an atom is divided by, given f and M f: its length in the space of the
    /// objective.
    fn norm(&self, features: &[f64], product: &[f64]) -> f64 {
        match objective_of(self.embedding) {
            Objective::Full => 1.0,
            Objective::Projected => dot(features, product).max(1e-24).sqrt(),
        }
    }

    /// Steps 1 to 6, and what can be told of the mixture before it is polished.
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

    /// Replaces atoms while the objective is above the noise of the sketch and falls.
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

    /// A mixture without its lightest atom but so many, and with another in its place.
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

    /// The objective that rows drawn from the very mixture leave.
    fn noise(&self) -> f64 {
        noise_floor(self.embedding.squared_norm(&self.embedding.target), self.rows as u64).powi(2)
    }

    /// Polishes what a pursuit found, with variances freed as the family asks.
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

    /// Step 1: maximises ⟨A(P_θ), r⟩ / ‖A(P_θ)‖ over the mean, by bounded ascent from the best of several
    /// starts.
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
        // Variables: the mean over σ.
        let unit = self.embedding.sigma2.sqrt();
        let mean_at = |x: &[f64]| -> Vec<f64> { x.iter().map(|m| m * unit).collect() };
        let features_at = |means: &[Vec<f64>]| -> Vec<Vec<f64>> {
            means.iter().map(|m| self.embedding.features(m, &variance)).collect()
        };
        // Minus the correlation and its gradient, at each of several points.
        let correlations = |points: &[&[f64]]| {
            let means: Vec<_> = points.iter().map(|x| mean_at(x)).collect();
            let features = features_at(&means);
            let products = self.embedding.metric_times(&features);
            let each = |i: usize| {
                let norm = self.norm(&features[i], &products[i]);
                let value = dot(&features[i], residual) / norm;
                let shrink = match objective_of(self.embedding) {
                    Objective::Full => 0.0,
                    Objective::Projected => value / (norm * norm),
                };
                let pull: Vec<f64> =
                    residual.iter().zip(&products[i]).map(|(r, p)| shrink * p - r / norm).collect();
                let (mut gradient, mut by_variance) = (vec![0.0; d], vec![0.0; d]);
                self.embedding.add_vjp(
                    (&means[i], &variance),
                    &features[i],
                    &pull,
                    1.0,
                    &mut gradient,
                    &mut by_variance,
                );
                gradient.iter_mut().for_each(|g| *g *= unit);
                (-value, gradient)
            };
            (0..means.len()).map(each).collect()
        };
        let low: Vec<f64> = self.bounds.iter().map(|b| b.0 / unit).collect();
        let high: Vec<f64> = self.bounds.iter().map(|b| b.1 / unit).collect();
        let followed = self.starts.best(residual, self.steps.look, self.steps.follow, rng);
        let scaled = |start: &&[f64]| start.iter().map(|m| m / unit).collect();
        let starts: Vec<Vec<f64>> = followed.iter().map(scaled).collect();
        let found = minimise_each(correlations, starts, &low, &high, self.steps.find);
        let evaluations = found.iter().map(|minimum| minimum.evaluations).sum();
        let best = found.into_iter().min_by(|a, b| a.value.total_cmp(&b.value));
        let mean = best.map_or_else(|| vec![0.0; d], |minimum| mean_at(&minimum.x));
        (Atom::diagonal(1.0 / self.k as f64, mean, variance), evaluations)
    }

    /// Step 2.
    fn append(&self, atoms: &mut Vec<Atom>, atom: Atom) {
        atoms.push(atom);
    }

    /// Step 3: of more than k atoms, by non-negative least squares on normalised ones, the k largest
    /// stay.
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

    /// Step 6: the dual vector of what the mixture leaves unexplained.
    fn residual(&self, atoms: &[Atom]) -> Vec<f64> {
        let mut left = self.embedding.target.clone();
        for a in atoms {
            let features = self.embedding.features(&a.mean, a.variance());
            left.iter_mut().zip(features).for_each(|(l, f)| *l -= a.weight * f);
        }
        self.embedding.metric_times(&[left]).swap_remove(0)
    }
}

/// What is minimised. Where a kernel has a cusp, a Dirac beside a cluster matches the flat top of the cluster's sketch
/// better than one inside, unless it pays for leaving the span of the landmarks.
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
