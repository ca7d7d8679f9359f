//! The cells decoder: k-means, k-medians and Gaussian mixtures from cell moments.
//!
//! A cell is the rows nearest to one landmark; its count, mean and variance are known exactly. A
//! centre close to none of a cell's borders treats its rows as one, so weighted k-means on cell means
//! is k-means on the rows up to cells that a border cuts. No bandwidth enters.

use super::Report;
use crate::atom::Atom;
use crate::fixed::{centred_sum, coordinate_value, power_of_two};
use crate::measure::{Effort, Loss, Measure};
use crate::random::normal;
use crate::sketch::Sketch;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

/// Cells that hold rows.
#[derive(Debug, Clone)]
pub struct Cells {
    dims: usize,
    rows: Vec<f64>,
    /// Row-major means.
    means: Vec<f64>,
    /// Row-major variances within the cell.
    variances: Vec<f64>,
    /// Variance that a component keeps at least in each column.
    floor: Vec<f64>,
}

/// Points that all cells are unfolded into, about.
const UNFOLDED: usize = 20_000;

impl Cells {
    /// The cells of a sketch that keeps them.
    pub fn new(sketch: &Sketch) -> Self {
        let (d, sums) = (sketch.plan().dims(), sketch.sums());
        let exponent = &sketch.plan().frame.exponent;
        let mut cells = Cells {
            dims: d,
            rows: Vec::new(),
            means: Vec::new(),
            variances: Vec::new(),
            floor: Vec::new(),
        };
        for (j, &count) in sums.cell_rows.iter().enumerate().filter(|(_, n)| **n > 0) {
            let n = count as f64;
            cells.rows.push(n);
            for k in 0..d {
                let (sum, square) = (sums.cell_sum[j * d + k], sums.cell_square[j * d + k]);
                let unit = power_of_two(exponent[k]);
                cells.means.push(coordinate_value(sum, exponent[k]) / n);
                cells
                    .variances
                    .push((centred_sum(square, sum, sum, count) * unit * unit / n).max(0.0));
            }
        }
        // A thousandth of what cells are wide, and never below the unit of the sums.
        cells.floor = (0..d)
            .map(|k| (1e-3 * cells.median_variance(k)).max(power_of_two(2 * (exponent[k] + 2))))
            .collect();
        cells
    }

    /// Median over the rows of the variance within their cell.
    fn median_variance(&self, k: usize) -> f64 {
        let column = self.variances.iter().skip(k).step_by(self.dims).copied();
        let mut weighted: Vec<(f64, f64)> = column.zip(self.rows.iter().copied()).collect();
        weighted.sort_by(|a, b| a.0.total_cmp(&b.0));
        let half = self.rows.iter().sum::<f64>() / 2.0;
        let mut seen = 0.0;
        let middle = weighted.iter().find(|(_, n)| {
            seen += n;
            seen >= half
        });
        middle.map_or(0.0, |m| m.0)
    }

    /// Every row a cell of its own: EM on these is EM on the rows.
    pub fn of_rows(dims: usize, values: &[f64]) -> Self {
        Self::of_measure(&Measure::new(dims, values, &vec![1.0; values.len() / dims]))
    }

    /// Every point of a measure a cell without width.
    pub fn of_measure(measure: &Measure) -> Self {
        let (dims, mass) = (measure.dims(), measure.mass());
        let floor = (0..dims)
            .map(|k| {
                let mean = measure.iter().map(|(x, w)| w * x[k]).sum::<f64>() / mass;
                let variance =
                    measure.iter().map(|(x, w)| w * (x[k] - mean).powi(2)).sum::<f64>() / mass;
                (1e-9 * variance).max(1e-300)
            })
            .collect();
        Cells {
            dims,
            rows: measure.iter().map(|(_, w)| w).collect(),
            means: measure.iter().flat_map(|(x, _)| x.to_vec()).collect(),
            variances: vec![0.0; dims * measure.len()],
            floor,
        }
    }

