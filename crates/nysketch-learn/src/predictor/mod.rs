//! Prediction: applies a model to many rows at once.
//!
//! For each row, every model returns the centre or component to which it belongs (its *label*) and
//! its distance from it; [`Column`] lists the output columns. Distances are measured as in the fit:
//! between columns divided by the model's `scale`.
//!
//! Labels equal those of [`Model::predict_row`], the slow reference for one row, for every row and
//! every instruction set. `nearest` finds centres in single precision, and decides in double
//! precision if single precision is not proof. `scores` and `whitened` evaluate the components of a
//! mixture, in double precision and with the order of operations of the reference.
//!
//! ```
//! use nysketch::predictor::{Detail, Predictor};
//! # use nysketch::{FitParams, Mixture, PlanParams, Sketch, SketchParams, Table, Task};
//! # use nysketch::{fit, plan_for};
//! # fn main() -> nysketch::Result<()> {
//! # let rows = Mixture::new(2, 3, 4.0, 7)?.rows(0, 500).values;
//! # let table = Table::unnamed(2, rows.clone())?;
//! # let plan = std::sync::Arc::new(plan_for(&table, PlanParams::default())?.0);
//! # let sketch = Sketch::of(&plan, &table, SketchParams::default(), &())?;
//! let model = fit(&sketch, &FitParams::new(Task::Kmeans, 3))?;
//! let predictor = Predictor::new(&model);
//! let predictions = predictor.predict(&rows, Detail::Label);
//! assert_eq!(predictions.label.len(), 500);
//! // Two unit variances.
//! assert!(predictions.squared_distance.iter().sum::<f64>() / 500.0 < 2.5);
//! # Ok(())
//! # }
//! ```

mod columns;
mod nearest;
mod rows;
mod scores;
mod whitened;

pub use columns::{Column, Values};
pub use rows::ModelRows;

use crate::model::{Model, Shape};
use nearest::NearestCentre;
use nysketch_core::error::Result;
use nysketch_core::kernel::pack::MAX_BLOCK;
use nysketch_core::numeric::simd::Instructions;
use nysketch_core::pass::engine::DeviceChoice;
use scores::Scores;

/// Scores further below the largest than this do not contribute to a log density: 2²⁰ such terms
/// are 10⁻²⁰ of the largest.
const NEGLIGIBLE: f64 = 60.0;
/// Number of centres above which comparing dominates the rest of the processors' work per row: with
/// 64 centres a GPU is little faster than sixteen processors, with 1,000 seven times.
const MANY_CENTRES: usize = 256;

/// The reason why a model cannot use a GPU.
const NO_NEAREST: &str =
    "the GPU is not used: it finds nearest centres, of k-means and k-medians without categories";

/// A model laid out for many rows.
///
/// ```
/// use nysketch::predictor::{Column, Values};
/// use nysketch::{FitParams, Predictor, Task, fit};
/// # fn main() -> nysketch::Result<()> {
/// # use nysketch::{Mixture, PlanParams, Sketch, SketchParams, Table, plan_for};
/// # let rows = Mixture::new(2, 3, 4.0, 7)?.rows(0, 900).values;
/// # let table = Table::unnamed(2, rows.clone())?;
/// # let plan = std::sync::Arc::new(plan_for(&table, PlanParams::default().landmarks(60))?.0);
/// # let sketch = Sketch::of(&plan, &table, SketchParams::default(), &())?;
/// let model = fit(&sketch, &FitParams::new(Task::Gmm, 3))?;
/// let predictor = Predictor::new(&model);
/// // The second row cannot be used.
/// let columns = predictor.columns(&[0.5, 0.5, f64::NAN, 0.0], &Column::of(&model));
/// assert!(matches!(&columns[0], Values::Labels(labels) if labels[0] >= 0 && labels[1] == -1));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Predictor<'a> {
    model: &'a Model,
    /// `1/s_j`.
    inverse_scale: Vec<f64>,
    scores: Scores,
    /// The search for centres, if there are numeric columns only and single precision can represent
    /// the centres.
    nearest: Option<NearestCentre>,
    /// Contributions of the levels of categories to distances, and to log densities.
    terms: Vec<Vec<f64>>,
    log_terms: Vec<Vec<f64>>,
    starts: Vec<usize>,
}

