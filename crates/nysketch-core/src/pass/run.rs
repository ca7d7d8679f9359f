//! One pass over a source, which can be interrupted and resumed.

use super::accumulator::Accumulator;
use super::dealer::Dealer;
use super::quota::Quota;
use crate::error::{Error, Result};
use crate::pass::engine::EngineKind;
use crate::plan::Plan;
use crate::recipe::View;
use crate::rows::weight::Rounding;
use crate::rows::{Invalid, Losses, Progress, RowSet, RowSource, read_on};
use crate::sketch::Sketch;
use crate::sketch::folds::FoldRule;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Parameters of the pass. They do not affect the sketch.
///
/// ```
/// let params = nysketch_core::SketchParams::default().threads(4);
/// assert_eq!(params.threads, 4);
/// ```
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct SketchParams {
    /// Number of threads.
    pub threads: usize,
    /// Treatment of invalid rows.
    pub invalid: Invalid,
    /// The engine that adds rows to the sums.
    pub engine: EngineKind,
}

impl Default for SketchParams {
    fn default() -> Self {
        SketchParams { threads: 1, invalid: Invalid::Refuse, engine: EngineKind::default() }
    }
}

impl SketchParams {
    /// Sets the number of threads.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads;
        self
    }

    /// Sets the treatment of invalid rows.
    #[must_use]
    pub fn invalid(mut self, invalid: Invalid) -> Self {
        self.invalid = invalid;
        self
    }

    /// Sets the engine.
    #[must_use]
    pub fn engine(mut self, engine: EngineKind) -> Self {
        self.engine = engine;
        self
    }
}

impl Sketch {
    /// Sketches a source in one reading.
    pub fn of(
        plan: &Arc<Plan>,
        source: &dyn RowSource,
        params: SketchParams,
        progress: &dyn Progress,
    ) -> Result<Self> {
        let mut run = Run::new(plan.clone());
        run.finish(source, params, progress)?;
        Ok(run.into_sketch())
    }

    /// Sketches a source in one reading, with folds. If rows are assigned by a key, the keys of the
    /// source's blocks must hold it.
    pub fn of_folds(
        plan: &Arc<Plan>,
        rule: &FoldRule,
        source: &dyn RowSource,
        params: SketchParams,
        progress: &dyn Progress,
    ) -> Result<Self> {
        let empty = Sketch::empty_folds(plan.clone(), rule.clone())?;
        let mut run = Run::resume(empty, RowSet::default());
        run.finish(source, params, progress)?;
        Ok(run.into_sketch())
    }
}

/// An incomplete sketch and the positions of its rows. Sums are exact, so a resumed run gives the
/// same bytes as an uninterrupted one.
///
/// ```
/// use nysketch_core::{Error, PlanParams, Run, Sketch, SketchParams, Table, plan_for};
/// use std::sync::Arc;
/// use std::time::Duration;
/// # fn main() -> nysketch_core::Result<()> {
/// let table = Table::unnamed(1, (0..5000).map(f64::from).collect())?.with_part_rows(100);
/// let plan = Arc::new(plan_for(&table, PlanParams::default().landmarks(20))?.plan);
/// let params = SketchParams::default();
///
/// // Save after every part, and stop at the third.
/// let (mut saved, mut times) = (Run::new(plan.clone()), 0);
/// let stopped = Run::new(plan.clone()).finish_saving(&table, params, &(), Duration::ZERO, |run| {
///     saved = run.clone();
///     times += 1;
///     if times == 3 { Err(Error::Cancelled) } else { Ok(()) }
/// });
/// assert!(stopped.is_err() && saved.done().len() == 300);
///
/// // Another process continues from the saved state: a sketch and the positions of its rows.
/// let mut run = Run::resume(saved.sketch().clone(), saved.done().clone());
/// run.finish(&table, params, &())?;
/// let whole = Sketch::of(&plan, &table, params, &())?;
/// assert_eq!(run.into_sketch().to_bytes(), whole.to_bytes());
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Run {
    sketch: Sketch,
    done: RowSet,
    losses: Losses,
    rounding: Rounding,
    uncounted: (u64, u64),
    clipped: u64,
}

impl Run {
    /// A run that has read no rows.
    pub fn new(plan: Arc<Plan>) -> Self {
        Run::resume(Sketch::empty(plan), RowSet::default())
    }

    /// Resumes an earlier run. To keep folds, start with [`Sketch::empty_folds`].
    pub fn resume(sketch: Sketch, done: RowSet) -> Self {
        Run {
            sketch,
            done,
            losses: Losses::default(),
            rounding: Rounding::default(),
            uncounted: (0, 0),
            clipped: 0,
        }
    }

    /// Adds the losses of the interrupted run.
    #[must_use]
    pub fn with_losses(mut self, losses: Losses) -> Self {
        self.losses = losses;
        self
    }

    /// The sketch of the rows so far.
    pub fn sketch(&self) -> &Sketch {
        &self.sketch
    }

    /// The sketch of the rows so far.
    pub fn into_sketch(self) -> Sketch {
        self.sketch
    }

    /// Numbers of rows skipped by this run, in total and per column. The weight follows the last
    /// column.
    pub fn losses(&self) -> &Losses {
        &self.losses
    }

    /// Positions of the rows so far.
    pub fn done(&self) -> &RowSet {
        &self.done
    }

    /// For a plan that protects people: the number of rows dropped because their person has more
    /// rows than allowed, and the number of rows without a person.
    pub fn uncounted(&self) -> (u64, u64) {
        self.uncounted
    }

    /// Number of rows clipped to the bounds of a private plan.
    pub fn beyond(&self) -> u64 {
        self.clipped
    }

