//! Landmarks by pivoted partial Cholesky factorisation of the sample's kernel matrix.
//!
//! After t pivots, the residual diagonal is the Schur complement
//!
//! ```text
//! r(x) = κ(x, x) − φ_t(x)ᵀ K_t⁻¹ φ_t(x) = ‖Φ(x) − P_t Φ(x)‖²
//! ```
//!
//! *Greedy* chooses its maximum (section 3.2); *rpcholesky* draws with probability proportional to
//! it (Chen et al. 2023). κ(x, x) = 1 for all x, so the first pivot of both is random.
//!
//! Pivots are chosen in blocks. A choice among a few candidates needs only the candidates' residual
//! kernel matrix, and the columns of the factor are computed for all chosen candidates by matrix
//! products. The result is the same as with one pivot at a time. For *greedy*: residuals only
//! decrease, so the largest residual of the candidates is the largest of all rows as long as it
//! exceeds the initial residuals of the other rows. For *rpcholesky*: candidates are drawn with
//! probability proportional to the initial residuals, and each is kept with a probability equal to
//! the ratio of its current to its initial residual (Epperly, Tropp and Webber 2024). Memory is O(n
//! m) and time O(n m²); requests above the work limit are refused.

use crate::error::Result;
use crate::kernel::ScaledKernel;
use crate::numeric::linalg::{Cholesky, Columns, Matrix, dot};
use crate::numeric::points::{PointColumns, Points};
use crate::numeric::random::{below, draw, unit};
use crate::numeric::work::Work;
use std::cmp::Ordering;

/// The rule for the next pivot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pivot {
    /// The largest residual.
    Largest,
    /// A random row, with probability proportional to the residual.
    Random,
}

/// Residuals below this are rounding errors: the chosen points span the sample.
const EXHAUSTED: f64 = 1e-12;

/// Largest number of candidates for the largest residual. Each chosen candidate updates all others.
const MAX_LARGEST: usize = 512;
/// Largest number of random candidates. Their residual kernel matrix is stored.
const MAX_RANDOM: usize = 2048;
/// Smallest number of candidates, used if few were kept before.
const FEW: usize = 8;

/// Chooses up to `m` points, fewer if the kernel matrix has a smaller numerical rank.
pub fn pivoted_cholesky(
    points: &Points,
    kernel: ScaledKernel,
    m: usize,
    pivot: Pivot,
    rng: &mut impl rand::Rng,
) -> Result<Vec<usize>> {
    let n = points.len();
    if m == 0 || n == 0 {
        return Ok(Vec::new());
    }
    let (rows, columns) = (n as f64, m.min(n) as f64);
    Work { operations: rows * columns * columns, bytes: 8.0 * rows * columns }.check_beside(
        "a Cholesky factor of this many landmarks",
        "`sampling=dsquared` or `sampling=uniform` take much less",
    )?;
    let mut factor = Factor {
        points,
        by_column: PointColumns::new(points),
        kernel,
        residual: vec![1.0f64; n],
        columns: Columns::with_capacity(n, m),
    };
    let mut chosen = vec![below(n, rng)];
    let mut fresh = chosen.clone();
    // The columns of the last pivots are not needed.
    while chosen.len() < m {
        factor.add(&fresh)?;
        let wanted = m - chosen.len();
        // As long as most candidates are kept, few large blocks are best, because each block costs
        // a product with all rows.
        let at_once = (4 * fresh.len()).max(FEW);
        let Some(kept) = (match pivot {
            Pivot::Largest => factor.largest(at_once.min(MAX_LARGEST), wanted),
            Pivot::Random => factor.random(at_once.min(2 * wanted).min(MAX_RANDOM), wanted, rng),
        }) else {
            break;
        };
        chosen.extend(&kept);
        fresh = kept;
    }
    Ok(chosen)
}

/// The `count` rows with the largest residuals, largest first; the first row in case of ties.
fn largest(residual: &[f64], count: usize) -> Vec<usize> {
    let mut rows: Vec<usize> = (0..residual.len()).collect();
    let count = count.min(rows.len());
    if count > 0 && count < rows.len() {
        rows.select_nth_unstable_by(count - 1, |i, j| descending(residual, *i, *j));
    }
    rows.truncate(count);
    rows.sort_by(|i, j| descending(residual, *i, *j));
    rows
}

/// The order of two rows: by residual, largest first, then by index.
fn descending(residual: &[f64], i: usize, j: usize) -> Ordering {
    residual[j].total_cmp(&residual[i]).then(i.cmp(&j))
}

/// The factor so far.
struct Factor<'a> {
    points: &'a Points,
    by_column: PointColumns,
    kernel: ScaledKernel,
    /// The residual of every row.
    residual: Vec<f64>,
    columns: Columns,
}

