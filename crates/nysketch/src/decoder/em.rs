//! EM for diagonal Gaussian mixtures on weighted points that may have a width.
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

use crate::atom::Atom;
use crate::kernel::exp2::exp2_product;
use crate::simd::Instructions;
use pulp::{Simd, WithSimd};

/// Points of a block: few enough that their log-densities stay in registers.
const BLOCK: usize = 32;
/// Sums of each column that run side by side.
const LANES: usize = 8;
/// EM ends when the mean log-likelihood grows by less than this, in nats.
const TOLERANCE: f64 = 1e-6;
/// Log-densities further below the largest count as this far, in nats: the exponentials end at 2⁻¹²⁶.
const LOWEST: f32 = -80.0;

/// Points laid out for EM.
#[derive(Debug)]
pub(super) struct Em<'a> {
    dims: usize,
    /// `[block][point]`, zero where the last block is not full.
    weights: Vec<f64>,
    /// `[block][column][point]`.
    places: Vec<f64>,
    /// As places, or empty.
    widths: Vec<f64>,
    mass: f64,
    /// Variance that an atom keeps at least in each column.
    floor: &'a [f64],
}

impl<'a> Em<'a> {
    /// Row-major points with their weights, and their variances where they have any.
    pub(super) fn new(
        weights: &[f64],
        places: &[f64],
        variances: &[f64],
        floor: &'a [f64],
    ) -> Self {
        let dims = floor.len();
        let mut padded = weights.to_vec();
        padded.resize(weights.len().next_multiple_of(BLOCK), 0.0);
        Em {
            dims,
            weights: padded,
            places: in_blocks(dims, places),
            widths: in_blocks(dims, variances),
            mass: weights.iter().sum(),
            floor,
        }
    }

    /// Steps until the likelihood stays, or as many as are allowed. Returns the mean log-likelihood before
    /// the last step, and their number.
    pub(super) fn run(&self, atoms: &mut [Atom], iterations: usize) -> (f64, usize) {
        let mut before = f64::NEG_INFINITY;
        for step in 0..iterations {
            let likelihood = self.step(atoms, Instructions::best());
            if likelihood - before < TOLERANCE {
                return (likelihood, step + 1);
            }
            before = likelihood;
        }
        (before, iterations)
    }

    /// One step; returns the mean log-likelihood before it.
    fn step(&self, atoms: &mut [Atom], instructions: Instructions) -> f64 {
        let mut sums = vec![Sums::new(self.dims); atoms.len()];
        let mut likelihood = 0.0;
        let densities: Vec<Density> = atoms.iter().map(Density::new).collect();
        let pass = Pass {
            points: self,
            densities: &densities,
            sums: &mut sums,
            likelihood: &mut likelihood,
        };
        instructions.dispatch(pass);
        for (atom, sums) in atoms.iter_mut().zip(&sums) {
            self.update(atom, sums);
        }
        likelihood / self.mass
    }