    /// Cell means weighted by their rows.
    pub fn measure(&self) -> Measure {
        Measure::new(self.dims, &self.means, &self.rows)
    }

    /// k centres of least risk: on cell means first, from several starts and from `warm` centres
    /// with more added, then on the cells unfolded, so that a cell which a border cuts gives to
    /// both sides.
    pub fn cluster(
        &self,
        k: usize,
        loss: Loss,
        effort: Effort,
        warm: &[Vec<f64>],
        rng: &mut impl rand::Rng,
        report: &mut Report,
    ) -> Vec<Vec<f64>> {
        let measure = self.measure();
        let mut centres = measure.cluster(k, loss, effort, rng);
        if !warm.is_empty() && warm.len() < k {
            let mut grown = measure.grow(warm.to_vec(), k, rng);
            measure.iterate(&mut grown, loss, effort.iterations);
            if measure.risk(&grown, loss) < measure.risk(&centres, loss) {
                centres = grown;
            }
        }
        report.objective.push(measure.risk(&centres, loss));
        let unfolded = self.unfold(rng).measure();
        report.iterations += unfolded.iterate(&mut centres, loss, effort.iterations);
        report.objective.push(unfolded.risk(&centres, loss));
        report.status = match report.iterations < effort.iterations {
            true => "Converged",
            false => "IterationLimit",
        }
        .into();
        centres
    }

    /// Every cell as points drawn around its mean with its variance, in antithetic pairs so that
    /// the mean is kept, and scaled so that the variance is.
    pub fn unfold(&self, rng: &mut impl rand::Rng) -> Cells {
        let d = self.dims;
        let pairs = (UNFOLDED / (2 * self.rows.len())).clamp(2, 200);
        let mut out = Cells {
            dims: d,
            rows: Vec::new(),
            means: Vec::new(),
            variances: Vec::new(),
            floor: self.floor.clone(),
        };
        for (i, rows) in self.rows.iter().enumerate() {
            let span = i * d..(i + 1) * d;
            let (mean, variance) = (&self.means[span.clone()], &self.variances[span]);
            let draws: Vec<f64> = (0..pairs * d).map(|_| normal(rng)).collect();
            let spread = |k: usize| -> f64 {
                draws.iter().skip(k).step_by(d).map(|x| x * x).sum::<f64>() / pairs as f64
            };
            let factor: Vec<f64> =
                (0..d).map(|k| (variance[k] / spread(k).max(f64::MIN_POSITIVE)).sqrt()).collect();
            for draw in draws.chunks_exact(d) {
                for sign in [1.0, -1.0] {
                    out.rows.push(rows / (2 * pairs) as f64);
                    out.means.extend((0..d).map(|k| mean[k] + sign * factor[k] * draw[k]));
                    out.variances.extend(std::iter::repeat_n(0.0, d));
                }
            }
        }
        out
    }

    /// A diagonal Gaussian mixture by EM, a cell standing for rows of its mean and variance.
    pub fn mixture(
        &self,
        k: usize,
        effort: Effort,
        rng: &mut impl rand::Rng,
        report: &mut Report,
    ) -> Vec<Atom> {
        let mut best: Option<(f64, Vec<Atom>, usize)> = None;
        for _ in 0..effort.restarts {
            let few = Effort { restarts: 2, iterations: 50 };
            let centres = self.measure().cluster(k, Loss::Squared, few, rng);
            let mut atoms = self.atoms_around(&centres);
            let (likelihood, steps) = self.em(&mut atoms, effort.iterations);
            if best.as_ref().is_none_or(|(l, _, _)| likelihood > *l) {
                best = Some((likelihood, atoms, steps));
            }
        }
        let (likelihood, mut atoms, mut steps) = best.unwrap_or_default();
        let likelihood = if self.variances.iter().any(|v| *v > 0.0) {
            let (likelihood, more) = self.unfold(rng).em(&mut atoms, effort.iterations);
            steps += more;
            likelihood
        } else {
            likelihood
        };
        report.iterations += steps;
        report.objective.push(-likelihood);
        report.status =
            if steps < 2 * effort.iterations { "Converged" } else { "IterationLimit" }.into();
        atoms
    }

