//! Log densities of components with full covariances, for many rows at once.
//!
//! Computes `s_i = Σ_{j ≤ i} W_ij (x_j − μ_j)` and `q = Σ_i s_i²` with the order of operations of
//! [`Factor::squared_distance`](crate::Factor::squared_distance). Vector lanes contain different
//! rows, so every instruction set gives the same bits as a single row.

use crate::covariance::{Factor, Whitening};
use crate::model::log_peak;
use nysketch_core::numeric::simd::{Instructions, Work};

/// Number of rows processed together.
const ROWS: usize = 32;

/// The components of a mixture laid out for many rows.
#[derive(Debug, Clone)]
pub struct Whitened {
    instructions: Instructions,
    components: Vec<Component>,
}

#[derive(Debug, Clone)]
struct Component {
    mean: Vec<f64>,
    factor: Factor,
    /// `log α_c N` at the mean.
    peak: f64,
}

impl Whitened {
    /// Lays out components.
    pub fn new(
        weights: &[f64],
        means: &[Vec<f64>],
        factors: Vec<Factor>,
        instructions: Instructions,
    ) -> Self {
        let components = weights
            .iter()
            .zip(means)
            .zip(factors)
            .map(|((weight, mean), factor)| Component {
                peak: log_peak(*weight, &factor),
                mean: mean.clone(),
                factor,
            })
            .collect();
        Whitened { instructions, components }
    }

    /// Computes `log α_c N(x; μ_c, Γ_c)` of finite rows, k values for each row.
    pub fn of(&self, rows: &[f64], out: &mut Vec<f64>) {
        let (k, d) = (self.components.len(), self.components[0].mean.len());
        out.resize(rows.len() / d * k, 0.0);
        self.instructions.run(Score { of: self, d, rows, out });
    }
}

struct Score<'a> {
    of: &'a Whitened,
    d: usize,
    rows: &'a [f64],
    out: &'a mut [f64],
}

impl Work for Score<'_> {
    #[inline(always)]
    fn work(self) {
        let (k, d) = (self.of.components.len(), self.d);
        let mut columns = vec![[0.0; ROWS]; d];
        let mut differences = columns.clone();
        let blocks = self.rows.chunks(ROWS * d).zip(self.out.chunks_mut(ROWS * k));
        for (rows, out) in blocks {
            // If the last block is not full, its other lanes contain earlier rows, whose results
            // are ignored.
            for (r, row) in rows.chunks_exact(d).enumerate() {
                columns.iter_mut().zip(row).for_each(|(column, x)| column[r] = *x);
            }
            for (c, component) in self.of.components.iter().enumerate() {
                for ((t, x), mean) in differences.iter_mut().zip(&columns).zip(&component.mean) {
                    for l in 0..ROWS {
                        t[l] = x[l] - mean;
                    }
                }
                let squares = match component.factor.whitening() {
                    Whitening::Lower(w) => squared_lengths(w, &differences),
                    Whitening::Diagonal(_) => unreachable!("diagonals are laid out in panels"),
                };
                for (out, q) in out.chunks_exact_mut(k).zip(squares) {
                    out[c] = component.peak - 0.5 * q;
                }
            }
        }
    }
}

/// Returns `‖W t‖²` of several rows, given by column.
#[inline(always)]
fn squared_lengths(w: &[f64], t: &[[f64; ROWS]]) -> [f64; ROWS] {
    let mut squares = [0.0; ROWS];
    let mut rest = w;
    for i in 0..t.len() {
        let (row, next) = rest.split_at(i + 1);
        rest = next;
        let mut s = [0.0; ROWS];
        for (w, t) in row.iter().zip(t) {
            for l in 0..ROWS {
                s[l] += w * t[l];
            }
        }
        for l in 0..ROWS {
            squares[l] += s[l] * s[l];
        }
    }
    squares
}
