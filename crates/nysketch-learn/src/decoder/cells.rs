//! The decoder `cells`: k-means, k-medians and Gaussian mixtures from cell moments.
//!
//! A cell is the set of rows nearest to one landmark. Its count n_c, mean μ_c and variance are
//! known exactly, so the risk of centres θ on the cell means,
//!
//! ```text
//! Σ_c n_c min_j ‖μ_c − θ_j‖² ,
//! ```
//!
//! differs from the risk on the rows only by a constant and by the cells that a border between two
//! centres cuts. Weighted k-means on cell means is therefore k-means on the rows up to those cells.
//! No bandwidth enters.
//!
//! Cells that a border cuts are *unfolded* into points. If a mixture predicts the counts of the
//! cells, points are drawn from the mixture and assigned to the cell of their nearest landmark.
//! Then the points of each cell are shifted and scaled to the known mean and variance of the cell;
//! their shape is that of the mixture within the borders of the cell. Otherwise points are drawn
//! around the mean of the cell.

use super::em::{Em, Floor, Shaped, TOLERANCE, Until};
use super::params::DEFAULT_MIN_VARIANCE;
use crate::atom::Atom;
use crate::covariance::CovarianceKind;
use crate::model::report::{Report, Status};
use nysketch_core::kernel::row::{Rows, take_holes};
use nysketch_core::kernel::search::{PanelsOnce, Search};
use nysketch_core::kernel::tile::Nearest;
use nysketch_core::kmeans::{Effort, Loss, WeightedPoints, members};
use nysketch_core::numeric::fixed::power_of_two;
use nysketch_core::numeric::points::Points;
use nysketch_core::numeric::random::{below, normal, unit};
use nysketch_core::numeric::simd::Instructions;
use nysketch_core::plan::Plan;
use nysketch_core::plan::sphere::Spheres;
use nysketch_core::sketch::Sketch;
use nysketch_core::sums::Sum;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

/// Returns the status of an iteration that did or did not converge.
pub(super) fn ended(converged: bool) -> Status {
    if converged { Status::Converged } else { Status::IterationLimit }
}

/// The cells that contain rows.
#[derive(Debug, Clone)]
pub struct Cells {
    dims: usize,
    rows: Vec<f64>,
    /// Means, row-major.
    means: Vec<f64>,
    /// Variances within the cell, row-major; empty if all cells have zero variance.
    variances: Vec<f64>,
    /// Minimum variance of a component in each column.
    floor: Floor,
    /// Resolution of the sums: the smallest variance that they can represent in each column.
    unit: Vec<f64>,
    /// The landmark of each cell, if the plan has landmarks.
    landmarks: Option<Points>,
    /// Share of the rows in which each column is present, in the layout of `means`; empty if no
    /// value is missing.
    known: Vec<f64>,
    /// For each category whose levels are coordinates: index of the first coordinate, number of
    /// levels, and the coordinate value of a level.
    levels: Vec<(usize, usize, f64)>,
    /// The unit spheres on which centres lie.
    spheres: Spheres,
}

/// One cell, in the plan's coordinates.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cell<'a> {
    pub rows: f64,
    pub mean: &'a [f64],
    /// `None` if all cells have zero variance.
    pub variance: Option<&'a [f64]>,
    /// Share of the rows in which each column is present; `None` if no value is missing.
    pub known: Option<&'a [f64]>,
}

impl Cell<'_> {
    /// Returns the share of the rows in which column `k` is present.
    pub fn known(&self, k: usize) -> f64 {
        self.known.map_or(1.0, |known| known[k])
    }

    /// Returns the variance of column `k` within the cell.
    pub fn width(&self, k: usize) -> f64 {
        self.variance.map_or(0.0, |v| v[k])
    }

    /// Draws points, row-major, with exactly the mean and variance of the cell. Points come in
    /// antithetic pairs, which preserves the mean, and are scaled, which preserves the variance.
    pub fn drawn(&self, pairs: usize, rng: &mut impl rand::Rng) -> Vec<f64> {
        let d = self.mean.len();
        let draws: Vec<f64> = (0..pairs * d).map(|_| normal(rng)).collect();
        let factor = |k: usize| {
            let square: f64 = draws.iter().skip(k).step_by(d).map(|x| x * x).sum();
            (self.width(k) / (square / pairs as f64).max(f64::MIN_POSITIVE)).sqrt()
        };
        let factors: Vec<f64> = (0..d).map(factor).collect();
        let mut points = Vec::with_capacity(2 * pairs * d);
        for draw in draws.chunks_exact(d) {
            for sign in [1.0, -1.0] {
                points.extend((0..d).map(|k| self.mean[k] + sign * factors[k] * draw[k]));
            }
        }
        points
    }
}

