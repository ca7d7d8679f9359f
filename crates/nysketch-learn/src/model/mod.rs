//! Models: the result of learning, with a report. Values are in the table's own units after the
//! transformations of the preprocessing: logarithms stay logarithms, and points on a circle stay
//! sines and cosines.
//!
//! A model is a JSON file. Distances are computed in the plan's coordinates (columns divided by
//! `scale`), so that a model of scaled columns assigns rows as it was learned.

mod file;
mod reference;
mod shape;

pub mod clusters;
pub mod densities;
pub mod intervals;
pub mod report;
pub mod task;

#[doc(hidden)]
pub use reference::Prediction;
pub(crate) use reference::log_peak;
pub use shape::Shape;

use crate::model::densities::Densities;
use crate::model::intervals::Intervals;
use crate::model::report::Report;
use crate::model::task::Task;
use nysketch_core::error::{Error, Result};
use nysketch_core::numeric::random::draw;
use nysketch_core::plan::frame::SCALES;
use nysketch_core::recipe::{Category, Recipe};
use nysketch_core::sketch::Sketch;
use nysketch_core::sketch::profile::Profile;
use serde::Serialize;

/// Largest magnitude of a value or a centre. Even with the smallest scale no squared distance
/// overflows: `d (2·10¹⁰⁰/10⁻⁵⁰)² < 10³⁰⁸` for up to 10⁷ columns.
const LARGEST: f64 = 1e100;

/// Latest version of the schema; earlier versions can be read too. Models of untransformed numeric
/// columns use version 3.
pub const SCHEMA: u32 = 4;

/// A learned model.
///
/// ```
/// use nysketch::{FitParams, Model, Task, fit};
/// # fn main() -> nysketch::Result<()> {
/// # use nysketch::{Mixture, PlanParams, Sketch, SketchParams, Table, plan_for};
/// # let rows = Mixture::new(2, 3, 4.0, 7)?.rows(0, 900).values;
/// # let table = Table::unnamed(2, rows.clone())?;
/// # let plan = std::sync::Arc::new(plan_for(&table, PlanParams::default().landmarks(60))?.0);
/// # let sketch = Sketch::of(&plan, &table, SketchParams::default(), &())?;
/// let model = fit(&sketch, &FitParams::new(Task::Gmm, 3))?;
/// assert_eq!((model.task, model.k(), model.rows), (Task::Gmm, 3, 900));
/// // A readable file.
/// assert_eq!(Model::from_json(&model.to_json())?, model);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Model {
    /// The smallest schema version that can represent the model.
    pub schema: u32,
    /// The task.
    pub task: Task,
    /// The numeric columns to which the model applies, in order.
    pub columns: Vec<String>,
    /// The derivation of `columns` from the columns of a table, and the categories.
    #[serde(flatten, serialize_with = "file::recipe")]
    pub recipe: Recipe,
    /// The share of each level of each category, concatenated, in each cluster or component; empty
    /// without categories and for principal components.
    #[serde(rename = "level_shares", skip_serializing_if = "Vec::is_empty")]
    pub levels: Vec<Vec<f64>>,
    /// The divisors of the columns for computing distances.
    pub scale: Vec<f64>,
    /// Number of rows the model was learned from, or their total weight.
    pub rows: u64,
    /// Fingerprint of the plan.
    pub plan: String,
    /// The parameters.
    #[serde(flatten)]
    pub shape: Shape,
    /// Means, deviations and missing values of the rows, if the sketch contains them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<Profile>,
    /// Quantiles of the log density of the rows under a mixture, if the sketch contains the
    /// required sums.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub densities: Option<Densities>,
    /// Confidence intervals of the parameters, if they were computed from the folds of a sketch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub intervals: Option<Intervals>,
    /// The report on the fit.
    pub report: Report,
}

impl Model {
    pub(crate) fn new(
        sketch: &Sketch,
        task: Task,
        shape: Shape,
        levels: Vec<Vec<f64>>,
        report: Report,
    ) -> Result<Self> {
        let plan = sketch.plan();
        let model = Model {
            schema: schema(&plan.recipe, &plan.columns),
            task,
            columns: plan.columns.clone(),
            recipe: plan.recipe.clone(),
            levels,
            scale: plan.frame.scale.clone(),
            rows: sketch.counted(),
            plan: plan.fingerprint(),
            shape,
            profile: None,
            densities: None,
            intervals: None,
            report,
        };
        model.check()?;
        Ok(model)
    }

    /// Sets the profile.
    pub(crate) fn with_profile(self, profile: Option<Profile>) -> Self {
        Model { profile, ..self }
    }

    /// Sets the density quantiles.
    pub(crate) fn with_densities(self, densities: Option<Densities>) -> Self {
        Model { densities, ..self }
    }

