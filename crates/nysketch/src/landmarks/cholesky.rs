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
//! Memory is O(n m), time O(n m²).

use crate::kernel::Gaussian;
use crate::points::Points;
use crate::random::{below, draw};

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

/// Chooses up to `m` points; fewer where the kernel matrix has a smaller numerical rank.
pub fn pivoted_cholesky(
    points: &Points,
    sigma2: f64,
    m: usize,
    pivot: Pivot,
    rng: &mut impl rand::Rng,
) -> Vec<usize> {
    let (n, kernel) = (points.len(), Gaussian { sigma2 });
    let mut residual = vec![1.0f64; n];
    let mut columns: Vec<Vec<f64>> = Vec::with_capacity(m);
    let mut chosen = Vec::with_capacity(m);
    while chosen.len() < m && n > 0 {
        let next = match pivot {
            _ if chosen.is_empty() => Some(below(n, rng)),
            Pivot::Largest => {
                (0..n).max_by(|&i, &j| residual[i].total_cmp(&residual[j]).then(j.cmp(&i)))
            }
            Pivot::Random => draw(&residual, rng),
        };
        let Some(p) = next.filter(|&p| residual[p] > EXHAUSTED) else {
            break;
        };
        let root = residual[p].sqrt();
        let z = points.row(p);
        let mut column: Vec<f64> =
            points.rows().map(|x| kernel.at(Points::squared_distance(x, z))).collect();
        for earlier in &columns {
            let factor = earlier[p];
            for (c, e) in column.iter_mut().zip(earlier) {
                *c -= factor * e;
            }
        }
        for (c, r) in column.iter_mut().zip(&mut residual) {
            *c /= root;
            *r -= *c * *c;
            if *r <= EXHAUSTED {
                *r = 0.0;
            }
        }
        residual[p] = 0.0;
        columns.push(column);
        chosen.push(p);
    }
    chosen
}
