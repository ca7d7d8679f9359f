//! Weighted points that represent the rows of a sketch when a mixture is fitted.
//!
//! Cells know exact counts, means and variances, but not the shape within a cell. Retained rows
//! show the shape but miss rare values. Each retained row therefore gets the weight `n_c/s_c`,
//! where n_c is the number of rows of its cell and s_c the number of retained rows in it. If these
//! are not enough, points are added from the sums of the cell:
//!
//! - A cell that has several rows is drawn as a Gaussian with its mean and variance if it has fewer
//!   than two retained rows, or if the retained rows cannot come from its rows (far too few for its
//!   count, or in another place).
//! - If the exact variance of a column is many times that of the retained rows, none of the
//!   outlying rows was retained. Let δ be the difference of the exact mean and the mean of the
//!   retained rows, and e the difference of the exact second moment and theirs, both around their
//!   mean. A share `ε = δ²/e` of the cell at distance `Δ = e/δ` corrects both moments: `εΔ = δ` and
//!   `εΔ² = e`. The other columns of the added point are those of the most central retained row of
//!   the cell.
//!
//! A plan may be used for rows other than those it was made from. If many rows lie in cells that
//! had to be drawn although they should contain retained rows, the retained rows do not represent
//! the data, and the result is `None`.

use super::cells::{Cell, Cells};
use super::em::Levels;
use crate::atom::Atom;
use crate::covariance::{Covariance, SymmetricMatrix};
use nysketch_core::kernel::squared_distance;
use nysketch_core::kmeans::{WeightedPoints, members};
use nysketch_core::numeric::linalg::add_gram;
use nysketch_core::numeric::random::{draw, normal};
use nysketch_core::plan::Plan;
use nysketch_core::sketch::Sketch;
use nysketch_core::sums::Sum;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use std::collections::HashMap;
use std::ops::Range;

/// Minimum number of retained rows in a cell for them to determine its shape.
pub(super) const ENOUGH: usize = 2;
/// Factor by which the retained rows of a cell may, by chance, be fewer than expected from its
/// rows.
pub(super) const TOO_FEW: f64 = 5.0;
/// Minimum and maximum number of antithetic pairs as which a cell is drawn; about as many points as
/// the expected number of its retained rows. The minimum decreases if the number of cells is so
/// large that the total would exceed `ALL_PAIRS`.
const PAIRS: std::ops::RangeInclusive<usize> = 8..=500;
const ALL_PAIRS: usize = 10_000;
/// Largest share of the rows that may lie in cells that should contain retained rows but had to be
/// drawn. Above it, the retained rows belong to other data.
pub(super) const STRANGE: f64 = 0.3;
/// Ratio of exact variance to variance of the retained rows above which a column has rows that no
/// retained row represents.
const UNSEEN: f64 = 10.0;

/// Points that represent the rows, cell by cell, in the plan's coordinates.
#[derive(Debug, Clone)]
pub(crate) struct StandIns {
    dims: usize,
    weights: Vec<f64>,
    places: Vec<f64>,
    /// The columns missing from a point, whose coordinates were imputed, by index of the point;
    /// only points with missing values.
    lacks: HashMap<usize, Vec<usize>>,
    /// `log s_k` of each column, if points have missing values.
    log_scales: Vec<f64>,
    /// The level of each point in each category.
    codes: Vec<u32>,
    /// Number of levels of each category, and the coordinate value of a level.
    categories: Vec<(usize, f64)>,
    cells: Vec<CellPoints>,
    /// Number of retained rows among the points.
    witnesses: usize,
}

/// The points of one cell.
#[derive(Debug, Clone)]
struct CellPoints {
    /// Its retained rows.
    seen: Range<usize>,
    /// Whether the retained rows are all the rows of the cell.
    whole: bool,
    /// Points derived from the sums of the cell; they follow the retained rows.
    made: Range<usize>,
    rows: f64,
}