    /// Checks everything that [`Predictor`](crate::predictor::Predictor) relies on.
    fn check(&self) -> Result<()> {
        let d = self.columns.len();
        let unique: std::collections::HashSet<&String> = self.columns.iter().collect();
        let broken = if self.schema != schema(&self.recipe, &self.columns) {
            format!("has schema {}, which cannot hold its columns", self.schema)
        } else if let Err(error) = self.recipe.check(&self.columns) {
            format!("has columns that cannot be: {error}")
        } else if let Some(how) = self.broken_levels() {
            how.into()
        } else if d == 0 || unique.len() != d {
            "needs at least one column, all different".into()
        } else if self.scale.len() != d || !self.scale.iter().all(|s| SCALES.contains(s)) {
            "does not have a scale between 1e-50 and 1e100 for each column".into()
        } else if self.k() == 0 || self.shape.widths().iter().any(|w| *w != d) {
            format!("does not have {d} values in every row")
        } else if !self.shape.numbers().iter().all(|x| x.abs() <= LARGEST * LARGEST) {
            "holds a number that is not finite, or beyond 1e200".into()
        } else if !self.shape.places().iter().flatten().all(|x| x.abs() <= LARGEST) {
            format!("has a centre beyond {LARGEST:e}")
        } else if self.profile.as_ref().is_some_and(|p| !p.fits(d, self.recipe.levels(), self.k()))
        {
            "has a profile of other columns or clusters, or of impossible numbers".into()
        } else if let Err(error) = self.shape.work().check("checking the covariances of a model") {
            return Err(error);
        } else if self.densities.as_ref().is_some_and(|d| self.task != Task::Gmm || !d.is_valid()) {
            "has densities that are not those of a mixture".into()
        } else if self.intervals.as_ref().is_some_and(|i| !self.has_numbers_of(i)) {
            "has intervals of other clusters or columns, or of impossible numbers".into()
        } else if let Some(how) = self.shape.broken(self.task, &self.scale) {
            how.into()
        } else {
            return Ok(());
        };
        Err(Error::BadModel { how: broken })
    }

    /// Returns whether the intervals can belong to the parameters of the model.
    fn has_numbers_of(&self, intervals: &Intervals) -> bool {
        let pca = self.task == Task::Pca;
        let (clusters, components) = if pca { (0, self.k()) } else { (self.k(), 0) };
        intervals.fits(clusters, components, self.columns.len())
    }

    /// Returns the rule that the shares of levels break, if any.
    fn broken_levels(&self) -> Option<&'static str> {
        let clusters = if matches!(self.shape, Shape::Components { .. }) { 0 } else { self.k() };
        let expected = if self.recipe.categories.is_empty() { 0 } else { clusters };
        if self.levels.len() != expected {
            return Some("does not have shares of levels for each cluster");
        }
        for levels in &self.levels {
            let mut rest = &levels[..];
            for category in &self.recipe.categories {
                let Some((shares, others)) = rest.split_at_checked(category.len()) else {
                    return Some("does not have a share for each level");
                };
                let total: f64 = shares.iter().sum();
                if !shares.iter().all(|s| (0.0..=1.0 + 1e-6).contains(s))
                    || (total - 1.0).abs() > 1e-6
                {
                    return Some("has shares of levels that do not add up to one");
                }
                rest = others;
            }
            if !rest.is_empty() {
                return Some("has more shares than levels");
            }
        }
        None
    }

    /// Returns the categories.
    pub fn categories(&self) -> &[Category] {
        &self.recipe.categories
    }

    /// Returns the model as readable JSON.
    pub fn to_json(&self) -> String {
        let mut text =
            serde_json::to_string_pretty(self).expect("finite numbers and strings are valid JSON");
        text.push('\n');
        text
    }

    /// Returns the number of centres or components.
    pub fn k(&self) -> usize {
        match &self.shape {
            Shape::Mixture { means, .. } => means.len(),
            Shape::Centres { centres, .. } => centres.len(),
            Shape::Components { components, .. } => components.len(),
        }
    }

    /// Returns the first column of a row that no model can use, whatever its other values:
    /// infinite, or so large that its square overflows, or NaN if the plan does not allow missing
    /// values.
    pub fn out_of_range(&self, row: &[f64]) -> Option<usize> {
        let may_be_missing = self.recipe.least_present.is_some();
        row.iter().position(|x| !(self.in_range(*x) || (may_be_missing && x.is_nan())))
    }

    /// Returns whether a value can be used by a model: not missing, not infinite, and not so large
    /// that its square overflows.
    pub fn in_range(&self, value: f64) -> bool {
        value.abs() <= LARGEST
    }

    /// Returns the first column of a row that [`Predictor`](crate::Predictor) cannot use: not a
    /// number, or so large that its square overflows. If the plan allows missing values, NaN is
    /// usable unless the row has too few present values.
    pub fn unusable(&self, row: &[f64], codes: &[u32]) -> Option<usize> {
        let Some(min_present) = self.recipe.least_present else { return self.out_of_range(row) };
        self.out_of_range(row).or_else(|| {
            let numbers = row.iter().filter(|x| !x.is_nan()).count();
            let known =
                codes.iter().zip(self.categories()).filter(|(v, c)| **v != c.missing()).count();
            // Principal components require every numeric column.
            let min_present = match self.shape {
                Shape::Components { .. } => row.len() + known,
                _ => min_present,
            };
            (numbers + known < min_present)
                .then(|| row.iter().position(|x| x.is_nan()).unwrap_or(0))
        })
    }

    /// Draws rows from a mixture, row-major; `None` for other models.
    pub fn sample(&self, rows: usize, rng: &mut impl rand::Rng) -> Option<Vec<f64>> {
        let Shape::Mixture { weights, means, .. } = &self.shape else { return None };
        let factors = self.shape.factors();
        let mut values = Vec::with_capacity(rows * self.columns.len());
        for _ in 0..rows {
            let c = draw(weights, rng)?;
            values.extend(factors[c].draw(&means[c], rng));
        }
        Some(values)
    }
}

/// Returns the smallest schema version that can represent a model with this preprocessing.
fn schema(recipe: &Recipe, columns: &[String]) -> u32 {
    if recipe.is_plain(columns) { 3 } else { 4 }
}
