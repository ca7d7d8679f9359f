//! A step of EM with full covariance matrices.
//!
//! With `W_c` the whitening factor of an atom, its log densities at a block of points follow from
//! one product `W_c X`, minus `W_c μ_c`. The second moments for which it is responsible follow from
//! one product `Y Yᵀ`, where the columns of Y are the points in which it has a share, minus μ,
//! times the square root of that share.

use super::levels::Levels;
use super::near::{MANY, Near, REACH};
use super::passed::{Densities, Moments, Passed};
use crate::atom::Atom;
use crate::covariance::{Covariance, SymmetricMatrix};
use nysketch_core::kernel::exp2::exp2_product;
use nysketch_core::numeric::linalg::{add_gram, product};
use nysketch_core::numeric::simd::{Instructions, Work};

/// Number of points in a block. If there are many atoms, small blocks ensure that few atoms are
/// within range.
const BLOCK: usize = 256;
const SMALL_BLOCK: usize = 64;
/// Shares of a point below this value are skipped.
const NEGLIGIBLE: f64 = 1e-12;
/// Log densities further below the largest are clipped to this difference, in nats: the
/// exponentials end at 2⁻¹²⁶.
const LOWEST: f32 = -80.0;
/// Number of partial sums.
const LANES: usize = 8;

/// Points laid out for matrices: row-major, which is one point per column.
#[derive(Debug)]
pub struct Matrices {
    dims: usize,
    weights: Vec<f64>,
    places: Vec<f64>,
}

/// Precomputed terms of the log density of an atom.
struct Density {
    /// W, column by column.
    whitening: Vec<f64>,
    /// `W μ`.
    whitened_mean: Vec<f64>,
    /// `log α + log N(μ; μ, Γ)`.
    peak: f64,
    /// `log θ` of each level.
    levels: Vec<f64>,
}

impl Density {
    /// Returns `None` if the covariance of the atom is not positive definite.
    fn new(atom: &Atom, levels: &Levels) -> Option<Self> {
        let factor = atom.covariance.cholesky()?;
        let d = atom.mean.len();
        let mut whitening = vec![0.0; d * d];
        factor.each_entry(|i, j, w| whitening[j * d + i] = w);
        Some(Density {
            whitening,
            whitened_mean: factor.whiten(&atom.mean),
            peak: atom.weight.max(1e-300).ln() + factor.log_peak(),
            levels: levels.logs(&atom.levels),
        })
    }
}

impl Matrices {
    pub fn new(dims: usize, weights: &[f64], places: &[f64]) -> Self {
        Matrices { dims, weights: weights.to_vec(), places: places.to_vec() }
    }

    /// Returns the same points in another order.
    pub fn ordered(&self, order: &[usize]) -> Self {
        Matrices {
            dims: self.dims,
            weights: order.iter().map(|i| self.weights[*i]).collect(),
            places: order
                .iter()
                .flat_map(|i| &self.places[i * self.dims..(i + 1) * self.dims])
                .copied()
                .collect(),
        }
    }

    /// Returns the sums for which each atom is responsible. If `near` is given, each block
    /// evaluates only the listed atoms.
    pub fn pass(&self, atoms: &[Atom], levels: &Levels, near: Option<&Near>) -> Passed {
        let (d, looked) = (self.dims, Looked::new(self, atoms, levels, near));
        let mut passed = Passed::nothing(0, d, 0);
        if looked.all.is_empty() {
            return Passed::nothing(atoms.len(), d, levels.total());
        }
        passed.likelihood = 0.0;
        let mut sums: Vec<Sums> = atoms.iter().map(|_| Sums::new(d, levels.total())).collect();
        Instructions::best().run(Pass { looked, atoms, sums: &mut sums, passed: &mut passed });
        let moments = sums.into_iter().map(|Sums { mass, first, second, levels }| {
            let second = Covariance::Full(SymmetricMatrix::from_fn(d, |i, j| second[j * d + i]));
            Moments { mass, first, second, levels }
        });
        passed.moments = moments.collect();
        passed
    }

