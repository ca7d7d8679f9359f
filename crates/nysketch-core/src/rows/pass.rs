//! Reads a source once, on several threads or in order.

use super::set::RowSet;
use super::{Block, Progress, RowPart, RowSource, RowStream};
use crate::error::{Error, Result};
use crate::numeric::parallel::on_threads;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};

/// Reads `source` once on `threads` threads.
///
/// Each thread owns a state made by `init` and calls `visit` with the state and each block. Returns
/// the states, in no particular order. On failure, returns the error of the earliest part, so the
/// message does not depend on the number of threads.
///
/// ```
/// use nysketch_core::{Table, rows::pass};
/// # fn main() -> nysketch_core::Result<()> {
/// let table = Table::unnamed(1, (1..=1000).map(f64::from).collect())?;
/// let sums = pass(&table, 4, &(), || 0.0, |sum, block| {
///     *sum += block.values.iter().sum::<f64>();
///     Ok(())
/// })?;
/// assert_eq!(sums.iter().sum::<f64>(), 500_500.0);
/// # Ok(())
/// # }
/// ```
pub fn pass<S: Send>(
    source: &dyn RowSource,
    threads: usize,
    progress: &dyn Progress,
    init: impl Fn() -> S + Sync,
    visit: impl Fn(&mut S, &Block) -> Result<()> + Sync,
) -> Result<Vec<S>> {
    let mut stream = source.open(&RowSet::default())?;
    let stretch = read_on(&mut *stream, threads, progress, &|| false, init, visit)?;
    Ok(stretch.states)
}

/// Result of one stretch of a pass, from its start to a pause or the end.
pub(crate) struct Stretch<S> {
    /// One state per thread.
    pub states: Vec<S>,
    /// Positions of the rows that were visited.
    pub rows: RowSet,
    /// Whether the stream has ended.
    pub finished: bool,
}

/// Reads until the stream ends or `pause` returns `true`. Parts already taken are completed.
pub(crate) fn read_on<'a, S: Send>(
    stream: &mut (dyn RowStream<'a> + 'a),
    threads: usize,
    progress: &dyn Progress,
    pause: &(dyn Fn() -> bool + Sync),
    init: impl Fn() -> S + Sync,
    visit: impl Fn(&mut S, &Block) -> Result<()> + Sync,
) -> Result<Stretch<S>> {
    let queue = Queue {
        stream: Mutex::new(stream),
        progress,
        pause,
        begun: AtomicBool::new(false),
        finished: AtomicBool::new(false),
        limit: AtomicU64::new(u64::MAX),
        first_error: Mutex::new(None),
    };
    let results = on_threads(threads, || queue.visit_all(init(), &visit));
    if let Some((_, error)) = queue.first_error.into_inner().unwrap_or_else(|e| e.into_inner()) {
        return Err(error);
    }
    let (states, sets): (Vec<S>, Vec<RowSet>) = results.into_iter().unzip();
    Ok(Stretch {
        states,
        rows: RowSet::new(sets.into_iter().flat_map(RowSet::into_ranges)),
        finished: queue.finished.into_inner(),
    })
}

/// Reads `source` once on this thread, block by block, in the order of the rows.
pub fn read_in_order(
    source: &dyn RowSource,
    progress: &dyn Progress,
    mut visit: impl FnMut(&Block) -> Result<()>,
) -> Result<()> {
    let mut stream = source.open(&RowSet::default())?;
    while let Some(part) = stream.next_part() {
        let block = part.decode()?;
        if progress.cancelled() {
            return Err(Error::Cancelled);
        }
        if let Some(block) = block {
            visit(&block)?;
            progress.advance(block.len() as u64);
        }
    }
    Ok(())
}

/// The remaining parts. The lock is held while a part is handed out, not while it is decoded.
struct Queue<'q, 'a> {
    stream: Mutex<&'q mut (dyn RowStream<'a> + 'a)>,
    progress: &'q dyn Progress,
    pause: &'q (dyn Fn() -> bool + Sync),
    begun: AtomicBool,
    finished: AtomicBool,
    /// Position of the earliest error. Rows before it are still read, because one of them may fail
    /// too.
    limit: AtomicU64,
    first_error: Mutex<Option<(u64, Error)>>,
}