/// The level of detail of predictions; each level includes the preceding ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Detail {
    /// Label and distance.
    Label,
    /// Log density under a mixture.
    Density,
    /// k numbers: distances to all centres, probabilities of the components, or principal
    /// coordinates.
    All,
}

/// Predictions for some rows; see [`Predictor::predict`].
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Predictions {
    /// The nearest centre or most likely component, the first in case of ties; 0 for principal
    /// components.
    pub label: Vec<u32>,
    /// Squared distance to that centre or mean, or to the projection onto the principal components,
    /// in the coordinates of the fit.
    pub squared_distance: Vec<f64>,
    /// Log density under a mixture, with [`Detail::Density`] or more; otherwise empty.
    pub log_density: Vec<f64>,
    /// k numbers for each row with [`Detail::All`], and for principal components; otherwise empty.
    pub transformed: Vec<f64>,
}

impl Predictions {
    /// Appends the predictions for later rows.
    fn append(&mut self, later: Predictions) {
        self.label.extend(later.label);
        self.squared_distance.extend(later.squared_distance);
        self.log_density.extend(later.log_density);
        self.transformed.extend(later.transformed);
    }
}

impl<'a> Predictor<'a> {
    /// Lays out a model.
    pub fn new(model: &'a Model) -> Self {
        Self::with(model, Instructions::best())
    }

    /// Lays out a model for an instruction set.
    pub(crate) fn with(model: &'a Model, instructions: Instructions) -> Self {
        let inverse_scale: Vec<f64> = model.scale.iter().map(|s| 1.0 / s).collect();
        let nearest = match &model.shape {
            Shape::Centres { centres, .. } if model.levels.is_empty() => {
                NearestCentre::new(centres, &inverse_scale, instructions)
            }
            _ => None,
        };
        let scores = Scores::new(model, &inverse_scale, instructions);
        let density = matches!(model.shape, Shape::Mixture { .. });
        Predictor {
            model,
            nearest,
            scores,
            inverse_scale,
            terms: model.level_terms(false),
            log_terms: if density { model.level_terms(true) } else { Vec::new() },
            starts: model.recipe.level_offsets(),
        }
    }

    /// Lets GPUs find the nearest centres. `rows` is the number of rows to predict, if known, and
    /// `threads` the number of threads that will predict. Labels and distances do not change. GPUs
    /// support k-means and k-medians without categories, for complete rows, unless all distances
    /// are requested; the processors do the rest. Requesting a GPU by name is an error if it cannot
    /// be used. If no GPU is used for another reason, the returned text states the reason.
    ///
    /// ```
    /// use nysketch::{DeviceChoice, FitParams, Predictor, Task, fit};
    /// use nysketch::predictor::Detail;
    /// # fn main() -> nysketch::Result<()> {
    /// # use nysketch::{Mixture, PlanParams, Sketch, SketchParams, Table, plan_for};
    /// # let rows = Mixture::new(2, 3, 4.0, 7)?.rows(0, 900).values;
    /// # let table = Table::unnamed(2, rows.clone())?;
    /// # let plan = std::sync::Arc::new(plan_for(&table, PlanParams::default().landmarks(60))?.0);
    /// # let sketch = Sketch::of(&plan, &table, SketchParams::default(), &())?;
    /// let model = fit(&sketch, &FitParams::new(Task::Kmeans, 3))?;
    /// let predictor = Predictor::new(&model);
    /// let (predictor, why_not) = predictor.on_device(DeviceChoice::Auto, Some(900), 1)?;
    /// assert_eq!(predictor.predict(&rows, Detail::Label).label.len(), 900);
    /// assert_eq!(predictor.device_remark(), None);
    /// // Starting a GPU does not pay for so few rows.
    /// assert_eq!(why_not, None);
    /// # Ok(())
    /// # }
    /// ```
    pub fn on_device(
        mut self,
        device: DeviceChoice,
        rows: Option<u64>,
        threads: usize,
    ) -> Result<(Self, Option<String>)> {
        let (Some(nearest), Shape::Centres { centres, .. }) = (&self.nearest, &self.model.shape)
        else {
            device.check()?;
            let asked = matches!(device, DeviceChoice::Cuda(_));
            let why_not = asked.then(|| NO_NEAREST.to_string());
            return Ok((self, why_not));
        };
        let many = nearest.count() >= MANY_CENTRES;
        let each = 2.0 * (nearest.count() * self.inverse_scale.len()) as f64;
        let operations = rows.filter(|_| many).map_or(0.0, |rows| rows as f64 * each);
        let (started, why_not) =
            device.start(operations, threads, |ordinal| nearest.with_gpus(centres, ordinal))?;
        if started.is_some() {
            self.nearest = started;
        }
        Ok((self, why_not))
    }

