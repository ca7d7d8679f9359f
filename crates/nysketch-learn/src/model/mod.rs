//! Models: the result of learning, with a report. Values are in the table's own units after the
//! transformations of the preprocessing: logarithms stay logarithms, and points on a circle stay
//! sines and cosines.
//!
//! A model is a JSON file. Distances are computed in the plan's coordinates (columns divided by
//! `scale`), so that a model of scaled columns assigns rows as it was learned.

mod file;

pub mod clusters;
pub mod densities;
pub mod intervals;
pub mod report;
pub mod task;

use crate::atom::Atom;
use crate::covariance::{Covariance, CovarianceKind, Factor};
use crate::model::densities::Densities;
use crate::model::intervals::Intervals;
use crate::model::report::Report;
use crate::model::task::Task;
use nysketch_core::error::{Error, Result};
use nysketch_core::numeric::random::draw;
use nysketch_core::numeric::work::Work;
use nysketch_core::plan::frame::{Frame, SCALES};
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
/// # let plan = std::sync::Arc::new(plan_for(&table, PlanParams::default().landmarks(60))?.plan);
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

/// The parameters, in the table's units.
///
/// ```
/// use nysketch::{FitParams, Shape, Task, fit};
/// # fn main() -> nysketch::Result<()> {
/// # use nysketch::{Mixture, PlanParams, Sketch, SketchParams, Table, plan_for};
/// # let rows = Mixture::new(2, 3, 4.0, 7)?.rows(0, 900).values;
/// # let table = Table::unnamed(2, rows.clone())?;
/// # let plan = std::sync::Arc::new(plan_for(&table, PlanParams::default().landmarks(60))?.plan);
/// # let sketch = Sketch::of(&plan, &table, SketchParams::default(), &())?;
/// let model = fit(&sketch, &FitParams::new(Task::Kmeans, 3))?;
/// let Shape::Centres { weights, centres } = &model.shape else { unreachable!("k-means") };
/// for (share, centre) in weights.iter().zip(centres) {
///     println!("{:.1} % of the rows around {centre:?}", 100.0 * share);
/// }
/// assert_eq!(centres.len(), 3);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq)]
pub enum Shape {
    /// A Gaussian mixture.
    Mixture {
        /// Weights α with sum 1.
        weights: Vec<f64>,
        /// One mean per component.
        means: Vec<Vec<f64>>,
        /// The kind of covariance.
        covariance: CovarianceKind,
        /// One covariance per component: matrices or diagonals, depending on the kind, and all
        /// equal if tied.
        covariances: Vec<Covariance>,
    },
    /// Centres of clusters.
    Centres {
        /// Estimated share of the data at each centre.
        weights: Vec<f64>,
        /// One point per cluster.
        centres: Vec<Vec<f64>>,
    },
    /// Principal components of scaled columns.
    Components {
        /// Mean of each column.
        mean: Vec<f64>,
        /// Unit vectors, in order of decreasing variance.
        components: Vec<Vec<f64>>,
        /// Variance along each component.
        explained_variance: Vec<f64>,
        /// Share of the total variance along each component.
        explained_variance_ratio: Vec<f64>,
    },
}

impl Shape {
    /// Creates centres from atoms in the plan's coordinates.
    pub(crate) fn centres(frame: &Frame, atoms: &[Atom]) -> Self {
        let total: f64 = atoms.iter().map(|a| a.weight).sum();
        let equal = 1.0 / atoms.len() as f64;
        Shape::Centres {
            weights: atoms
                .iter()
                .map(|a| if total > 0.0 { a.weight / total } else { equal })
                .collect(),
            centres: atoms.iter().map(|a| frame.widen_coordinates(&a.mean)).collect(),
        }
    }

    /// Creates a mixture from atoms in the plan's coordinates.
    pub(crate) fn mixture(frame: &Frame, covariance: CovarianceKind, atoms: &[Atom]) -> Self {
        let total: f64 = atoms.iter().map(|a| a.weight).sum();
        Shape::Mixture {
            weights: atoms.iter().map(|a| a.weight / total).collect(),
            means: atoms.iter().map(|a| frame.widen_coordinates(&a.mean)).collect(),
            covariance,
            covariances: each(covariance, atoms.len(), |c| {
                atoms[c].covariance.scaled(&frame.scale)
            }),
        }
    }