/// Share of the rows at either end of a column that may be ignored when its variance is computed,
/// and the largest factor by which those rows may increase it.
const OUTERMOST: f64 = 1e-3;
const FAR_OUT: f64 = 100.0;
/// Approximate total number of points into which all cells are unfolded, and the maximum number of
/// their values. Each cell gets at least one pair of points even if that exceeds these limits.
const UNFOLDED: usize = 20_000;
const UNFOLDED_VALUES: usize = 4_000_000;
/// Largest number of centres for which a mixture is fitted to shape the cells: the cost of each
/// round grows with it.
const DESCRIBED: usize = 50;
/// Number of starts of a mixture.
const STARTS: usize = 3;
/// Rounds of unfolding and fitting for each start before only the best continues.
const RACE: usize = 4;
/// Maximum number of rounds of unfolding by a mixture and refitting it.
const ROUNDS: usize = 20;
/// First round whose mixture enters the average.
const AVERAGED_FROM: usize = 10;
/// EM steps on cells unfolded without a mixture, before a mixture unfolds them.
const FIRST_STEPS: usize = 10;
/// EM steps per round.
const STEPS: usize = 5;
/// Rounds end when the mean log-likelihood changes by less than this, in nats, twice in a row. Then
/// no border cuts a cell, and the random draws do not matter.
const SETTLED: f64 = 2e-4;
/// Largest share of the rows that a mixture may assign to the wrong cells and still be used to
/// shape them.
const MISPLACED: f64 = 0.15;
/// Minimum number of points drawn in a cell for them to determine its shape.
const LEAST_DRAWN: f64 = 6.0;
/// EM steps on cells unfolded without a mixture, if no mixture describes them.
const PLAIN_STEPS: usize = 50;

impl Cells {
    fn none(dims: usize) -> Self {
        Cells {
            dims,
            rows: Vec::new(),
            means: Vec::new(),
            variances: Vec::new(),
            floor: Floor::new(vec![f64::MIN_POSITIVE; dims]),
            unit: vec![f64::MIN_POSITIVE; dims],
            landmarks: None,
            known: Vec::new(),
            levels: Vec::new(),
            spheres: Spheres::default(),
        }
    }

    /// Returns the cells of a sketch that contains cell sums.
    pub fn new(sketch: &Sketch) -> Self {
        let (d, sums) = (sketch.plan().dims(), sketch.sums());
        let exponent = &sketch.plan().frame.exponent;
        let unit = exponent.iter().map(|e| power_of_two(2 * (e + 2))).collect();
        let mut cells = Cells { unit, spheres: sketch.plan().spheres(), ..Cells::none(d) };
        let mut kept = Vec::new();
        for (j, &count) in sums[Sum::CellRows].iter().enumerate().filter(|(_, n)| **n > 0) {
            let n = count as f64;
            kept.push(j);
            cells.rows.push(n);
            cells.means.extend(sums.cell_mean(j, exponent));
            for k in 0..d {
                let unit = power_of_two(exponent[k]);
                let present = sums.present(j, k);
                let spread = sums.cell_spread(j, k) * unit * unit;
                cells.variances.push((spread / present.max(1) as f64).max(0.0));
                if present == 0 {
                    // The sums contain no value of this column: use the landmark's.
                    let landmark =
                        sketch.plan().landmarks().map_or(0.0, |l| f64::from(l.row(j)[k]));
                    let at = cells.means.len() - d + k;
                    cells.means[at] = landmark;
                }
                if sketch.plan().is_partial() {
                    cells.known.push(present as f64 / n);
                }
            }
        }
        if cells.variances.iter().all(|v| *v == 0.0) {
            cells.variances.clear();
        }
        // Cells of plans with categories or missing values are not defined by the numeric columns
        // alone.
        let plain = sketch.plan().categories().is_empty() && !sketch.plan().is_partial();
        let landmarks = sketch.plan().landmarks().filter(|_| plain);
        cells.landmarks = landmarks.map(|l| l.select(&kept));
        cells.floored(DEFAULT_MIN_VARIANCE)
    }

