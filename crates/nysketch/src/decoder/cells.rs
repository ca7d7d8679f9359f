//! The cells decoder: k-means, k-medians and Gaussian mixtures from cell moments.
//!
//! A cell is the rows nearest to one landmark; its count, mean and variance are known exactly. A
//! centre close to none of a cell's borders treats its rows as one, so weighted k-means on cell means
//! is k-means on the rows up to cells that a border cuts. No bandwidth enters.
//!
//! Cells that a border cuts are *unfolded* into points. Where a mixture predicts the counts of the cells,
//! points are drawn from it, each in the cell of its nearest landmark, then moved and stretched so that the
//! cell has the mean and variance it is known to have: its shape is that of the mixture between the borders
//! of the cell. Elsewhere points are drawn around the cell's mean.

use super::Report;
use crate::atom::Atom;
use crate::fixed::power_of_two;
use crate::kernel::pack::MAX_BLOCK;
use crate::kernel::tile::{Instructions, Nearest, Tiles, Work};
use crate::measure::{Effort, Loss, Measure};
use crate::points::Points;
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
    /// The landmark of each cell, where there are any.
    landmarks: Option<Points>,
}

/// Points that all cells are unfolded into, about.
const UNFOLDED: usize = 20_000;
/// Most rounds of unfolding by a mixture and fitting it again.
const ROUNDS: usize = 20;
/// Steps of EM in a round.
const STEPS: usize = 5;
/// Rounds end when the mean log-likelihood changes by less than this, in nats.
const SETTLED: f64 = 2e-4;
/// Share of the rows that a mixture may put into the wrong cells and still shape them.
const MISPLACED: f64 = 0.15;
/// Points drawn in a cell from which on they tell its shape.
const LEAST_DRAWN: usize = 6;
/// Steps of EM on cells unfolded by themselves.
const PLAIN_STEPS: usize = 50;
/// EM ends when the mean log-likelihood grows by less than this, in nats.
const TOLERANCE: f64 = 1e-6;

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
            landmarks: None,
        };
        let mut kept = Vec::new();
        for (j, &count) in sums.cell_rows.iter().enumerate().filter(|(_, n)| **n > 0) {
            let n = count as f64;
            kept.push(j);
            cells.rows.push(n);
            cells.means.extend(sums.cell_mean(j, exponent));
            for k in 0..d {
                let unit = power_of_two(exponent[k]);
                cells.variances.push((sums.cell_spread(j, k) * unit * unit / n).max(0.0));
            }
        }
        cells.landmarks = sketch.plan().landmarks().map(|l| l.select(&kept));
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
        Self::of_measure(&Measure::of_rows(dims, values))
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
            landmarks: None,
        }
    }

    /// Points of this weight and place instead of these cells.
    fn points(&self, rows: Vec<f64>, means: Vec<f64>) -> Self {
        let variances = vec![0.0; means.len()];
        Cells {
            dims: self.dims,
            rows,
            means,
            variances,
            floor: self.floor.clone(),
            landmarks: None,
        }
    }

    fn have_width(&self) -> bool {
        self.variances.iter().any(|v| *v > 0.0)
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
        let unfolded = self.unfold_around(&centres, rng).measure();
        report.iterations += unfolded.iterate(&mut centres, loss, effort.iterations);
        report.objective.push(unfolded.risk(&centres, loss));
        report.status = match report.iterations < effort.iterations {
            true => "Converged",
            false => "IterationLimit",
        }
        .into();
        centres
    }

    /// Cells unfolded by a mixture that starts at these centres, where one describes them.
    fn unfold_around(&self, centres: &[Vec<f64>], rng: &mut impl rand::Rng) -> Cells {
        let plain = self.unfold(rng);
        if centres.len() < 2 || self.landmarks.is_none() || !self.have_width() {
            return plain;
        }
        let mut atoms = self.atoms_around(centres);
        plain.em(&mut atoms, PLAIN_STEPS);
        self.shape(&mut atoms, rng).map_or(plain, |(shaped, _)| shaped)
    }

    /// Unfolds the cells by a mixture and fits it to them, in turn, until both settle. Returns the cells
    /// and the mixture's likelihood on them; `None` where it does not describe them.
    fn shape(&self, atoms: &mut [Atom], rng: &mut impl rand::Rng) -> Option<(Cells, f64)> {
        let mut found: Option<(Cells, f64)> = None;
        for _ in 0..ROUNDS {
            let Some(unfolded) = self.unfold_by(atoms, rng) else { break };
            let likelihood = unfolded.em(atoms, STEPS).0;
            let settled = found.as_ref().is_some_and(|(_, l)| (likelihood - l).abs() < SETTLED);
            found = Some((unfolded, likelihood));
            if settled {
                break;
            }
        }
        found
    }

    /// Points drawn from a mixture, each cell's moved and stretched to its mean and variance, and as heavy
    /// as its rows. `None` where the mixture puts too many rows into the wrong cells.
    fn unfold_by(&self, atoms: &[Atom], rng: &mut impl rand::Rng) -> Option<Cells> {
        let d = self.dims;
        let landmarks = self.landmarks.as_ref()?;
        // As many of each component as it weighs. New ones each time: a mixture that is fitted to the same
        // draws again and again learns their chance.
        let mut drawn = Vec::with_capacity(UNFOLDED * d);
        for atom in atoms {
            for _ in 0..(atom.weight * UNFOLDED as f64).round() as usize {
                let value = |k: usize| atom.mean[k] + atom.variance[k].sqrt() * normal(rng);
                drawn.extend((0..d).map(value));
            }
        }
        let narrow: Vec<f32> = drawn.iter().map(|x| *x as f32).collect();
        let mut tiles = Tiles::new(landmarks, None, Instructions::best());
        let (mut nearest, mut cell_of) = (Nearest::default(), Vec::new());
        for block in narrow.chunks(MAX_BLOCK * d) {
            tiles.block(block, &[], Some(&mut nearest), |_, _, _| {});
            cell_of.extend_from_slice(&nearest.index);
        }
        let mut members: Vec<Vec<usize>> = vec![Vec::new(); self.rows.len()];
        for (i, &cell) in cell_of.iter().enumerate() {
            members[cell as usize].push(i);
        }
        let total: f64 = self.rows.iter().sum();
        let all = cell_of.len() as f64;
        let off = |(rows, in_cell): (&f64, &Vec<usize>)| {
            (rows / total - in_cell.len() as f64 / all).abs()
        };
        // Draws by themselves put some into the wrong cells: about 0.4 √(cells/draws).
        let chance = 0.4 * (self.rows.len() as f64 / all).sqrt();
        let misplaced = 0.5 * self.rows.iter().zip(&members).map(off).sum::<f64>();
        if !(misplaced <= MISPLACED + chance) {
            return None;
        }
        let (mut rows, mut means, mut few) = (Vec::new(), Vec::new(), Vec::new());
        for (cell, members) in members.iter().enumerate() {
            if members.len() < LEAST_DRAWN {
                few.push(cell);
                continue;
            }
            let n = members.len() as f64;
            // Mean and factor of each column.
            let fit = |k: usize| {
                let mean = members.iter().map(|i| drawn[i * d + k]).sum::<f64>() / n;
                let spread =
                    members.iter().map(|i| (drawn[i * d + k] - mean).powi(2)).sum::<f64>() / n;
                let factor = (self.variances[cell * d + k] / spread.max(f64::MIN_POSITIVE)).sqrt();
                (mean, factor)
            };
            let fits: Vec<(f64, f64)> = (0..d).map(fit).collect();
            for i in members {
                rows.push(self.rows[cell] / n);
                for (k, (mean, factor)) in fits.iter().enumerate() {
                    means.push(self.means[cell * d + k] + factor * (drawn[i * d + k] - mean));
                }
            }
        }
        let rest = self.only(&few).unfold(rng);
        rows.extend(rest.rows);
        means.extend(rest.means);
        Some(self.points(rows, means))
    }

    /// Some of the cells.
    fn only(&self, cells: &[usize]) -> Cells {
        let d = self.dims;
        let pick =
            |of: &[f64]| cells.iter().flat_map(|c| of[c * d..(c + 1) * d].to_vec()).collect();
        Cells {
            dims: d,
            rows: cells.iter().map(|c| self.rows[*c]).collect(),
            means: pick(&self.means),
            variances: pick(&self.variances),
            floor: self.floor.clone(),
            landmarks: None,
        }
    }

    /// Every cell as points drawn around its mean with its variance, in antithetic pairs so that
    /// the mean is kept, and scaled so that the variance is.
    pub fn unfold(&self, rng: &mut impl rand::Rng) -> Cells {
        let d = self.dims;
        let pairs = (UNFOLDED / (2 * self.rows.len().max(1))).clamp(2, 200);
        let (mut rows, mut means) = (Vec::new(), Vec::new());
        for (i, of_cell) in self.rows.iter().enumerate() {
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
                    rows.push(of_cell / (2 * pairs) as f64);
                    means.extend((0..d).map(|k| mean[k] + sign * factor[k] * draw[k]));
                }
            }
        }
        self.points(rows, means)
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
        let (mut likelihood, mut atoms, mut steps) = best.unwrap_or_default();
        if self.have_width() {
            let (found, more) = self.unfold(rng).em(&mut atoms, PLAIN_STEPS);
            let shaped = self.shape(&mut atoms, rng);
            likelihood = shaped.map_or(found, |(_, likelihood)| likelihood);
            steps += more;
        }
        report.iterations += steps;
        report.objective.push(-likelihood);
        report.status =
            if steps < effort.iterations { "Converged" } else { "IterationLimit" }.into();
        atoms
    }

    /// The mean log-likelihood of a mixture on the cells, unfolded where they have width.
    pub fn likelihood(&self, atoms: &[Atom]) -> f64 {
        let mut atoms = atoms.to_vec();
        match self.have_width() {
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
        let (k, d) = (atoms.len(), self.dims);
        let total: f64 = self.rows.iter().sum();
        let mut responsibilities = vec![0.0; self.rows.len() * k];
        let mut before = f64::NEG_INFINITY;
        for step in 0..iterations {
            let mut likelihood = 0.0;
            Instructions::best().run(Expectation {
                cells: self,
                densities: atoms.iter().map(|a| Density::new(a, d)).collect(),
                responsibilities: &mut responsibilities,
                likelihood: &mut likelihood,
            });
            likelihood /= total;
            self.maximise(atoms, &responsibilities);
            if likelihood - before < TOLERANCE {
                return (likelihood, step + 1);
            }
            before = likelihood;
        }
        (before, iterations)
    }

    fn maximise(&self, atoms: &mut [Atom], responsibilities: &[f64]) {
        let (k, d) = (atoms.len(), self.dims);
        let total: f64 = self.rows.iter().sum();
        // Around the mean before, so that no digits are lost: Σ w, Σ w (x − μ), Σ w ((x − μ)² + v).
        let mut sums = vec![0.0; k * (1 + 2 * d)];
        Instructions::best().run(Maximisation {
            cells: self,
            atoms,
            responsibilities,
            sums: &mut sums,
        });
        for (atom, sums) in atoms.iter_mut().zip(sums.chunks_exact(1 + 2 * d)) {
            let (mass, first, second) = (sums[0], &sums[1..=d], &sums[1 + d..]);
            atom.weight = mass / total;
            if !(mass > 1e-12 * total) {
                continue;
            }
            for j in 0..d {
                let moved = first[j] / mass;
                atom.mean[j] += moved;
                atom.variance[j] = (second[j] / mass - moved * moved).max(self.floor[j]);
            }
        }
    }
}

