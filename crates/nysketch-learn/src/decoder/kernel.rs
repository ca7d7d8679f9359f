//! Decoding of kernel sums with better starts and less bias than matching Diracs.
//!
//! The result depends mainly on the start: k-means on [calibrated](super::calibrate) landmarks
//! starts near the clusters. Atoms with shared, learned variances then match the sketch without the
//! bias that Diracs have on clusters of positive width; for mixtures, each atom gets its own
//! variances at the end. Fourier sketches have no landmarks, so CL-OMPR with atoms of shared
//! variances provides the start.

use super::clompr::{Clompr, Steps, objective_of, to_simplex};
use super::constraints::Constraints;
use super::matching::{Matching, Objective};
use super::space::Space;
use super::starts::Starts;
use crate::atom::embedding::Embedding;
use crate::atom::{Atom, Family};
use crate::covariance::Covariance;
use crate::model::report::Report;
use crate::optimize::Stop;
use nysketch_core::kmeans::{Effort, Loss, WeightedPoints};

/// Number of starts that are refined, with and without landmarks; the one with the smallest
/// objective is kept.
const STARTS: usize = 4;
const BLIND_STARTS: usize = 10;
/// Weight of the equation that asks for weights with sum one.
const SUM_TO_ONE: f64 = 0.3;
/// Matches the sketch at one bandwidth.
pub struct Matcher<'a> {
    /// The mean embedding of the data.
    pub embedding: &'a Embedding,
    /// The region and the moments of the data.
    pub space: &'a Space,
    /// Number of atoms.
    pub k: usize,
    /// Number of rows of the sketch.
    pub rows: f64,
    /// Landmarks weighted so that their sketch matches that of the data; `None` without landmarks.
    pub calibrated: Option<&'a WeightedPoints>,
}

impl<'a> Matcher<'a> {
    fn matching(&self, family: Family) -> Matching<'_> {
        let objective = match (self.embedding.landmarks(), &family) {
            (Some(_), Family::Scaled) => Objective::Full,
            _ => Objective::Projected,
        };
        Matching {
            embedding: self.embedding,
            family,
            objective,
            sum_to_one: SUM_TO_ONE,
            prior: 0.0,
            bounds: &self.space.bounds,
            variances: &self.space.variances,
            constraints: Constraints::default(),
        }
    }

    /// Returns whether the sketch has enough moments for its objective to be meaningful: about
    /// k(d+1).
    pub fn enough_moments(&self) -> bool {
        self.embedding.rank() as f64 >= 1.3 * (self.k * (self.embedding.dims() + 1)) as f64
    }

    /// Returns atoms with one learned diagonal: the best of several starts by the objective.
    pub fn shared_diagonal(&self, rng: &mut impl rand::Rng, report: &mut Report) -> Vec<Atom> {
        let matching = self.matching(Family::Scaled);
        let mut best: Option<(f64, Vec<Atom>)> = None;
        let starts = if self.embedding.landmarks().is_some() { STARTS } else { BLIND_STARTS };
        for _ in 0..starts {
            let mut atoms = self.start(rng);
            matching.fit_weights(&mut atoms);
            let minimum = matching.refine(&mut atoms, Stop { evaluations: 800, relative: 1e-9 });
            report.record(&minimum);
            if best.as_ref().is_none_or(|(v, _)| minimum.value < *v) {
                best = Some((minimum.value, atoms));
            }
        }
        let (_, mut atoms) = best.unwrap_or_default();
        // The full objective finds the clusters but pulls atoms into the span of the landmarks; the
        // projected objective does not.
        let projected = matching.free(Family::Shared, self.rows);
        let minimum = projected.refine(&mut atoms, Stop { evaluations: 800, relative: 1e-9 });
        report.record(&minimum);
        atoms
    }

    /// Returns a diagonal Gaussian mixture, learned with a shared diagonal first and then with one
    /// per atom.
    pub fn mixture(&self, rng: &mut impl rand::Rng, report: &mut Report) -> Vec<Atom> {
        let mut atoms = self.shared_diagonal(rng, report);
        let matching = self.matching(Family::Scaled).free(Family::Diagonal, self.rows);
        let minimum = matching.refine(&mut atoms, Stop { evaluations: 3000, relative: 1e-10 });
        report.record(&minimum);
        to_simplex(&mut atoms);
        atoms
    }

    /// Returns means and weights for known variances (example 2).
    pub fn known_variance(
        &self,
        variance: &[f64],
        rng: &mut impl rand::Rng,
        report: &mut Report,
    ) -> Vec<Atom> {
        let mut atoms = self.shared_diagonal(rng, report);
        atoms.iter_mut().for_each(|a| a.covariance = Covariance::Diagonal(variance.to_vec()));
        let matching = self.matching(Family::Known(variance.to_vec()));
        let minimum = matching.refine(&mut atoms, Stop { evaluations: 2000, relative: 1e-11 });
        report.record(&minimum);
        to_simplex(&mut atoms);
        atoms
    }

    fn start(&self, rng: &mut impl rand::Rng) -> Vec<Atom> {
        match self.calibrated {
            Some(calibrated) => {
                let effort = Effort::new(3, 50);
                let mut centres = calibrated.cluster(self.k, Loss::Squared, effort, rng);
                let around = calibrated.variance_around(&centres);
                let variance: Vec<f64> =
                    around.iter().enumerate().map(|(k, v)| self.space.clamp(k, *v)).collect();
                while centres.len() < self.k {
                    centres.push(self.space.draw(rng));
                }
                let weight = 1.0 / self.k as f64;
                centres
                    .into_iter()
                    .map(|mean| Atom::diagonal(weight, mean, variance.clone()))
                    .collect()
            }
            None => {
                let points = (0..500).map(|_| self.space.draw(rng)).collect();
                let objective = objective_of(self.embedding);
                let variance = self.space.first_variance();
                let starts = Starts::new(self.embedding, objective, points, variance);
                let clompr = Clompr {
                    embedding: self.embedding,
                    family: Family::Scaled,
                    k: self.k,
                    replacement: true,
                    bounds: &self.space.bounds,
                    variances: &self.space.variances,
                    starts: &starts,
                    steps: Steps::LONG,
                    constraints: Constraints::default(),
                    rows: self.rows,
                };
                clompr.polish(clompr.pursue(rng)).atoms
            }
        }
    }
}