    /// Returns the atoms of a mixture in the coordinates of a frame; `None` for other models.
    pub(crate) fn atoms(&self, frame: &Frame) -> Option<Vec<Atom>> {
        let Shape::Mixture { weights, means, covariance, covariances } = self else { return None };
        let inverse: Vec<f64> = frame.scale.iter().map(|s| 1.0 / s).collect();
        let covariances = each(*covariance, means.len(), |c| covariances[c].scaled(&inverse));
        let atom = |(c, covariance): (usize, Covariance)| Atom {
            weight: weights[c],
            mean: frame.coordinates(&means[c]),
            covariance,
            levels: Vec::new(),
        };
        Some(covariances.into_iter().enumerate().map(atom).collect())
    }

    /// Returns the whitening factor of each component of a mixture; empty for other models.
    ///
    /// # Panics
    ///
    /// If a covariance is not positive definite. No model that was fitted or read has such a
    /// covariance.
    pub fn factors(&self) -> Vec<Factor> {
        let Shape::Mixture { covariance, covariances, .. } = self else { return Vec::new() };
        let factor = |c: usize| covariances[c].cholesky().expect("a positive definite covariance");
        each(*covariance, covariances.len(), factor)
    }

    fn numbers(&self) -> Vec<&f64> {
        match self {
            Shape::Mixture { weights, means, covariances, .. } => {
                let numbers = covariances.iter().flat_map(Covariance::numbers);
                weights.iter().chain(means.iter().flatten()).chain(numbers).collect()
            }
            Shape::Centres { weights, centres } => {
                weights.iter().chain(centres.iter().flatten()).collect()
            }
            Shape::Components {
                mean,
                components,
                explained_variance,
                explained_variance_ratio,
            } => mean
                .iter()
                .chain(components.iter().flatten())
                .chain(explained_variance)
                .chain(explained_variance_ratio)
                .collect(),
        }
    }

    /// Returns the cost of checking the covariances and whitening rows.
    fn work(&self) -> Work {
        match self {
            Shape::Mixture { covariance, means, covariances, .. } if covariance.is_matrix() => {
                let tied = *covariance == CovarianceKind::Tied;
                let d = means.first().map_or(0, Vec::len);
                Work::cholesky(d, if tied { 1 } else { covariances.len() })
            }
            _ => Work::default(),
        }
    }

    /// Returns the centres or means.
    fn places(&self) -> &[Vec<f64>] {
        match self {
            Shape::Mixture { means, .. } => means,
            Shape::Centres { centres, .. } => centres,
            Shape::Components { mean, .. } => std::slice::from_ref(mean),
        }
    }

    /// Returns the rule of its kind that the shape breaks, if any.
    fn broken(&self, task: Task, scale: &[f64]) -> Option<&'static str> {
        let shares =
            |w: &[f64]| w.iter().all(|w| *w >= 0.0) && (w.iter().sum::<f64>() - 1.0).abs() < 1e-6;
        let unit = |c: &Vec<f64>| (c.iter().map(|x| x * x).sum::<f64>() - 1.0).abs() < 1e-6;
        match self {
            Shape::Mixture { weights, means, covariance, covariances } => {
                if task != Task::Gmm {
                    Some("has means and covariances, but its task is another")
                } else if weights.len() != means.len() || covariances.len() != means.len() {
                    Some("does not have one weight, mean and covariance for each component")
                } else if !shares(weights) {
                    Some("has weights that are not shares of one")
                } else {
                    covariance.broken(covariances, scale)
                }
            }
            Shape::Centres { weights, centres } => {
                if task != Task::Kmeans && task != Task::Kmedians {
                    Some("has centres, but its task is another")
                } else if weights.len() != centres.len() || !shares(weights) {
                    Some("does not have one weight for each centre, shares of one")
                } else {
                    None
                }
            }
            Shape::Components {
                components, explained_variance, explained_variance_ratio, ..
            } => {
                let lengths = [explained_variance.len(), explained_variance_ratio.len()];
                if task != Task::Pca {
                    Some("has components, but its task is another")
                } else if lengths != [components.len(); 2] {
                    Some("does not have one variance for each component")
                } else if !components.iter().all(unit) {
                    Some("has a component that is not of length one")
                } else {
                    None
                }
            }
        }
    }

    /// Returns the lengths of the rows of all matrices, for checking a file.
    fn widths(&self) -> Vec<usize> {
        match self {
            Shape::Mixture { means, covariances, .. } => {
                let covariances = covariances.iter().map(Covariance::dims);
                means.iter().map(Vec::len).chain(covariances).collect()
            }
            Shape::Centres { centres, .. } => centres.iter().map(Vec::len).collect(),
            Shape::Components { mean, components, .. } => {
                components.iter().chain(std::iter::once(mean)).map(Vec::len).collect()
            }
        }
    }
}

