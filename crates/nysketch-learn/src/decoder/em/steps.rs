//! Steps of EM, with the constraints of the kind of covariance and the minimum variance.

use super::diagonal::Diagonal;
use super::floor::Floor;
use super::levels::Levels;
use super::matrix::Matrices;
use super::near::{Near, Schedule, by_best};
use super::passed::{Densities, Moments, Passed};
use super::tied::{Tied, Total, pooled};
use crate::atom::Atom;
use crate::covariance::{Covariance, CovarianceKind, SymmetricMatrix};
use nysketch_core::numeric::simd::Instructions;

/// Default increase of the mean log-likelihood below which EM stops, in nats.
pub const TOLERANCE: f64 = 1e-6;

/// Number of points that are laid out at once to compute their densities.
const LAID_OUT: usize = 4096;

/// The stopping rule of EM.
#[derive(Debug, Clone, Copy)]
pub struct Until {
    /// Maximum number of steps.
    pub steps: usize,
    /// Minimum increase of the mean log-likelihood per step, in nats.
    pub tolerance: f64,
}

impl Until {
    /// Returns the rule with at most `steps` steps.
    pub fn at_most(self, steps: usize) -> Self {
        Until { steps: steps.min(self.steps), ..self }
    }
}

/// The outcome of an EM run.
#[derive(Debug, Clone, Copy)]
pub struct Ended {
    /// Mean log-likelihood before the last step.
    pub likelihood: f64,
    pub steps: usize,
    /// Whether the likelihood stopped increasing.
    pub converged: bool,
}

/// Constraints on the covariances.
#[derive(Debug, Clone, Copy)]
pub struct Shaped<'a> {
    pub kind: CovarianceKind,
    /// Minimum variance.
    pub floor: &'a Floor,
    /// Number of pseudo-points that are added to a component. For diagonals they have the pooled
    /// variances of all components; for full covariances they have the component's own variances
    /// and the pooled correlations. 0 adds none.
    pub shrinkage: f64,
}

/// Weighted points laid out for EM.
#[derive(Debug)]
pub struct Em<'a> {
    shaped: Shaped<'a>,
    pub(super) points: Layout,
    /// Moments of all points, if atoms share a covariance.
    total: Option<Total>,
    levels: Levels,
    mass: f64,
    /// `(Σw)²/Σw²`: the number of points of equal weight with the same information.
    effective: f64,
}

#[derive(Debug)]
pub(super) enum Layout {
    Diagonal(Diagonal),
    Matrices(Matrices),
    Tied(Tied),
}

impl Layout {
    fn new(
        kind: CovarianceKind,
        dims: usize,
        weights: &[f64],
        places: &[f64],
        variances: &[f64],
    ) -> Self {
        match kind {
            CovarianceKind::Full => Layout::Matrices(Matrices::new(dims, weights, places)),
            CovarianceKind::Tied => Layout::Tied(Tied::new(dims, weights, places)),
            CovarianceKind::Diag | CovarianceKind::Spherical => {
                Layout::Diagonal(Diagonal::new(dims, weights, places, variances))
            }
        }
    }

    fn pass(&self, atoms: &[Atom], levels: &Levels, near: Option<&Near>) -> Passed {
        match self {
            Layout::Diagonal(points) => points.pass(atoms, levels, near, Instructions::best()),
            Layout::Matrices(points) => points.pass(atoms, levels, near),
            Layout::Tied(points) => points.pass(atoms, levels, near),
        }
    }

    fn ordered(&self, order: &[usize]) -> Self {
        match self {
            Layout::Diagonal(points) => Layout::Diagonal(points.ordered(order)),
            Layout::Matrices(points) => Layout::Matrices(points.ordered(order)),
            Layout::Tied(points) => Layout::Tied(points.ordered(order)),
        }
    }
}