impl Factor<'_> {
    /// The next pivots by largest residual; `None` if all residuals are exhausted.
    fn largest(&self, at_once: usize, wanted: usize) -> Option<Vec<usize>> {
        let mut candidates = largest(&self.residual, at_once + 1);
        candidates.retain(|&p| self.residual[p] > EXHAUSTED);
        // The row with the largest residual outside the candidates.
        let next = if candidates.len() > at_once { candidates.pop() } else { None };
        let mut block = Block::new(self.residual_kernel(&candidates), &candidates);
        let mut kept = Vec::new();
        while let Some(c) = block.largest().filter(|_| kept.len() < wanted) {
            let p = candidates[c];
            let beaten = next.is_some_and(|other| {
                let (inside, outside) = (block.residual(c), self.residual[other]);
                inside < outside || (inside == outside && other < p)
            });
            if beaten {
                break;
            }
            block.keep(c);
            kept.push(p);
        }
        (!candidates.is_empty()).then_some(kept)
    }

    /// The next pivots, drawn with probability proportional to the residual; `None` if all
    /// residuals are exhausted.
    fn random(
        &self,
        at_once: usize,
        wanted: usize,
        rng: &mut impl rand::Rng,
    ) -> Option<Vec<usize>> {
        let candidates: Vec<usize> =
            (0..at_once).map_while(|_| draw(&self.residual, rng)).collect();
        let matrix = self.residual_kernel(&candidates);
        // Kept candidates, and the rows of the Cholesky factor of their residual kernel matrix.
        let (mut kept, mut rows): (Vec<usize>, Vec<Vec<f64>>) = (Vec::new(), Vec::new());
        for (c, &p) in candidates.iter().enumerate() {
            if kept.len() == wanted {
                break;
            }
            let mut row = Vec::with_capacity(kept.len() + 1);
            for (&other, above) in kept.iter().zip(&rows) {
                let i = row.len();
                row.push((matrix.column(c)[other] - dot(&above[..i], &row)) / above[i]);
            }
            let left = matrix.column(c)[c] - dot(&row, &row);
            if left > EXHAUSTED && unit(rng) * self.residual[p] < left {
                row.push(left.sqrt());
                rows.push(row);
                kept.push(c);
            }
        }
        (!candidates.is_empty()).then(|| kept.iter().map(|&c| candidates[c]).collect())
    }

    /// The residual kernel matrix of some rows.
    fn residual_kernel(&self, rows: &[usize]) -> Columns {
        let points = self.points.select(rows);
        let by_column = PointColumns::new(&points);
        let mut matrix = Columns::with_capacity(rows.len(), rows.len());
        points.rows().for_each(|z| matrix.push(self.kernel.column(&by_column, z)));
        let factor = self.columns.select_rows(rows);
        matrix.subtract_transposed_product(&factor, &factor);
        // The diagonal uses the stored residuals, so that the first candidate is always kept.
        rows.iter().enumerate().for_each(|(c, &p)| matrix.column_mut(c)[c] = self.residual[p]);
        matrix
    }

    /// Adds the columns of some pivots and updates the residuals.
    fn add(&mut self, pivots: &[usize]) -> Result<()> {
        if pivots.is_empty() {
            return Ok(());
        }
        let mut block = Columns::with_capacity(self.residual.len(), pivots.len());
        for &p in pivots {
            block.push(self.kernel.column(&self.by_column, self.points.row(p)));
        }
        block.subtract_product(&self.columns, &self.columns.select_rows(pivots));
        let among = Matrix::from_fn(pivots.len(), pivots.len(), |i, j| block.column(j)[pivots[i]]);
        match Cholesky::new(&among) {
            Ok(factor) => factor.divide(&mut block),
            // Rounding errors, when residuals are nearly exhausted. Adding one pivot at a time
            // cannot fail.
            Err(_) if pivots.len() > 1 => {
                for p in pivots {
                    if self.residual[*p] > EXHAUSTED {
                        self.add(std::slice::from_ref(p))?;
                    }
                }
                return Ok(());
            }
            Err(error) => return Err(error),
        }
        for j in 0..block.len() {
            for (r, c) in self.residual.iter_mut().zip(block.column(j)) {
                *r -= c * c;
            }
        }
        for r in &mut self.residual {
            if *r <= EXHAUSTED {
                *r = 0.0;
            }
        }
        pivots.iter().for_each(|&p| self.residual[p] = 0.0);
        self.columns.append(block);
        Ok(())
    }
}

/// The residual kernel matrix of the candidates.
struct Block {
    matrix: Columns,
    rows: Vec<usize>,
    /// Flags of the candidates that are not kept yet.
    left: Vec<bool>,
}

impl Block {
    fn new(matrix: Columns, rows: &[usize]) -> Self {
        Block { matrix, rows: rows.to_vec(), left: vec![true; rows.len()] }
    }

    /// The residual of a candidate.
    fn residual(&self, c: usize) -> f64 {
        if self.left[c] { self.matrix.column(c)[c] } else { 0.0 }
    }