impl StandIns {
    /// Combines the retained rows with the sums of the cells; `landmark_of` contains the landmark
    /// of each retained row. Returns `None` if the retained rows are not available or do not
    /// represent the data.
    pub fn of_witnesses(sketch: &Sketch, cells: &Cells, landmark_of: &[usize]) -> Option<Self> {
        let plan = sketch.plan();
        let (landmarks, witnesses) = (plan.landmarks()?, plan.witness_rows()?);
        let levels = plan.witnesses.as_ref().map_or(&[][..], |w| w.levels());
        let (d, c) = (plan.dims(), plan.categories().len());
        // Index of each landmark's cell in the order of `Cells`, which skips empty cells.
        let mut place = vec![usize::MAX; landmarks.len()];
        let filled = sketch.sums()[Sum::CellRows].iter().enumerate().filter(|(_, n)| **n > 0);
        filled.enumerate().for_each(|(cell, (landmark, _))| place[landmark] = cell);
        let mut members: Vec<Vec<usize>> = vec![Vec::new(); cells.iter().count()];
        for (i, landmark) in landmark_of.iter().enumerate() {
            // Ignore retained rows in cells to which no row of this sketch belongs.
            if let Some(members) = members.get_mut(place[*landmark]) {
                members.push(i);
            }
        }
        let counts = plan.witnesses.as_ref().map_or(&[][..], |w| w.weights());
        let rng = &mut ChaCha8Rng::seed_from_u64(0);
        // Expected number of retained rows per row.
        let per_row = witnesses.len() as f64 / sketch.rows() as f64;
        let (mut all, mut strange) = (StandIns::empty(d, kinds(plan)), 0.0);
        all.log_scales = plan.frame.scale.iter().map(|s| s.ln()).collect();
        let counted = &sketch.sums()[Sum::CellLevels];
        for ((at, cell), members) in cells.iter().enumerate().zip(&members) {
            let row = |i: &usize| witnesses.row(*i).iter().map(|x| f64::from(*x));
            let mut rows: Vec<f64> = members.iter().flat_map(row).collect();
            // Missing values of a retained row are drawn from the distribution of its cell.
            let lacks = |row: &[f64]| (0..d).filter(|k| row[*k].is_nan()).collect();
            let lacks: Vec<Vec<usize>> = rows.chunks_exact(d).map(lacks).collect();
            for (k, x) in rows.iter_mut().enumerate().filter(|(_, x)| x.is_nan()) {
                *x = cell.mean[k % d] + cell.width(k % d).sqrt() * normal(rng);
            }
            let codes: Vec<u32> =
                members.iter().flat_map(|i| &levels[i * c..(i + 1) * c]).copied().collect();
            let counts: Vec<f64> =
                members.iter().map(|i| counts.get(*i).map_or(1.0, |w| f64::from(*w))).collect();
            let known = Known { cell, cells };
            // Allow three standard deviations, since the rows of the sketch and the retained rows
            // are random samples.
            let at_least = per_row * (cell.rows - 3.0 * cell.rows.sqrt()).max(0.0);
            let seen = Seen::new(d, rows, codes, counts);
            if seen.tells(&known, at_least) {
                let start = all.len();
                all.push_seen(&known, &seen);
                let lacking = lacks.into_iter().enumerate().filter(|(_, l)| !l.is_empty());
                all.lacks.extend(lacking.map(|(i, lacks)| (start + i, lacks)));
                continue;
            }
            let landmark = place.iter().position(|p| *p == at).unwrap_or(0);
            let width = plan.recipe.levels();
            let shares = counted.get(landmark * width..(landmark + 1) * width).unwrap_or(&[]);
            let least = (ALL_PAIRS / place.len()).clamp(1, *PAIRS.start());
            let pairs = ((per_row * cell.rows / 2.0) as usize).clamp(least, *PAIRS.end());
            all.push_drawn(cell, shares, pairs, rng);
            strange += if at_least > TOO_FEW * ENOUGH as f64 { cell.rows } else { 0.0 };
        }
        (all.witnesses > 0 && strange <= STRANGE * all.mass()).then_some(all)
    }

    /// Creates one point per cell. The levels of a point are coordinates after its numeric columns.
    pub fn of_points(plan: &Plan, points: &WeightedPoints) -> Self {
        let dims = plan.dims();
        let mut all = StandIns::empty(dims, kinds(plan));
        for (x, weight) in points.iter() {
            let at = all.weights.len();
            let (numbers, mut rest) = x.split_at(dims);
            let mut codes = Vec::new();
            for (len, _) in &all.categories {
                let (own, others) = rest.split_at(*len);
                codes.push(own.iter().position(|x| *x > 0.0).unwrap_or(0) as u32);
                rest = others;
            }
            all.push(numbers, &codes, weight);
            let (seen, made) = (at..at, at..at + 1);
            all.cells.push(CellPoints { seen, whole: false, made, rows: weight });
        }
        all
    }