impl<'a> Em<'a> {
    /// Lays out row-major points with their weights, and their variances if they have any; matrices
    /// ignore variances.
    pub fn new(weights: &[f64], places: &[f64], variances: &[f64], shaped: Shaped<'a>) -> Self {
        let (dims, kind) = (shaped.floor.dims(), shaped.kind);
        let points = Layout::new(kind, dims, weights, places, variances);
        let total = (kind == CovarianceKind::Tied).then(|| Total::new(dims, weights, places));
        let mass: f64 = weights.iter().sum();
        let squares: f64 = weights.iter().map(|w| w * w).sum();
        let effective = mass * mass / squares.max(f64::MIN_POSITIVE);
        Em { shaped, points, total, levels: Levels::default(), mass, effective }
    }

    /// Adds categories.
    #[must_use]
    pub fn with_levels(self, levels: Levels) -> Self {
        Em { levels, ..self }
    }

    /// Runs steps until the likelihood converges or the maximum number of steps is done.
    pub fn run(&self, atoms: &mut [Atom], until: Until) -> Ended {
        let mut likelihood = f64::NEG_INFINITY;
        let (mut schedule, mut ordered) = (Schedule::new(), None::<(Layout, Levels)>);
        let mut best = Vec::new();
        for steps in 0..until.steps {
            let all = schedule.lists().is_none();
            if all && !best.is_empty() {
                let order = by_best(&best);
                let (points, levels) =
                    ordered.as_ref().map_or((&self.points, &self.levels), |o| (&o.0, &o.1));
                ordered = Some((points.ordered(&order), levels.ordered(&order)));
            }
            let (points, levels) =
                ordered.as_ref().map_or((&self.points, &self.levels), |o| (&o.0, &o.1));
            let mut passed = points.pass(atoms, levels, schedule.lists());
            let near = std::mem::take(&mut passed.near);
            // If the points are not sorted, the lists are long: sort the points first.
            if !all {
                schedule.served();
            } else if ordered.is_some() || near.are_short(atoms.len()) {
                schedule.renew(near);
            }
            best = std::mem::take(&mut passed.best);
            let found = self.update_all(atoms, passed);
            let converged = found - likelihood < until.tolerance;
            likelihood = found;
            if converged && all {
                return Ended { likelihood, steps: steps + 1, converged };
            }
            if converged {
                schedule.doubt();
            }
        }
        Ended { likelihood, steps: until.steps, converged: false }
    }

    /// Runs one step and returns the mean log-likelihood before it.
    pub fn step(&self, atoms: &mut [Atom]) -> f64 {
        let passed = self.points.pass(atoms, &self.levels, None);
        self.update_all(atoms, passed)
    }

    /// Computes the next atoms from the sums and returns the mean log-likelihood before the step.
    fn update_all(&self, atoms: &mut [Atom], passed: Passed) -> f64 {
        for (atom, moments) in atoms.iter_mut().zip(passed.moments) {
            self.update(atom, moments);
        }
        self.shape(atoms);
        passed.likelihood / self.mass
    }

    /// Computes the next atom from its sums.
    fn update(&self, atom: &mut Atom, moments: Moments) {
        let mass = moments.mass;
        atom.weight = mass / self.mass;
        if !(mass > 1e-12 * self.mass) {
            return;
        }
        if !self.levels.is_empty() {
            atom.levels = self.levels.shares(&moments.levels);
        }
        let moved: Vec<f64> = moments.first.iter().map(|x| x / mass).collect();
        atom.mean.iter_mut().zip(&moved).for_each(|(mean, by)| *mean += by);
        atom.covariance = match moments.second {
            Covariance::Diagonal(second) => Covariance::Diagonal(
                second.iter().zip(&moved).map(|(s, by)| (s / mass - by * by).max(0.0)).collect(),
            ),
            Covariance::Full(second) => {
                Covariance::Full(SymmetricMatrix::from_fn(moved.len(), |i, j| {
                    second.get(i, j) / mass - moved[i] * moved[j]
                }))
            }
        };
    }

