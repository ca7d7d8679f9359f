//! The search for a mixture: EM from many starts on some of the points, then from the best starts
//! on all points.

use super::em::{Em, Ended, Floor, Shaped, Until};
use super::likelihood::PointDensities;
use super::stand_ins::StandIns;
use crate::atom::Atom;
use crate::covariance::CovarianceKind;
use nysketch_core::kmeans::{Effort, Loss, WeightedPoints};
use nysketch_core::numeric::parallel::in_parallel;
use nysketch_core::numeric::random::{draw, normal};
use nysketch_core::numeric::work::Work;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

/// Minimum number of retained rows on which starts are compared, in total and per component.
const RACED_ON: usize = 4_000;
const RACED_ON_EACH: usize = 20;
/// Number of components up to which all requested starts are used; above it, the number decreases
/// in proportion. At k = 50, a third of the starts costs up to 0.5 nats (flights); at k = 200, a
/// quarter costs less than the difference between seeds (0.2).
const ALL_STARTS: usize = 50;
/// Number of parameters of a mixture, as a share of the retained rows in the race, above which the
/// first heat uses diagonals.
const RACE_CARRIES: f64 = 0.4;
/// Numbers of EM steps after each of which the best third of the starts is kept.
const HEATS: [usize; 3] = [6, 12, 25];
/// Number of starts that continue on all points.
const FINALISTS: usize = 2;
/// EM steps on half of the retained rows, which estimate the optimism of the likelihood.
const CROSS_STEPS: usize = 12;
/// Number of parameters of a model, as a share of the retained rows, above which full covariances
/// may be shrunk.
pub(super) const CARRIED: f64 = 0.1;
/// Candidate amounts of shrinkage of each covariance, in points per column.
const SHRINKAGES: [f64; 3] = [1.0, 5.0, 25.0];

/// Returns the number of retained rows on which starts of `k` components are compared.
fn raced_on(k: usize) -> usize {
    RACED_ON.max(RACED_ON_EACH * k)
}

/// Returns the number of starts for `k` components if `restarts` are requested.
fn starts(k: usize, restarts: usize) -> usize {
    let fewer = restarts.saturating_mul(ALL_STARTS).div_ceil(k.max(ALL_STARTS));
    fewer.max(FINALISTS.min(restarts)).max(1)
}

/// Returns the cost of a search with matrices. A step of EM takes about 4 k d² operations per
/// point, or 4 d² + 8 k d if all components share one matrix, provided that every component is
/// close to every point.
pub(super) fn work(
    kind: CovarianceKind,
    points: usize,
    k: usize,
    d: usize,
    restarts: usize,
    steps: usize,
) -> Work {
    let (raced_on, restarts) = (points.min(raced_on(k)) as f64, starts(k, restarts) as f64);
    let (k, d) = (k as f64, d as f64);
    let heats: f64 = HEATS.iter().zip([1.0, 3.0, 9.0]).map(|(h, out)| *h as f64 / out).sum();
    let raced = restarts * heats * raced_on;
    let finished = (FINALISTS * steps.min(100) * points) as f64;
    let (matrices, step) = match kind {
        CovarianceKind::Tied => (1.0, 4.0 * d * d + 8.0 * k * d),
        _ => (k, 4.0 * k * d * d),
    };
    Work::default().and(step * (raced + finished), 8.0 * restarts * matrices * d * d)
}

/// The problem: the points and the kind of mixture to find.
#[derive(Debug)]
pub(super) struct Search<'a> {
    pub points: &'a StandIns,
    /// Cell means, on which k-means finds the starts.
    pub coarse: &'a WeightedPoints,
    pub kind: CovarianceKind,
    pub floor: &'a Floor,
    pub restarts: usize,
    pub until: Until,
    pub threads: usize,
}

/// A mixture, and how it was found.
#[derive(Debug, Clone)]
pub(super) struct Found {
    pub atoms: Vec<Atom>,
    pub ended: Ended,
    pub shrinkage: f64,
}

/// Results of fitting to one half of the retained rows and evaluating on the other half.
#[derive(Debug)]
pub(super) struct HeldOut {
    /// Amount by which the log-likelihood of the points exceeds that of other rows because the
    /// mixture was fitted to them, in nats.
    pub optimism: f64,
    /// Log density of every point under the mixture fitted to the half that does not contain it.
    pub log_density: Vec<f64>,
    pub weights: Vec<f64>,
}

