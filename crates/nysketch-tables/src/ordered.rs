//! Processes the rows on all threads and returns the results in row order.
//!
//! A thread takes the next part of the table, decodes it and processes it. The result waits until
//! all earlier results are available. Any free thread then takes the results in order. Taking a
//! result may create *jobs*, such as encoding a row group. Threads do waiting jobs before they read
//! more rows.

use crate::batch::Batch;
use crate::dataset::Dataset;
use crate::error::Result;
use crate::tracks::{DatasetPart, DatasetStream};
use crate::write::{Appender, Encoded, Group, TableWriter};
use arrow_array::RecordBatch;
use nysketch_core::{Progress, RowPart};
use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::sync::{Condvar, Mutex, MutexGuard};

impl Dataset {
    /// Calls `work` with every batch, on all threads, and `take` with the results, in row order.
    ///
    /// At most a few results per thread wait in memory. If several rows fail, the error of the
    /// earliest one is returned, whatever the number of threads.
    ///
    /// ```
    /// use nysketch_tables::{Dataset, ReadOptions};
    ///
    /// let folder = tempfile::tempdir()?;
    /// let file = folder.path().join("x.csv");
    /// std::fs::write(&file, "x,y\n1,2\n3,4\n")?;
    /// let table = Dataset::open([file], &ReadOptions::default())?;
    /// let mut sums = Vec::new();
    /// let work = |batch: nysketch_tables::Batch| {
    ///     Ok(batch.block.rows().map(|(_, row, _)| row.iter().sum::<f64>()).collect::<Vec<_>>())
    /// };
    /// table.map_in_order(2, &(), work, |some| Ok(sums.extend(some)))?;
    /// assert_eq!(sums, [3.0, 7.0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn map_in_order<T: Send>(
        &self,
        threads: usize,
        progress: &dyn Progress,
        work: impl Fn(Batch) -> nysketch_core::Result<T> + Sync,
        mut take: impl FnMut(T) -> nysketch_core::Result<()> + Send,
    ) -> nysketch_core::Result<()> {
        let take = |value| take(value).map(|()| Vec::<Infallible>::new());
        self.run(threads, progress, work, take, |_, job| match job {})
    }

    /// Calls `work` with every batch, on all threads, and writes the results in row order.
    ///
    /// All threads encode rows, and one at a time appends them. The bytes do not depend on the
    /// number of threads. The writer stays open for more rows. Returns the number of rows written.
    ///
    /// ```
    /// use arrow_array::{Float64Array, RecordBatch};
    /// use arrow_schema::{DataType, Field, Schema};
    /// use nysketch_tables::{Batch, Dataset, Error, OutputFormat, ReadOptions, TableWriter};
    /// use std::sync::Arc;
    ///
    /// let folder = tempfile::tempdir()?;
    /// let (x, y) = (folder.path().join("x.csv"), folder.path().join("y.csv"));
    /// std::fs::write(&x, "x\n1\n2.5\n")?;
    /// let table = Dataset::open([x], &ReadOptions::default())?;
    /// let schema = Arc::new(Schema::new(vec![Field::new("twice", DataType::Float64, false)]));
    /// let twice = |batch: Batch| {
    ///     let values = batch.block.values.iter().map(|x| 2.0 * x);
    ///     let column = Arc::new(Float64Array::from_iter_values(values));
    ///     RecordBatch::try_new(schema.clone(), vec![column]).map_err(nysketch_core::Error::source)
    /// };
    /// nysketch_core::format::file::write(&y, |out| -> Result<(), Box<dyn std::error::Error>> {
    ///     let mut writer = TableWriter::new(OutputFormat::of(&y)?, &schema, out)?;
    ///     table.map_to_table(2, &(), twice, &mut writer)?;
    ///     Ok(writer.finish()?)
    /// })?;
    /// assert_eq!(std::fs::read_to_string(y)?, "twice\n2.0\n5.0\n");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn map_to_table(
        &self,
        threads: usize,
        progress: &dyn Progress,
        work: impl Fn(Batch) -> nysketch_core::Result<RecordBatch> + Sync,
        writer: &mut TableWriter<'_>,
    ) -> Result<u64> {
        let TableWriter { gather, encoder, out } = writer;
        let mut rows = 0;
        let take = |batch: RecordBatch| {
            rows += batch.num_rows() as u64;
            gather.push(batch)
        };
        let append = Mutex::new(Append { out, next: 0, waiting: BTreeMap::new() });
        let write = |number: u64, group: Group| {
            let encoded = encoder.encode(group)?;
            locked(&append).put(number, encoded)
        };
        self.run(threads, progress, work, take, write)?;
        Ok(rows)
    }

    /// Implements both functions. `job` receives the number of a job and returns how many jobs are
    /// done without a gap.
    fn run<T: Send, J: Send, E: From<nysketch_core::Error> + Send>(
        &self,
        threads: usize,
        progress: &dyn Progress,
        work: impl Fn(Batch) -> nysketch_core::Result<T> + Sync,
        take: impl FnMut(T) -> Result<Vec<J>, E> + Send,
        job: impl Fn(u64, J) -> Result<u64, E> + Sync,
    ) -> Result<(), E> {
        let threads = threads.max(1);
        let stream = Mutex::new(self.batches());
        let line = Line { state: Mutex::new(State::new(take)), moved: Condvar::new(), threads };
        let next_part = || DatasetStream::next(&mut locked(&stream));
        let read = |part: DatasetPart<'_>| {
            let Some(batch) = part.decode_batch()? else { return Ok(None) };
            if progress.cancelled() {
                return Err(nysketch_core::Error::Cancelled);
            }
            let (start, rows) = (batch.block.position, batch.block.len() as u64);
            Ok(Some((start, start + rows, work(batch)?)))
        };
        let run = || {
            let _guard =
                OnPanic(|| line.fail(0, nysketch_core::Error::source("a thread has failed")));
            while let Some(task) = line.next_task() {
                match task {
                    Task::Read => {
                        let Some(part) = next_part() else {
                            line.end();
                            continue;
                        };
                        let position = part.position();
                        match read(part) {
                            Ok(None) => {}
                            Ok(Some((start, end, value))) => line.put(start, end, value, progress),
                            Err(nysketch_core::Error::Cancelled) => {
                                line.fail(0, nysketch_core::Error::Cancelled);
                            }
                            Err(error) => line.fail(position, error),
                        }
                    }
                    Task::Job(number, position, it) => match job(number, it) {
                        Ok(done) => line.done(done),
                        Err(error) => line.fail(position, error),
                    },
                }
            }
        };
        std::thread::scope(|scope| {
            // If the system refuses further threads, the existing ones do all the work.
            let start = |_| std::thread::Builder::new().spawn_scoped(scope, run).ok();
            (1..threads).map_while(start).for_each(drop);
            run();
        });
        let state = line.state.into_inner().unwrap_or_else(|e| e.into_inner());
        state.failed.map_or(Ok(()), |(_, error)| Err(error))
    }
}

