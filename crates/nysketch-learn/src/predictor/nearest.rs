//! The nearest centre of every row, found in single precision with a proof, or else decided in
//! double precision.
//!
//! Rows and centres are moved to the origin and scaled before they are narrowed to single
//! precision,
//!
//! ```text
//! y_j = (x_j − o_j) · f_j ,   z_j = f32(y_j) ,   o: mean of the centres,   f_j = 2^−e / s_j
//! ```
//!
//! with one power of two `2^e` that brings the farthest centre to a distance of at most 1. Narrowed
//! centres are `w_c`. The pass of [`tile`](nysketch_core::kernel::tile) computes `S_c ≈ ‖z − w_c‖²`
//! and
//! returns the smallest, `S_1`, and the second smallest, `S_2`. If there are many centres,
//! [`search`](nysketch_core::kernel::search) skips centres that are so far away that the proof
//! holds
//! against them. With `u = 2⁻²⁴` and d columns:
//!
//! * every coordinate of row and centre is narrowed with a relative error of u, so distances of
//!   narrowed points have an error of `u (‖y‖ + ‖v_c‖)`, where `v_c` is the centre before narrowing
//!   and `‖v_c‖` is at most the distance plus `‖y‖`, however far away the centre is;
//! * a difference and d fused multiply-adds give `S_c = ‖z − w_c‖² (1 + θ)`, with
//!   `|θ| ≤ γ = (d + 2) u` to first order;
//! * `‖y‖ ≤ √S_1 + ‖w_1‖` to first order;
//! * underflow contributes at most `√d 2⁻⁷³` to a distance.
//!
//! Therefore the nearest centre is the first one if
//!
//! ```text
//! √S_2 − √S_1  >  (1 + 4γ) (u (d + 4)/2 (√S_1 + √S_2) + 4u (√S_1 + ‖w_1‖) + √d 2⁻⁷³)
//! ```
//!
//! where `4γ` covers all terms of second order, including the rounding errors of the
//! double-precision decision. `S_1` above 2¹⁰⁰ proves nothing, so no relevant sum has overflowed.
//! If nothing is proven, all distances of the row are computed in double precision. Of several
//! equal centres, only the first is kept.
//!
//! GPUs compute the same `S_1` and `S_2` if requested ([`gpus`](nysketch_core::pass::gpus)); the
//! conclusions are
//! drawn here.

use nysketch_core::error::Result;
use nysketch_core::kernel::search::{PanelsOnce, Reach, Search};
use nysketch_core::kernel::tile::Nearest;
use nysketch_core::numeric::points::Points;
use nysketch_core::numeric::simd::{Instructions, Work};
use nysketch_core::pass::gpus::Gpus;
use std::collections::HashSet;
use std::sync::Arc;

/// `u`: half a unit in the last place in single precision.
const UNIT: f64 = 1.0 / (1 << 24) as f64;
/// Squared distances in single precision above this prove nothing.
const FAR: f32 = (1u128 << 100) as f32;

/// Centres laid out for the pass.
#[derive(Debug, Clone)]
pub struct NearestCentre {
    instructions: Instructions,
    /// `o_j` and `f_j`.
    origin: Vec<f64>,
    factor: Vec<f64>,
    search: Search,
    gpus: Option<Arc<Gpus>>,
    /// For every centre of the pass, its index among all centres, and `‖w_c‖`.
    centre: Vec<u32>,
    length: Vec<f64>,
    proof: Proof,
}

/// The terms of the bound that the gap between two distances must exceed.
#[derive(Debug, Clone, Copy)]
struct Proof {
    /// Factor of the sum of both distances.
    of_both: f64,
    /// Factor of the bound on `‖y‖`.
    of_row: f64,
    constant: f64,
}

impl Proof {
    fn new(dims: usize) -> Self {
        let d = dims as f64;
        let second_order = 1.0 + 4.0 * (d + 2.0) * UNIT;
        Proof {
            of_both: second_order * UNIT * (d + 4.0) / 2.0,
            of_row: second_order * 4.0 * UNIT,
            constant: second_order * d.sqrt() * 2.0f64.powi(-73),
        }
    }

    /// Returns whether the first of two centres, at distance `length` from the origin, is proven to
    /// be nearer.
    #[inline(always)]
    fn holds(&self, first: f32, second: f32, length: f64) -> bool {
        let (a, b) = (f64::from(first).sqrt(), f64::from(second).sqrt());
        let doubt = self.of_both * (a + b) + self.of_row * (a + length) + self.constant;
        // An infinite second distance belongs to a centre that does not exist, or is much farther
        // than the first.
        first <= FAR && (b - a > doubt || second == f32::INFINITY)
    }
}

/// Skips centres farther than the bound: the nearest centre is proven against them.
impl Reach for Proof {
    const FARTHER: bool = true;

    fn of(&self, nearest: f32) -> f32 {
        let a = f64::from(nearest).sqrt();
        // The smallest second distance that completes the proof, with a margin for rounding here.
        // Centres have norms of at most 1.
        let doubt = (2.0 * self.of_both + self.of_row) * a + self.of_row + self.constant;
        let second = a + 1.01 * doubt / (1.0 - self.of_both);
        ((second * second) as f32).next_up()
    }
}

