//! A step of EM with diagonal covariances, on points that may have a variance.
//!
//! A point of mean x and variance v represents rows around it: its log density under an atom is
//!
//! ```text
//! log α + E log N(X; μ, γ) = log α − ½ Σ log 2πγ − ½ Σ ((x − μ)² + v)/γ
//! ```
//!
//! Points are stored in blocks, with each column of a block contiguous, so that a vector register
//! contains one column of several points. A step passes over the points once: the responsibilities
//! of a block are summed while they are in the cache. Distances and sums are in double precision;
//! exponentials are those of the sketch, in single precision.

use super::levels::Levels;
use super::near::{MANY, Near, REACH};
use super::passed::{Densities, Moments, Passed};
use crate::atom::Atom;
use crate::covariance::Covariance;
use nysketch_core::kernel::exp2::exp2_product;
use nysketch_core::numeric::simd::Instructions;
use pulp::{Simd, WithSimd};

/// Number of points in a block: few enough that their log densities stay in registers.
const BLOCK: usize = 32;
/// Number of partial sums of each column.
const LANES: usize = 8;
/// Log densities further below the largest are clipped to this difference, in nats: the
/// exponentials end at 2⁻¹²⁶.
const LOWEST: f32 = -80.0;

/// Points laid out for diagonal covariances.
#[derive(Debug)]
pub struct Diagonal {
    dims: usize,
    /// Number of points, without those that fill the last block.
    count: usize,
    /// `[block][point]`, zero for points that fill the last block.
    weights: Vec<f64>,
    /// `[block][column][point]`.
    places: Vec<f64>,
    /// In the layout of `places`, or empty.
    variances: Vec<f64>,
}

impl Diagonal {
    /// Creates the layout from row-major points, their weights, and their variances if they have
    /// any.
    pub fn new(dims: usize, weights: &[f64], places: &[f64], variances: &[f64]) -> Self {
        let mut padded = weights.to_vec();
        padded.resize(weights.len().next_multiple_of(BLOCK), 0.0);
        Diagonal {
            dims,
            count: weights.len(),
            weights: padded,
            places: in_blocks(dims, places),
            variances: in_blocks(dims, variances),
        }
    }

    /// Returns the same points in another order.
    pub fn ordered(&self, order: &[usize]) -> Self {
        let mut weights = vec![0.0; self.weights.len()];
        weights.iter_mut().zip(order).for_each(|(to, at)| *to = self.weights[*at]);
        let places = self.gathered(&self.places, order);
        let variances = self.gathered(&self.variances, order);
        Diagonal { dims: self.dims, count: self.count, weights, places, variances }
    }

    /// Returns blocks of points in another order.
    fn gathered(&self, from: &[f64], order: &[usize]) -> Vec<f64> {
        let size = BLOCK * self.dims;
        let mut to = vec![0.0; from.len()];
        for (b, to) in to.chunks_exact_mut(size).enumerate() {
            for i in 0..BLOCK {
                let at = order[(b * BLOCK + i).min(self.count - 1)];
                let from = &from[at / BLOCK * size..][at % BLOCK..];
                let column = to[i..].iter_mut().step_by(BLOCK);
                column.zip(from.iter().step_by(BLOCK)).for_each(|(to, from)| *to = *from);
            }
        }
        to
    }

    /// Returns the sums for which each atom is responsible. If `near` is given, each block
    /// evaluates only the listed atoms.
    pub fn pass(
        &self,
        atoms: &[Atom],
        levels: &Levels,
        near: Option<&Near>,
        instructions: Instructions,
    ) -> Passed {
        let mut sums = vec![Sums::new(self.dims, levels.total()); atoms.len()];
        let mut found = Found { likelihood: 0.0, best: Vec::new(), near: Near::default() };
        let looked = Looked::new(self, atoms, levels, near);
        instructions.dispatch(Pass { looked, sums: &mut sums, found: &mut found });
        found.best.truncate(self.count);
        let Found { likelihood, best, near } = found;
        Passed { likelihood, moments: sums.into_iter().map(Sums::moments).collect(), best, near }
    }

