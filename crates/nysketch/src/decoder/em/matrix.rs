//! A step of EM with matrices as covariances.
//!
//! With `W` the whitening factor of an atom, the log-densities of a block of points come from one product
//! `W (X − μ)`; what an atom is responsible for, from one product `Y Yᵀ`, where the columns of Y are the points that
//! it has a share in, less μ, times the root of that share.

use super::Moments;
use crate::atom::Atom;
use crate::covariance::{Covariance, SymmetricMatrix, Whitening};
use crate::linalg::{add_gram, product};

/// Points of a block: their differences from a mean stay in the cache.
const BLOCK: usize = 256;
/// Shares below this part of a point's weight are left out.
const NEGLIGIBLE: f64 = 1e-12;

/// Points laid out for matrices: row-major, which is one point a column.
#[derive(Debug)]
pub struct Matrices {
    dims: usize,
    weights: Vec<f64>,
    places: Vec<f64>,
}

/// What log-densities of an atom are computed from.
struct Density<'a> {
    mean: &'a [f64],
    /// W, column by column.
    whitening: Vec<f64>,
    /// `log α + log N(μ; μ, Γ)`.
    peak: f64,
}

impl<'a> Density<'a> {
    /// `None` where the atom has no density.
    fn new(atom: &'a Atom) -> Option<Self> {
        let factor = atom.covariance.cholesky()?;
        let d = atom.mean.len();
        let mut whitening = vec![0.0; d * d];
        match factor.whitening() {
            Whitening::Diagonal(w) => (0..d).for_each(|i| whitening[i * (d + 1)] = w[i]),
            Whitening::Lower(w) => {
                for i in 0..d {
                    for j in 0..=i {
                        whitening[j * d + i] = w[i * (i + 1) / 2 + j];
                    }
                }
            }
        }
        let peak = atom.weight.max(1e-300).ln() + factor.log_peak();
        Some(Density { mean: &atom.mean, whitening, peak })
    }
}

impl Matrices {
    pub fn new(dims: usize, weights: &[f64], places: &[f64]) -> Self {
        Matrices { dims, weights: weights.to_vec(), places: places.to_vec() }
    }

    /// The sum of the log-likelihoods, and what each atom is responsible for.
    pub fn pass(&self, atoms: &[Atom]) -> (f64, Vec<Moments>) {
        let d = self.dims;
        let densities: Vec<Option<Density<'_>>> = atoms.iter().map(Density::new).collect();
        let mut mass = vec![0.0; atoms.len()];
        let mut first = vec![vec![0.0; d]; atoms.len()];
        let mut second = vec![vec![0.0; d * d]; atoms.len()];
        let (mut apart, mut white) = (vec![0.0; BLOCK * d], vec![0.0; BLOCK * d]);
        let mut logs = vec![[f64::NEG_INFINITY; BLOCK]; atoms.len()];
        let mut likelihood = 0.0;
        for (weights, places) in self.weights.chunks(BLOCK).zip(self.places.chunks(BLOCK * d)) {
            let n = weights.len();
            let mut most = [f64::NEG_INFINITY; BLOCK];
            for (logs, density) in logs.iter_mut().zip(&densities) {
                let Some(density) = density else { continue };
                subtract(places, density.mean, &mut apart);
                product(&mut white[..n * d], &density.whitening, &apart[..n * d], d);
                for (i, s) in white[..n * d].chunks_exact(d).enumerate() {
                    logs[i] = density.peak - 0.5 * s.iter().map(|s| s * s).sum::<f64>();
                    most[i] = most[i].max(logs[i]);
                }
            }
            let mut total = [0.0; BLOCK];
            for logs in &mut logs {
                for i in 0..n {
                    logs[i] = relative(logs[i] - most[i]);
                    total[i] += logs[i];
                }
            }
            for i in 0..n {
                likelihood += weights[i] * (most[i] + total[i].ln());
            }
            for (c, (shares, density)) in logs.iter().zip(&densities).enumerate() {
                let Some(density) = density else { continue };
                let mut kept = 0;
                for i in (0..n).filter(|i| shares[*i] > NEGLIGIBLE * total[*i]) {
                    let share = weights[i] * shares[i] / total[i];
                    let root = share.sqrt();
                    let from = places[i * d..(i + 1) * d].iter().zip(density.mean);
                    let to = apart[kept * d..(kept + 1) * d].iter_mut().zip(&mut first[c]);
                    for ((to, first), (x, mean)) in to.zip(from) {
                        let t = x - mean;
                        *first += share * t;
                        *to = root * t;
                    }
                    mass[c] += share;
                    kept += 1;
                }
                add_gram(&mut second[c], &apart[..kept * d], d);
            }
            for logs in &mut logs {
                logs.fill(f64::NEG_INFINITY);
            }
        }
        let moments = mass.into_iter().zip(first).zip(second).map(|((mass, first), second)| {
            let entry = |i: usize, j: usize| second[j * d + i];
            Moments { mass, first, second: Covariance::Full(SymmetricMatrix::from_fn(d, entry)) }
        });
        (likelihood, moments.collect())
    }
}

/// Every point less a mean.
fn subtract(places: &[f64], mean: &[f64], out: &mut [f64]) {
    for (x, out) in places.chunks_exact(mean.len()).zip(out.chunks_exact_mut(mean.len())) {
        for ((x, mean), out) in x.iter().zip(mean).zip(out) {
            *out = x - mean;
        }
    }
}

/// `exp(x)` for x ≤ 0; 0 where it would not show beside 1.
fn relative(x: f64) -> f64 {
    if x > -40.0 { x.exp() } else { 0.0 }
}
