//! A step of EM with diagonal covariances on points that may have a width.
//!
//! A point of mean x and variance v stands for rows around it: its log-density under an atom is
//!
//! ```text
//! log α + E log N(X; μ, γ) = log α − ½ Σ log 2πγ − ½ Σ ((x − μ)² + v)/γ
//! ```
//!
//! Points lie in blocks, each column of a block side by side, so that a vector holds one column of many
//! points. A step goes over them once: responsibilities of a block are summed up while they are in the
//! cache. Distances and sums are in doubles; exponentials are those of the sketch, in single precision.

use super::levels::Levels;
use super::moments::Moments;
use crate::atom::Atom;
use crate::covariance::Covariance;
use crate::kernel::exp2::exp2_product;
use crate::simd::Instructions;
use pulp::{Simd, WithSimd};

/// Points of a block: few enough that their log-densities stay in registers.
const BLOCK: usize = 32;
/// Sums of each column that run side by side.
const LANES: usize = 8;
/// Log-densities further below the largest count as this far, in nats: the exponentials end at 2⁻¹²⁶.
const LOWEST: f32 = -80.0;

/// Points laid out for diagonals.
#[derive(Debug)]
pub struct Diagonal {
    dims: usize,
    /// Points, without those that fill the last block.
    count: usize,
    /// `[block][point]`, zero where the last block is not full.
    weights: Vec<f64>,
    /// `[block][column][point]`.
    places: Vec<f64>,
    /// As places, or empty.
    widths: Vec<f64>,
}

impl Diagonal {
    /// Row-major points with their weights, and their variances where they have any.
    pub fn new(dims: usize, weights: &[f64], places: &[f64], variances: &[f64]) -> Self {
        let mut padded = weights.to_vec();
        padded.resize(weights.len().next_multiple_of(BLOCK), 0.0);
        Diagonal {
            dims,
            count: weights.len(),
            weights: padded,
            places: in_blocks(dims, places),
            widths: in_blocks(dims, variances),
        }
    }

    /// The sum of the log-likelihoods, and what each atom is responsible for.
    pub fn pass(
        &self,
        atoms: &[Atom],
        levels: &Levels,
        instructions: Instructions,
    ) -> (f64, Vec<Moments>) {
        let mut sums = vec![Sums::new(self.dims, levels.total()); atoms.len()];
        let mut likelihood = 0.0;
        let densities: Vec<Density> = atoms.iter().map(|a| Density::new(a, levels)).collect();
        let pass = Pass {
            points: self,
            levels,
            densities: &densities,
            sums: &mut sums,
            likelihood: &mut likelihood,
        };
        instructions.dispatch(pass);
        (likelihood, sums.into_iter().map(Sums::moments).collect())
    }
}

/// `[block][column][point]` of row-major points; the last is repeated where the last block is not full.
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

/// Each column of a block.
#[inline(always)]
fn columns(block: &[f64]) -> &[[f64; BLOCK]] {
    block.as_chunks().0
}

/// What the log-density of an atom is computed from.
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

    /// Log-densities of a block's points.
    #[inline(always)]
    fn of(&self, places: &[f64], widths: Option<&[f64]>) -> [f64; BLOCK] {
        let mut logs = [self.constant; BLOCK];
        match widths {
            None => {
                for (&(mean, factor), x) in self.columns.iter().zip(columns(places)) {
                    for i in 0..BLOCK {
                        let t = x[i] - mean;
                        logs[i] = (factor * t).mul_add(t, logs[i]);
                    }
                }
            }
            Some(widths) => {
                let each = columns(places).iter().zip(columns(widths));
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

/// Σ w, Σ w (x − μ), Σ w ((x − μ)² + v) of an atom, around its mean before.
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

    /// What runs side by side, added up.
    fn moments(self) -> Moments {
        let add = |sums: Vec<[f64; LANES]>| sums.iter().map(|s| s.iter().sum()).collect();
        Moments {
            mass: self.mass.iter().sum(),
            first: add(self.first),
            second: Covariance::Diagonal(add(self.second)),
            levels: self.levels,
        }
    }

    /// Adds a block whose points weigh `w` for the atom. Written for vectors: left to itself the compiler
    /// gathers across columns.
    #[inline(always)]
    fn add<S: Simd>(
        &mut self,
        simd: S,
        w: &[f64; BLOCK],
        density: &Density,
        places: &[f64],
        widths: Option<&[f64]>,
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
        for (second, v) in self.second.iter_mut().zip(columns(widths.unwrap_or_default())) {
            let (second, _) = S::as_mut_simd_f64s(second);
            for (p, v) in S::as_simd_f64s(v).0.iter().enumerate() {
                let sum = &mut second[p % side_by_side];
                *sum = simd.mul_add_f64s(w[p], *v, *sum);
            }
        }
    }
}

/// Goes over all points once.
struct Pass<'a> {
    points: &'a Diagonal,
    levels: &'a Levels,
    densities: &'a [Density],
    sums: &'a mut [Sums],
    /// Sum of the log-likelihoods.
    likelihood: &'a mut f64,
}

impl WithSimd for Pass<'_> {
    type Output = ();
    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let (points, size) = (self.points, BLOCK * self.points.dims);
        let mut logs = vec![[0.0; BLOCK]; self.densities.len()];
        for (b, weights) in columns(&points.weights).iter().enumerate() {
            let places = &points.places[b * size..(b + 1) * size];
            let widths = points.widths.get(b * size..(b + 1) * size);
            let mut most = [f64::NEG_INFINITY; BLOCK];
            for (logs, density) in logs.iter_mut().zip(self.densities) {
                *logs = density.of(places, widths);
                if !self.levels.is_empty() {
                    for (i, log) in logs.iter_mut().enumerate().take(points.count - b * BLOCK) {
                        *log += self.levels.log(&density.levels, b * BLOCK + i);
                    }
                }
                for i in 0..BLOCK {
                    most[i] = if logs[i] > most[i] { logs[i] } else { most[i] };
                }
            }
            let mut total = [0.0; BLOCK];
            for logs in &mut logs {
                for i in 0..BLOCK {
                    let below = ((logs[i] - most[i]) as f32).max(LOWEST);
                    logs[i] = f64::from(exp2_product(below, std::f32::consts::LOG2_E));
                    total[i] += logs[i];
                }
            }
            let mut share = [0.0; BLOCK];
            let mut largest = 0.0f64;
            for i in 0..BLOCK {
                *self.likelihood += weights[i] * (most[i] + total[i].ln());
                share[i] = weights[i] / total[i];
                largest = largest.max(weights[i]);
            }
            for ((w, sums), density) in logs.iter_mut().zip(&mut *self.sums).zip(self.densities) {
                let mut heaviest = 0.0f64;
                for i in 0..BLOCK {
                    w[i] *= share[i];
                    heaviest = heaviest.max(w[i]);
                }
                // Nothing that would show is left out.
                if heaviest > 1e-14 * largest {
                    sums.add(simd, w, density, places, widths);
                    if !self.levels.is_empty() {
                        for (i, w) in w.iter().enumerate().take(points.count - b * BLOCK) {
                            self.levels.add(&mut sums.levels, b * BLOCK + i, *w);
                        }
                    }
                }
            }
        }
    }
}