    /// Returns the cells of a sketch with the shares of levels as additional coordinates. A mixture
    /// of Gaussians does not describe such cells, and neither does it describe cells of rows with
    /// missing values.
    pub fn in_space(sketch: &Sketch) -> Self {
        let (plan, numbers) = (sketch.plan(), Cells::new(sketch));
        let recipe = &plan.recipe;
        if recipe.categories.is_empty() && !plan.is_partial() {
            return numbers;
        }
        let (d, dims) = (plan.dims(), recipe.space_dims(plan.dims()));
        let levels = recipe.levels();
        let (rows, spheres) = (numbers.rows.clone(), numbers.spheres.clone());
        let mut cells = Cells { rows, spheres, ..Cells::none(dims) };
        let sizes = recipe.level_sizes();
        for ((category, start), size) in
            recipe.categories.iter().zip(recipe.level_offsets()).zip(&sizes)
        {
            cells.levels.push((d + start, category.len(), *size));
        }
        let counts = &sketch.sums()[Sum::CellLevels];
        let filled = sketch.sums()[Sum::CellRows].iter().enumerate().filter(|(_, n)| **n > 0);
        for (c, (cell, rows)) in filled.enumerate() {
            cells.means.extend_from_slice(&numbers.means[c * d..(c + 1) * d]);
            for (start, len, size) in &cells.levels {
                let counts = &counts[cell * levels + start - d..][..*len];
                cells.means.extend(counts.iter().map(|n| size * (*n as f64 / *rows as f64)));
            }
            let widths = numbers.variances.get(c * d..(c + 1) * d);
            cells
                .variances
                .extend((0..dims).map(|k| widths.and_then(|w| w.get(k)).map_or(0.0, |v| *v)));
            if let Some(known) = numbers.known.get(c * d..(c + 1) * d) {
                cells.known.extend((0..dims).map(|k| known.get(k).map_or(1.0, |share| *share)));
            }
        }
        cells
    }

    /// Sets the minimum variance of components to this share of the column's variance, and at least
    /// to the resolution of the sums.
    #[must_use]
    pub(super) fn floored(mut self, min_variance: f64) -> Self {
        self.floor = self.floor_at(min_variance);
        self
    }

    /// Returns the minimum variances for this share of the column's variance.
    pub(super) fn floor_at(&self, min_variance: f64) -> Floor {
        let least = |k: usize| (min_variance * self.column_variance(k)).max(self.unit[k]);
        Floor::new((0..self.dims).map(least).collect())
    }

    /// Returns the resolution of the sums in column `k`.
    pub(super) fn step(&self, k: usize) -> f64 {
        self.unit[k].sqrt()
    }

    /// Returns the minimum variance of a component.
    pub(super) fn floor(&self) -> &Floor {
        &self.floor
    }

    /// Returns the variance of column `k`, limited to a hundred times the variance without the
    /// cells of the lowest and highest thousandth of the rows. Without the limit, a few extreme
    /// rows would determine the minimum variance of all components.
    fn column_variance(&self, k: usize) -> f64 {
        let (d, total) = (self.dims, self.rows.iter().sum::<f64>());
        let mean = |c: usize| self.means[c * d + k];
        let variance = |cells: &[usize]| {
            let rows: f64 = cells.iter().map(|c| self.rows[*c]).sum();
            let over = |of: &dyn Fn(usize) -> f64| {
                cells.iter().map(|c| self.rows[*c] * of(*c)).sum::<f64>() / rows
            };
            let centre = over(&mean);
            let width = |c: usize| self.variances.get(c * d + k).copied().unwrap_or(0.0);
            over(&|c| (mean(c) - centre).powi(2) + width(c))
        };
        let mut cells: Vec<usize> = (0..self.rows.len()).collect();
        cells.sort_by(|a, b| mean(*a).total_cmp(&mean(*b)));
        let mut below = 0.0;
        let inner = cells.iter().copied().filter(|c| {
            let from = below;
            below += self.rows[*c];
            below > OUTERMOST * total && from < (1.0 - OUTERMOST) * total
        });
        let inner: Vec<usize> = inner.collect();
        match (variance(&inner), variance(&cells)) {
            (inner, all) if inner > 0.0 => all.min(FAR_OUT * inner),
            (_, all) => all,
        }
    }