    fn empty(dims: usize, categories: Vec<(usize, f64)>) -> Self {
        let (weights, places, codes, cells) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let (lacks, log_scales) = (HashMap::new(), Vec::new());
        StandIns {
            dims,
            weights,
            places,
            lacks,
            log_scales,
            codes,
            categories,
            cells,
            witnesses: 0,
        }
    }

    fn push(&mut self, x: &[f64], codes: &[u32], weight: f64) {
        self.places.extend_from_slice(x);
        self.codes.extend_from_slice(codes);
        self.weights.push(weight);
    }

    /// Returns the numeric columns that are present in a point; `None` if all are.
    pub fn known(&self, i: usize) -> Option<Vec<usize>> {
        let lacks = self.lacks.get(&i)?;
        Some((0..self.dims).filter(|k| !lacks.contains(k)).collect())
    }

    /// Returns the sum of log scales of the columns missing from a point: the correction of its log
    /// density in the table's units.
    pub fn unscaled(&self, i: usize) -> f64 {
        let lacks = self.lacks.get(&i).into_iter().flatten();
        lacks.map(|k| self.log_scales[*k]).sum()
    }

    /// Returns the levels of a point.
    fn codes_of(&self, i: usize) -> &[u32] {
        &self.codes[i * self.categories.len()..(i + 1) * self.categories.len()]
    }

    /// Returns the levels of all points, for EM.
    pub fn levels(&self) -> Levels {
        let lens: Vec<usize> = self.categories.iter().map(|(len, _)| *len).collect();
        match lens.is_empty() {
            true => Levels::default(),
            false => Levels::new(&lens, &self.codes, &self.weights),
        }
    }

    /// Returns the indices of the points nearest to each centre. The levels of a centre are
    /// coordinates after its numeric columns.
    fn members(&self, centres: &[Vec<f64>]) -> Vec<Vec<usize>> {
        if self.categories.is_empty() {
            return members(self.dims, &self.places, centres);
        }
        // The squared norm of a centre's levels is expanded: only the coordinate of the point's own
        // level differs from zero.
        let of_levels = |centre: &Vec<f64>| centre.get(self.dims..).unwrap_or(&[]).to_vec();
        let levels: Vec<Vec<f64>> = centres.iter().map(of_levels).collect();
        let numbers: Vec<&[f64]> = centres.iter().map(|c| &c[..self.dims]).collect();
        let squares: Vec<f64> = levels.iter().map(|l| l.iter().map(|x| x * x).sum()).collect();
        let mut members = vec![Vec::new(); centres.len()];
        for i in 0..self.len() {
            let mut best = (0, f64::INFINITY);
            for c in 0..centres.len() {
                let mut d2 = squared_distance(self.point(i), numbers[c]) + squares[c];
                let mut start = 0;
                for (code, (len, size)) in self.codes_of(i).iter().zip(&self.categories) {
                    let there = levels[c].get(start + *code as usize).copied().unwrap_or(0.0);
                    d2 += size * size - 2.0 * size * there;
                    start += len;
                }
                if d2 < best.1 {
                    best = (c, d2);
                }
            }
            members[best.0].push(i);
        }
        members
    }

    /// Adds the retained rows of a cell, and points for the rows that they do not represent.
    fn push_seen(&mut self, known: &Known<'_>, seen: &Seen) {
        let (d, n, start) = (self.dims, known.cell.rows, self.weights.len());
        let unseen = (0..d).filter_map(|k| seen.unseen(known, k));
        let mut unseen: Vec<Unseen> = unseen.collect();
        let share = |unseen: &[Unseen]| unseen.iter().map(|u| u.share).sum::<f64>();
        if share(&unseen) >= 0.5 {
            unseen.clear();
        }
        let left = 1.0 - share(&unseen);
        let c = self.categories.len();
        for (i, (x, count)) in seen.rows.chunks_exact(d).zip(&seen.counts).enumerate() {
            self.push(x, &seen.codes[i * c..(i + 1) * c], left * n * count / seen.total);
        }
        let end = self.weights.len();
        let (ordinary, codes) = seen.most_ordinary(d);
        for u in &unseen {
            let mut x = ordinary.to_vec();
            x[u.column] = u.value;
            self.push(&x, codes, u.share * n);
        }
        self.witnesses += end - start;
        let made = end..self.weights.len();
        let whole = made.is_empty() && seen.is_all_of(known);
        self.cells.push(CellPoints { seen: start..end, whole, made, rows: n });
    }

