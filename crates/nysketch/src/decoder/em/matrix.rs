//! A step of EM with matrices as covariances.
//!
//! With `W_c` the whitening factors of the atoms, one below the other, the log-densities of a block of points come
//! from one product `W X`, less `W_c μ_c`; what an atom is responsible for, from one product `Y Yᵀ`, where the columns
//! of Y are the points that it has a share in, less μ, times the root of that share.

use super::levels::Levels;
use super::moments::Moments;
use crate::atom::Atom;
use crate::covariance::{Covariance, SymmetricMatrix};
use crate::kernel::exp2::exp2_product;
use crate::linalg::{add_gram, product};
use crate::simd::{Instructions, Work};

/// Numbers that the whitened points of a block have, about: they stay in the cache.
const WHITENED: usize = 1 << 15;
/// Most points of a block.
const BLOCK: usize = 256;
/// Shares below this part of a point's weight are left out.
const NEGLIGIBLE: f64 = 1e-12;
/// Log-densities further below the largest count as this far, in nats: the exponentials end at 2⁻¹²⁶.
const LOWEST: f32 = -80.0;
/// Sums that run side by side.
const LANES: usize = 8;

/// Points laid out for matrices: row-major, which is one point a column.
#[derive(Debug)]
pub struct Matrices {
    dims: usize,
    weights: Vec<f64>,
    places: Vec<f64>,
}

/// What log-densities of the atoms are computed from. Atoms without a density are left out.
struct Densities {
    /// Which atoms.
    atoms: Vec<usize>,
    /// W of all of them, one below the other, column by column.
    whitening: Vec<f64>,
    /// `W_c μ_c`, likewise.
    whitened_mean: Vec<f64>,
    /// `log α + log N(μ; μ, Γ)`.
    peak: Vec<f64>,
    /// `log θ` of each level.
    levels: Vec<Vec<f64>>,
}

impl Densities {
    fn new(atoms: &[Atom], levels: &Levels) -> Self {
        let usable = |(c, a): (usize, &Atom)| Some((c, a.covariance.cholesky()?));
        let factors: Vec<_> = atoms.iter().enumerate().filter_map(usable).collect();
        let d = atoms[0].mean.len();
        let rows = factors.len() * d;
        let mut whitening = vec![0.0; rows * d];
        let mut whitened_mean = Vec::with_capacity(rows);
        for (at, (c, factor)) in factors.iter().enumerate() {
            factor.each_entry(|i, j, w| whitening[j * rows + at * d + i] = w);
            whitened_mean.extend(factor.whiten(&atoms[*c].mean));
        }
        let peak = factors.iter().map(|(c, f)| atoms[*c].weight.max(1e-300).ln() + f.log_peak());
        let peak = peak.collect();
        let levels = factors.iter().map(|(c, _)| levels.logs(&atoms[*c].levels)).collect();
        let atoms = factors.iter().map(|f| f.0).collect();
        Densities { atoms, whitening, whitened_mean, peak, levels }
    }
}

impl Matrices {
    pub fn new(dims: usize, weights: &[f64], places: &[f64]) -> Self {
        Matrices { dims, weights: weights.to_vec(), places: places.to_vec() }
    }

    /// The sum of the log-likelihoods, and what each atom is responsible for.
    pub fn pass(&self, atoms: &[Atom], levels: &Levels) -> (f64, Vec<Moments>) {
        let (d, k) = (self.dims, atoms.len());
        let densities = Densities::new(atoms, levels);
        let mut sums = Sums {
            likelihood: 0.0,
            mass: vec![0.0; k],
            first: vec![vec![0.0; d]; k],
            second: vec![vec![0.0; d * d]; k],
            levels: vec![vec![0.0; levels.total()]; k],
        };
        if densities.atoms.is_empty() {
            sums.likelihood = f64::NEG_INFINITY;
        } else {
            let pass = Pass { points: self, levels, atoms, densities: &densities, sums: &mut sums };
            Instructions::best().run(pass);
        }
        let Sums { likelihood, mass, first, second, levels } = sums;
        let all = mass.into_iter().zip(first).zip(second).zip(levels);
        let moments = all.map(|(((mass, first), second), levels)| {
            let entry = |i: usize, j: usize| second[j * d + i];
            let second = Covariance::Full(SymmetricMatrix::from_fn(d, entry));
            Moments { mass, first, second, levels }
        });
        (likelihood, moments.collect())
    }
}