    /// The candidate with the largest residual; the first row in case of ties.
    fn largest(&self) -> Option<usize> {
        let above = (0..self.left.len()).filter(|c| self.residual(*c) > EXHAUSTED);
        above.max_by(|&a, &b| {
            self.residual(a).total_cmp(&self.residual(b)).then(self.rows[b].cmp(&self.rows[a]))
        })
    }

    /// Keeps a candidate and updates the residuals of the others.
    fn keep(&mut self, c: usize) {
        let pivot = self.matrix.column(c).to_vec();
        self.left[c] = false;
        for other in (0..self.left.len()).filter(|other| self.left[*other]) {
            let factor = pivot[other] / pivot[c];
            let column = self.matrix.column_mut(other);
            column.iter_mut().zip(&pivot).for_each(|(x, p)| *x -= factor * p);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Kernel;
    use rand::SeedableRng;

    /// One pivot at a time, as in the definition.
    fn one_by_one(points: &Points, sigma2: f64, m: usize, first: usize) -> Vec<usize> {
        let kernel = Kernel::Gaussian.at(sigma2);
        let (mut residual, mut chosen) = (vec![1.0; points.len()], vec![]);
        let mut columns: Vec<Vec<f64>> = vec![];
        let mut p = first;
        while chosen.len() < m && residual[p] > EXHAUSTED {
            let distances = points.rows().map(|x| Points::squared_distance(x, points.row(p)));
            let mut column: Vec<f64> = distances.map(|d2| kernel.of(d2)).collect();
            for c in &columns {
                let factor = c[p];
                column.iter_mut().zip(c).for_each(|(x, c)| *x -= factor * c);
            }
            let root = f64::sqrt(residual[p]);
            column.iter_mut().for_each(|x| *x /= root);
            residual.iter_mut().zip(&column).for_each(|(r, c)| *r -= c * c);
            residual[p] = 0.0;
            columns.push(column);
            chosen.push(p);
            p = largest(&residual, 1)[0];
        }
        chosen
    }

    #[test]
    fn greedy_is_that_of_one_pivot_at_a_time() {
        let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(3);
        let data: Vec<f32> = (0..3 * 500).map(|_| unit(&mut rng) as f32 * 6.0).collect();
        let points = Points::new(3, data);
        for m in [1, 2, 40, 150] {
            let fast =
                pivoted_cholesky(&points, Kernel::Gaussian.at(1.0), m, Pivot::Largest, &mut rng)
                    .unwrap();
            assert_eq!(fast, one_by_one(&points, 1.0, m, fast[0]));
        }
    }

    /// Coordinates of four points.
    const AT: [f32; 4] = [0.0, 0.3, 1.0, 3.0];

    fn kernel(i: usize, j: usize) -> f64 {
        f64::from(-(AT[i] - AT[j]).powi(2) / 2.0).exp()
    }

    /// Residual of x after the pivot p.
    fn one(p: usize, x: usize) -> f64 {
        1.0 - kernel(p, x).powi(2)
    }

    /// Residual of x after the pivots p and q, from the determinant of the three points.
    fn two(p: usize, q: usize, x: usize) -> f64 {
        let (a, b, c) = (kernel(p, q), kernel(p, x), kernel(q, x));
        (1.0 + 2.0 * a * b * c - a * a - b * b - c * c) / (1.0 - a * a)
    }

    /// The points that are not pivots yet.
    fn others(used: &[usize]) -> Vec<usize> {
        (0..4).filter(|x| !used.contains(x)).collect()
    }

    /// Every order of three pivots of four points occurs as often as its residuals predict.
    #[test]
    fn random_pivots_follow_the_residual() {
        let points = Points::new(1, AT.to_vec());
        let times = 40_000u32;
        let mut seen = std::collections::BTreeMap::new();
        for seed in 0..times {
            let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(u64::from(seed));
            let chosen =
                pivoted_cholesky(&points, Kernel::Gaussian.at(1.0), 3, Pivot::Random, &mut rng)
                    .unwrap();
            *seen.entry(chosen).or_insert(0u32) += 1;
        }
        for p in 0..4 {
            let ones: f64 = others(&[p]).iter().map(|&x| one(p, x)).sum();
            for q in others(&[p]) {
                let twos: f64 = others(&[p, q]).iter().map(|&x| two(p, q, x)).sum();
                for r in others(&[p, q]) {
                    let chance = 0.25 * one(p, q) / ones * two(p, q, r) / twos;
                    let mean = chance * f64::from(times);
                    let found = f64::from(seen.get(&vec![p, q, r]).copied().unwrap_or(0));
                    let off = (found - mean).abs() / (mean * (1.0 - chance)).sqrt();
                    assert!(off < 5.0, "{p} {q} {r}: {found} times, expected {mean}");
                }
            }
        }
    }
}