    /// Applies the kind of covariance and the floor.
    fn shape(&self, atoms: &mut [Atom]) {
        let floor = self.shaped.floor;
        match self.shaped.kind {
            CovarianceKind::Diag => self.shrink_variances(atoms),
            CovarianceKind::Spherical => {
                for atom in &mut *atoms {
                    let variance = atom.variance_mut();
                    let mean = variance.iter().sum::<f64>() / variance.len() as f64;
                    variance.fill(mean.max(floor.spherical()));
                }
                return;
            }
            CovarianceKind::Tied => {
                let mut one =
                    self.total.as_ref().map_or_else(|| pooled(atoms), |total| total.within(atoms));
                floor.lift(&mut one);
                atoms.iter_mut().for_each(|a| a.covariance = one.clone());
                return;
            }
            CovarianceKind::Full => self.shrink_correlations(atoms),
        }
        atoms.iter_mut().for_each(|a| floor.lift(&mut a.covariance));
    }

    /// Adds the pseudo-points with the pooled variances to each component.
    fn shrink_variances(&self, atoms: &mut [Atom]) {
        if !(self.shaped.shrinkage > 0.0) {
            return;
        }
        let total: f64 = atoms.iter().map(|a| a.weight).sum();
        let mut common = vec![0.0; self.shaped.floor.dims()];
        for atom in &*atoms {
            let share = atom.weight / total;
            common.iter_mut().zip(atom.variance()).for_each(|(c, v)| *c += share * v);
        }
        for atom in atoms {
            let points = atom.weight * self.effective;
            let share = self.shaped.shrinkage / (self.shaped.shrinkage + points);
            atom.variance_mut().iter_mut().zip(&common).for_each(|(v, c)| *v += share * (c - *v));
        }
    }

    /// Adds the pseudo-points with the component's own variances and the pooled correlations to
    /// each component.
    fn shrink_correlations(&self, atoms: &mut [Atom]) {
        if !(self.shaped.shrinkage > 0.0) {
            return;
        }
        let common = pooled(atoms);
        let d = common.dims();
        for atom in atoms {
            let points = atom.weight * self.effective;
            let share = self.shaped.shrinkage / (self.shaped.shrinkage + points);
            let covariance = &atom.covariance;
            atom.covariance = Covariance::Full(SymmetricMatrix::from_fn(d, |i, j| {
                let ratio = (covariance.get(i, i) * covariance.get(j, j)).max(0.0)
                    / (common.get(i, i) * common.get(j, j)).max(f64::MIN_POSITIVE);
                let target =
                    if i == j { covariance.get(i, i) } else { common.get(i, j) * ratio.sqrt() };
                covariance.get(i, j) + share * (target - covariance.get(i, j))
            }));
        }
    }
}

/// Returns the log density and the entropy of row-major points under a mixture, computed for some
/// thousands of points at a time.
pub fn densities(places: &[f64], levels: &Levels, atoms: &[Atom]) -> Densities {
    let dims = atoms[0].mean.len();
    let kind = if atoms.iter().all(|a| matches!(a.covariance, Covariance::Diagonal(_))) {
        CovarianceKind::Diag
    } else if atoms.iter().all(|a| a.covariance == atoms[0].covariance) {
        CovarianceKind::Tied
    } else {
        CovarianceKind::Full
    };
    let (mut all, mut start) = (Densities::default(), 0);
    for places in places.chunks(LAID_OUT * dims) {
        let count = places.len() / dims;
        let part = levels.ordered(&(start..start + count).collect::<Vec<usize>>());
        let found = match Layout::new(kind, dims, &vec![1.0; count], places, &[]) {
            Layout::Diagonal(points) => points.densities(atoms, &part, Instructions::best()),
            Layout::Matrices(points) => points.densities(atoms, &part),
            Layout::Tied(points) => points.densities(atoms, &part),
        };
        all.log_density.extend(found.log_density);
        all.entropy.extend(found.entropy);
        start += count;
    }
    all
}