impl Search<'_> {
    fn em<'a>(&'a self, points: &StandIns, kind: CovarianceKind, shrinkage: f64) -> Em<'a> {
        let shaped = Shaped { kind, floor: self.floor, shrinkage };
        Em::new(points.weights(), points.places(), &[], shaped).with_levels(points.levels())
    }

    /// Returns the best mixture of k components. The `warm` mixtures are additional starts; they
    /// are the only ones if `only` is set.
    pub fn best(&self, k: usize, warm: Vec<Vec<Atom>>, only: bool, rng: &mut ChaCha8Rng) -> Found {
        let thin = self.points.thinned(raced_on(k));
        let drawn = if only { 0 } else { starts(k, self.restarts) };
        let seeds: Vec<u64> = (0..drawn).map(|_| rand::Rng::next_u64(rng)).collect();
        // Matrices with too many parameters for the points of the race would fit noise: start with
        // diagonals.
        let numbers = self.kind.parameters(k, self.floor.dims()) as f64;
        let diagonals = numbers > RACE_CARRIES * raced_on(k) as f64;
        let matrices = self.kind.is_matrix();
        // Only k-means++: Lloyd's iterations would make many starts converge to the same centres.
        let mut left = in_parallel(self.threads, seeds, |seed| {
            let rng = &mut ChaCha8Rng::seed_from_u64(seed);
            let effort = Effort::new(1, 0);
            let centres = self.coarse.cluster(k, Loss::Squared, effort, rng);
            self.lifted(thin.atoms_around(&centres, matrices && !diagonals))
        });
        for (heat, steps) in HEATS.into_iter().enumerate() {
            if heat == 1 && matrices && diagonals {
                left.iter_mut().flatten().for_each(|a| a.covariance = a.covariance.to_matrix());
            }
            let count = left.len().div_ceil(3).max(FINALISTS);
            if count >= left.len() {
                continue;
            }
            let kind = if heat == 0 && diagonals { CovarianceKind::Diag } else { self.kind };
            let (few, until) = (self.em(&thin, kind, 0.0), self.until.at_most(steps));
            let mut raced = in_parallel(self.threads, left, |mut atoms| {
                (few.run(&mut atoms, until).likelihood, atoms)
            });
            raced.sort_by(|a, b| b.0.total_cmp(&a.0));
            left = raced.into_iter().take(count).map(|r| r.1).collect();
        }
        left.extend(warm);
        let all = self.em(self.points, self.kind, 0.0);
        let finished = in_parallel(self.threads, left, |mut atoms| {
            let ended = all.run(&mut atoms, self.until);
            Found { atoms, ended, shrinkage: 0.0 }
        })
        .into_iter();
        finished
            .reduce(|a, b| if b.ended.likelihood > a.ended.likelihood { b } else { a })
            .expect("there is at least one start")
    }

    /// Raises the covariances of atoms to the floor.
    pub fn lifted(&self, mut atoms: Vec<Atom>) -> Vec<Atom> {
        atoms.iter_mut().for_each(|a| self.floor.lift(&mut a.covariance));
        atoms
    }

    /// Shrinks full covariances by the amount that gives the best likelihood of one half of the
    /// retained rows under the mixture fitted to the other.
    pub fn shrunk(&self, found: Found) -> Found {
        let (d, halves) = (self.floor.dims() as f64, self.points.halves());
        let choices: Vec<f64> = std::iter::once(0.0).chain(SHRINKAGES.map(|s| s * d)).collect();
        let scored = in_parallel(self.threads, choices, |shrinkage| {
            let fitted = self.fitted(&halves, &found.atoms, shrinkage);
            // Mean log-likelihood of each half under the mixture fitted to the other half.
            let [first, second] = [0, 1].map(|half| {
                self.em(&halves[half], self.kind, 0.0).step(&mut fitted[1 - half].clone())
            });
            (0.5 * (first + second), shrinkage)
        });
        let best = scored.into_iter().reduce(|a, b| if b.0 > a.0 { b } else { a });
        let shrinkage = best.map_or(0.0, |b| b.1);
        if shrinkage == 0.0 {
            return found;
        }
        let mut atoms = found.atoms;
        let ended = self.em(self.points, self.kind, shrinkage).run(&mut atoms, self.until);
        Found { atoms, ended, shrinkage }
    }

    /// Evaluates mixtures fitted to each half of the retained rows on the other half; `None` with
    /// fewer than two retained rows.
    pub fn held_out(&self, found: &Found) -> Option<HeldOut> {
        if self.points.witnesses() < 2 {
            return None;
        }
        let halves = self.points.halves();
        let fitted = self.fitted(&halves, &found.atoms, found.shrinkage);
        let (mut fitted_half, mut other_half) = (0.0, 0.0);
        let mut held_out = HeldOut { optimism: 0.0, log_density: Vec::new(), weights: Vec::new() };
        for (half, points) in halves.iter().enumerate() {
            fitted_half += points.mean(&PointDensities::new(points, &fitted[half]).log_density).0;
            let log_density = PointDensities::new(points, &fitted[1 - half]).log_density;
            other_half += points.mean(&log_density).0;
            held_out.log_density.extend(log_density);
            held_out.weights.extend_from_slice(points.weights());
        }
        // With twice as many retained rows, the optimism is half as large.
        held_out.optimism = (0.25 * (fitted_half - other_half)).max(0.0);
        held_out.optimism.is_finite().then_some(held_out)
    }

    /// Returns the mixture fitted to each half of the retained rows.
    fn fitted(&self, halves: &[StandIns; 2], atoms: &[Atom], shrinkage: f64) -> [Vec<Atom>; 2] {
        halves.each_ref().map(|half| {
            let mut atoms = atoms.to_vec();
            self.em(half, self.kind, shrinkage).run(&mut atoms, self.until.at_most(CROSS_STEPS));
            atoms
        })
    }

    /// Returns starts with one more component: two in which it starts at a random unlikely point,
    /// and one in which the heaviest component is split into two, with nearly the same likelihood.
    pub fn grown(&self, atoms: &[Atom], rng: &mut ChaCha8Rng) -> Vec<Vec<Atom>> {
        if atoms.is_empty() {
            return Vec::new();
        }
        let found = PointDensities::new(self.points, atoms);
        let mean = self.points.mean(&found.log_density).0;
        let unlikely: Vec<f64> = (found.log_density.iter().zip(self.points.weights()))
            .map(|(l, w)| w * (mean - l).max(0.0))
            .collect();
        let mut grown = Vec::new();
        for _ in 0..2 {
            let Some(i) = draw(&unlikely, rng) else { break };
            let place = self.points.point(i).to_vec();
            let Some(parent) = most_likely(atoms, &place) else { break };
            let covariance = parent.covariance.clone();
            let share = 0.5 / (atoms.len() + 1) as f64;
            let mut more = atoms.to_vec();
            more.iter_mut().for_each(|a| a.weight *= 1.0 - share);
            more.push(Atom {
                weight: share,
                mean: place,
                covariance,
                levels: parent.levels.clone(),
            });
            grown.push(more);
        }
        let mut halved = atoms.to_vec();
        if let Some(heaviest) =
            (0..atoms.len()).max_by(|a, b| atoms[*a].weight.total_cmp(&atoms[*b].weight))
        {
            halved[heaviest].weight *= 0.5;
            let mut twin = halved[heaviest].clone();
            for (k, mean) in twin.mean.iter_mut().enumerate() {
                *mean += 1e-2 * twin.covariance.get(k, k).sqrt() * normal(rng);
            }
            halved.push(twin);
            grown.push(halved);
        }
        grown
    }
}

/// Returns the atom of largest density at a point, without its weight.
fn most_likely<'a>(atoms: &'a [Atom], point: &[f64]) -> Option<&'a Atom> {
    let mut best: Option<(&Atom, f64)> = None;
    for atom in atoms {
        let factor = atom.covariance.cholesky();
        let log = factor.map_or(f64::NEG_INFINITY, |f| f.log_density(point, &atom.mean));
        // Of equally likely atoms, the last one is returned.
        if best.is_none_or(|(_, max)| log.total_cmp(&max).is_ge()) {
            best = Some((atom, log));
        }
    }
    best.map(|(atom, _)| atom)
}
