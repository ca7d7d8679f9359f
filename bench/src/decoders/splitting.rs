//! Hierarchical splitting (Keriven, Bourrier, Gribonval and Pérez, *Sketching for large-scale
//! learning of mixture models*, 2017): starting from one Gaussian, every atom is split along its
//! widest column until there are enough atoms.

use super::problem::Problem;
use nysketch_learn::atom::{Atom, Family};
use nysketch_learn::optimize::Stop;

/// Returns Gaussians with individual diagonals.
pub fn decode(problem: &Problem<'_>) -> Vec<Atom> {
    let matching = problem.matching(Family::Scaled).free(Family::Diagonal, problem.rows);
    let stop = Stop { evaluations: 300, relative: 1e-6 };
    let middle = problem.bounds.iter().map(|(low, high)| 0.5 * (low + high)).collect();
    let all = problem.space.first_variance().iter().map(|v| 10.0 * v).collect();
    let mut atoms = vec![Atom::diagonal(1.0, middle, all)];
    matching.refine(&mut atoms, stop);
    while atoms.len() < problem.k {
        let mut halves = Vec::with_capacity(2 * atoms.len());
        for atom in &atoms {
            let variance = atom.variance();
            let widest = (0..variance.len()).max_by(|i, j| variance[*i].total_cmp(&variance[*j]));
            let k = widest.expect("there are columns");
            for sign in [-1.0, 1.0] {
                let mut half = atom.clone();
                half.weight *= 0.5;
                half.mean[k] += sign * variance[k].sqrt();
                half.mean[k] = half.mean[k].max(problem.bounds[k].0).min(problem.bounds[k].1);
                halves.push(half);
            }
        }
        atoms = problem.largest(halves, problem.k);
        matching.fit_weights(&mut atoms);
        matching.refine(&mut atoms, stop);
    }
    atoms
}
