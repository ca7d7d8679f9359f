//! Long work beside the interpreter: the GIL is released, Ctrl-C is heard, progress is shown.

use crate::error::exception;
use crate::natural::Natural;
use nysketch::Progress;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// How often signals are looked at and progress is drawn.
const TICK: Duration = Duration::from_millis(100);
/// How long work may take to end after Ctrl-C before it is left alone, its result unwanted.
const GRACE: Duration = Duration::from_secs(2);
/// Decoders recurse into matrix algorithms; the usual 2 MB of a thread is less than a main thread has.
const STACK: usize = 16 << 20;

/// What the work and its watcher share.
#[derive(Default)]
pub struct Watch {
    rows: AtomicU64,
    cancelled: AtomicBool,
}

impl Progress for Watch {
    fn advance(&self, rows: u64) {
        self.rows.fetch_add(rows, Ordering::Relaxed);
    }

    fn cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }
}

/// How the work is called, and whether to show it.
#[derive(Clone, Copy)]
pub struct Shown {
    pub what: &'static str,
    pub verbose: bool,
    /// Rows of one reading, where that is known.
    pub rows: Option<u64>,
}

/// Work that is not shown.
pub const SILENT: Shown = Shown { what: "", verbose: false, rows: None };

/// Runs `work` on a thread of its own and waits for it without the GIL. Everything it needs is its
/// own, so that after Ctrl-C the caller need not wait for a step that cannot be interrupted.
pub fn run<T: Send + 'static>(
    py: Python<'_>,
    shown: Shown,
    work: impl FnOnce(&Watch) -> nysketch::Result<T> + Send + 'static,
) -> PyResult<T> {
    let watch = Arc::new(Watch::default());
    let (send, receive) = channel();
    let theirs = watch.clone();
    let body = move || {
        let done = catch_unwind(AssertUnwindSafe(|| work(&theirs)));
        // Nobody listens after Ctrl-C.
        drop(send.send(done));
    };
    let start = Instant::now();
    thread::Builder::new()
        .stack_size(STACK)
        .spawn(body)
        .map_err(|e| PyRuntimeError::new_err(format!("cannot start a thread: {e}")))?;
    // Not shared in truth: only a closure that runs without the GIL must be able to be sent.
    let receive = Mutex::new(receive);
    let next = |time| receive.lock().unwrap_or_else(|e| e.into_inner()).recv_timeout(time);
    let wait = |time: Duration| py.detach(|| next(time));
    loop {
        match wait(TICK) {
            Ok(Ok(done)) => {
                if shown.verbose {
                    draw(py, shown, watch.rows.load(Ordering::Relaxed), start, true)?;
                }
                return done.map_err(exception);
            }
            Ok(Err(panic)) => {
                let text = panic.downcast_ref::<&str>().map(ToString::to_string);
                let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
                let text = text.unwrap_or_else(|| "unknown".into());
                let message = format!("internal error, please report it: {text}");
                return Err(PyRuntimeError::new_err(message));
            }
            Err(RecvTimeoutError::Disconnected) => {
                return Err(PyRuntimeError::new_err("internal error: the work has vanished"));
            }
            Err(RecvTimeoutError::Timeout) => {
                let drawn = match shown.verbose {
                    true => draw(py, shown, watch.rows.load(Ordering::Relaxed), start, false),
                    false => Ok(()),
                };
                if let Err(interrupt) = drawn.and_then(|()| py.check_signals()) {
                    watch.cancelled.store(true, Ordering::Relaxed);
                    drop(wait(GRACE));
                    return Err(interrupt);
                }
            }
        }
    }
}

/// One line on `sys.stderr`, drawn over until the end.
fn draw(py: Python<'_>, shown: Shown, rows: u64, start: Instant, end: bool) -> PyResult<()> {
    let seconds = start.elapsed().as_secs_f64();
    let mut line = format!("\r{}", shown.what);
    if rows > 0 {
        let rate = rows as f64 / seconds.max(1e-3);
        line.push_str(&format!(": {} rows read, {}/s", thousands(rows), thousands(rate as u64)));
        if let (Some(all), false) = (shown.rows, end)
            && all > 0
        {
            // A plan reads the rows more than once.
            line.push_str(&format!(
                ", {:.0} % of a reading",
                100.0 * (rows % all) as f64 / all as f64
            ));
        }
    }
    line.push_str(&format!(", {seconds:.1} s   {}", if end { "\n" } else { "" }));
    let stderr = py.import("sys")?.getattr("stderr")?;
    if !stderr.is_none() {
        stderr.call_method1("write", (line,))?;
        stderr.call_method0("flush")?;
    }
    Ok(())
}

/// `12345678` as `12,345,678`.
pub fn thousands(n: u64) -> String {
    let digits = n.to_string();
    let groups: Vec<&str> = digits
        .as_bytes()
        .rchunks(3)
        .rev()
        .map(|g| std::str::from_utf8(g).unwrap_or_default())
        .collect();
    groups.join(",")
}

/// The number of threads that was asked for, or one a core.
pub fn threads(asked: Option<Natural>) -> usize {
    asked
        .map(Natural::size)
        .unwrap_or_else(|| thread::available_parallelism().map_or(1, usize::from))
        .max(1)
}