    /// Iterates over the cells.
    pub(super) fn iter(&self) -> impl Iterator<Item = Cell<'_>> {
        let d = self.dims;
        self.rows.iter().zip(self.means.chunks_exact(d)).enumerate().map(
            move |(c, (rows, mean))| Cell {
                rows: *rows,
                mean,
                variance: self.variances.get(c * d..(c + 1) * d),
                known: self.known.get(c * d..(c + 1) * d),
            },
        )
    }

    /// Turns every row into a cell. EM on these cells is EM on the rows.
    pub fn of_rows(dims: usize, values: &[f64]) -> Self {
        Self::of_points(&WeightedPoints::of_rows(dims, values))
    }

    /// Turns every weighted point into a cell of zero variance.
    pub fn of_points(points: &WeightedPoints) -> Self {
        let dims = points.dims();
        let cells = Cells {
            rows: points.iter().map(|(_, w)| w).collect(),
            means: points.iter().flat_map(|(x, _)| x.into_owned()).collect(),
            ..Cells::none(dims)
        };
        cells.floored(1e-9)
    }

    /// Returns points with these weights and positions, and the same minimum variances.
    fn points(&self, rows: Vec<f64>, means: Vec<f64>) -> Self {
        let (floor, unit) = (self.floor.clone(), self.unit.clone());
        Cells { rows, means, floor, unit, ..Cells::none(self.dims) }
    }

    /// Runs EM on the cells or on the points into which they were unfolded.
    fn em(&self, atoms: &mut [Atom], steps: usize) -> (f64, usize) {
        let shaped = Shaped { kind: CovarianceKind::Diag, floor: &self.floor, shrinkage: 0.0 };
        let em = Em::new(&self.rows, &self.means, &self.variances, shaped);
        let ended = em.run(atoms, Until { steps, tolerance: TOLERANCE });
        (ended.likelihood, ended.steps)
    }

    /// Returns whether some cell has a positive variance.
    pub(super) fn have_width(&self) -> bool {
        !self.variances.is_empty()
    }

    /// Returns whether a mixture can be used to shape the cells.
    fn can_be_described(&self) -> bool {
        self.have_width() && self.landmarks.is_some()
    }

    /// Returns the means, row-major.
    pub(super) fn means(&self) -> &[f64] {
        &self.means
    }

    /// Returns the cell means weighted by the rows of the cells.
    pub fn weighted_means(&self) -> WeightedPoints {
        let Cells { dims, means, rows, known, .. } = self;
        WeightedPoints::known_in_part(*dims, means, rows, known, true)
    }

    /// Returns the weighted cell means with the constraint that centres lie on the spheres of the
    /// plan.
    pub(super) fn centred_means(&self) -> WeightedPoints {
        self.weighted_means().on(self.spheres.clone())
    }

    /// Returns k centres of small risk. They are found on cell means, from several starts, one of
    /// which adds centres to the `warm` ones; if there are k `warm` centres, only from those. They
    /// are then refined on unfolded cells, so that a cell which a border cuts contributes to both
    /// sides.
    pub fn cluster(
        &self,
        k: usize,
        loss: Loss,
        effort: Effort,
        warm: &[Vec<f64>],
        rng: &mut impl rand::Rng,
        report: &mut Report,
    ) -> Vec<Vec<f64>> {
        let (risk, mut centres) = self.centred_means().cluster_from(k, loss, effort, warm, rng);
        report.objective.push(risk);
        let unfolded = self.unfold_around(&centres, rng).weighted_means().on(self.spheres.clone());
        report.iterations += unfolded.iterate(&mut centres, loss, effort);
        report.objective.push(unfolded.risk(&centres, loss));
        report.status = ended(report.iterations < effort.iterations);
        centres
    }

    /// Unfolds the cells by a mixture that starts at these centres, if a mixture describes them.
    fn unfold_around(&self, centres: &[Vec<f64>], rng: &mut impl rand::Rng) -> Cells {
        let plain = self.unfold(rng);
        if centres.len() < 2 || centres.len() > DESCRIBED || !self.can_be_described() {
            return plain;
        }
        let mut mixture = CellMixture::new(self.atoms_around(centres));
        plain.em(&mut mixture.atoms, FIRST_STEPS);
        self.refine(&mut mixture, ROUNDS, rng);
        self.unfold_by(&mixture.atoms, rng).unwrap_or(plain)
    }

    /// Returns a mixture that describes the cells, with its mean log-likelihood on them, if there
    /// is one. Starts are compared on unfolded cells, because on the cells themselves the
    /// likelihood favours components that cut no cell.
    pub(super) fn describe(&self, k: usize, rng: &mut impl rand::Rng) -> Option<CellMixture> {
        if !self.can_be_described() {
            return None;
        }
        let (means, plain) = (self.weighted_means(), self.unfold(rng));
        let mut best: Option<CellMixture> = None;
        for start in 0..STARTS {
            let effort = Effort::new(if start == 0 { 10 } else { 2 }, 50);
            let centres = means.cluster(k, Loss::Squared, effort, rng);
            let mut mixture = CellMixture::new(self.atoms_around(&centres));
            plain.em(&mut mixture.atoms, FIRST_STEPS);
            self.refine(&mut mixture, RACE, rng);
            // The mixture settled, so each cell belongs to one component and the best of many
            // k-means runs has found the components.
            let done = mixture.settled();
            if mixture.likelihood > best.as_ref().map_or(f64::NEG_INFINITY, |b| b.likelihood) {
                best = Some(mixture);
            }
            if done {
                break;
            }
        }
        let mut mixture = best?;
        self.refine(&mut mixture, ROUNDS, rng);
        Some(mixture)
    }

    /// Alternates unfolding the cells by a mixture and refitting it, until the likelihood settles,
    /// the given number of rounds is done, or the mixture no longer describes the cells.
    fn refine(&self, mixture: &mut CellMixture, rounds: usize, rng: &mut impl rand::Rng) {
        while mixture.rounds < rounds && !mixture.settled() {
            let Some(unfolded) = self.unfold_by(&mixture.atoms, rng) else { break };
            let likelihood = unfolded.em(&mut mixture.atoms, STEPS).0;
            mixture.round(likelihood);
        }
        if let Some(mean) = mixture.mean.take() {
            mixture.atoms = mean;
        }
    }

    /// Draws points from a mixture, then shifts, scales and weights the points in each cell to its
    /// mean, variance and rows. Returns `None` if the mixture assigns too many rows to the wrong
    /// cells.
    fn unfold_by(&self, atoms: &[Atom], rng: &mut impl rand::Rng) -> Option<Cells> {
        let d = self.dims;
        let landmarks = self.landmarks.as_ref().filter(|_| self.have_width())?;
        // Draw from each component in proportion to its weight, with new draws each time: a mixture
        // that is repeatedly fitted to the same draws fits their noise.
        let all = UNFOLDED.min(UNFOLDED_VALUES / d);
        let mut points = Vec::with_capacity(all * d);
        for atom in atoms {
            let deviation: Vec<f64> = atom.variance().iter().map(|g| g.sqrt()).collect();
            for _ in 0..(atom.weight * all as f64).round() as usize {
                let columns = atom.mean.iter().zip(&deviation);
                points.extend(columns.map(|(mean, deviation)| mean + deviation * normal(rng)));
            }
        }
        let narrow: Vec<f32> = points.iter().map(|x| *x as f32).collect();
        let cell_of = nearest_landmarks(landmarks, &narrow);
        let mut count = vec![0.0; self.rows.len()];
        cell_of.iter().for_each(|cell| count[*cell] += 1.0);
        let (total, all) = (self.rows.iter().sum::<f64>(), cell_of.len() as f64);
        // Sampling noise alone assigns about 0.4 √(cells/draws) of the points to the wrong cells.
        let chance = 0.4 * (self.rows.len() as f64 / all).sqrt();
        let off = self.rows.iter().zip(&count).map(|(rows, n)| (rows / total - n / all).abs());
        if !(0.5 * off.sum::<f64>() <= MISPLACED + chance) {
            return None;
        }
        // Mean and scaling factor of each column of each cell.
        let (mut mean, mut factor) = (vec![0.0; self.means.len()], vec![0.0; self.means.len()]);
        let span = |cell: usize| cell * d..(cell + 1) * d;
        for (x, &cell) in points.chunks_exact(d).zip(&cell_of) {
            mean[span(cell)].iter_mut().zip(x).for_each(|(m, x)| *m += x / count[cell]);
        }
        for (x, &cell) in points.chunks_exact(d).zip(&cell_of) {
            let each = factor[span(cell)].iter_mut().zip(x.iter().zip(&mean[span(cell)]));
            each.for_each(|(f, (x, m))| *f += (x - m) * (x - m) / count[cell]);
        }
        for (f, v) in factor.iter_mut().zip(&self.variances) {
            *f = (v / f.max(f64::MIN_POSITIVE)).sqrt();
        }
        let mut rows = Vec::with_capacity(cell_of.len());
        for (i, &cell) in
            cell_of.iter().enumerate().filter(|(_, cell)| count[**cell] >= LEAST_DRAWN)
        {
            let (from, to) = (i * d, rows.len() * d);
            for (k, at) in span(cell).enumerate() {
                points[to + k] = self.means[at] + factor[at] * (points[from + k] - mean[at]);
            }
            rows.push(self.rows[cell] / count[cell]);
        }
        points.truncate(rows.len() * d);
        // Too few draws do not determine the shape of a cell.
        let few: Vec<usize> = (0..count.len()).filter(|&cell| count[cell] < LEAST_DRAWN).collect();
        let rest = self.only(&few).unfold(rng);
        rows.extend(rest.rows);
        points.extend(rest.means);
        Some(self.points(rows, points))
    }

    /// Returns the given cells.
    fn only(&self, cells: &[usize]) -> Cells {
        let d = self.dims;
        let pick = |of: &[f64]| {
            cells.iter().flat_map(|c| of.get(c * d..(c + 1) * d).unwrap_or(&[])).copied().collect()
        };
        Cells {
            dims: d,
            rows: cells.iter().map(|c| self.rows[*c]).collect(),
            means: pick(&self.means),
            variances: pick(&self.variances),
            floor: self.floor.clone(),
            unit: self.unit.clone(),
            landmarks: None,
            known: pick(&self.known),
            levels: self.levels.clone(),
            spheres: self.spheres.clone(),
        }
    }

    /// Returns the number of antithetic pairs of points per unfolded cell.
    fn pairs(&self) -> usize {
        let points = UNFOLDED.min(UNFOLDED_VALUES / self.dims);
        (points / (2 * self.rows.len().max(1))).clamp(if points == UNFOLDED { 2 } else { 1 }, 200)
    }

    /// Replaces every cell by points drawn around its mean with its variance.
    pub fn unfold(&self, rng: &mut impl rand::Rng) -> Cells {
        if !self.have_width() {
            let known = self.known.clone();
            return Cells { known, ..self.points(self.rows.clone(), self.means.clone()) };
        }
        let pairs = self.pairs();
        let (mut rows, mut means, mut known) = (Vec::new(), Vec::new(), Vec::new());
        for (c, cell) in self.iter().enumerate() {
            let mut drawn = cell.drawn(pairs, rng);
            for (start, len, size) in &self.levels {
                let shares = &cell.mean[*start..start + len];
                let drawn = drawn.chunks_exact_mut(self.dims);
                draw_levels(shares, *size, drawn.map(|x| &mut x[*start..start + len]), rng);
            }
            let shares = self.known.get(c * self.dims..(c + 1) * self.dims).unwrap_or(&[]);
            (0..2 * pairs).for_each(|_| known.extend_from_slice(shares));
            rows.extend(std::iter::repeat_n(cell.rows / (2 * pairs) as f64, 2 * pairs));
            means.extend(drawn);
        }
        Cells { known, ..self.points(rows, means) }
    }

    /// Fits a diagonal Gaussian mixture: one that describes the cells if there is one, otherwise
    /// the best of several EM runs in which a cell represents rows with its mean and variance.
    pub fn mixture(
        &self,
        k: usize,
        effort: Effort,
        rng: &mut impl rand::Rng,
        report: &mut Report,
    ) -> Vec<Atom> {
        if let Some(found) = self.describe(k, rng) {
            report.iterations += found.rounds;
            report.objective.push(-found.likelihood);
            let done = found.settled() || found.rounds == ROUNDS;
            report.status = ended(done);
            return found.atoms;
        }
        let mut best: Option<(f64, Vec<Atom>, usize)> = None;
        for _ in 0..effort.restarts {
            let few = Effort::new(2, 50);
            let centres = self.weighted_means().cluster(k, Loss::Squared, few, rng);
            let mut atoms = self.atoms_around(&centres);
            let (likelihood, steps) = self.em(&mut atoms, effort.iterations);
            if best.as_ref().is_none_or(|(l, _, _)| likelihood > *l) {
                best = Some((likelihood, atoms, steps));
            }
        }
        let (mut likelihood, mut atoms, mut steps) = best.unwrap_or_default();
        if self.have_width() {
            let (found, more) = self.unfold(rng).em(&mut atoms, PLAIN_STEPS);
            likelihood = found;
            steps += more;
        }
        report.iterations += steps;
        report.objective.push(-likelihood);
        report.status = ended(steps < effort.iterations);
        atoms
    }

    /// Unfolds the cells without a mixture and with a fixed seed, so that models can be compared on
    /// the same points.
    pub(crate) fn unfold_alike(&self) -> Cells {
        self.unfold(&mut ChaCha8Rng::seed_from_u64(0))
    }

    /// Returns the mean log-likelihood of a mixture on the cells, or on the points if these are
    /// points.
    pub(crate) fn plain_likelihood(&self, atoms: &[Atom]) -> f64 {
        self.em(&mut atoms.to_vec(), 1).0
    }

    /// Returns the mean log-likelihood of a mixture on the cells unfolded without a mixture.
    pub fn likelihood(&self, atoms: &[Atom]) -> f64 {
        self.unfold_alike().plain_likelihood(atoms)
    }

    /// Returns the mean log-likelihood of a mixture on the cells, unfolded by this mixture if it
    /// describes them. This is closer to the likelihood on the rows.
    pub fn own_likelihood(&self, atoms: &[Atom]) -> f64 {
        match self.unfold_by(atoms, &mut ChaCha8Rng::seed_from_u64(0)) {
            Some(unfolded) => unfolded.plain_likelihood(atoms),
            None => self.likelihood(atoms),
        }
    }

    /// Returns one atom per centre, fitted to the cells nearest to it.
    fn atoms_around(&self, centres: &[Vec<f64>]) -> Vec<Atom> {
        let d = self.dims;
        let total: f64 = self.rows.iter().sum();
        let members = members(d, &self.means, centres);
        let atom = |(centre, members): (&Vec<f64>, Vec<usize>)| {
            let mass: f64 = members.iter().map(|i| self.rows[*i]).sum();
            let (mut mean, mut variance) = (centre.clone(), vec![1.0; d]);
            for k in (0..d).filter(|_| mass > 0.0) {
                let over = |of: &dyn Fn(usize) -> f64| {
                    members.iter().map(|i| self.rows[*i] * of(i * d + k)).sum::<f64>() / mass
                };
                let moved = over(&|at| self.means[at] - centre[k]);
                let width = over(&|at| self.variances.get(at).copied().unwrap_or(0.0));
                mean[k] += moved;
                let spread = over(&|at| (self.means[at] - mean[k]).powi(2));
                variance[k] = (spread + width).max(self.floor.variances()[k]);
            }
            Atom::diagonal(mass / total, mean, variance)
        };
        centres.iter().zip(members).map(atom).collect()
    }
}

