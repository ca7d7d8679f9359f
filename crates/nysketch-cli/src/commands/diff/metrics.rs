//! Metrics for a monitoring system, in the text format of Prometheus.

use crate::args::{Common, Diff};
use crate::kind::Kind;
use crate::writing::{check_output, write_bytes};
use anyhow::Result;
use nysketch::drift::{Drift, Unusual, Verdict, Watched};
use std::fmt::Write;
use std::path::Path;

/// Prefix of all metric names, which also identifies such a file.
const NAMES: &str = "nysketch_drift_";

/// Metrics of several sketches, one line each.
#[derive(Default)]
pub struct Metrics {
    families: Vec<Family>,
}

/// A metric with one value per sketch.
struct Family {
    name: &'static str,
    about: &'static str,
    /// Label and value.
    samples: Vec<(String, f64)>,
}

impl Metrics {
    /// Refuses an output file that cannot be written, before the work starts.
    pub fn check<'a>(
        args: &Diff,
        inputs: impl IntoIterator<Item = &'a Path>,
        common: &Common,
    ) -> Result<()> {
        match &args.metrics {
            Some(path) => check_output(common, path, Kind::Metrics, inputs),
            None => Ok(()),
        }
    }

    fn add(
        &mut self,
        name: &'static str,
        about: &'static str,
        sketch: &str,
        value: impl Into<Option<f64>>,
    ) {
        let Some(value) = value.into() else { return };
        let sample = (label(sketch), value);
        match self.families.iter_mut().find(|f| f.name == name) {
            Some(family) => family.samples.push(sample),
            None => self.families.push(Family { name, about, samples: vec![sample] }),
        }
    }

    /// Adds the comparison of a sketch with a baseline.
    pub fn drift(&mut self, sketch: &str, drift: &Drift) {
        self.add("rows", "Rows of the sketch.", sketch, drift.rows[1] as f64);
        let moved = drift.moved;
        let about = "Share of the rows that would have to move to another cell.";
        self.add("moved_share", about, sketch, moved.map(|m| m.share));
        self.add("moved_share_low", "Low end of its interval.", sketch, moved.map(|m| m.low));
        self.add("moved_share_high", "High end of its interval.", sketch, moved.map(|m| m.high));
        self.add("mmd_over_noise", "Discrepancy over its noise.", sketch, drift.mmd_over_noise());
        self.add("p_value", "p-value of the test.", sketch, drift.p_value);
        let found = drift.drift.map(|d| f64::from(u8::from(d)));
        self.add("found", "1 where the sketch is called changed.", sketch, found);
        let decided = drift.verdict.filter(|v| *v != Verdict::CannotTell);
        let beyond = decided.map(|v| f64::from(u8::from(v == Verdict::Changed)));
        self.add("beyond_tolerance", "1 where more than is tolerated moved.", sketch, beyond);
    }

    /// Adds the comparison of a day with other days.
    pub fn unusual(&mut self, sketch: &str, unusual: &Unusual) {
        self.add("rows", "Rows of the sketch.", sketch, unusual.rows as f64);
        let about = "Share of the rows that would have to move to make the day like the others.";
        self.add("moved_share", about, sketch, unusual.moved);
        self.add("p_value", "Share of days that are as unusual.", sketch, unusual.p_value);
        let found = f64::from(u8::from(unusual.unusual));
        self.add("found", "1 where the day is unusual.", sketch, found);
    }

    /// Adds the result of monitoring days in order.
    pub fn watched(&mut self, watched: &Watched) {
        let Some(last) = watched.days.last() else { return };
        self.add("rows", "Rows of the last day.", &last.name, last.rows as f64);
        let about = "Share of its rows that would have to move to make it like the days before.";
        self.add("moved_share", about, &last.name, last.moved);
        self.add("p_value", "Its p-value among the days before.", &last.name, last.p_value);
        let about = "Evidence against exchangeable days; an alarm is raised at 1 over the level.";
        self.add("evidence", about, &last.name, last.evidence);
        let alarm = f64::from(u8::from(watched.alarm.is_some()));
        self.add("found", "1 where an alarm was raised.", &last.name, alarm);
    }

    /// Writes the metrics if a file was requested.
    pub fn write(&self, args: &Diff) -> Result<()> {
        let Some(path) = &args.metrics else { return Ok(()) };
        let mut text = String::new();
        for Family { name, about, samples } in &self.families {
            let _ = writeln!(text, "# HELP {NAMES}{name} {about}\n# TYPE {NAMES}{name} gauge");
            for (label, value) in samples {
                let _ = writeln!(text, "{NAMES}{name}{{sketch=\"{label}\"}} {value}");
            }
        }
        write_bytes(path, text.as_bytes())
    }
}

/// Escapes a name as the value of a label.
fn label(name: &str) -> String {
    name.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