    /// The mean log-likelihood of a mixture on the cells, unfolded where they have width.
    pub fn likelihood(&self, atoms: &[Atom]) -> f64 {
        let mut atoms = atoms.to_vec();
        match self.variances.iter().any(|v| *v > 0.0) {
            true => self.unfold(&mut ChaCha8Rng::seed_from_u64(0)).em(&mut atoms, 1).0,
            false => self.em(&mut atoms, 1).0,
        }
    }

    fn atoms_around(&self, centres: &[Vec<f64>]) -> Vec<Atom> {
        let mut responsibilities = vec![0.0; self.rows.len() * centres.len()];
        for (i, x) in self.means.chunks_exact(self.dims).enumerate() {
            responsibilities[i * centres.len() + crate::measure::nearest(x, centres).0] = 1.0;
        }
        let start =
            Atom { weight: 0.0, mean: vec![0.0; self.dims], variance: vec![1.0; self.dims] };
        let mut atoms = vec![start; centres.len()];
        for (atom, centre) in atoms.iter_mut().zip(centres) {
            atom.mean.clone_from(centre);
        }
        self.maximise(&mut atoms, &responsibilities);
        atoms
    }

    fn em(&self, atoms: &mut [Atom], iterations: usize) -> (f64, usize) {
        let k = atoms.len();
        let total: f64 = self.rows.iter().sum();
        let mut responsibilities = vec![0.0; self.rows.len() * k];
        let mut before = f64::NEG_INFINITY;
        for step in 0..iterations {
            let mut likelihood = 0.0;
            for (i, r) in responsibilities.chunks_exact_mut(k).enumerate() {
                let span = i * self.dims..(i + 1) * self.dims;
                let (x, v) = (&self.means[span.clone()], &self.variances[span]);
                for (r, a) in r.iter_mut().zip(atoms.iter()) {
                    *r = a.weight.max(1e-300).ln() + expected_log_density(a, x, v);
                }
                let most = r.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                let sum: f64 = r.iter().map(|l| (l - most).exp()).sum();
                r.iter_mut().for_each(|l| *l = (*l - most).exp() / sum);
                likelihood += self.rows[i] * (most + sum.ln());
            }
            likelihood /= total;
            self.maximise(atoms, &responsibilities);
            if likelihood - before < 1e-9 * likelihood.abs().max(1.0) {
                return (likelihood, step + 1);
            }
            before = likelihood;
        }
        (before, iterations)
    }

    fn maximise(&self, atoms: &mut [Atom], responsibilities: &[f64]) {
        let (k, d) = (atoms.len(), self.dims);
        let total: f64 = self.rows.iter().sum();
        for (c, atom) in atoms.iter_mut().enumerate() {
            let mass = |i: usize| self.rows[i] * responsibilities[i * k + c];
            let sum: f64 = (0..self.rows.len()).map(mass).sum();
            atom.weight = sum / total;
            if !(sum > 1e-12 * total) {
                continue;
            }
            for j in 0..d {
                let at = |i: usize| i * d + j;
                let mean =
                    (0..self.rows.len()).map(|i| mass(i) * self.means[at(i)]).sum::<f64>() / sum;
                let spread = |i: usize| self.variances[at(i)] + (self.means[at(i)] - mean).powi(2);
                let variance = (0..self.rows.len()).map(|i| mass(i) * spread(i)).sum::<f64>() / sum;
                atom.mean[j] = mean;
                atom.variance[j] = variance.max(self.floor[j]);
            }
        }
    }
}

/// `E log N(X; μ, γ)` over rows of mean x and variance v.
fn expected_log_density(atom: &Atom, x: &[f64], v: &[f64]) -> f64 {
    let mut sum = 0.0;
    for k in 0..x.len() {
        let g = atom.variance[k];
        sum += (std::f64::consts::TAU * g).ln() + ((x[k] - atom.mean[k]).powi(2) + v[k]) / g;
    }
    -0.5 * sum
}