/// The result of [`Model::predict_row`] for one row.
#[doc(hidden)]
#[derive(Debug, Clone, PartialEq)]
pub struct Prediction {
    /// The nearest centre or the most likely component, the first in case of ties; 0 for principal
    /// components.
    pub label: usize,
    /// Squared distance to the centre or mean of the label, or to the projection onto the principal
    /// components, in the coordinates of the fit.
    pub squared_distance: f64,
    /// Log density of the row under a mixture.
    pub log_density: Option<f64>,
    /// Probability of each component, or coordinates along the principal components.
    pub transformed: Vec<f64>,
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
        } else if self.report.likelihood.is_some_and(|likelihood| !likelihood.is_valid()) {
            "has a likelihood beyond 1e200".into()
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

    /// Returns the contribution of each level to the squared distance from a centre, or to the log
    /// density of a component, as `[cluster][level]` for the levels of all categories. A level is a
    /// point at distance √w from every other level, and a centre with shares p is their mean: a row
    /// with level v is at the squared distance
    ///
    /// ```text
    /// w/2 (1 − 2 p_v + Σ_u p_u²)
    /// ```
    pub(crate) fn level_terms(&self, density: bool) -> Vec<Vec<f64>> {
        let terms = |shares: &Vec<f64>| {
            let mut out = Vec::with_capacity(shares.len());
            let mut rest = &shares[..];
            for category in &self.recipe.categories {
                let (shares, others) = rest.split_at(category.len());
                let squares: f64 = shares.iter().map(|p| p * p).sum();
                out.extend(shares.iter().map(|p| match density {
                    true => p.max(LEAST_SHARE).ln(),
                    false => (0.5 * category.weight * (1.0 - 2.0 * p + squares)).max(0.0),
                }));
                rest = others;
            }
            out
        };
        self.levels.iter().map(terms).collect()
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
        let may_lack = self.recipe.least_present.is_some();
        row.iter().position(|x| !(self.in_range(*x) || (may_lack && x.is_nan())))
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
        let Some(least) = self.recipe.least_present else { return self.out_of_range(row) };
        self.out_of_range(row).or_else(|| {
            let numbers = row.iter().filter(|x| !x.is_nan()).count();
            let known =
                codes.iter().zip(self.categories()).filter(|(v, c)| **v != c.missing()).count();
            // Principal components require every numeric column.
            let least = match self.shape {
                Shape::Components { .. } => row.len() + known,
                _ => least,
            };
            (numbers + known < least).then(|| row.iter().position(|x| x.is_nan()).unwrap_or(0))
        })
    }

    /// Predicts one usable row: the slow reference that defines the results of
    /// [`Predictor`](crate::Predictor) for many rows. `codes` are the levels of its categories.
    #[doc(hidden)]
    pub fn predict_row(&self, row: &[f64], codes: &[u32]) -> Prediction {
        let nothing = Prediction {
            label: 0,
            squared_distance: 0.0,
            log_density: None,
            transformed: Vec::new(),
        };
        match &self.shape {
            Shape::Centres { centres, .. } => {
                let (label, squared_distance) = self.nearest(row, codes, centres);
                Prediction { label, squared_distance, ..nothing }
            }
            Shape::Mixture { weights, means, covariances, .. } => {
                let there: Vec<usize> = (0..row.len()).filter(|j| !row[*j].is_nan()).collect();
                let terms = self.level_terms(true);
                let log = |c: usize| {
                    let levels = terms.get(c).map_or(0.0, |t| self.of_levels(t, codes));
                    if there.is_empty() {
                        return weights[c].max(f64::MIN_POSITIVE).ln() + levels;
                    }
                    let some = |x: &[f64]| there.iter().map(|j| x[*j]).collect::<Vec<f64>>();
                    let covariance = covariances[c].select(&there);
                    let factor = covariance.cholesky().expect("a positive definite covariance");
                    let square = factor.squared_distance(&some(row), &some(&means[c]));
                    let numbers = log_peak(weights[c], &factor) - 0.5 * square;
                    if codes.is_empty() { numbers } else { numbers + levels }
                };
                let logs: Vec<f64> = (0..weights.len()).map(log).collect();
                let label = (1..logs.len()).fold(0, |b, c| if logs[c] > logs[b] { c } else { b });
                let most = logs[label];
                // The row is so far out that every density is zero: use the nearest mean.
                let everywhere_zero = most == f64::NEG_INFINITY;
                let label = if everywhere_zero { self.nearest(row, codes, means).0 } else { label };
                let share = |c: usize| match everywhere_zero {
                    true => f64::from(u8::from(c == label)),
                    false => (logs[c] - most).exp(),
                };
                let total: f64 = (0..logs.len()).map(share).sum();
                Prediction {
                    label,
                    squared_distance: self.squared_distance(
                        row,
                        codes,
                        &means[label],
                        self.level_terms(false).get(label),
                    ),
                    log_density: Some(most + total.ln()),
                    transformed: (0..logs.len()).map(|c| share(c) / total).collect(),
                }
            }
            Shape::Components { mean, components, .. } => {
                let y: Vec<f64> =
                    (0..row.len()).map(|j| (row[j] - mean[j]) / self.scale[j]).collect();
                let transformed: Vec<f64> =
                    components.iter().map(|c| c.iter().zip(&y).map(|(a, b)| a * b).sum()).collect();
                let (squared_distance, _) = self.unexplained(row, &transformed);
                Prediction { squared_distance, transformed, ..nothing }
            }
        }
    }

    /// Returns the sum of the contributions of the levels of a row.
    fn of_levels(&self, terms: &[f64], codes: &[u32]) -> f64 {
        let starts = self.recipe.level_offsets();
        codes.iter().zip(starts).map(|(code, start)| terms[start + *code as usize]).sum()
    }

    /// Returns the squared distance of a row from a centre or mean, over its present values, in the
    /// coordinates of the fit.
    pub(crate) fn squared_distance(
        &self,
        row: &[f64],
        codes: &[u32],
        centre: &[f64],
        terms: Option<&Vec<f64>>,
    ) -> f64 {
        let square = |j: usize| ((row[j] - centre[j]) * (1.0 / self.scale[j])).powi(2);
        let numbers: f64 = (0..row.len()).filter(|j| !row[*j].is_nan()).map(square).sum();
        terms.map_or(numbers, |terms| numbers + self.of_levels(terms, codes))
    }

    /// Returns the index and the squared distance of the nearest of all centres or means, the first
    /// in case of ties.
    pub(crate) fn nearest(&self, row: &[f64], codes: &[u32], centres: &[Vec<f64>]) -> (usize, f64) {
        let terms = self.level_terms(false);
        let mut best = (0, f64::INFINITY);
        for (c, centre) in centres.iter().enumerate() {
            let d2 = self.squared_distance(row, codes, centre, terms.get(c));
            if d2 < best.1 {
                best = (c, d2);
            }
        }
        best
    }

    /// Returns the squared norm of the residual of a row with these coordinates along the principal
    /// components, in the coordinates of the fit and in the table's units; 0 for other models.
    pub(crate) fn unexplained(&self, row: &[f64], coordinates: &[f64]) -> (f64, f64) {
        let Shape::Components { mean, components, .. } = &self.shape else { return (0.0, 0.0) };
        let (mut scaled, mut plain) = (0.0, 0.0);
        for j in 0..row.len() {
            let explained: f64 = components.iter().zip(coordinates).map(|(c, s)| c[j] * s).sum();
            let left = (row[j] - mean[j]) / self.scale[j] - explained;
            scaled += left * left;
            plain += (left * self.scale[j]).powi(2);
        }
        (scaled, plain)
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

/// Minimum share of a level when densities are computed.
const LEAST_SHARE: f64 = 1e-9;

/// Returns the smallest schema version that can represent a model with this preprocessing.
fn schema(recipe: &Recipe, columns: &[String]) -> u32 {
    if recipe.is_plain(columns) { 3 } else { 4 }
}

/// Returns `log α N(μ; μ, Γ)`.
pub(crate) fn log_peak(weight: f64, factor: &Factor) -> f64 {
    weight.max(f64::MIN_POSITIVE).ln() + factor.log_peak()
}

/// Returns `of(c)` for each of k components, evaluated once and shared if covariances are tied.
fn each<T: Clone>(kind: CovarianceKind, k: usize, of: impl Fn(usize) -> T) -> Vec<T> {
    match kind {
        CovarianceKind::Tied if k > 0 => vec![of(0); k],
        _ => (0..k).map(of).collect(),
    }
}