    /// Returns the log density of each point and the entropy of its responsibilities.
    pub fn densities(
        &self,
        atoms: &[Atom],
        levels: &Levels,
        instructions: Instructions,
    ) -> Densities {
        let mut densities = Densities::default();
        instructions.dispatch(DensityPass(Looked::new(self, atoms, levels, None), &mut densities));
        densities.log_density.truncate(self.count);
        densities.entropy.truncate(self.count);
        densities
    }
}

/// Converts row-major points to `[block][column][point]`; the last point is repeated to fill the
/// last block.
fn in_blocks(dims: usize, points: &[f64]) -> Vec<f64> {
    let count = points.len() / dims;
    let mut blocks = vec![0.0; count.next_multiple_of(BLOCK) * dims];
    for (b, block) in blocks.chunks_exact_mut(BLOCK * dims).enumerate() {
        for i in 0..BLOCK {
            let row = (b * BLOCK + i).min(count - 1);
            for (k, x) in points[row * dims..(row + 1) * dims].iter().enumerate() {
                block[k * BLOCK + i] = *x;
            }
        }
    }
    blocks
}

/// Returns the columns of a block.
#[inline(always)]
fn columns(block: &[f64]) -> &[[f64; BLOCK]] {
    block.as_chunks().0
}

/// Precomputed terms of the log density of an atom.
struct Density {
    /// `log α − ½ Σ log 2πγ`.
    constant: f64,
    /// μ and `−½/γ` of each column.
    columns: Vec<(f64, f64)>,
    /// `log θ` of each level.
    levels: Vec<f64>,
}

impl Density {
    fn new(atom: &Atom, levels: &Levels) -> Self {
        let logs: f64 = atom.variance().iter().map(|g| (std::f64::consts::TAU * g).ln()).sum();
        Density {
            constant: atom.weight.max(1e-300).ln() - 0.5 * logs,
            columns: atom.mean.iter().zip(atom.variance()).map(|(m, g)| (*m, -0.5 / g)).collect(),
            levels: levels.logs(&atom.levels),
        }
    }

    /// Returns the log densities of the points of a block.
    #[inline(always)]
    fn of(&self, places: &[f64], variances: Option<&[f64]>) -> [f64; BLOCK] {
        let mut logs = [self.constant; BLOCK];
        match variances {
            None => {
                for (&(mean, factor), x) in self.columns.iter().zip(columns(places)) {
                    for i in 0..BLOCK {
                        let t = x[i] - mean;
                        logs[i] = (factor * t).mul_add(t, logs[i]);
                    }
                }
            }
            Some(variances) => {
                let each = columns(places).iter().zip(columns(variances));
                for (&(mean, factor), (x, v)) in self.columns.iter().zip(each) {
                    for i in 0..BLOCK {
                        let t = x[i] - mean;
                        logs[i] = t.mul_add(t, v[i]).mul_add(factor, logs[i]);
                    }
                }
            }
        }
        logs
    }
}

/// Σ w, Σ w (x − μ), Σ w ((x − μ)² + v) of an atom, around its previous mean.
#[derive(Clone)]
struct Sums {
    mass: [f64; LANES],
    first: Vec<[f64; LANES]>,
    second: Vec<[f64; LANES]>,
    levels: Vec<f64>,
}

impl Sums {
    fn new(dims: usize, levels: usize) -> Self {
        let zero = [0.0; LANES];
        let (first, second) = (vec![zero; dims], vec![zero; dims]);
        Sums { mass: zero, first, second, levels: vec![0.0; levels] }
    }

    /// Adds up the partial sums.
    fn moments(self) -> Moments {
        Moments {
            mass: self.mass.iter().sum(),
            first: add_lanes(&self.first),
            second: Covariance::Diagonal(add_lanes(&self.second)),
            levels: self.levels,
        }
    }

