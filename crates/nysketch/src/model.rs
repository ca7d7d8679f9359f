//! Models: what was learned, in the table's own units, with the report of how.
//!
//! A model is a JSON file. Distances are taken in the plan's coordinates (columns divided by
//! `scale`), so that a model of scaled columns assigns rows as it was learned.

use crate::atom::Atom;
use crate::decoder::pca::Components;
use crate::decoder::{Report, Task};
use crate::error::{Error, Result};
use crate::random::{draw, normal};
use crate::sketch::Sketch;
use serde::{Deserialize, Serialize};

/// Version of the schema.
pub const SCHEMA: u32 = 1;

/// A learned model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Model {
    /// [`SCHEMA`].
    pub schema: u32,
    /// `kmeans`, `kmedians`, `gmm` or `pca`.
    pub task: String,
    /// Columns it applies to, in order.
    pub columns: Vec<String>,
    /// What columns are divided by before distances are taken.
    pub scale: Vec<f64>,
    /// Rows it was learned from, weights counted.
    pub rows: u64,
    /// Fingerprint of the plan.
    pub plan: String,
    /// The parameters.
    #[serde(flatten)]
    pub shape: Shape,
    /// How it was found.
    pub report: Report,
}

/// The parameters, in the table's units.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Shape {
    /// A Gaussian mixture with diagonal covariances.
    Mixture {
        /// α, adding up to 1.
        weights: Vec<f64>,
        /// One mean a component.
        means: Vec<Vec<f64>>,
        /// One variance a component and column.
        variances: Vec<Vec<f64>>,
    },
    /// Centres of clusters.
    Centres {
        /// Share of the data nearest to each, as far as the sketch tells.
        weights: Vec<f64>,
        /// One point a cluster.
        centres: Vec<Vec<f64>>,
    },
    /// Principal components, of scaled columns.
    Components {
        /// Mean of each column.
        mean: Vec<f64>,
        /// Unit vectors, by falling variance.
        components: Vec<Vec<f64>>,
        /// Variance along each.
        explained_variance: Vec<f64>,
        /// The same as shares of the total.
        explained_variance_ratio: Vec<f64>,
    },
}

impl Shape {
    fn widen(sketch: &Sketch, y: &[f64]) -> Vec<f64> {
        let frame = &sketch.plan().frame;
        (0..y.len()).map(|j| frame.centre[j] + frame.scale[j] * y[j]).collect()
    }

    /// Centres from atoms in the plan's coordinates.
    pub(crate) fn centres(sketch: &Sketch, atoms: Vec<Atom>) -> Self {
        let total: f64 = atoms.iter().map(|a| a.weight).sum();
        Shape::Centres {
            weights: atoms.iter().map(|a| a.weight / total.max(f64::MIN_POSITIVE)).collect(),
            centres: atoms.iter().map(|a| Self::widen(sketch, &a.mean)).collect(),
        }
    }

    /// A mixture from atoms in the plan's coordinates.
    pub(crate) fn mixture(sketch: &Sketch, atoms: Vec<Atom>) -> Self {
        let scale = &sketch.plan().frame.scale;
        let variance = |a: &Atom| a.variance.iter().zip(scale).map(|(v, s)| v * s * s).collect();
        Shape::Mixture {
            weights: atoms.iter().map(|a| a.weight).collect(),
            means: atoms.iter().map(|a| Self::widen(sketch, &a.mean)).collect(),
            variances: atoms.iter().map(variance).collect(),
        }
    }

    /// Components in the plan's coordinates.
    pub(crate) fn components(sketch: &Sketch, c: Components) -> Self {
        let total = c.total_variance.max(f64::MIN_POSITIVE);
        Shape::Components {
            mean: Self::widen(sketch, &c.mean),
            components: c.directions,
            explained_variance_ratio: c.variances.iter().map(|v| v / total).collect(),
            explained_variance: c.variances,
        }
    }