/// Assigns one level to each point, in random order, with counts as close as possible to the
/// shares. A level and the sum of all shares both have the value `size`.
fn draw_levels<'a>(
    shares: &[f64],
    size: f64,
    points: impl ExactSizeIterator<Item = &'a mut [f64]>,
    rng: &mut impl rand::Rng,
) {
    let n = points.len();
    let offset = unit(rng);
    let (mut level, mut up_to) = (0, shares[0] / size);
    let mut levels: Vec<usize> = Vec::with_capacity(n);
    for i in 0..n {
        while (i as f64 + offset) / n as f64 >= up_to && level + 1 < shares.len() {
            level += 1;
            up_to += shares[level] / size;
        }
        levels.push(level);
    }
    for i in (1..n).rev() {
        levels.swap(i, below(i + 1, rng));
    }
    for (point, level) in points.zip(levels) {
        point.fill(0.0);
        point[level] = size;
    }
}

/// Returns the landmark nearest to each row, in the plan's coordinates, as the pass finds it.
fn nearest_landmarks(landmarks: &Points, rows: &[f32]) -> Vec<usize> {
    let instructions = Instructions::best();
    let panels = PanelsOnce::default().of(landmarks, instructions);
    let search = Search::new(landmarks, None, panels, instructions);
    nearest(search, landmarks.dims(), 0, Rows { z: rows, ..Rows::default() })
}

