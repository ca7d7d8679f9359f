//! How likely the rows are under a mixture, as far as the points that stand for them tell.

use super::em::{Told, told};
use super::stand_ins::StandIns;
use crate::atom::Atom;

/// What a mixture says of every point.
#[derive(Debug)]
pub(super) struct Said {
    /// `log Σ_c α_c N(x; μ_c, Γ_c)` over what the point has; where it lacks numbers, with their log scales, so that less those of
    /// all columns it is in the table's units.
    pub log_density: Vec<f64>,
    /// `−Σ_c r_c log r_c`, where r_c is the probability of the component given the point.
    pub entropy: Vec<f64>,
}

impl Said {
    pub fn new(points: &StandIns, atoms: &[Atom]) -> Self {
        let levels = points.levels();
        let Told { mut log_density, mut entropy } = told(points.places(), &levels, atoms);
        // The density of a row is that of what it has.
        for (i, known) in (0..points.len()).filter_map(|i| Some((i, points.known(i)?))) {
            let log = |a: &Atom| {
                let of_levels = levels.log(&levels.logs(&a.levels), i);
                marginal(a, points.point(i), &known) + of_levels
            };
            let logs: Vec<f64> = atoms.iter().filter(|a| a.weight > 0.0).map(log).collect();
            let most = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let total: f64 = logs.iter().map(|l| (l - most).exp()).sum();
            let whole = most + total.ln();
            let term = |log: &f64| {
                let r = (log - whole).exp();
                if r > 0.0 { r * (whole - log) } else { 0.0 }
            };
            entropy[i] = logs.iter().map(term).sum();
            log_density[i] = whole + points.unscaled(i);
        }
        Said { log_density, entropy }
    }
}

/// `log α N(x; μ, Γ)` over some of the columns.
fn marginal(atom: &Atom, x: &[f64], columns: &[usize]) -> f64 {
    let weight = atom.weight.ln();
    if columns.is_empty() {
        return weight;
    }
    let some = |x: &[f64]| columns.iter().map(|k| x[*k]).collect::<Vec<f64>>();
    let factor = atom.covariance.select(columns).cholesky();
    factor.map_or(f64::NEG_INFINITY, |f| weight + f.log_density(&some(x), &some(&atom.mean)))
}