    /// Effect of rounding the weights of the rows read by this run.
    pub fn rounding(&self) -> Rounding {
        self.rounding
    }

    /// A note for the user if the effect of rounding is large enough to matter.
    pub fn rounding_note(&self) -> Option<String> {
        self.sketch.plan().weighting.as_ref().and_then(|w| self.rounding.note(w))
    }

    /// Reads all remaining rows. If the plan protects people, all rows are read twice, and the keys
    /// of their blocks must identify the people.
    pub fn finish(
        &mut self,
        source: &dyn RowSource,
        params: SketchParams,
        progress: &dyn Progress,
    ) -> Result<()> {
        self.finish_saving(source, params, progress, Duration::MAX, |_| Ok(()))
    }

    /// Reads all remaining rows. Calls `save` about once per interval `every` and before returning.
    pub fn finish_saving(
        &mut self,
        source: &dyn RowSource,
        params: SketchParams,
        progress: &dyn Progress,
        every: Duration,
        mut save: impl FnMut(&Run) -> Result<()>,
    ) -> Result<()> {
        let plan = self.sketch.plan().clone();
        let source = &View::new(&plan.recipe, &plan.columns, source)?;
        let quota = self.quota(source, params, progress)?;
        let mut stream = source.open(&self.done)?;
        let dealer = Dealer::new(&self.sketch)?;
        let saving = every < Duration::MAX;
        let uncancelled = Uncancelled(progress);
        loop {
            let start = Instant::now();
            let stretch = read_on(
                &mut *stream,
                params.threads,
                if saving { &uncancelled } else { progress },
                // If the run can be saved, a cancellation pauses it, so that blocks in progress are
                // completed.
                &|| start.elapsed() >= every || (saving && progress.cancelled()),
                || Accumulator::with(plan.clone(), params.engine, dealer.clone()),
                |accumulator, block| match &quota {
                    None => accumulator.push(block, params.invalid),
                    Some(quota) => {
                        let rows = quota.rows(block)?;
                        accumulator.push_rows(block, rows.into_iter(), params.invalid)
                    }
                },
            )?;
            // All accumulators are frozen before any is merged: the last one may fail on a GPU, and
            // merged rows must be in `done`.
            let parts = stretch.states.into_iter().map(Part::of);
            for part in parts.collect::<Result<Vec<_>>>()? {
                self.losses.merge(&part.losses);
                self.rounding.merge(part.rounding);
                self.clipped += part.clipped;
                self.sketch.merge(&part.sketch)?;
            }
            self.uncounted = quota.as_ref().map_or((0, 0), Quota::uncounted);
            stretch.rows.ranges().iter().for_each(|r| self.done.insert(r.clone()));
            save(self)?;
            if stretch.finished {
                return Ok(());
            }
            if progress.cancelled() {
                return Err(Error::Cancelled);
            }
        }
    }

    /// Selects the rows to sketch, if the plan protects people.
    fn quota(
        &mut self,
        source: &View<'_>,
        params: SketchParams,
        progress: &dyn Progress,
    ) -> Result<Option<Quota>> {
        let plan = self.sketch.plan().clone();
        let Some(people) = plan.people() else { return Ok(None) };
        // A saved run does not record which of several equal rows were selected.
        if !self.done.is_empty() || self.sketch.folds().is_some() {
            let expected = "sketched whole, without folds, where their plan protects people";
            return Err(Error::parameter("rows", expected, "others"));
        }
        self.sketch.count_people(people.rows);
        Quota::new(&plan, source, params.threads, progress)
    }
}

/// The rows of one thread.
struct Part {
    sketch: Sketch,
    losses: Losses,
    rounding: Rounding,
    /// Number of rows clipped to the bounds of a private plan.
    clipped: u64,
}

impl Part {
    fn of(accumulator: Accumulator) -> Result<Self> {
        Ok(Part {
            losses: accumulator.losses().clone(),
            rounding: accumulator.rounding(),
            clipped: accumulator.clipped(),
            sketch: accumulator.freeze()?,
        })
    }
}

/// Progress that ignores cancellation.
struct Uncancelled<'a>(&'a dyn Progress);

impl Progress for Uncancelled<'_> {
    fn advance(&self, rows: u64) {
        self.0.advance(rows);
    }

    fn stage(&self, what: &'static str) {
        self.0.stage(what);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::planning::{PlanParams, make_plan};
    use crate::rows::Table;

    #[test]
    fn interrupted_runs_end_with_the_same_bytes() {
        let values = (0..6000).map(|i| (f64::from(i) * 0.37).sin()).collect();
        let table = Table::unnamed(2, values).unwrap().with_part_rows(50);
        let params = PlanParams::default().check().unwrap();
        let plan = Arc::new(make_plan(&table, &params, &()).unwrap().plan);
        let params = SketchParams { threads: 3, ..SketchParams::default() };
        let whole = Sketch::of(&plan, &table, params, &()).unwrap();
        let mut kept = Run::new(plan);
        let mut times = 0;
        loop {
            // Interrupted at the third save, and resumed from it.
            let mut saves = 0;
            let mut run = Run::resume(kept.sketch.clone(), kept.done.clone());
            let ended = run.finish_saving(&table, params, &(), Duration::from_nanos(1), |run| {
                saves += 1;
                kept = run.clone();
                if saves == 3 { Err(Error::Cancelled) } else { Ok(()) }
            });
            times += 1;
            if ended.is_ok() || kept.done.len() == 3000 {
                break;
            }
        }
        assert!(times > 3);
        assert_eq!(kept.done, RowSet::new(Some(0..3000)));
        assert_eq!(kept.sketch.to_bytes(), whole.to_bytes(), "after {times} starts");
    }
}