    /// Adds a cell as points drawn with exactly its mean and variance.
    fn push_drawn(
        &mut self,
        cell: Cell<'_>,
        counts: &[i128],
        pairs: usize,
        rng: &mut impl rand::Rng,
    ) {
        let (d, start) = (self.dims, self.weights.len());
        let narrow = (0..d).all(|k| cell.width(k) == 0.0);
        if narrow && self.categories.is_empty() {
            self.push(cell.mean, &[], cell.rows);
        } else {
            let drawn = cell.drawn(pairs, rng);
            let weight = cell.rows / (2 * pairs) as f64;
            for x in drawn.chunks_exact(d) {
                let mut at = 0;
                let mut codes = Vec::new();
                for (len, _) in &self.categories {
                    let counts: Vec<f64> = counts[at..at + len].iter().map(|n| *n as f64).collect();
                    codes.push(draw(&counts, rng).unwrap_or(0) as u32);
                    at += len;
                }
                self.push(x, &codes, weight);
            }
        }
        let made = start..self.weights.len();
        self.cells.push(CellPoints { seen: start..start, whole: false, made, rows: cell.rows });
    }

    /// Returns the number of points.
    pub fn len(&self) -> usize {
        self.weights.len()
    }

    /// Returns the number of retained rows among the points.
    pub fn witnesses(&self) -> usize {
        self.witnesses
    }

    pub fn weights(&self) -> &[f64] {
        &self.weights
    }

    /// Returns the coordinates of the points, row-major.
    pub fn places(&self) -> &[f64] {
        &self.places
    }

    pub fn mass(&self) -> f64 {
        self.weights.iter().sum()
    }

    /// Returns the coordinates of point `i`.
    pub fn point(&self, i: usize) -> &[f64] {
        &self.places[i * self.dims..(i + 1) * self.dims]
    }

    /// Selects some of the retained rows of each cell and scales their weights so that the weight
    /// of the cell does not change.
    fn select(&self, of: impl Fn(Range<usize>) -> Vec<usize>) -> StandIns {
        let mut some = StandIns::empty(self.dims, self.categories.clone());
        some.log_scales.clone_from(&self.log_scales);
        for cell in &self.cells {
            let start = some.weights.len();
            for &i in &of(cell.seen.clone()) {
                if let Some(lacks) = self.lacks.get(&i) {
                    some.lacks.insert(some.len(), lacks.clone());
                }
                some.push(self.point(i), self.codes_of(i), self.weights[i]);
            }
            let end = some.weights.len();
            for i in cell.made.clone() {
                some.push(self.point(i), self.codes_of(i), self.weights[i]);
            }
            let made: f64 = some.weights[end..].iter().sum();
            let seen: f64 = some.weights[start..end].iter().sum();
            let factor = (cell.rows - made) / seen;
            some.weights[start..end].iter_mut().for_each(|w| *w *= factor);
            some.witnesses += end - start;
            let made = end..some.weights.len();
            some.cells.push(CellPoints { seen: start..end, whole: false, made, rows: cell.rows });
        }
        some
    }

    /// Keeps about `most` retained rows, at least one in each cell, and all other points.
    pub fn thinned(&self, most: usize) -> StandIns {
        let step = self.witnesses.div_ceil(most.max(1)).max(1);
        self.select(|seen| seen.step_by(step).collect())
    }

    /// Splits the retained rows into two halves. The only retained row of a cell, and all other
    /// points, belong to both halves.
    pub fn halves(&self) -> [StandIns; 2] {
        [0, 1].map(|half| {
            self.select(|seen| match seen.len() {
                1 => seen.collect(),
                _ => seen.skip(half).step_by(2).collect(),
            })
        })
    }

    /// Returns whether every row is retained, so that no value is estimated.
    pub fn are_all_rows(&self) -> bool {
        self.cells.iter().all(|c| c.whole)
    }

