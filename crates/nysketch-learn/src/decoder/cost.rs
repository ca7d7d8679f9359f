//! What learning costs, estimated before it starts.
//!
//! ```text
//! cells, k-means and k-medians    3·k·n·d operations for each of 10 passes over n points, for each start
//! cells, mixtures                 8·k·n·d for each step of EM; 4·k·n·d² with matrices
//! kernel sums                     an eigendecomposition of the kernel matrix of the landmarks
//! components                      an eigendecomposition of the covariance matrix
//! ```
//!
//! Levels of categories count as columns, and points are retained rows, or cells where there are
//! none.

use super::by_cells::effort;
use super::context::Context;
use super::list::Decoder;
use super::params::FitParams;
use super::search;
use crate::model::task::Task;
use nysketch_core::error::Result;
use nysketch_core::numeric::points::Points;
use nysketch_core::numeric::work::Work;
use nysketch_core::sums::Sum;

/// Passes over all points that k-means takes: bounds on distances leave most of the later ones out.
const PASSES: f64 = 10.0;

/// What learning costs, about.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Cost {
    /// Floating-point operations.
    pub operations: f64,
    /// Gigabytes of memory.
    pub gigabytes: f64,
}

impl Context<'_> {
    /// What learning models of all these numbers of clusters costs, `times` over. `None` where it
    /// takes seconds at most.
    ///
    /// ```
    /// use nysketch::{Context, FitParams, Mixture, PlanParams, Sketch, SketchParams, Table, Task, plan_for};
    /// # fn main() -> nysketch::Result<()> {
    /// let table = Table::unnamed(2, Mixture::new(2, 3, 3.0, 1)?.rows(0, 900).values)?;
    /// let plan = std::sync::Arc::new(plan_for(&table, PlanParams::default())?.plan);
    /// let sketch = Sketch::of(&plan, &table, SketchParams::default(), &())?;
    /// let (context, params) = (Context::new(&sketch), FitParams::new(Task::Kmeans, 3));
    /// assert!(context.cost(&params, 2..=20, 1).is_none());
    /// assert!(context.cost(&params, 2..=20, 100_000_000).is_some());
    /// # Ok(())
    /// # }
    /// ```
    pub fn cost(
        &self,
        params: &FitParams,
        clusters: std::ops::RangeInclusive<usize>,
        times: usize,
    ) -> Option<Cost> {
        let (low, high) = (*clusters.start(), *clusters.end());
        let of = |k: usize| work(self, &FitParams { k, ..params.clone() });
        let (least, most) = (of(low), of(high));
        let count = (high - low) as f64 + 1.0;
        let operations = 0.5 * (least.operations + most.operations) * count * times as f64;
        let cost = Work { operations, bytes: most.bytes };
        let gigabytes = cost.bytes / 1e9;
        (!cost.is_small()).then_some(Cost { operations, gigabytes })
    }

    /// Refuses what is beyond the limit of work.
    pub(super) fn check_cost(&self, params: &FitParams) -> Result<()> {
        work(self, params).check("learning from this sketch")
    }
}

/// What one model costs.
fn work(context: &Context<'_>, params: &FitParams) -> Work {
    let plan = context.plan();
    let (m, k) = (plan.features.points().len(), params.k);
    if params.task == Task::Pca {
        return Work::eigen(plan.dims(), 1);
    }
    if context.chosen(params) != Decoder::Cells {
        return Work::eigen(if plan.landmarks().is_some() { m } else { 0 }, 1);
    }
    let cells = context.sketch().sums()[Sum::CellRows].iter().filter(|rows| **rows > 0).count();
    let points = plan.witness_rows().map_or(cells, Points::len);
    let columns = plan.recipe.space_dims(plan.dims());
    let each = k as f64 * points as f64 * columns as f64;
    let bytes = 16.0 * points as f64 * columns as f64;
    if params.task != Task::Gmm {
        let starts = effort(k, 1).restarts as f64;
        return Work::default().and(3.0 * each * PASSES * starts, bytes);
    }
    let (kind, _) = context.covariance(params);
    if kind.is_matrix() {
        let (d, steps) = (plan.dims(), params.max_iterations);
        return search::work(kind, points, k, d, params.restarts, steps);
    }
    search::diagonal_work(points, k, columns, params.restarts, params.max_iterations)
        .and(0.0, bytes)
}
