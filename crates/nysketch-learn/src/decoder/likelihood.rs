//! The log-likelihood of the rows under a mixture, estimated on the points that represent them.

use super::em::{Densities, densities};
use super::stand_ins::StandIns;
use crate::atom::Atom;

/// The log density and the entropy of every point under a mixture.
#[derive(Debug)]
pub(super) struct PointDensities {
    /// `log Σ_c α_c N(x; μ_c, Γ_c)` over the columns that are present in the point. If columns are
    /// missing, their log scales are added, so that subtracting the log scales of all columns
    /// converts the value to the table's units.
    pub log_density: Vec<f64>,
    /// `−Σ_c r_c log r_c`, where r_c is the probability of the component given the point.
    pub entropy: Vec<f64>,
}

impl PointDensities {
    pub fn new(points: &StandIns, atoms: &[Atom]) -> Self {
        let levels = points.levels();
        let Densities { mut log_density, mut entropy } = densities(points.places(), &levels, atoms);
        // The density of a row with missing values is the marginal density of the present columns.
        for (i, known) in (0..points.len()).filter_map(|i| Some((i, points.known(i)?))) {
            let mut logs = Vec::with_capacity(atoms.len());
            for atom in atoms.iter().filter(|a| a.weight > 0.0) {
                let of_levels = levels.log(&levels.logs(&atom.levels), i);
                logs.push(marginal(atom, points.point(i), &known) + of_levels);
            }
            let max = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let total: f64 = logs.iter().map(|l| (l - max).exp()).sum();
            let whole = max + total.ln();
            entropy[i] = logs
                .iter()
                .map(|log| {
                    let r = (log - whole).exp();
                    if r > 0.0 { r * (whole - log) } else { 0.0 }
                })
                .sum();
            log_density[i] = whole + points.unscaled(i);
        }
        PointDensities { log_density, entropy }
    }
}

/// Returns `log α N(x; μ, Γ)` over some of the columns.
fn marginal(atom: &Atom, x: &[f64], columns: &[usize]) -> f64 {
    let weight = atom.weight.ln();
    if columns.is_empty() {
        return weight;
    }
    let [x, mean] = [x, &atom.mean].map(|x| columns.iter().map(|k| x[*k]).collect::<Vec<f64>>());
    let factor = atom.covariance.select(columns).cholesky();
    factor.map_or(f64::NEG_INFINITY, |f| weight + f.log_density(&x, &mean))
}