/// What is added up over the points.
struct Sums {
    likelihood: f64,
    mass: Vec<f64>,
    first: Vec<Vec<f64>>,
    /// Column-major.
    second: Vec<Vec<f64>>,
    levels: Vec<Vec<f64>>,
}

/// Goes over all points once.
struct Pass<'a> {
    points: &'a Matrices,
    levels: &'a Levels,
    atoms: &'a [Atom],
    densities: &'a Densities,
    sums: &'a mut Sums,
}

impl Work for Pass<'_> {
    #[inline(always)]
    fn work(self) {
        let Pass { points, levels, atoms, densities, sums } = self;
        let mut start = 0;
        let (d, k) = (points.dims, densities.atoms.len());
        let size = (WHITENED / (k * d)).clamp(32, BLOCK);
        let mut white = vec![0.0; size * k * d];
        let mut part = vec![0.0; size * d];
        // `[atom][point]`.
        let mut logs = vec![0.0; k * size];
        let (mut most, mut total) = (vec![0.0; size], vec![0.0; size]);
        for (weights, places) in points.weights.chunks(size).zip(points.places.chunks(size * d)) {
            let n = weights.len();
            product(&mut white[..n * k * d], &densities.whitening, places, d);
            most.fill(f64::NEG_INFINITY);
            for (i, s) in white[..n * k * d].chunks_exact(k * d).enumerate() {
                for c in 0..k {
                    let span = c * d..(c + 1) * d;
                    let square = squared_distance(&s[span.clone()], &densities.whitened_mean[span]);
                    let mut log = densities.peak[c] - 0.5 * square;
                    if !levels.is_empty() {
                        log += levels.log(&densities.levels[c], start + i);
                    }
                    logs[c * size + i] = log;
                    most[i] = if log > most[i] { log } else { most[i] };
                }
            }
            total.fill(0.0);
            for logs in logs.chunks_exact_mut(size) {
                for ((log, most), total) in logs[..n].iter_mut().zip(&most).zip(&mut total) {
                    let below = ((*log - most) as f32).max(LOWEST);
                    *log = f64::from(exp2_product(below, std::f32::consts::LOG2_E));
                    *total += *log;
                }
            }
            for i in 0..n {
                sums.likelihood += weights[i] * (most[i] + total[i].ln());
            }
            for (&c, shares) in densities.atoms.iter().zip(logs.chunks_exact(size)) {
                let (mean, first) = (&atoms[c].mean, &mut sums.first[c]);
                let mut kept = 0;
                for i in 0..n {
                    if shares[i] <= NEGLIGIBLE * total[i] {
                        continue;
                    }
                    let share = weights[i] * shares[i] / total[i];
                    let root = share.sqrt();
                    let from = places[i * d..(i + 1) * d].iter().zip(mean);
                    let to = part[kept * d..(kept + 1) * d].iter_mut().zip(&mut *first);
                    for ((to, first), (x, mean)) in to.zip(from) {
                        let t = x - mean;
                        *first += share * t;
                        *to = root * t;
                    }
                    sums.mass[c] += share;
                    if !levels.is_empty() {
                        levels.add(&mut sums.levels[c], start + i, share);
                    }
                    kept += 1;
                }
                if kept > 0 {
                    add_gram(&mut sums.second[c], &part[..kept * d], d);
                }
            }
            start += n;
        }
    }
}

/// `‖a − b‖²`, as sums that run side by side.
#[inline(always)]
fn squared_distance(a: &[f64], b: &[f64]) -> f64 {
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<LANES>(), b.as_chunks::<LANES>());
    let mut sums = [0.0; LANES];
    for (a, b) in a.iter().zip(b) {
        for l in 0..LANES {
            sums[l] += (a[l] - b[l]) * (a[l] - b[l]);
        }
    }
    let rest: f64 = a_rest.iter().zip(b_rest).map(|(a, b)| (a - b) * (a - b)).sum();
    sums.iter().sum::<f64>() + rest
}
