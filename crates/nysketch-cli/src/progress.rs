//! Progress bars on a terminal only, and the clean end of a pass on Ctrl-C and SIGTERM.

use crate::output::{error, thousands};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use nysketch::Progress;
use nysketch_tables::{Dataset, Meter};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex, OnceLock};
use std::time::{Duration, Instant};

/// The signal that asks the work to end, or 0.
static SIGNAL: LazyLock<Arc<AtomicUsize>> = LazyLock::new(Arc::default);
/// Whether the work has noticed the signal.
static NOTICED: AtomicBool = AtomicBool::new(false);
/// The message if an interruption keeps some results.
static KEPT: OnceLock<&str> = OnceLock::new();
/// Time for the work to notice a signal before the process ends; work that waits for stdin notices
/// none.
const GRACE: Duration = Duration::from_secs(2);

/// Makes Ctrl-C and SIGTERM stop the pass at the next block, without partial output. A second
/// signal, or work that does not notice the first within the grace period, ends the process at
/// once. If
/// possible the process ends by the signal itself, so that a shell loop that runs it also ends;
/// otherwise it exits with 128 plus the number of the signal.
pub fn stop_on_signals() {
    let again = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        // If no handler can be installed, the signal ends the program at once. Files are still
        // renamed only when complete.
        let _ = if dies_of_signals() {
            flag::register_conditional_default(signal, again.clone())
        } else {
            flag::register_conditional_shutdown(signal, 128 + signal, again.clone())
        };
        let _ = flag::register(signal, again.clone());
        let _ = flag::register_usize(signal, SIGNAL.clone(), signal as usize);
    }
    // Without this thread, signals are noticed only at the next block of rows.
    let _ = std::thread::Builder::new().spawn(|| {
        loop {
            std::thread::sleep(Duration::from_millis(50));
            let Some(code) = interrupted() else { continue };
            std::thread::sleep(GRACE);
            // Work that has noticed is ending and may be saving its results.
            if NOTICED.load(Ordering::Relaxed) {
                continue;
            }
            let cancelled = nysketch::Error::Cancelled.to_string();
            let message = KEPT.get().map_or(cancelled, |kept| kept.to_string());
            error(&message);
            end_by_signal();
            std::process::exit(code.into());
        }
    });
}

/// Ends the running command at the next block of rows, in the same way as Ctrl-C.
pub fn interrupt() {
    SIGNAL.store(SIGINT as usize, Ordering::Relaxed);
}

/// Returns whether signals end the process. They do not end the first process of a container, and
/// some systems have none.
fn dies_of_signals() -> bool {
    cfg!(unix) && std::process::id() != 1
}

/// Ends the process by the signal that was received, if any, as shells expect.
pub fn end_by_signal() {
    let signal = SIGNAL.load(Ordering::Relaxed) as i32;
    if signal != 0 && dies_of_signals() {
        let _ = signal_hook::low_level::emulate_default_handler(signal);
    }
}

/// Clears an earlier interruption.
pub fn resume() {
    SIGNAL.store(0, Ordering::Relaxed);
    NOTICED.store(false, Ordering::Relaxed);
}

/// Sets the message for Ctrl-C during work that keeps completed results.
pub fn on_interrupt(message: &'static str) {
    KEPT.get_or_init(|| message);
}

/// Returns the exit code for the signal that was received, if any.
pub fn interrupted() -> Option<u8> {
    match SIGNAL.load(Ordering::Relaxed) {
        0 => None,
        signal => u8::try_from(128 + signal).ok(),
    }
}

/// Makes a bar on a terminal, and a hidden one otherwise.
fn on_terminal(length: Option<u64>, template: &str, quiet: bool) -> ProgressBar {
    if quiet || !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::with_draw_target(length, ProgressDrawTarget::stderr_with_hz(8));
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar
}

