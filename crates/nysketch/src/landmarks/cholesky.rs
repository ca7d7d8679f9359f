//! Landmarks by pivoted partial Cholesky of the sample's kernel matrix.
//!
//! After t pivots the residual diagonal is the Schur complement
//!
//! ```text
//! r(x) = κ(x, x) − φ_t(x)ᵀ K_t⁻¹ φ_t(x) = ‖Φ(x) − P_t Φ(x)‖²
//! ```
//!
//! *Greedy* takes its maximum (section 3.2); *rpcholesky* draws in proportion to it (Chen et al.
//! 2023). With a Gaussian kernel κ(x, x) = 1 for all x, so the first pivot of both is random.
//!
//! Columns of the factor are found for several candidates at once, by one product with the factor so
//! far, which is what makes it fast; the choice is the one of one candidate at a time. Residuals only
//! fall: the largest of the candidates is the largest of all as long as no other row is above it.
//! Candidates drawn in proportion to the residuals before are kept with the probability to which theirs
//! has fallen (Epperly, Tropp and Webber 2024). Memory is O(n m), time O(n m²).

use crate::kernel::Gaussian;
use crate::linalg::Columns;
use crate::points::Points;
use crate::random::{below, draw, unit};

/// Which row becomes the next pivot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pivot {
    /// The largest residual.
    Largest,
    /// Drawn in proportion to the residual.
    Random,
}

/// Residuals below this are rounding: the points chosen span the sample.
const EXHAUSTED: f64 = 1e-12;

/// Candidates at once: as many as twice those kept the last time, within these.
const CANDIDATES: std::ops::RangeInclusive<usize> = 4..=128;

/// Chooses up to `m` points; fewer where the kernel matrix has a smaller numerical rank.
pub fn pivoted_cholesky(
    points: &Points,
    sigma2: f64,
    m: usize,
    pivot: Pivot,
    rng: &mut impl rand::Rng,
) -> Vec<usize> {
    let n = points.len();
    let mut state = Factor {
        points,
        kernel: Gaussian { sigma2 },
        residual: vec![1.0f64; n],
        columns: Columns::with_capacity(n, m),
        chosen: Vec::with_capacity(m),
    };
    if m == 0 || n == 0 {
        return Vec::new();
    }
    state.add_block(&[below(n, rng)], m, |_, _| Verdict::Keep);
    let mut at_once = *CANDIDATES.start();
    while state.chosen.len() < m {
        let before = state.chosen.len();
        let at_start = state.residual.clone();
        let candidates = match pivot {
            Pivot::Largest => largest(&at_start, at_once),
            Pivot::Random => (0..at_once).map_while(|_| draw(&at_start, rng)).collect(),
        };
        if candidates.is_empty() || at_start[candidates[0]] <= EXHAUSTED {
            break;
        }
        state.add_block(&candidates, m, |residual, p| match pivot {
            Pivot::Random if unit(rng) * at_start[p] < residual[p] => Verdict::Keep,
            Pivot::Random => Verdict::Drop,
            Pivot::Largest => match largest(residual, 1)[..] {
                [first] if candidates.contains(&first) => Verdict::Instead(first),
                _ => Verdict::Stop,
            },
        });
        let kept = state.chosen.len() - before;
        at_once = (2 * kept).clamp(*CANDIDATES.start(), *CANDIDATES.end());
    }
    state.chosen
}

/// What becomes of a candidate.
enum Verdict {
    Keep,
    Drop,
    /// This candidate comes first.
    Instead(usize),
    /// No candidate is the right one any more.
    Stop,
}

/// The `count` rows of largest residual, largest first, the first of equal ones.
fn largest(residual: &[f64], count: usize) -> Vec<usize> {
    let order = |i: &usize, j: &usize| residual[*j].total_cmp(&residual[*i]).then(i.cmp(j));
    let mut rows: Vec<usize> = (0..residual.len()).collect();
    let count = count.min(rows.len());
    if count > 0 && count < rows.len() {
        rows.select_nth_unstable_by(count - 1, order);
    }
    rows.truncate(count);
    rows.sort_by(order);
    rows
}