impl NearestCentre {
    /// Lays out centres; `None` if their range is too large or too small for single precision.
    pub fn new(
        centres: &[Vec<f64>],
        inverse_scale: &[f64],
        instructions: Instructions,
    ) -> Option<Self> {
        let d = inverse_scale.len();
        let origin: Vec<f64> =
            (0..d).map(|j| centres.iter().map(|c| c[j] / centres.len() as f64).sum()).collect();
        let farthest =
            centres.iter().map(|c| length(scaled(c, &origin, inverse_scale))).fold(0.0, f64::max);
        // Powers of two within these bounds are exact, and so are products with them.
        let unit = match farthest {
            0.0 => 1.0,
            r if (1e-150..1e150).contains(&r) => 2.0f64.powi(-(r.log2().ceil() as i32)),
            _ => return None,
        };
        let factor: Vec<f64> = inverse_scale.iter().map(|f| f * unit).collect();
        if !factor.iter().all(|f| f.is_normal()) {
            return None;
        }
        let mut distinct = HashSet::new();
        let (mut narrow, mut centre) = (Vec::new(), Vec::new());
        for (c, values) in centres.iter().enumerate() {
            // Adding zero makes -0 and 0 equal.
            let bits: Vec<u64> = values.iter().map(|x| (x + 0.0).to_bits()).collect();
            if distinct.insert(bits) {
                narrow.extend(scaled(values, &origin, &factor).map(|x| x as f32));
                centre.push(c as u32);
            }
        }
        let points = Points::new(d, narrow);
        let lengths = points.rows().map(|w| length(w.iter().map(|x| f64::from(*x)))).collect();
        Some(NearestCentre {
            instructions,
            search: Search::new(
                &points,
                None,
                PanelsOnce::default().of(&points, instructions),
                instructions,
            ),
            gpus: None,
            origin,
            factor,
            centre,
            length: lengths,
            proof: Proof::new(d),
        })
    }

    /// Lets the GPU with this number, or all GPUs, compare rows with the centres from which this
    /// was made.
    pub fn with_gpus(&self, centres: &[Vec<f64>], ordinal: Option<usize>) -> Result<Self> {
        let rows: Vec<f64> =
            self.centre.iter().flat_map(|c| &centres[*c as usize]).copied().collect();
        let mut narrow = vec![0.0; rows.len()];
        self.narrow(&rows, &mut narrow);
        let gpus = Gpus::new(&Points::new(self.origin.len(), narrow), ordinal)?;
        Ok(NearestCentre { gpus: Some(Arc::new(gpus)), ..self.clone() })
    }

    /// Returns a remark if a GPU has failed.
    pub fn gpus_remark(&self) -> Option<String> {
        self.gpus.as_ref().and_then(|gpus| gpus.remark())
    }

    /// Returns the number of distinct centres.
    pub fn count(&self) -> usize {
        self.centre.len()
    }

    /// Calls `found` with the nearest centre of every row, or `None` if single precision does not
    /// prove it.
    pub fn find(&self, rows: &[f64], mut found: impl FnMut(usize, Option<u32>)) {
        let d = self.origin.len();
        let (mut z, mut search, mut nearest) = (Vec::new(), None, Nearest::default());
        let together = match &self.gpus {
            Some(gpus) if gpus.remark().is_none() => gpus.rows(),
            _ => self.search.rows(),
        };
        for (block, rows) in rows.chunks(together * d).enumerate() {
            z.resize(rows.len(), 0.0);
            self.narrow(rows, &mut z);
            self.two(&z, &mut search, &mut nearest);
            let pairs = nearest.distance.iter().zip(&nearest.second);
            for (i, ((first, second), at)) in pairs.zip(&nearest.index).enumerate() {
                let at = *at as usize;
                let proven = self.proof.holds(*first, *second, self.length[at]);
                found(block * together + i, proven.then(|| self.centre[at]));
            }
        }
    }

    fn narrow(&self, rows: &[f64], z: &mut [f32]) {
        let Self { origin, factor, .. } = self;
        self.instructions.run(Narrow { origin, factor, rows, z });
    }

    /// Finds the smallest and second smallest distance of narrowed rows, by a working GPU or by the
    /// processors.
    fn two(&self, z: &[f32], search: &mut Option<Search>, nearest: &mut Nearest) {
        if self.gpus.as_ref().is_some_and(|gpus| gpus.nearest(z, nearest).is_ok()) {
            return;
        }
        // The search has scratch memory of its own; a copy costs little compared with a block of
        // rows.
        let search = search.get_or_insert_with(|| self.search.clone());
        search.block_two(z, &self.proof, nearest);
    }
}

/// Returns the norm of a vector.
fn length(vector: impl Iterator<Item = f64>) -> f64 {
    vector.map(|x| x * x).sum::<f64>().sqrt()
}

/// Returns `(c_j − o_j) f_j`.
fn scaled(c: &[f64], origin: &[f64], factor: &[f64]) -> impl Iterator<Item = f64> {
    c.iter().zip(origin).zip(factor).map(|((c, o), f)| (c - o) * f)
}

/// Computes `z_j = f32((x_j − o_j) f_j)` for some rows.
struct Narrow<'a> {
    origin: &'a [f64],
    factor: &'a [f64],
    rows: &'a [f64],
    z: &'a mut [f32],
}

impl Work for Narrow<'_> {
    #[inline(always)]
    fn work(self) {
        let d = self.origin.len();
        for (row, z) in self.rows.chunks_exact(d).zip(self.z.chunks_exact_mut(d)) {
            for j in 0..d {
                z[j] = ((row[j] - self.origin[j]) * self.factor[j]) as f32;
            }
        }
    }
}