    /// Returns the weighted mean of a value over the points, and the standard error of this mean as
    /// an estimate of the mean over the rows. The retained rows of a cell are a sample of its rows,
    /// so the squared standard error is
    ///
    /// ```text
    /// Σ_c (n_c/n)² v_c/s_c ,
    /// ```
    ///
    /// where v_c is the variance of the value within the cell. Cells whose rows are all retained
    /// contribute nothing. The points derived from the sums of a cell count as a single retained
    /// row, drawn at random from among them.
    pub fn mean(&self, values: &[f64]) -> (f64, f64) {
        let mass = self.mass();
        let mean = self.weights.iter().zip(values).map(|(w, v)| w * v).sum::<f64>() / mass;
        let spread = |range: &Range<usize>| {
            let some = &values[range.clone()];
            let centre = some.iter().sum::<f64>() / some.len() as f64;
            some.iter().map(|v| (v - centre).powi(2)).sum::<f64>()
        };
        let mut variance = 0.0;
        for cell in &self.cells {
            let s = cell.seen.len() as f64;
            if s > 1.0 && !cell.whole {
                variance += (cell.rows / mass).powi(2) * spread(&cell.seen) / (s - 1.0) / s;
            }
            if cell.made.len() > 1 {
                let weight: f64 = self.weights[cell.made.clone()].iter().sum();
                variance += (weight / mass).powi(2) * spread(&cell.made) / cell.made.len() as f64;
            }
        }
        (mean, variance.sqrt())
    }

    /// Returns one atom per centre, fitted to the points nearest to it, with full covariances or
    /// diagonals.
    pub fn atoms_around(&self, centres: &[Vec<f64>], matrices: bool) -> Vec<Atom> {
        let d = self.dims;
        let (members, levels) = (self.members(centres), self.levels());
        let total = self.mass();
        let atom = |(centre, members): (&Vec<f64>, Vec<usize>)| {
            let mass: f64 = members.iter().map(|i| self.weights[*i]).sum();
            let over = |of: &dyn Fn(&[f64]) -> f64| {
                let term = |i: &usize| self.weights[*i] * of(self.point(*i));
                members.iter().map(term).sum::<f64>() / mass.max(f64::MIN_POSITIVE)
            };
            let mean: Vec<f64> = match mass > 0.0 {
                true => (0..d).map(|k| over(&|x| x[k])).collect(),
                false => centre[..d].to_vec(),
            };
            let covariance = match matrices {
                true => {
                    let apart = |i: &usize| {
                        let root = (self.weights[*i] / mass).sqrt();
                        self.point(*i).iter().zip(&mean).map(move |(x, m)| root * (x - m))
                    };
                    let apart: Vec<f64> = members.iter().flat_map(apart).collect();
                    let mut gram = vec![0.0; d * d];
                    if !apart.is_empty() {
                        add_gram(&mut gram, &apart, d);
                    }
                    Covariance::Full(SymmetricMatrix::from_fn(d, |i, j| gram[j * d + i]))
                }
                false => Covariance::Diagonal(
                    (0..d).map(|k| over(&|x| (x[k] - mean[k]).powi(2))).collect(),
                ),
            };
            let mut atom = Atom::new(mass / total, mean, covariance);
            if !levels.is_empty() {
                let mut sums = vec![0.0; levels.total()];
                members.iter().for_each(|i| levels.add(&mut sums, *i, self.weights[*i]));
                atom.levels = levels.shares(&sums);
            }
            atom
        };
        centres.iter().zip(members).map(atom).collect()
    }
}

/// Returns the number of levels of each category of a plan, and the coordinate value of a level.
fn kinds(plan: &Plan) -> Vec<(usize, f64)> {
    let sizes = plan.recipe.level_sizes();
    plan.categories().iter().zip(sizes).map(|(c, size)| (c.len(), size)).collect()
}

/// The sums of a cell, with all cells.
struct Known<'a> {
    cell: Cell<'a>,
    cells: &'a Cells,
}

/// Rows of a cell that no retained row represents.
struct Unseen {
    column: usize,
    /// Their share of the rows of the cell.
    share: f64,
    /// Their value in the column.
    value: f64,
}

/// The retained rows in a cell.
struct Seen {
    rows: Vec<f64>,
    codes: Vec<u32>,
    /// The weight of each.
    counts: Vec<f64>,
    total: f64,
    mean: Vec<f64>,
    variance: Vec<f64>,
}

