//! How likely the rows are under a mixture, as far as the points that stand for them tell.

use super::stand_ins::StandIns;
use crate::atom::Atom;
use crate::covariance::Factor;

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
        let usable = |a: &&Atom| a.weight > 0.0;
        let parts: Vec<(&Atom, Factor)> = atoms
            .iter()
            .filter(usable)
            .filter_map(|a| Some((a, a.covariance.cholesky()?)))
            .collect();
        let mut said = Said { log_density: Vec::new(), entropy: Vec::new() };
        let peaks: Vec<f64> = parts.iter().map(|(a, f)| a.weight.ln() + f.log_peak()).collect();
        let levels = points.levels();
        let shares: Vec<Vec<f64>> = parts.iter().map(|(a, _)| levels.logs(&a.levels)).collect();
        let (mut logs, mut apart) = (vec![0.0; parts.len()], Vec::new());
        for i in 0..points.len() {
            // The density of a row is that of what it has.
            let known = points.known(i);
            let each = logs.iter_mut().zip(&peaks).zip(&parts).enumerate();
            for (c, ((log, peak), (atom, factor))) in each {
                *log = match &known {
                    None => {
                        apart.clear();
                        let columns = points.point(i).iter().zip(&atom.mean);
                        apart.extend(columns.map(|(x, m)| x - m));
                        peak - 0.5 * factor.squared_length(&apart)
                    }
                    Some(known) => marginal(atom, points.point(i), known),
                };
                if !levels.is_empty() {
                    *log += levels.log(&shares[c], i);
                }
            }
            let most = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let total: f64 = logs.iter().map(|l| (l - most).exp()).sum();
            let log_density = most + total.ln();
            let term = |log: &f64| {
                let r = (log - log_density).exp();
                if r > 0.0 { r * (log_density - log) } else { 0.0 }
            };
            said.entropy.push(logs.iter().map(term).sum());
            said.log_density.push(log_density + points.unscaled(i));
        }
        said
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
