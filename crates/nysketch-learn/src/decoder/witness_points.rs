//! Retained rows as the points on which centres are found.
//!
//! Each retained row has the weight `n_c/s_c`, the number of rows of its cell over the number of
//! retained rows in it. The retained rows of a cell are shifted so that their mean is that of the
//! cell, which is exact. Centres that cut no cell are therefore the centres of all rows; if a
//! border cuts a cell, the retained rows show how the cell is divided. A cell with too few retained
//! rows, or with rows that cannot be its own, is drawn from its mean and variance. If there are few
//! retained rows per cell on average, half of the weight of every cell is drawn in this way.

use super::cells::{Cell, Cells};
use super::represent::{ENOUGH, STRANGE, TOO_FEW, filled};
use nysketch_core::kmeans::{Narrowed, WeightedPoints, medians};
use nysketch_core::numeric::fixed::power_of_two;
use nysketch_core::numeric::points::Points;
use nysketch_core::numeric::random::below;
use nysketch_core::plan::Plan;
use nysketch_core::sketch::Sketch;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

/// Mean number of retained rows per cell below which additional draws reduce the error.
const FEW: f64 = 10.0;
/// Number of antithetic pairs as which a cell is drawn.
const PAIRS: usize = 4;
/// Maximum number of values of all retained rows, and maximum per value of a landmark.
const VALUES: usize = 8_000_000;
const PER_LANDMARK: usize = 4;

/// Returns the retained rows, with their levels as coordinates, as points for centres; `None` if
/// they are not available or do not represent the data. `cells` have the same coordinates, and
/// `landmark_of` contains the landmark of each retained row. A missing value is replaced by the
/// mean of the cell and has no influence on the position of a centre. It does influence which
/// centre is nearest, unless `by_present_values` is set.
pub(super) fn witness_points(
    sketch: &Sketch,
    cells: &Cells,
    landmark_of: &[usize],
    by_present_values: bool,
) -> Option<WeightedPoints> {
    let plan = sketch.plan();
    let (rows, witnesses) = (plan.witness_rows()?, plan.witnesses.as_ref()?);
    let (d, dims) = (plan.dims(), plan.recipe.space_dims(plan.dims()));
    let landmarks = plan.features.points().len();
    let weights: Vec<f64> = (0..rows.len())
        .map(|i| witnesses.weights().get(i).map_or(1.0, |w| f64::from(*w)))
        .collect();
    let max = VALUES.max(PER_LANDMARK * landmarks * dims) / dims;
    let members = members(landmark_of, landmarks, max, &weights);
    let retained: usize = members.iter().map(Vec::len).sum();
    let per_row = retained as f64 / sketch.rows() as f64;
    let is_plain = plan.categories().is_empty() && !plan.is_partial();
    let are_few = is_plain && (retained as f64) < FEW * cells.iter().count() as f64;
    let share = if are_few { 0.5 } else { 1.0 };
    let pairs = (VALUES / (2 * landmarks * dims)).clamp(1, PAIRS);
    let mut drawing = Drawing {
        points: narrowed(cells, rows),
        weights: Vec::new(),
        known: Vec::new(),
        pairs,
        rng: ChaCha8Rng::seed_from_u64(0),
    };
    drawing.points.reserve(retained + if are_few { 2 * pairs * landmarks } else { 0 });
    let (mut strange, mut all) = (0.0, 0.0);
    for (cell, landmark) in cells.iter().zip(filled(sketch)) {
        all += cell.rows;
        let members = &members[landmark];
        // Allow three standard deviations, since the rows of the sketch and the retained rows are
        // random samples.
        let at_least = per_row * (cell.rows - 3.0 * cell.rows.sqrt()).max(0.0);
        let mut off = Off::new(&cell, rows, members, d, &weights);
        let is_strange = off.squared(&cell, &plan.frame.exponent) > 30.0 + 3.0 * d as f64;
        let enough = (ENOUGH as f64).min(cell.rows).max(at_least / TOO_FEW);
        if (members.len() as f64) < enough || is_strange {
            strange += if at_least > TOO_FEW * ENOUGH as f64 { cell.rows } else { 0.0 };
            drawing.push_drawn(&cell, 1.0);
            continue;
        }
        off.drop_unresolved(&plan.frame.exponent);
        if are_few {
            drawing.push_drawn(&cell, 1.0 - share);
        }
        let total: f64 = members.iter().map(|i| weights[*i]).sum();
        for i in members {
            drawing.push_retained(plan, &cell, *i, &off.difference);
            drawing.weights.push(share * cell.rows * weights[*i] / total);
        }
    }
    if retained == 0 || !(strange <= STRANGE * all) {
        return None;
    }
    let Drawing { points, weights, known, .. } = drawing;
    let near = by_present_values && plan.is_partial();
    Some(WeightedPoints::narrow(points, weights, known, near).on(plan.spheres()))
}

/// Returns storage for points around the median of the cells, in a unit that fits their range.
fn narrowed(cells: &Cells, rows: &Points) -> Narrowed {
    let origin = medians(cells.dims(), cells.means());
    let farthest = farthest(cells, rows, &origin);
    Narrowed::around(origin, farthest)
}

/// The points found so far.
struct Drawing {
    points: Narrowed,
    weights: Vec<f64>,
    /// Whether each value is present, as a number; empty if no value is missing.
    known: Vec<f64>,
    /// Number of antithetic pairs as which a cell is drawn.
    pairs: usize,
    rng: ChaCha8Rng,
}

