//! Determines where the atoms of a pursuit start, and the bounds within which they stay.
//!
//! | the plan contains | starts | bounds |
//! |---|---|---|
//! | retained rows | some of them | their range |
//! | landmarks only | the landmarks | their range |
//! | no rows | draws around the mean | three standard deviations from the mean |
//!
//! A range is widened by a twentieth on either side, and extended to the range of draws around the
//! mean. Bounds matter: outside the rows the residual of a small sketch is arbitrary, and an atom
//! that moves there does not return. If the plan contains no rows, starts and bounds are the same
//! for both kinds of feature maps.

use super::context::Context;
use nysketch_core::numeric::random::below;

/// Maximum number of starts; more were not found to help.
const STARTS: usize = 500;
/// Share of a range by which it is widened at each end.
const WIDER: f64 = 0.05;
/// Standard deviations within which atoms stay if the plan contains no rows.
const DEVIATIONS: f64 = 3.0;

/// Starts and bounds, in the coordinates of a context.
#[derive(Debug, Clone, PartialEq)]
pub struct Region {
    /// Starts of atoms.
    pub starts: Vec<Vec<f64>>,
    /// Bounds of each coordinate.
    pub bounds: Vec<(f64, f64)>,
}

impl Region {
    /// Determines starts and bounds from the rows in the plan, if it contains any.
    pub fn of_rows(context: &Context<'_>, rng: &mut impl rand::Rng) -> Self {
        let rows = context.held_rows();
        if rows.is_empty() {
            return Region::of_moments(context, rng);
        }
        let mut bounds = context.space().around(3.0f64.sqrt());
        for (k, bound) in bounds.iter_mut().enumerate() {
            let (low, high) = range(rows.iter().map(|row| row[k]));
            let wider = WIDER * (high - low);
            *bound = (bound.0.min(low - wider), bound.1.max(high + wider));
        }
        Region { starts: some(rows, STARTS, rng), bounds }
    }

    /// Determines starts and bounds from the mean and variances alone.
    pub fn of_moments(context: &Context<'_>, rng: &mut impl rand::Rng) -> Self {
        let space = context.space();
        let starts = (0..STARTS).map(|_| space.draw(rng)).collect();
        Region { starts, bounds: space.around(DEVIATIONS) }
    }
}

/// Returns the smallest and the largest value.
fn range(values: impl Iterator<Item = f64>) -> (f64, f64) {
    values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), x| (low.min(x), high.max(x)))
}

/// Returns at most `count` of the rows, drawn without replacement.
fn some(mut rows: Vec<Vec<f64>>, count: usize, rng: &mut impl rand::Rng) -> Vec<Vec<f64>> {
    if rows.len() > count {
        for i in 0..count {
            let other = i + below(rows.len() - i, rng);
            rows.swap(i, other);
        }
        rows.truncate(count);
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use nysketch_core::pass::SketchParams;
    use nysketch_core::plan::collect::Collect;
    use nysketch_core::plan::sampling::Sampling;
    use nysketch_core::planning::{PlanParams, plan_for};
    use nysketch_core::rows::Table;
    use nysketch_core::rows::synthetic::Mixture;
    use nysketch_core::sketch::Sketch;
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;
    use std::sync::Arc;

    fn region(params: PlanParams) -> (Region, Vec<f64>) {
        let rows = Mixture::new(2, 3, 3.0, 5).unwrap().rows(0, 3000).values;
        let table = Table::unnamed(2, rows.clone()).unwrap();
        let plan = Arc::new(plan_for(&table, params).unwrap().0);
        let sketch = Sketch::of(&plan, &table, SketchParams::default(), &()).unwrap();
        let context = Context::new(&sketch);
        let found = Region::of_rows(&context, &mut ChaCha8Rng::seed_from_u64(1));
        let placed = rows.chunks_exact(2).flat_map(|row| plan.frame.coordinates(row)).collect();
        (found, placed)
    }

    fn near(x: f64, y: f64) -> bool {
        (x - y).abs() < 1e-5
    }

    /// All 3,000 rows are retained, so the range is that of the rows; a twentieth on either side
    /// makes it a tenth longer.
    #[test]
    fn rows_of_the_plan_give_starts_and_range() {
        let (found, rows) = region(PlanParams::default().landmarks(30));
        assert_eq!(found.starts.len(), STARTS);

        assert!(
            found
                .starts
                .iter()
                .all(|s| rows.chunks(2).any(|r| near(r[0], s[0]) && near(r[1], s[1])))
        );
        for k in 0..2 {
            let (low, high) = range(rows.iter().skip(k).step_by(2).copied());
            let (from, to) = found.bounds[k];
            assert!(near((to - from) / (high - low), 1.1), "{:?} {low} {high}", found.bounds[k]);
            assert!(from < low && high < to);
        }
    }

    /// Without rows, both kinds of features have the same starts and bounds, derived from the
    /// moments.
    #[test]
    fn without_rows_both_maps_start_alike() {
        let collect = Collect { kernel: true, cells: false, moments: true };
        let (fourier, rows) = region(PlanParams::default().fourier(20).collect(collect));
        let n = rows.len() as f64 / 2.0;
        for k in 0..2 {
            let column: Vec<f64> = rows.iter().skip(k).step_by(2).copied().collect();
            let mean = column.iter().sum::<f64>() / n;
            let deviation = (column.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n).sqrt();
            let (from, to) = fourier.bounds[k];
            // Sums have a resolution of 2⁻²⁰ of a coordinate or better.
            assert!((from - mean + 3.0 * deviation).abs() < 1e-4 * deviation);
            assert!((to - mean - 3.0 * deviation).abs() < 1e-4 * deviation);
        }
        let table = Table::unnamed(2, rows).unwrap();
        let nystrom = PlanParams::default().landmarks(30).sampling(Sampling::Uniform);
        let [fourier, nystrom] = [PlanParams::default().fourier(20), nystrom].map(|params| {
            let plan = Arc::new(plan_for(&table, params.collect(collect)).unwrap().0);
            let sketch = Sketch::of(&plan, &table, SketchParams::default(), &()).unwrap();
            Region::of_moments(&Context::new(&sketch), &mut ChaCha8Rng::seed_from_u64(1))
        });
        assert_eq!(fourier, nystrom);
    }
}