    /// The atom of what it is responsible for.
    fn update(&self, atom: &mut Atom, sums: &Sums) {
        let mass: f64 = sums.mass.iter().sum();
        atom.weight = mass / self.mass;
        if !(mass > 1e-12 * self.mass) {
            return;
        }
        for (k, floor) in self.floor.iter().enumerate() {
            let moved = sums.first[k].iter().sum::<f64>() / mass;
            let spread = sums.second[k].iter().sum::<f64>() / mass;
            atom.mean[k] += moved;
            atom.variance_mut()[k] = (spread - moved * moved).max(*floor);
        }
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
}

impl Density {
    fn new(atom: &Atom) -> Self {
        let logs: f64 = atom.variance().iter().map(|g| (std::f64::consts::TAU * g).ln()).sum();
        Density {
            constant: atom.weight.max(1e-300).ln() - 0.5 * logs,
            columns: atom.mean.iter().zip(atom.variance()).map(|(m, g)| (*m, -0.5 / g)).collect(),
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

/// What an atom is responsible for, around its mean before, so that no digits are lost:
/// Σ w, Σ w (x − μ), Σ w ((x − μ)² + v).
#[derive(Clone)]
struct Sums {
    mass: [f64; LANES],
    first: Vec<[f64; LANES]>,
    second: Vec<[f64; LANES]>,
}

impl Sums {
    fn new(dims: usize) -> Self {
        let zero = [0.0; LANES];
        Sums { mass: zero, first: vec![zero; dims], second: vec![zero; dims] }
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
    points: &'a Em<'a>,
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
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{normal, unit};
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    /// A step of EM as it is written down, in doubles.
    fn plain_step(w: &[f64], x: &[f64], v: &[f64], atoms: &[Atom]) -> (Vec<Atom>, f64) {
        let d = atoms[0].mean.len();
        let mut likelihood = 0.0;
        let shares: Vec<Vec<f64>> = (0..w.len())
            .map(|i| {
                let log = |a: &Atom| -> f64 {
                    let column = |k: usize| {
                        let (t, g) = (x[i * d + k] - a.mean[k], a.variance()[k]);
                        -0.5 * (std::f64::consts::TAU * g).ln()
                            - 0.5 * (t * t + v.get(i * d + k).unwrap_or(&0.0)) / g
                    };
                    a.weight.ln() + (0..d).map(column).sum::<f64>()
                };
                let logs: Vec<f64> = atoms.iter().map(log).collect();
                let most = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                let sum: f64 = logs.iter().map(|l| (l - most).exp()).sum();
                likelihood += w[i] * (most + sum.ln());
                logs.iter().map(|l| w[i] * (l - most).exp() / sum).collect()
            })
            .collect();
        let next = |c: usize| {
            let mass: f64 = shares.iter().map(|s| s[c]).sum();
            let over = |of: &dyn Fn(usize) -> f64| {
                (0..w.len()).map(|i| shares[i][c] * of(i)).sum::<f64>() / mass
            };
            let mean: Vec<f64> = (0..d).map(|k| over(&|i| x[i * d + k])).collect();
            let width = |i: usize, k: usize| v.get(i * d + k).copied().unwrap_or(0.0);
            let square = |k: usize| over(&|i| (x[i * d + k] - mean[k]).powi(2) + width(i, k));
            let variance = (0..d).map(square).collect();
            Atom::diagonal(mass / w.iter().sum::<f64>(), mean, variance)
        };
        ((0..atoms.len()).map(next).collect(), likelihood / w.iter().sum::<f64>())
    }

    /// With few points and many, with and without width, and with atoms so far apart that nothing of one
    /// shows at the points of another.
    #[test]
    fn a_step_is_the_one_written_down() {
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        let cases = [
            (1, 1, 1, true, 1.0),
            (31, 3, 2, false, 1.0),
            (65, 20, 4, true, 1.0),
            (200, 9, 7, false, 1.0),
            (300, 5, 6, false, 30.0),
            (300, 5, 6, true, 30.0),
        ];
        for (n, d, k, wide, apart) in cases {
            // Some points without weight among the others.
            let w: Vec<f64> =
                (0..n).map(|i| if i % 7 == 3 { 0.0 } else { 0.1 + unit(&mut rng) }).collect();
            let mut atoms: Vec<Atom> = (0..k)
                .map(|_| {
                    let mean = (0..d).map(|_| apart * normal(&mut rng)).collect();
                    let variance = (0..d).map(|_| 0.5 + unit(&mut rng)).collect();
                    Atom::diagonal(1.0 / k as f64, mean, variance)
                })
                .collect();
            let x: Vec<f64> =
                (0..n * d).map(|at| atoms[at / d % k].mean[at % d] + normal(&mut rng)).collect();
            let v: Vec<f64> = (0..if wide { n * d } else { 0 }).map(|_| unit(&mut rng)).collect();
            let (expected, likelihood) = plain_step(&w, &x, &v, &atoms);
            let floor = vec![0.0; d];
            let points = Em::new(&w, &x, &v, &floor);
            let start = atoms.clone();
            let found = points.step(&mut atoms, Instructions::best());
            for other in Instructions::all() {
                let mut again = start.clone();
                assert_eq!(points.step(&mut again, other), found, "{}", other.name());
                assert_eq!(again, atoms, "{}", other.name());
            }
            // Exponentials are off by 2e-7 of the largest; places are within 5 of a mean that takes from them.
            assert!((found - likelihood).abs() < 1e-6, "{found} {likelihood}");
            for (a, b) in atoms.iter().zip(&expected) {
                assert!((a.weight - b.weight).abs() < 1e-6);
                for j in 0..d {
                    assert!((a.mean[j] - b.mean[j]).abs() < 5e-6, "{a:?} {b:?}");
                    assert!((a.variance()[j] - b.variance()[j]).abs() < 1e-5, "{a:?} {b:?}");
                }
            }
        }
    }

    /// An atom that no point comes to keeps its place, and a variance does not fall below the floor.
    #[test]
    fn atoms_without_points_and_points_without_spread() {
        let floor = [0.25];
        let points = Em::new(&[1.0; 40], &[2.0; 40], &[], &floor);
        let atom = |mean| Atom::diagonal(0.5, vec![mean], vec![1.0]);
        let mut atoms = [atom(2.5), atom(1e4)];
        let (likelihood, _) = points.run(&mut atoms, 50);
        assert_eq!(atoms[0], Atom::diagonal(1.0, vec![2.0], vec![0.25]));
        assert_eq!((atoms[1].weight < 1e-12, &atoms[1].mean), (true, &vec![1e4]));
        // The density of N(2, ¼) at its mean.
        assert!((likelihood - (2.0 / std::f64::consts::TAU.sqrt()).ln()).abs() < 1e-6);
    }
}
