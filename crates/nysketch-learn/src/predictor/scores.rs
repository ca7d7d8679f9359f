//! Scores of rows against all centres or components, in double precision.
//!
//! | model | score of centre or component c |
//! |---|---|
//! | centres | squared distance `Σ_j ((x_j − c_j)/s_j)²` in the coordinates of the fit |
//! | mixture | `log α_c N(x; μ_c, Γ_c)`: a peak minus half the squared norm of `W_c (x − μ_c)` |
//! | principal components | coordinate `Σ_j v_cj (x_j − μ_j)/s_j` |
//!
//! All scores except those of full covariances are sums over the columns of `(x_j − m_cj) f_cj`,
//! squared or not. Every instruction set gives the bits of the slow reference.

use super::whitened::Whitened;
use crate::covariance::Whitening;
use crate::model::{Model, Shape, log_peak};
use nysketch_core::numeric::simd::{Instructions, Work};

/// Number of centres or components processed together.
const LANES: usize = 8;
/// Number of rows processed together.
const ROWS: usize = 4;

/// Centres or components laid out for many rows.
#[derive(Debug, Clone)]
pub enum Scores {
    /// Processed in panels of `LANES`.
    Panels(Panels),
    /// Processed one by one: components with full covariances.
    Whitened(Whitened),
}

impl Scores {
    /// Lays out a model.
    pub fn new(model: &Model, inverse_scale: &[f64], instructions: Instructions) -> Self {
        match &model.shape {
            Shape::Mixture { weights, means, covariance, .. } if covariance.is_matrix() => {
                let factors = model.shape.factors();
                Scores::Whitened(Whitened::new(weights, means, factors, instructions))
            }
            _ => Scores::Panels(Panels::new(model, inverse_scale, instructions)),
        }
    }

    /// Computes the scores of finite rows, k for each row.
    pub fn of(&self, rows: &[f64], out: &mut Vec<f64>) {
        match self {
            Scores::Panels(panels) => panels.of(rows, out),
            Scores::Whitened(whitened) => whitened.of(rows, out),
        }
    }
}

/// Centres or components in panels of `LANES`.
#[derive(Debug, Clone)]
pub struct Panels {
    instructions: Instructions,
    dims: usize,
    k: usize,
    linear: bool,
    /// `m` and `f`, both `[panel][column][lane]`.
    centre: Vec<[f64; LANES]>,
    factor: Vec<[f64; LANES]>,
    /// `log α_c N` at the mean, one for each component of a mixture.
    peak: Vec<f64>,
}

impl Panels {
    fn new(model: &Model, inverse_scale: &[f64], instructions: Instructions) -> Self {
        let (d, k) = (model.columns.len(), model.k());
        let inverse = inverse_scale;
        let factors = model.shape.factors();
        let (centre, factor) = match &model.shape {
            Shape::Centres { centres, .. } => {
                (panels(k, d, |c, j| centres[c][j]), panels(k, d, |_, j| inverse[j]))
            }
            Shape::Mixture { means, .. } => {
                let whitening = panels(k, d, |c, j| match factors[c].whitening() {
                    Whitening::Diagonal(w) => w[j],
                    Whitening::Lower(_) => unreachable!("full covariances are whitened"),
                });
                (panels(k, d, |c, j| means[c][j]), whitening)
            }
            Shape::Components { mean, components, .. } => {
                (panels(k, d, |_, j| mean[j]), panels(k, d, |c, j| components[c][j] * inverse[j]))
            }
        };
        let peak = match &model.shape {
            Shape::Mixture { weights, .. } => {
                weights.iter().zip(&factors).map(|(w, factor)| log_peak(*w, factor)).collect()
            }
            _ => Vec::new(),
        };
        let linear = matches!(model.shape, Shape::Components { .. });
        Panels { instructions, dims: d, k, linear, centre, factor, peak }
    }

    fn of(&self, rows: &[f64], out: &mut Vec<f64>) {
        out.resize(rows.len() / self.dims * self.k, 0.0);
        if self.linear {
            self.instructions.run(Score::<true> { of: self, rows, out })
        } else {
            self.instructions.run(Score::<false> { of: self, rows, out })
        }
    }
}

/// Returns `of(c, j)` for k centres in d columns as `[panel][column][lane]`, zero in lanes without
/// a centre.
fn panels(k: usize, d: usize, of: impl Fn(usize, usize) -> f64) -> Vec<[f64; LANES]> {
    let mut table = vec![[0.0; LANES]; k.div_ceil(LANES) * d];
    for c in 0..k {
        for j in 0..d {
            table[c / LANES * d + j][c % LANES] = of(c, j);
        }
    }
    table
}

struct Score<'a, const LINEAR: bool> {
    of: &'a Panels,
    rows: &'a [f64],
    out: &'a mut [f64],
}

impl<const LINEAR: bool> Work for Score<'_, LINEAR> {
    #[inline(always)]
    fn work(self) {
        let Panels { dims: d, k, .. } = *self.of;
        let whole = self.rows.len() / (ROWS * d) * ROWS;
        let (rows, single_rows) = self.rows.split_at(whole * d);
        let (out, single_out) = self.out.split_at_mut(whole * k);
        for (rows, out) in rows.chunks_exact(ROWS * d).zip(out.chunks_exact_mut(ROWS * k)) {
            self.of.some::<ROWS, LINEAR>(rows, out);
        }
        for (row, out) in single_rows.chunks_exact(d).zip(single_out.chunks_exact_mut(k)) {
            self.of.some::<1, LINEAR>(row, out);
        }
    }
}

impl Panels {
    /// Computes the scores of R rows.
    #[inline(always)]
    fn some<const R: usize, const LINEAR: bool>(&self, rows: &[f64], out: &mut [f64]) {
        let (d, k) = (self.dims, self.k);
        let rows: [&[f64]; R] = std::array::from_fn(|r| &rows[r * d..(r + 1) * d]);
        let panels = self.centre.chunks_exact(d).zip(self.factor.chunks_exact(d));
        for (first, (centre, factor)) in (0..k).step_by(LANES).zip(panels) {
            let mut sums = [[0.0; LANES]; R];
            for (j, (c, f)) in centre.iter().zip(factor).enumerate() {
                for (sums, row) in sums.iter_mut().zip(rows) {
                    for l in 0..LANES {
                        let t = (row[j] - c[l]) * f[l];
                        sums[l] += if LINEAR { t } else { t * t };
                    }
                }
            }
            let width = LANES.min(k - first);
            for (r, sums) in sums.iter_mut().enumerate() {
                if !self.peak.is_empty() {
                    let peaks = &self.peak[first..first + width];
                    sums.iter_mut().zip(peaks).for_each(|(s, p)| *s = p - 0.5 * *s);
                }
                out[r * k + first..][..width].copy_from_slice(&sums[..width]);
            }
        }
    }
}
