//! The rows from which Σ is estimated, and the rows from which secants are made.

use super::params::TheoryParams;
use crate::decoder::Context;
use nysketch_core::error::{Error, Result};
use nysketch_core::numeric::points::Points;
use nysketch_core::numeric::random::below;
use nysketch_core::sums::Sum;
use rand_chacha::ChaCha8Rng;
use serde::Serialize;

/// Maximum number of rows of each half: an eigendecomposition of this size takes seconds.
pub(super) const MOST: usize = 1000;
/// Minimum number of rows of a half.
const LEAST: usize = 20;

/// The rows from which Σ is estimated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Basis {
    /// Rows given by the user.
    Rows,
    /// Retained rows of the plan.
    Witnesses,
    /// Landmarks, weighted by the shares of rows in their cells; no rows are held out for secants.
    Landmarks,
}

/// Points in the plan's coordinates.
pub(super) struct Places {
    pub basis: Basis,
    /// The points from which Σ̂ is estimated.
    pub points: Points,
    /// The weight of each point; the sum is one.
    pub shares: Vec<f64>,
    /// Held-out points that are not landmarks; empty if there are no rows other than landmarks.
    pub kept_out: Vec<Vec<f64>>,
}

impl Places {
    pub fn new(context: &Context<'_>, params: &TheoryParams, rng: &mut ChaCha8Rng) -> Result<Self> {
        let plan = context.plan();
        let Some(landmarks) = plan.landmarks() else {
            return Err(Error::parameter("the sketch", "one with landmarks", "Fourier features"));
        };
        let (basis, rows): (Basis, Vec<Vec<f32>>) = if params.rows.is_empty() {
            let rows = plan.witness_rows().map(|w| w.rows().map(<[f32]>::to_vec).collect());
            (Basis::Witnesses, rows.unwrap_or_default())
        } else {
            let mut rows = Vec::with_capacity(params.rows.len());
            for row in &params.rows {
                if row.len() != plan.dims() || !row.iter().all(|x| x.is_finite()) {
                    let expected = format!("rows of {} finite numbers", plan.dims());
                    return Err(Error::parameter("`rows`", expected, format!("{row:?}")));
                }
                rows.push(plan.frame.coordinates(row).into_iter().map(|x| x as f32).collect());
            }
            (Basis::Rows, rows)
        };
        let others = some(rows, 2 * MOST, |z| landmarks.rows().any(|l| l == z.as_slice()), rng);
        if others.len() < 2 * LEAST {
            return Ok(Places::at_landmarks(context, landmarks));
        }
        let (points, kept_out) = others.split_at(others.len() / 2);
        Ok(Places {
            basis,
            points: Points::new(plan.dims(), points.concat()),
            shares: vec![1.0 / points.len() as f64; points.len()],
            kept_out: kept_out.iter().map(|z| z.iter().map(|x| f64::from(*x)).collect()).collect(),
        })
    }

    fn at_landmarks(context: &Context<'_>, landmarks: &Points) -> Self {
        let sketch = context.sketch();
        let shares = match &sketch.sums()[Sum::CellRows][..] {
            [] => vec![1.0 / landmarks.len() as f64; landmarks.len()],
            cells => cells.iter().map(|n| *n as f64 / sketch.rows() as f64).collect(),
        };
        let (basis, points) = (Basis::Landmarks, landmarks.clone());
        Places { basis, points, shares, kept_out: Vec::new() }
    }
}

/// Returns at most `count` of the rows, in random order, without excluded ones.
fn some(
    mut rows: Vec<Vec<f32>>,
    count: usize,
    left_out: impl Fn(&Vec<f32>) -> bool,
    rng: &mut ChaCha8Rng,
) -> Vec<Vec<f32>> {
    let mut found = Vec::new();
    let mut next = 0;
    while found.len() < count && next < rows.len() {
        let other = next + below(rows.len() - next, rng);
        rows.swap(next, other);
        if !left_out(&rows[next]) {
            found.push(std::mem::take(&mut rows[next]));
        }
        next += 1;
    }
    found
}
