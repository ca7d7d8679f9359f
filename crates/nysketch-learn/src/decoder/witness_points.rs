//! Retained rows as the points on which centres are found.
//!
//! Each retained row has the weight `n_c/s_c`, the number of rows of its cell over the number of
//! retained rows in it. The retained rows of a cell are shifted so that their mean is that of the
//! cell, which is exact. Centres that cut no cell are therefore the centres of all rows; if a
//! border cuts a cell, the retained rows show how the cell is divided. A cell with too few retained
//! rows, or with rows that cannot be its own, is drawn from its mean and variance. If there are few
//! retained rows per cell on average, half of the weight of every cell is drawn in this way.

use super::cells::{Cell, Cells};
use super::stand_ins::{ENOUGH, STRANGE, TOO_FEW};
use nysketch_core::kmeans::{Narrowed, WeightedPoints, medians};
use nysketch_core::numeric::fixed::power_of_two;
use nysketch_core::numeric::points::Points;
use nysketch_core::numeric::random::below;
use nysketch_core::sketch::Sketch;
use nysketch_core::sums::Sum;
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
/// centre is nearest, unless `by_what_is_there` is set.
pub(super) fn witness_points(
    sketch: &Sketch,
    cells: &Cells,
    landmark_of: &[usize],
    by_what_is_there: bool,
) -> Option<WeightedPoints> {
    let plan = sketch.plan();
    let (rows, witnesses) = (plan.witness_rows()?, plan.witnesses.as_ref()?);
    let (counts, codes) = (witnesses.weights(), witnesses.levels());
    let count = |i: usize| counts.get(i).map_or(1.0, |w| f64::from(*w));
    let (d, c) = (plan.dims(), plan.categories().len());
    let dims = plan.recipe.space_dims(d);
    let landmarks = plan.features.points().len();
    let most = VALUES.max(PER_LANDMARK * landmarks * dims) / dims;
    let members = members(landmark_of, landmarks, most, |i| count(i) > 0.0);
    let seen: usize = members.iter().map(Vec::len).sum();
    let per_row = seen as f64 / sketch.rows() as f64;
    let filled = (0..landmarks).filter(|cell| sketch.sums()[Sum::CellRows][*cell] > 0);
    let origin = medians(dims, cells.means());
    let farthest = farthest(cells, rows, &origin);
    let mut points = Narrowed::around(origin, farthest);
    let (mut weights, mut known) = (Vec::new(), Vec::new());
    let (mut strange, mut all) = (0.0, 0.0);
    let rng = &mut ChaCha8Rng::seed_from_u64(0);
    let pairs = (VALUES / (2 * landmarks * dims)).clamp(1, PAIRS);
    let plain = c == 0 && !plan.is_partial();
    let few = plain && (seen as f64) < FEW * cells.iter().count() as f64;
    points.reserve(seen + if few { 2 * pairs * landmarks } else { 0 });
    let mut point = Vec::with_capacity(dims);
    let share = if few { 0.5 } else { 1.0 };
    for (cell, landmark) in cells.iter().zip(filled) {
        all += cell.rows;
        let mine = &members[landmark];
        // Allow three standard deviations, since the rows of the sketch and the retained rows are
        // random samples.
        let at_least = per_row * (cell.rows - 3.0 * cell.rows.sqrt()).max(0.0);
        let total: f64 = mine.iter().map(|i| count(*i)).sum();
        let (mut off, told_by) = off(&cell, rows, mine, d, count);
        let strange_mean =
            apart(&cell, &off, &plan.frame.exponent, &told_by) > 30.0 + 3.0 * d as f64;
        let enough = (ENOUGH as f64).min(cell.rows).max(at_least / TOO_FEW);
        if (mine.len() as f64) < enough || strange_mean {
            strange += if at_least > TOO_FEW * ENOUGH as f64 { cell.rows } else { 0.0 };
            push_drawn(&cell, 1.0, pairs, rng, &mut points, &mut weights, &mut known);
            continue;
        }
        // If the sums have a coarse resolution, their mean is no more accurate.
        let step = |k: usize| 4.0 * power_of_two(plan.frame.exponent[k]);
        off.iter_mut()
            .enumerate()
            .filter(|(k, off)| off.abs() <= step(*k))
            .for_each(|(_, off)| *off = 0.0);
        if few {
            push_drawn(&cell, 1.0 - share, pairs, rng, &mut points, &mut weights, &mut known);
        }
        for i in mine {
            point.clear();
            for (k, x) in rows.row(*i).iter().enumerate() {
                let there = !x.is_nan();
                point.push(if there { f64::from(*x) + off[k] } else { cell.mean[k] });
                if plan.is_partial() {
                    known.push(f64::from(u8::from(there)));
                }
            }
            if c > 0 {
                let levels = plan.recipe.in_space(d, rows.row(*i), &codes[i * c..(i + 1) * c]);
                point.extend(levels[d..].iter().map(|x| f64::from(*x)));
            }
            points.push(&point);
            if plan.is_partial() {
                known.resize(points.size().1 * dims, 1.0);
            }
            weights.push(share * cell.rows * count(*i) / total);
        }
    }
    let near = by_what_is_there && plan.is_partial();
    let those = seen > 0 && strange <= STRANGE * all;
    those.then(|| WeightedPoints::narrow(points, weights, known, near).on(plan.spheres()))
}

