//! How likely the rows are under a mixture, as far as the points that stand for them tell.

use super::stand_ins::StandIns;
use crate::atom::Atom;
use crate::covariance::Factor;

/// What a mixture says of every point.
#[derive(Debug)]
pub(super) struct Said {
    /// `log Σ_c α_c N(x; μ_c, Γ_c)`.
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
            let each = logs.iter_mut().zip(&peaks).zip(&parts).enumerate();
            for (c, ((log, peak), (atom, factor))) in each {
                apart.clear();
                apart.extend(points.point(i).iter().zip(&atom.mean).map(|(x, m)| x - m));
                *log = peak - 0.5 * factor.squared_length(&apart);
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
            said.log_density.push(log_density);
        }
        said
    }
}