    /// Returns the log density of each point and the entropy of its responsibilities.
    pub fn densities(&self, atoms: &[Atom], levels: &Levels) -> Densities {
        let mut densities = Densities::default();
        let looked = Looked::new(self, atoms, levels, None);
        if looked.all.is_empty() {
            return Densities::zero(self.weights.len());
        }
        Instructions::best().run(DensityPass(looked, &mut densities));
        densities
    }
}

/// Points, atoms and lists of one pass, evaluated block by block.
struct Looked<'a> {
    points: &'a Matrices,
    levels: &'a Levels,
    near: Option<&'a Near>,
    /// `None` for an atom without a density.
    densities: Vec<Option<Density>>,
    /// The indices of all atoms that have a density.
    all: Vec<u32>,
    /// Number of points in a block.
    size: usize,
}

/// Intermediate results for one block of points.
struct Block {
    /// Number of points.
    len: usize,
    /// `[atom][point]`: log densities, then densities relative to the largest.
    logs: Vec<f64>,
    /// The atoms within range, as indices into the list of atoms.
    kept: Vec<usize>,
    /// The largest log density.
    max: Vec<f64>,
    /// Σ e of the relative densities e, and `Σ e log e`.
    total: Vec<f64>,
    spread: Vec<f64>,
    /// The points whitened by an atom.
    white: Vec<f64>,
}

impl<'a> Looked<'a> {
    fn new(
        points: &'a Matrices,
        atoms: &[Atom],
        levels: &'a Levels,
        near: Option<&'a Near>,
    ) -> Self {
        let densities: Vec<_> = atoms.iter().map(|a| Density::new(a, levels)).collect();
        let all = (0..atoms.len() as u32).filter(|c| densities[*c as usize].is_some()).collect();
        let size = if atoms.len() < MANY { BLOCK } else { SMALL_BLOCK };
        Looked { points, levels, near, densities, all, size }
    }

    fn block(&self) -> Block {
        let (size, zero) = (self.size, vec![0.0; self.size]);
        Block {
            len: 0,
            logs: vec![0.0; self.all.len() * size],
            kept: Vec::with_capacity(self.all.len()),
            max: zero.clone(),
            total: zero.clone(),
            spread: zero,
            white: vec![0.0; size * self.points.dims],
        }
    }

    fn blocks(&self) -> usize {
        self.points.weights.len().div_ceil(self.size)
    }

    /// Returns the atoms that a block evaluates.
    fn atoms(&self, b: usize) -> &[u32] {
        self.near.map_or(&self.all, |near| near.of(b))
    }

    /// Returns the range of points of a block.
    fn span(&self, b: usize) -> std::ops::Range<usize> {
        b * self.size..((b + 1) * self.size).min(self.points.weights.len())
    }

    fn places(&self, b: usize) -> &[f64] {
        let (d, span) = (self.points.dims, self.span(b));
        &self.points.places[span.start * d..span.end * d]
    }

    /// Computes the relative densities of the atoms at the points of a block.
    #[inline(always)]
    fn share(&self, b: usize, block: &mut Block) {
        let (d, places, size) = (self.points.dims, self.places(b), self.size);
        let (atoms, n, start) = (self.atoms(b), self.span(b).len(), b * self.size);
        block.len = n;
        block.max.fill(f64::NEG_INFINITY);
        block.kept.clear();
        for (logs, atom) in block.logs.chunks_exact_mut(size).zip(atoms) {
            // An atom may have lost its density since the list was made.
            let Some(density) = &self.densities[*atom as usize] else {
                logs.fill(f64::NEG_INFINITY);
                continue;
            };
            product(&mut block.white[..n * d], &density.whitening, places, d);
            for (i, s) in block.white[..n * d].chunks_exact(d).enumerate() {
                let mut log = density.peak - 0.5 * squared_distance(s, &density.whitened_mean);
                if !self.levels.is_empty() {
                    log += self.levels.log(&density.levels, start + i);
                }
                logs[i] = log;
                block.max[i] = if log > block.max[i] { log } else { block.max[i] };
            }
        }
        let are_few = self.all.len() < MANY;
        for (at, logs) in block.logs.chunks_exact(size).take(atoms.len()).enumerate() {
            if are_few || logs[..n].iter().zip(&block.max).any(|(log, max)| *log > max - REACH) {
                block.kept.push(at);
            }
        }
        if block.kept.is_empty() {
            // No atom has a density at these points.
            block.kept.extend(0..atoms.len());
        }
        block.total.fill(0.0);
        block.spread.fill(0.0);
        for at in &block.kept {
            let logs = &mut block.logs[at * size..at * size + n];
            for (i, log) in logs.iter_mut().enumerate() {
                let below = ((*log - block.max[i]) as f32).max(LOWEST);
                *log = f64::from(exp2_product(below, std::f32::consts::LOG2_E));
                block.total[i] += *log;
                block.spread[i] += *log * f64::from(below);
            }
        }
    }
}