    /// Adds a block whose points have the weights `w` for the atom. Uses explicit vectors, because
    /// the compiler would otherwise gather across columns.
    #[inline(always)]
    fn add<S: Simd>(
        &mut self,
        simd: S,
        w: &[f64; BLOCK],
        density: &Density,
        places: &[f64],
        variances: Option<&[f64]>,
    ) {
        let (w, _) = S::as_simd_f64s(w);
        let side_by_side = LANES / S::F64_LANES;
        let (mass, _) = S::as_mut_simd_f64s(&mut self.mass);
        for (p, w) in w.iter().enumerate() {
            let sum = &mut mass[p % side_by_side];
            *sum = simd.add_f64s(*sum, *w);
        }
        let sums = self.first.iter_mut().zip(&mut self.second);
        let each = sums.zip(density.columns.iter().zip(columns(places)));
        for ((first, second), (&(mean, _), x)) in each {
            let mean = simd.splat_f64s(mean);
            let (first, _) = S::as_mut_simd_f64s(first);
            let (second, _) = S::as_mut_simd_f64s(second);
            let (x, _) = S::as_simd_f64s(x);
            for lane in 0..side_by_side {
                let (mut one, mut two) = (first[lane], second[lane]);
                for p in (lane..BLOCK / S::F64_LANES).step_by(side_by_side) {
                    let t = simd.sub_f64s(x[p], mean);
                    let wt = simd.mul_f64s(w[p], t);
                    one = simd.add_f64s(one, wt);
                    two = simd.mul_add_f64s(wt, t, two);
                }
                (first[lane], second[lane]) = (one, two);
            }
        }
        for (second, v) in self.second.iter_mut().zip(columns(variances.unwrap_or_default())) {
            let (second, _) = S::as_mut_simd_f64s(second);
            for (p, v) in S::as_simd_f64s(v).0.iter().enumerate() {
                let sum = &mut second[p % side_by_side];
                *sum = simd.mul_add_f64s(w[p], *v, *sum);
            }
        }
    }
}

/// Adds up the partial sums of each column.
fn add_lanes(sums: &[[f64; LANES]]) -> Vec<f64> {
    sums.iter().map(|s| s.iter().sum()).collect()
}

/// Points, atoms and lists of one pass, evaluated block by block.
struct Looked<'a> {
    points: &'a Diagonal,
    levels: &'a Levels,
    near: Option<&'a Near>,
    densities: Vec<Density>,
    /// The indices of all atoms.
    all: Vec<u32>,
}

/// Intermediate results for one block of points.
struct Block {
    /// Log densities of atoms, then their densities relative to the largest.
    logs: Vec<[f64; BLOCK]>,
    /// The atoms within range, as indices into the list of atoms.
    kept: Vec<usize>,
    /// The largest log density.
    max: [f64; BLOCK],
    /// Σ e of the relative densities e, and `Σ e log e`.
    total: [f64; BLOCK],
    spread: [f64; BLOCK],
}

impl Block {
    fn new(atoms: usize) -> Self {
        let (logs, kept) = (vec![[0.0; BLOCK]; atoms], Vec::with_capacity(atoms));
        Block { logs, kept, max: [0.0; BLOCK], total: [0.0; BLOCK], spread: [0.0; BLOCK] }
    }
}

impl<'a> Looked<'a> {
    fn new(
        points: &'a Diagonal,
        atoms: &[Atom],
        levels: &'a Levels,
        near: Option<&'a Near>,
    ) -> Self {
        let densities = atoms.iter().map(|a| Density::new(a, levels)).collect();
        Looked { points, levels, near, densities, all: (0..atoms.len() as u32).collect() }
    }

    /// Returns the atoms that a block evaluates.
    fn atoms(&self, b: usize) -> &[u32] {
        self.near.map_or(&self.all, |near| near.of(b))
    }

    fn span(&self, b: usize) -> std::ops::Range<usize> {
        let size = BLOCK * self.points.dims;
        b * size..(b + 1) * size
    }

    /// Returns the number of points of a block without those that fill it.
    fn filled(&self, b: usize) -> usize {
        (self.points.count - b * BLOCK).min(BLOCK)
    }