    fn numbers(&self) -> Vec<&f64> {
        match self {
            Shape::Mixture { weights, means, variances } => {
                weights.iter().chain(means.iter().chain(variances).flatten()).collect()
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

    /// Lengths of the rows of each matrix, for checking a file.
    fn widths(&self) -> Vec<usize> {
        match self {
            Shape::Mixture { means, variances, .. } => {
                means.iter().chain(variances).map(Vec::len).collect()
            }
            Shape::Centres { centres, .. } => centres.iter().map(Vec::len).collect(),
            Shape::Components { mean, components, .. } => {
                components.iter().chain(std::iter::once(mean)).map(Vec::len).collect()
            }
        }
    }
}

/// What a model says of one row.
#[derive(Debug, Clone, PartialEq)]
pub struct Prediction {
    /// Nearest centre, or most likely component; 0 for components.
    pub label: usize,
    /// Squared distance to the nearest centre or mean, in the table's units.
    pub squared_distance: f64,
    /// The same in the plan's coordinates, which decide the label.
    pub scaled_squared_distance: f64,
    /// Log density of the row under a mixture.
    pub log_density: Option<f64>,
    /// Probability of each component, or coordinates along the principal components.
    pub scores: Vec<f64>,
}

impl Model {
    pub(crate) fn new(sketch: &Sketch, task: Task, shape: Shape, report: Report) -> Result<Self> {
        let plan = sketch.plan();
        let model = Model {
            schema: SCHEMA,
            task: task.name().to_string(),
            columns: plan.columns.clone(),
            scale: plan.frame.scale.clone(),
            rows: sketch.rows(),
            plan: plan.fingerprint(),
            shape,
            report,
        };
        model.check()?;
        Ok(model)
    }

    /// Every number is finite and every row has a value a column.
    fn check(&self) -> Result<()> {
        let d = self.columns.len();
        let broken = if self.schema != SCHEMA {
            format!("has schema {}, this program reads {SCHEMA}", self.schema)
        } else if self.scale.len() != d || !self.scale.iter().all(|s| *s > 0.0 && s.is_finite()) {
            "has a scale that is not a positive number for each column".into()
        } else if self.shape.widths().is_empty() || self.shape.widths().iter().any(|w| *w != d) {
            format!("does not have {d} values in every row")
        } else if !self.shape.numbers().iter().all(|x| x.is_finite()) {
            "holds a number that is not finite".into()
        } else {
            return Ok(());
        };
        Err(Error::BadModel { how: broken })
    }

    /// Readable JSON.
    pub fn to_json(&self) -> String {
        let mut text =
            serde_json::to_string_pretty(self).expect("finite numbers and strings are valid JSON");
        text.push('\n');
        text
    }

    /// Reads a model's file.
    pub fn from_json(text: &str) -> Result<Self> {
        let model: Model = serde_json::from_str(text)
            .map_err(|e| Error::BadModel { how: format!("is not valid: {e}") })?;
        model.check()?;
        Ok(model)
    }

    /// Number of centres or components.
    pub fn k(&self) -> usize {
        match &self.shape {
            Shape::Mixture { means, .. } => means.len(),
            Shape::Centres { centres, .. } => centres.len(),
            Shape::Components { components, .. } => components.len(),
        }
    }

    /// What the model says of a finite row.
    pub fn predict(&self, row: &[f64]) -> Prediction {
        match &self.shape {
            Shape::Centres { centres, .. } => self.nearest(row, centres),
            Shape::Mixture { weights, means, variances } => {
                let logs: Vec<f64> = (0..means.len())
                    .map(|c| {
                        weights[c].max(f64::MIN_POSITIVE).ln()
                            + log_normal(row, &means[c], &variances[c])
                    })
                    .collect();
                let most = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                let total: f64 = logs.iter().map(|l| (l - most).exp()).sum();
                let label = (0..logs.len())
                    .max_by(|&a, &b| logs[a].total_cmp(&logs[b]).then(b.cmp(&a)))
                    .unwrap_or(0);
                Prediction {
                    label,
                    log_density: Some(most + total.ln()),
                    scores: logs.iter().map(|l| (l - most).exp() / total).collect(),
                    ..self.nearest(row, means)
                }
            }
            Shape::Components { mean, components, .. } => {
                let y: Vec<f64> =
                    (0..row.len()).map(|j| (row[j] - mean[j]) / self.scale[j]).collect();
                let scores =
                    components.iter().map(|c| c.iter().zip(&y).map(|(a, b)| a * b).sum()).collect();
                Prediction { scores, ..self.nearest(row, std::slice::from_ref(mean)) }
            }
        }
    }

    fn nearest(&self, row: &[f64], centres: &[Vec<f64>]) -> Prediction {
        let mut best = (0, f64::INFINITY, f64::INFINITY);
        for (c, centre) in centres.iter().enumerate() {
            let (mut scaled, mut plain) = (0.0, 0.0);
            for j in 0..row.len() {
                let t = row[j] - centre[j];
                plain += t * t;
                scaled += (t / self.scale[j]).powi(2);
            }
            if scaled < best.1 {
                best = (c, scaled, plain);
            }
        }
        Prediction {
            label: best.0,
            squared_distance: best.2,
            scaled_squared_distance: best.1,
            log_density: None,
            scores: Vec::new(),
        }
    }

    /// Draws a row from a mixture; `None` for other models.
    pub fn sample(&self, rng: &mut impl rand::Rng) -> Option<Vec<f64>> {
        let Shape::Mixture { weights, means, variances } = &self.shape else {
            return None;
        };
        let c = draw(weights, rng)?;
        Some(means[c].iter().zip(&variances[c]).map(|(m, v)| m + v.sqrt() * normal(rng)).collect())
    }
}

/// `log N(x; μ, diag γ)`.
fn log_normal(x: &[f64], mean: &[f64], variance: &[f64]) -> f64 {
    let term = |j: usize| {
        (std::f64::consts::TAU * variance[j]).ln() + (x[j] - mean[j]).powi(2) / variance[j]
    };
    -0.5 * (0..x.len()).map(term).sum::<f64>()
}