/// Progress over a number of fits: a bar on a terminal, otherwise an occasional line.
pub struct Fits {
    bar: ProgressBar,
    /// Fits done, work done, and the tenths of the work already reported.
    done: Mutex<(usize, f64, u32)>,
    fits: usize,
    work: f64,
    start: Instant,
    quiet: bool,
}

/// Resolution of the bar.
const STEPS: f64 = 10_000.0;

impl Fits {
    /// Starts the progress of this many fits and this much total work, in any unit.
    pub fn new(fits: usize, work: f64, quiet: bool) -> Self {
        let bar = on_terminal(Some(STEPS as u64), "{wide_bar} {msg}  {eta} left", quiet);
        Fits { bar, done: Mutex::new((0, 0.0, 0)), fits, work, start: Instant::now(), quiet }
    }

    /// Adds one fit and its work.
    pub fn advance(&self, work: f64) {
        let mut done = self.done.lock().unwrap_or_else(|e| e.into_inner());
        done.0 += 1;
        done.1 += work;
        let share = done.1 / self.work;
        let text = format!("{} of {} fits", thousands(done.0 as u64), thousands(self.fits as u64));
        if !self.bar.is_hidden() {
            self.bar.set_message(text);
            self.bar.set_position((STEPS * share) as u64);
        } else if !self.quiet && (10.0 * share) as u32 > done.2 && done.0 < self.fits {
            done.2 = (10.0 * share) as u32;
            let left = self.start.elapsed().as_secs_f64() * (1.0 / share - 1.0);
            // A closed stderr does not stop the command.
            drop(writeln!(std::io::stderr(), "{text}, about {:.0} s left", left));
        }
    }
}

impl Drop for Fits {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// A bar on stderr: rows, rows per second, and the share of the input that was read.
pub struct Bar {
    bar: ProgressBar,
    meter: Option<Arc<Meter>>,
    /// The pass that the bar shows, its start, and its rows.
    reading: Mutex<(u64, Instant, u64)>,
}

impl Bar {
    /// Makes a bar for work that reads an input.
    pub fn reading(what: &str, input: &Dataset, quiet: bool) -> Self {
        Self::new(what, input.bytes(), Some(input.meter().clone()), quiet)
    }

    /// Makes a bar for work that produces this many rows.
    pub fn making(what: &str, rows: u64, quiet: bool) -> Self {
        Self::new(what, Some(rows), None, quiet)
    }

    fn new(what: &str, length: Option<u64>, meter: Option<Arc<Meter>>, quiet: bool) -> Self {
        let reading = Mutex::new((0, Instant::now(), 0));
        let template = match (length, &meter) {
            (Some(_), Some(_)) => "{prefix:10} {wide_bar} {bytes}/{total_bytes}  {msg}  {eta} left",
            (Some(_), None) => "{prefix:10} {wide_bar} {msg}  {eta} left",
            (None, _) => "{prefix:10} {spinner} {bytes}  {msg}  {elapsed}",
        };
        let bar = on_terminal(length, template, quiet);
        bar.set_prefix(what.to_string());
        Bar { bar, meter, reading }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

impl Progress for Bar {
    fn advance(&self, rows: u64) {
        if self.bar.is_hidden() {
            return;
        }
        let (bytes, number) = self.meter.as_ref().map_or((0, 0), |m| (m.bytes(), m.readings()));
        let mut reading = self.reading.lock().unwrap_or_else(|e| e.into_inner());
        if reading.0 != number {
            *reading = (number, Instant::now(), 0);
            self.bar.reset();
        }
        reading.2 += rows;
        let rate = reading.2 as f64 / reading.1.elapsed().as_secs_f64().max(1e-3);
        let rows = thousands(reading.2);
        self.bar.set_message(format!("{rows} rows  {}/s", thousands(rate as u64)));
        self.bar.set_position(if self.meter.is_some() { bytes } else { reading.2 });
    }

    fn cancelled(&self) -> bool {
        let cancelled = interrupted().is_some();
        NOTICED.fetch_or(cancelled, Ordering::Relaxed);
        cancelled
    }
}
