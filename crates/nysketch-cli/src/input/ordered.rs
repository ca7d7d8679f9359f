//! Rows in, results out in the order of the rows, worked on by every thread.

use super::lanes::InputStream;
use super::{Batch, Input};
use nysketch::{Error, Progress, Result};
use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex};

/// Results that wait for earlier ones, and who takes them.
struct Sink<T, F> {
    take: F,
    next: u64,
    waiting: BTreeMap<u64, (u64, T)>,
    failed: Option<(u64, Error)>,
}

impl<T, F> Sink<T, F> {
    fn fail(&mut self, position: u64, error: Error) {
        if self.failed.as_ref().is_none_or(|(first, _)| position < *first) {
            self.failed = Some((position, error));
        }
    }
}

/// Runs when a thread panics, so that nobody waits for its results.
struct OnPanic<F: Fn()>(F);

impl<F: Fn()> Drop for OnPanic<F> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            (self.0)();
        }
    }
}

impl Input {
    /// Calls `work` with every batch, on all threads, and `take` with the results, in order. A few
    /// results a thread wait in memory, no more.
    pub fn map_in_order<T: Send>(
        &self,
        threads: usize,
        progress: &dyn Progress,
        work: impl Fn(Batch) -> Result<T> + Sync,
        take: impl FnMut(T) -> Result<()> + Send,
    ) -> Result<()> {
        let stream = Mutex::new(self.batches());
        let (waiting, failed) = (BTreeMap::new(), None);
        let sink = Mutex::new(Sink { take, next: 0, waiting, failed });
        let moved = Condvar::new();
        let next_part = || {
            let mut stream = stream.lock().unwrap_or_else(|e| e.into_inner());
            InputStream::next(&mut stream)
        };
        let run = || {
            let _guard = OnPanic(|| {
                let mut sink = sink.lock().unwrap_or_else(|e| e.into_inner());
                sink.fail(0, Error::source("a thread has failed"));
                moved.notify_all();
            });
            while let Some(part) = next_part() {
                let position = nysketch::RowPart::position(&part);
                let result = part.decode_batch().and_then(|batch| {
                    if progress.cancelled() {
                        return Err(Error::Cancelled);
                    }
                    let Some(batch) = batch else { return Ok(None) };
                    let (start, rows) = (batch.block.position, batch.block.len() as u64);
                    Ok(Some((start, start + rows, work(batch)?)))
                });
                let mut sink = sink.lock().unwrap_or_else(|e| e.into_inner());
                match result {
                    Ok(None) => {}
                    Ok(Some((start, end, value))) => {
                        let full = |s: &mut Sink<T, _>| {
                            s.failed.is_none() && start != s.next && s.waiting.len() >= 2 * threads
                        };
                        let waited = moved.wait_while(sink, full);
                        sink = waited.unwrap_or_else(|e| e.into_inner());
                        sink.waiting.insert(start, (end, value));
                        let Sink { take, next, waiting, failed } = &mut *sink;
                        while failed.is_none()
                            && let Some((end, value)) = waiting.remove(next)
                        {
                            progress.advance(end - *next);
                            if let Err(error) = take(value) {
                                *failed = Some((*next, error));
                            }
                            *next = end;
                        }
                    }
                    Err(error) => sink.fail(position, error),
                }
                let stop = sink.failed.is_some();
                moved.notify_all();
                drop(sink);
                if stop {
                    return;
                }
            }
        };
        std::thread::scope(|scope| {
            (1..threads.max(1)).for_each(|_| drop(scope.spawn(run)));
            run();
        });
        let sink = sink.into_inner().unwrap_or_else(|e| e.into_inner());
        sink.failed.map_or(Ok(()), |(_, error)| Err(error))
    }
}
