//! The request for a page.

use crate::Usage;
use anyhow::Result;
use nysketch::{Model, Sketch};
use std::ops::RangeInclusive;

/// Default of the largest k of the curve.
pub const DEFAULT_MOST_CLUSTERS: usize = 12;
/// Allowed range of the largest k: an elbow needs neighbours, and more fits take minutes.
const CLUSTERS: RangeInclusive<usize> = 3..=200;

/// The contents of a page.
#[derive(Debug, Clone)]
pub struct ReportRequest<'a> {
    /// The sketch to report on.
    pub sketch: &'a Sketch,
    /// Name of the sketch, used as the title of the page.
    pub name: &'a str,
    /// Models to show; the first one is shown first. By default the models of the curve over k.
    pub models: Vec<&'a Model>,
    /// A sketch to compare with, and its name.
    pub baseline: Option<(&'a Sketch, &'a str)>,
    /// Sketches to compare with the baseline, in order of time, and their names. By default only
    /// `sketch`.
    pub series: Vec<(&'a Sketch, &'a str)>,
    /// Largest k of the curve.
    pub most_clusters: usize,
    /// Seed of all random choices.
    pub seed: u64,
    /// Number of threads; the page does not depend on it.
    pub threads: usize,
}

impl<'a> ReportRequest<'a> {
    /// Returns the defaults for a sketch.
    pub fn new(sketch: &'a Sketch, name: &'a str) -> Self {
        ReportRequest {
            sketch,
            name,
            models: Vec::new(),
            baseline: None,
            series: Vec::new(),
            most_clusters: DEFAULT_MOST_CLUSTERS,
            seed: 0,
            threads: 1,
        }
    }

    /// Refuses requests from which no page can be made.
    pub(super) fn check(&self) -> Result<()> {
        let refuse = |message: String| Err(Usage(message).into());
        if self.sketch.rows() == 0 {
            return refuse(format!("{} has no rows to report on", self.name));
        }
        if !CLUSTERS.contains(&self.most_clusters) {
            let (low, high, got) = (CLUSTERS.start(), CLUSTERS.end(), self.most_clusters);
            return refuse(format!("`most_clusters` must be between {low} and {high}, got {got}"));
        }
        let plan = self.sketch.plan();
        let other = |m: &Model| m.columns != plan.columns || m.recipe != plan.recipe;
        if let Some(model) = self.models.iter().find(|m| other(m)) {
            let (task, k) = (model.task.name(), model.k());
            let how = if model.columns == plan.columns {
                "reads the columns in another way than"
            } else {
                "has other columns than"
            };
            return refuse(format!(
                "the {task} model with k = {k} {how} {}; give models of this sketch",
                self.name
            ));
        }
        if self.baseline.is_none() && !self.series.is_empty() {
            return refuse("several sketches need a `baseline` to compare with: give one".into());
        }
        Ok(())
    }
}