/// The factor so far.
struct Factor<'a> {
    points: &'a Points,
    kernel: Gaussian,
    residual: Vec<f64>,
    columns: Columns,
    chosen: Vec<usize>,
}

impl Factor<'_> {
    /// Adds the candidates that stand the test, one after the other.
    fn add_block(
        &mut self,
        candidates: &[usize],
        m: usize,
        mut judge: impl FnMut(&[f64], usize) -> Verdict,
    ) {
        let kernel_column = |p: usize| {
            let z = self.points.row(p);
            self.points.rows().map(move |x| Points::squared_distance(x, z))
        };
        let mut block = Columns::with_capacity(self.residual.len(), candidates.len());
        for &p in candidates {
            block.push(kernel_column(p).map(|d2| self.kernel.at(d2)));
        }
        // What the pivots before the block explain, for all candidates at once.
        block.subtract_product(&self.columns, candidates);
        let first = self.columns.len();
        for &candidate in candidates {
            if self.chosen.len() == m {
                return;
            }
            let p = match judge(&self.residual, candidate) {
                Verdict::Keep => candidate,
                Verdict::Instead(other) => other,
                Verdict::Drop => continue,
                Verdict::Stop => return,
            };
            if self.residual[p] <= EXHAUSTED {
                continue;
            }
            let Some(at) = candidates.iter().position(|c| *c == p) else { continue };
            let mut column = block.column(at).to_vec();
            for earlier in first..self.columns.len() {
                let earlier = self.columns.column(earlier);
                let factor = earlier[p];
                column.iter_mut().zip(earlier).for_each(|(c, e)| *c -= factor * e);
            }
            let root = self.residual[p].sqrt();
            for (c, r) in column.iter_mut().zip(&mut self.residual) {
                *c /= root;
                *r -= *c * *c;
                if *r <= EXHAUSTED {
                    *r = 0.0;
                }
            }
            self.residual[p] = 0.0;
            self.columns.push(column.into_iter());
            self.chosen.push(p);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;

    /// One pivot after the other, as the definition says.
    fn one_by_one(points: &Points, sigma2: f64, m: usize, first: usize) -> Vec<usize> {
        let kernel = Gaussian { sigma2 };
        let (mut residual, mut chosen) = (vec![1.0; points.len()], vec![]);
        let mut columns: Vec<Vec<f64>> = vec![];
        let mut p = first;
        while chosen.len() < m && residual[p] > EXHAUSTED {
            let at = |x| kernel.at(Points::squared_distance(x, points.row(p)));
            let mut column: Vec<f64> = points.rows().map(at).collect();
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
            let fast = pivoted_cholesky(&points, 1.0, m, Pivot::Largest, &mut rng);
            assert_eq!(fast, one_by_one(&points, 1.0, m, fast[0]));
        }
    }

    /// Two points, one of which is twice as far in feature space from the first pivot: rows are
    /// drawn in proportion to the residual, as often by blocks as one by one.
    #[test]
    fn random_pivots_follow_the_residual() {
        let points = Points::new(1, vec![0.0, 0.3, 3.0]);
        let kernel = |d: f64| (-d * d / 2.0).exp();
        let share = |d: f64| 1.0 - kernel(d).powi(2);
        let (mut near, mut times) = (0, 0);
        for seed in 0..6000 {
            let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(seed);
            let chosen = pivoted_cholesky(&points, 1.0, 2, Pivot::Random, &mut rng);
            if chosen[0] == 0 {
                times += 1;
                near += usize::from(chosen[1] == 1);
            }
        }
        let p = share(0.3) / (share(0.3) + share(3.0));
        let (mean, deviation) = (p * times as f64, (p * (1.0 - p) * times as f64).sqrt());
        assert!((near as f64 - mean).abs() < 5.0 * deviation, "{near} of {times}, expected {mean}");
    }
}