/// Returns the cell of each row, given the levels of its categories. Rows may have missing values.
pub(super) fn nearest_cells(plan: &Plan, rows: &[f32], codes: &[u32]) -> Vec<usize> {
    let search = plan.search(Instructions::best());
    let (d, c) = (plan.dims(), plan.categories().len());
    if rows.iter().all(|x| !x.is_nan()) {
        return nearest(search, d, c, Rows { z: rows, codes, present: &[] });
    }
    let (mut z, mut present) = (rows.to_vec(), Vec::new());
    take_holes(&mut z, &mut present);
    nearest(search, d, c, Rows { z: &z, codes, present: &present })
}

fn nearest(mut search: Search, d: usize, c: usize, rows: Rows<'_>) -> Vec<usize> {
    let (mut nearest, mut found) = (Nearest::default(), Vec::new());
    let n = rows.z.len() / d;
    for start in (0..n).step_by(search.rows()) {
        let end = n.min(start + search.rows());
        search.block(rows.part(start..end, d, c), &mut nearest);
        found.extend(nearest.index.iter().map(|landmark| *landmark as usize));
    }
    found
}

/// A mixture that is being fitted to the cells.
#[derive(Debug)]
pub(super) struct CellMixture {
    pub(super) atoms: Vec<Atom>,
    /// Mean log-likelihood in the last round.
    likelihood: f64,
    rounds: usize,
    /// Consecutive rounds in which the likelihood barely changed.
    still: usize,
    /// Average over the last rounds, which cancels much of the noise of the draws.
    mean: Option<Vec<Atom>>,
}