impl Drawing {
    /// Adds a share of a cell as points drawn from its mean and variance; only its mean if the
    /// variance is zero or values are missing.
    fn push_drawn(&mut self, cell: &Cell<'_>, share: f64) {
        if cell.known.is_some() || cell.is_point() {
            self.points.push(cell.mean);
            self.weights.push(share * cell.rows);
            self.known.extend(cell.known.into_iter().flatten());
            return;
        }
        let drawn = cell.drawn(self.pairs, &mut self.rng);
        drawn.chunks_exact(cell.mean.len()).for_each(|x| self.points.push(x));
        let count = 2 * self.pairs;
        self.weights.extend(std::iter::repeat_n(share * cell.rows / count as f64, count));
    }

    /// Adds retained row `i`, moved by a difference, without its weight.
    fn push_retained(&mut self, plan: &Plan, cell: &Cell<'_>, i: usize, difference: &[f64]) {
        let (Some(rows), Some(witnesses)) = (plan.witness_rows(), &plan.witnesses) else { return };
        let (d, c, dims) = (plan.dims(), plan.categories().len(), cell.mean.len());
        let mut point = Vec::with_capacity(dims);
        for (k, x) in rows.row(i).iter().enumerate() {
            let is_present = !x.is_nan();
            point.push(if is_present { f64::from(*x) + difference[k] } else { cell.mean[k] });
            if plan.is_partial() {
                self.known.push(f64::from(u8::from(is_present)));
            }
        }
        if c > 0 {
            let codes = &witnesses.levels()[i * c..(i + 1) * c];
            let levels = plan.recipe.in_space(d, rows.row(i), codes);
            point.extend(levels[d..].iter().map(|x| f64::from(*x)));
        }
        self.points.push(&point);
        if plan.is_partial() {
            self.known.resize(self.points.size().1 * dims, 1.0);
        }
    }
}

/// Returns the approximate largest distance of points from the origin in any column. It determines
/// the unit in which they are stored.
fn farthest(cells: &Cells, rows: &Points, origin: &[f64]) -> f64 {
    let witnesses = rows
        .rows()
        .map(|x| x.iter().zip(origin).map(|(x, o)| (f64::from(*x) - o).abs()).fold(0.0, f64::max))
        .fold(0.0, f64::max);
    cells
        .iter()
        .map(|cell| {
            (0..cell.mean.len())
                .map(|k| (cell.mean[k] - origin[k]).abs() + 8.0 * cell.variance(k).sqrt())
                .fold(0.0, f64::max)
        })
        .fold(2.0 * witnesses, f64::max)
}

/// Returns the retained rows in the cell of each landmark, without those of weight zero and at most
/// `max` in total.
fn members(
    landmark_of: &[usize],
    landmarks: usize,
    max: usize,
    weights: &[f64],
) -> Vec<Vec<usize>> {
    let mut chosen: Vec<usize> = (0..landmark_of.len()).filter(|i| weights[*i] > 0.0).collect();
    if chosen.len() > max {
        let rng = &mut ChaCha8Rng::seed_from_u64(0);
        for i in 0..max {
            let other = i + below(chosen.len() - i, rng);
            chosen.swap(i, other);
        }
        chosen.truncate(max);
        chosen.sort_unstable();
    }
    let mut members = vec![Vec::new(); landmarks];
    chosen.into_iter().for_each(|i| members[landmark_of[i]].push(i));
    members
}

/// The difference between the mean of a cell and that of its retained rows, for each column.
struct Off {
    difference: Vec<f64>,
    /// The effective number of retained rows: the number of rows of equal weight with the same
    /// standard error.
    effective: Vec<f64>,
}

impl Off {
    fn new(cell: &Cell<'_>, rows: &Points, members: &[usize], d: usize, weights: &[f64]) -> Self {
        let (mut sum, mut mass, mut squares) = (vec![0.0; d], vec![0.0; d], vec![0.0; d]);
        for i in members {
            let weight = weights[*i];
            for (k, x) in rows.row(*i).iter().enumerate().filter(|(_, x)| !x.is_nan()) {
                sum[k] += weight * f64::from(*x);
                mass[k] += weight;
                squares[k] += weight * weight;
            }
        }
        let (mut difference, mut effective) = (vec![0.0; d], vec![0.0; d]);
        for k in 0..d {
            if mass[k] > 0.0 {
                difference[k] = cell.mean[k] - sum[k] / mass[k];
            }
            if squares[k] > 0.0 {
                effective[k] = mass[k] * mass[k] / squares[k];
            }
        }
        Off { difference, effective }
    }

    /// Returns the squared distance of the means, in standard errors: about 1 per column.
    fn squared(&self, cell: &Cell<'_>, exponent: &[i32]) -> f64 {
        let mut squared = 0.0;
        for (k, off) in self.difference.iter().enumerate() {
            // Allow for the resolution of the sums and for single precision.
            let rounding = resolution(exponent[k]) + 1e-6 * cell.mean[k].abs();
            let off = (off.abs() - rounding).max(0.0);
            if off > 0.0 {
                let variance = cell.variance(k).max(f64::MIN_POSITIVE);
                squared += off * off * self.effective[k] / variance;
            }
        }
        squared
    }

    /// Sets differences within the resolution of the sums to zero: the mean of the cell is no more
    /// accurate.
    fn drop_unresolved(&mut self, exponent: &[i32]) {
        for (off, e) in self.difference.iter_mut().zip(exponent) {
            if off.abs() <= resolution(*e) {
                *off = 0.0;
            }
        }
    }
}

/// Returns the resolution of a mean whose sum has this exponent.
fn resolution(exponent: i32) -> f64 {
    4.0 * power_of_two(exponent)
}