    /// Computes the relative densities of the atoms at the points of a block.
    #[inline(always)]
    fn share(&self, b: usize, block: &mut Block) {
        let (places, variances) =
            (&self.points.places[self.span(b)], self.points.variances.get(self.span(b)));
        let atoms = self.atoms(b);
        let mut max = [f64::NEG_INFINITY; BLOCK];
        for (logs, atom) in block.logs.iter_mut().zip(atoms) {
            let density = &self.densities[*atom as usize];
            *logs = density.of(places, variances);
            if !self.levels.is_empty() {
                for (i, log) in logs.iter_mut().enumerate().take(self.filled(b)) {
                    *log += self.levels.log(&density.levels, b * BLOCK + i);
                }
            }
            for i in 0..BLOCK {
                max[i] = if logs[i] > max[i] { logs[i] } else { max[i] };
            }
        }
        block.max = max;
        block.kept.clear();
        let are_few = self.all.len() < MANY;
        for (at, logs) in block.logs[..atoms.len()].iter().enumerate() {
            let mut reach = are_few;
            for i in 0..BLOCK {
                reach |= logs[i] > max[i] - REACH;
            }
            if reach {
                block.kept.push(at);
            }
        }
        if block.kept.is_empty() {
            // No atom has a density at these points.
            block.kept.extend(0..atoms.len());
        }
        let (mut total, mut spread) = ([0.0; BLOCK], [0.0; BLOCK]);
        for at in &block.kept {
            let logs = &mut block.logs[*at];
            for i in 0..BLOCK {
                let below = ((logs[i] - max[i]) as f32).max(LOWEST);
                logs[i] = f64::from(exp2_product(below, std::f32::consts::LOG2_E));
                total[i] += logs[i];
                spread[i] += logs[i] * f64::from(below);
            }
        }
        (block.total, block.spread) = (total, spread);
    }
}

/// Results of a pass other than the sums.
struct Found {
    /// Sum of the log-likelihoods.
    likelihood: f64,
    /// The best atom of each point, and the atoms within range of each block, if there are many
    /// atoms.
    best: Vec<u32>,
    near: Near,
}

/// Passes over all points once and adds up the sums of each atom.
struct Pass<'a> {
    looked: Looked<'a>,
    sums: &'a mut [Sums],
    found: &'a mut Found,
}

impl WithSimd for Pass<'_> {
    type Output = ();
    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Pass { looked, sums, found } = self;
        let (points, levels) = (looked.points, looked.levels);
        let mut block = Block::new(looked.all.len());
        for (b, weights) in columns(&points.weights).iter().enumerate() {
            looked.share(b, &mut block);
            let atoms = looked.atoms(b);
            let mut share = [0.0; BLOCK];
            let mut largest = 0.0f64;
            for i in 0..BLOCK {
                found.likelihood += weights[i] * (block.max[i] + block.total[i].ln());
                share[i] = weights[i] / block.total[i];
                largest = largest.max(weights[i]);
            }
            if looked.all.len() >= MANY {
                let mut best = [atoms[block.kept[0]]; BLOCK];
                for at in &block.kept {
                    for i in 0..BLOCK {
                        // The best atom has the relative density 1.
                        best[i] = if block.logs[*at][i] == 1.0 { atoms[*at] } else { best[i] };
                    }
                }
                found.best.extend_from_slice(&best);
                found.near.push(block.kept.iter().map(|at| atoms[*at]));
            }
            let (places, variances) =
                (&points.places[looked.span(b)], points.variances.get(looked.span(b)));
            for at in &block.kept {
                let (w, atom) = (&mut block.logs[*at], atoms[*at] as usize);
                let mut heaviest = 0.0f64;
                for i in 0..BLOCK {
                    w[i] *= share[i];
                    heaviest = heaviest.max(w[i]);
                }
                // Skip atoms whose contribution is below the rounding error.
                if heaviest > 1e-14 * largest {
                    sums[atom].add(simd, w, &looked.densities[atom], places, variances);
                    if !levels.is_empty() {
                        for (i, w) in w.iter().enumerate().take(looked.filled(b)) {
                            levels.add(&mut sums[atom].levels, b * BLOCK + i, *w);
                        }
                    }
                }
            }
        }
    }
}

/// Passes over all points once and computes their densities.
struct DensityPass<'a>(Looked<'a>, &'a mut Densities);

impl WithSimd for DensityPass<'_> {
    type Output = ();
    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let DensityPass(looked, densities) = self;
        let mut block = Block::new(looked.all.len());
        for b in 0..looked.points.weights.len() / BLOCK {
            looked.share(b, &mut block);
            for i in 0..BLOCK {
                densities.push(block.max[i], block.total[i], block.spread[i]);
            }
        }
    }
}