    /// Returns a remark if a GPU has failed since [`on_device`](Self::on_device). Predictions stay
    /// correct: the processors handle the rows that it did not finish, and all later rows.
    pub fn device_remark(&self) -> Option<String> {
        self.nearest.as_ref().and_then(|nearest| nearest.gpus_remark())
    }

    /// Returns the model.
    pub fn model(&self) -> &'a Model {
        self.model
    }

    /// Predicts rows that can be used (see [`Model::unusable`]).
    pub fn predict<'r>(&self, rows: impl Into<ModelRows<'r>>, detail: Detail) -> Predictions {
        let rows = rows.into();
        let d = self.inverse_scale.len();
        if rows.values.iter().all(|x| !x.is_nan()) {
            return self.complete(rows, detail);
        }
        // Rows with missing values are predicted one by one, complete rows together.
        let mut out = Predictions::default();
        let has_missing: Vec<bool> =
            rows.values.chunks_exact(d).map(|row| row.iter().any(|x| x.is_nan())).collect();
        let mut at = 0;
        for run in has_missing.chunk_by(|a, b| a == b) {
            let end = at + run.len();
            if run[0] {
                (at..end).for_each(|i| self.one(rows.some(i..i + 1, d), detail, &mut out));
            } else {
                out.append(self.complete(rows.some(at..end, d), detail));
            }
            at = end;
        }
        out
    }

    /// Predicts one row with missing values.
    fn one(&self, row: ModelRows<'_>, detail: Detail, out: &mut Predictions) {
        let found = self.model.predict_row(row.values, row.codes);
        out.label.push(found.label as u32);
        out.squared_distance.push(found.squared_distance);
        if detail >= Detail::Density {
            out.log_density.extend(found.log_density);
        }
        match &self.model.shape {
            Shape::Centres { centres, .. } if detail == Detail::All => {
                out.transformed.extend((0..centres.len()).map(|c| {
                    let terms = self.terms.get(c);
                    self.model.squared_distance(row.values, row.codes, &centres[c], terms).sqrt()
                }));
            }
            Shape::Mixture { .. } if detail == Detail::All => {
                out.transformed.extend(found.transformed);
            }
            Shape::Components { .. } => out.transformed.extend(found.transformed),
            _ => {}
        }
    }

    /// Predicts complete rows.
    fn complete(&self, rows: ModelRows<'_>, detail: Detail) -> Predictions {
        let mut out = Predictions::default();
        match &self.model.shape {
            Shape::Centres { centres, .. } => match &self.nearest {
                Some(nearest) if detail < Detail::All => {
                    self.centres(nearest, centres, rows.values, &mut out);
                }
                _ => self.all_centres(rows, detail, &mut out),
            },
            Shape::Mixture { means, .. } => self.mixture(means, rows, detail, &mut out),
            Shape::Components { .. } => self.components(rows, &mut out),
        }
        out
    }

    /// Finds labels in single precision if they can be proven, and the others from all distances in
    /// double precision.
    fn centres(
        &self,
        nearest: &NearestCentre,
        centres: &[Vec<f64>],
        rows: &[f64],
        out: &mut Predictions,
    ) {
        let d = self.inverse_scale.len();
        let n = rows.len() / d;
        let (mut open, mut open_rows) = (Vec::new(), Vec::new());
        out.label.reserve(n);
        out.squared_distance.reserve(n);
        nearest.find(rows, |i, found| {
            let row = &rows[i * d..(i + 1) * d];
            match found {
                Some(c) => {
                    out.label.push(c);
                    out.squared_distance.push(self.squared_distance(row, &centres[c as usize]));
                }
                None => {
                    open.push(i);
                    open_rows.extend_from_slice(row);
                    out.label.push(0);
                    out.squared_distance.push(f64::INFINITY);
                }
            }
        });
        let mut decided = Predictions::default();
        self.all_centres((&open_rows).into(), Detail::Label, &mut decided);
        let decided = decided.label.into_iter().zip(decided.squared_distance);
        for (i, (label, squared_distance)) in open.into_iter().zip(decided) {
            out.label[i] = label;
            out.squared_distance[i] = squared_distance;
        }
    }

    /// Finds labels from all distances in double precision.
    fn all_centres(&self, rows: ModelRows<'_>, detail: Detail, out: &mut Predictions) {
        self.each(rows, |_, _, scores| {
            let label = (1..scores.len()).fold(0, |b, c| if scores[c] < scores[b] { c } else { b });
            out.label.push(label as u32);
            out.squared_distance.push(scores[label]);
            if detail == Detail::All {
                out.transformed.extend(scores.iter().map(|d2| d2.sqrt()));
            }
        });
    }

    fn mixture(
        &self,
        means: &[Vec<f64>],
        rows: ModelRows<'_>,
        detail: Detail,
        out: &mut Predictions,
    ) {
        self.each(rows, |row, codes, scores| {
            let max = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let label = match scores.iter().position(|s| *s == max) {
                Some(label) if max > f64::NEG_INFINITY => label,
                // The row is so far out that every density is zero: use the nearest mean.
                _ => self.model.nearest(row, codes, means).0,
            };
            out.label.push(label as u32);
            let numbers = self.squared_distance(row, &means[label]);
            let levels = self.terms.get(label).map(|terms| self.of_levels(terms, codes));
            out.squared_distance.push(levels.map_or(numbers, |levels| numbers + levels));
            if detail >= Detail::Density {
                let log_density = log_sum(scores, max);
                out.log_density.push(log_density);
                if detail == Detail::All {
                    out.transformed.extend(scores.iter().enumerate().map(|(c, s)| match max {
                        // Every density is zero: the nearest mean has probability one.
                        f64::NEG_INFINITY => f64::from(u8::from(c == label)),
                        _ => (s - log_density).exp(),
                    }));
                }
            }
        });
    }

    fn components(&self, rows: ModelRows<'_>, out: &mut Predictions) {
        self.each(rows, |row, _, scores| {
            out.label.push(0);
            out.squared_distance.push(self.model.unexplained(row, scores).0);
            out.transformed.extend(scores);
        });
    }

    /// Calls `visit` with every row, its levels and its scores, which are computed block by block.
    fn each(&self, rows: ModelRows<'_>, mut visit: impl FnMut(&[f64], &[u32], &[f64])) {
        let (d, k, c) = (self.inverse_scale.len(), self.model.k(), self.starts.len());
        let terms = if self.log_terms.is_empty() { &self.terms } else { &self.log_terms };
        let mut scores = Vec::new();
        for (chunk, values) in rows.values.chunks(MAX_BLOCK * d).enumerate() {
            self.scores.of(values, &mut scores);
            for (i, (row, scores)) in
                values.chunks_exact(d).zip(scores.chunks_exact_mut(k)).enumerate()
            {
                let at = (chunk * MAX_BLOCK + i) * c;
                let codes = rows.codes.get(at..at + c).unwrap_or(&[]);
                for (score, terms) in scores.iter_mut().zip(terms) {
                    *score += self.of_levels(terms, codes);
                }
                visit(row, codes, scores);
            }
        }
    }

    /// Returns the sum of the contributions of the levels of a row.
    fn of_levels(&self, terms: &[f64], codes: &[u32]) -> f64 {
        codes.iter().zip(&self.starts).map(|(code, start)| terms[start + *code as usize]).sum()
    }

    /// Returns `Σ_j ((x_j − c_j)/s_j)²`, with the order of operations of the reference.
    #[inline]
    fn squared_distance(&self, row: &[f64], centre: &[f64]) -> f64 {
        row.iter()
            .zip(centre)
            .zip(&self.inverse_scale)
            .map(|((x, c), f)| ((x - c) * f) * ((x - c) * f))
            .sum()
    }
}

/// Returns `log Σ_c exp(scores_c)`, where `max` is the largest score.
fn log_sum(scores: &[f64], max: f64) -> f64 {
    if max == f64::NEG_INFINITY {
        return max;
    }
    let sum: f64 =
        scores.iter().copied().filter(|s| *s - max > -NEGLIGIBLE).map(|s| (s - max).exp()).sum();
    max + sum.ln()
}

#[cfg(test)]
mod tests;