/// What the log-density of an atom is computed from.
struct Density {
    /// `log α − ½ Σ log 2πγ`.
    constant: f64,
    mean: Vec<f64>,
    /// `−½/γ`.
    factor: Vec<f64>,
}

impl Density {
    fn new(atom: &Atom, d: usize) -> Self {
        let logs: f64 = atom.variance.iter().map(|g| (std::f64::consts::TAU * g).ln()).sum();
        Density {
            constant: atom.weight.max(1e-300).ln() - 0.5 * logs,
            mean: atom.mean[..d].to_vec(),
            factor: atom.variance.iter().map(|g| -0.5 / g).collect(),
        }
    }

    /// `log α + E log N(X; μ, γ)` over rows of mean x and variance v.
    #[inline(always)]
    fn of(&self, x: &[f64], v: &[f64]) -> f64 {
        let d = x.len();
        let (mean, factor, v) = (&self.mean[..d], &self.factor[..d], &v[..d]);
        let mut sums = [0.0; 8];
        let whole = d / 8 * 8;
        for start in (0..whole).step_by(8) {
            for l in 0..8 {
                let k = start + l;
                let t = x[k] - mean[k];
                sums[l] += factor[k] * (t * t + v[k]);
            }
        }
        let mut rest = self.constant;
        for k in whole..d {
            let t = x[k] - mean[k];
            rest += factor[k] * (t * t + v[k]);
        }
        rest + sums.iter().sum::<f64>()
    }
}

