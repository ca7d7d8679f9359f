//! Runs long work outside the interpreter: the GIL is released, Ctrl-C is handled, progress is
//! shown.

use crate::error::exception;
use crate::natural::Natural;
use nysketch::Progress;
use pyo3::exceptions::PyRuntimeError;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// Interval at which signals are checked and progress is drawn.
const TICK: Duration = Duration::from_millis(100);
/// Time for work to end after Ctrl-C, before it is abandoned and its result is discarded.
const GRACE: Duration = Duration::from_secs(2);
/// The same when the interpreter ends.
const LAST_GRACE: Duration = Duration::from_secs(5);
/// More threads have no benefit, and an operating system may refuse them.
const MOST_THREADS: usize = 256;
/// Decoders use recursive matrix algorithms, and the default stack of a thread, 2 MB, is smaller
/// than that of a main thread.
const STACK: usize = 16 << 20;

/// State shared by the work and its watcher.
#[derive(Default)]
pub struct Watch {
    rows: AtomicU64,
    /// The current stage between readings.
    stage: Mutex<Option<&'static str>>,
    cancelled: AtomicBool,
}

impl Progress for Watch {
    fn advance(&self, rows: u64) {
        self.rows.fetch_add(rows, Ordering::Relaxed);
        *self.stage.lock().unwrap_or_else(|e| e.into_inner()) = None;
    }

    fn stage(&self, what: &'static str) {
        *self.stage.lock().unwrap_or_else(|e| e.into_inner()) = Some(what);
    }

    fn cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }
}

/// Name of the work, and whether to show its progress.
#[derive(Clone, Copy)]
pub struct Shown {
    pub what: &'static str,
    pub verbose: bool,
    /// Number of rows of one reading, if known.
    pub rows: Option<u64>,
}

/// Work that is not shown.
pub const SILENT: Shown = Shown { what: "", verbose: false, rows: None };

/// Runs `work` and shows its progress.
pub fn run<T: Send + 'static>(
    py: Python<'_>,
    shown: Shown,
    work: impl FnOnce(&Watch) -> nysketch::Result<T> + Send + 'static,
) -> PyResult<T> {
    let watch = Arc::new(Watch::default());
    let (theirs, start) = (watch.clone(), Instant::now());
    let done = run_beside(
        py,
        move || work(&theirs),
        || draw(py, shown, &watch, start, false),
        || watch.cancelled.store(true, Ordering::Relaxed),
    )?;
    draw(py, shown, &watch, start, true)?;
    done.map_err(exception)
}

/// Runs `work` on its own thread and waits without the GIL. The work owns all its data. After
/// Ctrl-C, or an error of `each_tick`, the caller therefore need not wait for a step that cannot be
/// interrupted: it calls `cancel` and waits only briefly.
pub fn run_beside<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce() -> T + Send + 'static,
    each_tick: impl Fn() -> PyResult<()>,
    cancel: impl FnOnce(),
) -> PyResult<T> {
    let (send, receive) = channel();
    let (ended, has_ended) = channel();
    let body = move || {
        let done = catch_unwind(AssertUnwindSafe(work));
        // After Ctrl-C there is no receiver.
        drop(send.send(done));
        drop(ended);
    };
    thread::Builder::new()
        .stack_size(STACK)
        .spawn(body)
        .map_err(|e| PyRuntimeError::new_err(format!("cannot start a thread: {e}")))?;
    // The receiver is not really shared, but a closure that runs without the GIL must be `Send`.
    let receive = Mutex::new(receive);
    let next = |time| receive.lock().unwrap_or_else(|e| e.into_inner()).recv_timeout(time);
    let wait = |time: Duration| py.detach(|| next(time));
    loop {
        match wait(TICK) {
            Ok(Ok(done)) => return Ok(done),
            Ok(Err(panic)) => return Err(panicked(&*panic)),
            Err(RecvTimeoutError::Disconnected) => {
                return Err(PyRuntimeError::new_err("internal error: the work has vanished"));
            }
            Err(RecvTimeoutError::Timeout) => {
                if let Err(interrupt) = each_tick().and_then(|()| py.check_signals()) {
                    cancel();
                    if let Err(RecvTimeoutError::Timeout) = wait(GRACE) {
                        LEFT.lock().unwrap_or_else(|e| e.into_inner()).push(has_ended);
                    }
                    return Err(interrupt);
                }
            }
        }
    }
}

/// Returns the exception for a panic.
fn panicked(panic: &(dyn Any + Send)) -> PyErr {
    let text = panic.downcast_ref::<&str>().map(ToString::to_string);
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    let text = text.unwrap_or_else(|| "unknown".into());
    PyRuntimeError::new_err(format!("internal error, please report it: {text}"))
}

/// Draws a progress line with `nysketch/_progress.py`.
fn draw(py: Python<'_>, shown: Shown, watch: &Watch, start: Instant, end: bool) -> PyResult<()> {
    if !shown.verbose {
        return Ok(());
    }
    let rows = watch.rows.load(Ordering::Relaxed);
    let stage = *watch.stage.lock().unwrap_or_else(|e| e.into_inner());
    let line = (shown.what, stage, rows, shown.rows, start.elapsed().as_secs_f64(), end);
    py.import("nysketch._progress")?.call_method1("draw", line)?;
    Ok(())
}

/// Work that was abandoned after Ctrl-C.
static LEFT: Mutex<Vec<Receiver<()>>> = Mutex::new(Vec::new());

/// Set the limit on work and memory to this multiple of the default (2·10¹² operations, 2 GB), in
/// this process.
#[pyfunction]
pub fn set_max_work(factor: f64) -> PyResult<()> {
    if !(factor > 0.0 && factor.is_finite()) {
        return Err(PyValueError::new_err(format!(
            "factor must be a number above 0, got {factor}"
        )));
    }
    nysketch::work::allow(factor);
    Ok(())
}

/// Waits for abandoned work before the interpreter ends: it may be about to ask for the next batch
/// of a stream, and therefore for the interpreter.
#[pyfunction]
pub fn _join_left_work(py: Python<'_>) {
    let left = std::mem::take(&mut *LEFT.lock().unwrap_or_else(|e| e.into_inner()));
    let end = Instant::now() + LAST_GRACE;
    let left = Mutex::new(left);
    py.detach(|| {
        for work in left.into_inner().unwrap_or_else(|e| e.into_inner()) {
            // Whether it ended or was given up, there is no reason to wait longer.
            let _ = work.recv_timeout(end.saturating_duration_since(Instant::now()));
        }
    });
}

/// Returns the requested number of threads, or one per core.
pub fn threads(asked: Option<Natural>) -> usize {
    asked
        .map(Natural::size)
        .unwrap_or_else(|| thread::available_parallelism().map_or(1, usize::from))
        .clamp(1, MOST_THREADS)
}