/// The next task of a thread.
enum Task<J> {
    Read,
    /// A job: its number, the position of the row that completed it, and its content.
    Job(u64, u64, J),
}

/// State shared by the threads.
struct Line<T, J, E, F> {
    state: Mutex<State<T, J, E, F>>,
    moved: Condvar,
    threads: usize,
}

struct State<T, J, E, F> {
    take: F,
    /// Position of the next row to take, and the results that wait for their turn.
    next: u64,
    waiting: BTreeMap<u64, (u64, T)>,
    /// Jobs that no thread has started.
    jobs: VecDeque<(u64, u64, J)>,
    made: u64,
    done: u64,
    /// Whether all parts were handed out.
    ended: bool,
    /// The earliest error so far, with the position of its row. Work on earlier rows continues,
    /// because it may fail, too.
    failed: Option<(u64, E)>,
}

impl<T, J, E, F: FnMut(T) -> Result<Vec<J>, E>> State<T, J, E, F> {
    fn new(take: F) -> Self {
        State {
            take,
            next: 0,
            waiting: BTreeMap::new(),
            jobs: VecDeque::new(),
            made: 0,
            done: 0,
            ended: false,
            failed: None,
        }
    }

    fn fail(&mut self, position: u64, error: E) {
        if self.is_wanted(position) {
            self.failed = Some((position, error));
        }
    }

