//! Progress on a terminal, silence elsewhere; Ctrl-C stops a pass cleanly.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use nysketch::Progress;
use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// From now on Ctrl-C ends the pass at the next block, with nothing half-written; work that does not
/// look at it within two seconds, such as waiting for stdin, is ended then.
pub fn stop_on_interrupt() {
    let installed = ctrlc::set_handler(|| {
        if !INTERRUPTED.swap(true, Ordering::Relaxed) {
            std::thread::sleep(std::time::Duration::from_secs(2));
        }
        let _ = writeln!(std::io::stderr(), "error: {}", nysketch::Error::Cancelled);
        std::process::exit(1);
    });
    // Without a handler Ctrl-C ends the program at once; files are still renamed only when whole.
    drop(installed);
}

/// Whether Ctrl-C was pressed.
pub fn interrupted() -> bool {
    INTERRUPTED.load(Ordering::Relaxed)
}

/// A bar on stderr for one pass.
pub struct Bar(ProgressBar);

impl Bar {
    /// `rows` is the length of the pass where it is known.
    pub fn new(what: &str, rows: Option<u64>, quiet: bool) -> Self {
        if quiet || !std::io::stderr().is_terminal() {
            return Bar(ProgressBar::hidden());
        }
        let bar = ProgressBar::with_draw_target(rows, ProgressDrawTarget::stderr_with_hz(8));
        let template = match rows {
            Some(_) => "{msg:10} {wide_bar} {human_pos}/{human_len} rows  {per_sec}  {eta} left",
            None => "{msg:10} {spinner} {human_pos} rows  {per_sec}  {elapsed}",
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.set_message(what.to_string());
        Bar(bar)
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

impl Progress for Bar {
    fn advance(&self, rows: u64) {
        self.0.inc(rows);
    }

    fn cancelled(&self) -> bool {
        interrupted()
    }
}
