//! Iterative hard thresholding (Bourrier, Gribonval and Pérez, *Compressive Gaussian mixture
//! estimation*, 2013), as described by later papers: each round adds several atoms at once, keeps
//! the best, and moves all together. Numbers of starts and rounds are our choice.

use super::problem::Problem;
use nysketch_learn::atom::{Atom, Family};
use nysketch_learn::optimize::Stop;
use rand_chacha::ChaCha8Rng;

const ROUNDS: usize = 20;
/// A round that gains less than this share of the objective is the last.
const GAIN: f64 = 1e-3;

/// Returns Diracs, or Gaussians of one common width.
pub fn decode(problem: &Problem<'_>, mixture: bool, rng: &mut ChaCha8Rng) -> Vec<Atom> {
    let family = if mixture { Family::Scaled } else { Family::Dirac };
    let mut variance =
        if mixture { problem.space.first_variance() } else { vec![0.0; problem.embedding.dims()] };
    let matching = problem.matching(family);
    let (mut atoms, mut min_value): (Vec<Atom>, f64) = (Vec::new(), f64::INFINITY);
    for round in 0..ROUNDS {
        let (dual, _) = problem.residual(&atoms);
        let found = problem.maxima(&dual, &variance, (500, 3 * problem.k), rng);
        let mut tried = atoms.clone();
        tried.extend(
            found.into_iter().take(problem.k).map(|x| Atom::diagonal(1.0, x, variance.clone())),
        );
        if tried.is_empty() {
            continue;
        }
        tried = problem.largest(tried, problem.k);
        matching.fit_weights(&mut tried);
        let value = matching.refine(&mut tried, Stop { evaluations: 100, relative: 1e-4 }).value;
        if value < min_value {
            atoms = tried;
            variance = atoms.first().map_or(variance, |a| a.variance().to_vec());
        }
        if round > 2 && value > (1.0 - GAIN) * min_value {
            break;
        }
        min_value = min_value.min(value);
    }
    atoms
}