impl<'a> Queue<'_, 'a> {
    /// Takes parts until none is left, and visits their rows. Returns the state and the positions
    /// of the rows.
    fn visit_all<S>(
        &self,
        mut state: S,
        visit: &impl Fn(&mut S, &Block) -> Result<()>,
    ) -> (S, RowSet) {
        let mut rows = RowSet::default();
        while let Some(part) = self.take() {
            let position = part.position();
            match self.visit_part(part, &mut state, visit) {
                Ok(Some(visited)) => rows.insert(visited),
                Ok(None) => {}
                Err(Error::Cancelled) => self.fail(0, Error::Cancelled),
                Err(error) => self.fail(position, error),
            }
        }
        (state, rows)
    }

    /// Decodes a part and visits its rows. Returns their positions, if there are any rows.
    fn visit_part<S>(
        &self,
        part: Box<dyn RowPart + 'a>,
        state: &mut S,
        visit: &impl Fn(&mut S, &Block) -> Result<()>,
    ) -> Result<Option<Range<u64>>> {
        let Some(block) = part.decode()? else { return Ok(None) };
        visit(state, &block)?;
        self.progress.advance(block.len() as u64);
        Ok(Some(block.position..block.position + block.len() as u64))
    }

    fn take(&self) -> Option<Box<dyn RowPart + 'a>> {
        let mut stream: MutexGuard<'_, _> = self.stream.lock().unwrap_or_else(|e| e.into_inner());
        while !self.finished.load(Ordering::Relaxed) && !self.should_pause() {
            if self.progress.cancelled() {
                self.fail(0, Error::Cancelled);
                self.end();
                break;
            }
            match stream.next_part() {
                Some(part) if part.position() < self.limit.load(Ordering::Relaxed) => {
                    self.begun.store(true, Ordering::Relaxed);
                    return Some(part);
                }
                Some(_) if stream.in_order() => self.end(),
                Some(_) => {}
                None => self.end(),
            }
        }
        None
    }

    /// Whether the stretch ends here. A stretch takes at least one part; otherwise a run that
    /// always pauses would never make progress.
    fn should_pause(&self) -> bool {
        self.begun.load(Ordering::Relaxed) && (self.pause)()
    }

    /// Records that no further part is taken.
    fn end(&self) {
        self.finished.store(true, Ordering::Relaxed);
    }

    fn fail(&self, position: u64, error: Error) {
        self.limit.fetch_min(position, Ordering::Relaxed);
        let mut first = self.first_error.lock().unwrap_or_else(|e| e.into_inner());
        if first.as_ref().is_none_or(|(earliest, _)| position < *earliest) {
            *first = Some((position, error));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::Table;

    /// Every row has its own error. The error of the first row is reported, whichever thread fails
    /// first.
    #[test]
    fn the_earliest_error_is_reported() {
        let table = Table::unnamed(1, vec![f64::NAN; 5000]).unwrap().with_part_rows(3);
        for threads in 1..5 {
            let error = pass(
                &table,
                threads,
                &(),
                || (),
                |_, block| Err(Error::source(block.position.to_string())),
            );
            let error = error.unwrap_err();
            assert_eq!(error.to_string(), "0");
        }
    }

    #[test]
    fn stretches_cover_every_row_once() {
        let table = Table::unnamed(1, (0..1000).map(f64::from).collect()).unwrap();
        let table = table.with_part_rows(7);
        let (mut done, mut total, mut stretches) = (RowSet::default(), 0.0, 0);
        loop {
            // As after a crash: a new stream that skips the rows that are done.
            let mut stream = table.open(&done).unwrap();
            let parts = AtomicU64::new(0);
            let stretch = read_on(
                &mut *stream,
                3,
                &(),
                &|| parts.fetch_add(1, Ordering::Relaxed) > 20,
                || 0.0,
                |sum, block| {
                    *sum += block.values.iter().sum::<f64>();
                    Ok(())
                },
            );
            let stretch = stretch.unwrap();
            total += stretch.states.iter().sum::<f64>();
            stretch.rows.ranges().iter().for_each(|r| done.insert(r.clone()));
            stretches += 1;
            if stretch.finished {
                break;
            }
        }
        assert!(stretches > 3);
        assert_eq!((total, done), (499_500.0, RowSet::new(Some(0..1000))));
    }
}