impl Seen {
    fn new(d: usize, rows: Vec<f64>, codes: Vec<u32>, counts: Vec<f64>) -> Self {
        let total: f64 = counts.iter().sum();
        let average = |of: &dyn Fn(&[f64]) -> f64| {
            let terms = rows.chunks_exact(d).zip(&counts).map(|(x, c)| c * of(x));
            terms.sum::<f64>() / total.max(f64::MIN_POSITIVE)
        };
        let mean: Vec<f64> = (0..d).map(|k| average(&|x| x[k])).collect();
        let variance = (0..d).map(|k| average(&|x| (x[k] - mean[k]).powi(2))).collect();
        Seen { rows, codes, counts, total, mean, variance }
    }

    fn len(&self) -> f64 {
        self.counts.len() as f64
    }

    /// Returns a bound on the error of a value of column `k` from rounding to single precision and
    /// to the resolution of the sums.
    fn rounding(&self, known: &Known<'_>, k: usize) -> f64 {
        1e-6 * (known.cell.mean[k].abs() + self.mean[k].abs()) + known.cells.step(k)
    }

    /// Returns whether these rows can come from the cell and are enough to determine its shape.
    fn tells(&self, known: &Known<'_>, at_least: f64) -> bool {
        let d = self.mean.len();
        let enough = match (0..d).all(|k| known.cell.width(k) == 0.0) {
            // If all rows are equal, one row is enough.
            true => 1.0,
            false => (ENOUGH as f64).min(known.cell.rows).max(at_least / TOO_FEW),
        };
        // Squared distance of the means, in standard errors: about 1 per column.
        let apart = |k: usize| {
            let off = (known.cell.mean[k] - self.mean[k]).abs() - self.rounding(known, k);
            let error = known.cell.width(k) / self.len();
            if off > 0.0 { off * off / error.max(f64::MIN_POSITIVE) } else { 0.0 }
        };
        self.len() >= enough && (0..d).map(apart).sum::<f64>() <= 30.0 + 3.0 * d as f64
    }

    /// Returns the rows that no retained row represents in column `k`; `None` if the retained rows
    /// agree with the sums.
    fn unseen(&self, known: &Known<'_>, k: usize) -> Option<Unseen> {
        let apart = known.cell.mean[k] - self.mean[k];
        let more = known.cell.width(k) + apart * apart - self.variance[k];
        let share = apart * apart / more;
        // At least one row, but so few that possibly none was retained.
        let rare = share * known.cell.rows >= 0.5 && share * self.len() < 3.0;
        let real = apart.abs() > self.rounding(known, k) && more > UNSEEN * self.variance[k];
        (real && rare).then(|| Unseen { column: k, share, value: self.mean[k] + more / apart })
    }

    /// Returns the retained row nearest to the mean of all, with its levels.
    fn most_ordinary(&self, d: usize) -> (&[f64], &[u32]) {
        let n = self.rows.len() / d;
        let c = self.codes.len() / n.max(1);
        let row = |i: usize| &self.rows[i * d..(i + 1) * d];
        let far = |i: usize| squared_distance(row(i), &self.mean);
        match (0..n).min_by(|a, b| far(*a).total_cmp(&far(*b))) {
            Some(i) => (row(i), &self.codes[i * c..(i + 1) * c]),
            None => (&self.mean, &[]),
        }
    }

    /// Returns whether these are all the rows of the cell.
    fn is_all_of(&self, known: &Known<'_>) -> bool {
        let d = self.mean.len();
        let same = |k: usize| {
            let rounding = self.rounding(known, k);
            let width = known.cell.width(k);
            (known.cell.mean[k] - self.mean[k]).abs() <= rounding + 1e-6 * width.sqrt()
                && (width - self.variance[k]).abs() <= 1e-4 * width + rounding * rounding
        };
        (self.len() == known.cell.rows || self.counts.iter().any(|c| *c != 1.0)) && (0..d).all(same)
    }
}

#[cfg(test)]
mod tests {
    use super::super::cells::nearest_cells;
    use super::*;
    use nysketch_core::numeric::random::{normal, unit};
    use nysketch_core::pass::SketchParams;
    use nysketch_core::planning::{PlanParams, Scale, plan_for};
    use nysketch_core::rows::Table;
    use std::sync::Arc;

