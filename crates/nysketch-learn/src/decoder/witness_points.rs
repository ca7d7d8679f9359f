//! Witness rows as the points that centres are found on.
//!
//! A witness weighs `n_c/s_c`, the rows of its cell over the witnesses in it, and the witnesses of a cell are moved by as much
//! as their mean is off that of the cell, which is exact. So centres that cut no cell are those of all rows, and where one
//! does, the witnesses say what falls on which side. A cell with too few of them, or with others than its own rows, is
//! drawn from its mean and variance; and where all of them are few, so is one half of every cell.

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

/// Witnesses a cell, on average, below which draws help them.
const FEW: f64 = 10.0;
/// Pairs of points that a cell is drawn as.
const PAIRS: usize = 4;
/// Values of all witnesses at most, and for each value of a landmark.
const VALUES: usize = 8_000_000;
const PER_LANDMARK: usize = 4;

/// Witness rows with their levels as coordinates, as points for centres; `None` where they are not at hand or those of other
/// rows. `cells` are in that space, and `landmark_of` says where each witness is. What a witness lacks is the mean of its
/// cell, and does not count for a centre; it tells the nearest one unless `by_what_is_there`.
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
        // Both numbers are of rows drawn by chance.
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
        // Sums that count in wide steps know the mean no better.
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

/// How far from an origin points in cells may be in a column, about: it sets the unit that they are kept in.
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

/// The witnesses in the cell of each landmark that count, at most so many of them all.
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

/// By how much the mean of the witnesses is off that of the cell, in each column, and how many of them tell it: as many as
/// rows of equal weight would.
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

/// Squared distance of the means, in standard errors: about 1 for each column.
fn apart(cell: &Cell<'_>, off: &[f64], exponent: &[i32], told_by: &[f64]) -> f64 {
    let column = |(k, off): (usize, &f64)| {
        // Sums count whole steps, and singles are rounded.
        let rounding = 4.0 * power_of_two(exponent[k]) + 1e-6 * cell.mean[k].abs();
        let off = (off.abs() - rounding).max(0.0);
        if off > 0.0 { off * off * told_by[k] / cell.width(k).max(f64::MIN_POSITIVE) } else { 0.0 }
    };
    off.iter().enumerate().map(column).sum()
}

/// A share of a cell as points drawn from its mean and variance; its mean alone where it has no width or numbers are
/// missing.
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
