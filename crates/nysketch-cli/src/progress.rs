//! Progress on a terminal, silence elsewhere; Ctrl-C and SIGTERM stop a pass cleanly.

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

/// The signal that asks the work to end; 0 for none.
static SIGNAL: LazyLock<Arc<AtomicUsize>> = LazyLock::new(Arc::default);
/// Whether the work has noticed it.
static NOTICED: AtomicBool = AtomicBool::new(false);
/// The message if an interruption does not lose everything.
static KEPT: OnceLock<&str> = OnceLock::new();
/// How long work has to notice a signal, such as when it waits for stdin, before the process ends.
const GRACE: Duration = Duration::from_secs(2);

/// From now on Ctrl-C and SIGTERM stop the pass at the next block, with nothing half-written; a second
/// signal, or work that does not notice within [`GRACE`], ends the process at once. It dies of the signal where it can, so
/// that a shell that runs it in a loop ends the loop, and else ends with 128 and the number of the signal.
pub fn stop_on_signals() {
    let again = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        // Where no handler can be installed the signal ends the program at once; files are still renamed
        // only when whole.
        let _ = match dies_of_signals() {
            true => flag::register_conditional_default(signal, again.clone()),
            false => flag::register_conditional_shutdown(signal, 128 + signal, again.clone()),
        };
        let _ = flag::register(signal, again.clone());
        let _ = flag::register_usize(signal, SIGNAL.clone(), signal as usize);
    }
    // Without this thread, signals are noticed at the next block of rows only.
    let _ = std::thread::Builder::new().spawn(|| {
        loop {
            std::thread::sleep(Duration::from_millis(50));
            let Some(code) = interrupted() else { continue };
            std::thread::sleep(GRACE);
            // What has noticed is on its way out, saving what it keeps.
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

/// Ends the command that runs at the next block of rows, as Ctrl-C does.
pub fn interrupt() {
    SIGNAL.store(SIGINT as usize, Ordering::Relaxed);
}

/// Whether signals end the process: not the first one of a container, to which they do nothing, nor where there are none.
fn dies_of_signals() -> bool {
    cfg!(unix) && std::process::id() != 1
}

/// Ends the process by the signal that asks the work to end, if there was one, as shells expect it.
pub fn end_by_signal() {
    let signal = SIGNAL.load(Ordering::Relaxed) as i32;
    if signal != 0 && dies_of_signals() {
        let _ = signal_hook::low_level::emulate_default_handler(signal);
    }
}

/// Forgets an earlier interruption.
pub fn resume() {
    SIGNAL.store(0, Ordering::Relaxed);
    NOTICED.store(false, Ordering::Relaxed);
}

/// Sets the message for Ctrl-C during work that keeps what is done.
pub fn on_interrupt(message: &'static str) {
    KEPT.get_or_init(|| message);
}

/// The exit code of the signal that asks the work to end, if there was one.
pub fn interrupted() -> Option<u8> {
    match SIGNAL.load(Ordering::Relaxed) {
        0 => None,
        signal => u8::try_from(128 + signal).ok(),
    }
}

/// A bar on a terminal; hidden elsewhere.
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

/// Progress over a number of fits: a bar on a terminal, else a line now and then.
pub struct Fits {
    bar: ProgressBar,
    /// Fits done, work done, and the tenths of it already reported.
    done: Mutex<(usize, f64, u32)>,
    fits: usize,
    work: f64,
    start: Instant,
    quiet: bool,
}

/// Steps of the bar.
const STEPS: f64 = 10_000.0;

impl Fits {
    /// For this many fits and this much work in total, in any unit.
    pub fn new(fits: usize, work: f64, quiet: bool) -> Self {
        let bar = on_terminal(Some(STEPS as u64), "{wide_bar} {msg}  {eta} left", quiet);
        Fits { bar, done: Mutex::new((0, 0.0, 0)), fits, work, start: Instant::now(), quiet }
    }

    /// Counts one more fit and its work.
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
            // A closed stderr is no reason to stop.
            drop(writeln!(std::io::stderr(), "{text}, about {:.0} s left", left));
        }
    }
}

impl Drop for Fits {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// A bar on stderr: rows, rows per second, and how much of the input has been read.
pub struct Bar {
    bar: ProgressBar,
    meter: Option<Arc<Meter>>,
    /// The pass that the bar shows, when it began, and its rows.
    reading: Mutex<(u64, Instant, u64)>,
}

impl Bar {
    /// For work on an input.
    pub fn reading(what: &str, input: &Dataset, quiet: bool) -> Self {
        Self::new(what, input.bytes(), Some(input.meter().clone()), quiet)
    }

    /// For work that makes this many rows.
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