    /// Returns whether no row at or before this position has failed.
    fn is_wanted(&self, position: u64) -> bool {
        self.failed.as_ref().is_none_or(|(first, _)| position < *first)
    }

    /// Takes all results up to the first gap or error.
    fn advance(&mut self, progress: &dyn Progress) {
        while self.is_wanted(self.next)
            && let Some((end, value)) = self.waiting.remove(&self.next)
        {
            progress.advance(end - self.next);
            match (self.take)(value) {
                Ok(jobs) => {
                    for job in jobs {
                        self.jobs.push_back((self.made, self.next, job));
                        self.made += 1;
                    }
                }
                Err(error) => self.fail(self.next, error),
            }
            self.next = end;
        }
    }
}

impl<T, J, E, F: FnMut(T) -> Result<Vec<J>, E>> Line<T, J, E, F> {
    /// Returns the next task, or `None` at the end. Waits while too many results are held.
    fn next_task(&self) -> Option<Task<J>> {
        let mut state = locked(&self.state);
        loop {
            if let Some((number, position, job)) = state.jobs.pop_front() {
                if state.is_wanted(position) {
                    return Some(Task::Job(number, position, job));
                }
                continue;
            }
            // Parts are handed out in order. Other threads hold the parts before the error; they
            // take the results of those parts and do the resulting jobs.
            if state.failed.is_some() {
                return None;
            }
            if state.made - state.done < 2 * self.threads as u64 && !state.ended {
                return Some(Task::Read);
            }
            if state.ended && state.waiting.is_empty() {
                return None;
            }
            state = self.moved.wait(state).unwrap_or_else(|e| e.into_inner());
        }
    }

    /// Adds a result. Waits if too many are held, unless this result is the next one.
    fn put(&self, start: u64, end: u64, value: T, progress: &dyn Progress) {
        let full = |s: &mut State<T, J, E, F>| {
            s.failed.is_none() && start != s.next && s.waiting.len() >= 2 * self.threads
        };
        let state = self.moved.wait_while(locked(&self.state), full);
        let mut state = state.unwrap_or_else(|e| e.into_inner());
        state.waiting.insert(start, (end, value));
        state.advance(progress);
        self.moved.notify_all();
    }

    fn done(&self, done: u64) {
        let mut state = locked(&self.state);
        state.done = state.done.max(done);
        self.moved.notify_all();
    }

    fn end(&self) {
        locked(&self.state).ended = true;
        self.moved.notify_all();
    }

    fn fail(&self, position: u64, error: impl Into<E>) {
        locked(&self.state).fail(position, error.into());
        self.moved.notify_all();
    }
}

/// Encoded groups that wait to be appended in order.
struct Append<'w, 'a> {
    out: &'w mut Appender<'a>,
    next: u64,
    waiting: BTreeMap<u64, Encoded>,
}

impl Append<'_, '_> {
    /// Appends all groups up to the first gap, and returns how many were appended in total.
    fn put(&mut self, number: u64, encoded: Encoded) -> Result<u64> {
        self.waiting.insert(number, encoded);
        while let Some(encoded) = self.waiting.remove(&self.next) {
            self.out.append(encoded)?;
            self.next += 1;
        }
        Ok(self.next)
    }
}

/// Runs a function when a thread panics, so that no other thread waits for its results.
struct OnPanic<F: Fn()>(F);

impl<F: Fn()> Drop for OnPanic<F> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            (self.0)();
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|e| e.into_inner())
}
