//! Construction of the points that represent the rows, from retained rows and the sums of cells.
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
use super::level_draws::LevelDraws;
use super::retained::{Known, Retained, Unrepresented};
use super::stand_ins::{CellPoints, StandIns, kinds};
use nysketch_core::numeric::random::normal;
use nysketch_core::plan::Plan;
use nysketch_core::sketch::Sketch;
use nysketch_core::sums::Sum;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

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

impl StandIns {
    /// Combines the retained rows with the sums of the cells; `landmark_of` contains the landmark
    /// of each retained row. Returns `None` if the retained rows are not available or do not
    /// represent the data.
    pub fn of_witnesses(sketch: &Sketch, cells: &Cells, landmark_of: &[usize]) -> Option<Self> {
        let plan = sketch.plan();
        let (landmarks, witnesses) = (plan.landmarks()?, plan.witness_rows()?);
        let landmark_of_cell = filled(sketch);
        let members = members(landmark_of, &landmark_of_cell, landmarks.len());
        let rng = &mut ChaCha8Rng::seed_from_u64(0);
        // Expected number of retained rows per row.
        let per_row = witnesses.len() as f64 / sketch.rows() as f64;
        let (mut all, mut strange) = (StandIns::empty(plan.dims(), kinds(plan)), 0.0);
        all.log_scales = plan.frame.scale.iter().map(|s| s.ln()).collect();
        let counts = &sketch.sums()[Sum::CellLevels];
        let levels = plan.recipe.levels();
        let min_pairs = (ALL_PAIRS / landmarks.len()).clamp(1, *PAIRS.start());
        for ((cell, landmark), members) in cells.iter().zip(&landmark_of_cell).zip(&members) {
            let known = Known { cell, cells };
            let (retained, missing) = retained_rows(plan, &cell, members, rng);
            // Allow three standard deviations, since the rows of the sketch and the retained rows
            // are random samples.
            let at_least = per_row * (cell.rows - 3.0 * cell.rows.sqrt()).max(0.0);
            if retained.determines(&known, at_least) {
                let start = all.len();
                all.push_retained(&known, &retained);
                let missing = missing.into_iter().enumerate().filter(|(_, m)| !m.is_empty());
                all.missing.extend(missing.map(|(i, columns)| (start + i, columns)));
                continue;
            }
            let pairs = ((per_row * cell.rows / 2.0) as usize).clamp(min_pairs, *PAIRS.end());
            let counts = &counts[landmark * levels..(landmark + 1) * levels];
            all.push_drawn(cell, counts, pairs, rng);
            strange += if at_least > TOO_FEW * ENOUGH as f64 { cell.rows } else { 0.0 };
        }
        (all.witnesses > 0 && strange <= STRANGE * all.mass()).then_some(all)
    }

    /// Adds the retained rows of a cell, and points for the rows that they do not represent.
    fn push_retained(&mut self, known: &Known<'_>, retained: &Retained) {
        let (d, n, start) = (self.dims, known.cell.rows, self.weights.len());
        let mut others: Vec<Unrepresented> =
            (0..d).filter_map(|k| retained.unrepresented(known, k)).collect();
        let mut share = others.iter().map(|u| u.share).sum::<f64>();
        if share >= 0.5 {
            others.clear();
            share = 0.0;
        }
        let left = 1.0 - share;
        let c = self.categories.len();
        for (i, (x, count)) in retained.rows.chunks_exact(d).zip(&retained.counts).enumerate() {
            let codes = &retained.codes[i * c..(i + 1) * c];
            self.push(x, codes, left * n * count / retained.total);
        }
        let end = self.weights.len();
        let (ordinary, codes) = retained.most_ordinary(d);
        for u in &others {
            let mut x = ordinary.to_vec();
            x[u.column] = u.value;
            self.push(&x, codes, u.share * n);
        }
        self.witnesses += end - start;
        let made = end..self.weights.len();
        let whole = made.is_empty() && retained.is_all_of(known);
        self.cells.push(CellPoints { retained: start..end, whole, made, rows: n });
    }

    /// Adds a cell as points drawn with exactly its mean and variance. The levels of a point are
    /// drawn in proportion to the counts of the levels in the cell.
    fn push_drawn(
        &mut self,
        cell: Cell<'_>,
        counts: &[i128],
        pairs: usize,
        rng: &mut impl rand::Rng,
    ) {
        let (d, start) = (self.dims, self.weights.len());
        if cell.is_point() && self.categories.is_empty() {
            self.push(cell.mean, &[], cell.rows);
        } else {
            let mut rest = counts;
            let mut draws = Vec::with_capacity(self.categories.len());
            for (len, _) in &self.categories {
                let (counts, others) = rest.split_at(*len);
                draws.push(LevelDraws::new(counts).expect("every row of a cell has a level"));
                rest = others;
            }
            let drawn = cell.drawn(pairs, rng);
            let weight = cell.rows / (2 * pairs) as f64;
            for x in drawn.chunks_exact(d) {
                let codes: Vec<u32> = draws.iter().map(|draws| draws.draw(rng)).collect();
                self.push(x, &codes, weight);
            }
        }
        let made = start..self.weights.len();
        let rows = cell.rows;
        self.cells.push(CellPoints { retained: start..start, whole: false, made, rows });
    }
}

/// Returns the landmarks of the cells that contain rows, in the order of [`Cells`].
pub(super) fn filled(sketch: &Sketch) -> Vec<usize> {
    let rows = sketch.sums()[Sum::CellRows].iter().enumerate();
    rows.filter(|(_, n)| **n > 0).map(|(landmark, _)| landmark).collect()
}

/// Returns the retained rows in each cell that contains rows of the sketch; retained rows in other
/// cells are ignored.
fn members(landmark_of: &[usize], landmark_of_cell: &[usize], landmarks: usize) -> Vec<Vec<usize>> {
    let mut by_landmark: Vec<Vec<usize>> = vec![Vec::new(); landmarks];
    for (i, landmark) in landmark_of.iter().enumerate() {
        by_landmark[*landmark].push(i);
    }
    landmark_of_cell.iter().map(|landmark| std::mem::take(&mut by_landmark[*landmark])).collect()
}

/// Returns the retained rows of a cell, and the columns missing from each. Missing values are drawn
/// from the distribution of the cell.
fn retained_rows(
    plan: &Plan,
    cell: &Cell<'_>,
    members: &[usize],
    rng: &mut ChaCha8Rng,
) -> (Retained, Vec<Vec<usize>>) {
    let (d, c) = (plan.dims(), plan.categories().len());
    let (mut rows, mut codes, mut counts) = (Vec::new(), Vec::new(), Vec::new());
    if let (Some(places), Some(witnesses)) = (plan.witness_rows(), &plan.witnesses) {
        let (levels, weights) = (witnesses.levels(), witnesses.weights());
        for i in members {
            rows.extend(places.row(*i).iter().map(|x| f64::from(*x)));
            codes.extend_from_slice(&levels[i * c..(i + 1) * c]);
            counts.push(weights.get(*i).map_or(1.0, |w| f64::from(*w)));
        }
    }
    let missing =
        rows.chunks_exact(d).map(|row| (0..d).filter(|k| row[*k].is_nan()).collect()).collect();
    for (k, x) in rows.iter_mut().enumerate().filter(|(_, x)| x.is_nan()) {
        *x = cell.mean[k % d] + cell.variance(k % d).sqrt() * normal(rng);
    }
    (Retained::new(d, rows, codes, counts), missing)
}