/// The sums of an atom over the points.
struct Sums {
    mass: f64,
    first: Vec<f64>,
    /// Column-major.
    second: Vec<f64>,
    levels: Vec<f64>,
}

impl Sums {
    fn new(dims: usize, levels: usize) -> Self {
        Sums {
            mass: 0.0,
            first: vec![0.0; dims],
            second: vec![0.0; dims * dims],
            levels: vec![0.0; levels],
        }
    }
}

/// Passes over all points once and adds up the sums of each atom.
struct Pass<'a> {
    looked: Looked<'a>,
    atoms: &'a [Atom],
    sums: &'a mut [Sums],
    passed: &'a mut Passed,
}

impl Work for Pass<'_> {
    #[inline(always)]
    fn work(self) {
        let Pass { looked, atoms, sums, passed } = self;
        let (d, size, levels) = (looked.points.dims, looked.size, looked.levels);
        let (mut block, mut part) = (looked.block(), vec![0.0; size * d]);
        for b in 0..looked.blocks() {
            looked.share(b, &mut block);
            let (listed, places) = (looked.atoms(b), looked.places(b));
            let weights = &looked.points.weights[looked.span(b)];
            for (i, weight) in weights.iter().enumerate() {
                passed.likelihood += weight * (block.max[i] + block.total[i].ln());
            }
            if looked.all.len() >= MANY {
                passed.best.extend((0..block.len).map(|i| {
                    // The best atom has the relative density 1.
                    let at = block.kept.iter().find(|at| block.logs[*at * size + i] == 1.0);
                    listed[*at.unwrap_or(&0)]
                }));
                passed.near.push(block.kept.iter().map(|at| listed[*at]));
            }
            for at in &block.kept {
                let c = listed[*at] as usize;
                let (mean, sums) = (&atoms[c].mean, &mut sums[c]);
                let shares = &block.logs[at * size..(at + 1) * size];
                let mut kept = 0;
                for (i, weight) in weights.iter().enumerate() {
                    if shares[i] <= NEGLIGIBLE * block.total[i] {
                        continue;
                    }
                    let share = weight * shares[i] / block.total[i];
                    let root = share.sqrt();
                    let from = places[i * d..(i + 1) * d].iter().zip(mean);
                    let to = part[kept * d..(kept + 1) * d].iter_mut().zip(&mut sums.first);
                    for ((to, first), (x, mean)) in to.zip(from) {
                        let t = x - mean;
                        *first += share * t;
                        *to = root * t;
                    }
                    sums.mass += share;
                    if !levels.is_empty() {
                        levels.add(&mut sums.levels, b * size + i, share);
                    }
                    kept += 1;
                }
                if kept > 0 {
                    add_gram(&mut sums.second, &part[..kept * d], d);
                }
            }
        }
    }
}

/// Passes over all points once and computes their densities.
struct DensityPass<'a>(Looked<'a>, &'a mut Densities);

impl Work for DensityPass<'_> {
    #[inline(always)]
    fn work(self) {
        let DensityPass(looked, densities) = self;
        let mut block = looked.block();
        for b in 0..looked.blocks() {
            looked.share(b, &mut block);
            for i in 0..block.len {
                densities.push(block.max[i], block.total[i], block.spread[i]);
            }
        }
    }
}

/// Returns `‖a − b‖²`, computed with parallel partial sums.
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