/// Responsibilities of every cell, and the sum of the log-likelihoods.
struct Expectation<'a> {
    cells: &'a Cells,
    densities: Vec<Density>,
    responsibilities: &'a mut [f64],
    likelihood: &'a mut f64,
}

impl Work for Expectation<'_> {
    #[inline(always)]
    fn work(self) {
        let (k, d) = (self.densities.len(), self.cells.dims);
        for (i, r) in self.responsibilities.chunks_exact_mut(k).enumerate() {
            let span = i * d..(i + 1) * d;
            let (x, v) = (&self.cells.means[span.clone()], &self.cells.variances[span]);
            for (r, density) in r.iter_mut().zip(&self.densities) {
                *r = density.of(x, v);
            }
            let most = r.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let mut sum = 0.0;
            for l in r.iter_mut() {
                *l = (*l - most).exp();
                sum += *l;
            }
            r.iter_mut().for_each(|l| *l /= sum);
            *self.likelihood += self.cells.rows[i] * (most + sum.ln());
        }
    }
}

/// Sums that the next atoms are made of.
struct Maximisation<'a> {
    cells: &'a Cells,
    atoms: &'a [Atom],
    responsibilities: &'a [f64],
    sums: &'a mut [f64],
}

impl Work for Maximisation<'_> {
    #[inline(always)]
    fn work(self) {
        let (k, d) = (self.atoms.len(), self.cells.dims);
        for (i, r) in self.responsibilities.chunks_exact(k).enumerate() {
            let span = i * d..(i + 1) * d;
            let (x, v) = (&self.cells.means[span.clone()], &self.cells.variances[span]);
            let each = self.atoms.iter().zip(r).zip(self.sums.chunks_exact_mut(1 + 2 * d));
            for ((atom, r), sums) in each {
                let w = self.cells.rows[i] * r;
                // Nothing that would show.
                if w < 1e-14 * self.cells.rows[i] {
                    continue;
                }
                sums[0] += w;
                let (first, second) = sums[1..].split_at_mut(d);
                let mean = &atom.mean[..d];
                for j in 0..d {
                    let t = x[j] - mean[j];
                    first[j] += w * t;
                    second[j] += w * (t * t + v[j]);
                }
            }
        }
    }
}
