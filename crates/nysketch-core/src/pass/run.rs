//! One pass over a source, which can be interrupted and taken up again.

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

/// How to run the pass. None of it changes the sketch.
///
/// ```
/// let params = nysketch_core::SketchParams::default().threads(4);
/// assert_eq!(params.threads, 4);
/// ```
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct SketchParams {
    /// Threads to use.
    pub threads: usize,
    /// What to do with invalid rows.
    pub invalid: Invalid,
    /// What brings the rows into the sums.
    pub engine: EngineKind,
}

impl Default for SketchParams {
    fn default() -> Self {
        SketchParams { threads: 1, invalid: Invalid::Refuse, engine: EngineKind::default() }
    }
}

impl SketchParams {
    /// On so many threads.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads;
        self
    }

    /// With invalid rows treated in this way.
    #[must_use]
    pub fn invalid(mut self, invalid: Invalid) -> Self {
        self.invalid = invalid;
        self
    }

    /// With this engine.
    #[must_use]
    pub fn engine(mut self, engine: EngineKind) -> Self {
        self.engine = engine;
        self
    }
}

impl Sketch {
    /// Reads the source once and sketches it.
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

    /// Reads the source once and sketches it, with the sums of folds. Where rows are dealt by a key, the blocks of the
    /// source carry it.
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

/// A sketch in the making and the rows that are in it. Sums are exact, so a run that is taken up
/// again ends with the bytes of one that never stopped.
///
/// ```
/// use nysketch_core::{Error, PlanParams, Run, Sketch, SketchParams, Table, plan_for};
/// use std::sync::Arc;
/// use std::time::Duration;
/// # fn main() -> nysketch_core::Result<()> {
/// let table = Table::unnamed(1, (0..5000).map(f64::from).collect())?.with_part_rows(100);
/// let plan = Arc::new(plan_for(&table, PlanParams::default().landmarks(20))?.0);
/// let params = SketchParams::default();
///
/// // Saved after every part, and stopped at the third.
/// let (mut saved, mut times) = (Run::new(plan.clone()), 0);
/// let stopped = Run::new(plan.clone()).finish_saving(&table, params, &(), Duration::ZERO, |run| {
///     saved = run.clone();
///     times += 1;
///     if times == 3 { Err(Error::Cancelled) } else { Ok(()) }
/// });
/// assert!(stopped.is_err() && saved.done().len() == 300);
///
/// // Another process goes on from what was saved: a sketch and the rows in it.
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
    beyond: u64,
}

impl Run {
    /// Before the first row.
    pub fn new(plan: Arc<Plan>) -> Self {
        Run::resume(Sketch::empty(plan), RowSet::default())
    }

    /// Where an earlier run has come to; from [`Sketch::empty_folds`], a run that keeps folds.
    pub fn resume(sketch: Sketch, done: RowSet) -> Self {
        Run {
            sketch,
            done,
            losses: Losses::default(),
            rounding: Rounding::default(),
            uncounted: (0, 0),
            beyond: 0,
        }
    }

    /// With what the earlier run had skipped.
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

    /// The rows that this run has skipped, and the columns that cost them; the weight comes after the last
    /// column.
    pub fn losses(&self) -> &Losses {
        &self.losses
    }

    /// The rows in it.
    pub fn done(&self) -> &RowSet {
        &self.done
    }

    /// Where the plan protects people: rows that did not count since their person has more, and rows that say no person.
    pub fn uncounted(&self) -> (u64, u64) {
        self.uncounted
    }

    /// Where the plan is private: rows that had to be brought into its bounds.
    pub fn beyond(&self) -> u64 {
        self.beyond
    }

    /// What rounding the weights of the rows read by this run has changed.
    pub fn rounding(&self) -> Rounding {
        self.rounding
    }

    /// A remark for people where that matters.
    pub fn rounding_note(&self) -> Option<String> {
        self.sketch.plan().weighting.as_ref().and_then(|w| self.rounding.note(w))
    }

    /// Reads all rows that are left. Where the plan protects people, all rows are read twice, and their blocks carry whose
    /// they are as keys.
    pub fn finish(
        &mut self,
        source: &dyn RowSource,
        params: SketchParams,
        progress: &dyn Progress,
    ) -> Result<()> {
        self.finish_saving(source, params, progress, Duration::MAX, |_| Ok(()))
    }

    /// Reads all rows that are left and calls `save` about every so often and before it returns.
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
                // Where it can be saved, what is on the way when the user stops the run is kept.
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
            // All of them, before any counts: a GPU may fail to the last, and what is merged must be in `done`.
            let parts = stretch.states.into_iter().map(|accumulator| {
                let (losses, rounding) = (accumulator.losses().clone(), accumulator.rounding());
                Ok((losses, rounding, accumulator.beyond(), accumulator.freeze()?))
            });
            for (losses, rounding, beyond, part) in parts.collect::<Result<Vec<_>>>()? {
                self.losses.merge(&losses);
                self.rounding.merge(rounding);
                self.beyond += beyond;
                self.sketch.merge(&part)?;
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

    /// Which rows count, where the plan protects people.
    fn quota(
        &mut self,
        source: &View<'_>,
        params: SketchParams,
        progress: &dyn Progress,
    ) -> Result<Option<Quota>> {
        let plan = self.sketch.plan().clone();
        let Some(people) = plan.people() else { return Ok(None) };
        // Which of several equal rows have counted is not kept.
        if !self.done.is_empty() || self.sketch.folds().is_some() {
            let expected = "sketched whole, without folds, where their plan protects people";
            return Err(Error::parameter("rows", expected, "others"));
        }
        self.sketch.count_people(people.rows);
        Quota::new(&plan, source, params.threads, progress)
    }
}

/// Progress that does not stop a stretch.
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
        let plan = Arc::new(make_plan(&table, &params, &()).unwrap().0);
        let params = SketchParams { threads: 3, ..SketchParams::default() };
        let whole = Sketch::of(&plan, &table, params, &()).unwrap();
        let mut kept = Run::new(plan);
        let mut times = 0;
        loop {
            // Killed at the third save: what was saved last is taken up again.
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