    fn sketch(values: Vec<f64>, dims: usize, params: PlanParams) -> Sketch {
        let table = Table::unnamed(dims, values).unwrap();
        let plan = Arc::new(plan_for(&table, params).unwrap().plan);
        Sketch::of(&plan, &table, SketchParams::default(), &()).unwrap()
    }

    fn of_witnesses(sketch: &Sketch) -> Option<StandIns> {
        let plan = sketch.plan();
        let rows = plan.witness_rows()?;
        let landmark_of = nearest_cells(plan, rows.data(), &[]);
        StandIns::of_witnesses(sketch, &Cells::new(sketch), &landmark_of)
    }

    fn stand_ins(sketch: &Sketch) -> StandIns {
        of_witnesses(sketch).unwrap()
    }

    /// Returns Σ w, Σ w x and Σ w x² of one column.
    fn moments(points: &StandIns, k: usize) -> [f64; 3] {
        let mut sums = [0.0; 3];
        for i in 0..points.len() {
            let (w, x) = (points.weights()[i], points.point(i)[k]);
            sums = [sums[0] + w, sums[1] + w * x, sums[2] + w * x * x];
        }
        sums
    }

    #[test]
    fn all_rows_stand_for_themselves() {
        let rng = &mut ChaCha8Rng::seed_from_u64(1);
        // One column is constant.
        let value = |i: usize, x: f64| if i % 3 == 2 { 1e3 / 7.0 } else { x };
        let rows: Vec<f64> = (0..900).map(|i| value(i, normal(rng))).collect();
        for (landmarks, scale) in [(20, Scale::None), (20, Scale::Standard), (300, Scale::Standard)]
        {
            let params = PlanParams::default().landmarks(landmarks).scale(scale);
            let all = stand_ins(&sketch(rows.clone(), 3, params));
            assert!(all.are_all_rows() && all.witnesses() == 300 && all.len() == 300);
            assert!(all.weights().iter().all(|w| (*w - 1.0).abs() < 1e-12));
        }
        // Half of the rows are not all rows.
        let params = PlanParams::default().landmarks(20).witnesses(150);
        assert!(!stand_ins(&sketch(rows, 3, params)).are_all_rows());
    }

    /// A plan made from other rows: if cells have too few retained rows, or rows from another
    /// distribution, there is no result.
    #[test]
    fn witnesses_of_other_rows_are_not_believed() {
        let rng = &mut ChaCha8Rng::seed_from_u64(6);
        let rows: Vec<f64> = (0..10_000).map(|_| normal(rng)).collect();
        let other: Vec<f64> = (0..10_000).map(|_| 2.5 + 0.7 * normal(rng)).collect();
        let table = Table::unnamed(2, rows).unwrap();
        let plan = Arc::new(plan_for(&table, PlanParams::default()).unwrap().plan);
        let other = Table::unnamed(2, other).unwrap();
        let sketch = Sketch::of(&plan, &other, SketchParams::default(), &()).unwrap();
        assert!(of_witnesses(&sketch).is_none());
        // A few rows of the same distribution are not all of its rows.
        let day = Table::unnamed(2, (0..800).map(|_| normal(rng)).collect()).unwrap();
        let sketch = Sketch::of(&plan, &day, SketchParams::default(), &()).unwrap();
        assert!(!stand_ins(&sketch).are_all_rows());
    }

    /// A column in which one row in a thousand is an outlier: without it, the retained rows would
    /// have no variance.
    #[test]
    fn rows_without_a_witness_are_made_up_for() {
        let rng = &mut ChaCha8Rng::seed_from_u64(2);
        let mut rows = Vec::new();
        for i in 0..20_000 {
            rows.extend([normal(rng), if i % 1000 == 7 { 1.0 } else { 0.0 }]);
        }
        let params = PlanParams::default().landmarks(8).witnesses(400);
        for seed in 0..5 {
            let sketch = sketch(rows.clone(), 2, params.clone().seed(seed));
            let points = stand_ins(&sketch);
            let [mass, first, second] = moments(&points, 1);
            assert!((mass - 20_000.0).abs() < 1e-6);
            let shown = (0..points.witnesses()).filter(|i| points.point(*i)[1] > 0.5).count();
            let exact = &sketch.column_moments().unwrap()[1];
            let variance = second / mass - (first / mass).powi(2);
            // A retained row that happens to be an outlier represents more or fewer outliers than
            // there are.
            if shown == 0 {
                assert!((variance / exact.1 - 1.0).abs() < 0.1, "{variance} {exact:?}");
            }
            assert!(variance > 0.3 * exact.1, "{variance} {exact:?}");
        }
    }

