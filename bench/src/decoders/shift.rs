//! Sketch and shift (Belhadji and Gribonval, *Sketch and shift: a robust decoder for compressive
//! clustering*, 2023), reconstructed from its abstract and summaries: atoms are found by mean shift
//! on the sketch from many starts, and clusters have a width. Numbers of starts and rounds are our
//! choice.

use super::problem::Problem;
use nysketch_learn::atom::{Atom, Family};
use rand_chacha::ChaCha8Rng;

/// Number of starts that are evaluated, and number that are then shifted.
const STARTS: (usize, usize) = (200, 20);
/// Widths that are tried after each round, as shares of the data's variance.
const WIDTHS: [f64; 6] = [0.003, 0.01, 0.03, 0.1, 0.3, 0.6];

/// Returns atoms of one common width.
pub fn decode(problem: &Problem<'_>, rng: &mut ChaCha8Rng) -> Vec<Atom> {
    let mut variance = problem.space.first_variance();
    let mut atoms: Vec<Atom> = Vec::new();
    for _ in 0..2 * problem.k {
        let (dual, _) = problem.residual(&atoms);
        // Find modes of the residual itself, not the best positions of an atom of some width.
        let none = vec![0.0; variance.len()];
        let found = problem.maxima(&dual, &none, STARTS, rng);
        let Some(mean) = found.into_iter().next() else { continue };
        atoms.push(Atom::diagonal(1.0, mean, variance.clone()));
        atoms = best_width(problem, problem.largest(atoms, problem.k));
        variance = atoms[0].variance().to_vec();
    }
    atoms
}

/// Returns the atoms, at their positions, with the common width and the weights that match the
/// sketch best.
pub fn best_width(problem: &Problem<'_>, atoms: Vec<Atom>) -> Vec<Atom> {
    let matching = problem.matching(Family::Scaled);
    let tenth = problem.space.first_variance();
    let fitted = WIDTHS.map(|share| {
        let width: Vec<f64> = tenth.iter().map(|v| 10.0 * share * v).collect();
        let mut wide = atoms.clone();
        wide.iter_mut().for_each(|a| a.variance_mut().clone_from_slice(&width));
        matching.fit_weights(&mut wide);
        (problem.residual(&wide).1, wide)
    });
    fitted.into_iter().min_by(|a, b| a.0.total_cmp(&b.0)).expect("there are widths").1
}