impl CellMixture {
    fn new(atoms: Vec<Atom>) -> Self {
        CellMixture { atoms, likelihood: f64::NEG_INFINITY, rounds: 0, still: 0, mean: None }
    }

    fn settled(&self) -> bool {
        self.still == 2
    }

    /// Records the end of a round with this likelihood.
    fn round(&mut self, likelihood: f64) {
        let near = (likelihood - self.likelihood).abs() < SETTLED;
        self.still = if near { self.still + 1 } else { 0 };
        self.likelihood = likelihood;
        if self.rounds >= AVERAGED_FROM {
            let share = 1.0 / (self.rounds - AVERAGED_FROM + 1) as f64;
            average(self.mean.get_or_insert_with(|| self.atoms.clone()), &self.atoms, share);
        }
        self.rounds += 1;
    }
}

/// Moves a mean towards other atoms by this share of the difference.
fn average(mean: &mut [Atom], atoms: &[Atom], share: f64) {
    let into = |mean: &mut f64, x: &f64| *mean += share * (x - *mean);
    for (mean, atom) in mean.iter_mut().zip(atoms) {
        into(&mut mean.weight, &atom.weight);
        mean.mean.iter_mut().zip(&atom.mean).for_each(|(m, x)| into(m, x));
        mean.variance_mut().iter_mut().zip(atom.variance()).for_each(|(m, x)| into(m, x));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A mixture that barely overlaps a cell draws at most a few points in it. Such a cell is
    /// unfolded without the mixture, and every cell keeps its rows, mean and variance.
    #[test]
    fn unfolding_keeps_moments() {
        let cells = Cells {
            dims: 1,
            rows: vec![1000.0, 300.0, 5.0],
            means: vec![0.5, -20.0, 80.0],
            variances: vec![90.0, 5.0, 9.0],
            floor: Floor::new(vec![1e-3]),
            unit: vec![1e-9],
            landmarks: Some(Points::new(1, vec![0.0, -21.0, 78.0])),
            known: Vec::new(),
            levels: Vec::new(),
            spheres: Spheres::default(),
        };
        let atoms = [
            Atom::diagonal(0.77, vec![0.0], vec![100.0]),
            Atom::diagonal(0.23, vec![-20.0], vec![4.0]),
        ];
        for seed in 0..10 {
            let rng = &mut ChaCha8Rng::seed_from_u64(seed);
            let unfolded = cells.unfold_by(&atoms, rng).expect("it describes the cells");
            let points = unfolded.weighted_means();
            assert!(unfolded.means.iter().chain(&unfolded.rows).all(|x| x.is_finite()));
            assert!((points.mass() - 1305.0).abs() < 1e-6);
            let mean = points.iter().map(|(x, w)| w * x[0]).sum::<f64>();
            let square = points.iter().map(|(x, w)| w * x[0] * x[0]).sum::<f64>();
            let each = || cells.rows.iter().zip(&cells.means).zip(&cells.variances);
            let known: f64 = each().map(|((n, m), _)| n * m).sum();
            assert!((mean - known).abs() < 1e-6, "{mean} {known}");
            let known: f64 = each().map(|((n, m), v)| n * (m * m + v)).sum();
            assert!((square - known).abs() < 1e-6 * known, "{square} {known}");
        }
    }

    /// Points are cells of zero variance, so they are not unfolded.
    #[test]
    fn points_stay_points() {
        let cells = Cells::of_rows(2, &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
        let rng = &mut ChaCha8Rng::seed_from_u64(1);
        assert_eq!(cells.unfold(rng).means, cells.means);
        // The same holds if all rows of a cell are equal.
        let equal = Cells { landmarks: Some(Points::new(2, vec![0.0; 6])), ..cells.clone() };
        let atom = Atom::diagonal(1.0, vec![2.0, 3.0], vec![2.0, 2.0]);
        assert_eq!(
            equal.own_likelihood(std::slice::from_ref(&atom)),
            cells.likelihood(std::slice::from_ref(&atom))
        );
        let effort = Effort::new(2, 10);
        let report = &mut Report::default();
        let centres = cells.cluster(3, Loss::Squared, effort, &[], rng, report);
        assert!(cells.weighted_means().risk(&centres, Loss::Squared) < 1e-12);
    }
}