    /// Cells without retained rows are drawn with their exact moments, and subsets of the points
    /// have the total weight of all points.
    #[test]
    fn cells_keep_their_rows() {
        let rng = &mut ChaCha8Rng::seed_from_u64(3);
        let rows: Vec<f64> =
            (0..4000).map(|i| normal(rng) + if i % 400 < 2 { 30.0 } else { 0.0 }).collect();
        let params = PlanParams::default().landmarks(30).witnesses(40);
        let sketch = sketch(rows, 2, params);
        let points = stand_ins(&sketch);
        assert!(points.cells.iter().any(|c| c.seen.is_empty()), "some cells have no witness");
        for (cell, known) in points.cells.iter().zip(Cells::new(&sketch).iter()) {
            let span = cell.seen.start..cell.made.end;
            let weight: f64 = points.weights[span.clone()].iter().sum();
            assert!((weight - known.rows).abs() < 1e-9 * known.rows);
            if cell.seen.is_empty() {
                let mean =
                    span.map(|i| points.weights[i] * points.point(i)[0]).sum::<f64>() / weight;
                assert!((mean - known.mean[0]).abs() < 1e-9);
            }
        }
        let [half, other] = points.halves();
        for part in [&half, &other, &points.thinned(10)] {
            assert_eq!(part.cells.len(), points.cells.len());
            assert!((part.mass() - points.mass()).abs() < 1e-6);
            assert!(part.witnesses() < points.witnesses());
        }
        let alone = points.cells.iter().filter(|c| c.seen.len() == 1).count();
        assert_eq!(half.witnesses() + other.witnesses(), points.witnesses() + alone);
    }

    /// Rows with larger weights contribute more, also if all rows are retained.
    #[test]
    fn witnesses_count_as_their_rows() {
        let rng = &mut ChaCha8Rng::seed_from_u64(4);
        let rows: Vec<f64> = (0..2000).map(|_| normal(rng)).collect();
        let weights: Vec<f64> = rows.iter().map(|x| if *x > 0.0 { 9.0 } else { 1.0 }).collect();
        let table = Table::unnamed(1, rows.clone()).unwrap().with_weights(weights.clone()).unwrap();
        let params = PlanParams::default().landmarks(3).weights("weight", None);
        let plan = Arc::new(plan_for(&table, params).unwrap().plan);
        let sketch = Sketch::of(&plan, &table, SketchParams::default(), &()).unwrap();
        let [mass, first, _] = moments(&stand_ins(&sketch), 0);
        let exact = rows.iter().zip(&weights).map(|(x, w)| x * w).sum::<f64>()
            / weights.iter().sum::<f64>();
        let found = plan.frame.widen_coordinates(&[first / mass])[0];
        assert!((found - exact).abs() < 1e-3, "{found} {exact}");
    }

    /// The standard error of a mean agrees with the spread over repeated draws.
    #[test]
    fn errors_are_those_of_drawing_again() {
        let rng = &mut ChaCha8Rng::seed_from_u64(5);
        let rows: Vec<f64> = (0..8000).map(|_| unit(rng) * 10.0).collect();
        let exact = rows.iter().map(|x| x * x).sum::<f64>() / 8000.0;
        let (mut inside, mut errors) = (0, Vec::new());
        for seed in 0..100 {
            let params = PlanParams::default().landmarks(12).witnesses(300).seed(seed);
            let sketch = sketch(rows.clone(), 1, params);
            let points = stand_ins(&sketch);
            let frame = &sketch.plan().frame;
            let square = |i: usize| frame.widen_coordinates(points.point(i))[0].powi(2);
            let values: Vec<f64> = (0..points.len()).map(square).collect();
            let (mean, error) = points.mean(&values);
            inside += usize::from((mean - exact).abs() < 2.0 * error);
            errors.push((mean - exact).abs());
        }
        // Expected: 95, with a standard deviation of 2.2.
        assert!(inside >= 85, "{inside} {errors:?}");
    }
}