/// Returns the approximate largest distance of points from the origin in any column. It determines
/// the unit in which they are stored.
fn farthest(cells: &Cells, rows: &Points, origin: &[f64]) -> f64 {
    let of_row = |x: &[f32]| {
        x.iter().zip(origin).map(|(x, o)| (f64::from(*x) - o).abs()).fold(0.0, f64::max)
    };
    let of_cell = |cell: Cell<'_>| {
        let column = |k: usize| (cell.mean[k] - origin[k]).abs() + 8.0 * cell.width(k).sqrt();
        (0..cell.mean.len()).map(column).fold(0.0, f64::max)
    };
    let witnesses = rows.rows().map(of_row).fold(0.0, f64::max);
    cells.iter().map(of_cell).fold(2.0 * witnesses, f64::max)
}

/// Returns the retained rows in the cell of each landmark, without those of weight zero and at most
/// `most` in total.
fn members(
    landmark_of: &[usize],
    landmarks: usize,
    most: usize,
    counts: impl Fn(usize) -> bool,
) -> Vec<Vec<usize>> {
    let mut chosen: Vec<usize> = (0..landmark_of.len()).filter(|i| counts(*i)).collect();
    if chosen.len() > most {
        let rng = &mut ChaCha8Rng::seed_from_u64(0);
        for i in 0..most {
            let other = i + below(chosen.len() - i, rng);
            chosen.swap(i, other);
        }
        chosen.truncate(most);
        chosen.sort_unstable();
    }
    let mut members = vec![Vec::new(); landmarks];
    chosen.into_iter().for_each(|i| members[landmark_of[i]].push(i));
    members
}

/// Returns the difference between the mean of the cell and that of its retained rows in each
/// column, and the effective number of retained rows: the number of rows of equal weight with the
/// same standard error.
fn off(
    cell: &Cell<'_>,
    rows: &Points,
    mine: &[usize],
    d: usize,
    count: impl Fn(usize) -> f64,
) -> (Vec<f64>, Vec<f64>) {
    let (mut sum, mut mass, mut squares) = (vec![0.0; d], vec![0.0; d], vec![0.0; d]);
    for i in mine {
        for (k, x) in rows.row(*i).iter().enumerate().filter(|(_, x)| !x.is_nan()) {
            sum[k] += count(*i) * f64::from(*x);
            mass[k] += count(*i);
            squares[k] += count(*i) * count(*i);
        }
    }
    let column = |k: usize| if mass[k] > 0.0 { cell.mean[k] - sum[k] / mass[k] } else { 0.0 };
    let number = |k: usize| if squares[k] > 0.0 { mass[k] * mass[k] / squares[k] } else { 0.0 };
    ((0..d).map(column).collect(), (0..d).map(number).collect())
}

/// Returns the squared distance of the means, in standard errors: about 1 per column.
fn apart(cell: &Cell<'_>, off: &[f64], exponent: &[i32], told_by: &[f64]) -> f64 {
    let column = |(k, off): (usize, &f64)| {
        // Allow for the resolution of the sums and for single precision.
        let rounding = 4.0 * power_of_two(exponent[k]) + 1e-6 * cell.mean[k].abs();
        let off = (off.abs() - rounding).max(0.0);
        if off > 0.0 { off * off * told_by[k] / cell.width(k).max(f64::MIN_POSITIVE) } else { 0.0 }
    };
    off.iter().enumerate().map(column).sum()
}

/// Adds a share of a cell as points drawn from its mean and variance; only its mean if the variance
/// is zero or values are missing.
fn push_drawn(
    cell: &Cell<'_>,
    share: f64,
    pairs: usize,
    rng: &mut ChaCha8Rng,
    points: &mut Narrowed,
    weights: &mut Vec<f64>,
    known: &mut Vec<f64>,
) {
    let dims = cell.mean.len();
    if cell.known.is_some() || (0..dims).all(|k| cell.width(k) == 0.0) {
        points.push(cell.mean);
        weights.push(share * cell.rows);
        known.extend(cell.known.into_iter().flatten());
        return;
    }
    cell.drawn(pairs, rng).chunks_exact(dims).for_each(|x| points.push(x));
    weights.extend(std::iter::repeat_n(share * cell.rows / (2 * pairs) as f64, 2 * pairs));
}
